/** An executor thread's two lines, work and control, on a thread that is a test: each message comes when it says so. */
import { once } from "node:events";
import { tmpdir } from "node:os";
import { MessageChannel } from "node:worker_threads";
import { afterEach, describe, expect, test } from "vitest";
import { checkIdle } from "../../src/core/memory/ledger-checks.ts";
import { createLedger, ledgerByteLength } from "../../src/core/memory/ledger-layout.ts";
import { type Bytes, type Instant, MiB, type Millis } from "../../src/core/units.ts";
import { startClock } from "../../src/runtime/emulated-clock.ts";
import { ExecutorThread } from "../../src/runtime/executor-thread.ts";
import { CANCELLED_CODE, type FragmentOrder, type Progress, type QueryOrder } from "../../src/runtime/protocol.ts";

const HOUR = 3_600_000 as Millis;

const QUERY: QueryOrder = {
  id: "0000000000000001:0000000000000000",
  idParts: [0, 1, 0, 0],
  pool: 0,
  queryClass: 0,
  bufferPoolLimit: 0,
  scratchLimit: -1,
  spillable: false,
  operators: null,
  seed: 0,
  profile: "flat",
  tellsSteps: false,
  admittedAt: 0 as Instant,
  duration: HOUR,
};

const instance = (task: number): FragmentOrder => ({
  task,
  host: 0,
  epoch: 0,
  instance: task,
  siblings: 1,
  memLimit: -1,
  minReservation: MiB as Bytes,
  claim: MiB as Bytes,
  peak: MiB as Bytes,
  hasOperators: true,
});

let close = (): void => undefined;
afterEach(() => close());

function openThread() {
  const sizes = { trackers: 64, pools: 1, pages: 16, extraWords: 0 };
  const ledger = new SharedArrayBuffer(ledgerByteLength(sizes));
  const memory = { bufferPoolLimit: (16 * MiB) as Bytes, processLimit: (64 * MiB) as Bytes, pageBytes: MiB };
  const view = createLedger(ledger, sizes, memory);
  const host = {
    address: "exec-1:27000",
    ledger,
    arena: new SharedArrayBuffer(16 * MiB),
    pageSize: MiB,
    operators: null,
  };
  const settings = { clock: startClock(1).settings, hosts: [host], scratch: tmpdir(), isChecked: false };
  const thread = new ExecutorThread(settings);
  const control = new MessageChannel();
  const progress = new MessageChannel();
  void thread.perform({ kind: "attach", lockId: 2, control: control.port1, progress: progress.port1 });
  const run = (...fragments: FragmentOrder[]) =>
    thread.perform({ kind: "runFragments", work: [{ query: QUERY, fragments }] });
  const heard = async (): Promise<Progress[]> => (await once(progress.port2, "message"))[0] as Progress[];
  close = (): void => {
    control.port1.close();
    progress.port1.close();
  };
  return { thread, view, run, heard };
}

const endsOf = (told: readonly Progress[]): (readonly [number, number | null])[] =>
  told.flatMap((p) => (p.kind === "finished" ? [[p.task, p.error?.code ?? null] as const] : []));

describe("work and control travel on different ports", () => {
  test("a cancellation that is faster than the work is not lost: the instance ends as soon as it has begun", async () => {
    const { thread, view, run, heard } = openThread();
    thread.cancel([1]);
    await run(instance(1));
    const told = await heard();
    expect(told.map((p) => p.kind)).toEqual(["started", "reserved", "finished"]);
    expect(endsOf(told)).toEqual([[1, CANCELLED_CODE]]);
    expect(checkIdle(view)).toEqual([]);
  });

  test("nor is an order to stand still; a cancellation counts whichever of the two comes first", async () => {
    const { thread, heard } = openThread();
    const short = { ...QUERY, duration: 0 as Millis };
    thread.hold([1]);
    thread.cancel([2]);
    thread.hold([2]);
    const over = thread.perform({
      kind: "runFragments",
      work: [{ query: short, fragments: [instance(1), instance(2)] }],
    });
    expect(endsOf(await heard())).toEqual([[2, CANCELLED_CODE]]);
    expect(thread.status().running).toBe(1);
    thread.cancel([1]);
    await over;
    expect(endsOf(await heard())).toEqual([[1, CANCELLED_CODE]]);
  });

  test("it is of the one that it names", async () => {
    const { thread, run, heard } = openThread();
    thread.cancel([2]);
    const over = run(instance(1), instance(2));
    expect(endsOf(await heard())).toEqual([[2, CANCELLED_CODE]]);
    thread.cancel([1]);
    await over;
    expect(endsOf(await heard())).toEqual([[1, CANCELLED_CODE]]);
  });

  test("one on a host that has died since ends silently: main has told of its end", async () => {
    const { thread, run } = openThread();
    thread.cancel([1]);
    await run({ ...instance(1), epoch: 7 });
    expect(thread.status().running).toBe(0);
  });

  test("one for an instance that has ended is kept for nobody", async () => {
    const { thread, run, heard } = openThread();
    thread.cancel([1]);
    await run(instance(1));
    await heard();
    thread.cancel([1]);
    const over = run(instance(2));
    const begun = await heard();
    expect([begun.map((p) => p.kind), thread.status().running]).toEqual([["started", "reserved"], 1]);
    thread.cancel([2]);
    await over;
  });
});
