/**
 * Both ends of the thread that sleeps for a `FineAlarm`: `Atomics.wait` has no grain of a millisecond, but whoever
 * waits in it is deaf to everything else.
 *
 *   word    unit           written by           how
 *   at      i64[0]  real microseconds of the    whoever asks     Atomics; the thread sleeps on it, so a store is
 *                   machine's monotonic clock                    followed by a notify
 *
 * The thread rings once for every value it reads there: at that moment, or at once when it has passed.
 */
import { type MessagePort, Worker } from "node:worker_threads";
import { InvariantError } from "../core/assert.ts";
import type { AlarmLoop } from "./alarm.ts";
import { monotonicMillis } from "./emulated-clock.ts";
import { entryFile } from "./entry-file.ts";
import { withResolvers } from "./with-resolvers.ts";

/** Nothing was asked yet. */
const NEVER = 0n;

export class AlarmThread implements AlarmLoop {
  readonly #at = new BigInt64Array(new SharedArrayBuffer(8));
  readonly #rung: () => void;
  readonly #broke: (error: Error) => void;
  #worker: Worker | null = null;

  /** `broke` hears of a thread that fails by itself: a bug of ours. */
  constructor(rung: () => void, broke: (error: Error) => void) {
    this.#rung = rung;
    this.#broke = broke;
  }

  /** Resolves when it sleeps, or has failed; until then, and after `stop`, nobody is woken by it. */
  async start(): Promise<void> {
    const worker = new Worker(entryFile("alarm"), { workerData: this.#at.buffer, ...optionsForFiles() });
    const ready = withResolvers();
    worker.once("message", () => {
      worker.on("message", () => this.#rung());
      ready.resolve();
    });
    worker.once("error", (error: Error) => {
      this.#broke(new InvariantError(`the alarm's thread failed: ${error.stack ?? error.message}`));
      ready.resolve();
    });
    this.#worker = worker;
    await ready.promise;
    // An appointment holds the process, not the thread that wakes for it.
    worker.unref();
  }

  async stop(): Promise<void> {
    const worker = this.#worker;
    this.#worker = null;
    await worker?.terminate();
  }

  now(): number {
    return monotonicMillis();
  }

  ask(at: number): void {
    if (this.#worker === null) return;
    Atomics.store(this.#at, 0, BigInt(Math.ceil(at * 1000)));
    Atomics.notify(this.#at, 0);
  }

  turn(act: () => void): void {
    setImmediate(act);
  }
}

/**
 * Node gives a thread the options of its process, and refuses one of them where a file is run. Those that are given
 * anew may be none of V8's, so in that case it gets none.
 */
const optionsForFiles = (): { execArgv?: string[] } =>
  process.execArgv.some((option) => option.startsWith("--input-type")) ? { execArgv: [] } : {};

/** The thread's own end; never returns. */
export function sleepAndRing(shared: SharedArrayBuffer, port: MessagePort): never {
  const word = new BigInt64Array(shared);
  port.postMessage("ready");
  for (let rung = NEVER; ; ) {
    const at = Atomics.load(word, 0);
    if (at === rung) Atomics.wait(word, 0, at);
    else if (isTime(word, at)) {
      rung = at;
      port.postMessage("rung");
    }
  }
}

/** False: something else was asked meanwhile. */
function isTime(word: BigInt64Array, at: bigint): boolean {
  const left = Number(at) / 1000 - monotonicMillis();
  return left <= 0 || Atomics.wait(word, 0, at, left) === "timed-out";
}
