/**
 * The conformance stepper: a small cluster in virtual time around controllers under test.
 *
 * It carries messages and keeps books of what a test can see (outcomes, reasons, profiles, hosts); every decision
 * comes from a controller behind `ControllerPort`. Stories drive it through the methods below and read `queries`.
 * A statestore round is one instant: news of members, everybody publishes, everybody receives, everybody's dequeue
 * pass (admission 5.4, 7.3, 7.4). A dequeue pass follows at once where a controller says that one is due.
 */
import type { QueueReason, RejectReason } from "../../src/core/admission/reasons.ts";
import type { AdmissionRequest, RequestShape } from "../../src/core/admission/request.ts";
import type { BackendDescriptor } from "../../src/core/cluster/backend.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig, ROOT_POOL } from "../../src/core/pool-config.ts";
import { bytes } from "../../src/core/units.ts";
import type { ModelSettings } from "../model/controller.ts";
import type { Admission, ControllerPort, End, Said } from "../model/port.ts";
import type { PoolSource } from "./pools.ts";
import { Statestore } from "./statestore.ts";
import { Timeline } from "./timeline.ts";

export interface HostSpec {
  readonly name: string;
  readonly coordinator: boolean;
  readonly executor: boolean;
  readonly admitMemLimit: number;
  readonly slots: number;
  readonly group: { readonly name: string; readonly minSize: number };
}

export interface ClusterSpec {
  readonly hosts: readonly HostSpec[];
  readonly pools: PoolSource;
  readonly admissionService: boolean;
  readonly settings: Omit<ModelSettings, "host" | "admissiond">;
  readonly makeController: (settings: ModelSettings) => ControllerPort;
  /** How long the statestore misses heartbeats before it declares a process failed; 0: the next round knows. */
  readonly detectAfterMs: number;
  readonly retainedRemovedCoordinators: number;
}

export type Outcome =
  | "undecided"
  | "admitted-immediately"
  | "admitted-trivial"
  | "queued"
  | "admitted-from-queue"
  | "rejected"
  | "timed-out"
  | "cancelled"
  | "failed"
  | "execution-failed"
  | "not-subject-to-admission";

export const RESULT_TEXT: Readonly<Record<string, string>> = {
  "admitted-immediately": "Admitted immediately",
  "admitted-trivial": "Admitted as a trivial query",
  queued: "Queued",
  "admitted-from-queue": "Admitted (queued)",
  rejected: "Rejected",
  "timed-out": "Timed out (queued)",
  cancelled: "Cancelled (queued)",
};

export type Reason = QueueReason | RejectReason;

export interface OutcomeChange {
  readonly at: number;
  /** Over all queries of the story. */
  readonly order: number;
  readonly outcome: Outcome;
  /** Why it queued, was refused or timed out. */
  readonly reason: Reason | null;
  /** Of a query that failed while it ran. */
  readonly failure: { readonly code: string; readonly host: string } | null;
  readonly staleness: string;
  readonly waitedMs: number | null;
}

export interface QuerySpec {
  readonly name: string;
  readonly at: string;
  readonly pool: string;
  readonly user: string;
  readonly shape: RequestShape;
  /** From admission to the end; null: until closed. */
  readonly durationMs: number | null;
  /** Whether its backends report reservations. */
  readonly startsFragments: boolean;
  readonly delayBeforeMs: number;
  readonly delayAfterMs: number;
  readonly blacklisted: readonly string[];
  /** First executor in address order, for queries narrower than their group. */
  readonly placementOffset: number;
  /** Skips resolution: the pool's name is final. */
  readonly resolved: boolean;
}

export interface Query {
  readonly spec: QuerySpec;
  readonly id: string;
  outcome: Outcome;
  readonly history: OutcomeChange[];
  pool: string;
  error: string;
  /** As the profile shows them; null for a query that never waited. */
  initialReason: Said<QueueReason> | null;
  latestReason: Said<QueueReason> | null;
  profile: string[];
  admission: Admission | null;
  /** Admitted hosts that weren't released yet. */
  held: string[];
  /** Ended, whatever way, and nothing of it is left at its coordinator. */
  gone: boolean;
  /** Its coordinator is dead or through with it, and asks nobody about it any more. */
  isSilent: boolean;
  readonly whenGone: (() => void)[];
  /** How often it was released. */
  releases: number;
}

