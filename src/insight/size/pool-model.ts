/**
 * One pool as nothing but a queue: memory, running limit, queue limit, timeout, first come first served.
 *
 * For screening only. A run by the rules decides the same requests a few times slower, and hundreds of
 * candidates need only be told apart roughly. What is simplified: one controller, one pool, everything of a
 * query released at its end, memory seen to be free a fixed lag after that (the topic's rounds), hosts as one
 * sum. Amounts and rejections are the core's (`needs.ts`). Who survives here is decided by the rules.
 */
import type { RecordedRequests } from "../../workload/recorded-requests.ts";
import { CompletionHeap } from "./completion-heap.ts";
import { failsUnder, holdUnder, type KindNeed, spillsUnder } from "./needs.ts";
import { type Outcome, quantileOfBuckets, WAIT_BUCKETS, waitBucket } from "./outcome.ts";

export interface ModelPool {
  readonly maxMem: number;
  readonly maxRunning: number;
  readonly maxQueued: number;
  readonly timeout: number;
  readonly hostMemory: number;
  readonly hosts: number;
  readonly slots: number;
  /** From a release until its memory counts as free. */
  readonly memoryLag: number;
  /** Longer holds by spilling: sigma of insight 3.2; 0: none. */
  readonly sigma: number;
}

export interface ModelRun {
  readonly requests: RecordedRequests;
  readonly from: number;
  readonly to: number;
  /** By kind, null: not this pool's. */
  readonly needs: readonly (KindNeed | null)[];
  /** Of each request, on the host where it is largest. */
  readonly peaks: Float64Array;
}

/** hot: bench/size */
export function runPoolModel(run: ModelRun, pool: ModelPool): Outcome {
  const { requests, from, to, needs, peaks } = run;
  const { at, kind, duration, spilled } = requests;
  const running = new CompletionHeap();
  const queue = new Int32Array(Math.min(Math.max(1, pool.maxQueued), to - from) + 1);
  // Memory whose query is over and that the controller does not see yet, in order of release.
  const lagAt = new Float64Array(64 * 1024);
  const lagBytes = new Float64Array(64 * 1024);
  const lagMask = lagAt.length - 1;
  const waits = new Uint32Array(WAIT_BUCKETS);
  const maxMem = pool.maxMem < 0 ? Number.POSITIVE_INFINITY : pool.maxMem;
  const maxRunning = pool.maxRunning < 0 ? Number.POSITIVE_INFINITY : pool.maxRunning;
  // An unlimited pool never looks at its hosts (T-15).
  const hostMax = pool.maxMem < 0 ? Number.POSITIVE_INFINITY : pool.hostMemory;
  const c = { submitted: 0, admitted: 0, rejected: 0, timedOut: 0, failed: 0, spilled: 0 };
  let head = 0;
  let queued = 0;
  let lagFirst = 0;
  let lagCount = 0;
  let used = 0;
  let hostUsed = 0;
  let slotsUsed = 0;
  let peakRunning = 0;
  let peakQueued = 0;
  let peakMemory = 0;
  let sumWaits = 0;
  let longestWait = 0;
  let memoryTime = 0;
  let now = 0;
  let next = from;
  const start = from < to ? at[from]! : 0;

  const fits = (need: KindNeed): boolean =>
    running.size < maxRunning &&
    used + need.cluster <= maxMem &&
    hostUsed + (need.perHost * need.executors) / pool.hosts <= hostMax &&
    (!need.slotsChecked || slotsUsed + (need.slots * need.executors) / pool.hosts <= pool.slots);

  const admit = (i: number, need: KindNeed): void => {
    const wait = now - at[i]!;
    c.admitted++;
    sumWaits += wait;
    if (wait > longestWait) longestWait = wait;
    waits[waitBucket(wait)]!++;
    used += need.cluster;
    hostUsed += (need.perHost * need.executors) / pool.hosts;
    slotsUsed += (need.slots * need.executors) / pool.hosts;
    if (failsUnder(need, peaks[i]!)) c.failed++;
    const hold = holdUnder(need, duration[i]!, peaks[i]!, spilled[i]!, pool.sigma);
    memoryTime += need.cluster * hold;
    running.add(now + hold, i);
    if (running.size > peakRunning) peakRunning = running.size;
    if (used > peakMemory) peakMemory = used;
  };

  const serve = (): void => {
    while (queued > 0) {
      const i = queue[head]!;
      const need = needs[kind[i]!]!;
      if (!fits(need)) return;
      head = head + 1 === queue.length ? 0 : head + 1;
      queued--;
      admit(i, need);
    }
  };

  for (;;) {
    const arrival = next < to ? at[next]! : Number.POSITIVE_INFINITY;
    const done = running.size > 0 ? running.firstTime : Number.POSITIVE_INFINITY;
    const free = lagCount > 0 ? lagAt[lagFirst]! : Number.POSITIVE_INFINITY;
    const late = queued > 0 ? at[queue[head]!]! + pool.timeout : Number.POSITIVE_INFINITY;
    if (arrival <= done && arrival <= free && arrival <= late) {
      if (arrival === Number.POSITIVE_INFINITY) break;
      now = arrival;
      const need = needs[kind[next]!];
      const i = next++;
      if (need === null || need === undefined) continue;
      c.submitted++;
      if (spillsUnder(need, peaks[i]!)) c.spilled++;
      if (queued >= pool.maxQueued || need.isRejected || need.cluster > maxMem) c.rejected++;
      else if (queued === 0 && fits(need)) admit(i, need);
      else {
        const tail = head + queued;
        queue[tail >= queue.length ? tail - queue.length : tail] = i;
        queued++;
        if (queued > peakQueued) peakQueued = queued;
      }
    } else if (done <= free && done <= late) {
      now = done;
      const need = needs[kind[running.take()]!]!;
      hostUsed -= (need.perHost * need.executors) / pool.hosts;
      slotsUsed -= (need.slots * need.executors) / pool.hosts;
      if (pool.memoryLag === 0) used -= need.cluster;
      else {
        const place = (lagFirst + lagCount) & lagMask;
        if (lagCount === lagAt.length) {
          used -= lagBytes[lagFirst]!;
          lagFirst = (lagFirst + 1) & lagMask;
          lagCount--;
        }
        lagAt[place] = now + pool.memoryLag;
        lagBytes[place] = need.cluster;
        lagCount++;
      }
      serve();
    } else if (free <= late) {
      now = free;
      used -= lagBytes[lagFirst]!;
      lagFirst = (lagFirst + 1) & lagMask;
      lagCount--;
      serve();
    } else {
      now = late;
      head = head + 1 === queue.length ? 0 : head + 1;
      queued--;
      c.timedOut++;
    }
  }
  return {
    submitted: c.submitted,
    admitted: c.admitted,
    rejected: c.rejected,
    timedOut: c.timedOut,
    failed: c.failed,
    cutOff: 0,
    onFullHosts: 0,
    spilled: c.spilled,
    meanWait: c.admitted === 0 ? 0 : sumWaits / c.admitted,
    longestWait,
    longestQueued: c.timedOut > 0 ? Math.max(longestWait, pool.timeout) : longestWait,
    p95: quantileOfBuckets(waits, c.submitted, 0.95, longestWait),
    p95ByClass: {},
    peakRunning,
    peakQueued,
    memoryTime,
    span: Math.max(0, now - start),
    peakMemory,
  };
}
