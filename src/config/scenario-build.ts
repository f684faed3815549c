/**
 * From the checked form of a scenario file to the record that everybody works from: defaults that depend on
 * something else, names that must exist, combinations that make no sense.
 *
 * Everything here may look at two places at once; what one value may look like is the schema's business.
 */
import { isAbsolute, resolve } from "node:path";
import type { FragmentShape, RequestShape } from "../core/admission/request.ts";
import { limitNeededFor } from "../core/admission/reservation-math.ts";
import { ln } from "../core/exact-math.ts";
import { type Bytes, bytes, instant, MiB, millis } from "../core/units.ts";
import { parseFlags } from "./impala-flags.ts";
import { FLAGS, FLAGS_SET_ELSEWHERE, FLAGS_WITHOUT_EFFECT, QUERY_OPTIONS } from "./known-options.ts";
import { nearestName } from "./nearest-name.ts";
import { bufferSizeFor, planOf } from "./operator-plan.ts";
import { isMemoryOption, readOption } from "./query-options.ts";
import { allocationNoticedAt, siteNoticedAt } from "./reload-times.ts";
import { admissionOptions, freezeShape } from "./request-shape.ts";
import type {
  Arrival,
  ClassMix,
  ClusterSpec,
  Distribution,
  Fault,
  KeySpec,
  OperatorSpec,
  QueryClass,
  RetryPolicy,
  Route,
  RowsSpec,
  Scenario,
  Use,
} from "./scenario.ts";
import { backendsOf, coordinatorsOf, findHost, hostNameOf } from "./scenario-cluster.ts";
import type { Path, ScenarioSource } from "./scenario-issues.ts";
import type {
  ArrivalInput,
  DistributionInput,
  FaultInput,
  KeysInput,
  QueryClassInput,
  RetriesInput,
  RowsInput,
  ScenarioInput,
  UsesInput,
} from "./scenario-schema.ts";
import { parseThreshold } from "./threshold.ts";

const COORDINATOR_SLOTS_FACTOR = 8;
const DEFAULT_MEMORY_SCALE = 1024;
/** Stands for the time of real operators where there are none (virtual time). */
const OPERATOR_MS_PER_ROW = 1e-4;
const SINE_BY_HOUR: readonly number[] = [
  0.130526192220052, 0.38268343236509, 0.608761429008721, 0.793353340291235, 0.923879532511287, 0.99144486137381,
];

/** `base`: folder that relative paths start from; `defaultName`: when the file gives none. */
export interface BuildContext {
  readonly source: ScenarioSource;
  readonly base: string;
  readonly defaultName: string;
}

export function buildScenario(input: ScenarioInput, context: BuildContext): Scenario {
  const { source } = context;
  const cluster = buildCluster(input, source);
  const names = new Names(cluster, Object.keys(input.queries), source);
  const queries = Object.entries(input.queries).map(([name, q], index) => buildClass(name, index, q, names, source));
  if (queries.length === 0) source.fail(["queries"], "queries names no query class. Expected at least one", "Add one.");
  const retry = buildRetry(input.retries);
  const limits = {
    time: instant(input.limits.time ?? Number.POSITIVE_INFINITY),
    queries: input.limits.queries ?? Number.POSITIVE_INFINITY,
  };
  const arrivals = input.arrivals.map((a, i) =>
    buildArrival(a, { path: ["arrivals", i], names, queries: input.queries, cluster, retry, limits, context }),
  );
  input.thresholds.forEach((text, i) => {
    const parsed = parseThreshold(text);
    if (!parsed.ok) source.fail(["thresholds", i], parsed.problem, parsed.remedy);
  });
  return {
    name: input.name ?? context.defaultName,
    file: source.file,
    seed: input.seed,
    cluster,
    pools: buildPools(input, context),
    flags: buildFlags(input, source),
    users: input.users,
    queries,
    arrivals,
    faults: buildFaults(input.faults, names, context),
    scale: { time: input.scale.time, memory: memoryScale(input, queries, source) },
    threads: input.threads === "auto" ? null : input.threads,
    model: {
      scratchBandwidth: input.model.scratchBandwidth,
      cores: input.model.cores === "unlimited" ? null : input.model.cores,
    },
    thresholds: input.thresholds,
    limits,
  };
}

// Cluster and pools

