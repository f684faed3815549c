/**
 * Where first attempts come from: one source for each line of `arrivals`, each with its requests in order of
 * time and a number for each request.
 *
 * Open sources know their next moment by themselves. Closed ones (clients, and trace rows that waited for
 * an answer) learn it from `followUp`, which says what comes after a request is over.
 */
import type { Arrival } from "../config/scenario.ts";
import { ln } from "../core/exact-math.ts";
import { type Philox, philoxFor, type Xoshiro128, xoshiroFor } from "../core/random.ts";
import { draw, wholeMicros } from "./draw.ts";

export interface Source {
  /** Next moment that is known, Infinity: none, or none yet. */
  readonly at: number;
  /** Number of the request that is due then. */
  readonly ordinal: number;
  /** Goes on to the one after it. */
  advance(): void;
  /** Requests that start because this one is over; none for open traffic. */
  followUp(ordinal: number, at: number): readonly FollowUp[];
  /** Whether `followUp` of this request could give something. */
  canFollow(ordinal: number): boolean;
}

export interface FollowUp {
  readonly ordinal: number;
  readonly at: number;
}

/** `key` names the source's random streams: what is written in another line of the scenario has no part in it. */
export function sourceOf(arrival: Arrival, seed: number, replication: number, key: string): Source {
  switch (arrival.kind) {
    case "burst":
      return new BurstSource(arrival);
    case "every":
      return new RegularSource(arrival);
    case "rate":
      return new PoissonSource(arrival, xoshiroFor(seed, replication, `arrivals/${key}`));
    case "clients":
      return new ClientsSource(arrival, philoxFor(seed, `think/${key}`), replication);
    case "trace":
      return new TraceSource(arrival);
  }
}

const NEVER = Number.POSITIVE_INFINITY;
const NOTHING: readonly FollowUp[] = [];

type ArrivalOf<K extends Arrival["kind"]> = Extract<Arrival, { readonly kind: K }>;

class BurstSource implements Source {
  readonly #arrival: ArrivalOf<"burst">;
  ordinal = 0;
  at: number;

  constructor(arrival: ArrivalOf<"burst">) {
    this.#arrival = arrival;
    this.at = arrival.from;
  }

  advance(): void {
    const { from, count, within } = this.#arrival;
    this.ordinal++;
    this.at = this.ordinal < count ? wholeMicros(from + (within * this.ordinal) / count) : NEVER;
  }

  followUp(): readonly FollowUp[] {
    return NOTHING;
  }

  canFollow(): boolean {
    return false;
  }
}

class RegularSource implements Source {
  readonly #arrival: ArrivalOf<"every">;
  ordinal = 0;
  at: number;

  constructor(arrival: ArrivalOf<"every">) {
    this.#arrival = arrival;
    this.at = arrival.from;
  }

  advance(): void {
    const { from, to, every, count } = this.#arrival;
    this.ordinal++;
    const at = wholeMicros(from + every * this.ordinal);
    this.at = this.ordinal < count && at < to ? at : NEVER;
  }

  followUp(): readonly FollowUp[] {
    return NOTHING;
  }

  canFollow(): boolean {
    return false;
  }
}

const HOUR_MS = 3_600_000;

/**
 * Poisson arrivals, with a rate that may differ from hour to hour: unit-rate moments are laid on the
 * cumulated rate and read off on the time axis, so a changed rate moves each arrival and adds no draw.
 */
class PoissonSource implements Source {
  readonly #arrival: ArrivalOf<"rate">;
  readonly #draws: Xoshiro128;
  readonly #perMs: number;
  /** Exact moment of the last arrival; `at` is that in whole microseconds. */
  #moment: number;
  ordinal = -1;
  at = 0;

  constructor(arrival: ArrivalOf<"rate">, draws: Xoshiro128) {
    this.#arrival = arrival;
    this.#draws = draws;
    this.#perMs = arrival.perSecond / 1000;
    this.#moment = arrival.from;
    this.advance();
  }

