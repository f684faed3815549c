/**
 * What a scenario file says, once it has been read and checked: the record that every other room works from.
 *
 * The file's own form (what may be left out, shorthands, units) is `scenario-schema.ts`; here everything has
 * a value, sizes are bytes, times are emulated milliseconds and one thing has one shape. Plain data, so that
 * it can go into a records file and over to a worker thread as it is.
 */
import type { RequestShape } from "../core/admission/request.ts";
import type { Bytes, Instant, Millis } from "../core/units.ts";

export interface Scenario {
  readonly name: string;
  /** Absolute path of the file, or the name given for a text that came from elsewhere. */
  readonly file: string;
  readonly seed: number;
  readonly cluster: ClusterSpec;
  readonly pools: PoolFiles;
  /** Impala's flags by name, without dashes, as written; who needs one parses it. */
  readonly flags: Readonly<Record<string, string>>;
  /** Groups of a user in the order they are consulted; null: the lookup fails (admission 8.2). */
  readonly users: Readonly<Record<string, readonly string[] | null>>;
  /** In file order; `index` of a class is its place here. */
  readonly queries: readonly QueryClass[];
  readonly arrivals: readonly Arrival[];
  /** In order of time, equal times in file order. */
  readonly faults: readonly Fault[];
  readonly scale: { readonly time: number; readonly memory: number };
  /** Live only: worker threads of the fleet, null: decided by the fleet. */
  readonly threads: number | null;
  readonly model: ModelSpec;
  readonly thresholds: readonly string[];
  readonly limits: RunLimits;
}

// The cluster

export interface ClusterSpec {
  readonly executors: readonly ExecutorSpec[];
  readonly coordinators: readonly CoordinatorSpec[];
  readonly admission: "distributed" | "admissiond";
  readonly statestore: StatestoreSpec;
  /** How clients choose a coordinator unless an arrival says otherwise. */
  readonly route: Route;
}

export interface ExecutorSpec {
  readonly count: number;
  /** `admit_mem_limit` of each. */
  readonly memory: Bytes;
  readonly slots: number;
  readonly group: { readonly name: string; readonly minSize: number };
  /** Bytes of scratch space on each, null: unlimited. */
  readonly scratch: Bytes | null;
}

export interface CoordinatorSpec {
  readonly count: number;
  /** `executor`: these coordinators live on the first executors that have none yet. */
  readonly on: "executor" | "dedicated";
  /** Of each dedicated one; unused on an executor. */
  readonly memory: Bytes;
  readonly slots: number;
}

export interface StatestoreSpec {
  /** `--statestore_priority_update_frequency_ms`. */
  readonly every: Millis;
  /** From a controller's collecting of its update to the statestore having it. */
  readonly publishLag: Millis;
  /** From the statestore's sending to the controller having applied it. */
  readonly receiveLag: Millis;
  /** A subscriber that was silent for so long has failed: its entries and its place in the membership go. */
  readonly failureAfter: Millis;
}

export type Route = { readonly kind: "round-robin" | "random" } | { readonly kind: "named"; readonly host: string };

// Pools

export type PoolFiles =
  | {
      readonly kind: "files";
      /** Absolute paths. */
      readonly fairScheduler: string;
      readonly llamaSite: string | null;
    }
  /** Only the flags `default_pool_*`: one pool, `default-pool`. */
  | { readonly kind: "flags" };

// Queries

export interface QueryClass {
  readonly name: string;
  readonly index: number;
  /** REQUEST_POOL as the client sets it; empty: none asked for. */
  readonly requestedPool: string;
  /** Connected users; a query takes the next one in turn when there are several. */
  readonly users: readonly string[];
  /** The planner's numbers with the class's own options; frozen, shared by all its queries. */
  readonly shape: RequestShape;
  /** MT_DOP as the class asks for it, 0 when it does not. */
  readonly mtDop: number;
  /** Whether the executor fragments have as many instances as MT_DOP says; false when the file lists them. */
  readonly instancesFollowMtDop: boolean;
  /** The client's query options by upper-case name, REQUEST_POOL included if set that way. */
  readonly options: Readonly<Record<string, string>>;
  readonly uses: Use;
  /** From admission to the last row, on an idle cluster with its peak granted. Live, operators take what they take. */
  readonly duration: Distribution;
  /** From a log: durations are holds as they were, whatever ran beside (insight 4.3 item 7). */
  readonly isRecorded?: true;
  /** The client gives up so long after it submitted, waiting or running; null: never. */
  readonly cancelAfter: Distribution | null;
  /** Statement text for profiles and logs. */
  readonly statement: string;
}

