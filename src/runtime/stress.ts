/**
 * Ledgers under fire: many threads take random steps on a few hosts, threads are killed wherever they stand, and what
 * must hold is looked at all the while (I1 to I6, I23, I24).
 *
 * After every kill the supervisor does what it does in the fleet, breaks the dead owner's lock, rolls its step back,
 * gives back what it held, and then nothing of the dead may be left and everything of the living must stand.
 */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { checkIdle, checkLedger, liveTrackers } from "../core/memory/ledger-checks.ts";
import {
  createLedger,
  F_OWNER,
  GRANTED,
  get,
  type LedgerView,
  ledgerByteLength,
  REFUSED,
  ROLLBACKS,
  ROOT,
} from "../core/memory/ledger-layout.ts";
import { type Xoshiro128, xoshiroFor } from "../core/random.ts";
import { type Bytes, GiB, MiB } from "../core/units.ts";
import { entryFile } from "./entry-file.ts";
import { giveBackOf, HostLedger } from "./host-ledger.ts";
import { FIRST_THREAD_ID, FREE, MAIN_ID } from "./host-lock.ts";
import { STOP, type StressSettings } from "./stress-thread.ts";

export interface StressOptions {
  readonly threads: number;
  readonly hosts: number;
  /** Threads killed, one after the other. */
  readonly kills: number;
  /** Steps of all threads together between two kills, and after the last. */
  readonly stepsBetweenKills: number;
  readonly seed: number;
  /** Called after every kill. */
  readonly progress?: (done: { readonly kills: number; readonly steps: number }) => void;
}

export const DEFAULT_STRESS: StressOptions = { threads: 4, hosts: 2, kills: 50, stepsBetweenKills: 20_000, seed: 1 };

export interface StressReport {
  readonly threads: number;
  readonly hosts: number;
  readonly seed: number;
  readonly kills: number;
  /** Kills that hit a thread inside a host's ledger, and those that left a step half done. */
  readonly killedInside: number;
  readonly rolledBack: number;
  /** Sections, one step each. */
  readonly steps: number;
  readonly granted: number;
  readonly refused: number;
  /** Whole ledgers looked at under their lock. */
  readonly snapshots: number;
  readonly seconds: number;
  /** Sentences that were false; empty when all held. */
  readonly broken: readonly string[];
}

/** Small on purpose: what does not fit must be refused all the time. */
const POOL = GiB;
const PAGE_BYTES = MiB;
const POOLS = 4;
const RECORDS_PER_QUERY = 5;
const QUERIES_PER_THREAD = 8;
/** Real milliseconds between two looks at the counters. */
const LOOK_EVERY = 2;

export async function stress(options: StressOptions): Promise<StressReport> {
  const run = new StressRun(options);
  return run.run();
}

interface Seat {
  worker: Worker;
  lockId: number;
  exited: Promise<unknown>;
}

class StressRun {
  readonly #options: StressOptions;
  readonly #ledgers: readonly { readonly buffer: SharedArrayBuffer; readonly ledger: HostLedger }[];
  readonly #progress: Int32Array;
  readonly #seats: Seat[] = [];
  readonly #dice: Xoshiro128;
  readonly #broken: string[] = [];
  #nextLockId = FIRST_THREAD_ID;
  #kills = 0;
  #killedInside = 0;
  #snapshots = 0;

  constructor(options: StressOptions) {
    this.#options = options;
    this.#ledgers = Array.from({ length: options.hosts }, () => newLedger(options.threads));
    this.#progress = new Int32Array(new SharedArrayBuffer(4 * (1 + options.threads)));
    this.#dice = xoshiroFor(options.seed, 0, "stress");
  }

  async run(): Promise<StressReport> {
    const { threads, kills, stepsBetweenKills } = this.#options;
    const startedAt = performance.now();
    for (let slot = 0; slot < threads; slot++) this.#seats.push(this.#start(slot));
    let wanted = stepsBetweenKills;
    for (; this.#kills < kills && this.#broken.length === 0; wanted += stepsBetweenKills) {
      await this.#until(wanted);
      await this.#killOne();
      this.#options.progress?.({ kills: this.#kills, steps: this.#steps() });
    }
    await this.#until(wanted);
    await this.#finish();
    return this.#report((performance.now() - startedAt) / 1000);
  }

