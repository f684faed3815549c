/**
 * Field cases: problems reported in public, replayed step by step (field-cases.md gives the schema). Sizes there are
 * MB, times ms; the statestore moves only when a case says so.
 */
import { DEFAULT_POOL_CONFIG, type PoolConfig, ROOT_POOL } from "../../../src/core/pool-config.ts";
import { MiB, millis } from "../../../src/core/units.ts";
import type { Admission } from "../../model/port.ts";
import { type CaseFiles, directoryFor, startWith } from "../case-files.ts";
import {
  addressOf,
  Cluster,
  type HostSpec,
  hostOf,
  type OutcomeChange,
  type Query,
  RESULT_TEXT,
  type Reason,
} from "../cluster.ts";
import { DEFAULT_SETTINGS, type MakeController } from "../controllers.ts";
import { makeCore } from "../core-controller.ts";
import type { FamilyRunner, Verdict } from "../family.ts";
import { HostExecution } from "../host-execution.ts";
import { ChangingPools, type PoolSource } from "../pools.ts";
import { shapeOf } from "../shapes.ts";

// biome-ignore lint/suspicious/noExplicitAny: the cases' own schema.
type Any = any;

export const run: FamilyRunner = ({ input, expected }) => runOn(makeCore, input, expected);

/**
 * As the product does it; a case that doesn't come out so is played once more with the product's faults repaired,
 * and if that is what it expects, it passes with a note that says so (T-10: a cluster without any executor group
 * dequeues nothing, coordinator-only queries included; T-28: the leaked quota load).
 */
export function runOn(makeController: MakeController, input: Any, expected: Any): Verdict {
  const beyond = expected.outcomes.find((o: Any) => isOnlyInWords(o));
  if (beyond !== undefined && input.check === "by-hand") return admissionOnly(makeController, input, expected, beyond);
  const faithful = complaintsOf(makeController, input, expected, false);
  if (faithful.length === 0) return { kind: "pass" };
  if (complaintsOf(makeController, input, expected, true).length === 0)
    return { kind: "pass", note: `only with the product's faults repaired; as the product does it: ${faithful[0]}` };
  return { kind: "fail", expected: expected.outcomes, got: faithful };
}

/** What admission says must still hold; what the rest of such a case rests on is in its words only. */
function admissionOnly(makeController: MakeController, input: Any, expected: Any, beyond: Any): Verdict {
  const outcomes = expected.outcomes.filter((o: Any) => !isOnlyInWords(o));
  const wrong = complaintsOf(makeController, input, { ...expected, outcomes }, false);
  if (wrong.length > 0) return { kind: "fail", expected: outcomes, got: wrong };
  const why = `its admission holds; that it ends as "${beyond.result}" (${beyond.reason}) is by-hand: what brings it about stands in the case's notes, not in its events`;
  return { kind: "skip", why };
}

function complaintsOf(makeController: MakeController, input: Any, expected: Any, repaired: boolean): string[] {
  const replay = new Replay(makeController, input, repaired);
  const complaints = replay.play(expected.state);
  return [...complaints, ...compareOutcomes(expected.outcomes, replay.outcomes())];
}

/** Failures that come out of figures a case gives; others are only told, in notes. */
const FAILURES_IN_FIGURES = new Set(["MINIMUM_RESERVATION_UNAVAILABLE", "SCRATCH_ALLOCATION_FAILED"]);

const isOnlyInWords = (o: Any): boolean =>
  o.result === "Completed" || (o.result === "Execution failed" && !FAILURES_IN_FIGURES.has(o.reason));

// ---- replay ------------------------------------------------------------------------------------------------------

class Replay {
  private readonly cluster: Cluster;
  private readonly pools: ChangingPools;
  private readonly input: Any;
  private rootAcl: string | null;
  /** `connection|option` -> value. */
  private readonly options = new Map<string, string>();
  private readonly starts: Happened[] = [];
  private readonly executions: ReadonlyMap<string, HostExecution>;

