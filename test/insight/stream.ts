/**
 * Synthetic streams of events with neutral defaults, for folds.
 */

import type { QueueReason, RejectReason } from "../../src/core/admission/reasons.ts";
import type { AdmissionPath, RunEvent } from "../../src/core/events.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig } from "../../src/core/pool-config.ts";
import { bytes, instant, type MaxBytes, millis } from "../../src/core/units.ts";
import { EventObserver } from "../../src/insight/event-observer.ts";
import type { PoolSummary, RunSummary } from "../../src/insight/summary.ts";
import { SummaryFold } from "../../src/insight/summary-fold.ts";

export const COORD = "coord-1:27000";

/** A script: each line makes one event. */
export class Stream {
  readonly events: RunEvent[] = [];
  readonly #hosts = new Map<string, readonly string[]>();

  submit(at: number, query: string, over: Partial<Extract<RunEvent, { kind: "submitted" }>> = {}): this {
    return this.#add({
      kind: "submitted",
      at: instant(at),
      query,
      queryClass: "q",
      pool: "root.p",
      user: "ana",
      coordinator: COORD,
      intended: instant(at),
      firstIntended: over.intended ?? instant(at),
      attempt: 1,
      request: query,
      ...over,
    });
  }

  queue(at: number, query: string, reason: QueueReason): this {
    return this.#add({ kind: "queued", at: instant(at), query, reason, timeout: millis(60_000) });
  }

  head(at: number, query: string, reason: QueueReason): this {
    return this.#add({ kind: "stillQueued", at: instant(at), query, reason, attempts: 1 });
  }

  /** `cluster` bytes on one executor, none on the coordinator. */
  admit(at: number, query: string, cluster: number, path: AdmissionPath = "immediately", waited = 0): this {
    const hosts = [COORD, "exec-1:27000"];
    this.#hosts.set(query, hosts);
    return this.#add({
      kind: "admitted",
      at: instant(at),
      query,
      path,
      waited: millis(waited),
      group: "default",
      perHost: bytes(cluster),
      onCoordinator: bytes(0),
      cluster: bytes(cluster),
      memLimit: cluster,
      coordinatorMemLimit: 0,
      hosts,
      stale: null,
    });
  }

  reject(at: number, query: string, reason: RejectReason, waited = 0, fromQueue = false): this {
    return this.#add({ kind: "rejected", at: instant(at), query, reason, waited: millis(waited), fromQueue });
  }

  timeOut(at: number, query: string, waited: number, reason: QueueReason): this {
    return this.#add({
      kind: "timedOut",
      at: instant(at),
      query,
      waited: millis(waited),
      timeout: millis(waited),
      reason,
      details: "Not Applicable",
    });
  }

  cancel(at: number, query: string, waited: number): this {
    return this.#add({ kind: "cancelled", at: instant(at), query, waited: millis(waited), wasQueued: true });
  }

  freeMemory(at: number, query: string): this {
    return this.#add({ kind: "backendsReleased", at: instant(at), query, hosts: this.#hosts.get(query) ?? [] });
  }

  freePlace(at: number, query: string): this {
    return this.#add({ kind: "released", at: instant(at), query, state: "finished", peak: -1, error: null });
  }

  fail(at: number, query: string, error: string): this {
    return this.freeMemory(at, query).#add({
      kind: "released",
      at: instant(at),
      query,
      state: "failed",
      peak: -1,
      error,
    });
  }

  end(at: number, query: string): this {
    return this.freeMemory(at, query).freePlace(at, query);
  }

  other(event: RunEvent): this {
    return this.#add(event);
  }

  #add(event: RunEvent): this {
    this.events.push(event);
    return this;
  }
}

export const ADM1 = (queued: number): QueueReason => ({ rule: "ADM-1", queued, stale: null });
export const ADM2 = (running: number, limit: number): QueueReason => ({ rule: "ADM-2", running, limit, stale: null });
export const ADM4 = (needed: number, limit: number): QueueReason => ({
  rule: "ADM-4",
  pool: "root.p",
  limit: bytes(limit),
  needed: bytes(needed),
  available: bytes(0),
  stale: null,
});

export const pool = (over: Partial<Omit<PoolConfig, "maxMemResources">> & { maxMem?: number }): PoolConfig => {
  const { maxMem = -1, ...rest } = over;
  return { ...DEFAULT_POOL_CONFIG, maxMemResources: maxMem as MaxBytes, ...rest };
};

export function summarise(
  stream: Stream,
  config: PoolConfig = pool({}),
  end?: number,
  needOf: (pool: string, queryClass: string) => number | null = () => null,
): RunSummary {
  const fold = new SummaryFold({ configOf: () => config, needOf, admission: "distributed" });
  const observer = new EventObserver(fold);
  for (const event of stream.events) observer.add(event);
  observer.end(end);
  return fold.finish();
}

/** The one pool of a stream. */
export function poolOf(stream: Stream, config?: PoolConfig, end?: number): PoolSummary {
  const summary = summarise(stream, config, end);
  const [only] = summary.pools;
  if (only === undefined || summary.pools.length !== 1) throw new Error("not exactly one pool");
  return only;
}
