/**
 * Query classes of a scenario file: what a class asks of admission, and what its queries do on their hosts.
 */
import type { FragmentShape, RequestShape } from "../core/admission/request.ts";
import { limitNeededFor } from "../core/admission/reservation-math.ts";
import { type Bytes, bytes, MiB } from "../core/units.ts";
import { QUERY_OPTIONS } from "./known-options.ts";
import { limitsUnder, planOf } from "./operator-plan.ts";
import type { OptionTexts } from "./option-values.ts";
import { isMemoryOption, readOption } from "./query-options.ts";
import { admissionOptions, freezeShape } from "./request-shape.ts";
import type { Distribution, KeySpec, OperatorSpec, QueryClass, RowsSpec, Use, WrittenLimits } from "./scenario.ts";
import { type Names, nearestRemedy } from "./scenario-context.ts";
import { buildDistribution, expectOne } from "./scenario-distributions.ts";
import type { Path, ScenarioSource } from "./scenario-issues.ts";
import type { KeysInput, QueryClassInput, RowsInput, UsesInput } from "./scenario-schema.ts";

/** Stands for the time of real operators where there are none (virtual time). */
const OPERATOR_MS_PER_ROW = 1e-4;

export function buildClass(
  name: string,
  index: number,
  q: QueryClassInput,
  names: Names,
  source: ScenarioSource,
): QueryClass {
  const path = ["queries", name];
  const options = buildOptions(q.options, [...path, "options"], source);
  const uses = buildUse(q, options, path, names, source);
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

function buildUse(q: QueryClassInput, options: OptionTexts, path: Path, names: Names, source: ScenarioSource): Use {
  const operators = [
    ...buildOperators(q, options, path, source),
    ...buildOperators(q.uses ?? {}, options, [...path, "uses"], source),
  ];
  const { uses } = q;
  if (operators.length > 0) {
    if (uses?.peak !== undefined)
      source.fail(
        [...path, "uses", "peak"],
        "uses has a peak and the class has operators. Expected one of them",
        "Remove the peak.",
      );
    return {
      kind: "operators",
      operators: operators.map((o) => o.spec),
      written: operators.map((o) => o.written),
      hasPlannedMinimum: q.minReservation === undefined && q.fragments === undefined,
    };
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

interface BuiltOperator {
  readonly spec: OperatorSpec;
  readonly written: WrittenLimits;
}

/** In the order of a plan: join, then aggregate, then sort. */
function buildOperators(
  input: OperatorsInput,
  options: OptionTexts,
  path: Path,
  source: ScenarioSource,
): BuiltOperator[] {
  const found: BuiltOperator[] = [];
  const { join, aggregate, sort } = input;
  if (join !== undefined) {
    const build = buildRows(join.build, [...path, "join", "build"], source);
    const probe = buildRows(join.probe, [...path, "join", "probe"], source);
    const written = writtenLimits(join, [...path, "join"], source);
    const limits = limitsUnder("join", build, written, options);
    found.push({ spec: { kind: "join", build, probe, limits }, written });
  }
  if (aggregate !== undefined) {
    const rows = buildRows(aggregate, [...path, "aggregate"], source);
    const written = writtenLimits(aggregate, [...path, "aggregate"], source);
    const limits = limitsUnder("aggregate", rows, written, options);
    found.push({ spec: { kind: "aggregate", input: rows, preAggregate: aggregate.preAggregate, limits }, written });
  }
  if (sort !== undefined) {
    const rows = buildRows(sort, [...path, "sort"], source);
    const written = writtenLimits(sort, [...path, "sort"], source);
    found.push({ spec: { kind: "sort", input: rows, limits: limitsUnder("sort", rows, written, options) }, written });
  }
  return found;
}

function writtenLimits(
  { bufferSize, maxRowSize }: { readonly bufferSize?: number | undefined; readonly maxRowSize?: number | undefined },
  path: Path,
  source: ScenarioSource,
): WrittenLimits {
  if (bufferSize !== undefined && (bufferSize < 65_536 || !isPowerOfTwo(bufferSize)))
    source.fail(
      [...path, "bufferSize"],
      `bufferSize is ${bufferSize} bytes. Expected a power of two from 64kb`,
      "Write  bufferSize: 2mb",
    );
  return {
    bufferSize: bufferSize === undefined ? null : bytes(bufferSize),
    maxRowSize: maxRowSize === undefined ? null : bytes(maxRowSize),
  };
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