function buildCluster(input: ScenarioInput, source: ScenarioSource): ClusterSpec {
  const { executors, coordinators, statestore } = input.cluster;
  const first = executors[0]!;
  executors.forEach((e, i) => {
    if (e.memory === 0)
      source.fail(
        ["cluster", "executors", i, "memory"],
        "memory is 0. Expected a size above 0",
        "Write  memory: 100gb",
      );
  });
  const spec: ClusterSpec = {
    executors: executors.map((e, i) => ({
      count: e.count,
      memory: bytes(e.memory),
      slots: e.slots,
      group: executorGroup(e.executorGroup, ["cluster", "executors", i, "executorGroup"], source),
      scratch: e.scratch === undefined ? null : bytes(e.scratch),
    })),
    coordinators: coordinators.map((c) => ({
      count: c.count,
      on: c.on,
      memory: bytes(c.memory ?? first.memory),
      slots: c.slots ?? first.slots * COORDINATOR_SLOTS_FACTOR,
    })),
    admission: input.cluster.admission,
    statestore: {
      every: millis(statestore.every),
      publishLag: millis(statestore.publishLag),
      receiveLag: millis(statestore.receiveLag),
      failureAfter: millis(statestore.failureAfter),
    },
    route: { kind: "round-robin" },
  };
  if (statestore.every === 0)
    source.fail(["cluster", "statestore", "every"], "every is 0. Expected a time above 0", "Write  every: 100ms");
  const hosts = executors.reduce((n, e) => n + e.count, 0);
  const shared = coordinators.reduce((n, c) => n + (c.on === "executor" ? c.count : 0), 0);
  if (shared > hosts)
    source.fail(
      ["cluster", "coordinators"],
      `${shared} coordinators on executors, but there are only ${hosts} executors`,
      "Lower the count or write  on: dedicated",
    );
  return { ...spec, route: buildRoute(input.cluster.route, ["cluster", "route"], spec, source) };
}

type GroupInput = ScenarioInput["cluster"]["executors"][number]["executorGroup"];

function executorGroup(input: GroupInput, path: Path, source: ScenarioSource): { name: string; minSize: number } {
  if (input === undefined) return { name: "default", minSize: 1 };
  if (typeof input !== "string") return input;
  const match = /^([^:]+)(?::(\d+))?$/.exec(input);
  if (match === null || match[2] === "0")
    source.fail(
      path,
      `executorGroup "${input}" is no group. Expected name or name:minSize`,
      "Write  executorGroup: root.etl-group-000:3",
    );
  return { name: match[1]!, minSize: Number(match[2] ?? 1) };
}

function buildRoute(text: string, path: Path, cluster: ClusterSpec, source: ScenarioSource): Route {
  if (text === "round-robin" || text === "random") return { kind: text };
  const backends = backendsOf(cluster);
  const found = findHost(backends, text);
  if (found?.isCoordinator) return { kind: "named", host: found.address };
  const known = coordinatorsOf(backends).map(hostNameOf);
  return source.fail(
    path,
    `${String(path.at(-1))} "${text}" is no coordinator of this cluster. Expected round-robin, random, or one of ${listed(known)}`,
    nearestRemedy(text, ["round-robin", "random", ...known]),
  );
}

function buildPools(input: ScenarioInput, { base }: BuildContext): Scenario["pools"] {
  if (input.pools === "flags") return { kind: "flags" };
  const { fairScheduler, llamaSite } = input.pools;
  return {
    kind: "files",
    fairScheduler: absolute(base, fairScheduler),
    llamaSite: llamaSite === undefined ? null : absolute(base, llamaSite),
  };
}

function buildFlags(input: ScenarioInput, source: ScenarioSource): Record<string, string> {
  const flags: Record<string, string> = {};
  for (const [written, value] of Object.entries(input.flags)) {
    const name = written.replace(/^--?/, "").replaceAll("-", "_");
    const elsewhere = FLAGS_SET_ELSEWHERE[name];
    if (elsewhere !== undefined)
      source.fail(["flags", written], `flag "${written}" is set by another key here`, `Use  ${elsewhere}`);
    if (FLAGS_WITHOUT_EFFECT.some((f) => f === name))
      source.fail(["flags", written], `flag "${written}" changes nothing in a run`, "Delete it.");
    if (!FLAGS.includes(name)) source.fail(["flags", written], `unknown flag "${written}"`, nearestRemedy(name, FLAGS));
    parseFlags({ [name]: value }, () => source.placeOf(["flags", written]));
    flags[name] = String(value);
  }
  return flags;
}