  constructor(makeController: MakeController, input: Any, repaired: boolean) {
    this.input = input;
    const { config } = input;
    this.rootAcl = config.rootAclSubmit ?? null;
    this.pools = new ChangingPools(declaredPools(config));
    this.cluster = new Cluster({
      hosts: hostsOf(config),
      pools: this.pools,
      admissionService: config.mode === "admission-service",
      makeController,
      detectAfterMs: 0,
      retainedRemovedCoordinators: 1000,
      settings: {
        ...DEFAULT_SETTINGS,
        repaired,
        poolOrder: config.poolOrder ?? [],
        balanceGroups: config.flags.balanceGroups ?? false,
        clampToHosts: config.flags.clampBackendMemLimit ?? true,
        queueWaitTimeoutMs: config.flags.queueWaitTimeoutMs ?? 60_000,
      },
    });
    this.executions = executionsOf(config);
    this.cluster.onStarted = (query, admission) => this.startExecution(query, admission);
  }

  /** The coordinator's own fragment reserves next to nothing; the executors are what these cases are about. */
  private startExecution(query: Query, admission: Admission): void {
    const onExecutors = query.spec.shape.fragments.filter((f) => f.runsOn === "executors");
    const minimum = onExecutors.reduce((sum, f) => sum + f.minReservationPerBackend, 0);
    query.whenGone.push(() => {
      for (const execution of this.executions.values()) execution.end(query.id);
    });
    for (const { address } of admission.backends) {
      const code = this.executions.get(address)?.start(query.id, minimum, admission.perHostLimit) ?? null;
      if (code === null) continue;
      this.cluster.failExecution(query, code, hostOf(address));
      break;
    }
  }

  private spill(e: Any): void {
    const query = this.cluster.byName(e.query);
    const code = this.executions.get(addressOf(e.host))?.spill(query.id, e.mb * MiB) ?? null;
    if (code !== null) this.cluster.failExecution(query, code, e.host);
  }

  /** Plays all events; what a state line contradicts comes back as text. */
  play(state: readonly Any[]): string[] {
    const complaints: string[] = [];
    const lines = [...state];
    const checkUpTo = (t: number): void => {
      while (lines.length > 0 && lines[0].t <= t) {
        const line = lines.shift();
        this.cluster.time.advanceBefore(line.t);
        const got = this.valueAt(line.path);
        if (got !== line.value) complaints.push(`at ${line.t} ${line.path} is ${String(got)}, expected ${line.value}`);
      }
    };
    lines.sort((a, b) => a.t - b.t);
    for (const event of this.input.events) {
      checkUpTo(event.t);
      this.cluster.time.advanceTo(event.t);
      this.apply(event);
    }
    checkUpTo(Number.POSITIVE_INFINITY);
    this.cluster.time.advanceUntil("all time-outs are through", () => !this.someoneWaits());
    // What is due at this very moment still belongs to it.
    this.cluster.time.advanceTo(this.cluster.time.now);
    return [...complaints, ...this.leftBehind()];
  }

  /** Whoever failed or ended has given everything back. */
  private leftBehind(): string[] {
    if (this.cluster.queries.some((q) => !q.gone)) return [];
    const holding = [...this.executions].filter(([, execution]) => execution.held > 0);
    return holding.map(([address, { held }]) => `${held} bytes are still held on ${address}`);
  }

  private someoneWaits(): boolean {
    return this.cluster.queries.some((q) => q.outcome === "queued" && !q.gone);
  }

