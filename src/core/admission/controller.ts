/**
 * One admission controller: a coordinator's own, or the one that decides for all (admission 0, 7.7).
 *
 * Every method is one atomic step, as everything in the product happens under one lock; time is an argument.
 * A driver calls `submit`, looks at the query's state, and gives the query back: `timeOut` when its deadline
 * has come, `cancel`, `releaseBackends`, `releaseQuery`. Whenever `isPassDue` is true it runs `dequeuePass`,
 * and every exchange with the statestore is `collectUpdate` followed by `applyUpdate`.
 *
 * What must stay true: figures of hosts and pools are the sums over what running queries hold (`snapshot`,
 * `invariants.ts`); a decision on a whole executor group costs the same whatever the group's size; the path
 * that admits makes nothing but the query itself.
 */
import { invariant } from "../assert.ts";
import { balanced, type FreeRoom } from "../cluster/candidate-groups.ts";
import { EMPTY_MEMBERSHIP, type Membership } from "../cluster/membership.ts";
import type { AdmissionPath } from "../events.ts";
import type { PoolConfig } from "../pool-config.ts";
import { RequestError } from "../request-error.ts";
import type { TopicEntry, TopicUpdate } from "../statestore/topic.ts";
import type { Instant, Millis } from "../units.ts";
import { allThatFails, isCoordinatorShort, whyNotNow } from "./can-admit.ts";
import { chargeBackends, heldBytes, isReleased, releaseOne, releaseRest } from "./charge.ts";
import type { ControllerOptions } from "./controller-options.ts";
import { type Attempt, type DequeueSink, dequeuePass, type PassHost } from "./dequeue-pass.ts";
import { Fifo } from "./fifo.ts";
import { GroupGauges } from "./group-gauges.ts";
import { HostBook } from "./host-book.ts";
import type { GroupGauge, Plan } from "./plan.ts";
import { type NoPlan, PlanBook } from "./plan-book.ts";
import type { Pool } from "./pool.ts";
import { PoolRegistry } from "./pool-registry.ts";
import { type BackendUsage, MAX_TRIVIAL_RUNNING } from "./pool-stats.ts";
import { AdmissionQuery } from "./query.ts";
import { hasQuotas, quotaReason } from "./quotas.ts";
import { type QueueReason, type RejectReason, type StaleAge, sameReason } from "./reasons.ts";
import { isQueueFull, queueFull, rejectForPool } from "./reject.ts";
import type { AdmissionRequest } from "./request.ts";
import { memoryFits, slotsFit } from "./room.ts";
import { detailsFor } from "./top-consumers.ts";
import { TopicExchange } from "./topic-exchange.ts";
import type { HostsView, PoolView } from "./views.ts";

/** Every check that fails for one group, and whether the group refuses the query for good. */
export interface GroupChecks {
  readonly group: string;
  readonly rejection: RejectReason | null;
  readonly failing: readonly QueueReason[];
}

export type Checks =
  | { readonly kind: "groups"; readonly groups: readonly GroupChecks[] }
  | { readonly kind: "nowhere"; readonly reason: QueueReason | RejectReason };

/** Moments are whole microseconds, written in milliseconds: what is less than half of one apart is not apart. */
const ROUNDING = 0.0005;

const NO_EXECUTORS: QueueReason = { rule: "NO-EXECUTORS" };
const NO_COORDINATOR: QueueReason = { rule: "NO-COORDINATOR" };
const NO_BACKENDS: RejectReason = {
  rule: "REJ-C1",
  error: "Cannot schedule query: no registered backends available.",
};

export class AdmissionController {
  readonly options: ControllerOptions;
  readonly #book = new HostBook();
  readonly #pools: PoolRegistry;
  readonly #topic: TopicExchange;
  readonly #gauges = new GroupGauges();
  /** Everything submitted and not yet over, by id, unless `keepsIds` is off. */
  readonly #known = new Map<string, AdmissionQuery>();
  #numKnown = 0;
  readonly #running = new Map<string, Fifo>();
  readonly #passHost: PassHost;

  #membership: Membership = EMPTY_MEMBERSHIP;
  #plans: PlanBook;
  #isPassDue = true;
  /** Grows whenever an attempt from a queue could end differently than the one before. */
  #changes = 0;
  #lastRunning: Fifo | null = null;
  #lastRunningOf = "";
  #isCoordinatorShort = false;
  #coordinatorLimitedFailures = 0;
  /** Global mode: this process's memory, as the driver last measured it (REJ-C4). */
  #memoryUse = 0;
  #memoryLimit = Number.POSITIVE_INFINITY;