interface Process {
  readonly spec: HostSpec;
  readonly address: string;
  controller: ControllerPort;
  alive: boolean;
  diedAt: number;
  connected: boolean;
  hidden: boolean;
  quiescing: boolean;
  lastUpdate: number | null;
}

export const SERVICE = "admissiond";
export const addressOf = (host: string): string => `${host}:27000`;
export const hostOf = (address: string): string => address.slice(0, address.lastIndexOf(":"));

export class Cluster {
  readonly time = new Timeline();
  readonly queries: Query[] = [];
  /** Completed statestore rounds. */
  rounds = 0;
  readonly spec: ClusterSpec;
  private readonly statestore = new Statestore();
  private statestoreUp = true;
  private readonly processes = new Map<string, Process>();
  private service: ControllerPort | null = null;
  private serviceUpdate: number | null = null;
  private members: readonly BackendDescriptor[] = [];
  private membershipVersion = 0;
  private removed: string[] = [];
  /** Host -> pool -> query -> what its fragments there hold. */
  private readonly trackers = new Map<string, Map<string, Map<string, { reserved: number; consumed: number }>>>();
  /** Told of every query that begins to run, after its fragments have reserved. */
  onStarted: (query: Query, admission: Admission) => void = () => undefined;
  private count = 0;
  private changes = 0;

  constructor(spec: ClusterSpec) {
    this.spec = spec;
    for (const host of spec.hosts) this.addHost(host);
    if (spec.admissionService) this.service = this.newController(SERVICE, true);
    this.round();
  }

  // ---- processes and membership ---------------------------------------------------------------------------

  addHost(host: HostSpec): void {
    const address = addressOf(host.name);
    this.processes.set(address, {
      spec: host,
      address,
      controller: this.newController(address, false),
      alive: true,
      diedAt: 0,
      connected: true,
      hidden: false,
      quiescing: false,
      lastUpdate: null,
    });
  }

  private newController(host: string, admissiond: boolean): ControllerPort {
    return this.spec.makeController({ ...this.spec.settings, host, admissiond });
  }

  private process(host: string): Process {
    const found = this.processes.get(addressOf(host));
    if (found === undefined) throw new Error(`no host ${host} in this story`);
    return found;
  }

  /** Abrupt: what it had queued is gone, its fragments end, others hear of it when the statestore does. */
  statestoreIsUp(): boolean {
    return this.statestoreUp;
  }

  killHost(host: string): void {
    const process = this.process(host);
    process.alive = false;
    process.diedAt = this.time.now;
    this.trackers.delete(process.address);
    for (const query of this.queries) {
      if (query.spec.at !== host || query.gone) continue;
      this.abandon(query);
      if (query.outcome === "undecided" || (query.outcome === "queued" && !this.spec.admissionService))
        this.end(query, "failed", "its coordinator is gone");
    }
  }

  startHost(host: string): void {
    const old = this.process(host);
    this.addHost(old.spec);
  }
  quiesceHost(host: string): void {
    this.process(host).quiescing = true;
  }
  setHidden(host: string, hidden: boolean): void {
    this.process(host).hidden = hidden;
  }
  disconnect(host: string): void {
    this.process(host).connected = false;
  }
  stopStatestore(): void {
    this.statestoreUp = false;
  }
  restartStatestore(): void {
    this.statestore.restart();
    this.statestoreUp = true;
  }
  stopService(): void {
    this.service = null;
    this.statestore.declareFailed(SERVICE);
  }
  /** A new process with empty books; it serves from its first exchange on. */
  startService(): void {
    this.service = this.newController(SERVICE, true);
    this.serviceUpdate = null;
  }
  serviceIsServing(): boolean {
    return this.service !== null && this.serviceUpdate !== null;
  }
  /** A service that is told of its members at once, as a story without rounds in between needs it. */
  introduceService(): void {
    this.service?.setMembership(this.membership(), this.time.now);
    this.service?.apply(this.statestore.updateFor(SERVICE), this.time.now);
    this.serviceUpdate = this.time.now;
  }
  /** What the coordinator says is registered with it (admission 9.5). */
  heartbeat(host: string, version: number, queries: readonly Query[]): void {
    const ids = queries.map((q) => q.id);
    this.service?.heartbeat(addressOf(host), version, ids, this.time.now);
    this.noteReleases();
    this.dequeue();
  }
  setServiceMemory(usage: number, limit: number): void {
    this.service?.setServiceMemory(usage, limit);
  }