function memoryScale(input: ScenarioInput, queries: readonly QueryClass[], source: ScenarioSource): number {
  const real = queries.find((q) => q.uses.kind === "operators");
  const written = input.scale.memory;
  if (real === undefined) return written ?? DEFAULT_MEMORY_SCALE;
  if (written !== undefined && written !== 1)
    source.fail(
      ["scale", "memory"],
      `memory is ${written}, but query class "${real.name}" runs real operators, which move real bytes`,
      "Write  memory: 1",
    );
  return 1;
}

// Query classes

function buildClass(name: string, index: number, q: QueryClassInput, names: Names, source: ScenarioSource): QueryClass {
  const path = ["queries", name];
  const options = buildOptions(q.options, [...path, "options"], source);
  const uses = buildUse(q, path, names, source);
  const plan = uses.kind === "operators" ? planOf(uses.operators) : null;
  const coordinatorOnly = q.coordinatorOnly || q.trivial;
  const estimate = q.estimate ?? plan?.estimate ?? estimateForPeak(uses, coordinatorOnly, path, source);
  if (q.fragments !== undefined && q.mtDop !== undefined)
    source.fail([...path, "mtDop"], "mtDop and fragments both say how many instances there are", "Keep one of them.");
  const shape: RequestShape = {
    stmtType: q.stmtType,
    perHostMemEstimate: bytes(Math.max(estimate, plan === null ? 0 : 10 * MiB)),
    dedicatedCoordMemEstimate: bytes(q.coordinatorEstimate),
    isTrivial: q.trivial,
    coordinatorOnly,
    includeAllCoordinators: q.allCoordinators,
    executors: q.hosts,
    fragments: buildFragments(q, coordinatorOnly, q.minReservation ?? plan?.minReservation ?? 0),
    options: admissionOptions(options),
    maxSlotsPerExecutor: null,
  };
  return {
    name,
    index,
    requestedPool: q.pool ?? options.REQUEST_POOL ?? "",
    users: typeof q.user === "string" ? [q.user] : q.user,
    shape: freezeShape(shape),
    mtDop: q.mtDop ?? 0,
    instancesFollowMtDop: q.fragments === undefined,
    options,
    uses,
    duration: buildDuration(q, uses, path, source),
    cancelAfter:
      q.cancelAfter === undefined ? null : buildDistribution(q.cancelAfter, [...path, "cancelAfter"], source),
    statement: q.statement ?? `select ... /* ${name} */`,
  };
}

/** In the product's printed form, which profiles show. */
function buildOptions(written: QueryClassInput["options"], path: Path, source: ScenarioSource): Record<string, string> {
  const options: Record<string, string> = {};
  for (const [key, value] of Object.entries(written)) {
    const name = key.toUpperCase();
    if (!QUERY_OPTIONS.includes(name))
      source.fail([...path, key], `unknown query option "${key}"`, nearestRemedy(name, QUERY_OPTIONS));
    const change = readOption(name, String(value));
    if (change.kind === "error") source.fail([...path, key], change.message, optionRemedy(name));
    if (change.kind === "set") options[name] = change.value;
  }
  return options;
}

function optionRemedy(name: string): string {
  return isMemoryOption(name) ? "Write a size such as 512mb." : `Write a value that Impala takes for ${name}.`;
}

function buildFragments(q: QueryClassInput, coordinatorOnly: boolean, minReservation: number): FragmentShape[] {
  if (q.fragments !== undefined)
    return q.fragments.map((f) => ({
      runsOn: f.on === "coordinator" ? "coordinator" : "executors",
      instancesPerHost: f.instances,
      minReservationPerInstance: bytes(f.minReservation),
      minReservationPerBackend: bytes(f.perBackend),
      threadReservationPerInstance: f.threads,
      isDominant: f.dominant,
    }));
  const plain = { minReservationPerBackend: bytes(0), threadReservationPerInstance: q.threads, isDominant: false };
  const root: FragmentShape = {
    runsOn: "coordinator",
    instancesPerHost: 1,
    minReservationPerInstance: bytes(q.coordinatorMinReservation),
    ...plain,
  };
  const work: FragmentShape = {
    runsOn: "executors",
    instancesPerHost: Math.max(1, q.mtDop ?? (Number(q.options.MT_DOP ?? 0) || 1)),
    minReservationPerInstance: bytes(minReservation),
    ...plain,
  };
  if (coordinatorOnly)
    return [{ ...root, minReservationPerInstance: bytes(Math.max(q.coordinatorMinReservation, minReservation)) }];
  return q.stmtType === "QUERY" ? [root, work] : [work];
}

