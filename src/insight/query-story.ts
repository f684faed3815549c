/**
 * The life of one query, gathered from the stream of a whole run: its own events, and what stood around it
 * at each of its attempts, namely who was ahead, what the pool had given out, what each host had left.
 *
 * The figures around it are exact (sums over all controllers); what its controller believed stands in the
 * reasons. Only the state of now and the one query are kept, so any run can be looked through.
 */
import type { QueueReason } from "../core/admission/reasons.ts";
import { EMPTY_GROUP } from "../core/cluster/backend.ts";
import type { EventOf, RunEvent } from "../core/events.ts";

export interface QueryStory {
  readonly submitted: EventOf<"submitted">;
  readonly unresolved: EventOf<"unresolved"> | null;
  readonly queued: EventOf<"queued"> | null;
  readonly attempts: readonly Attempt[];
  readonly decision: EventOf<"admitted" | "rejected" | "timedOut" | "cancelled"> | null;
  /** By host in address order. */
  readonly hosts: readonly HostPart[];
  readonly released: EventOf<"released"> | null;
  /** When the query's backends were given back, and when the last one was. */
  readonly backendsReleased: readonly EventOf<"backendsReleased">[];
  /** Around it when it was submitted, when it was last refused, and when it was decided. */
  readonly atSubmission: Surroundings;
  readonly atLastFailure: Surroundings | null;
  readonly atDecision: Surroundings | null;
  /** Queries of its controller that ran in its group when it was admitted, itself included; 0 when it was not. */
  readonly groupLoad: number;
  /** Queries of this controller that stood before it when it queued, head first. */
  readonly ahead: readonly AheadQuery[];
  /** Other attempts of the same request. */
  readonly siblings: readonly { readonly query: string; readonly attempt: number; readonly at: number }[];
}

/** A failed attempt, or several equal ones. */
export interface Attempt {
  readonly at: number;
  readonly reason: QueueReason;
  readonly times: number;
}

export interface AheadQuery {
  readonly query: string;
  readonly queryClass: string;
  readonly waitedFor: QueueReason;
}

export interface HostPart {
  readonly host: string;
  readonly instances: number;
  readonly startedAt: number;
  readonly finishedAt: number | null;
  /** Of the instances that ended here; null: none did, as on the hosts of a query that failed elsewhere. */
  readonly peak: number | null;
  readonly spilled: number | null;
  readonly error: string | null;
}

/** The exact state of one moment. */
export interface Surroundings {
  readonly at: number;
  readonly running: number;
  readonly queued: number;
  readonly memory: number;
  /** Admitted bytes by address, only hosts that have any. */
  readonly admittedOn: ReadonlyMap<string, number>;
}

type Decision = EventOf<"admitted" | "rejected" | "timedOut" | "cancelled">;

interface KnownQuery {
  readonly submitted: EventOf<"submitted">;
  admitted: EventOf<"admitted"> | null;
  reason: QueueReason | null;
}

interface PartOfHost {
  instances: number;
  startedAt: number;
  finishedAt: number | null;
  open: number;
  peak: number | null;
  spilled: number | null;
  error: string | null;
}

export class QueryStoryFold {
  readonly #target: string;
  readonly #known = new Map<string, KnownQuery>();
  /** Waiting queries by controller and pool, oldest first. */
  readonly #queues = new Map<string, Set<string>>();
  readonly #pools = new Map<string, { running: number; memory: number }>();
  readonly #hostMemory = new Map<string, number>();
  readonly #oneQueuePerPool: boolean;

  #submitted: EventOf<"submitted"> | null = null;
  #unresolved: EventOf<"unresolved"> | null = null;
  #queued: EventOf<"queued"> | null = null;
  #decision: Decision | null = null;
  #released: EventOf<"released"> | null = null;
  readonly #attempts: Attempt[] = [];
  readonly #backendsReleased: EventOf<"backendsReleased">[] = [];
  readonly #parts = new Map<string, PartOfHost>();
  #atSubmission: Surroundings | null = null;
  #atLastFailure: Surroundings | null = null;
  #atDecision: Surroundings | null = null;
  #ahead: readonly AheadQuery[] = [];
  #groupLoad = 0;
  readonly #siblings: { query: string; attempt: number; at: number }[] = [];
  #request: string;

