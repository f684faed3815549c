/**
 * The messages between coordinators and the admission service (admission 7.7): AdmitQuery with retries, polling of
 * GetQueryStatus, release, cancellation, heartbeats. They can be lost; what the service does about that is what the
 * stories are about. Time-outs are noticed only by a poll, so up to one poll late.
 */
import { addressOf, type Cluster, hostOf, type Query } from "./cluster.ts";

const STATUS_WAIT_MS = 100;
const STATUS_RETRY_MS = 10;
const HEARTBEAT_MS = 1000;

export type Message = "admit-query" | "get-query-status" | "release-query" | "cancel-admission" | "heartbeat";

/** What the service keeps for a query that was submitted to it, until it forgets it. */
interface State {
  released: boolean;
}

export interface Handing {
  /** How often the coordinator takes an answered message for a network error (duplicates are ignored). */
  readonly errorRate: number;
  /** Unpacked before anything else, which the service doesn't do while it is short of memory (REJ-C4). */
  readonly isCompressed: boolean;
}

export class AdmissionService {
  heartbeats = 0;
  highWaterMark = 0;
  private states = new Map<string, State>();
  private readonly cluster: Cluster;
  private readonly maxRetryMs: number;
  private memory = { usage: 0, limit: Number.POSITIVE_INFINITY };
  private readonly unanswered = new Set<string>();
  private readonly lossRates = new Map<string, number>();
  private readonly versions = new Map<string, number>();
  private readonly chance: () => number;

  constructor(cluster: Cluster, maxRetryTimeS: number, chance: () => number) {
    this.cluster = cluster;
    this.maxRetryMs = maxRetryTimeS * 1000;
    this.chance = chance;
    cluster.onCoordinatorReleased = (coordinator) => this.forgetRunningOf(coordinator);
    cluster.onDropped = (query) => this.states.delete(query.id);
    cluster.release = (query) => this.sendRelease(query);
    this.beat();
  }

  get numQueries(): number {
    return this.states.size;
  }

  lose(message: Message, rate: number): void {
    this.lossRates.set(message, rate);
  }

  private isLost(message: Message): boolean {
    const rate = this.lossRates.get(message) ?? 0;
    return rate > 0 && this.chance() < rate;
  }

  setMemory(usage: number, limit: number): void {
    this.memory = { usage, limit };
    this.cluster.setServiceMemory(usage, limit);
  }

  stop(): void {
    this.cluster.stopService();
    this.states = new Map();
  }

  // ---- AdmitQuery ----------------------------------------------------------------------------------------------

  /** Its coordinator is still trying to hand it over. */
  isUnanswered(query: Query): boolean {
    return this.unanswered.has(query.id);
  }

  admit(query: Query, handing: Handing): void {
    this.unanswered.add(query.id);
    this.tryAdmit(query, handing, this.cluster.time.now, 0);
  }

  private tryAdmit(query: Query, handing: Handing, since: number, retries: number): void {
    if (query.gone) {
      this.answered(query);
      return;
    }
    const { time } = this.cluster;
    const reached = this.cluster.serviceIsServing() && !this.isLost("admit-query");
    if (reached && !this.states.has(query.id)) this.take(query, handing);
    if (reached && !(handing.errorRate > 0 && this.chance() < handing.errorRate)) {
      this.unanswered.delete(query.id);
      this.poll(query);
      return;
    }
    const seconds = Math.floor((time.now - since) / 1000);
    if (seconds * 1000 > this.maxRetryMs) {
      this.cluster.end(
        query,
        "failed",
        `Failed to admit query after waiting ${seconds}s and retrying ${retries} times.`,
      );
      this.cluster.leave(query);
      return;
    }
    const pause = STATUS_RETRY_MS * ((retries + 1) * this.chance() + 1);
    time.at(time.now + Math.ceil(pause), () => this.tryAdmit(query, handing, since, retries + 1));
  }

  private take(query: Query, { isCompressed }: Handing): void {
    const { usage, limit } = this.memory;
    if (isCompressed && usage > limit) {
      const said = `Admission rejected due to memory pressure in admissiond. Current usage: ${usage} bytes, limit: ${limit} bytes`;
      // Nobody has looked for a pool yet.
      this.cluster.end(query, "rejected", `Rejected query from pool N/A: ${said}`);
      this.cluster.leave(query);
      return;
    }
    this.states.set(query.id, { released: false });
    this.highWaterMark = Math.max(this.highWaterMark, this.states.size);
    this.cluster.submit(query);
  }