/** What a query does with memory on one host, shared evenly by its fragment instances there. */
export type Use =
  | {
      readonly kind: "footprint";
      /** Bytes at the peak, per host. */
      readonly peak: Distribution;
      readonly profile: FootprintProfile;
      /** Other peaks on some hosts (skew): address -> factor on the peak. */
      readonly skew: Readonly<Record<string, number>>;
      /** Whether it can go on with less by writing to scratch. */
      readonly spillable: boolean;
    }
  | OperatorUse;

export interface OperatorUse {
  readonly kind: "operators";
  /** Under the class's own options; `operatorsUnder` has them under others. */
  readonly operators: readonly OperatorSpec[];
  /** What the scenario says of each itself, before any option. */
  readonly written: readonly WrittenLimits[];
  /** The minimum reservation of the working fragment is the planner's. */
  readonly hasPlannedMinimum: boolean;
}

/** Null: an option says, or the product's default. */
export interface WrittenLimits {
  readonly bufferSize: Bytes | null;
  readonly maxRowSize: Bytes | null;
}

/** How a footprint moves between its start and its end; see `footprint.ts` of the workload. */
export type FootprintProfile =
  | "flat"
  | "ramp"
  | "spike"
  | "triangle"
  | "saw"
  /** Share of the duration -> share of the peak, straight lines between; first at 0, last at 1. */
  | readonly (readonly [at: number, share: number])[];

/** Real operators on generated rows; all figures are for one host. */
export type OperatorSpec =
  | { readonly kind: "sort"; readonly input: RowsSpec; readonly limits: OperatorLimits }
  | {
      readonly kind: "aggregate";
      readonly input: RowsSpec;
      /** Before the grouping one: passes rows on and never spills (memory 4.3). */
      readonly preAggregate: boolean;
      readonly limits: OperatorLimits;
    }
  | { readonly kind: "join"; readonly build: RowsSpec; readonly probe: RowsSpec; readonly limits: OperatorLimits };

export interface RowsSpec {
  readonly rows: number;
  /** Bytes of payload beside the 8-byte key; min = max is a fixed width. */
  readonly width: { readonly min: number; readonly max: number };
  readonly keys: KeySpec;
}

export type KeySpec =
  /** Each of `distinct` keys equally likely. */
  | { readonly kind: "uniform"; readonly distinct: number }
  | { readonly kind: "zipf"; readonly distinct: number; readonly exponent: number }
  /** 0, 1, 2, ... in order. */
  | { readonly kind: "sorted" }
  /** 0, 1, 2, ... in a random order: each key once. */
  | { readonly kind: "unique" }
  /** Each key once, row by row to the next of an operator's sixteen partitions: for numbers worked out on paper. */
  | { readonly kind: "dealt" }
  /** One key has `share` of the rows, the rest are uniform over `distinct`. */
  | { readonly kind: "hot"; readonly share: number; readonly distinct: number };

export interface OperatorLimits {
  /** DEFAULT_SPILLABLE_BUFFER_SIZE. */
  readonly bufferSize: Bytes;
  /** MAX_ROW_SIZE. */
  readonly maxRowSize: Bytes;
}

// Traffic

/** Values in milliseconds or bytes, according to where it stands. */
export type Distribution =
  | { readonly kind: "fixed"; readonly value: number }
  | { readonly kind: "uniform"; readonly low: number; readonly high: number }
  | { readonly kind: "exponential"; readonly mean: number }
  /** Of the logarithm. */
  | { readonly kind: "lognormal"; readonly mu: number; readonly sigma: number }
  | { readonly kind: "pareto"; readonly alpha: number; readonly low: number; readonly high: number }
  | { readonly kind: "erlang"; readonly stages: number; readonly mean: number }
  | {
      readonly kind: "hyperexponential";
      readonly branches: readonly { readonly share: number; readonly mean: number }[];
    }
  /** Sorted; one of them, each equally likely. */
  | { readonly kind: "empirical"; readonly values: readonly number[] };

/** Classes with their shares (adding up to 1), in file order. */
export type ClassMix = readonly { readonly queryClass: number; readonly share: number }[];

interface ArrivalCommon {
  readonly mix: ClassMix;
  readonly from: Instant;
  /** First moment at which none comes any more; Infinity: the limits of the run decide. */
  readonly to: Instant;
  readonly route: Route;
  readonly retry: RetryPolicy;
}

