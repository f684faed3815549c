/**
 * One executor thread: carries the fragment instances of several hosts, none of which ever waits inside it.
 *
 * An instance is an appointment between its steps, so a thread holds thousands at a time and piscina's task (one
 * query's instances here) stays open without holding the thread. What they tell is sent in batches, one message for
 * everything that happened in one turn of the event loop.
 */
import type { MessagePort } from "node:worker_threads";
import { expose } from "comlink";
import { BufferAllocator, NO_LOCK } from "../core/memory/buffer-allocator.ts";
import { type Xoshiro128, xoshiroFor } from "../core/random.ts";
import type { Instant } from "../core/units.ts";
import { Arena } from "./arena.ts";
import { nodeEndpoint } from "./comlink-endpoint.ts";
import { EmulatedClock } from "./emulated-clock.ts";
import { FragmentRun } from "./fragment-run.ts";
import { openHostLedger } from "./host-ledger.ts";
import { type FragmentThread, type HostOperators, type Instance, type ThreadHost, WorkPlaces } from "./instance.ts";
import { OperatorChecks } from "./operator-checks.ts";
import { OperatorFragment } from "./operator-fragment.ts";
import type {
  FleetSettings,
  FragmentOrder,
  Progress,
  QueryOrder,
  RefusalOrder,
  SharedOperators,
  ThreadControl,
  ThreadStatus,
  ThreadTask,
  ThreadWork,
} from "./protocol.ts";
import { ScratchBooks } from "./scratch/scratch-directories.ts";
import { hostDirectory } from "./scratch-space.ts";
import { Timers } from "./timers.ts";

export class ExecutorThread implements FragmentThread, ThreadControl {
  readonly scratch: string;
  readonly #settings: FleetSettings;
  readonly #clock: EmulatedClock;
  readonly #timers: Timers;
  readonly #running = new Map<number, Instance>();
  /** Hosts this thread has had to do with, opened when first needed. */
  readonly #hosts = new Map<number, ThreadHost>();
  /** How many instances of a piscina task still run, and what ends the task. */
  readonly #open = new Map<number, { left: number; readonly done: () => void }>();
  /**
   * Cancelled or held before they came: work and control travel on different ports, and the shorter message may be faster.
   * Tasks come in the order of their numbers, so one that is not beyond the last to come has ended.
   */
  readonly #early = new Map<number, "cancel" | "hold">();
  #lastToCome = 0;
  #refusals: { readonly order: RefusalOrder; readonly dice: Xoshiro128 }[] = [];
  #outbox: Progress[] = [];
  #progress: MessagePort | null = null;
  lockId = 0;

  constructor(settings: FleetSettings) {
    this.#settings = settings;
    this.#clock = new EmulatedClock(settings.clock);
    this.#timers = new Timers(this.#clock);
    this.scratch = settings.scratch;
  }

  /** A piscina task; it is over when all its instances are. */
  async perform(task: ThreadTask): Promise<void> {
    if (task.kind === "attach") this.#attach(task);
    else await this.#runAll(task.work);
  }

