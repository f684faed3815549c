/**
 * Plugs recorded traffic into a scenario: reads the files that trace arrivals name and fills in their rows.
 *
 * A step of its own between reading a scenario and making its workload, because a log may be a Parquet file
 * and those are read asynchronously. Afterwards the scenario is plain data again, traces included, and both
 * drivers see the same requests.
 *
 * A log's class becomes a query class of the scenario, one for each set of query options it was sent with;
 * what differs from execution to execution (time, user, hold, peak, estimate, width) stands in the row.
 */
import { readFileSync } from "node:fs";
import { ConfigError } from "../config/config-error.ts";
import { admissionOptions, freezeShape } from "../config/request-shape.ts";
import type { Arrival, ClusterSpec, QueryClass, Scenario, TraceRow } from "../config/scenario.ts";
import { backendsOf, findHost } from "../config/scenario-cluster.ts";
import { DEFAULT_ADMISSION_OPTIONS, type FragmentShape, type RequestShape } from "../core/admission/request.ts";
import type { BackendDescriptor } from "../core/cluster/backend.ts";
import { reservationLimitFor } from "../core/memory/reservation-limit.ts";
import { philoxFor, uniformOf } from "../core/random.ts";
import type { Bytes, Instant, Millis } from "../core/units.ts";
import { DEFAULT_DEMAND, type DemandOptions, demandOf, drawsOf } from "./query-log/demand.ts";
import type { HoldRule } from "./query-log/holds.ts";
import { headOf } from "./query-log/lines.ts";
import { type QueryLog, readQueryLog } from "./query-log/read-query-log.ts";
import {
  isCoordinatorOnly,
  TRACE_FORMAT,
  TRACE_VERSION,
  type TracedRequest,
  type TraceHeader,
} from "./query-log/traced-request.ts";

type TraceArrival = Extract<Arrival, { readonly kind: "trace" }>;

/** Reads one trace; who wants to look at what is read, or to read it another way, gives his own. */
export type ReadTrace = (file: string, hold: HoldRule) => Promise<Trace>;

/** The scenario with every trace read; the same object when there is none. Throws ConfigError. */
export async function withTraces(scenario: Scenario, read: ReadTrace = readTrace): Promise<Scenario> {
  if (!scenario.arrivals.some((a) => a.kind === "trace")) return scenario;
  const classes = new TraceClasses(scenario);
  const arrivals: Arrival[] = [];
  for (const a of scenario.arrivals) {
    if (a.kind !== "trace") arrivals.push(a);
    else
      arrivals.push({
        ...a,
        rows: rowsOf(scaled((await read(a.file, a.hold)).requests, a, scenario.seed), classes),
      });
  }
  return { ...scenario, arrivals, queries: classes.finish() };
}

export interface Trace {
  /** First arrival, microseconds since 1970. */
  readonly start: number;
  readonly requests: readonly TracedRequest[];
}

/** A trace file, or a log of any form with the defaults of `import`; a log can be looked at before. */
export async function readTrace(
  file: string,
  hold: HoldRule,
  donor: DemandOptions["donor"] = "draw",
  look: (log: QueryLog) => void = () => undefined,
): Promise<Trace> {
  if (isTraceFile(file)) return readTraceFile(file);
  const log = await readQueryLog(file);
  look(log);
  const demand = demandOf(log, { ...DEFAULT_DEMAND, draw: drawsOf(1), hold, donor });
  if (demand.requests.length === 0)
    throw new ConfigError(
      { file, line: null },
      `none of its ${log.queries.length} statements can be replayed`,
      `Run  waterhole import ${file}  to see why they were left out.`,
    );
  return { start: demand.start, requests: demand.requests };
}

function isTraceFile(file: string): boolean {
  try {
    return headOf(file, 64).toString("utf8").includes(`"format":"${TRACE_FORMAT}"`);
  } catch {
    // The reader of logs says what is wrong with the file.
    return false;
  }
}

