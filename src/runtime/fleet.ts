/**
 * The executor hosts and the threads that carry them: starting, handing out fragments, faults, stopping.
 *
 * piscina owns the threads. A host belongs to one thread (its number modulo theirs), so that a thread's death is the
 * death of its hosts and of no others, and all that one turn has for a thread goes in one task. Control goes over
 * comlink, numbers through each host's shared ledger; what instances tell comes back in batches.
 *
 *   host:  UP --lose--> LOST --(thread there again, books at zero)--> ready to join: UP
 *
 * Only this file makes these moves. When a host is lost, whatever of it was running ends at once with a clear reason,
 * the dead owner's lock is broken, its half-done step rolled back, and everything it held is given back from its own
 * records: no byte stays, whoever died where (I23). A silenced host dies like that too, but nobody is told by us: what
 * was running there ends for those who cancel it, having heard of the death from somebody else.
 */
import { once } from "node:events";
import { MessageChannel, type MessagePort, type Worker } from "node:worker_threads";
import { type Remote, wrap } from "comlink";
import { Piscina, queueOptionsSymbol } from "piscina";
import type { BackendUsage } from "../core/admission/pool-stats.ts";
import type { BackendDescriptor } from "../core/cluster/backend.ts";
import { allocatorStateBytes, BufferAllocator, NO_LOCK } from "../core/memory/buffer-allocator.ts";
import { checkIdle } from "../core/memory/ledger-checks.ts";
import {
  createLedger,
  F_PEAK_RESERVATION,
  get,
  type HostMemory,
  type LedgerSizes,
  type LedgerView,
  ledgerByteLength,
  PAGE_CAPACITY,
  PAGES_PEAK,
  ROOT,
  SCRATCH_PEAK,
} from "../core/memory/ledger-layout.ts";
import { poolsReserved, poolUsages } from "../core/memory/pool-usage.ts";
import { type Bytes, type Instant, KiB, type Millis } from "../core/units.ts";
import { pageSizeFor } from "./arena.ts";
import { nodeEndpoint } from "./comlink-endpoint.ts";
import type { EmulatedClock } from "./emulated-clock.ts";
import { entryFile } from "./entry-file.ts";
import { giveBackOf, HostLedger } from "./host-ledger.ts";
import { FIRST_THREAD_ID, MAIN_ID } from "./host-lock.ts";
import { createArena } from "./operators/operator-arena.ts";
import {
  CANCELLED_CODE,
  type FleetSettings,
  type FragmentError,
  type FragmentOrder,
  HOST_LOST_CODE,
  type Progress,
  type QueryOrder,
  type RefusalOrder,
  type SharedHost,
  type SharedOperators,
  type ThreadControl,
  type ThreadTask,
  type ThreadWork,
} from "./protocol.ts";
import { scratchBookWords } from "./scratch/scratch-directories.ts";
import { ScratchSpace } from "./scratch-space.ts";

export interface FleetOptions {
  readonly hosts: readonly HostSpec[];
  readonly threads: number;
  readonly clock: EmulatedClock;
  /** Emulated bytes behind a real one. */
  readonly memoryScale: number;
  /** Pools whose queries can come. */
  readonly pools: number;
  /** Queries that one host can hold at a time. */
  readonly queriesPerHost: number;
  /** Some query runs real operators: hosts have memory for them. A host can be too large for it. */
  readonly hasOperators: boolean;
  /** Threads look at real operators' buffers, pages and files while they run. */
  readonly check: boolean;
  /** Where the run's scratch directory is made; left out: under the system's temporary directory. */
  readonly scratchBase?: string;
}

export interface HostSpec {
  readonly backend: BackendDescriptor;
  /** Bytes of scratch on the host, Infinity: no limit. */
  readonly scratchLimit: number;
  readonly memory: Omit<HostMemory, "pageBytes" | "scratchCapacity">;
}

/** What happens in the fleet, told to its one owner. Calls come from the event loop, never from inside a call to us. */
export interface FleetListener {
  progress(batch: readonly Progress[]): void;
  /** The host's instances have ended, with `progress` told for each. */
  hostLost(host: number, why: string): void;
  /** The host has a thread and an empty ledger again. */
  hostReady(host: number): void;
}