  private apply(e: Any): void {
    const { cluster } = this;
    switch (e.op) {
      case "submit":
        this.submit(e);
        break;
      case "release":
      case "eos":
        if (!e.lost) cluster.finish(cluster.byName(e.query));
        break;
      case "releaseBackends":
        if (!e.lost) cluster.releaseHost(cluster.byName(e.query), e.hosts);
        break;
      case "cancel":
        cluster.cancel(cluster.byName(e.query));
        break;
      case "statestoreTick":
        cluster.round();
        break;
      case "disconnect":
        cluster.disconnect(e.coordinator);
        break;
      case "killExecutor":
        cluster.killHost(e.executor);
        break;
      case "killCoordinator":
        cluster.killHost(e.coordinator);
        break;
      case "addExecutor":
        cluster.addHost(executor(e.executor, { name: e.group, minSize: e.minSize ?? 1 }));
        break;
      case "setPool":
        this.pools.change(e.pool, poolFields(e.set));
        break;
      case "reloadFile":
        if (e.valid)
          for (const [pool, fields] of Object.entries(e.set ?? {})) this.pools.change(pool, poolFields(fields));
        break;
      case "setRootAcl":
        this.rootAcl = e.value;
        break;
      case "setOption":
        this.options.set(`${e.connection}|${e.option}`, e.value);
        break;
      case "submitUnplaced":
        this.submitUnplaced(e);
        break;
      case "start":
        this.starts.push(startOutcome(e, this.starts.length + 1));
        break;
      case "heartbeat":
        cluster.heartbeat(
          e.coordinator,
          e.version,
          e.queries.map((name: string) => cluster.byName(name)),
        );
        break;
      case "restartAdmissionService":
        cluster.stopService();
        cluster.startService();
        cluster.introduceService();
        break;
      case "serviceMemUsed":
        cluster.setServiceMemory(e.mb * MiB, this.input.config.flags.serviceMemLimitMb * MiB);
        break;
      case "spill":
        this.spill(e);
        break;
      default:
        throw new Error(`this replay has no event "${e.op}"`);
    }
  }

  /** The placement rules and rights of the files decide first; admission sees the pool they lead to. */
  private submitUnplaced(e: Any): void {
    const { config } = this.input;
    const requested = e.requestedPool ?? this.options.get(`${e.connection}|REQUEST_POOL`) ?? "";
    const files = { ...caseFiles(config), rootAclSubmit: this.rootAcl };
    const resolution = directoryFor(files, config.userGroups ?? {}).resolve(requested, e.user);
    const query = this.newQuery({
      coordinator: config.coordinators[0].id,
      perHostEstimateMb: 100,
      ...e,
      pool: resolution.pool,
    });
    if (resolution.kind === "refused") this.cluster.end(query, "failed", resolution.error);
    else this.cluster.submit(query);
  }

  private submit(e: Any): void {
    const query = this.newQuery(e);
    this.cluster.submit(query);
    if (query.outcome === "queued") this.cluster.armTimeout(query);
  }

  private newQuery(e: Any): Query {
    const executors = this.input.config.executorGroups.flatMap((g: Any) => g.executors.map((x: Any) => x.id));
    const mb = (n: number | undefined): number => (n ?? 0) * MiB;
    return this.cluster.newQuery({
      name: e.query,
      at: e.coordinator,
      pool: e.pool,
      user: e.user ?? "u",
      resolved: true,
      durationMs: null,
      startsFragments: e.startsFragments ?? true,
      delayBeforeMs: 0,
      delayAfterMs: 0,
      // The hosts of a case may be any of the group's: leaving the others out is how a schedule gets exactly these.
      blacklisted: e.hosts === undefined ? [] : executors.filter((id: string) => !e.hosts.includes(id)),
      placementOffset: 0,
      shape: shapeOf({
        stmtType: "QUERY",
        perHostEstimate: mb(e.perHostEstimateMb),
        coordEstimate: mb(e.coordEstimateMb ?? 100),
        trivial: e.trivial ?? false,
        coordinatorOnly: (e.coordinatorOnly ?? false) || (e.trivial ?? false),
        allCoordinators: false,
        executors: "all",
        slotsPerHost: e.slotsPerHost ?? 1,
        coordSlots: e.coordSlots ?? 1,
        minReservation: mb(e.minReservationMb),
        coordMinReservation: mb(e.coordMinReservationMb),
        options: {
          memLimit: mb(e.memLimitMb),
          memLimitExecutors: mb(e.memLimitExecutorsMb),
          memLimitCoordinators: mb(e.memLimitCoordinatorsMb),
          maxMemEstimateForAdmission: mb(e.maxMemEstimateForAdmissionMb),
        },
      }),
    });
  }

  // ---- what can be looked at ------------------------------------------------------------------------------------