export type Arrival =
  /** All in one instant, `from`, or evenly spread over `within`. */
  | (ArrivalCommon & { readonly kind: "burst"; readonly count: number; readonly within: Millis })
  | (ArrivalCommon & { readonly kind: "every"; readonly every: Millis; readonly count: number })
  /** Poisson; per second, times the day's factor of the hour. */
  | (ArrivalCommon & { readonly kind: "rate"; readonly perSecond: number; readonly day: readonly number[] | null })
  /** Each client thinks, asks, waits for the answer, thinks again. */
  | (ArrivalCommon & {
      readonly kind: "clients";
      readonly clients: number;
      readonly think: Distribution;
      /** Requests of one client, Infinity: until `to`. */
      readonly requests: number;
    })
  /**
   * Requests of a file: a recorded log or a trace made from one. The reader of scenarios only notes the path;
   * `withTraces` (src/workload/traces.ts) reads the file, fills `rows` and appends the file's classes to
   * `queries`, before a workload is made. `mix` is empty.
   */
  | (ArrivalCommon & {
      readonly kind: "trace";
      /** Absolute path. */
      readonly file: string;
      /** Above 0; 1: as recorded. Below 1 requests are thinned out at random, above 1 jittered copies are added. */
      readonly scale: number;
      /** When a recorded query gave its place back: with the last row fetched, or when it was unregistered. */
      readonly hold: "lastRow" | "unregister";
      /** In order of time; empty until the file has been read. */
      readonly rows: readonly TraceRow[];
    });

/** One recorded request; null where the class's own value holds. */
export interface TraceRow {
  /** From the arrival's `from`. */
  readonly at: Instant;
  readonly queryClass: number;
  readonly user: string | null;
  /** As REQUEST_POOL. */
  readonly pool: string | null;
  readonly coordinator: string | null;
  readonly duration: Millis | null;
  readonly peak: Bytes | null;
  /** Per host; part of `peak`, and `duration` contains what it cost. */
  readonly spilled: Bytes;
  /** Estimates, options and width of this one; frozen and shared by the rows that agree in all of it. */
  readonly shape: RequestShape | null;
  /**
   * Not null: this client sent it only when it had the answer to its previous one: row number of that one
   * (smaller than this row's) and the time it thought in between. `at` is then what was recorded, no more.
   */
  readonly after: { readonly row: number; readonly think: Millis } | null;
}

/** After which ends a client asks again, and when. */
export interface RetryPolicy {
  readonly on: readonly RetryCause[];
  /** All attempts of one request, the first included; 1: never again. */
  readonly attempts: number;
  readonly first: Millis;
  readonly factor: number;
  readonly most: Millis;
  /** `full`: uniform between 0 and the wait; `equal`: between half of it and it. */
  readonly jitter: "none" | "full" | "equal";
}

export type RetryCause = "rejected" | "timedOut" | "failed" | "cancelled";

// Faults

/** `host` and `coordinator` are addresses of the cluster; null: all. */
export type Fault =
  | {
      readonly kind: "hostDies" | "hostReturns" | "hostQuiesces" | "workerKilled";
      readonly at: Instant;
      readonly host: string;
    }
  | { readonly kind: "coordinatorDies" | "coordinatorReturns"; readonly at: Instant; readonly host: string }
  /** Its exchanges with the statestore are lost, both ways; it goes on deciding. */
  | { readonly kind: "coordinatorCutOff" | "coordinatorRejoins"; readonly at: Instant; readonly host: string }
  | { readonly kind: "statestoreStops" | "statestoreStarts"; readonly at: Instant }
  /** From now on each release message to `admissiond` is lost with this chance, until one says 0. */
  | { readonly kind: "releasesLost"; readonly at: Instant; readonly chance: number; readonly host: string | null }
  /** Each growth of a reservation is refused with this chance, as Impala's debug action does. */
  | {
      readonly kind: "refusals";
      readonly at: Instant;
      readonly chance: number;
      readonly host: string | null;
      readonly queryClass: number | null;
    }
  /**
   * New files have been noticed; null: that one stays. `at` is when, which is later than the scenario says the files
   * were written and different for the two, by Impala's timing of reloads (reload-times.ts, admission 5.7).
   */
  | {
      readonly kind: "configChanges";
      readonly at: Instant;
      readonly fairScheduler: string | null;
      readonly llamaSite: string | null;
    }
  /** Estimates of a class are multiplied: what dropped statistics do. */
  | { readonly kind: "statisticsDropped"; readonly at: Instant; readonly queryClass: number; readonly factor: number };

export type FaultKind = Fault["kind"];

// The run

/** How virtual executors behave where the live fleet has real hardware. */
export interface ModelSpec {
  /** Bytes a second that one host writes to and reads from scratch. */
  readonly scratchBandwidth: number;
  /** Cores of a host that running instances share; null: instances don't slow each other. */
  readonly cores: number | null;
  /**
   * Where settings are compared, what spilling costs in place of the bandwidth: a host with too little takes
   * 1 + spillSigma (peak / room - 1) times as long (insight 3.2).
   */
  readonly spillSigma?: number;
}

export interface RunLimits {
  /** Nothing is submitted any more from this moment on. */
  readonly time: Instant;
  /** Nor after so many submissions, attempts included. */
  readonly queries: number;
}