/** Without an estimate: the limit under which a reservation of the peak fits (admission 2.1). */
function estimateForPeak(uses: Use, coordinatorOnly: boolean, path: Path, source: ScenarioSource): number {
  if (uses.kind === "footprint" && uses.peak.kind === "fixed" && uses.peak.value > 0)
    return limitNeededFor(uses.peak.value as Bytes);
  if (coordinatorOnly) return 10 * MiB;
  return source.fail(
    path,
    `estimate is missing in ${path.join(".")}. Expected a size such as 1.5gb or 200000mb`,
    "Write  estimate: 1.5gb",
  );
}

function buildDuration(q: QueryClassInput, uses: Use, path: Path, source: ScenarioSource): Distribution {
  if (q.duration !== undefined) return buildDistribution(q.duration, [...path, "duration"], source);
  if (uses.kind === "operators")
    return { kind: "fixed", value: Math.round(rowsOf(uses.operators) * OPERATOR_MS_PER_ROW * 1000) / 1000 };
  if (q.trivial) return { kind: "fixed", value: 1 };
  return source.fail(
    path,
    `duration is missing in ${path.join(".")}. Expected a time such as 4s, or a distribution`,
    "Write  duration: 4s",
  );
}

const rowsOf = (operators: readonly OperatorSpec[]): number =>
  operators.reduce((n, op) => n + (op.kind === "join" ? op.build.rows + op.probe.rows : op.input.rows), 0);

function buildUse(q: QueryClassInput, path: Path, names: Names, source: ScenarioSource): Use {
  const operators = [...buildOperators(q, path, source), ...buildOperators(q.uses ?? {}, [...path, "uses"], source)];
  const { uses } = q;
  if (operators.length > 0) {
    if (uses?.peak !== undefined)
      source.fail(
        [...path, "uses", "peak"],
        "uses has a peak and the class has operators. Expected one of them",
        "Remove the peak.",
      );
    return { kind: "operators", operators };
  }
  return {
    kind: "footprint",
    peak: buildPeak(q, uses, path, source),
    profile: buildProfile(uses, path, source),
    skew: buildSkew(uses, [...path, "uses", "perHost"], names),
    spillable: uses?.spillable ?? true,
  };
}

const buildSkew = (uses: UsesInput | undefined, path: Path, names: Names): Record<string, number> =>
  Object.fromEntries(
    Object.entries(uses?.perHost ?? {}).map(([host, factor]) => [names.address(host, [...path, host]), factor]),
  );

function buildPeak(q: QueryClassInput, uses: UsesInput | undefined, path: Path, source: ScenarioSource): Distribution {
  if (uses?.peak !== undefined) return buildDistribution(uses.peak, [...path, "uses", "peak"], source);
  return { kind: "fixed", value: q.trivial ? 0 : Math.round((q.estimate ?? 0) / 2) };
}

function buildProfile(uses: UsesInput | undefined, path: Path, source: ScenarioSource) {
  const shape = uses?.shape ?? "ramp";
  if (typeof shape === "string") return shape;
  shape.forEach(([at], i) => {
    const wrong = i === 0 ? at !== 0 : i === shape.length - 1 ? at !== 1 : at < shape[i - 1]![0];
    if (wrong)
      source.fail(
        [...path, "uses", "shape", i],
        `point ${i} of the shape is at ${at}. Expected shares that start at 0, grow, and end at 1`,
        "Write  shape: [[0, 0.1], [0.5, 1], [1, 0.2]]",
      );
  });
  return shape;
}

type OperatorsInput = Pick<UsesInput, "sort" | "aggregate" | "join">;

