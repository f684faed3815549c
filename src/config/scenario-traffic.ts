/**
 * Arrivals of a scenario file: when requests come, of which classes, at which coordinator, and who asks again.
 */
import { instant, millis } from "../core/units.ts";
import type { Arrival, ClassMix, ClusterSpec, RetryPolicy, Scenario } from "./scenario.ts";
import { absolute, type BuildContext, buildRoute, type Names } from "./scenario-context.ts";
import { buildDistribution } from "./scenario-distributions.ts";
import type { Path } from "./scenario-issues.ts";
import type { ArrivalInput, RetriesInput, ScenarioInput } from "./scenario-schema.ts";

const SINE_BY_HOUR: readonly number[] = [
  0.130526192220052, 0.38268343236509, 0.608761429008721, 0.793353340291235, 0.923879532511287, 0.99144486137381,
];

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

export function buildArrival(a: ArrivalInput, in_: ArrivalContext): Arrival {
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
  const hasLimits = Number.isFinite(limits.time) || Number.isFinite(limits.queries);
  // Whoever can never be let in asks for ever; `to` keeps first attempts away only.
  if (common.retry.attempts === Number.POSITIVE_INFINITY && !hasLimits)
    source.fail(
      path,
      "its retries may never end: attempts are unlimited. Expected an end",
      "Write a number of attempts, or  limits: { time: 10m }  for the run",
    );
  const endless = (ends: boolean): void => {
    if (!ends && !Number.isFinite(common.to) && !hasLimits)
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

export function buildRetry(input: RetriesInput): RetryPolicy {
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