  // ---- GetQueryStatus --------------------------------------------------------------------------------------------

  private poll(query: Query): void {
    if (query.gone && query.outcome !== "rejected") return;
    if (!this.cluster.serviceIsServing() || this.isLost("get-query-status")) {
      this.failAndCancel(query, "GetQueryStatus rpc failed");
      return;
    }
    if (query.outcome !== "queued") {
      if (query.outcome === "rejected" || query.outcome === "timed-out") this.states.delete(query.id);
      return;
    }
    const { time } = this.cluster;
    const controller = this.cluster.controllerFor(query.spec.at);
    const timeout = controller.timeoutOf(query.id);
    const queuedAt = query.history.at(-1)?.at ?? time.now;
    const deadline = queuedAt + (timeout ?? 0);
    // The call waits until the outcome is set, the deadline, or its own patience.
    const until = Math.min(Math.max(deadline, time.now), time.now + STATUS_WAIT_MS);
    time.at(until, () => {
      if (query.gone) return this.answered(query);
      if (query.outcome === "queued" && time.now >= deadline) {
        const end = controller.waiterWakes(query.id, time.now);
        if (end !== null) this.cluster.onWaitEnded(query, end);
        return this.answered(query);
      }
      time.at(time.now + STATUS_RETRY_MS, () => this.poll(query));
    });
  }

  private answered(query: Query): void {
    if (query.outcome === "rejected" || query.outcome === "timed-out" || query.outcome === "cancelled")
      this.states.delete(query.id);
  }

  private failAndCancel(query: Query, error: string): void {
    if (query.gone) return;
    const wasWaiting = query.outcome === "queued";
    this.cluster.end(query, "failed", error);
    this.cluster.abandon(query);
    if (wasWaiting) this.sendCancel(query);
  }

  // ---- the other messages ----------------------------------------------------------------------------------------

  cancel(query: Query): void {
    if (query.gone) return;
    if (query.outcome !== "queued") {
      this.cluster.finish(query);
      return;
    }
    this.sendCancel(query);
    const controller = this.cluster.controllerFor(query.spec.at);
    const end = controller.waiterWakes(query.id, this.cluster.time.now);
    if (end !== null) this.cluster.onWaitEnded(query, end);
    this.answered(query);
  }

  /** Only the outcome cell: whoever meets the query next cleans up. */
  private sendCancel(query: Query): void {
    if (!this.cluster.serviceIsServing() || this.isLost("cancel-admission")) return;
    this.cluster.controllerFor(query.spec.at).markCancelled(query.id);
  }

  private sendRelease(query: Query): void {
    if (query.admission === null || !this.cluster.serviceIsServing() || this.isLost("release-query")) return;
    const state = this.states.get(query.id);
    if (state === undefined || state.released) return;
    const peak = Math.max(...query.admission.backends.map((b) => b.mem));
    const { now } = this.cluster.time;
    this.cluster.controllerFor(query.spec.at).releaseQuery(addressOf(query.spec.at), query.id, peak, true, now);
    query.held = [];
    query.releases += 1;
    state.released = true;
    this.states.delete(query.id);
  }

  private beat(): void {
    const { time } = this.cluster;
    time.at(time.now + HEARTBEAT_MS, () => {
      for (const host of this.cluster.liveCoordinators()) {
        const version = (this.versions.get(host) ?? 0) + 1;
        this.versions.set(host, version);
        if (!this.cluster.serviceIsServing() || this.isLost("heartbeat")) continue;
        const live = this.cluster.queries.filter((q) => q.spec.at === host && !q.gone);
        this.cluster.heartbeat(host, version, live);
        this.forgetReleased(this.cluster.queries.filter((q) => q.spec.at === host && q.gone));
      }
      this.heartbeats += 1;
      this.beat();
    });
  }

  /** A query that had been let in and that its coordinator no longer lists is released with all that is known of it. */
  private forgetReleased(queries: readonly Query[]): void {
    for (const query of queries) {
      if (query.admission === null || !this.states.delete(query.id)) continue;
      query.held = [];
      query.releases += 1;
    }
  }

  private forgetRunningOf(coordinator: string): void {
    this.forgetReleased(this.cluster.queries.filter((q) => q.spec.at === hostOf(coordinator)));
  }
}