/** In the order of a plan: join, then aggregate, then sort. */
function buildOperators(input: OperatorsInput, path: Path, source: ScenarioSource): OperatorSpec[] {
  const found: OperatorSpec[] = [];
  const { join, aggregate, sort } = input;
  if (join !== undefined) {
    const build = buildRows(join.build, [...path, "join", "build"], source);
    const probe = buildRows(join.probe, [...path, "join", "probe"], source);
    found.push({ kind: "join", build, probe, limits: operatorLimits("join", build, join, [...path, "join"], source) });
  }
  if (aggregate !== undefined) {
    const rows = buildRows(aggregate, [...path, "aggregate"], source);
    found.push({
      kind: "aggregate",
      input: rows,
      preAggregate: aggregate.preAggregate,
      limits: operatorLimits("aggregate", rows, aggregate, [...path, "aggregate"], source),
    });
  }
  if (sort !== undefined) {
    const rows = buildRows(sort, [...path, "sort"], source);
    found.push({ kind: "sort", input: rows, limits: operatorLimits("sort", rows, sort, [...path, "sort"], source) });
  }
  return found;
}

function operatorLimits(
  kind: OperatorSpec["kind"],
  rows: RowsSpec,
  written: { readonly bufferSize: number; readonly maxRowSize: number },
  path: Path,
  source: ScenarioSource,
) {
  const { bufferSize, maxRowSize } = written;
  if (bufferSize < 65_536 || !isPowerOfTwo(bufferSize))
    source.fail(
      [...path, "bufferSize"],
      `bufferSize is ${bufferSize} bytes. Expected a power of two from 64kb`,
      "Write  bufferSize: 2mb",
    );
  return { bufferSize: bufferSizeFor(kind, rows, bufferSize), maxRowSize: bytes(maxRowSize) };
}

const isPowerOfTwo = (n: number): boolean => Number.isInteger(Math.log2(n));

function buildRows(input: RowsInput, path: Path, source: ScenarioSource): RowsSpec {
  const width = typeof input.width === "number" ? { min: input.width, max: input.width } : input.width;
  if (width.min > width.max)
    source.fail([...path, "width"], `width has min ${width.min} above max ${width.max}`, "Swap them.");
  return { rows: input.rows, width, keys: buildKeys(input.keys, input.rows, [...path, "keys"], source) };
}

function buildKeys(input: KeysInput, rows: number, path: Path, source: ScenarioSource): KeySpec {
  if (input === "uniform") return { kind: "uniform", distinct: rows };
  if (input === "sorted" || input === "unique" || input === "dealt") return { kind: input };
  const { uniform, zipf, hot } = input;
  expectOne(Object.keys(input), ["uniform", "zipf", "hot"], path, source);
  if (uniform !== undefined) return { kind: "uniform", distinct: uniform.distinct };
  if (zipf !== undefined) return { kind: "zipf", distinct: zipf.distinct, exponent: zipf.exponent };
  return { kind: "hot", share: hot!.share, distinct: hot!.distinct ?? rows };
}

// Distributions

const Z95 = 1.6448536269514722;

export function buildDistribution(input: DistributionInput, path: Path, source: ScenarioSource): Distribution {
  if (typeof input === "number") return { kind: "fixed", value: input };
  const kinds = ["fixed", "uniform", "exponential", "lognormal", "pareto", "erlang", "hyperexponential", "empirical"];
  expectOne(Object.keys(input), kinds, path, source);
  const { fixed, uniform, exponential, lognormal, pareto, erlang, hyperexponential, empirical } = input;
  if (fixed !== undefined) return { kind: "fixed", value: fixed };
  if (uniform !== undefined) {
    ordered(uniform.low, uniform.high, [...path, "uniform"], source);
    return { kind: "uniform", low: uniform.low, high: uniform.high };
  }
  if (exponential !== undefined) return { kind: "exponential", mean: exponential.mean };
  if (lognormal !== undefined) return buildLognormal(lognormal, [...path, "lognormal"], source);
  if (pareto !== undefined) {
    ordered(pareto.low, pareto.high, [...path, "pareto"], source);
    if (pareto.low === 0)
      source.fail(
        [...path, "pareto", "low"],
        "low is 0. Expected a value above 0",
        "Write the least value that occurs.",
      );
    return { kind: "pareto", alpha: pareto.alpha, low: pareto.low, high: pareto.high };
  }
  if (erlang !== undefined) return { kind: "erlang", stages: erlang.stages, mean: erlang.mean };
  if (hyperexponential !== undefined) {
    const total = hyperexponential.reduce((sum, b) => sum + b.share, 0);
    return {
      kind: "hyperexponential",
      branches: hyperexponential.map((b) => ({ share: b.share / total, mean: b.mean })),
    };
  }
  return { kind: "empirical", values: [...empirical!].sort((a, b) => a - b) };
}