  #attach(task: Extract<ThreadTask, { kind: "attach" }>): void {
    this.lockId = task.lockId;
    this.#progress = task.progress;
    const control: ThreadControl = {
      cancel: (tasks) => this.cancel(tasks),
      hold: (tasks) => this.hold(tasks),
      abandonHost: (host) => this.abandonHost(host),
      refuse: (order) => this.refuse(order),
      status: () => this.status(),
      stall: (milliseconds) => this.stall(milliseconds),
    };
    expose(control, nodeEndpoint(task.control));
  }

  #runAll(work: readonly ThreadWork[]): Promise<void> {
    return new Promise((done) => {
      const group = { left: 0, done };
      for (const { query, fragments } of work) {
        for (const f of fragments) {
          group.left++;
          this.#open.set(f.task, group);
          this.#running.set(f.task, this.#instanceOf(query, f));
          this.#lastToCome = Math.max(this.#lastToCome, f.task);
        }
      }
      // All are known before the first one starts: one that ends at once must not end the task.
      for (const { fragments } of work) for (const f of fragments) this.#start(f.task);
    });
  }

  #start(task: number): void {
    const early = this.#early.get(task);
    this.#early.delete(task);
    this.#running.get(task)?.start();
    if (early !== undefined) this.#running.get(task)?.[early]();
  }

  #instanceOf(query: QueryOrder, order: FragmentOrder): Instance {
    const host = this.#host(order.host);
    // On a host without an executor's part of the query only rows are collected.
    const isReal = query.operators !== null && order.hasOperators;
    return isReal ? new OperatorFragment(query, order, host, this) : new FragmentRun(query, order, host, this);
  }

  // What instances ask of their thread

  now(): Instant {
    return this.#clock.now();
  }

  at(at: Instant, act: (now: Instant) => void): { cancel(): void } {
    const appointment = this.#timers.at(at, act);
    return { cancel: () => this.#timers.cancel(appointment) };
  }

  soon(act: () => void): void {
    setImmediate(act);
  }

  tell(progress: Progress): void {
    if (this.#outbox.push(progress) === 1) setImmediate(() => this.#send());
  }

  denies(query: QueryOrder, fragment: FragmentOrder): boolean {
    for (const { order, dice } of this.#refusals) {
      if (order.host !== null && order.host !== fragment.host) continue;
      if (order.queryClass !== null && order.queryClass !== query.queryClass) continue;
      if (dice.uniform() < order.chance) return true;
    }
    return false;
  }

  ended(task: number): void {
    this.#running.delete(task);
    const group = this.#open.get(task);
    this.#open.delete(task);
    if (group !== undefined && --group.left === 0) group.done();
  }

  #send(): void {
    const batch = this.#outbox;
    this.#outbox = [];
    this.#progress?.postMessage(batch);
  }

  #host(number: number): ThreadHost {
    let host = this.#hosts.get(number);
    if (host === undefined) {
      const shared = this.#settings.hosts[number]!;
      host = {
        address: shared.address,
        ledger: openHostLedger(shared.ledger, this.lockId),
        arena: new Arena(shared.arena, shared.pageSize),
        shared: new Map(),
        operators: shared.operators === null ? null : this.#operatorsOf(shared.operators, shared.address),
      };
      this.#hosts.set(number, host);
    }
    return host;
  }

  #operatorsOf(
    { arena, allocator: state, scratchBooks, scratchLimit }: SharedOperators,
    address: string,
  ): HostOperators {
    const directory = { path: hostDirectory(this.scratch, address), limit: scratchLimit, priority: 0 };
    // One thread carries the host, so its buffers and files need no lock; after its death main starts them anew.
    const allocator = new BufferAllocator(new Int32Array(state), arena.pool, NO_LOCK);
    return {
      arena,
      allocator,
      books: new ScratchBooks([directory], new Float64Array(scratchBooks), NO_LOCK),
      places: new WorkPlaces(arena.threads),
      checks: this.#settings.isChecked ? new OperatorChecks(allocator, arena.pool.minBufferBytes) : null,
    };
  }

  // The control line

  cancel(tasks: readonly number[]): void {
    this.#order("cancel", tasks);
  }

  hold(tasks: readonly number[]): void {
    this.#order("hold", tasks);
  }

  #order(what: "cancel" | "hold", tasks: readonly number[]): void {
    for (const task of tasks) {
      const instance = this.#running.get(task);
      if (instance !== undefined) instance[what]();
      else if (task > this.#lastToCome && this.#early.get(task) !== "cancel") this.#early.set(task, what);
    }
  }

  abandonHost(host: number): void {
    for (const [task, run] of [...this.#running]) {
      if (run.order.host !== host) continue;
      run.abandon();
      this.ended(task);
    }
    this.#hosts.get(host)?.shared.clear();
  }

  refuse(order: RefusalOrder): void {
    this.#refusals = this.#refusals.filter(
      (r) => r.order.host !== order.host || r.order.queryClass !== order.queryClass,
    );
    if (order.chance > 0) this.#refusals.push({ order, dice: xoshiroFor(order.seed, this.lockId, "refusals") });
  }

  status(): ThreadStatus {
    return { running: this.#running.size, appointments: this.#timers.size };
  }

  stall(milliseconds: number): void {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
  }
}
