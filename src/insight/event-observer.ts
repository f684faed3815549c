/**
 * Feeds an observer from the stream of events: the same folds serve live runs, simulations and records files.
 *
 * Remembers one small record for each query that has not ended, and nothing of those that have.
 */
import type { EventOf, RunEvent } from "../core/events.ts";
import type { NameKind, QueryFacts, RunObserver } from "../core/run-observer.ts";

interface LiveQuery extends QueryFacts {
  readonly coordinatorAddress: string;
  admission: EventOf<"admitted"> | null;
}

export class EventObserver {
  readonly #observer: RunObserver;
  readonly #numbers: Readonly<Record<NameKind, Map<string, number>>> = {
    pool: new Map(),
    class: new Map(),
    user: new Map(),
    coordinator: new Map(),
  };
  readonly #queries = new Map<string, LiveQuery>();
  #last = 0;

  constructor(observer: RunObserver) {
    this.#observer = observer;
  }

  /** Queries that have begun and not ended. */
  get live(): number {
    return this.#queries.size;
  }

  add(event: RunEvent): void {
    this.#last = event.at;
    if (event.kind === "submitted") this.#submitted(event);
    else if ("query" in event) {
      const q = this.#queries.get(event.query);
      // A stream that was cut off at its beginning has ends without beginnings.
      if (q !== undefined) this.#ofQuery(event, q);
    }
  }

  /** The stream is over. */
  end(at: number = this.#last): void {
    this.#observer.ended(Math.max(at, this.#last));
  }

  #submitted(event: EventOf<"submitted">): void {
    const q: LiveQuery = {
      pool: this.#numberOf("pool", event.pool),
      queryClass: this.#numberOf("class", event.queryClass),
      user: this.#numberOf("user", event.user),
      coordinator: this.#numberOf("coordinator", event.coordinator),
      intended: event.intended,
      firstIntended: event.firstIntended,
      attempt: event.attempt,
      queryId: event.query,
      coordinatorAddress: event.coordinator,
      admission: null,
    };
    this.#queries.set(event.query, q);
    this.#observer.submitted(event.at, q);
  }

  #ofQuery(event: RunEvent, q: LiveQuery): void {
    const o = this.#observer;
    switch (event.kind) {
      case "unresolved":
        o.unresolved(event.at, q, event.error);
        this.#queries.delete(event.query);
        break;
      case "queued":
        o.queued(event.at, q, event.reason);
        break;
      case "stillQueued":
        o.headWaits(event.at, q, event.reason);
        break;
      case "admitted":
        q.admission = event;
        o.admitted(event.at, q, event.path, event.waited, event.cluster);
        break;
      case "hostsChecked":
        o.hostsChecked(event.at, q, event.slots, event.hostMemory);
        break;
      case "viewUsed":
        o.viewUsed(event.at, q, event.ageMs, event.isOverOnAHost);
        break;
      case "rejected":
        o.rejected(event.at, q, event.reason, event.waited, event.fromQueue);
        this.#queries.delete(event.query);
        break;
      case "timedOut":
        o.timedOut(event.at, q, event.waited, event.reason);
        this.#queries.delete(event.query);
        break;
      case "cancelled":
        o.cancelled(event.at, q, event.waited, event.wasQueued);
        this.#queries.delete(event.query);
        break;
      case "spilled":
        o.spilled(event.at, q, event.bytes);
        break;
      case "backendsReleased":
        o.memoryReleased(event.at, q, releasedBytes(event, q));
        break;
      case "released":
        o.released(event.at, q, event.state, event.at - (q.admission?.at ?? event.at), event.peak, event.error);
        this.#queries.delete(event.query);
        break;
      default:
        break;
    }
  }

  #numberOf(kind: NameKind, name: string): number {
    const numbers = this.#numbers[kind];
    const known = numbers.get(name);
    if (known !== undefined) return known;
    const number = numbers.size;
    numbers.set(name, number);
    this.#observer.named(kind, number, name);
    return number;
  }
}

/** The coordinator's backend gives back its own share, the others the executors' (MEM-11). */
function releasedBytes(event: EventOf<"backendsReleased">, q: LiveQuery): number {
  if (q.admission === null) return 0;
  const { perHost, onCoordinator } = q.admission;
  return event.hosts.reduce((sum, host) => sum + (host === q.coordinatorAddress ? onCoordinator : perHost), 0);
}