type LognormalInput = NonNullable<Exclude<DistributionInput, number>["lognormal"]>;

function buildLognormal(input: LognormalInput, path: Path, source: ScenarioSource): Distribution {
  const { mean, cv, p50, p95 } = input;
  if (mean !== undefined && cv !== undefined && p50 === undefined && p95 === undefined && mean > 0) {
    const variance = ln(1 + cv * cv);
    return { kind: "lognormal", mu: ln(mean) - variance / 2, sigma: Math.sqrt(variance) };
  }
  if (p50 !== undefined && p95 !== undefined && mean === undefined && cv === undefined && p50 > 0 && p95 >= p50)
    return { kind: "lognormal", mu: ln(p50), sigma: ln(p95 / p50) / Z95 };
  return source.fail(
    path,
    `lognormal has ${Object.keys(input).join(", ") || "nothing"}. Expected mean and cv, or p50 and p95, above 0`,
    "Write  lognormal: { mean: 4s, cv: 1 }",
  );
}

function ordered(low: number, high: number, path: Path, source: ScenarioSource): void {
  if (low > high) source.fail(path, "low is above high. Expected low <= high", "Swap them.");
}

function expectOne(found: readonly string[], known: readonly string[], path: Path, source: ScenarioSource): void {
  if (found.length !== 1)
    source.fail(
      path,
      `${found.length} kinds are given (${found.join(", ") || "none"}). Expected exactly one of ${known.join(", ")}`,
      "Keep one.",
    );
}

// Traffic

interface ArrivalContext {
  readonly path: Path;
  readonly names: Names;
  readonly queries: ScenarioInput["queries"];
  readonly cluster: ClusterSpec;
  readonly retry: RetryPolicy;
  readonly limits: Scenario["limits"];
  readonly context: BuildContext;
}

const ARRIVAL_KINDS = ["at", "rate", "every", "clients", "trace"] as const;

/** Keys that mean something only beside the key that names the kind. */
const ARRIVAL_KEYS: Readonly<Record<(typeof ARRIVAL_KINDS)[number], readonly string[]>> = {
  at: ["at", "count", "within"],
  rate: ["rate", "day", "from", "to"],
  every: ["every", "count", "from", "to"],
  clients: ["clients", "think", "requests", "from", "to"],
  trace: ["trace", "scale", "hold", "from", "to"],
};
const COMMON_KEYS = ["query", "coordinator", "retries"];

function buildArrival(a: ArrivalInput, in_: ArrivalContext): Arrival {
  const { path, cluster, retry, limits, context } = in_;
  const { source } = context;
  const kinds = ARRIVAL_KINDS.filter((kind) => a[kind] !== undefined);
  const kind = kinds[0];
  if (kind === undefined || kinds.length > 1)
    return source.fail(
      path,
      `this arrival has ${kinds.length === 0 ? "none" : kinds.join(" and ")} of ${ARRIVAL_KINDS.join(", ")}. Expected exactly one`,
      "Write for instance  { at: 0s, query: tile, count: 60 }",
    );
  const stray = Object.keys(a).find((key) => !ARRIVAL_KEYS[kind].includes(key) && !COMMON_KEYS.includes(key));
  if (stray !== undefined)
    source.fail(
      [...path, stray],
      `${stray} means nothing beside ${kind}. Expected ${[...ARRIVAL_KEYS[kind], ...COMMON_KEYS].join(", ")}`,
      "Remove it.",
    );
  const common = {
    mix: kind === "trace" ? [] : buildMix(a, in_),
    from: instant(a.from ?? a.at ?? 0),
    to: instant(a.to ?? Number.POSITIVE_INFINITY),
    route:
      a.coordinator === undefined
        ? cluster.route
        : buildRoute(a.coordinator, [...path, "coordinator"], cluster, source),
    retry: arrivalRetry(a, in_) ?? retry,
  };
  if (common.to <= common.from) source.fail([...path, "to"], "to is not after from", "Give a later moment.");
  const endless = (ends: boolean): void => {
    if (!ends && !Number.isFinite(common.to) && !Number.isFinite(limits.time) && !Number.isFinite(limits.queries))
      source.fail(
        path,
        "this traffic never ends. Expected an end",
        "Add  to: 10m  here, or  limits: { time: 10m }  for the run",
      );
  };
  switch (kind) {
    case "at":
      return { ...common, kind: "burst", count: a.count ?? 1, within: millis(a.within ?? 0) };
    case "rate":
      endless(false);
      return { ...common, kind: "rate", perSecond: a.rate!, day: dayFactors(a.day) };
    case "every":
      if (a.every === 0)
        source.fail([...path, "every"], "every is 0. Expected a time above 0", "For a burst write  at: 0s");
      endless(a.count !== undefined);
      return { ...common, kind: "every", every: millis(a.every!), count: a.count ?? Number.POSITIVE_INFINITY };
    case "clients":
      endless(a.requests !== undefined);
      return {
        ...common,
        kind: "clients",
        clients: a.clients!,
        think:
          a.think === undefined ? { kind: "fixed", value: 0 } : buildDistribution(a.think, [...path, "think"], source),
        requests: a.requests ?? Number.POSITIVE_INFINITY,
      };
    case "trace":
      if (a.query !== undefined)
        source.fail([...path, "query"], "query means nothing beside trace: the file names its classes", "Remove it.");
      return {
        ...common,
        kind: "trace",
        file: absolute(context.base, a.trace!),
        scale: a.scale ?? 1,
        hold: a.hold ?? "lastRow",
        rows: [],
      };
  }
}