function readTraceFile(file: string): Trace {
  const lines = readFileSync(file, "utf8").split("\n");
  const header = parsed(file, 1, lines[0] ?? "") as TraceHeader;
  if (header.version !== TRACE_VERSION)
    throw new ConfigError(
      { file, line: 1 },
      `trace version ${header.version}; expected ${TRACE_VERSION}`,
      "Make it again with  waterhole import.",
    );
  const requests: TracedRequest[] = [];
  for (let i = 1; i < lines.length; i++)
    if (lines[i] !== "") requests.push(checked(file, i + 1, parsed(file, i + 1, lines[i]!), requests.length));
  if (requests.length !== header.requests)
    throw new ConfigError(
      { file, line: lines.length },
      `${requests.length} requests; the header says ${header.requests}`,
      "The file was cut or changed: make it again with  waterhole import.",
    );
  return { start: header.start, requests };
}

function parsed(file: string, line: number, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (e) {
    throw new ConfigError({ file, line }, "broken JSON in a trace file", "Make it again with  waterhole import.", {
      cause: e,
    });
  }
}

/** Enough to be sure that it is a request: traces are made by us, edited by people. */
function checked(file: string, line: number, value: unknown, index: number): TracedRequest {
  const r = value as TracedRequest;
  for (const field of [
    "at",
    "hold",
    "peak",
    "spilled",
    "estimate",
    "coordinatorEstimate",
    "backends",
    "slots",
  ] as const)
    if (!Number.isSafeInteger(r[field]) || r[field] < 0)
      throw new ConfigError(
        { file, line },
        `${field} is ${JSON.stringify(r[field])}; expected a whole number from 0 on`,
        "Correct the line.",
      );
  if (r.after !== null && !(r.after.index < index))
    throw new ConfigError({ file, line }, "after names a request that comes later", "Correct the line.");
  return r;
}

// Scaling

const DAY = 86_400e6;
const JITTER = 60e6;

/** Below 1 thinned out at random, above 1 with jittered copies, of other days where the trace has several (insight 4.6). */
function scaled(requests: readonly TracedRequest[], arrival: TraceArrival, seed: number): readonly TracedRequest[] {
  const { scale } = arrival;
  if (scale === 1) return requests;
  const stream = philoxFor(seed, "trace/scale");
  const draw = (index: number, copy: number): number => {
    stream.at(index, copy, 0, 0);
    return uniformOf(stream.w0, stream.w1);
  };
  const span = requests.at(-1)?.at ?? 0;
  const days = Math.floor(span / DAY);
  const all: { readonly request: TracedRequest; readonly from: number }[] = [];
  requests.forEach((request, from) => {
    if (scale >= 1 || draw(from, 0) < scale) all.push({ request, from });
    for (let copy = 1; copy < scale; copy++) {
      const share = Math.min(1, scale - copy);
      if (share < 1 && draw(from, 2 * copy) >= share) continue;
      // By whole days, and never by all of them: that would be the same day.
      const shift = days >= 2 ? (((copy - 1) % (days - 1)) + 1) * DAY : 0;
      const moved = (request.at + shift) % (days >= 2 ? days * DAY : Number.POSITIVE_INFINITY);
      const at = Math.max(0, Math.round(moved + (draw(from, 2 * copy + 1) * 2 - 1) * JITTER));
      // A copy is nobody's next statement: it comes when it comes.
      all.push({ request: { ...request, at, after: null }, from: -1 });
    }
  });
  all.sort((a, b) => a.request.at - b.request.at);
  const place = new Map(all.map(({ from }, i) => [from, i]));
  return all.map(({ request }, i) => {
    if (request.after === null) return request;
    const index = place.get(request.after.index);
    return { ...request, after: index === undefined || index >= i ? null : { ...request.after, index } };
  });
}

// Rows and classes

const rowsOf = (requests: readonly TracedRequest[], classes: TraceClasses): TraceRow[] =>
  requests.map((r) => ({
    at: (r.at / 1000) as Instant,
    queryClass: classes.indexOf(r),
    user: r.user,
    pool: r.pool,
    coordinator: classes.coordinatorOf(r),
    duration: (r.hold / 1000) as Millis,
    ...classes.wantedBy(r),
    shape: classes.shapeOf(r),
    after: r.after === null ? null : { row: r.after.index, think: (r.after.think / 1000) as Millis },
  }));