  outcomes(): Happened[] {
    const all = this.cluster.queries.flatMap((query) => query.history.map((change) => ({ query, change })));
    const decided = all.sort((a, b) => a.change.order - b.change.order).map(happened);
    return [...this.starts, ...decided].sort((a, b) => a.t - b.t);
  }

  private valueAt(path: string): unknown {
    const [kind, of = "", ...rest] = path.split("|");
    if (kind === "query") return this.queryValue(this.cluster.byName(of), rest[0] ?? "");
    const figures = this.cluster
      .controllers()
      .find(({ name }) => name === of)
      ?.controller.figures();
    if (figures === undefined) throw new Error(`no controller ${of} in this case`);
    const [what = "", first = "", second = ""] = rest;
    if (what === "dequeueFailedCoordinatorLimited") return figures.coordinatorLimited;
    if (what === "user") return figures.pools[first]?.aggUsers[second] ?? 0;
    if (what === "host") {
      const host = figures.hosts[addressOf(first)];
      if (second === "memAdmittedMb") return (host?.memAdmitted ?? 0) / MiB;
      if (second === "memReservedMb") return (host?.memReserved ?? 0) / MiB;
      if (second === "slotsInUse") return host?.slotsInUse ?? 0;
      if (second === "numAdmitted") return host?.numAdmitted ?? 0;
    }
    const pool = figures.pools[first];
    if (what === "pool" && pool !== undefined) {
      const values: Record<string, number | undefined> = {
        aggRunning: pool.aggRunning,
        aggQueued: pool.aggQueued,
        aggMemReservedMb: pool.aggMemReserved / MiB,
        localMemAdmittedMb: pool.localMemAdmitted / MiB,
        localRunning: pool.localRunning,
        localQueued: pool.localQueued,
        totalRejected: pool.totals.rejected,
      };
      if (second in values) return values[second];
    }
    throw new Error(`this replay can't read ${path}`);
  }

  private queryValue(query: Query, what: string): unknown {
    const a = query.admission;
    const values: Record<string, unknown> = {
      perHostMemToAdmitMb: (a?.perHost ?? 0) / MiB,
      coordMemToAdmitMb: (a?.coordinator ?? 0) / MiB,
      clusterMemMb: (a?.cluster ?? 0) / MiB,
      perHostMemLimitMb: a === null ? null : a.perHostLimit < 0 ? -1 : a.perHostLimit / MiB,
      coordMemLimitMb: a === null ? null : a.coordinatorLimit < 0 ? -1 : a.coordinatorLimit / MiB,
      initialReason: codeOf(query.initialReason?.reason ?? null),
      latestReason: codeOf(query.latestReason?.reason ?? null),
    };
    if (!(what in values)) throw new Error(`this replay can't read ${what} of a query`);
    return values[what];
  }
}

// ---- outcomes ----------------------------------------------------------------------------------------------------

/** One outcome as a case would write it down, with all that could be asserted of it. */
interface Happened {
  readonly query: string;
  readonly t: number;
  readonly result: string;
  /** Several only for a start with more than one warning. */
  readonly reasons: readonly string[];
  readonly host?: string | undefined;
  readonly level?: string | undefined;
  readonly pool?: string;
  readonly group?: string | undefined;
  readonly waitMs?: number | null;
  readonly stale?: boolean;
  readonly error?: string;
}

function happened({ query, change }: { readonly query: Query; readonly change: OutcomeChange }): Happened {
  const { reason } = change;
  const group = query.admission?.group;
  const refused = change.outcome === "failed";
  const { failure } = change;
  return {
    query: query.spec.name,
    t: change.at,
    result: refused
      ? "Submission error"
      : failure !== null
        ? "Execution failed"
        : (RESULT_TEXT[change.outcome] ?? change.outcome),
    reasons: reasonsOf(query, change),
    host: failure?.host ?? (reason !== null && "host" in reason ? hostOf(reason.host) : undefined),
    level: reason !== null && "pool" in reason ? reason.pool : undefined,
    pool: query.pool,
    group: group?.startsWith("empty group") ? "empty" : group,
    waitMs: change.waitedMs,
    stale: change.staleness !== "",
    error: query.error,
  };
}