function buildMix(a: ArrivalInput, { path, names, context }: ArrivalContext): ClassMix {
  if (a.query === undefined) {
    if (names.classes.length === 1) return [{ queryClass: 0, share: 1 }];
    return context.source.fail(
      path,
      `query is missing in arrivals[${String(path[1])}] and there are ${names.classes.length} classes. Expected the name of one`,
      `Write  query: ${names.classes[0]}`,
    );
  }
  if (typeof a.query === "string") return [{ queryClass: names.classIndex(a.query, [...path, "query"]), share: 1 }];
  const entries = Object.entries(a.query);
  if (entries.length === 0)
    context.source.fail(
      [...path, "query"],
      "query has no class. Expected weights by class name",
      `Write  query: { ${names.classes[0]}: 1 }`,
    );
  const total = entries.reduce((sum, [, weight]) => sum + weight, 0);
  return entries.map(([name, weight]) => ({
    queryClass: names.classIndex(name, [...path, "query", name]),
    share: weight / total,
  }));
}

/** The arrival's own, else that of its class if all its classes agree; null: that of the scenario. */
function arrivalRetry(a: ArrivalInput, { queries }: ArrivalContext): RetryPolicy | null {
  if (a.retries !== undefined) return buildRetry(a.retries);
  const name =
    typeof a.query === "string" ? a.query : a.query === undefined ? Object.keys(queries)[0] : Object.keys(a.query)[0];
  const own = name === undefined ? undefined : queries[name]?.retries;
  return own === undefined ? null : buildRetry(own);
}

const NO_RETRY: RetryPolicy = { on: [], attempts: 1, first: millis(0), factor: 1, most: millis(0), jitter: "none" };

function buildRetry(input: RetriesInput): RetryPolicy {
  if (input === "none") return NO_RETRY;
  const attempts = input.attempts === "unlimited" ? Number.POSITIVE_INFINITY : input.attempts;
  const { backoff } = input;
  if (backoff === undefined) {
    const wait = millis(input.wait ?? 1000);
    return { on: input.on, attempts, first: wait, factor: 1, most: wait, jitter: "none" };
  }
  return {
    on: input.on,
    attempts,
    first: millis(backoff.from),
    factor: backoff.factor,
    most: millis(backoff.to),
    jitter: backoff.jitter,
  };
}

function dayFactors(day: ArrivalInput["day"]): readonly number[] | null {
  if (day === undefined) return null;
  if (Array.isArray(day)) return day;
  return Array.from({ length: 24 }, (_, hour) => 1 + day.swing * sineOfHour(hour));
}

/** Sine of the middle of the hour, a day being one turn; from a table, since Math.sin may differ between engines. */
function sineOfHour(hour: number): number {
  const half = hour % 12;
  const value = SINE_BY_HOUR[half < 6 ? half : 11 - half]!;
  return hour < 12 ? value : -value;
}

// Faults

function buildFaults(faults: readonly FaultInput[], names: Names, context: BuildContext): Fault[] {
  const built = faults.flatMap((f, i) => whenNoticed(buildFault(f, ["faults", i], names, context)));
  return built
    .map((f, i) => ({ f, i }))
    .sort((a, b) => a.f.at - b.f.at || a.i - b.i)
    .map(({ f }) => f);
}