const MOST_SAMPLES = 2000;

interface ClassInTheMaking {
  readonly name: string;
  readonly options: Readonly<Record<string, string>>;
  readonly pool: string;
  readonly users: Set<string>;
  readonly shape: RequestShape;
  readonly holds: number[];
  readonly peaks: number[];
}

/** The classes and shapes of all traces of one scenario; shapes are shared by the rows that agree in them. */
class TraceClasses {
  private readonly own: readonly QueryClass[];
  private readonly names: Set<string>;
  private readonly classes = new Map<string, ClassInTheMaking>();
  private readonly indexes = new Map<string, number>();
  private readonly shapes = new Map<string, RequestShape>();
  private readonly backends: readonly BackendDescriptor[];
  private readonly executors: number;
  private readonly dedicated: boolean;

  constructor(scenario: Scenario) {
    this.own = scenario.queries;
    this.names = new Set(scenario.queries.map((q) => q.name));
    this.backends = backendsOf(scenario.cluster);
    this.executors = executorsOf(scenario.cluster);
    this.dedicated = !scenario.cluster.coordinators.some((c) => c.on === "executor");
  }

  indexOf(r: TracedRequest): number {
    const options = optionTexts(r);
    const key = `${r.queryClass}\n${JSON.stringify(options)}`;
    let index = this.indexes.get(key);
    if (index === undefined) {
      index = this.own.length + this.classes.size;
      this.indexes.set(key, index);
      const name = this.freeName(r.queryClass);
      this.classes.set(key, {
        name,
        options,
        pool: r.pool,
        users: new Set(),
        shape: this.shapeOf(r),
        holds: [],
        peaks: [],
      });
    }
    const c = this.classes.get(key)!;
    c.users.add(r.user);
    c.holds.push(r.hold / 1000);
    c.peaks.push(this.wantedBy(r).peak);
    return index;
  }

  private freeName(wanted: string): string {
    let name = wanted;
    for (let n = 2; this.names.has(name); n++) name = `${wanted}-${n}`;
    this.names.add(name);
    return name;
  }

  /** Only where the scenario has a coordinator of that name: a log of another cluster goes by the scenario's route. */
  coordinatorOf(r: TracedRequest): string | null {
    if (r.coordinator === null) return null;
    const found = findHost(this.backends, r.coordinator);
    return found?.isCoordinator ? found.address : null;
  }

  /**
   * On each host: it wanted so much more than it got as it wrote there (insight 4.3 item 7). Where it may have more it
   * writes less, and where it has what it had it writes the same, in the time that was recorded.
   */
  wantedBy(r: TracedRequest): { readonly peak: Bytes; readonly spilled: Bytes } {
    const hosts = isCoordinatorOnly(r) ? 1 : this.executorsOf(r);
    const least = this.reservedByCoordinator(r, hosts);
    const alone = least + r.spilled;
    // It alone, as long as what it wrote does not make it want more than the others had.
    const peak = alone <= r.reserved ? r.reserved : ((hosts - 1) * r.reserved + least + r.spilled) / hosts;
    const spilled = r.spilled === 0 ? 0 : peak - least;
    return { peak: Math.round(peak) as Bytes, spilled: Math.round(spilled) as Bytes };
  }

  /** A coordinator that executes, under a smaller limit of its own, had less than the others, and wrote the more. */
  private reservedByCoordinator(r: TracedRequest, hosts: number): number {
    const { memLimitCoordinators } = r.options;
    if (this.dedicated || hosts === 1 || memLimitCoordinators === 0 || r.spilled === 0) return r.reserved;
    return Math.min(r.reserved, reservationLimitFor(memLimitCoordinators, -1, 0));
  }