function reasonsOf(query: Query, { outcome, reason, failure }: OutcomeChange): string[] {
  if (failure !== null) return [failure.code];
  if (outcome === "failed") return query.error.includes("denied access") ? ["ACL_DENIED"] : [];
  return [codeOf(reason) ?? ""];
}

/** Up to the last one that is listed, what happened must be the list: same queries, times and order. */
function compareOutcomes(expected: readonly Any[], all: readonly Happened[]): string[] {
  const last = Math.max(...expected.map((o) => o.t));
  const got = all.filter(({ t }) => t <= last);
  const wrong: string[] = [];
  for (let i = 0; i < Math.max(expected.length, got.length); i++) {
    const [e, g] = [expected[i], got[i]];
    const fits = e !== undefined && g !== undefined && Object.keys(e).every((k) => saysSo(g, k, e[k]));
    if (!fits) wrong.push(`outcome ${i + 1}: expected ${JSON.stringify(e)}, got ${JSON.stringify(g)}`);
  }
  return wrong;
}

const saysSo = (g: Happened, key: string, value: unknown): boolean =>
  key === "reason" ? g.reasons.includes(String(value)) : g[key as keyof Happened] === value;

// ---- starts with given files --------------------------------------------------------------------------------------

function startOutcome(e: Any, number: number): Happened {
  const { allocation } = e;
  const extraQuotas = [
    ...twice("user", allocation.duplicateUserLimit),
    ...twice("group", allocation.duplicateGroupLimit),
  ];
  const started = startWith({
    pools: allocation.pools ?? [],
    rootAclSubmit: allocation.rootAclSubmit ?? null,
    rootLimits: { userLimits: allocation.rootUserLimits, groupLimits: allocation.rootGroupLimits },
    placement: [],
    extraQuotas,
  });
  const said = "refused" in started ? [started.refused] : started.warnings;
  const result =
    "refused" in started ? "Start refused" : started.warnings.length > 0 ? "Started with warning" : "Started";
  return { query: `start${number}`, t: e.t, result, reasons: said.map(faultCode) };
}

const twice = (tag: "user" | "group", d: Any) =>
  d === undefined
    ? []
    : d.values.map((limit: number) => ({ pool: d.pool, tag, name: d[tag] ?? d.user ?? d.group, limit }));

function faultCode(text: string): string {
  if (text.includes("Duplicate")) return "DUPLICATE_QUOTA";
  if (text.includes("no aclSubmitApps permissions")) return "LEAF_WITHOUT_ACL";
  if (text.includes("will have no effect")) return "LEAF_QUOTA_IGNORED";
  return text;
}

const caseFiles = (config: Any): CaseFiles => ({
  pools: config.pools,
  rootAclSubmit: config.rootAclSubmit ?? null,
  rootLimits: rootQuotas(config),
  placement: config.placement ?? [],
  extraQuotas: [],
});

const CODES: Readonly<Record<string, string>> = {
  "ADM-1": "QUEUE_NOT_EMPTY",
  "ADM-2": "NUM_RUNNING",
  "ADM-3": "SLOTS",
  "ADM-4": "POOL_MEM",
  "ADM-5": "HOST_MEM",
  "NO-EXECUTORS": "NO_EXECUTORS",
  "REJ-A1": "POOL_DISABLED_REQUESTS",
  "REJ-A2": "POOL_DISABLED_MEM",
  "REJ-A3": "BAD_POOL_CONFIG",
  "REJ-A4": "BAD_POOL_CONFIG",
  "REJ-A5": "QUEUE_FULL",
  "REJ-B1": "SLOTS_IMPOSSIBLE",
  "REJ-B2a": "MIN_RESERVATION_BUFFER_LIMIT",
  "REJ-B2b": "MIN_RESERVATION_LIMIT",
  "REJ-B6": "MIN_RESERVATION_POOL",
  "REJ-B7": "REQ_OVER_POOL",
  "REJ-B8": "REQ_OVER_NODE",
  "REJ-B9": "REQ_OVER_NODE",
  "REJ-C2": "COORD_REMOVED",
  "REJ-C4": "SERVICE_MEM",
};