  #start(slot: number): Seat {
    const lockId = this.#nextLockId++;
    const settings: StressSettings = {
      ledgers: this.#ledgers.map((l) => l.buffer),
      seed: this.#options.seed,
      lockId,
      pools: POOLS,
      progress: this.#progress.buffer as SharedArrayBuffer,
      slot,
    };
    const worker = new Worker(entryFile("stress"), { workerData: settings });
    worker.on("error", (error) => this.#broken.push(`thread ${lockId}: ${error.message}`));
    return { worker, lockId, exited: once(worker, "exit") };
  }

  #steps(): number {
    let sum = 0;
    for (let slot = 0; slot < this.#options.threads; slot++) sum += Atomics.load(this.#progress, 1 + slot);
    return sum;
  }

  /** Looks at ledgers until the threads have done so many steps together. */
  async #until(steps: number): Promise<void> {
    while (this.#steps() < steps && this.#broken.length === 0) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY));
      const { ledger } = this.#ledgers[Math.floor(this.#dice.uniform() * this.#ledgers.length)]!;
      this.#look(await ledger.snapshot());
    }
  }

  #look(snapshot: LedgerView): void {
    this.#snapshots++;
    this.#broken.push(...checkLedger(snapshot));
  }

  async #killOne(): Promise<void> {
    const slot = Math.floor(this.#dice.uniform() * this.#seats.length);
    const { worker, lockId } = this.#seats[slot]!;
    await worker.terminate();
    this.#kills++;
    for (const { ledger } of this.#ledgers) {
      if (Math.abs(Atomics.load(ledger.view.i32, 0)) === lockId) this.#killedInside++;
      ledger.breakLockOf(lockId);
      await ledger.runSoon(giveBackOf, lockId);
      const snapshot = await ledger.snapshot();
      this.#look(snapshot);
      const left = liveTrackers(snapshot).filter((t) => t !== ROOT && get(snapshot, t, F_OWNER) === lockId);
      if (left.length > 0) this.#broken.push(`I23 ${left.length} trackers of killed thread ${lockId} are left`);
    }
    this.#seats[slot] = this.#start(slot);
  }

  async #finish(): Promise<void> {
    Atomics.store(this.#progress, STOP, 1);
    await Promise.all(this.#seats.map((s) => s.exited));
    for (const { ledger } of this.#ledgers) {
      if (Atomics.load(ledger.view.i32, 0) !== FREE) this.#broken.push("a lock is held with nobody there");
      else this.#broken.push(...checkIdle(await ledger.snapshot()));
    }
  }

  #report(seconds: number): StressReport {
    const sum = (word: number): number => this.#ledgers.reduce((n, l) => n + l.ledger.view.f64[word]!, 0);
    const { threads, hosts, seed } = this.#options;
    return {
      threads,
      hosts,
      seed,
      kills: this.#kills,
      killedInside: this.#killedInside,
      rolledBack: sum(ROLLBACKS),
      steps: this.#steps(),
      granted: sum(GRANTED),
      refused: sum(REFUSED),
      snapshots: this.#snapshots,
      seconds,
      broken: this.#broken,
    };
  }
}

function newLedger(threads: number): { buffer: SharedArrayBuffer; ledger: HostLedger } {
  const sizes = {
    trackers: 1 + threads * QUERIES_PER_THREAD * RECORDS_PER_QUERY,
    pools: POOLS,
    pages: POOL / PAGE_BYTES,
    extraWords: 0,
  };
  const buffer = new SharedArrayBuffer(ledgerByteLength(sizes));
  const memory = { bufferPoolLimit: POOL as Bytes, processLimit: (2 * POOL) as Bytes, pageBytes: PAGE_BYTES };
  return { buffer, ledger: new HostLedger(createLedger(buffer, sizes, memory), MAIN_ID) };
}
