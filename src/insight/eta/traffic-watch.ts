/**
 * What predictions learn from a run while it goes on: how long queries held their places, and how often they
 * come (insight 5.1, 5.2). Nothing after `until` is listened to.
 */
import type { FinishState } from "../../core/events.ts";
import type { NameKind, QueryFacts } from "../../core/run-observer.ts";
import type { Instant } from "../../core/units.ts";
import type { SimQuery } from "../../sim/sim-query.ts";
import { SilentObserver } from "../silent-observer.ts";
import { ArrivalBook } from "./arrival-book.ts";
import type { ArrivalRate } from "./eta-snapshot.ts";
import { HoldBook } from "./hold-book.ts";

export class TrafficWatch extends SilentObserver {
  readonly holds = new HoldBook();
  readonly #arrivals = new ArrivalBook();
  readonly #until: number;
  readonly #pools: string[] = [];
  readonly #classes: string[] = [];

  constructor(until: number = Number.POSITIVE_INFINITY) {
    super();
    this.#until = until;
  }

  ratesAt(now: Instant): ArrivalRate[] {
    return this.#arrivals.rates(now);
  }

  classOf(q: QueryFacts): string {
    return this.#classes[q.queryClass] ?? "";
  }

  override named(kind: NameKind, index: number, name: string): void {
    if (kind === "pool") this.#pools[index] = name;
    else if (kind === "class") this.#classes[index] = name;
  }

  override submitted(at: number, q: QueryFacts): void {
    const { pool, coordinator, user, shape, unresolved } = (q as SimQuery).submission;
    if (at > this.#until || unresolved !== null) return;
    this.#arrivals.add(at, { pool, coordinator, user, shape, queryClass: this.classOf(q) });
  }

  override released(at: number, q: QueryFacts, _state: FinishState, hold: number): void {
    if (at <= this.#until) this.holds.add(this.#pools[q.pool] ?? "", this.classOf(q), hold);
  }
}
