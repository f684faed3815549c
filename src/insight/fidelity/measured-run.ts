/**
 * What a recorded run measured of each query: when it was wanted, asked for, decided, done on each host, and over
 * (insight 2.1, 7.3). Everything that a prediction is fed with, and everything that it is compared with.
 *
 * A fold over events of either driver. Times are emulated milliseconds as the events carry them, never differences
 * of differences: a run compared with itself must come out equal to the last digit.
 */

import type { ControllerCall, PlainConfig } from "../../core/admission/controller-call.ts";
import { configOfPlain } from "../../core/admission/plain-forms.ts";
import type { RequestShape } from "../../core/admission/request.ts";
import type { EventOf, FinishState, RunEvent } from "../../core/events.ts";
import type { PoolConfig } from "../../core/pool-config.ts";

export type Decision = "admitted" | "rejected" | "timedOut" | "cancelled" | "unresolved" | "undecided";

export interface MeasuredQuery {
  readonly query: string;
  readonly queryClass: string;
  readonly pool: string;
  readonly user: string;
  readonly coordinator: string;
  /** a and u of insight 0. */
  readonly intended: number;
  readonly submitted: number;
  /** The query whose end brought this one about in the same instant; null: none did, as far as is known. */
  readonly answers: string | null;
  decision: Decision;
  wasQueued: boolean;
  /** d; NaN: undecided. */
  decidedAt: number;
  /** b, e and f; NaN: never. */
  startedAt: number;
  workedUntil: number;
  releasedAt: number;
  /** Charge to the pool (MEM-10), and the schedule's hosts. */
  cluster: number;
  hosts: readonly string[];
  /** By schedule position, when its last instance there was done; NaN: not before the query's end. */
  doneAt: Float64Array;
  /** By schedule position and the host's own clock: its first claim there, all given back; NaN: nobody said. */
  claimedAt: Float64Array;
  gaveBackAt: Float64Array;
  /** By schedule position, what its host told the statestore of a query without a limit; NaN: not said. */
  reserves: Float64Array;
  ended: FinishState | null;
  /** What it failed with; null: it did not, or its controller gave it back because its coordinator was gone. */
  error: string | null;
  /** Calls and messages that gave its hosts back before its last one, or with it. */
  releases: number;
  /** Schedule positions whose release message got lost, and what had become of the query when its last one did. */
  lostPositions: Set<number>;
  lastLost: { readonly at: number; readonly state: FinishState } | null;
  /** Largest peak on one host, what was written to scratch there included; -1 unknown. */
  peak: number;
  /** As the controller was asked; null: it never was. */
  asked: Asked | null;
  unresolved: string | null;
  /** From its release to its controller's next look at a queue in which somebody waited; 0: nobody did. */
  wakeUp: number;
}

export interface Asked {
  readonly shape: RequestShape;
  readonly userGroups: readonly string[] | null;
  readonly placementOffset: number;
  /** Of its pool and of `root`, as the controller was given them: equal ones are one object. */
  readonly config: PoolConfig;
  readonly rootConfig: PoolConfig;
}

export interface MeasuredRun {
  /** In order of intended time; those of one moment as they were submitted. */
  readonly queries: readonly MeasuredQuery[];
  /** Per controller, when it applied each exchange with the statestore. */
  readonly applied: ReadonlyMap<string, readonly number[]>;
  /** Per host without a controller, when it had something to give the statestore. */
  readonly published: ReadonlyMap<string, readonly number[]>;
  readonly until: number;
}

export class MeasuredRunFold {
  readonly #queries = new Map<string, MeasuredQuery>();
  readonly #shapes = new Map<string, RequestShape>();
  /** By controller and its number for it. */
  readonly #configs = new Map<string, PoolConfig>();
  readonly #configsByText = new Map<string, PoolConfig>();
  readonly #applied = new Map<string, number[]>();
  readonly #published = new Map<string, number[]>();
  readonly #queued = new Map<string, number>();
  /** Queries whose release somebody waited for, until their controller looks. */
  readonly #toWake = new Map<string, MeasuredQuery[]>();
  readonly #isGlobal: boolean;
  /** Attempts by request and number. */
  readonly #attempts = new Map<string, string>();
  /** Who had his answer last at a moment. */
  readonly #endedAt = new Map<number, string>();
  #until = 0;

