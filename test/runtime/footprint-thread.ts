/** A thread of the fleet for one host, on a clock that a test moves; what it tells is kept. */
import { readdirSync } from "node:fs";
import { expect } from "vitest";
import { checkLedger } from "../../src/core/memory/ledger-checks.ts";
import { createLedger, type LedgerView, ledgerByteLength } from "../../src/core/memory/ledger-layout.ts";
import { type Bytes, type Instant, MiB, type Millis } from "../../src/core/units.ts";
import { Arena } from "../../src/runtime/arena.ts";
import { FragmentRun } from "../../src/runtime/fragment-run.ts";
import { HostLedger } from "../../src/runtime/host-ledger.ts";
import type { FragmentThread, ThreadHost } from "../../src/runtime/instance.ts";
import type { FragmentOrder, Progress, QueryOrder } from "../../src/runtime/protocol.ts";

export const PAGE = 4096;
const ME = 7;

/** A thread with one host of `pool` bytes and a page of memory for every `scale` pages of accounts. */
export class FootprintThread implements FragmentThread {
  readonly lockId = ME;
  readonly scratch: string;
  readonly told: Progress[] = [];
  readonly view: LedgerView;
  readonly arena: Arena;
  readonly ledger: HostLedger;
  readonly shared: ThreadHost["shared"] = new Map();
  denied: () => boolean = () => false;
  numEnded = 0;
  #now = 0;
  #appointments: { at: number; act: (now: Instant) => void }[] = [];

  constructor(scratch: string, pool: number, scale = 1, scratchCapacity = -1) {
    this.scratch = scratch;
    const pages = Math.floor(pool / scale / PAGE);
    const sizes = { trackers: 16, pools: 2, pages, extraWords: 0 };
    const memory = {
      bufferPoolLimit: pool as Bytes,
      processLimit: -1 as const,
      pageBytes: PAGE * scale,
      scratchCapacity,
    };
    this.view = createLedger(new SharedArrayBuffer(ledgerByteLength(sizes)), sizes, memory);
    this.arena = new Arena(new SharedArrayBuffer(pages * PAGE), PAGE);
    this.ledger = new HostLedger(this.view, ME);
  }

  run(order: Partial<FragmentOrder> = {}, query: Partial<QueryOrder> = {}): FragmentRun {
    const host = {
      address: "exec-1:27000",
      ledger: this.ledger,
      arena: this.arena,
      operators: null,
      shared: this.shared,
    };
    const task = this.told.length + 1;
    const run = new FragmentRun(
      {
        id: `000000000000000${task.toString(16)}:0000000000000000`,
        idParts: [0, task, 0, 0],
        pool: 1,
        queryClass: 0,
        tellsSteps: true,
        operators: null,
        seed: 0,
        admittedAt: this.now(),
        bufferPoolLimit: 0,
        scratchLimit: -1,
        spillable: true,
        profile: "ramp",
        duration: 800 as Millis,
        ...query,
      },
      {
        task,
        host: 0,
        epoch: 0,
        instance: 1,
        memLimit: -1,
        siblings: 1,
        minReservation: MiB as Bytes,
        claim: order.minReservation ?? (MiB as Bytes),
        peak: (8 * MiB) as Bytes,
        hasOperators: true,
        ...order,
      },
      host,
      this,
    );
    run.start();
    return run;
  }

  now(): Instant {
    return this.#now as Instant;
  }
  at(at: Instant, act: (now: Instant) => void): { cancel(): void } {
    const appointment = { at, act };
    this.#appointments.push(appointment);
    return {
      cancel: () => {
        this.#appointments = this.#appointments.filter((a) => a !== appointment);
      },
    };
  }
  soon(act: () => void): void {
    act();
  }
  tell(progress: Progress): void {
    this.told.push(progress);
    expect(checkLedger(this.view)).toEqual([]);
  }
  denies(): boolean {
    return this.denied();
  }
  ended(): void {
    this.numEnded++;
  }

  /** Keeps every appointment up to then, in order. */
  moveTo(time: number): void {
    for (;;) {
      const due = this.#appointments.filter((a) => a.at <= time).sort((a, b) => a.at - b.at)[0];
      if (due === undefined) break;
      this.#appointments = this.#appointments.filter((a) => a !== due);
      this.#now = due.at;
      due.act(due.at as Instant);
    }
    this.#now = time;
  }

  end(): Extract<Progress, { kind: "finished" }> | undefined {
    return this.told.find((p) => p.kind === "finished");
  }
  spilled(): number {
    return this.told.reduce((n, p) => n + (p.kind === "spilled" ? p.bytes : 0), 0);
  }
  files(): string[] {
    return readdirSync(this.scratch, { recursive: true, encoding: "utf8" }).filter((f) => f.endsWith(".scratch"));
  }
}