  constructor(options: ControllerOptions) {
    this.options = options;
    this.#pools = new PoolRegistry(options.poolOrder);
    this.#topic = new TopicExchange(options.hostId, this.#pools, this.#book);
    this.#plans = this.#newPlanBook();
    this.#passHost = this.#passHostOfThis();
  }

  // ---- membership

  get membership(): Membership {
    return this.#membership;
  }

  /**
   * Takes over a newer membership. Wakes nobody (T-13). In global mode every running query of a coordinator
   * that is gone is released in full; they are returned (admission 9.5).
   */
  setMembership(membership: Membership): readonly AdmissionQuery[] {
    if (membership === this.#membership) return [];
    invariant(membership.version > this.#membership.version, "membership versions only grow");
    this.#membership = membership;
    this.#book.setGroups(membership.groups);
    this.#gauges.update(membership, this.#book);
    this.#plans = this.#newPlanBook();
    this.#changes++;
    return this.options.mode === "global" ? this.#releaseOrphans() : [];
  }

  #newPlanBook(): PlanBook {
    const { clampQueryMemLimitBackendMemLimit, useDedicatedCoordinatorEstimates } = this.options.flags;
    return new PlanBook(this.#membership, this.#book, this.#gauges.byName, {
      clampToHosts: clampQueryMemLimitBackendMemLimit,
      dedicatedEstimates: useDedicatedCoordinatorEstimates,
    });
  }

  #releaseOrphans(): AdmissionQuery[] {
    const orphans: AdmissionQuery[] = [];
    for (const [coordinator, running] of this.#running)
      if (this.#membership.backend(coordinator) === undefined) orphans.push(...running);
    for (const q of orphans) this.releaseQuery(q, -1);
    return orphans;
  }

  // ---- submission

  /**
   * Decides a request: afterwards its state is `running`, `queued` or `rejected`. Pool resolution comes
   * before (1.5). Throws RequestError for an id that is still known here.
   */
  submit(request: AdmissionRequest, config: PoolConfig, rootConfig: PoolConfig, now: Instant): AdmissionQuery {
    const q = this.#begin(request, config, rootConfig, now);
    const { pool } = q;
    const attempt = this.#attempt(q, pool, config, false, now);
    if (attempt === "reject") this.#rejectAtOnce(q, now);
    else if (attempt !== "admitTrivial" && this.#isShortOfMemory()) this.#rejectForMemory(q, now);
    else if (attempt === "wait") this.#enqueue(q, now);
    else {
      q.isTrivial = attempt === "admitTrivial";
      this.#admit(q, q.isTrivial ? "trivially" : "immediately", now);
      pool.stats.countWait(0);
      q.isSettled = true;
    }
    return q;
  }

  /**
   * A client that gave up before its submission was decided (5.6): the configuration is seen, nothing is
   * charged or counted as rejected, and no `Admission result` is written.
   */
  submitCancelled(request: AdmissionRequest, config: PoolConfig, rootConfig: PoolConfig, now: Instant): AdmissionQuery {
    const q = this.#begin(request, config, rootConfig, now);
    const attempt = this.#attempt(q, q.pool, config, false, now);
    // The product looks at its memory without looking at the cell.
    const isRefused = attempt === "wait" || attempt === "admit" ? this.#isShortOfMemory() : false;
    if (isRefused) this.#rejectForMemory(q, now);
    else if (attempt === "wait") {
      this.#enqueue(q, now);
      this.cancel(q, now);
    } else this.#end(q, "cancelled", now);
    return q;
  }

  #begin(request: AdmissionRequest, config: PoolConfig, rootConfig: PoolConfig, now: Instant): AdmissionQuery {
    if (this.options.keepsIds && this.#known.has(request.queryId))
      throw new RequestError(
        `query ${request.queryId}: Cannot submit the same query for admission multiple times. Give every submission an id of its own.`,
      );
    const pool = this.#pools.get(request.pool);
    if (pool.config !== config) {
      pool.config = config;
      this.#changes++;
    }
    const q = new AdmissionQuery(request, pool, config, rootConfig, now);
    q.tracksUser = hasQuotas(config) || hasQuotas(rootConfig);
    q.localBlacklist = this.#membership.blacklisted;
    if (this.options.keepsIds) this.#known.set(request.queryId, q);
    this.#numKnown++;
    return q;
  }

  #rejectAtOnce(q: AdmissionQuery, now: Instant): void {
    q.pool.stats.totalRejected++;
    this.#end(q, "rejected", now);
  }

  #isShortOfMemory(): boolean {
    return this.#memoryUse > this.#memoryLimit;
  }

