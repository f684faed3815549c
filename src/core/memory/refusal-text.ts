/**
 * What the product prints when memory is refused: R5's text, "Memory limit exceeded" (memory 1.5) and code 106
 * (R17). Made when somebody reads it, from the figures of the refusal and the trackers as they are then.
 *
 * Sizes are in the backend's format, with a blank before the unit.
 */
import { prettyBytes } from "../pretty.ts";
import {
  F_ID_0,
  F_ID_1,
  F_ID_2,
  F_ID_3,
  F_KIND,
  F_LIMIT,
  F_MEM_CONSUMED,
  F_MEM_LIMIT,
  F_MEM_PARENT,
  F_MEM_PEAK,
  F_PARENT,
  F_RESERVATION,
  get,
  KIND_CLIENT,
  KIND_EXCHANGE,
  KIND_INSTANCE,
  KIND_QUERY,
  KIND_ROOT,
  KIND_UNCLAIMED,
  type LedgerView,
  NONE,
  type Refusal,
  ROOT,
  TRACKER_FRESH,
} from "./ledger-layout.ts";
import { HARD, spareCapacity } from "./mem-trackers.ts";
import { queryOf } from "./tracker-records.ts";

const TOP_QUERIES = 5;

/** R5, or the text of the MemTracker that said no. */
export function refusalText(v: LedgerView, r: Refusal, backend: string): string {
  switch (r.kind) {
    case "none":
      return "";
    case "denied":
      return "Debug random failure mode is turned on: reservation increase denied.";
    case "mem":
      return memLimitExceededText(v, r.asker, r.asked, backend, INCREASE_FAILED);
    default:
      return `${reservationText(v, r)}\nThe top ${TOP_QUERIES} queries that allocated memory under this tracker are:\n${topQueries(v, r.tracker)}`;
  }
}

/** The same, with R5's first line only: for whoever is told of every refusal. */
export const shortRefusalText = (v: LedgerView, r: Refusal, backend: string): string =>
  r.kind === "reservation" ? reservationText(v, r) : refusalText(v, r, backend);

export const INCREASE_FAILED = "Could not allocate memory while trying to increase reservation.";

function reservationText(v: LedgerView, r: Refusal): string {
  const label = r.tracker === ROOT ? "Process" : labelOf(v, r.tracker);
  return `Failed to increase reservation by ${prettyBytes(r.asked)} because it would exceed the applicable reservation limit for the "${label}" ReservationTracker: reservation_limit=${prettyBytes(r.limit)} reservation=${prettyBytes(r.reservation)} used_reservation=${prettyBytes(r.used)} child_reservations=${prettyBytes(r.child)}`;
}

/** Code 7, the lines of memory 1.5 in their order. `t` is who could not allocate `asked` bytes (0: unknown). */
export function memLimitExceededText(v: LedgerView, t: number, asked: number, backend: string, detail: string): string {
  const query = queryOf(v, t);
  const lines: string[] = [];
  if (detail !== "") lines.push(detail);
  const who = query === NONE ? t : query;
  if (asked > 0) lines.push(`${labelOf(v, who)} could not allocate ${prettyBytes(asked)} without exceeding limit.`);
  lines.push(`Error occurred on backend ${backend}`);
  const processSpare = spareCapacity(v, ROOT, HARD);
  if (Number.isFinite(processSpare)) lines.push(`Memory left in process limit: ${prettyBytes(processSpare)}`);
  if (query !== NONE && get(v, query, F_MEM_LIMIT) >= 0) {
    const left = get(v, query, F_MEM_LIMIT) - get(v, query, F_MEM_CONSUMED);
    lines.push(`Memory left in query limit: ${prettyBytes(left)}`);
  }
  const usage = query === NONE ? "" : usageTree(v, query, 0, Number.POSITIVE_INFINITY).join("\n");
  // No line break between the two trees: `Process:` follows the last query line directly.
  const host = query === NONE || processSpare < asked ? usageTree(v, ROOT, 0, 1).join("\n") : "";
  lines.push(usage + host);
  return `Memory limit exceeded: ${lines.join("\n")}`;
}

/** Code 106 (R17); `why` is one of the texts above, and nothing stands between it and the advice. */
export const minimumUnavailableText = (min: number, backend: string, query: string, why: string): string =>
  `Failed to get minimum memory reservation of ${prettyBytes(min)} on daemon ${backend} for query ${query} due to following error: ${why}Memory is likely oversubscribed. Reducing query concurrency or configuring admission control may help avoid this error.`;