  /** True while a death or another change of members hasn't reached the subscribers. */
  membershipIsBehind(): boolean {
    return describe(this.membersFor(true)) !== describe(this.members);
  }

  private membersFor(knowingAllDeaths: boolean): BackendDescriptor[] {
    return [...this.processes.values()]
      .filter((p) => !p.hidden && (p.alive || (!knowingAllDeaths && !this.deathIsKnown(p))))
      .map((p) => ({
        address: p.address,
        isCoordinator: p.spec.coordinator,
        isExecutor: p.spec.executor,
        isQuiescing: p.quiescing,
        admitMemLimit: bytes(p.spec.admitMemLimit),
        admissionSlots: p.spec.slots,
        executorGroup: p.spec.group,
      }));
  }

  private readonly deathIsKnown = (p: Process): boolean => this.time.now >= p.diedAt + this.spec.detectAfterMs;

  // ---- statestore rounds ------------------------------------------------------------------------------------

  /** From now on a round every `everyMs`, for as long as the story lasts. */
  startRounds(everyMs: number): void {
    const tick = (): void => {
      this.round();
      this.time.at(this.time.now + everyMs, tick);
    };
    this.time.at(this.time.now + everyMs, tick);
  }

  round(): void {
    if (!this.statestoreUp) return;
    for (const p of this.processes.values())
      if (!p.alive && this.deathIsKnown(p)) this.statestore.declareFailed(p.address);
    const now = this.time.now;
    const subscribers = this.subscribers();
    for (const { address, controller } of subscribers) {
      const items = controller.publish(now);
      if (items !== null) this.statestore.publish(address, items);
    }
    this.refreshMembers();
    for (const { address, controller, noteUpdate } of subscribers) {
      controller.setMembership(this.membership(), now);
      controller.apply(this.statestore.updateFor(address), now);
      noteUpdate();
    }
    this.noteReleases();
    this.rounds += 1;
    this.dequeue();
  }

  private subscribers(): { address: string; controller: ControllerPort; noteUpdate: () => void }[] {
    const processes = [...this.processes.values()]
      .filter((p) => p.alive && p.connected)
      .map((p) => ({
        address: p.address,
        controller: p.controller,
        noteUpdate: () => {
          p.lastUpdate = this.time.now;
        },
      }));
    if (this.service === null) return processes;
    const noteUpdate = (): void => {
      this.serviceUpdate = this.time.now;
    };
    return [...processes, { address: SERVICE, controller: this.service, noteUpdate }];
  }

  private refreshMembers(): void {
    const now = this.membersFor(false);
    if (describe(now) === describe(this.members)) return;
    const present = new Set(now.map((b) => b.address));
    const left = this.members.filter((b) => b.isCoordinator && !present.has(b.address)).map((b) => b.address);
    const remembered = [...this.removed.filter((a) => !present.has(a)), ...left];
    this.removed = remembered.slice(-this.spec.retainedRemovedCoordinators);
    this.members = now;
    this.membershipVersion += 1;
  }

  private membership() {
    return {
      version: this.membershipVersion,
      backends: this.members,
      blacklisted: [],
      removedCoordinators: this.spec.admissionService ? this.removed : [],
    };
  }