/** Query, unclaimed reservations, instance, client. */
const RECORDS_PER_QUERY = 4;

interface Host {
  readonly number: number;
  readonly spec: HostSpec;
  readonly shared: SharedHost;
  readonly ledger: HostLedger;
  readonly thread: number;
}

interface Thread {
  /** node's thread id, or -1 while there is none. */
  workerId: number;
  worker: Worker | null;
  /** In locks and owner words; new for every thread that ever ran. */
  lockId: number;
  control: Remote<ThreadControl> | null;
  ports: MessagePort[];
  portsClosed: Promise<unknown>;
  attached: Promise<void>;
}

interface OpenTask {
  readonly host: number;
  readonly thread: number;
  /** Its process is gone, and nobody knows. */
  isSilent: boolean;
}

const NO_BYTES = 0 as Bytes;
const LOST_FRAGMENT = { peak: NO_BYTES, peakOnHost: NO_BYTES, spilled: NO_BYTES, output: null };

const WARM_UP: QueryOrder = {
  id: "0000000000000000:0000000000000000",
  idParts: [0, 0, 0, 0],
  pool: 0,
  queryClass: -1,
  bufferPoolLimit: 0,
  scratchLimit: -1,
  spillable: false,
  operators: null,
  seed: 0,
  profile: "flat",
  tellsSteps: false,
  admittedAt: 0 as Instant,
  duration: 0 as Millis,
};

export class Fleet {
  readonly scratch: ScratchSpace;
  readonly #options: FleetOptions;
  readonly #listener: FleetListener;
  readonly #hosts: readonly Host[];
  readonly #threads: Thread[];
  readonly #open = new Map<number, OpenTask>();
  readonly #lost = new Set<number>();
  /** By thread, what this turn has for it. */
  readonly #outgoing = new Map<number, ThreadWork[]>();
  #pool: Piscina | null = null;
  #lastTask = 0;
  #lastLockId = FIRST_THREAD_ID - 1;
  #isStopping = false;
  /** Hears what instances tell before the fleet has started. */
  #warmingUp: ((p: Progress) => void) | null = null;
  /** Bugs of ours that ended a thread. */
  readonly #failures: string[] = [];
  /** Why a thread is being ended by us, by thread number. */
  readonly #reasons = new Map<number, string>();

  /** Throws RangeError when a host's memory can't be had. */
  constructor(options: FleetOptions, listener: FleetListener) {
    this.#options = options;
    this.#listener = listener;
    const threads = Math.max(1, Math.min(options.threads, options.hosts.length));
    this.#hosts = options.hosts.map((spec, number) => hostOf(spec, number, number % threads, options));
    // Last: nothing is left on disk when a host can't be had.
    this.scratch = new ScratchSpace(options.scratchBase);
    this.#threads = Array.from({ length: threads }, () => noThread());
  }

  get numThreads(): number {
    return this.#threads.length;
  }

  /** Instances that have been handed out and have not ended. */
  get numOpen(): number {
    return this.#open.size;
  }

  get isStopped(): boolean {
    return this.#pool === null;
  }

  isLost(host: number): boolean {
    return this.#lost.has(host);
  }

  ledgerOf(host: number): HostLedger {
    return this.#hosts[host]!.ledger;
  }