  private executorsOf(r: TracedRequest): number {
    return Math.max(1, Math.min(this.executors, this.dedicated ? r.backends - 1 : r.backends));
  }

  shapeOf(r: TracedRequest): RequestShape {
    const executors = this.executorsOf(r);
    const coordinatorOnly = isCoordinatorOnly(r);
    const key = [
      r.stmtType,
      r.isTrivial,
      coordinatorOnly ? "-" : executors,
      r.estimate,
      r.coordinatorEstimate,
      r.reservation,
      r.slots,
      JSON.stringify(optionTexts(r)),
    ].join("|");
    let shape = this.shapes.get(key);
    if (shape === undefined) {
      shape = freezeShape({
        stmtType: r.stmtType,
        perHostMemEstimate: r.estimate as Bytes,
        dedicatedCoordMemEstimate: r.coordinatorEstimate as Bytes,
        isTrivial: r.isTrivial,
        coordinatorOnly,
        includeAllCoordinators: false,
        executors: executors >= this.executors ? "all" : executors,
        fragments: fragmentsOf(r, coordinatorOnly),
        options: { ...DEFAULT_ADMISSION_OPTIONS, ...admissionOptions(optionTexts(r)) },
        maxSlotsPerExecutor: null,
      });
      this.shapes.set(key, shape);
    }
    return shape;
  }

  finish(): QueryClass[] {
    const made = [...this.classes.values()].map(
      (c, i): QueryClass => ({
        name: c.name,
        index: this.own.length + i,
        requestedPool: c.pool,
        users: [...c.users].sort(),
        shape: c.shape,
        mtDop: 0,
        instancesFollowMtDop: false,
        options: c.options,
        uses: {
          kind: "footprint",
          peak: { kind: "empirical", values: samples(c.peaks) },
          profile: "ramp",
          skew: {},
          spillable: true,
        },
        duration: { kind: "empirical", values: samples(c.holds) },
        isRecorded: true,
        cancelAfter: null,
        statement: `select ... /* ${c.name} */`,
      }),
    );
    return [...this.own, ...made];
  }
}

const executorsOf = (cluster: ClusterSpec): number => cluster.executors.reduce((n, e) => n + e.count, 0);

/** The options as a client would have set them. */
function optionTexts(r: TracedRequest): Record<string, string> {
  const texts: Record<string, string> = {};
  if (r.options.memLimit > 0) texts.MEM_LIMIT = String(r.options.memLimit);
  if (r.options.memLimitExecutors > 0) texts.MEM_LIMIT_EXECUTORS = String(r.options.memLimitExecutors);
  if (r.options.memLimitCoordinators > 0) texts.MEM_LIMIT_COORDINATORS = String(r.options.memLimitCoordinators);
  return texts;
}

function fragmentsOf(r: TracedRequest, coordinatorOnly: boolean): FragmentShape[] {
  const plain = { threadReservationPerInstance: 1, isDominant: false };
  const perInstance = Math.floor(r.reservation / r.slots);
  const root: FragmentShape = {
    runsOn: "coordinator",
    instancesPerHost: 1,
    minReservationPerInstance: (coordinatorOnly ? r.reservation : 0) as Bytes,
    minReservationPerBackend: 0 as Bytes,
    ...plain,
  };
  const work: FragmentShape = {
    runsOn: "executors",
    instancesPerHost: r.slots,
    minReservationPerInstance: perInstance as Bytes,
    minReservationPerBackend: (r.reservation - perInstance * r.slots) as Bytes,
    ...plain,
  };
  if (coordinatorOnly) return [root];
  return r.stmtType === "QUERY" ? [root, work] : [work];
}

/** At most so many, evenly over the sorted values: enough to draw from, small enough to hand around. */
function samples(values: readonly number[]): number[] {
  const sorted = Float64Array.from(values).sort();
  if (sorted.length <= MOST_SAMPLES) return [...sorted];
  return Array.from(
    { length: MOST_SAMPLES },
    (_, i) => sorted[Math.floor(((i + 0.5) * sorted.length) / MOST_SAMPLES)]!,
  );
}