function buildFault(f: FaultInput, path: Path, names: Names, { base, source }: BuildContext): Fault {
  const at = instant(f.at);
  switch (f.fault) {
    case "hostDies":
    case "hostReturns":
    case "hostQuiesces":
    case "workerKilled":
      return { kind: f.fault, at, host: names.address(f.host, [...path, "host"]) };
    case "coordinatorDies":
    case "coordinatorReturns":
    case "coordinatorCutOff":
    case "coordinatorRejoins":
      return { kind: f.fault, at, host: names.coordinator(f.host, [...path, "host"]) };
    case "statestoreStops":
    case "statestoreStarts":
      return { kind: f.fault, at };
    case "releasesLost":
      return {
        kind: f.fault,
        at,
        chance: f.chance,
        host: f.host === undefined ? null : names.address(f.host, [...path, "host"]),
      };
    case "refusals":
      return {
        kind: f.fault,
        at,
        chance: f.chance,
        host: f.host === undefined ? null : names.address(f.host, [...path, "host"]),
        queryClass: f.query === undefined ? null : names.classIndex(f.query, [...path, "query"]),
      };
    case "configChanges":
      if (f.fairScheduler === undefined && f.llamaSite === undefined)
        source.fail(
          path,
          "configChanges names no file. Expected fairScheduler, llamaSite, or both",
          "Write  fairScheduler: new-fair-scheduler.xml",
        );
      return {
        kind: f.fault,
        at,
        fairScheduler: f.fairScheduler === undefined ? null : absolute(base, f.fairScheduler),
        llamaSite: f.llamaSite === undefined ? null : absolute(base, f.llamaSite),
      };
    case "statisticsDropped":
      return { kind: f.fault, at, queryClass: names.classIndex(f.query, [...path, "query"]), factor: f.factor };
  }
}

/** Files are written at once and noticed later, each at its own time. */
function whenNoticed(fault: Fault): readonly Fault[] {
  if (fault.kind !== "configChanges") return [fault];
  const { at, fairScheduler, llamaSite } = fault;
  return [
    ...(llamaSite === null ? [] : [{ ...fault, at: siteNoticedAt(at), fairScheduler: null }]),
    ...(fairScheduler === null ? [] : [{ ...fault, at: allocationNoticedAt(at), llamaSite: null }]),
  ];
}

/** The names that other places of the file may refer to. */
class Names {
  readonly classes: readonly string[];
  readonly #cluster: ClusterSpec;
  readonly #source: ScenarioSource;

  constructor(cluster: ClusterSpec, classes: readonly string[], source: ScenarioSource) {
    this.#cluster = cluster;
    this.classes = classes;
    this.#source = source;
  }

  classIndex(name: string, path: Path): number {
    const index = this.classes.indexOf(name);
    if (index >= 0) return index;
    return this.#source.fail(path, `unknown query class "${name}"`, nearestRemedy(name, this.classes));
  }

  address(name: string, path: Path): string {
    return this.#host(name, path, () => true, "host");
  }

  coordinator(name: string, path: Path): string {
    return this.#host(name, path, (isCoordinator) => isCoordinator, "coordinator");
  }

  #host(name: string, path: Path, suits: (isCoordinator: boolean) => boolean, what: string): string {
    const backends = backendsOf(this.#cluster);
    const found = findHost(backends, name);
    if (found !== null && suits(found.isCoordinator)) return found.address;
    const known = backends.filter((b) => suits(b.isCoordinator)).map((b) => hostNameOf(b.address));
    return this.#source.fail(
      path,
      `"${name}" is no ${what} of this cluster. Expected ${listed(known)}`,
      nearestRemedy(name, known),
    );
  }
}

// Words

const LISTED_AT_MOST = 6;

const listed = (names: readonly string[]): string =>
  names.length <= LISTED_AT_MOST
    ? names.join(", ")
    : `${names.slice(0, LISTED_AT_MOST - 1).join(", ")}, ... ${names.at(-1)}`;

function nearestRemedy(name: string, known: readonly string[]): string {
  const near = nearestName(name, known);
  return near === null ? `Known: ${listed(known)}.` : `Did you mean "${near}"?`;
}

const absolute = (base: string, path: string): string => (isAbsolute(path) ? path : resolve(base, path));
