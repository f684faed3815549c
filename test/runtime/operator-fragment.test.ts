/** Real operators as a fragment instance, on a thread that is a test: its turns come when the test says so. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { OperatorSpec } from "../../src/config/scenario.ts";
import { allocatorStateBytes, BufferAllocator, NO_LOCK } from "../../src/core/memory/buffer-allocator.ts";
import { checkIdle, checkLedger } from "../../src/core/memory/ledger-checks.ts";
import { createLocalLedger, type LedgerView } from "../../src/core/memory/ledger-layout.ts";
import { type Bytes, type Instant, KiB, MiB, type Millis } from "../../src/core/units.ts";
import { Arena } from "../../src/runtime/arena.ts";
import { HostLedger } from "../../src/runtime/host-ledger.ts";
import { type FragmentThread, type ThreadHost, WorkPlaces } from "../../src/runtime/instance.ts";
import { OperatorChecks } from "../../src/runtime/operator-checks.ts";
import { OperatorFragment } from "../../src/runtime/operator-fragment.ts";
import { createArena } from "../../src/runtime/operators/operator-arena.ts";
import { plannedClients } from "../../src/runtime/operators/run-operator.ts";
import type { FragmentOrder, Progress, QueryOrder } from "../../src/runtime/protocol.ts";
import { FileGroup } from "../../src/runtime/scratch/file-group.ts";
import { ScratchBooks, scratchBookWords } from "../../src/runtime/scratch/scratch-directories.ts";
import { hostDirectory } from "../../src/runtime/scratch-space.ts";

const ME = 7;
const HOST = "exec-1:27000";
const limits = { bufferSize: (64 * KiB) as Bytes, maxRowSize: (64 * KiB) as Bytes };
const rows = (n: number, distinct: number) => ({
  rows: n,
  width: { min: 16, max: 16 },
  keys: { kind: "uniform" as const, distinct },
});
const SORT: OperatorSpec = { kind: "sort", input: rows(60_000, 10_000), limits };
const GROUP: OperatorSpec = { kind: "aggregate", input: rows(60_000, 30_000), preAggregate: false, limits };
const JOIN: OperatorSpec = { kind: "join", build: rows(30_000, 20_000), probe: rows(40_000, 20_000), limits };

let scratch = "";
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), "waterhole-test-"));
});
afterEach(() => rmSync(scratch, { recursive: true, force: true }));

class TestThread implements FragmentThread {
  readonly lockId = ME;
  readonly scratch = scratch;
  readonly told: Progress[] = [];
  readonly view: LedgerView;
  readonly host: ThreadHost;
  readonly checks: OperatorChecks;
  denied = (): boolean => false;
  #turns: (() => void)[] = [];
  #tasks = 0;

  constructor(pool: number, places = 2) {
    this.view = createLocalLedger(
      { trackers: 64, pools: 1, pages: 0, extraWords: 0 },
      { bufferPoolLimit: pool as Bytes, processLimit: -1, pageBytes: 4096 },
    );
    const arena = createArena({ poolBytes: pool, minBufferBytes: 8 * KiB, threads: places });
    const words = new Int32Array(allocatorStateBytes(arena.pool) / 4);
    BufferAllocator.format(words, arena.pool);
    const directory = { path: hostDirectory(scratch, HOST), limit: Number.POSITIVE_INFINITY, priority: 0 };
    const allocator = new BufferAllocator(words, arena.pool, NO_LOCK);
    this.checks = new OperatorChecks(allocator, arena.pool.minBufferBytes);
    this.host = {
      address: HOST,
      ledger: new HostLedger(this.view, ME),
      arena: new Arena(new SharedArrayBuffer(0), 4096),
      shared: new Map(),
      operators: {
        arena,
        allocator,
        books: new ScratchBooks([directory], new Float64Array(scratchBookWords(1, places)), NO_LOCK),
        places: new WorkPlaces(places),
        checks: this.checks,
      },
    };
  }

  start(operators: readonly OperatorSpec[], order: Partial<FragmentOrder> = {}, query: Partial<QueryOrder> = {}) {
    const task = ++this.#tasks;
    const minimum = operators.flatMap(plannedClients).reduce((sum, c) => sum + c.minReservation, 0);
    const fragment = new OperatorFragment(
      {
        id: `000000000000000${task}:0000000000000000`,
        idParts: [0, task, 0, 0],
        pool: 0,
        queryClass: 0,
        bufferPoolLimit: 0,
        scratchLimit: -1,
        spillable: true,
        operators,
        seed: 5,
        profile: "flat",
        tellsSteps: true,
        admittedAt: 0 as Instant,
        duration: 0 as Millis,
        ...query,
      },
      {
        task,
        host: 0,
        epoch: 0,
        instance: 1,
        memLimit: -1,
        siblings: 1,
        minReservation: minimum as Bytes,
        claim: minimum as Bytes,
        peak: 0 as Bytes,
        hasOperators: true,
        ...order,
      },
      this.host,
      this,
    );
    fragment.start();
    return fragment;
  }

  now = (): Instant => 0 as Instant;
  at = () => ({ cancel: () => undefined });
  soon(act: () => void): void {
    this.#turns.push(act);
  }
  tell(progress: Progress): void {
    this.told.push(progress);
  }
  denies(): boolean {
    return this.denied();
  }
  ended(): void {
    expect(checkLedger(this.view)).toEqual([]);
  }

  /** So many turns of the event loop, or until there is nothing left to do. */
  turn(most = Number.POSITIVE_INFINITY): void {
    for (let n = 0; n < most; n++) {
      const act = this.#turns.shift();
      if (act === undefined) return;
      act();
      expect(checkLedger(this.view)).toEqual([]);
    }
  }

  ends() {
    return this.told.flatMap((p) => (p.kind === "finished" ? [p] : []));
  }

  broken() {
    return this.told.flatMap((p) => (p.kind === "broken" ? [p.text] : []));
  }

  expectIdle(): void {
    expect(this.broken()).toEqual([]);
    expect(this.checks.look()).toEqual([]);
    expect(checkIdle(this.view)).toEqual([]);
    const books = this.host.operators!.allocator.snapshot();
    expect(books.buffers.filter((b) => b.place === "inUse")).toEqual([]);
    expect(this.host.operators!.books.hostBytes()).toBe(0);
  }
}