  /** Queries that had been let in and that their controller no longer counts as running. */
  noteReleases(): void {
    const running = new Set(this.controllers().flatMap((c) => Object.values(c.controller.figures().running).flat()));
    for (const query of this.queries) {
      if (query.admission === null || query.releases > 0 || running.has(query.id)) continue;
      query.held = [];
      query.releases = 1;
    }
  }

  // ---- the controllers ----------------------------------------------------------------------------------------

  /** Who decides for queries of a coordinator. */
  controllerFor(host: string): ControllerPort {
    if (!this.spec.admissionService) return this.process(host).controller;
    if (this.service === null) throw new Error("the admission service is down");
    return this.service;
  }

  controllers(): { readonly name: string; readonly controller: ControllerPort }[] {
    if (this.service !== null) return [{ name: SERVICE, controller: this.service }];
    return [...this.processes.values()]
      .filter((p) => p.alive && p.spec.coordinator)
      .map((p) => ({ name: p.spec.name, controller: p.controller }));
  }

  msSinceUpdate(host: string): number | null {
    const last = this.process(host).lastUpdate;
    return last === null ? null : this.time.now - last;
  }

  /** Passes of all controllers that ask for one (admission 5.4). */
  dequeue(): void {
    for (const { controller } of this.controllers()) {
      while (controller.isPending()) {
        const ends = controller.dequeuePass(this.time.now);
        this.noteReasons(controller);
        for (const { query, end } of ends) this.onWaitEnded(this.byId(query), end);
      }
    }
  }

  private noteReasons(controller: ControllerPort): void {
    for (const pool of Object.values(controller.figures().pools))
      for (const { query, reason, text } of pool.queue) this.byId(query).latestReason = { reason, text };
  }

  // ---- queries --------------------------------------------------------------------------------------------------

  newQuery(spec: QuerySpec): Query {
    const query: Query = {
      spec,
      id: `${"c".padStart(16, "0")}:${(++this.count).toString(16).padStart(16, "0")}`,
      outcome: "undecided",
      history: [],
      pool: "",
      error: "",
      initialReason: null,
      latestReason: null,
      profile: [],
      admission: null,
      held: [],
      gone: false,
      isSilent: false,
      whenGone: [],
      releases: 0,
    };
    this.queries.push(query);
    return query;
  }

  byName(name: string): Query {
    const found = this.queries.findLast((q) => q.spec.name === name);
    if (found === undefined) throw new Error(`no query ${name} was submitted in this story`);
    return found;
  }
  byId(id: string): Query {
    const found = this.queries.find((q) => q.id === id);
    if (found === undefined) throw new Error(`a controller speaks of query ${id}, which nobody submitted`);
    return found;
  }

  /** Straight to the controller; the admission service's messages are in service.ts. */
  submit(query: Query): void {
    const { spec } = query;
    if (query.gone) return;
    const resolution = spec.resolved
      ? { pool: spec.pool, user: spec.user, groups: this.groupsOf(spec) }
      : this.spec.pools.resolve(spec.pool, spec.user);
    if ("error" in resolution) {
      this.end(query, "failed", resolution.error);
      this.leave(query);
      return;
    }
    query.pool = resolution.pool;
    query.profile.push(`Request Pool: ${resolution.pool}`);
    const now = this.time.now;
    const request: AdmissionRequest = {
      queryId: query.id,
      coordinator: addressOf(spec.at),
      pool: resolution.pool,
      user: resolution.user,
      userGroups: resolution.groups,
      shape: spec.shape,
      blacklistedExecutors: spec.blacklisted.map(addressOf),
      placementOffset: spec.placementOffset,
    };
    const controller = this.controllerFor(spec.at);
    const decision = controller.submit(request, this.config(resolution.pool), this.config(ROOT_POOL), now);
    if (decision.kind === "admit") this.onAdmitted(query, decision, null);
    else if (decision.kind === "queue") {
      query.initialReason = decision;
      query.latestReason = decision;
      this.change(query, "queued", decision.reason, null);
    } else if (decision.kind === "reject") this.onRejected(query, decision, null);
    else {
      this.end(query, "failed", decision.kind === "error" ? decision.text : "cancelled before it was decided");
      this.leave(query);
    }
  }

