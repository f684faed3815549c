/**
 * One statement as a log tells it: the record that every form of log is read into (insight 4.1, 4.2).
 *
 * `null` means the log does not say, which is not 0. Times are whole microseconds; event times count from the
 * start of the query, and an event that never happened is null too (the table writes 0 for it). Nothing here
 * carries statement text, plan or status beyond what a reader of the report needs.
 */

import { EMPTY_GROUP } from "../../core/cluster/backend.ts";

/** How admission ended it; `none`: admission never saw it (DDL and the like); `waiting`: still in the queue. */
export type LoggedOutcome =
  | "immediately"
  | "trivially"
  | "fromQueue"
  | "rejected"
  | "timedOut"
  | "cancelledInQueue"
  | "waiting"
  | "none";

/** The reason of a rejection, from the fixed texts of the status (admission 3). */
export type RejectionClass = "queueFull" | "memory" | "reservation" | "disabled" | "quota" | "other";

/** How an admitted one ended; `running`: not at all yet when the log was written. */
export type LoggedEnd = "finished" | "failed" | "cancelled" | "running";

export interface LoggedOptions {
  readonly memLimit: number;
  readonly memLimitExecutors: number;
  readonly memLimitCoordinators: number;
  readonly requestPool: string | null;
}

/** What exports of our own runs carry as cluster: such a log is whole, also at its end. */
export const OWN_CLUSTER_ID = "waterhole";

