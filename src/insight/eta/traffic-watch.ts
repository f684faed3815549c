/**
 * What predictions learn from a run while it goes on: how long queries held their places, how often they come, and
 * who has ended so recently that a controller may not know it (insight 5.1, 5.2). Nothing after `until` is listened to.
 */
import type { StatestoreSpec } from "../../config/scenario.ts";
import type { FinishState } from "../../core/events.ts";
import type { NameKind, QueryFacts } from "../../core/run-observer.ts";
import type { Instant } from "../../core/units.ts";
import type { SimQuery } from "../../sim/sim-query.ts";
import { ArrivalBook } from "./arrival-book.ts";
import { DecisionObserver } from "./decision-observer.ts";
import { type EndedQuery, heldBy, queryOf, type RecentTraffic, viewSpanOf } from "./eta-snapshot.ts";
import { HoldBook } from "./hold-book.ts";

/** So many ended ones are looked through for old ones. */
const MANY = 256;

export class TrafficWatch extends DecisionObserver {
  readonly holds = new HoldBook();
  readonly #arrivals = new ArrivalBook();
  readonly #until: number;
  readonly #viewSpan: number;
  /** In order; some older than the span. */
  #ended: EndedQuery[] = [];
  readonly #pools: string[] = [];
  readonly #classes: string[] = [];

  constructor(statestore: StatestoreSpec, until: number = Number.POSITIVE_INFINITY) {
    super();
    this.#viewSpan = viewSpanOf(statestore);
    this.#until = until;
  }

  recentAt(now: Instant): RecentTraffic {
    this.#forgetBefore(now - this.#viewSpan);
    return { ended: this.#ended, arrivals: this.#arrivals.rates(now) };
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
    if (at > this.#until) return;
    this.holds.add(this.#pools[q.pool] ?? "", this.classOf(q), hold);
    const { admission } = q as SimQuery;
    if (this.#ended.length >= MANY) this.#forgetBefore(at - this.#viewSpan);
    this.#ended.push({ ...queryOf(admission, this.classOf(q)), ...heldBy(admission), endedAt: at as Instant });
  }

  #forgetBefore(moment: number): void {
    this.#ended = this.#ended.filter((q) => q.endedAt > moment);
  }
}