function codeOf(reason: Reason | null): string | null {
  if (reason === null) return null;
  if (reason.rule === "REJ-C3") return `${reason.kind.toUpperCase()}_QUOTA`;
  return CODES[reason.rule] ?? reason.rule;
}

/** One for each executor about whose memory or scratch space the case says something. */
function executionsOf(config: Any): Map<string, HostExecution> {
  const fraction = config.flags.bufferPoolFraction ?? null;
  const executions = new Map<string, HostExecution>();
  for (const { id, admitMemMb } of config.executorGroups.flatMap((g: Any) => g.executors)) {
    const scratch = (config.spill?.[id]?.dirs ?? []).map((d: Any) => ({ path: d.id, limit: d.capMb * MiB }));
    const bufferPoolBytes = fraction === null ? null : Math.floor(fraction * admitMemMb * MiB);
    if (fraction !== null || scratch.length > 0)
      executions.set(addressOf(id), new HostExecution({ address: addressOf(id), bufferPoolBytes, scratch }));
  }
  return executions;
}

// ---- configuration ------------------------------------------------------------------------------------------------

function hostsOf(config: Any): HostSpec[] {
  const hosts = new Map<string, HostSpec>();
  for (const group of config.executorGroups)
    for (const e of group.executors) hosts.set(e.id, executor(e, { name: group.name, minSize: group.minSize ?? 1 }));
  for (const c of config.coordinators) {
    const asExecutor = hosts.get(c.id);
    hosts.set(c.id, {
      ...(asExecutor ?? executor(c, { name: "default", minSize: 1 })),
      executor: asExecutor !== undefined || !c.dedicated,
      coordinator: true,
    });
  }
  return [...hosts.values()];
}

const executor = (e: Any, group: HostSpec["group"]): HostSpec => ({
  name: e.id,
  coordinator: false,
  executor: true,
  admitMemLimit: e.admitMemMb * MiB,
  slots: e.slots,
  group,
});

function declaredPools(config: Any): PoolSource {
  const pools = new Map<string, PoolConfig>();
  for (const p of config.pools) pools.set(p.name, { ...DEFAULT_POOL_CONFIG, ...poolFields(p) });
  pools.set(ROOT_POOL, { ...DEFAULT_POOL_CONFIG, ...pools.get(ROOT_POOL), ...poolFields(rootQuotas(config)) });
  return {
    config: (pool) => pools.get(pool) ?? DEFAULT_POOL_CONFIG,
    resolve: (requested, user) => ({ pool: requested, user, groups: config.userGroups?.[user] ?? [] }),
  };
}

const rootQuotas = (config: Any): { userLimits?: Any; groupLimits?: Any } => {
  const root = config.rootLimits ?? {};
  return "userLimits" in root || "groupLimits" in root ? root : { userLimits: root };
};

/** Only the fields that are given; null takes a key out of the file, so its default comes back. */
function poolFields(p: Any): Partial<PoolConfig> {
  const fields: Record<string, unknown> = {};
  const put = (field: keyof PoolConfig, key: string, of: (v: Any) => unknown = (v) => v): void => {
    if (p[key] === undefined) return;
    fields[field] = p[key] === null ? DEFAULT_POOL_CONFIG[field] : of(p[key]);
  };
  const mb = (n: number): number => (n > 0 ? n * MiB : n);
  put("maxMemResources", "maxMemMb", mb);
  put("maxRequests", "maxRequests");
  put("maxQueued", "maxQueued");
  put("queueTimeout", "queueTimeoutMs", (ms) => (ms > 0 ? millis(ms) : null));
  put("minQueryMemLimit", "minQueryMemMb", mb);
  put("maxQueryMemLimit", "maxQueryMemMb", mb);
  put("clampMemLimitQueryOption", "clampMemLimit");
  put("userQueryLimits", "userLimits", (m) => new Map(Object.entries(m)));
  put("groupQueryLimits", "groupLimits", (m) => new Map(Object.entries(m)));
  put("onlyCoordinators", "onlyCoordinators");
  return fields as Partial<PoolConfig>;
}