  /** With `admissiond` one queue serves all coordinators. */
  constructor(admission: "distributed" | "admissiond") {
    this.#isGlobal = admission === "admissiond";
  }

  add(event: RunEvent): void {
    this.#until = Math.max(this.#until, event.at);
    if (event.kind === "submitted") this.#submitted(event);
    else if (event.kind === "controllerCall") this.#called(event.controller, event.call, event.now ?? event.at);
    else if (event.kind === "topicApplied") listIn(this.#applied, event.coordinator).push(event.at);
    else if (event.kind === "topicPublished") listIn(this.#published, event.host).push(event.at);
    else if (event.kind === "hostLost") this.#hostLost(event);
    else if ("query" in event) {
      const q = this.#queries.get(event.query);
      if (q !== undefined) this.#ofQuery(q, event);
    }
  }

  finish(): MeasuredRun {
    const queries = [...this.#queries.values()].sort((x, y) => x.intended - y.intended);
    return { queries, applied: this.#applied, published: this.#published, until: this.#until };
  }

  #submitted(e: EventOf<"submitted">): void {
    const { request, attempt } = e;
    this.#attempts.set(`${request} ${attempt}`, e.query);
    const answers = attempt > 1 ? this.#attempts.get(`${request} ${attempt - 1}`) : this.#endedAt.get(e.intended);
    this.#queries.set(e.query, {
      query: e.query,
      queryClass: e.queryClass,
      pool: e.pool,
      user: e.user,
      coordinator: e.coordinator,
      intended: e.intended,
      submitted: e.at,
      answers: answers ?? null,
      decision: "undecided",
      wasQueued: false,
      decidedAt: Number.NaN,
      startedAt: Number.NaN,
      workedUntil: Number.NaN,
      releasedAt: Number.NaN,
      cluster: -1,
      hosts: [],
      doneAt: new Float64Array(0),
      claimedAt: new Float64Array(0),
      gaveBackAt: new Float64Array(0),
      reserves: new Float64Array(0),
      ended: null,
      error: null,
      releases: 0,
      lostPositions: new Set(),
      lastLost: null,
      peak: -1,
      asked: this.#early.get(e.query) ?? null,
      unresolved: null,
      wakeUp: 0,
    });
    this.#early.delete(e.query);
  }

  #oneConfig(plain: PlainConfig): PoolConfig {
    const text = JSON.stringify(plain);
    let config = this.#configsByText.get(text);
    if (config === undefined) {
      config = configOfPlain(plain);
      this.#configsByText.set(text, config);
    }
    return config;
  }

  /** A controller on a thread of its own may tell of a request before its driver does. */
  readonly #early = new Map<string, Asked>();