/** O2: why an operator may not spill, raised as code 7. */
export const NO_SCRATCH_LIMIT = "Could not free memory by spilling to disk: scratch_limit is 0";
export const SPILLING_DISABLED =
  "Could not free memory by spilling to disk: spilling was disabled by planner. Re-enable spilling by setting the query option DISABLE_UNSAFE_SPILLS=false";

/** The MemTracker's name as it is printed. */
export function labelOf(v: LedgerView, t: number): string {
  switch (get(v, t, F_KIND)) {
    case KIND_ROOT:
      return "Process";
    case KIND_QUERY:
      return `Query(${queryIdOf(v, t)})`;
    case KIND_UNCLAIMED:
      return "Unclaimed reservations";
    case KIND_INSTANCE:
      return `Fragment ${instanceIdOf(v, t)}`;
    case KIND_EXCHANGE:
      return "EXCHANGE_NODE";
    case KIND_CLIENT:
      return `Operator (id=${get(v, t, F_ID_0)})`;
    default:
      return labelOf(v, get(v, t, F_PARENT));
  }
}

export function queryIdOf(v: LedgerView, query: number): string {
  const part = (field: number): string => get(v, query, field).toString(16).padStart(8, "0");
  return `${part(F_ID_0)}${part(F_ID_1)}:${part(F_ID_2)}${part(F_ID_3)}`;
}

/** An instance's id is its query's with the instance number added to the low half. */
function instanceIdOf(v: LedgerView, instance: number): string {
  const [high, low] = queryIdOf(v, queryOf(v, instance)).split(":");
  return `${high}:${(BigInt(`0x${low}`) + BigInt(get(v, instance, F_ID_0))).toString(16).padStart(16, "0")}`;
}

/** One line per MemTracker, two more blanks of indent a level, down to `depth` levels below. */
function usageTree(v: LedgerView, t: number, level: number, depth: number): string[] {
  const lines = [`${"  ".repeat(level)}${usageLine(v, t)}`];
  if (depth === 0) return lines;
  for (const child of childrenOf(v, t)) lines.push(...usageTree(v, child, level + 1, depth - 1));
  return lines;
}

function usageLine(v: LedgerView, t: number): string {
  const total = get(v, t, F_MEM_CONSUMED);
  const limit = get(v, t, F_MEM_LIMIT);
  const reservation = get(v, t, F_RESERVATION);
  const reservationLimit = get(v, t, F_LIMIT);
  let line = `${labelOf(v, t)}:`;
  if (limit >= 0 && total > limit) line += " memory limit exceeded.";
  if (limit >= 0) line += ` Limit=${prettyBytes(limit)}`;
  if (t !== ROOT) {
    line += ` Reservation=${prettyBytes(reservation)}`;
    if (reservationLimit >= 0) line += ` ReservationLimit=${prettyBytes(reservationLimit)}`;
    line += ` OtherMemory=${prettyBytes(total - reservation)}`;
  }
  return `${line} Total=${prettyBytes(total)} Peak=${prettyBytes(get(v, t, F_MEM_PEAK))}`;
}

function topQueries(v: LedgerView, t: number): string {
  const query = queryOf(v, t);
  const queries = query === NONE ? childrenOf(v, ROOT).filter((c) => get(v, c, F_KIND) === KIND_QUERY) : [query];
  queries.sort((a, b) => get(v, b, F_MEM_CONSUMED) - get(v, a, F_MEM_CONSUMED) || a - b);
  return queries
    .slice(0, TOP_QUERIES)
    .map((q) => usageLine(v, q))
    .join("\n");
}

/** Trackers whose MemTracker hangs below t's, in record order; "Unclaimed reservations" is left out at zero. */
function childrenOf(v: LedgerView, t: number): number[] {
  const found: number[] = [];
  for (let i = 1; i < v.f64[TRACKER_FRESH]!; i++) {
    const kind = get(v, i, F_KIND);
    if (kind < KIND_QUERY || kind > KIND_EXCHANGE || get(v, i, F_MEM_PARENT) !== t) continue;
    if (kind === KIND_UNCLAIMED && get(v, i, F_MEM_CONSUMED) === 0) continue;
    found.push(i);
  }
  return found;
}