  /** REJ-C4, even for a query that would be admitted; trivial ones are exempt. */
  #rejectForMemory(q: AdmissionQuery, now: Instant): void {
    q.rejectReason = { rule: "REJ-C4", usage: this.#memoryUse, limit: this.#memoryLimit };
    this.#rejectAtOnce(q, now);
  }

  /** Global mode: what the process uses, any extra included, and its limit; Infinity switches the safeguard off. */
  setProcessMemory(use: number, limit: number): void {
    this.#memoryUse = use;
    this.#memoryLimit = limit;
  }

  // ---- one attempt (admission 3)

  /** hot: bench/decision */
  #attempt(q: AdmissionQuery, pool: Pool, config: PoolConfig, fromQueue: boolean, now: Instant): Attempt {
    const rejection = rejectForPool(config);
    if (rejection !== null) return reject(q, rejection);
    const { stats } = pool;
    if (!fromQueue && isQueueFull(config, stats.aggQueued))
      return reject(q, queueFull(config, stats.aggQueued, this.staleAge(now)));
    if (q.plans === null || q.plansVersion < this.#membership.version) {
      const none = this.#findPlans(q);
      if (none !== null) return this.#nowhere(q, none);
    }
    this.#isCoordinatorShort = false;
    const { options, isTrivial } = q.request.shape;
    const plans = q.plans!;
    for (let i = 0; i < plans.length; i++) {
      const plan = plans[i]!;
      if (plan.config !== config) plan.workOut(config);
      if (isTrivial && options.enableTrivialQueryForAdmission && stats.localTrivialRunning < MAX_TRIVIAL_RUNNING) {
        q.plan = plan;
        return "admitTrivial";
      }
      if (plan.rejection !== null) return reject(q, plan.rejection);
      if (!fromQueue && q.tracksUser) {
        const quota = this.#quotaReason(q, config);
        if (quota !== null) return reject(q, quota);
      }
      if (this.#fitsNow(plan, pool, config, fromQueue)) {
        q.plan = plan;
        return "admit";
      }
      this.#notNow(q, plan, config, fromQueue, now);
    }
    return "wait";
  }

  /** Null, or why there is none. A query that has none keeps looking at every attempt. */
  #findPlans(q: AdmissionQuery): NoPlan | null {
    const found = this.#plans.plansFor(q.request, q.config.onlyCoordinators);
    q.plansVersion = this.#membership.version;
    q.plans = typeof found === "string" ? null : this.#inOrder(found);
    return typeof found === "string" ? found : null;
  }

  #inOrder(plans: readonly Plan[]): readonly Plan[] {
    if (plans.length < 2 || !this.options.flags.balanceQueriesAcrossExecutorGroups) return plans;
    return balanced(plans, (p) => this.freeRoomOf(p.schedule.group));
  }

  /** Free memory and slots of a group, summed over its executors (admission 6.2 item 5). */
  freeRoomOf(group: string): FreeRoom {
    let mem = 0;
    let slots = 0;
    for (const e of this.#membership.groups.find((g) => g.name === group)?.executors ?? []) {
      mem += e.admitMemLimit - this.#book.memReservedOn(e.address);
      slots += e.admissionSlots - this.#book.slotsInUseOn(e.address);
    }
    return { mem, slots };
  }

  /** Skips every further check, the quota's included (T-30, T-62). */
  #nowhere(q: AdmissionQuery, why: NoPlan): Attempt {
    if (why === "coordinatorRemoved") return reject(q, { rule: "REJ-C2", coordinator: q.request.coordinator });
    if (why === "noBackends") return reject(q, NO_BACKENDS);
    this.#isCoordinatorShort = false;
    q.attemptReason = why === "noCoordinator" ? NO_COORDINATOR : NO_EXECUTORS;
    return "wait";
  }

  #quotaReason(q: AdmissionQuery, config: PoolConfig): RejectReason | null {
    const { user, userGroups, pool } = q.request;
    return quotaReason({
      pool,
      user,
      groups: userGroups,
      config,
      rootConfig: q.rootConfig,
      poolLoad: q.pool.stats.aggLoads.get(user),
      rootLoad: this.#topic.rootLoads.get(user),
    });
  }

  /** hot: bench/decision. ADM-1 to ADM-5 as yes or no; ADM-6 is REJ-B2b again and was just passed. */
  #fitsNow(plan: Plan, pool: Pool, config: PoolConfig, fromQueue: boolean): boolean {
    const { stats } = pool;
    if (!fromQueue && stats.localQueued > 0) return false;
    if (config.maxRequests >= 0 && stats.aggRunning >= config.maxRequests) return false;
    if (!plan.isSlotExempt && !slotsFit(plan, this.#book)) return false;
    const limit = config.maxMemResources;
    if (limit < 0) return true;
    return stats.effectiveMemReserved + plan.memory.cluster <= limit && memoryFits(plan, this.#book);
  }

  /** The reason, made only now; the plain checks must agree that there is one. */
  #notNow(q: AdmissionQuery, plan: Plan, config: PoolConfig, fromQueue: boolean, now: Instant): void {
    const reason = whyNotNow({
      pool: q.pool.stats,
      hosts: plan.room,
      schedule: plan.schedule,
      memory: plan.memory,
      config,
      fromQueue,
      stale: this.staleAge(now),
    });
    invariant(reason !== null, "what does not fit has a reason");
    q.attemptReason = reason;
    if (isCoordinatorShort(reason, plan.schedule)) this.#isCoordinatorShort = true;
    if (reason.rule === "ADM-4" || reason.rule === "ADM-5") q.details = this.#detailsFor(reason, q.pool);
  }

  #detailsFor(reason: QueueReason, pool: Pool): string {
    return this.#topic.knowsConsumers ? detailsFor(reason, pool.stats, this.#pools.inOrder, this.options.hostId) : "";
  }

  // ---- admitting and queueing

  /** hot: bench/decision (5.8) */
  #admit(q: AdmissionQuery, path: AdmissionPath, now: Instant): void {
    const { pool } = q;
    const plan = q.plan!;
    q.memory = plan.memory;
    q.state = "running";
    q.path = path;
    q.decidedAt = now;
    chargeBackends(q, this.#book);
    pool.stats.admit(plan.memory.cluster, q.isTrivial);
    if (q.tracksUser && path !== "fromQueue") pool.stats.countUser(q.request.user);
    this.#pools.mark(pool);
    this.#changes++;
    if (plan.gauge !== null) q.groupLoad = ++plan.gauge.value;
    q.timeSinceUpdate = now - Math.max(0, this.#topic.lastUpdate);
    q.staleAge = this.staleAge(now);
    this.#runningOf(q.request.coordinator).push(q);
  }

  /** 5.1: neither wakes the dequeue thread nor marks the pool (T-35). */
  #enqueue(q: AdmissionQuery, now: Instant): void {
    const reason = q.attemptReason!;
    q.initialReason = reason;
    q.latestReason = reason;
    q.state = "queued";
    q.queuedAt = now;
    q.timeout = this.timeoutFor(q.config);
    q.pool.stats.queue();
    if (q.tracksUser) q.pool.stats.countUser(q.request.user);
    q.pool.queue.push(q);
    if (this.options.dropsSchedulesWhenQueued) q.plans = null;
  }

  /** The pool's own timeout, else the flag, floored at 0 (T-5). */
  timeoutFor(config: PoolConfig): Millis {
    return Math.max(0, config.queueTimeout ?? this.options.flags.queueWaitTimeout) as Millis;
  }

  #runningOf(coordinator: string): Fifo {
    if (this.#lastRunning !== null && this.#lastRunningOf === coordinator) return this.#lastRunning;
    let running = this.#running.get(coordinator);
    if (running === undefined) {
      running = new Fifo();
      this.#running.set(coordinator, running);
    }
    this.#lastRunning = running;
    this.#lastRunningOf = coordinator;
    return running;
  }

  // ---- the queue

  /** A pass is due; the driver runs it as soon as it can (5.4). */
  get isPassDue(): boolean {
    return this.#isPassDue;
  }

  /** One pass (5.5). Queries that leave the queue are in their final state, or running, when told. */
  dequeuePass(now: Instant, sink: DequeueSink): void {
    this.#isPassDue = false;
    dequeuePass(this.#passHost, now, sink);
  }

  #passHostOfThis(): PassHost {
    const self = this;
    return {
      get hasExecutorGroups() {
        return self.#membership.groups.length > 0 || self.options.repaired;
      },
      pools: this.#pools.inOrder,
      attemptFromQueue: (q, pool, config, now) => this.#attemptFromQueue(q, pool, config, now),
      tooManyRunning: (pool, config, now) => ({
        rule: "ADM-2",
        running: pool.stats.aggRunning,
        limit: config.maxRequests,
        stale: this.staleAge(now),
      }),
      takeHead: (pool) => this.#takeHead(pool),
      admitFromQueue: (q, isTrivial, now) => this.#admitFromQueue(q, isTrivial, now),
      rejectFromQueue: (q, now) => this.#rejectFromQueue(q, now),
      dropCancelled: (q, now) => this.#leave(q, "cancelled", now),
      noteFailure: (q, reason) => this.#noteFailure(q, reason),
      mark: (pool) => this.#pools.mark(pool),
    };
  }

  /** Nothing changed since the head was last tried: the answer is the same, and it isn't worked out again. */
  #attemptFromQueue(q: AdmissionQuery, pool: Pool, config: PoolConfig, now: Instant): Attempt {
    if (q.spoilt !== null) return reject(q, q.spoilt);
    const sameAsBefore =
      q.failedAtChange === this.#changes && this.staleAge(now) === null && !isStaleReason(q.attemptReason);
    const attempt = sameAsBefore ? "wait" : this.#attempt(q, pool, config, true, now);
    if (attempt !== "wait") return attempt;
    if (!sameAsBefore) {
      q.failedAtChange = this.#changes;
      q.failedForCoordinator = this.#isCoordinatorShort;
    }
    if (q.failedForCoordinator) this.#coordinatorLimitedFailures++;
    return "wait";
  }

  #takeHead(pool: Pool): AdmissionQuery {
    const head = pool.queue.head;
    invariant(head !== null, "a pass takes from a queue that has a head");
    pool.queue.remove(head);
    pool.stats.dequeue(false);
    return head;
  }

  #admitFromQueue(q: AdmissionQuery, isTrivial: boolean, now: Instant): void {
    q.isTrivial = isTrivial;
    this.#admit(q, "fromQueue", now);
    this.#noticed(q, now);
  }

  #rejectFromQueue(q: AdmissionQuery, now: Instant): void {
    q.pool.stats.totalRejected++;
    this.#leave(q, "rejected", now);
  }

  /** Out of the queue without running. */
  #leave(q: AdmissionQuery, state: "rejected" | "timedOut" | "cancelled", now: Instant): void {
    // T-28: the product never gives the place in the user's quota back here.
    if (this.options.repaired && q.tracksUser) q.pool.stats.uncountUser(q.request.user);
    this.#end(q, state, now);
    this.#noticed(q, now);
  }

  /** In distributed mode the waiter wakes at once; in global mode it is noticed by the next `poll`. */
  #noticed(q: AdmissionQuery, now: Instant): void {
    q.waited = (now - q.queuedAt) as Millis;
    if (this.options.mode === "distributed") this.#settle(q, now);
  }

  /** What the waiter does on waking, whatever the outcome (5.6). */
  #settle(q: AdmissionQuery, now: Instant): void {
    if (q.isSettled) return;
    q.isSettled = true;
    q.waited = (now - q.queuedAt) as Millis;
    this.#pools.mark(q.pool);
    q.pool.stats.countWait(q.waited);
  }

  /** Same reason as last time: counted. Another: told, with the count. */
  #noteFailure(q: AdmissionQuery, reason: QueueReason): boolean {
    q.failures++;
    const before = q.latestReason;
    if (before !== null && (before === reason || sameReason(before, reason))) return false;
    q.latestReason = reason;
    return true;
  }

  /**
   * The waiter's deadline has come. The outcome that stands is the query's state afterwards: a pass may have
   * been faster (T-8), and a cancellation that nobody has cleaned up yet wins too.
   */
  timeOut(q: AdmissionQuery, now: Instant): void {
    if (q.state === "queued" && !q.isCancelMarked) {
      this.#removeFromQueue(q, true);
      this.#leave(q, "timedOut", now);
    }
    this.settle(q, now);
  }

  /** The client gives up while waiting; the query's state afterwards says whether that was in time. */
  cancel(q: AdmissionQuery, now: Instant): void {
    this.markCancelled(q);
    if (q.state === "queued") this.settle(q, now);
  }

  /** Global mode's CancelAdmission: sets the cell and leaves the cleaning up to the poller or the pass (9.4). */
  markCancelled(q: AdmissionQuery): void {
    if (q.state === "queued") q.isCancelMarked = true;
  }

  /** The waiter looks at the cell: cleans up after a cancellation, counts the wait. */
  settle(q: AdmissionQuery, now: Instant): void {
    if (q.state === "queued") {
      if (!q.isCancelMarked) return;
      this.#removeFromQueue(q, false);
      this.#leave(q, "cancelled", now);
    }
    if (q.wasQueued) this.#settle(q, now);
  }

  /** Global mode's GetQueryStatus (7.7): true when the answer is known. Time-outs are noticed only here. */
  poll(q: AdmissionQuery, now: Instant): boolean {
    if (q.state === "queued" && !q.isCancelMarked && now - q.queuedAt < q.timeout - ROUNDING) return false;
    if (q.state === "queued" && !q.isCancelMarked) this.timeOut(q, now);
    else this.settle(q, now);
    return true;
  }

  #removeFromQueue(q: AdmissionQuery, timedOut: boolean): void {
    q.pool.queue.remove(q);
    q.pool.stats.dequeue(timedOut);
  }

  #end(q: AdmissionQuery, state: "rejected" | "timedOut" | "cancelled", now: Instant): void {
    q.state = state;
    q.decidedAt = now;
    this.#forget(q);
  }

  /** A queued request that can't be read or scheduled any more (REJ-C1, REJ-C5): refused when it is next tried. */
  spoil(q: AdmissionQuery, reason: RejectReason): void {
    q.spoilt = reason;
  }

  // ---- release (admission 9)

  /**
   * Some of a query's backends are done, by their position in `q.plan.schedule.backends`. Positions that
   * were released before are skipped. Returns how many bytes of the pool's admitted memory came free.
   */
  releaseBackends(q: AdmissionQuery, positions: readonly number[]): number {
    if (q.state !== "running") return 0;
    const before = heldBytes(q);
    for (const i of positions) if (!isReleased(q, i)) this.#releaseOne(q, i);
    return this.#released(q, before - heldBytes(q));
  }

  #releaseOne(q: AdmissionQuery, i: number): void {
    invariant(i >= 0 && i < q.plan!.hosts.length, "a released backend is in the schedule");
    if (q.heldBackends > 0) releaseOne(q, i, this.#book);
  }

  /** hot: bench/decision. Whatever is still held, in one call, as at the end of a query. */
  releaseRest(q: AdmissionQuery): number {
    if (q.state !== "running" || q.heldBackends === 0) return 0;
    const bytes = heldBytes(q);
    releaseRest(q, this.#book);
    return this.#released(q, bytes);
  }

  #released(q: AdmissionQuery, bytes: number): number {
    q.pool.stats.releaseMem(bytes);
    this.#pools.mark(q.pool);
    this.#isPassDue = true;
    this.#changes++;
    return bytes;
  }

  /**
   * hot: bench/decision. ReleaseQuery: the place in the pool is free again; backends that are still held go
   * with it. False when it was already released. `peak` -1: unknown.
   */
  releaseQuery(q: AdmissionQuery, peak: number): boolean {
    if (q.state !== "running") return false;
    this.releaseRest(q);
    const { pool } = q;
    q.state = "released";
    q.peak = peak;
    pool.stats.releaseQuery(peak, q.isTrivial);
    if (q.tracksUser) pool.stats.uncountUser(q.request.user);
    this.#gauges.lower(q.plan!);
    this.#runningOf(q.request.coordinator).remove(q);
    this.#forget(q);
    this.#pools.mark(pool);
    this.#isPassDue = true;
    this.#changes++;
    return true;
  }

  #forget(q: AdmissionQuery): void {
    if (this.options.keepsIds) this.#known.delete(q.id);
    this.#numKnown--;
  }

  /** By id, for messages that come late or twice; undefined: not known (any more). */
  find(queryId: string): AdmissionQuery | undefined {
    return this.#known.get(queryId);
  }

  /** Running queries of a coordinator, in order of admission. */
  runningAt(coordinator: string): readonly AdmissionQuery[] {
    return [...(this.#running.get(coordinator) ?? [])];
  }

  // ---- statestore (admission 7)

  /** What this host's trackers say about a pool; taken over at the next exchange (7.3). */
  setBackendUsage(pool: string, usage: BackendUsage): void {
    this.#topic.setBackendUsage(pool, usage);
  }

  /** The first step of an exchange; all there is to collect where no other controller reads (7.3). */
  refreshBackendUsage(): void {
    this.#topic.refreshUsage();
  }

  /** What goes out at an exchange: empty unless a pool is marked (7.3). */
  collectUpdate(): TopicEntry[] {
    return this.#topic.collect(this.#changes);
  }

  /** What came in, after `collectUpdate` of the same exchange (7.4). */
  applyUpdate(update: TopicUpdate, now: Instant): void {
    if (this.#topic.apply(update, now)) this.#changes++;
    this.#isPassDue = true;
  }

  /** hot: bench/decision. Null: fresh; -1: no update ever; else the age in ms (7.6). Decides nothing (T-36). */
  staleAge(now: Instant): StaleAge {
    const { lastUpdate } = this.#topic;
    if (lastUpdate < 0) return -1;
    const age = now - lastUpdate;
    return age >= this.options.flags.staleTopicThreshold ? age : null;
  }

  // ---- looking on

  /** Pools that were ever seen here, in order; a topic entry is enough. */
  get pools(): readonly Pool[] {
    return this.#pools.inOrder;
  }

  pool(name: string): Pool | undefined {
    return this.#pools.find(name);
  }

  get hosts(): HostBook {
    return this.#book;
  }

  get groupLoads(): ReadonlyMap<string, GroupGauge> {
    return this.#gauges.byName;
  }

  get rootUserLoads(): ReadonlyMap<string, number> {
    return this.#topic.rootLoads.entries();
  }

  get totalDequeueFailedCoordinatorLimited(): number {
    return this.#coordinatorLimitedFailures;
  }

  /** Queued and running queries. */
  get numKnown(): number {
    return this.#numKnown;
  }

  /** Time since the last topic update, -1: none ever came. */
  timeSinceUpdate(now: Instant): number {
    const { lastUpdate } = this.#topic;
    return lastUpdate < 0 ? -1 : now - lastUpdate;
  }

  /** Queries that hold something, coordinator by coordinator, each in order of admission. */
  *runningQueries(): IterableIterator<AdmissionQuery> {
    for (const running of this.#running.values()) yield* running;
  }

  /**
   * All checks of a waiting query, not only the first that fails, without changing anything: against this
   * controller's view, or against another, such as the exact state (insight 2.3). ADM-1 is left out: it is
   * about the order, not about room.
   */
  checksFor(q: AdmissionQuery, now: Instant, view?: { readonly pool: PoolView; readonly hosts: HostsView }): Checks {
    const config = q.pool.config ?? q.config;
    const found = this.#plans.plansFor(q.request, q.config.onlyCoordinators);
    if (typeof found === "string") return { kind: "nowhere", reason: nowhereReason(found, q) };
    const current = q.plans !== null && q.plansVersion === this.#membership.version ? q.plans : found;
    return { kind: "groups", groups: current.map((plan) => this.#checksOn(plan, q, config, now, view)) };
  }

  #checksOn(
    plan: Plan,
    q: AdmissionQuery,
    config: PoolConfig,
    now: Instant,
    view: { readonly pool: PoolView; readonly hosts: HostsView } | undefined,
  ): GroupChecks {
    if (plan.config !== config) plan.workOut(config);
    const failing = allThatFails({
      pool: view?.pool ?? q.pool.stats,
      hosts: view?.hosts ?? plan.room,
      schedule: plan.schedule,
      memory: plan.memory,
      config,
      fromQueue: true,
      stale: this.staleAge(now),
    });
    return { group: plan.schedule.group, rejection: plan.rejection, failing };
  }
}

function reject(q: AdmissionQuery, reason: RejectReason): Attempt {
  q.rejectReason = reason;
  return "reject";
}

function nowhereReason(why: NoPlan, q: AdmissionQuery): QueueReason | RejectReason {
  if (why === "coordinatorRemoved") return { rule: "REJ-C2", coordinator: q.request.coordinator };
  if (why === "noBackends") return NO_BACKENDS;
  return why === "noCoordinator" ? NO_COORDINATOR : NO_EXECUTORS;
}

const isStaleReason = (r: QueueReason | null): boolean => r !== null && "stale" in r && r.stale !== null;