  #called(controller: string, call: ControllerCall, at: number): void {
    if (call.op === "shape") this.#shapes.set(`${controller} ${call.number}`, call.shape);
    else if (call.op === "config") this.#configs.set(`${controller} ${call.number}`, this.#oneConfig(call.config));
    else if (call.op === "submit" || call.op === "submitCancelled") {
      const shape = this.#shapes.get(`${controller} ${call.shape}`);
      const config = this.#configs.get(`${controller} ${call.config}`);
      const rootConfig = this.#configs.get(`${controller} ${call.rootConfig}`);
      if (shape === undefined || config === undefined || rootConfig === undefined) return;
      const { queryId, userGroups, placementOffset } = call.request;
      const asked: Asked = { shape, userGroups, placementOffset, config, rootConfig };
      const q = this.#queries.get(queryId);
      if (q === undefined) this.#early.set(queryId, asked);
      else q.asked = asked;
    } else if (call.op === "pass") this.#looked(this.#isGlobal ? "" : controller, at);
  }

  #looked(seat: string, at: number): void {
    const waiting = this.#toWake.get(seat);
    if (waiting === undefined) return;
    for (const q of waiting) q.wakeUp = Math.max(0, at - q.releasedAt);
    this.#toWake.delete(seat);
  }

  #ofQuery(q: MeasuredQuery, event: RunEvent): void {
    switch (event.kind) {
      case "queued":
        q.wasQueued = true;
        this.#count(q, 1);
        break;
      case "admitted":
        q.cluster = event.cluster;
        q.hosts = event.hosts;
        q.doneAt = unknownTimes(event.hosts);
        q.claimedAt = unknownTimes(event.hosts);
        q.gaveBackAt = unknownTimes(event.hosts);
        q.reserves = unknownTimes(event.hosts);
        this.#decided(q, "admitted", event.at);
        break;
      case "unresolved":
        q.unresolved = event.error;
        this.#decided(q, "unresolved", event.at);
        break;
      case "rejected":
      case "timedOut":
      case "cancelled":
        this.#decided(q, event.kind, event.at);
        break;
      case "fragmentStarted":
        if (Number.isNaN(q.startedAt)) q.startedAt = event.at;
        noteFirst(q.claimedAt, q.hosts.indexOf(event.host), event.hostAt);
        if (event.reserves !== undefined) q.reserves[q.hosts.indexOf(event.host)] = event.reserves;
        break;
      case "fragmentFinished":
        q.workedUntil = event.at;
        q.peak = Math.max(q.peak, event.peak + event.spilled);
        if (event.error !== null) break;
        q.doneAt[q.hosts.indexOf(event.host)] = event.at;
        noteLast(q.gaveBackAt, q.hosts.indexOf(event.host), event.hostAt);
        break;
      case "backendsReleased":
        q.releases++;
        break;
      case "releaseLost":
        if (event.state === null) q.releases++;
        for (const host of event.hosts) q.lostPositions.add(q.hosts.indexOf(host));
        if (event.state === null) break;
        q.lastLost = { at: event.at, state: event.state };
        this.#endedAt.set(event.at, q.query);
        break;
      case "released":
        this.#released(q, event);
        break;
      default:
        break;
    }
  }

  #decided(q: MeasuredQuery, decision: Decision, at: number): void {
    if (q.wasQueued && q.decision === "undecided") this.#count(q, -1);
    q.decision = decision;
    q.decidedAt = at;
    if (decision !== "admitted") this.#endedAt.set(at, q.query);
  }

  /** Clients of a coordinator that dies have their answer in that instant, whenever their queries are given back. */
  #hostLost({ host, at }: EventOf<"hostLost">): void {
    for (const q of this.#queries.values())
      if (q.coordinator === host && q.ended === null && (q.decision === "admitted" || q.decision === "undecided"))
        this.#endedAt.set(at, q.query);
  }

  #released(q: MeasuredQuery, event: EventOf<"released">): void {
    q.releasedAt = event.at;
    this.#endedAt.set(event.at, q.query);
    q.ended = event.state;
    q.error = event.error;
    if (q.peak < 0) q.peak = event.peak;
    const seat = this.#seatOf(q);
    if ((this.#queued.get(seat) ?? 0) > 0) listIn(this.#toWake, seat).push(q);
  }

  #count(q: MeasuredQuery, by: number): void {
    const seat = this.#seatOf(q);
    this.#queued.set(seat, (this.#queued.get(seat) ?? 0) + by);
  }

  #seatOf = (q: MeasuredQuery): string => (this.#isGlobal ? "" : q.coordinator);
}

const unknownTimes = (hosts: readonly string[]): Float64Array => new Float64Array(hosts.length).fill(Number.NaN);

function noteFirst(times: Float64Array, position: number, at: number | undefined): void {
  if (at !== undefined && !(times[position]! <= at)) times[position] = at;
}

/** A query's host has given back what its last instance there did. */
function noteLast(times: Float64Array, position: number, at: number | undefined): void {
  if (at !== undefined && !(times[position]! >= at)) times[position] = at;
}

function listIn<T>(lists: Map<string, T[]>, key: string): T[] {
  let list = lists.get(key);
  if (list === undefined) {
    list = [];
    lists.set(key, list);
  }
  return list;
}
