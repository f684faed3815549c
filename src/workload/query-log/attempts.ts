/**
 * Attempts that belong together, and clients that wait for their answer (insight 4.3 items 2 and 6).
 *
 * A query that was turned away and came again is one wish, not two: counting both as demand would make the
 * next configuration serve people who would not have asked twice. And a dashboard that sends its next query
 * when the last one is done sends more when the cluster gets faster: replayed open it overstates what more
 * capacity brings.
 */
import { isAdmitted, isRefused, type LoggedQuery } from "./logged-query.ts";

const RETRY_WITHIN = 60e6;

export interface Attempts {
  /** For each query, the index of its request's first attempt; its own index for a first attempt. */
  readonly first: Int32Array;
  readonly requests: number;
  readonly attempts: number;
  /** Refused attempts that were followed by another one, among all refused ones. */
  readonly retriedShare: number;
  /** Microseconds from the end of a refused attempt to the next one, rising. */
  readonly delays: readonly number[];
}

/**
 * `queries` in order of arrival. Exports of our own runs put the request's id where others have the session;
 * elsewhere a retry shows as the same statement of the same user and pool that *started* after the refused one
 * had its answer. Members of one burst start before that, while the first of them is still being planned.
 */
export function attemptsOf(queries: readonly LoggedQuery[], own: boolean): Attempts {
  const first = new Int32Array(queries.length);
  const delays: number[] = [];
  /** Last refused attempt by who asked what. */
  const open = new Map<string, { readonly index: number; readonly end: number }>();
  let refused = 0;
  let requests = 0;
  queries.forEach((q, i) => {
    const key = own ? q.sessionId : q.fingerprint === null ? null : `${q.user}\n${q.pool}\n${q.fingerprint}`;
    const before = key === null ? undefined : open.get(key);
    const delay = before === undefined ? 0 : (own ? arrivalOf(q) : q.start) - before.end;
    if (key !== null && before !== undefined && delay >= 0 && (own || delay <= RETRY_WITHIN)) {
      first[i] = first[before.index]!;
      delays.push(delay);
      open.delete(key);
    } else {
      first[i] = i;
      requests++;
    }
    if (isRefused(q.outcome)) refused++;
    // Elsewhere only a refused query's successor is surely a retry; our own log says which attempts belong together.
    if (key !== null && (own || isRefused(q.outcome))) open.set(key, { index: i, end: endOf(q) });
  });
  return {
    first,
    requests,
    attempts: queries.length,
    retriedShare: refused === 0 ? 0 : delays.length / refused,
    delays: delays.sort((a, b) => a - b),
  };
}

const PROMPT = 1e6;
const PROMPT_SHARE = 0.3;
const FEWEST_STATEMENTS = 5;

export interface Predecessor {
  /** Index of the connection's previous query. */
  readonly index: number;
  /** Microseconds between its end and this one's arrival. */
  readonly think: number;
}

/** For each query its predecessor on a connection that waits for answers; null for open traffic. */
export function predecessorsOf(queries: readonly LoggedQuery[]): (Predecessor | null)[] {
  const byConnection = new Map<string, number[]>();
  queries.forEach((q, i) => {
    if (q.sessionId === null) return;
    const list = byConnection.get(q.sessionId);
    if (list === undefined) byConnection.set(q.sessionId, [i]);
    else list.push(i);
  });
  const predecessors = new Array<Predecessor | null>(queries.length).fill(null);
  for (const indexes of byConnection.values()) {
    if (indexes.length < FEWEST_STATEMENTS) continue;
    const thinks = indexes.slice(1).map((i, k) => arrivalOf(queries[i]!) - endOf(queries[indexes[k]!]!));
    const prompt = thinks.filter((t) => t >= 0 && t <= PROMPT).length;
    if (prompt <= PROMPT_SHARE * (indexes.length - 1)) continue;
    thinks.forEach((think, k) => {
      // Overlapping statements of one connection did not wait for each other.
      if (think >= 0) predecessors[indexes[k + 1]!] = { index: indexes[k]!, think };
    });
  }
  return predecessors;
}

export const arrivalOf = (q: LoggedQuery): number => q.start + (q.submitted ?? 0);

/** When the client had its answer. */
function endOf(q: LoggedQuery): number {
  if (!isAdmitted(q.outcome)) return q.start + (q.completedAdmission ?? q.submitted ?? 0);
  return q.start + (q.unregistered ?? q.lastRow ?? q.completedAdmission ?? 0);
}