function alone(operators: readonly OperatorSpec[], pool: number, denied = () => false) {
  const t = new TestThread(pool);
  t.denied = denied;
  t.start(operators);
  t.turn();
  t.expectIdle();
  return t.ends()[0]!;
}

describe("I21 the same result with and without room", () => {
  test.each([
    ["sort", SORT],
    ["aggregate", GROUP],
    ["join", JOIN],
  ])("%s", (_, operator) => {
    const minimum = plannedClients(operator)[0]!.minReservation;
    const wide = alone([operator], 64 * MiB);
    const narrow = alone([operator], minimum + 512 * KiB);
    expect(wide).toMatchObject({ error: null, spilled: 0 });
    expect(narrow).toMatchObject({ error: null, output: wide.output });
    expect(narrow.spilled).toBeGreaterThan(0);
  });

  test("I19 with every growth refused, on the minimum alone", () => {
    const refused = alone([SORT], 64 * MiB, () => true);
    expect(refused).toMatchObject({ error: null, output: alone([SORT], 64 * MiB).output });
    expect(refused.peak).toBe(plannedClients(SORT)[0]!.minReservation);
  });
});

describe("R15 to R20 several operators of one query", () => {
  test("run one after the other; the minimum of all is taken first and goes back as they close", () => {
    const t = new TestThread(64 * MiB);
    t.start([SORT, JOIN]);
    const minimum = [SORT, JOIN].flatMap(plannedClients).reduce((sum, c) => sum + c.minReservation, 0);
    expect(t.told.find((p) => p.kind === "reserved")).toMatchObject({ reservation: minimum });
    t.turn();
    expect(t.ends()[0]).toMatchObject({ error: null });
    t.expectIdle();
  });

  test("R17 code 106 when it is not there", () => {
    const t = new TestThread(MiB);
    t.start([JOIN]);
    expect(t.ends()[0]?.error?.code).toBe(106);
    t.expectIdle();
  });
});

describe("a host has room for so many at a time", () => {
  test("the third waits for a work space, and comes when one is free", () => {
    const t = new TestThread(64 * MiB, 2);
    for (let i = 0; i < 3; i++) t.start([SORT]);
    expect(t.told.filter((p) => p.kind === "started")).toHaveLength(3);
    t.turn();
    expect(t.ends().map((e) => e.error)).toEqual([null, null, null]);
    t.expectIdle();
  });

  test("one that is cancelled while it waits takes no space", () => {
    const t = new TestThread(64 * MiB, 1);
    t.start([SORT]);
    const waiting = t.start([SORT]);
    waiting.cancel();
    t.turn();
    expect(t.ends().map((e) => e.error?.text ?? null)).toEqual(["Cancelled", null]);
    t.start([SORT]);
    t.turn();
    expect(t.ends()).toHaveLength(3);
    t.expectIdle();
  });
});

