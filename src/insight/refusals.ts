/**
 * Why queries got no answer, refused or failed, grouped for people: one line for each kind of reason, with how
 * many, the widest figures, and the first query it happened to. Refused early are those that never reached a
 * pool's rules.
 */
import { type QueueReason, queueReasonText, type RejectReason, rejectReasonText } from "../core/admission/reasons.ts";

/** How a query ended without an answer: before it was admitted, or after. */
export type RefusalKind = "rejected" | "timedOut" | "failed";

export interface Refusal {
  readonly kind: RefusalKind;
  /** Empty for a failure. */
  readonly rule: string;
  readonly count: number;
  /** The product's text for the first of them. */
  readonly text: string;
  /** Of "queue is not empty (size N)": the smallest and largest N. */
  readonly sizes: { readonly least: number; readonly most: number } | null;
  readonly firstAtMs: number;
  readonly firstQuery: string;
}

/** Requests of one class that ended before admission, all with this error. */
export interface EarlyRefusal {
  readonly queryClass: string;
  readonly count: number;
  /** What the client reads. */
  readonly error: string;
  /** The first one's; with other users the text is another. */
  readonly user: string;
  /** Empty: it found none. */
  readonly pool: string;
  readonly firstAtMs: number;
  readonly firstQuery: string;
}

/** Errors name users, and there can be many of them: what is beyond is only counted, by the run as a whole. */
const MOST_EARLY = 100;

export class EarlyRefusals {
  readonly #groups = new Map<string, { -readonly [F in keyof EarlyRefusal]: EarlyRefusal[F] }>();

  /** `first` is asked once for each kind. */
  add(queryClass: string, error: string, first: () => Omit<EarlyRefusal, "queryClass" | "error" | "count">): void {
    const key = `${queryClass}\u0000${error}`;
    const group = this.#groups.get(key);
    if (group !== undefined) group.count++;
    else if (this.#groups.size < MOST_EARLY) this.#groups.set(key, { queryClass, count: 1, error, ...first() });
  }

  /** Most frequent first. */
  list(): EarlyRefusal[] {
    return [...this.#groups.values()].sort((a, b) => b.count - a.count);
  }
}

interface Group {
  count: number;
  readonly text: string;
  least: number;
  most: number;
  readonly firstAtMs: number;
  readonly firstQuery: string;
}

/** Different rules are few, so this is small however many queries are refused. */
export class Refusals {
  readonly #groups = new Map<string, Group>();

  rejected(at: number, query: () => string, reason: RejectReason): void {
    this.#add(`rejected ${reason.rule}`, at, query, () => rejectReasonText(reason), 0);
  }

  timedOut(at: number, query: () => string, reason: QueueReason): void {
    const size = reason.rule === "ADM-1" ? reason.queued : 0;
    this.#add(`timedOut ${reason.rule}`, at, query, () => queueReasonText(reason), size);
  }

  /** Grouped by the first line of the error, whatever ids, hosts and figures it names. */
  failed(at: number, query: () => string, error: string): void {
    const [line = ""] = error.split("\n");
    const alike = line.replace(/[0-9a-f]{16}:[0-9a-f]{16}|[\w.-]+:\d+|\d+(\.\d+)?/g, "#");
    this.#add(`failed ${alike.replaceAll(" ", "_")}`, at, query, () => line, 0);
  }

  #add(key: string, at: number, query: () => string, text: () => string, size: number): void {
    const group = this.#groups.get(key);
    if (group === undefined) {
      const made = { count: 1, text: text(), least: size, most: size, firstAtMs: at, firstQuery: query() };
      this.#groups.set(key, made);
      return;
    }
    group.count++;
    if (size < group.least) group.least = size;
    if (size > group.most) group.most = size;
  }

  /** Most frequent first. */
  list(): Refusal[] {
    return [...this.#groups]
      .map(([key, g]) => {
        const [kind, rule] = key.split(" ") as [RefusalKind, string];
        const sizes = rule === "ADM-1" ? { least: g.least, most: g.most } : null;
        return {
          kind,
          rule: kind === "failed" ? "" : rule,
          count: g.count,
          text: g.text,
          sizes,
          firstAtMs: g.firstAtMs,
          firstQuery: g.firstQuery,
        };
      })
      .sort((a, b) => b.count - a.count);
  }
}