  private groupsOf(spec: QuerySpec): readonly string[] | null {
    const resolution = this.spec.pools.resolve(spec.pool, spec.user);
    return "error" in resolution ? [] : resolution.groups;
  }

  private config(pool: string): PoolConfig {
    return this.spec.pools.config(pool) ?? DEFAULT_POOL_CONFIG;
  }

  /** Tells, once, whoever waits for the query to be gone. */
  leave(query: Query): void {
    if (query.gone) return;
    query.gone = true;
    for (const tell of query.whenGone.splice(0)) this.time.at(this.time.now, tell);
  }

  private change(query: Query, outcome: Outcome, reason: Reason | null, waitedMs: number | null): void {
    query.outcome = outcome;
    const staleness = this.stalenessFor(query);
    query.history.push({
      at: this.time.now,
      order: this.changes++,
      outcome,
      reason,
      failure: null,
      staleness,
      waitedMs,
    });
    const result = RESULT_TEXT[outcome];
    if (result !== undefined) query.profile.push(`Admission result: ${result}`);
  }

  private stalenessFor(query: Query): string {
    if (this.spec.admissionService && this.service === null) return "";
    return this.controllerFor(query.spec.at).stalenessText(this.time.now);
  }

  private onAdmitted(query: Query, admission: Admission, waitedMs: number | null): void {
    query.admission = admission;
    query.held = admission.backends.map((b) => b.address);
    const outcome = {
      immediately: "admitted-immediately",
      trivially: "admitted-trivial",
      fromQueue: "admitted-from-queue",
    };
    this.change(query, outcome[admission.path] as Outcome, null, waitedMs);
    const staleness = this.stalenessFor(query);
    if (staleness !== "") query.profile.push(`Admission control state staleness: ${staleness}`);
    if (query.gone) return;
    this.startFragments(query, admission);
    if (query.spec.durationMs !== null) {
      const until = this.time.now + query.spec.durationMs;
      this.time.at(until, () => this.finish(query));
    }
  }

  /** Also for ends that a poller learns of later than they came about. */
  onWaitEnded(query: Query, end: End): void {
    if (end.kind === "admit") this.onAdmitted(query, end.admission, end.waited);
    else if (end.kind === "reject") this.onRejected(query, end, end.waited);
    else if (end.kind === "timedOut") {
      query.error = end.error;
      this.change(query, "timed-out", end.reason, end.waited);
      this.leave(query);
    } else {
      // A client that had given up on it for another reason keeps that one.
      if (!query.gone) this.change(query, "cancelled", null, end.waited);
      this.leave(query);
    }
  }

  private onRejected(query: Query, said: Said<RejectReason>, waitedMs: number | null): void {
    query.error = `Rejected query from pool ${query.pool}: ${said.text}`;
    this.change(query, "rejected", said.reason, waitedMs);
    this.leave(query);
  }

  end(query: Query, outcome: Outcome, error: string): void {
    query.error = error;
    this.change(query, outcome, null, null);
  }

  /** Distributed mode: somebody sleeps on the outcome until the time-out (admission 5.6). */
  armTimeout(query: Query): void {
    const controller = this.controllerFor(query.spec.at);
    const timeout = controller.timeoutOf(query.id);
    if (timeout === null) return;
    this.time.at(this.time.now + timeout + query.spec.delayAfterMs, () => {
      if (query.outcome !== "queued" || query.gone) return;
      const end = controller.waiterWakes(query.id, this.time.now);
      if (end !== null) this.onWaitEnded(query, end);
    });
  }

  cancel(query: Query): void {
    if (query.gone) return;
    if (query.outcome === "queued") {
      const controller = this.controllerFor(query.spec.at);
      controller.markCancelled(query.id);
      const end = controller.waiterWakes(query.id, this.time.now);
      if (end !== null) this.onWaitEnded(query, end);
    } else this.finish(query);
  }