export const isLogWriterText = (sql: string | null): boolean =>
  sql !== null &&
  /^\s*(?:\/\*.*?\*\/\s*)?(?:upsert|insert)\s+into\s+(?:table\s+)?`?sys`?\.`?impala_query_log/i.test(sql);

export const NO_OPTIONS: LoggedOptions = {
  memLimit: 0,
  memLimitExecutors: 0,
  memLimitCoordinators: 0,
  requestPool: null,
};

export interface LoggedQuery {
  readonly line: number;
  readonly queryId: string;
  /** `--cluster_id`; our own exports say OWN_CLUSTER_ID. */
  readonly clusterId: string | null;
  readonly sessionId: string | null;
  readonly user: string;
  readonly clientAddress: string | null;
  readonly coordinator: string | null;
  /** Empty when admission did not apply. */
  readonly pool: string;
  /** `QUERY`, `DML`, `DDL`, ... */
  readonly statementType: string;
  /** The product writing its own log: no demand of anybody's. */
  readonly isLogWriter: boolean;
  readonly fingerprint: string | null;
  readonly tables: readonly string[];
  /** Tables that the plan or profile says lack statistics; null: the log does not say. */
  readonly missingStats: readonly string[] | null;
  /** The log says that statistics are missing, without naming the table. */
  readonly statsMissing: boolean;

  /** Since 1970. */
  readonly start: number;
  readonly submitted: number | null;
  readonly completedAdmission: number | null;
  readonly firstRow: number | null;
  readonly lastRow: number | null;
  /** Or the end of the query where the log has no such event. */
  readonly unregistered: number | null;
  /** Admission resources returned, where the log has it (profiles). */
  readonly released: number | null;
  /** Waiting for the client to fetch. */
  readonly clientWait: number | null;

  readonly outcome: LoggedOutcome;
  readonly rejection: RejectionClass | null;
  readonly end: LoggedEnd;
  readonly failedForMemory: boolean;

  /** Planner's, per host and for a dedicated coordinator. */
  readonly estimate: number | null;
  readonly coordinatorEstimate: number | null;
  /** Largest minimum reservation of a host. */
  readonly reservation: number | null;
  readonly options: LoggedOptions;
  readonly clusterAdmitted: number | null;
  /** Coordinator included. */
  readonly backends: number | null;
  /** Where their number is not told: as many as it takes for the sum of the peaks that is. */
  readonly leastBackends: number | null;
  /** No executor took part, as its executor group says; null: the log has no groups, or it was never admitted. */
  readonly coordinatorOnly: boolean | null;
  /** Addresses with fragment instances. */
  readonly hosts: readonly string[] | null;
  readonly peakMax: number | null;
  readonly peakMin: number | null;
  readonly peakMean: number | null;
  readonly spilled: number | null;
  readonly executorSlots: number | null;
  readonly coordinatorSlots: number | null;
}

const OUTCOMES: Readonly<Record<string, LoggedOutcome>> = {
  "admitted immediately": "immediately",
  "admitted as a trivial query": "trivially",
  "admitted (queued)": "fromQueue",
  rejected: "rejected",
  "timed out (queued)": "timedOut",
  "cancelled (queued)": "cancelledInQueue",
  queued: "waiting",
};

/**
 * The outcome from the product's text, else from the status, which old releases and one console rely on.
 * `Unknown` is the Manager's word for statements that admission never saw. null: the text is none of them.
 */
export function outcomeOf(result: string | null, status: string | null): LoggedOutcome | null {
  if (result !== null && result.trim() !== "" && result.toLowerCase() !== "unknown")
    return OUTCOMES[result.trim().toLowerCase()] ?? null;
  if (status === null) return "none";
  if (/Admission for query exceeded timeout/.test(status)) return "timedOut";
  if (/Rejected query from pool/.test(status)) return "rejected";
  return "none";
}

export const isAdmitted = (o: LoggedOutcome): boolean => o === "immediately" || o === "trivially" || o === "fromQueue";

/** From the name of its executor group. */
export const isEmptyGroup = (group: string | null): boolean | null =>
  group === null || group === "" ? null : group === EMPTY_GROUP;

/** How many took part, as far as the log tells. */
export const knownBackends = (q: LoggedQuery): number | null => q.backends ?? q.leastBackends;

/** Lost at admission: demand that was not served (insight 4.3). */
export const isRefused = (o: LoggedOutcome): boolean => o === "rejected" || o === "timedOut";

export function rejectionOf(status: string | null): RejectionClass {
  const s = status ?? "";
  if (/queue full, limit=/.test(s)) return "queueFull";
  if (/minimum memory reservation/.test(s)) return "reservation";
  if (/request memory needed/.test(s)) return "memory";
  if (/disabled by (?:requests limit|pool max mem)|Invalid pool config/.test(s)) return "disabled";
  if (/current per-(?:user|group) load/.test(s)) return "quota";
  return "other";
}

/** Memory, not a user's Ctrl-C or a bad cast, ended it (memory 8). */
export const isMemoryFailure = (status: string | null): boolean =>
  status !== null &&
  /Memory limit exceeded|memory limit exceeded|Failed to get minimum memory reservation|over its memory limit|Scratch space limit|Could not create files in any configured scratch/i.test(
    status,
  );

/** `K=V,K=V` with sizes in bytes or with a unit; a value may be quoted and then hold commas. */
export function optionsOf(text: string | null): LoggedOptions {
  if (text === null) return NO_OPTIONS;
  const found = new Map<string, string>();
  for (const m of text.matchAll(/([A-Za-z_][A-Za-z_0-9]*)=("[^"]*"|[^,]*)/g))
    found.set((m[1] ?? "").toUpperCase(), (m[2] ?? "").replace(/^"|"$/g, ""));
  return {
    memLimit: limitOf(found.get("MEM_LIMIT")),
    memLimitExecutors: limitOf(found.get("MEM_LIMIT_EXECUTORS")),
    memLimitCoordinators: limitOf(found.get("MEM_LIMIT_COORDINATORS")),
    requestPool: found.get("REQUEST_POOL") ?? null,
  };
}

/** `2147483648`, `2g`, `512mb`, `1.5gb`; percentages need a host and count as not set. */
function limitOf(text: string | undefined): number {
  const m = /^\s*([\d.]+)\s*([kmgt]?)b?\s*$/i.exec(text ?? "");
  if (m === null) return 0;
  const power = " kmgt".indexOf((m[2] ?? "").toLowerCase() || " ");
  const n = Math.trunc(Number(m[1]) * 1024 ** power);
  return Number.isSafeInteger(n) ? n : 0;
}

/** `exec-1:27000=2,exec-2:27000=2` or the profile's `exec-1:27000(2) exec-2:27000(2) ` -> addresses in order. */
export function hostsOf(text: string | null): readonly string[] | null {
  if (text === null) return null;
  const found = [...text.matchAll(/([^\s,=()]+:\d+)[=(]/g)].map((m) => m[1] ?? "");
  return found.length === 0 ? null : [...new Set(found)].sort();
}