  advance(): void {
    const amount = -ln(this.#draws.uniform());
    const { day, to } = this.#arrival;
    this.#moment = day === null ? this.#moment + amount / this.#perMs : this.#after(amount, day);
    const at = wholeMicros(this.#moment);
    this.ordinal++;
    this.at = at < to ? at : NEVER;
  }

  /** When the cumulated rate has grown by `amount`. Hours without traffic are passed over. */
  #after(amount: number, day: readonly number[]): number {
    let left = amount;
    let moment = this.#moment;
    while (moment < this.#arrival.to) {
      const hour = Math.floor(moment / HOUR_MS);
      const rate = this.#perMs * day[hour % day.length]!;
      const end = (hour + 1) * HOUR_MS;
      const room = (end - moment) * rate;
      if (left <= room && rate > 0) return moment + left / rate;
      left -= room;
      moment = end;
    }
    return NEVER;
  }

  followUp(): readonly FollowUp[] {
    return NOTHING;
  }

  canFollow(): boolean {
    return false;
  }
}

/** Request number = round x clients + client. */
class ClientsSource implements Source {
  readonly #arrival: ArrivalOf<"clients">;
  readonly #thinking: Philox;
  readonly #replication: number;
  readonly #firsts: readonly FollowUp[];
  #next = 0;

  constructor(arrival: ArrivalOf<"clients">, thinking: Philox, replication: number) {
    this.#arrival = arrival;
    this.#thinking = thinking;
    this.#replication = replication;
    this.#firsts = Array.from({ length: arrival.clients }, (_, client) => this.#asks(client, arrival.from))
      .filter((first) => first.at < arrival.to)
      .sort((a, b) => a.at - b.at || a.ordinal - b.ordinal);
  }

  get at(): number {
    return this.#firsts[this.#next]?.at ?? NEVER;
  }

  get ordinal(): number {
    return this.#firsts[this.#next]?.ordinal ?? -1;
  }

  advance(): void {
    this.#next++;
  }

  followUp(ordinal: number, at: number): readonly FollowUp[] {
    if (!this.canFollow(ordinal)) return NOTHING;
    const next = this.#asks(ordinal + this.#arrival.clients, at);
    return next.at < this.#arrival.to ? [next] : NOTHING;
  }

  canFollow(ordinal: number): boolean {
    const { clients, requests } = this.#arrival;
    return Math.floor(ordinal / clients) + 1 < requests;
  }

  #asks(ordinal: number, after: number): FollowUp {
    this.#thinking.at(ordinal, 0, this.#replication, 0);
    return { ordinal, at: wholeMicros(after + draw(this.#arrival.think, this.#thinking.first())) };
  }
}

/** Request number = row number. Rows that waited for an answer follow the row they waited for. */
class TraceSource implements Source {
  readonly #arrival: ArrivalOf<"trace">;
  readonly #waiting = new Map<number, number[]>();
  ordinal = -1;
  at = NEVER;

  constructor(arrival: ArrivalOf<"trace">) {
    this.#arrival = arrival;
    arrival.rows.forEach((row, i) => {
      if (row.after === null) return;
      const waiting = this.#waiting.get(row.after.row);
      if (waiting === undefined) this.#waiting.set(row.after.row, [i]);
      else waiting.push(i);
    });
    this.advance();
  }

  advance(): void {
    const { rows, from, to } = this.#arrival;
    do this.ordinal++;
    while (rows[this.ordinal]?.after);
    const row = rows[this.ordinal];
    const at = row === undefined ? NEVER : wholeMicros(from + row.at);
    this.at = at < to ? at : NEVER;
  }

  followUp(ordinal: number, at: number): readonly FollowUp[] {
    const { rows, to } = this.#arrival;
    const waiting = this.#waiting.get(ordinal) ?? [];
    return waiting
      .map((row) => ({ ordinal: row, at: wholeMicros(at + (rows[row]?.after?.think ?? 0)) }))
      .filter((next) => next.at < to);
  }

  canFollow(ordinal: number): boolean {
    return this.#waiting.has(ordinal);
  }
}