describe("ends before the end", () => {
  test("cancelled in the middle of a spill: nothing is left", () => {
    const t = new TestThread(plannedClients(SORT)[0]!.minReservation + 512 * KiB);
    const run = t.start([SORT]);
    while (t.told.every((p) => p.kind !== "spilled")) t.turn(1);
    run.cancel();
    t.turn();
    expect(t.ends()[0]?.error?.text).toBe("Cancelled");
    t.expectIdle();
  });

  test("held in the middle of a spill: it stands still until it is cancelled, and then nothing is left", () => {
    const t = new TestThread(plannedClients(SORT)[0]!.minReservation + 512 * KiB);
    const run = t.start([SORT]);
    while (t.told.every((p) => p.kind !== "spilled")) t.turn(1);
    run.hold();
    t.turn();
    expect(t.ends()).toEqual([]);
    expect(checkIdle(t.view)).not.toEqual([]);
    run.cancel();
    t.turn();
    expect(t.ends()).toMatchObject([{ error: { text: "Cancelled" } }]);
    t.expectIdle();
  });

  test("held and abandoned while it stands: its host is gone, and it does nothing more", () => {
    const t = new TestThread(64 * MiB);
    const run = t.start([SORT]);
    run.hold();
    t.turn();
    run.abandon();
    run.cancel();
    t.turn();
    expect(t.ends()).toEqual([]);
  });

  test("O2 SCRATCH_LIMIT = 0 says so", () => {
    const t = new TestThread(plannedClients(SORT)[0]!.minReservation + 512 * KiB);
    t.start([SORT], {}, { scratchLimit: 0 });
    t.turn();
    expect(t.ends()[0]?.error).toMatchObject({ code: 7, text: expect.stringContaining("scratch_limit is 0") });
    t.expectIdle();
  });

  test("S5 code 90 at SCRATCH_LIMIT", () => {
    const t = new TestThread(plannedClients(SORT)[0]!.minReservation + 512 * KiB);
    t.start([SORT], {}, { scratchLimit: 64 * KiB });
    t.turn();
    expect(t.ends()[0]?.error).toMatchObject({ code: 90 });
    t.expectIdle();
  });
});

describe("I7 to I10, I12 between the steps of whatever runs on the host", () => {
  /** Two that spill, in turn, and so far that both hold buffers and have files. */
  const spilling = (): TestThread => {
    const minimum = [SORT, GROUP].flatMap(plannedClients).reduce((sum, c) => sum + c.minReservation, 0);
    const t = new TestThread(minimum + MiB);
    t.start([SORT]);
    t.start([GROUP]);
    const spilled = (): Set<number> => new Set(t.told.flatMap((p) => (p.kind === "spilled" ? [p.task] : [])));
    while (spilled().size < 2) t.turn(1);
    return t;
  };

  test("hold; they are looked at all the while, and of both", () => {
    const t = spilling();
    const { looks } = t.checks;
    expect(looks).toBeGreaterThan(0);
    t.turn();
    expect(t.checks.looks).toBeGreaterThan(looks);
    expect(t.ends().map((e) => e.error)).toEqual([null, null]);
    t.expectIdle();
  });

  test("a buffer that is nobody's is told, with host and rule", () => {
    const t = spilling();
    t.host.operators!.allocator.allocate(8 * KiB, 99);
    t.turn();
    expect(t.broken()[0]).toMatch(/^exec-1:27000: I9 clients hold \d+ bytes of buffers, the pool counts \d+ in use$/);
  });

  test("scratch that nobody is charged for is told", () => {
    const t = spilling();
    const { books } = t.host.operators!;
    vi.spyOn(FileGroup.prototype, "snapshot").mockImplementation(() => ({ charged: 1, fileBytes: 0, recycled: 0 }));
    expect(t.checks.look()).toContain("I12 the query is charged 1 bytes, its files have 0");
    vi.restoreAllMocks();
    t.turn();
    expect(books.hostBytes()).toBe(0);
    t.expectIdle();
  });

  test("who was abandoned is not asked any more", () => {
    const t = new TestThread(64 * MiB);
    const run = t.start([SORT]);
    t.turn(1);
    run.abandon();
    expect(t.checks.look()).toEqual([expect.stringContaining("I9 clients hold 0 bytes")]);
  });
});