  /** `request`: id of the first attempt, as the submission of the target has it. */
  constructor(target: string, request: string, admission: "distributed" | "admissiond") {
    this.#target = target;
    this.#request = request;
    this.#oneQueuePerPool = admission === "admissiond";
  }

  add(event: RunEvent): void {
    // What stands around the query is the state before its own event, except for those it brings about.
    if ("query" in event && event.query === this.#target) this.#own(event);
    this.#follow(event);
  }

  /** Null: the query is not in the stream. */
  finish(): QueryStory | null {
    if (this.#submitted === null || this.#atSubmission === null) return null;
    return {
      submitted: this.#submitted,
      unresolved: this.#unresolved,
      queued: this.#queued,
      attempts: this.#attempts,
      decision: this.#decision,
      hosts: [...this.#parts]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([host, { open: _, ...part }]) => ({ host, ...part })),
      released: this.#released,
      backendsReleased: this.#backendsReleased,
      atSubmission: this.#atSubmission,
      atLastFailure: this.#atLastFailure,
      atDecision: this.#atDecision,
      groupLoad: this.#groupLoad,
      ahead: this.#ahead,
      siblings: this.#siblings,
    };
  }

  #own(event: RunEvent): void {
    switch (event.kind) {
      case "submitted":
        this.#submitted = event;
        this.#atSubmission = this.#around(event.at, event.pool);
        break;
      case "unresolved":
        this.#unresolved = event;
        break;
      case "queued":
        this.#queued = event;
        this.#ahead = this.#aheadOf();
        this.#failed(event.at, event.reason, 1);
        break;
      case "stillQueued":
        this.#failed(event.at, event.reason, event.attempts);
        break;
      case "admitted":
      case "rejected":
      case "timedOut":
      case "cancelled":
        this.#decision = event;
        this.#atDecision = this.#around(event.at, this.#submitted?.pool ?? "");
        if (event.kind === "admitted") this.#groupLoad = this.#loadOf(event.group);
        break;
      case "released":
        this.#released = event;
        break;
      case "backendsReleased":
        this.#backendsReleased.push(event);
        break;
      default:
        this.#onHost(event);
    }
  }

  #failed(at: number, reason: QueueReason, times: number): void {
    this.#attempts.push({ at, reason, times });
    this.#atLastFailure = this.#around(at, this.#submitted?.pool ?? "");
  }

  #onHost(event: RunEvent): void {
    if (event.kind === "fragmentStarted") {
      const part = this.#parts.get(event.host) ?? newPart(event.at);
      part.instances++;
      part.open++;
      this.#parts.set(event.host, part);
      return;
    }
    if (event.kind !== "fragmentFinished") return;
    const part = this.#parts.get(event.host);
    if (part === undefined) return;
    part.open--;
    if (part.open === 0) part.finishedAt = event.at;
    part.peak = (part.peak ?? 0) + event.peak;
    part.spilled = (part.spilled ?? 0) + event.spilled;
    part.error ??= event.error;
  }

  #follow(event: RunEvent): void {
    switch (event.kind) {
      case "submitted":
        this.#known.set(event.query, { submitted: event, admitted: null, reason: null });
        if (event.request === this.#request && event.query !== this.#target)
          this.#siblings.push({ query: event.query, attempt: event.attempt, at: event.at });
        break;
      case "queued":
        this.#queueOf(event.query)?.add(event.query);
        this.#setReason(event.query, event.reason);
        break;
      case "stillQueued":
        this.#setReason(event.query, event.reason);
        break;
      case "admitted":
        this.#queueOf(event.query)?.delete(event.query);
        this.#admit(event);
        break;
      case "rejected":
      case "timedOut":
      case "cancelled":
        this.#queueOf(event.query)?.delete(event.query);
        this.#known.delete(event.query);
        break;
      case "unresolved":
        this.#known.delete(event.query);
        break;
      case "backendsReleased":
        this.#giveBack(event);
        break;
      case "released":
        this.#endRunning(event.query);
        break;
      default:
        break;
    }
  }

