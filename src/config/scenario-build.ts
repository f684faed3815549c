/**
 * From the checked form of a scenario file to the record that everybody works from: defaults that depend on
 * something else, names that must exist, combinations that make no sense.
 *
 * Everything here may look at two places at once; what one value may look like is the schema's business.
 */

import { DEFAULT_GROUP } from "../core/cluster/backend.ts";
import { bytes, instant, millis } from "../core/units.ts";
import { expectedGroupSets } from "./expected-group-sets.ts";
import { parseFlags } from "./impala-flags.ts";
import { FLAGS, FLAGS_SET_ELSEWHERE, FLAGS_WITHOUT_EFFECT } from "./known-options.ts";
import { allocationNoticedAt, siteNoticedAt } from "./reload-times.ts";
import type { ClusterSpec, Fault, QueryClass, Scenario } from "./scenario.ts";
import { buildClass } from "./scenario-classes.ts";
import { absolute, type BuildContext, buildRoute, Names, nearestRemedy } from "./scenario-context.ts";
import type { Path, ScenarioSource } from "./scenario-issues.ts";
import type { FaultInput, ScenarioInput } from "./scenario-schema.ts";
import { buildArrival, buildRetry } from "./scenario-traffic.ts";
import { parseThreshold } from "./threshold.ts";

const COORDINATOR_SLOTS_FACTOR = 8;
const DEFAULT_MEMORY_SCALE = 1024;

export function buildScenario(input: ScenarioInput, context: BuildContext): Scenario {
  const { source } = context;
  const cluster = buildCluster(input, source);
  expectExecutorsFor(input.queries, cluster, source);
  const names = new Names(cluster, Object.keys(input.queries), source);
  const queries = Object.entries(input.queries).map(([name, q], index) => buildClass(name, index, q, names, source));
  if (queries.length === 0 && input.arrivals.some((a) => a.trace === undefined))
    source.fail(
      ["queries"],
      "queries names no query class, and not all arrivals are traces. Expected at least one",
      "Write for instance  queries: { tile: { estimate: 1gb, duration: 4s } }",
    );
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
    flags: buildFlags(input, cluster, source),
    users: input.users,
    queries,
    arrivals,
    faults: buildFaults(input, names, context),
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

/** Each has records of its own all through a run; no Impala cluster comes near it. */
const MOST_HOSTS = 100_000;

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
  const dedicated = coordinators.reduce((n, c) => n + (c.on === "dedicated" ? c.count : 0), 0);
  if (hosts + dedicated > MOST_HOSTS)
    source.fail(
      ["cluster"],
      `the cluster has ${hosts + dedicated} hosts. Expected at most ${MOST_HOSTS}`,
      "Lower a count.",
    );
  const shared = coordinators.reduce((n, c) => n + (c.on === "executor" ? c.count : 0), 0);
  if (shared > hosts)
    source.fail(
      ["cluster", "coordinators"],
      `${shared} coordinators on executors, but there are only ${hosts} executors`,
      "Lower the count or write  on: dedicated",
    );
  return { ...spec, route: buildRoute(input.cluster.route, ["cluster", "route"], spec, source) };
}

/** A query runs in one group. Of a number that no group has, only so many as there are would be taken. */
function expectExecutorsFor(
  queries: ScenarioInput["queries"],
  { executors }: ClusterSpec,
  source: ScenarioSource,
): void {
  const sizes = new Map<string, number>();
  for (const { group, count } of executors) sizes.set(group.name, (sizes.get(group.name) ?? 0) + count);
  const most = Math.max(...sizes.values());
  for (const [name, { hosts }] of Object.entries(queries))
    if (hosts !== "all" && hosts > most)
      source.fail(
        ["queries", name, "hosts"],
        `hosts is ${hosts}. Expected at most ${most}, ${sizes.size === 1 ? "as many executors as there are" : "the size of the largest executor group"}`,
        "Lower it, write  hosts: all  or raise the count of executors.",
      );
}

type GroupInput = ScenarioInput["cluster"]["executors"][number]["executorGroup"];

function executorGroup(input: GroupInput, path: Path, source: ScenarioSource): { name: string; minSize: number } {
  if (input === undefined) return { name: DEFAULT_GROUP, minSize: 1 };
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

function buildPools(input: ScenarioInput, { base }: BuildContext): Scenario["pools"] {
  if (input.pools === "flags") return { kind: "flags" };
  const { fairScheduler, llamaSite } = input.pools;
  return {
    kind: "files",
    fairScheduler: absolute(base, fairScheduler),
    llamaSite: llamaSite === undefined ? null : absolute(base, llamaSite),
  };
}

function buildFlags(input: ScenarioInput, cluster: ClusterSpec, source: ScenarioSource): Record<string, string> {
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
    if (name === "expected_executor_group_sets") checkGroupSets(String(value), written, cluster, source);
    flags[name] = String(value);
  }
  return flags;
}

/** With executors of no named group the planner knows one set, whatever is expected (admission 6.4). */
function checkGroupSets(text: string, written: string, cluster: ClusterSpec, source: ScenarioSource): void {
  const parsed = expectedGroupSets(text);
  if (!parsed.ok)
    source.fail(["flags", written], parsed.problem, 'Write prefixes and sizes:  "root.small:2,root.large:10"');
  if (parsed.sets.length === 0 || cluster.executors.some((e) => e.group.name !== DEFAULT_GROUP)) return;
  source.fail(
    ["flags", written],
    `flag "${written}" changes nothing where no executors are in a group`,
    `Write  executorGroup: ${parsed.sets[0]!.prefix}-000  for some of cluster.executors`,
  );
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

// Faults

function buildFaults({ faults, cluster }: ScenarioInput, names: Names, context: BuildContext): Fault[] {
  if (cluster.admission === "distributed") refuseLostReleases(faults, context.source);
  const built = faults.flatMap((f, i) => whenNoticed(buildFault(f, ["faults", i], names, context)));
  return built
    .map((f, i) => ({ f, i }))
    .sort((a, b) => a.f.at - b.f.at || a.i - b.i)
    .map(({ f }) => f);
}

/** In distributed mode a release is a call inside the coordinator's process, in the product too (admission 9.2, 9.3). */
function refuseLostReleases(faults: readonly FaultInput[], source: ScenarioSource): void {
  const i = faults.findIndex((f) => f.fault === "releasesLost");
  if (i >= 0)
    source.fail(
      ["faults", i],
      "releasesLost, and a coordinator that decides for itself sends no message that could get lost: it releases by a call",
      "Write  cluster: { admission: admissiond } , or use what can get lost: coordinatorCutOff (topic updates, both ways), coordinatorDies or hostDies (places stay taken until the process is missed).",
    );
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
        host: f.host === undefined ? null : names.coordinator(f.host, [...path, "host"]),
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
