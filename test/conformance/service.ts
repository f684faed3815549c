/**
 * The coordinators' side of the admission service (admission 7.7): AdmitQuery with retries, polling of GetQueryStatus,
 * release, cancellation, heartbeats. Messages can be lost; what the service makes of that is what the stories are
 * about, and it is behind `ControllerPort`. Time-outs are noticed only by a poll, so up to one poll late.
 */
import type { ControllerPort } from "../model/port.ts";
import { addressOf, type Cluster, type Query } from "./cluster.ts";

const STATUS_WAIT_MS = 100;
const STATUS_RETRY_MS = 10;
const HEARTBEAT_MS = 1000;

export type Message = "admit-query" | "get-query-status" | "release-query" | "cancel-admission" | "heartbeat";

export interface Handing {
  /** How often the coordinator takes an answered message for a network error (duplicates are ignored). */
  readonly errorRate: number;
  /** Unpacked before anything else, which the service doesn't do while it is short of memory (REJ-C4). */
  readonly isCompressed: boolean;
}

export class ServiceClients {
  heartbeats = 0;
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
    cluster.release = (query) => this.sendRelease(query);
    this.beat();
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

  private get service(): ControllerPort {
    return this.cluster.theService();
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
    if (query.isSilent) return;
    const { time } = this.cluster;
    const reached = this.cluster.serviceIsServing() && !this.isLost("admit-query");
    if (reached && !this.service.knows(query.id)) this.take(query, handing);
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
      this.cluster.abandon(query);
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
      this.cluster.abandon(query);
      return;
    }
    this.cluster.submit(query);
  }

  // ---- GetQueryStatus --------------------------------------------------------------------------------------------

  /** The call waits until the outcome is set, the deadline, or its own patience; then the next one follows. */
  private poll(query: Query): void {
    if (query.isSilent) return;
    if (!this.cluster.serviceIsServing() || this.isLost("get-query-status")) {
      this.failAndCancel(query, "GetQueryStatus rpc failed");
      return;
    }
    if (query.outcome !== "queued") {
      this.hear(query);
      return;
    }
    const { time } = this.cluster;
    const deadline = (query.history.at(-1)?.at ?? time.now) + (this.service.timeoutOf(query.id) ?? 0);
    const until = Math.min(Math.max(deadline, time.now), time.now + STATUS_WAIT_MS);
    time.at(until, () => {
      if (query.isSilent || !this.cluster.serviceIsServing()) return this.poll(query);
      this.hear(query);
      if (query.outcome === "queued") time.at(time.now + STATUS_RETRY_MS, () => this.poll(query));
    });
  }

  /** What GetQueryStatus brings: an end that is due, or that a pass came to before. */
  private hear(query: Query): void {
    const end = this.service.waiterWakes(query.id, this.cluster.time.now);
    if (end !== null) this.cluster.onWaitEnded(query, end);
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
    if (query.outcome === "queued") {
      this.sendCancel(query);
      this.hear(query);
    } else this.cluster.finish(query);
  }

  /** Only the outcome cell: whoever meets the query next cleans up. */
  private sendCancel(query: Query): void {
    if (!this.cluster.serviceIsServing() || this.isLost("cancel-admission")) return;
    this.service.markCancelled(query.id);
  }

  private sendRelease(query: Query): void {
    if (query.admission === null || !this.cluster.serviceIsServing() || this.isLost("release-query")) return;
    const peak = Math.max(...query.admission.backends.map((b) => b.mem));
    this.service.releaseQuery(addressOf(query.spec.at), query.id, peak, true, this.cluster.time.now);
    this.cluster.noteReleases();
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
      }
      this.heartbeats += 1;
      this.beat();
    });
  }
}
