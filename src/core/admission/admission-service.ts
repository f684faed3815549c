/**
 * `admissiond`: one controller for all coordinators, and what lies between it and them (admission 7.7, 9.5).
 *
 * Coordinators hand a request over and poll for the answer; messages can be lost, late and repeated, so the
 * service remembers every query until it is told, released, reported missing or its coordinator is gone:
 *
 *     accept --> (a worker) decide --> poll, poll, ... --> answered: refused --> forgotten
 *                                                            '-> let in --> release --> forgotten
 *     heartbeat without it, coordinator gone: released and forgotten
 *
 * Two things to keep: a wait that is over is noticed only by a poll (a dead coordinator's query never times
 * out, T-59), and queued queries of a vanished coordinator stay until they reach the head, where they are
 * refused (REJ-C2). When messages arrive is the driver's, by `status-calls.ts`.
 *
 * In the product a pool of workers decides, and the order in which they get there is only about that of arrival
 * (T-60). A decision takes no time here, so neither their number nor the queue before them would change anything.
 */
import { invariant } from "../assert.ts";
import type { Membership } from "../cluster/membership.ts";
import { positionOf } from "../cluster/schedule.ts";
import type { PoolConfig } from "../pool-config.ts";
import type { Instant } from "../units.ts";
import { heldBytes } from "./charge.ts";
import type { AdmissionController } from "./controller.ts";
import type { DequeueSink } from "./dequeue-pass.ts";
import type { AdmissionQuery } from "./query.ts";
import type { AdmissionRequest } from "./request.ts";

/** What GetQueryStatus says: no such query, no answer yet, or the query in its final state or running. */
export type QueryStatus =
  | { readonly kind: "unknown" }
  | { readonly kind: "pending" }
  | { readonly kind: "answered"; readonly query: AdmissionQuery };

const UNKNOWN: QueryStatus = { kind: "unknown" };
const STILL_PENDING: QueryStatus = { kind: "pending" };

interface Entry {
  readonly request: AdmissionRequest;
  /** Null until a worker has taken it. */
  query: AdmissionQuery | null;
  isCancelled: boolean;
}

export class AdmissionService {
  readonly controller: AdmissionController;
  readonly #entries = new Map<string, Entry>();
  readonly #heartbeats = new Map<string, number>();
  #highWaterMark = 0;

  constructor(controller: AdmissionController) {
    invariant(controller.options.mode === "global", "the service's controller is a global one");
    this.controller = controller;
  }

  /** `admission-control-service.num-queries` and its high-water mark. */
  get numQueries(): number {
    return this.#entries.size;
  }

  get highWaterMark(): number {
    return this.#highWaterMark;
  }

  /** Accepted and not yet forgotten. */
  knows(queryId: string): boolean {
    return this.#entries.has(queryId);
  }

  /** AdmitQuery: remembers the request for a worker; false for one it has already (ignored). */
  accept(request: AdmissionRequest): boolean {
    if (this.#entries.has(request.queryId)) return false;
    this.#entries.set(request.queryId, { request, query: null, isCancelled: false });
    this.#highWaterMark = Math.max(this.#highWaterMark, this.#entries.size);
    return true;
  }

  /**
   * AdmitQuery with a worker that is free at once, and the first GetQueryStatus: who need not wait is told. Null for
   * a request that was handed over before.
   */
  admit(request: AdmissionRequest, config: PoolConfig, rootConfig: PoolConfig, now: Instant): AdmissionQuery | null {
    if (!this.accept(request)) return null;
    const query = this.decide(request.queryId, config, rootConfig, now);
    if (query?.state === "rejected") this.#entries.delete(request.queryId);
    return query;
  }

  /** A worker's turn. Null when the query was forgotten in the meantime. */
  decide(queryId: string, config: PoolConfig, rootConfig: PoolConfig, now: Instant): AdmissionQuery | null {
    const entry = this.#entries.get(queryId);
    if (entry === undefined) return null;
    const { controller } = this;
    entry.query = entry.isCancelled
      ? controller.submitCancelled(entry.request, config, rootConfig, now)
      : controller.submit(entry.request, config, rootConfig, now);
    return entry.query;
  }

  /** GetQueryStatus. Whoever was not let in is forgotten once its coordinator has been told. */
  poll(queryId: string, now: Instant): QueryStatus {
    const entry = this.#entries.get(queryId);
    if (entry === undefined) return UNKNOWN;
    const { query } = entry;
    if (query === null || !this.controller.poll(query, now)) return STILL_PENDING;
    if (query.state !== "running" && query.state !== "released") this.#entries.delete(queryId);
    return { kind: "answered", query };
  }

  /** CancelAdmission: only the outcome cell; the next poll or the pass cleans up (9.4). */
  cancel(queryId: string): boolean {
    const entry = this.#entries.get(queryId);
    if (entry === undefined) return false;
    entry.isCancelled = true;
    if (entry.query !== null) this.controller.markCancelled(entry.query);
    return true;
  }

  /**
   * ReleaseQueryBackends, by address: how many bytes of the pool's admitted memory came free. Null, and nothing is
   * released, when one of them is not held any more.
   */
  releaseBackends(queryId: string, hosts: readonly string[]): number | null {
    const query = this.#entries.get(queryId)?.query;
    if (query?.plan === null || query?.plan === undefined || query.state !== "running") return null;
    const { schedule } = query.plan;
    const positions = hosts.map((host) => positionOf(schedule, host));
    if (positions.some((i) => i < 0 || query.releasedBackends?.[i] === 1)) return null;
    return this.controller.releaseBackends(query, positions);
  }

  /** ReleaseQuery, with what is left of it: the bytes that came free. Null for a late or repeated message. */
  release(queryId: string, peak: number): number | null {
    const query = this.#entries.get(queryId)?.query ?? null;
    this.#entries.delete(queryId);
    if (query === null || query.state !== "running") return null;
    const bytes = heldBytes(query);
    this.controller.releaseQuery(query, peak);
    return bytes;
  }

  /**
   * A coordinator's live queries. Running ones that it doesn't list are released; a report that is older than
   * one already seen is ignored.
   */
  heartbeat(coordinator: string, version: number, live: ReadonlySet<string>): readonly AdmissionQuery[] {
    if (version <= (this.#heartbeats.get(coordinator) ?? 0)) return [];
    this.#heartbeats.set(coordinator, version);
    const missing = this.controller.runningAt(coordinator).filter((q) => !live.has(q.id));
    // Whatever the service remembers of them: one may have been forgotten by a message that came too early.
    for (const q of missing) {
      this.#entries.delete(q.id);
      this.controller.releaseQuery(q, -1);
    }
    return missing;
  }

  /** A newer membership; every running query of a coordinator that is gone is released (9.5). */
  setMembership(membership: Membership): readonly AdmissionQuery[] {
    const released = this.controller.setMembership(membership);
    for (const q of released) this.#entries.delete(q.id);
    return released;
  }

  /** The controller's pass. */
  dequeuePass(now: Instant, sink: DequeueSink): void {
    this.controller.dequeuePass(now, this.forgetting(sink));
  }

  /** For passes of the controller: a cancelled query that it drops is forgotten here too. */
  forgetting(sink: DequeueSink): DequeueSink {
    return {
      admitted: (q) => sink.admitted(q),
      rejected: (q) => sink.rejected(q),
      stillQueued: (q) => sink.stillQueued(q),
      cancelled: (q) => {
        this.#entries.delete(q.id);
        sink.cancelled(q);
      },
    };
  }
}