  #setReason(query: string, reason: QueueReason): void {
    const known = this.#known.get(query);
    if (known !== undefined) known.reason = reason;
  }

  #admit(event: EventOf<"admitted">): void {
    const known = this.#known.get(event.query);
    if (known === undefined) return;
    known.admitted = event;
    const pool = this.#poolOf(known.submitted.pool);
    pool.running++;
    pool.memory += event.cluster;
    for (const host of event.hosts) this.#addToHost(host, amountOn(host, known));
  }

  #giveBack(event: EventOf<"backendsReleased">): void {
    const known = this.#known.get(event.query);
    if (known === undefined) return;
    const pool = this.#poolOf(known.submitted.pool);
    for (const host of event.hosts) {
      const amount = amountOn(host, known);
      pool.memory -= amount;
      this.#addToHost(host, -amount);
    }
  }

  #endRunning(query: string): void {
    const known = this.#known.get(query);
    if (known === undefined) return;
    this.#poolOf(known.submitted.pool).running--;
    this.#known.delete(query);
  }

  #addToHost(host: string, amount: number): void {
    const now = (this.#hostMemory.get(host) ?? 0) + amount;
    if (now === 0) this.#hostMemory.delete(host);
    else this.#hostMemory.set(host, now);
  }

  #poolOf(name: string): { running: number; memory: number } {
    let pool = this.#pools.get(name);
    if (pool === undefined) {
      pool = { running: 0, memory: 0 };
      this.#pools.set(name, pool);
    }
    return pool;
  }

  #queueOf(query: string): Set<string> | null {
    const known = this.#known.get(query);
    if (known === undefined) return null;
    const { pool, coordinator } = known.submitted;
    const key = this.#oneQueuePerPool ? pool : `${pool} ${coordinator}`;
    let queue = this.#queues.get(key);
    if (queue === undefined) {
      queue = new Set();
      this.#queues.set(key, queue);
    }
    return queue;
  }

  #aheadOf(): AheadQuery[] {
    return [...(this.#queueOf(this.#target) ?? [])].flatMap((query) => {
      const known = this.#known.get(query);
      return known?.reason == null ? [] : [{ query, queryClass: known.submitted.queryClass, waitedFor: known.reason }];
    });
  }

  /** With the one that is being admitted; the reserved group of coordinator-only queries counts nothing. */
  #loadOf(group: string): number {
    if (group === EMPTY_GROUP) return 0;
    const controller = this.#oneQueuePerPool ? null : this.#submitted?.coordinator;
    const others = [...this.#known.values()].filter(
      (k) => k.admitted?.group === group && (controller === null || k.submitted.coordinator === controller),
    );
    return others.length + 1;
  }

  #around(at: number, pool: string): Surroundings {
    const { running, memory } = this.#poolOf(pool);
    let queued = 0;
    for (const [key, queue] of this.#queues) if (key === pool || key.startsWith(`${pool} `)) queued += queue.size;
    return {
      at,
      running,
      queued,
      memory,
      admittedOn: new Map([...this.#hostMemory].sort(([a], [b]) => (a < b ? -1 : 1))),
    };
  }
}

const newPart = (at: number): PartOfHost => ({
  instances: 0,
  startedAt: at,
  finishedAt: null,
  open: 0,
  peak: null,
  spilled: null,
  error: null,
});

/** MEM-11. */
function amountOn(host: string, { submitted, admitted }: KnownQuery): number {
  if (admitted === null) return 0;
  return host === submitted.coordinator ? admitted.onCoordinator : admitted.perHost;
}