  /** The query's work is over: its fragments end and what it holds is released. */
  finish(query: Query): void {
    if (query.gone) return;
    this.leave(query);
    this.stopFragments(query);
    this.release(query);
    this.dequeue();
  }

  /** Distributed mode releases locally; the service's way is in service.ts. */
  release: (query: Query) => void = (query) => {
    if (query.admission === null) return;
    const controller = this.controllerFor(query.spec.at);
    const coordinator = addressOf(query.spec.at);
    if (query.held.length > 0) controller.releaseBackends(coordinator, query.id, query.held, this.time.now);
    query.held = [];
    controller.releaseQuery(coordinator, query.id, peakOf(query.admission), true, this.time.now);
    query.releases += 1;
  };

  theService(): ControllerPort {
    if (this.service === null) throw new Error("the story speaks of an admission service that isn't there");
    return this.service;
  }

  /** The coordinator is through with it and says nothing to anybody. */
  abandon(query: Query): void {
    query.isSilent = true;
    this.leave(query);
    this.stopFragments(query);
  }

  liveCoordinators(): string[] {
    return [...this.processes.values()].filter((p) => p.alive && p.spec.coordinator).map((p) => p.spec.name);
  }

  releaseHost(query: Query, hosts: readonly string[]): void {
    const addresses = hosts.map(addressOf);
    for (const address of addresses) this.trackers.get(address)?.get(query.pool)?.delete(query.id);
    query.held = query.held.filter((h) => !addresses.includes(h));
    for (const address of addresses) this.report(address, query.pool);
    this.controllerFor(query.spec.at).releaseBackends(addressOf(query.spec.at), query.id, addresses, this.time.now);
    this.dequeue();
  }

  // ---- fragments and what hosts report of them (admission 7.2) ----------------------------------------------------

  private startFragments(query: Query, admission: Admission): void {
    if (!query.spec.startsFragments) return;
    for (const b of admission.backends) {
      const limit = b.address === addressOf(query.spec.at) ? admission.coordinatorLimit : admission.perHostLimit;
      const pools =
        this.trackers.get(b.address) ?? new Map<string, Map<string, { reserved: number; consumed: number }>>();
      this.trackers.set(b.address, pools);
      const queries = pools.get(query.pool) ?? new Map<string, { reserved: number; consumed: number }>();
      pools.set(query.pool, queries);
      queries.set(query.id, { reserved: Math.max(0, limit), consumed: b.mem });
      this.report(b.address, query.pool);
    }
    this.onStarted(query, admission);
  }

  /** It fails while it runs: an end of its own kind, after which everything is given back. */
  failExecution(query: Query, code: string, host: string): void {
    query.outcome = "execution-failed";
    query.error = code;
    const entry = { outcome: query.outcome, reason: null, failure: { code, host }, staleness: "", waitedMs: null };
    query.history.push({ at: this.time.now, order: this.changes++, ...entry });
    this.finish(query);
  }

  private stopFragments(query: Query): void {
    for (const [address, pools] of this.trackers) {
      if (pools.get(query.pool)?.delete(query.id) === true) this.report(address, query.pool);
    }
  }

  private report(address: string, pool: string): void {
    const process = this.processes.get(address);
    if (process === undefined || !process.alive) return;
    const queries = [...(this.trackers.get(address)?.get(pool) ?? [])];
    const reserved = queries.reduce((sum, [, t]) => sum + t.reserved, 0);
    process.controller.setBackendReserved(
      pool,
      reserved,
      queries.map(([query, t]) => ({ query, consumed: t.consumed })),
    );
  }

  /** Queries that have something on the host. */
  queriesOn(host: string): number {
    return this.queries.filter((q) => !q.gone && q.held.includes(addressOf(host))).length;
  }

  liveHosts(): HostSpec[] {
    return [...this.processes.values()].filter((p) => p.alive).map((p) => p.spec);
  }
}

const peakOf = (admission: Admission): number => Math.max(...admission.backends.map((b) => b.mem));

const describe = (members: readonly BackendDescriptor[]): string =>
  JSON.stringify([...members].sort((a, b) => (a.address < b.address ? -1 : 1)));
