/**
 * How often each kind of query came in the last ten minutes, at each coordinator (insight 5.1).
 *
 * In one FIFO nobody who comes later can pass; where several queues share what they wait for, those who come
 * later to another queue can.
 */
import type { RequestShape } from "../../core/admission/request.ts";
import type { Instant } from "../../core/units.ts";
import type { ArrivalRate } from "./eta-snapshot.ts";

const RECENT_MS = 600_000;

interface Kind extends Omit<ArrivalRate, "perMs" | "user" | "shape"> {
  /** As the last one had them. */
  user: string;
  shape: RequestShape;
  /** Moments of the recent ones, in order, from `from` on. */
  readonly times: number[];
  from: number;
}

export class ArrivalBook {
  readonly #kinds = new Map<string, Kind>();
  #first: number | null = null;

  add(at: number, request: Omit<ArrivalRate, "perMs">): void {
    this.#first ??= at;
    const { pool, queryClass, coordinator, user, shape } = request;
    const key = `${pool}\n${queryClass}\n${coordinator}`;
    let kind = this.#kinds.get(key);
    if (kind === undefined) {
      kind = { pool, queryClass, coordinator, user, shape, times: [], from: 0 };
      this.#kinds.set(key, kind);
    }
    kind.user = user;
    kind.shape = shape;
    kind.times.push(at);
    forgetBefore(kind, at - RECENT_MS);
  }

  /** Over ten minutes, or since the first request if that is less long ago; in a fixed order. */
  rates(now: Instant): ArrivalRate[] {
    const span = Math.min(RECENT_MS, now - (this.#first ?? now));
    if (span <= 0) return [];
    const found: ArrivalRate[] = [];
    for (const kind of this.#kinds.values()) {
      forgetBefore(kind, now - RECENT_MS);
      const { pool, queryClass, coordinator, user, shape } = kind;
      const count = kind.times.length - kind.from;
      if (count > 0) found.push({ pool, queryClass, coordinator, user, shape, perMs: count / span });
    }
    return found;
  }
}

/** Cut now and then only, so that forgetting one costs nothing. */
function forgetBefore(kind: Kind, moment: number): void {
  const { times } = kind;
  while (kind.from < times.length && times[kind.from]! < moment) kind.from++;
  if (kind.from * 2 < times.length) return;
  times.splice(0, kind.from);
  kind.from = 0;
}