  /** Resolves when every thread is there and knows its hosts. */
  async start(): Promise<void> {
    const { clock } = this.#options;
    const settings: FleetSettings = {
      clock: clock.settings,
      hosts: this.#hosts.map((h) => h.shared),
      scratch: this.scratch.directory,
      isChecked: this.#options.check,
    };
    const numThreads = this.#threads.length;
    const pool = new Piscina({
      filename: entryFile("executor").href,
      workerData: settings,
      minThreads: numThreads,
      maxThreads: numThreads,
      // Waiting instances hold no thread, so a thread has room for as many as its hosts can admit.
      concurrentTasksPerWorker: Number.MAX_SAFE_INTEGER,
      // `sync` stops an idle thread's event loop, and `async` leaves a waiter behind for every task (STYLE 9).
      atomics: "disabled",
      idleTimeout: Number.POSITIVE_INFINITY,
      loadBalancer: (task, workers) => {
        const wanted = this.#threads[threadWanted(task[queueOptionsSymbol as never])]?.workerId;
        return workers.find((w) => w.id === wanted) ?? null;
      },
    });
    this.#pool = pool;
    // A thread that failed between two tasks; its own listener has noted why.
    pool.on("error", ignoreDeath);
    const all = new Promise<void>((resolve) => {
      let left = numThreads;
      pool.on("workerCreate", ({ id }: { id: number }) => {
        this.#adopt(id);
        if (--left === 0) resolve();
      });
    });
    await all;
    await Promise.all(this.#threads.map((t) => t.attached));
    await this.#warmUp();
  }

  /** An instance of nothing on every host: threads have loaded and compiled what the first query needs. */
  async #warmUp(): Promise<void> {
    const nothing = {
      instance: 0,
      memLimit: -1 as const,
      minReservation: NO_BYTES,
      claim: NO_BYTES,
      siblings: 1,
      peak: NO_BYTES,
      hasOperators: false,
    };
    const fragments = this.#hosts.map((h) => ({ task: this.nextTask(), host: h.number, ...nothing }));
    const open = new Set(fragments.map((f) => f.task));
    const over = new Promise<void>((resolve) => {
      this.#warmingUp = (p) => {
        if (p.kind === "finished" && open.delete(p.task) && open.size === 0) resolve();
      };
    });
    this.startFragments(WARM_UP, fragments);
    await over;
    this.#warmingUp = null;
  }

  /** Numbers for instances that are about to be started. */
  nextTask(): number {
    return ++this.#lastTask;
  }

  /**
   * Hands a query's instances out. What one turn of the event loop has for a thread goes in one task: waking a thread
   * costs more than the rest. On a lost host an instance ends at once.
   */
  startFragments(query: QueryOrder, fragments: readonly Omit<FragmentOrder, "epoch">[]): void {
    const byThread = new Map<number, FragmentOrder[]>();
    const dead: number[] = [];
    for (const f of fragments) {
      const { thread, ledger } = this.#hosts[f.host]!;
      this.#open.set(f.task, { host: f.host, thread, isSilent: false });
      const order = { ...f, epoch: ledger.epoch };
      const sameThread = byThread.get(thread);
      if (this.#lost.has(f.host)) dead.push(f.task);
      else if (sameThread === undefined) byThread.set(thread, [order]);
      else sameThread.push(order);
    }
    for (const [thread, orders] of byThread) this.#outbox(thread).push({ query, fragments: orders });
    if (dead.length > 0) setImmediate(() => this.#endLost(dead, execFailed));
  }

  /** What goes to the thread when whoever runs now is done. */
  #outbox(thread: number): ThreadWork[] {
    let work = this.#outgoing.get(thread);
    if (work !== undefined) return work;
    if (this.#outgoing.size === 0) queueMicrotask(() => this.#sendAll());
    work = [];
    this.#outgoing.set(thread, work);
    return work;
  }

  #sendAll(): void {
    const all = [...this.#outgoing];
    this.#outgoing.clear();
    for (const [thread, work] of all) this.#hand(thread, { kind: "runFragments", work });
  }

  /** Asks the threads to end these instances; each still tells that it has finished. */
  cancel(tasks: readonly number[]): void {
    const silent = tasks.filter((task) => this.#open.get(task)?.isSilent === true);
    if (silent.length > 0) setImmediate(() => this.#endLost(silent, cancelled));
    for (const [thread, some] of this.#byThread(tasks))
      void this.#threads[thread]!.control?.cancel(some).catch(ignoreDeath);
  }

  /** They stand still with all they hold until they are cancelled; some may have finished before they heard. */
  hold(tasks: readonly number[]): void {
    for (const [thread, some] of this.#byThread(tasks))
      void this.#threads[thread]!.control?.hold(some).catch(ignoreDeath);
  }

  /** Those that still run. */
  #byThread(tasks: readonly number[]): Map<number, number[]> {
    const byThread = new Map<number, number[]>();
    for (const task of tasks) {
      const open = this.#open.get(task);
      if (open === undefined || open.isSilent) continue;
      const some = byThread.get(open.thread);
      if (some === undefined) byThread.set(open.thread, [task]);
      else some.push(task);
    }
    return byThread;
  }

  // Faults

  /**
   * The process dies. An executor alone on its thread takes that with it; else only its own instances stop. None of
   * them tells: whoever misses one has to cancel it.
   */
  async silenceHost(host: number, why: string): Promise<void> {
    const { thread, spec } = this.#hosts[host]!;
    for (const task of this.#open.values()) if (task.host === host) task.isSilent = true;
    this.#markLost(host);
    const isAlone = this.#hosts.every((h) => h.thread !== thread || this.#lost.has(h.number));
    if (isAlone && spec.backend.isExecutor) await this.killThread(thread, why);
    else {
      await this.#threads[thread]!.control?.abandonHost(host).catch(ignoreDeath);
      await this.#recover(this.#hosts[host]!, this.#threads[thread]!.lockId, why);
      this.#listener.hostReady(host);
    }
  }

  /** Ends the thread wherever it stands. All its hosts are lost; piscina starts another one. */
  async killThread(thread: number, why: string): Promise<void> {
    this.#reasons.set(thread, why);
    await this.#threads[thread]!.worker?.terminate();
  }

  threadOf(host: number): number {
    return this.#hosts[host]!.thread;
  }

  /** The host takes part again: it must be lost, ready, and its books at zero. */
  revive(host: number): void {
    if (this.#lost.delete(host)) this.#hosts[host]!.ledger.nextEpoch();
  }

  refuse(order: RefusalOrder): void {
    for (const t of this.#threads) void t.control?.refuse(order).catch(ignoreDeath);
  }

  // Looking on

  /** A copy of the host's ledger, taken under its lock. */
  snapshot(host: number): Promise<LedgerView> {
    return this.#hosts[host]!.ledger.snapshot();
  }

  /** What the host says about the first `pools` pools (admission 7.2); null when somebody is inside just now. */
  poolUsages(host: number, pools: number): BackendUsage[] | null {
    return this.#hosts[host]!.ledger.tryRun(poolUsages, pools);
  }

  /** Only how much is reserved, by pool number. */
  poolReserved(host: number, pools: number): Float64Array | null {
    return this.#hosts[host]!.ledger.tryRun(poolsReserved, pools);
  }

  // Stopping

  /**
   * Ends all threads, whatever they do, gives back what they held, and removes the scratch directory. Gives what was
   * not as it should be, threads that failed by themselves included; an empty list when all was well.
   */
  async stop(): Promise<string[]> {
    this.#isStopping = true;
    const pool = this.#pool;
    if (pool !== null) {
      await pool.destroy();
      this.#pool = null;
    }
    const broken = [...this.#failures];
    for (const thread of this.#threads) {
      this.#closePorts(thread);
      await thread.portsClosed;
      for (const h of this.#hosts) {
        if (this.#threads[h.thread] !== thread) continue;
        h.ledger.breakLockOf(thread.lockId);
        await h.ledger.runSoon(giveBackOf, thread.lockId);
        broken.push(...checkIdle(await h.ledger.snapshot()).map((b) => `${h.shared.address}: ${b}`));
        // Buffers of instances that were stopped where they stood are nobody's any more.
        if (h.shared.operators !== null) formatOperators(h.shared.operators);
      }
    }
    this.#open.clear();
    this.scratch.remove();
    return broken;
  }

  /** Highest marks of every host, for the report. */
  async marks(): Promise<HostMarks[]> {
    return Promise.all(
      this.#hosts.map(async ({ shared, ledger }) => {
        const marks = await ledger.runSoon(marksOf, shared.pageSize);
        const real = shared.operators === null ? null : poolOf(shared.operators).snapshot();
        return {
          host: shared.address,
          ...marks,
          arenaPeak: marks.arenaPeak + (real?.touched ?? 0),
          arenaSize: marks.arenaSize + (real === null ? 0 : poolOf(shared.operators!).limitBytes),
        };
      }),
    );
  }

  // Threads come and go

  #adopt(workerId: number): void {
    const number = this.#threads.findIndex((t) => t.workerId < 0);
    const worker = this.#pool?.threads.find((w) => w.threadId === workerId) ?? null;
    if (number < 0 || worker === null) return;
    const thread = this.#threads[number]!;
    thread.workerId = workerId;
    thread.worker = worker;
    thread.lockId = ++this.#lastLockId;
    worker.on("error", (error: Error) => {
      this.#reasons.set(number, `its thread failed: ${error.message}`);
      this.#failures.push(`thread ${number} failed: ${error.stack ?? error.message}`);
    });
    worker.once("exit", () => void this.#threadDied(number));
    const control = new MessageChannel();
    const progress = new MessageChannel();
    thread.ports = [control.port1, progress.port1];
    thread.portsClosed = Promise.all(thread.ports.map((port) => once(port, "close")));
    thread.control = wrap<ThreadControl>(nodeEndpoint(control.port1));
    progress.port1.on("message", (batch: readonly Progress[]) => this.#told(batch));
    const attach: ThreadTask = {
      kind: "attach",
      lockId: thread.lockId,
      control: control.port2,
      progress: progress.port2,
    };
    thread.attached = this.#run(number, attach, [control.port2, progress.port2]);
    for (const h of this.#hosts)
      if (h.thread === number && this.#lost.has(h.number))
        void thread.attached.then(() => this.#listener.hostReady(h.number), ignoreDeath);
  }

  async #threadDied(number: number): Promise<void> {
    if (this.#isStopping) return;
    const thread = this.#threads[number]!;
    const { lockId } = thread;
    const why = this.#reasons.get(number) ?? "its thread ended by itself";
    this.#reasons.delete(number);
    this.#closePorts(thread);
    thread.workerId = -1;
    thread.worker = null;
    const hosts = this.#hosts.filter((h) => h.thread === number);
    for (const h of hosts) this.#markLost(h.number);
    for (const h of hosts) await this.#recover(h, lockId, why);
  }

  #markLost(host: number): void {
    if (this.#lost.has(host)) return;
    this.#lost.add(host);
    this.#hosts[host]!.ledger.nextEpoch();
  }

  /** The dead owner's lock, step, trackers, pages and files are given back; then everybody is told. */
  async #recover(host: Host, lockId: number, why: string): Promise<void> {
    host.ledger.breakLockOf(lockId);
    await host.ledger.runSoon(giveBackOf, lockId);
    if (host.shared.operators !== null) formatOperators(host.shared.operators);
    this.scratch.removeHost(host.shared.address);
    const ended = [...this.#open].filter(([, t]) => t.host === host.number && !t.isSilent).map(([task]) => task);
    this.#endLost(ended, hostLost);
    this.#listener.hostLost(host.number, why);
  }

  #endLost(tasks: readonly number[], errorAt: (address: string) => FragmentError): void {
    const batch: Progress[] = [];
    const at = this.#options.clock.now();
    for (const task of tasks) {
      const open = this.#open.get(task);
      if (open === undefined) continue;
      const { address } = this.#hosts[open.host]!.shared;
      batch.push({ kind: "finished", task, at, ...LOST_FRAGMENT, error: errorAt(address) });
    }
    if (batch.length > 0) this.#tell(batch);
  }

  /** What dead threads told before they died still counts, if its host was not silent by then. */
  #told(batch: readonly Progress[]): void {
    this.#tell(batch.filter((p) => this.#open.get(p.task)?.isSilent === false));
  }

  /** What has been told to have ended is not told twice. */
  #tell(batch: readonly Progress[]): void {
    const known = batch.filter((p) => this.#open.has(p.task));
    for (const p of known) if (p.kind === "finished") this.#open.delete(p.task);
    if (this.#warmingUp !== null) known.forEach(this.#warmingUp);
    else if (known.length > 0) this.#listener.progress(known);
  }

  #hand(thread: number, task: ThreadTask): void {
    // A thread's death ends its tasks, and `#threadDied` has told what became of them.
    void this.#run(thread, task, []).catch(ignoreDeath);
  }

  #run(thread: number, task: ThreadTask, transferList: MessagePort[]): Promise<void> {
    const addressed = { ...task, [queueOptionsSymbol]: { thread } };
    return this.#pool === null ? Promise.resolve() : this.#pool.run(addressed, { transferList });
  }

  #closePorts(thread: Thread): void {
    for (const port of thread.ports) port.close();
    thread.ports = [];
    thread.control = null;
  }
}

export interface HostMarks {
  readonly host: string;
  /** Most pages in use at any instant, and how many the arena has; real bytes. */
  readonly arenaPeak: number;
  readonly arenaSize: number;
  readonly peakReservation: Bytes;
  readonly peakScratch: Bytes;
}

const marksOf = (v: LedgerView, pageSize: number): Omit<HostMarks, "host"> => ({
  arenaPeak: v.f64[PAGES_PEAK]! * pageSize,
  arenaSize: v.f64[PAGE_CAPACITY]! * pageSize,
  peakReservation: get(v, ROOT, F_PEAK_RESERVATION) as Bytes,
  peakScratch: v.f64[SCRATCH_PEAK]! as Bytes,
});

/** The product's text for a query whose host no longer answers. */
export const unreachableText = (address: string): string => `Failed due to unreachable impalad(s): ${address}`;

/** And of one that was sent to a host that no longer answers. */
export const execFailedText = (address: string): string => `ExecQueryFInstances rpc to ${address} failed`;

const hostLost = (address: string): FragmentError => ({ code: HOST_LOST_CODE, text: unreachableText(address) });
const execFailed = (address: string): FragmentError => ({ code: HOST_LOST_CODE, text: execFailedText(address) });
const cancelled = (): FragmentError => ({ code: CANCELLED_CODE, text: "Cancelled" });

function threadWanted(options: unknown): number {
  return typeof options === "object" && options !== null && "thread" in options ? Number(options.thread) : -1;
}

const noThread = (): Thread => ({
  workerId: -1,
  worker: null,
  lockId: 0,
  control: null,
  ports: [],
  portsClosed: Promise.resolve(),
  attached: Promise.resolve(),
});

function hostOf(spec: HostSpec, number: number, thread: number, options: FleetOptions): Host {
  const { bufferPoolLimit } = spec.memory;
  const arenaBytes = Math.floor(bufferPoolLimit / options.memoryScale);
  const pageSize = pageSizeFor(arenaBytes);
  const pages = Math.floor(arenaBytes / pageSize);
  const sizes: LedgerSizes = {
    trackers: 1 + RECORDS_PER_QUERY * options.queriesPerHost,
    pools: options.pools,
    pages,
    extraWords: 0,
  };
  const ledger = new SharedArrayBuffer(ledgerByteLength(sizes));
  const view = createLedger(ledger, sizes, {
    ...spec.memory,
    pageBytes: pageSize * options.memoryScale,
    scratchCapacity: Number.isFinite(spec.scratchLimit) ? spec.scratchLimit : -1,
  });
  const operators = options.hasOperators && spec.backend.isExecutor ? operatorsFor(spec) : null;
  const arena = arenaOf(pages * pageSize);
  const shared: SharedHost = { address: spec.backend.address, ledger, arena, pageSize, operators };
  return { number, spec, shared, ledger: new HostLedger(view, MAIN_ID), thread };
}

function arenaOf(bytes: number): SharedArrayBuffer {
  try {
    return new SharedArrayBuffer(bytes);
  } catch (cause) {
    throw new RangeError(`this machine can't set ${bytes} bytes aside for one host's arena`, { cause });
  }
}

/** Operators of one host that run at the same time; more wait for a work space. */
const WORK_PLACES = 16;
const MIN_BUFFER_BYTES = 8 * KiB;

function operatorsFor({ memory, scratchLimit }: HostSpec): SharedOperators {
  const poolBytes = memory.bufferPoolLimit;
  const arena = createArena({ poolBytes, minBufferBytes: MIN_BUFFER_BYTES, threads: WORK_PLACES });
  const allocator = new SharedArrayBuffer(allocatorStateBytes(arena.pool));
  const scratchBooks = new SharedArrayBuffer(8 * scratchBookWords(1, WORK_PLACES));
  const shared = { arena, allocator, scratchBooks, scratchLimit };
  formatOperators(shared);
  return shared;
}

const poolOf = ({ allocator, arena }: SharedOperators): BufferAllocator =>
  new BufferAllocator(new Int32Array(allocator), arena.pool, NO_LOCK);

/** An empty buffer pool and empty scratch books: at the start, and after the host's thread has died. */
function formatOperators({ arena, allocator, scratchBooks }: SharedOperators): void {
  BufferAllocator.format(new Int32Array(allocator), arena.pool);
  new Float64Array(scratchBooks).fill(0);
}

/** A thread that dies takes its answers with it; `#threadDied` deals with that. */
function ignoreDeath(): undefined {
  return undefined;
}
