/**
 * Random stories for a handful of controllers, told to the slow model and to the core side by side. After every step
 * both must have answered the same and must stand at the same figures.
 *
 * Amounts come in few sizes, so that limits are met exactly, not only missed by far. A story is plain data: what
 * fast-check prints when it has shrunk one can be pasted into a test.
 */
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import {
  type AdmissionRequest,
  DEFAULT_ADMISSION_OPTIONS,
  type RequestShape,
} from "../../src/core/admission/request.ts";
import type { BackendDescriptor } from "../../src/core/cluster/backend.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig } from "../../src/core/pool-config.ts";
import { bytes, millis } from "../../src/core/units.ts";
import { makeCore } from "../conformance/core-controller.ts";
import { Statestore } from "../conformance/statestore.ts";
import type { ModelSettings } from "./controller.ts";
import { type ControllerPort, type End, ModelPort } from "./port.ts";
import type { ModelCluster } from "./schedule.ts";

// ---- the story as data ----------------------------------------------------------------------------------------

interface World {
  readonly admissiond: boolean;
  readonly dropsSchedules: boolean;
  readonly coordinators: number;
  /** Pools that passes visit first. */
  readonly poolOrder: readonly number[];
  readonly flags: Pick<ModelSettings, "clampToHosts" | "dedicatedCoordinatorEstimates" | "balanceGroups" | "repaired">;
  readonly hosts: readonly {
    readonly isExecutor: boolean;
    readonly group: number;
    readonly mem: number;
    readonly slots: number;
  }[];
  readonly shapes: readonly ShapeData[];
  /** Variants of each pool's configuration, and of root's; a step says which is in the files. */
  readonly configs: readonly (readonly ConfigData[])[];
}

interface ShapeData {
  readonly kind: "wide" | "narrow" | "coordinatorOnly" | "trivial" | "allCoordinators";
  readonly isDml: boolean;
  readonly estimate: number;
  readonly coordEstimate: number;
  readonly width: number;
  readonly instances: number;
  readonly reservation: number;
  readonly coordReservation: number;
  readonly threads: number;
  readonly isDominant: boolean;
  readonly hasSecondFragment: boolean;
  readonly maxSlots: number | null;
  readonly trivialOption: boolean;
  readonly options: readonly [name: OptionName, value: number][];
}

const OPTION_NAMES = [
  "memLimit",
  "memLimitExecutors",
  "memLimitCoordinators",
  "maxMemEstimateForAdmission",
  "bufferPoolLimit",
  "threadReservationLimit",
  "threadReservationAggregateLimit",
] as const;
type OptionName = (typeof OPTION_NAMES)[number];

interface ConfigData {
  readonly maxRequests: number;
  readonly maxQueued: number;
  readonly maxMem: number;
  readonly minQuery: number;
  readonly maxQuery: number;
  readonly clamp: boolean;
  readonly timeout: number | null;
  readonly onlyCoordinators: boolean;
  readonly users: readonly [string, number][];
  readonly groups: readonly [string, number][];
}

type Step =
  | {
      readonly do: "submit";
      readonly at: number;
      readonly pool: number;
      readonly user: number;
      readonly shape: number;
      readonly offset: number;
      readonly avoid: number;
      readonly again: boolean;
      /** The client has given up before the decision. */
      readonly given: boolean;
    }
  | { readonly do: "releaseBackends"; readonly query: number; readonly hosts: number }
  | { readonly do: "releaseQuery"; readonly query: number; readonly peak: number }
  | { readonly do: "cancel"; readonly query: number; readonly waits: boolean }
  | { readonly do: "wake"; readonly query: number }
  | { readonly do: "pass" }
  | { readonly do: "round"; readonly reached: number }
  | { readonly do: "repeatLastUpdate"; readonly at: number }
  | { readonly do: "declareFailed"; readonly at: number }
  | { readonly do: "restartStatestore" }
  | {
      readonly do: "report";
      readonly at: number;
      readonly pool: number;
      readonly reserved: number;
      readonly queries: readonly number[];
    }
  | {
      readonly do: "member";
      readonly host: number;
      readonly change: "leave" | "join" | "quiesce" | "blacklist";
      readonly toldTo: number;
    }
  | { readonly do: "configure"; readonly pool: number; readonly variant: number }
  | { readonly do: "advance"; readonly ms: number }
  | { readonly do: "heartbeat"; readonly at: number; readonly version: number; readonly alive: number }
  | { readonly do: "serviceMemory"; readonly usage: number }
  | { readonly do: "reset"; readonly pool: number };

export interface Story {
  readonly world: World;
  readonly steps: readonly Step[];
}

// ---- generators -----------------------------------------------------------------------------------------------

const UNIT = 256 * 1024 * 1024;
const SMALL = 50 * 1024 * 1024;
const POOLS = ["root.a", "root.a-b", "root.c", "default-pool"] as const;
const ROOT = "root";
const USERS = ["ana", "ben", "eva"] as const;
const GROUPS_OF: Readonly<Record<string, readonly string[] | null>> = {
  ana: ["dev", "ops", "it"],
  ben: ["it"],
  eva: null,
};
const EXECUTOR_GROUPS = [
  { name: "default", minSize: 1 },
  { name: "root.a-g1", minSize: 1 },
  { name: "root.a-g2", minSize: 2 },
  { name: "root.a-b-g1", minSize: 1 },
  { name: "default-pool-g1", minSize: 1 },
] as const;
const MAX_HOSTS = 7;

const flag = (oneIn: number): fc.Arbitrary<boolean> => fc.integer({ min: 1, max: oneIn }).map((n) => n === oneIn);
const upTo = (max: number): fc.Arbitrary<number> => fc.integer({ min: 0, max });
const rarely = <T>(usual: T, other: fc.Arbitrary<T>, oneIn = 4): fc.Arbitrary<T> =>
  fc.oneof({ weight: oneIn - 1, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: other });

const shapes: fc.Arbitrary<ShapeData> = fc.record({
  kind: fc.constantFrom("wide", "wide", "wide", "narrow", "narrow", "coordinatorOnly", "trivial", "allCoordinators"),
  isDml: flag(5),
  estimate: fc.integer({ min: 1, max: 8 }),
  coordEstimate: fc.integer({ min: 1, max: 4 }),
  width: upTo(3),
  instances: fc.integer({ min: 1, max: 3 }),
  reservation: rarely(0, upTo(8)),
  coordReservation: rarely(0, upTo(8)),
  threads: upTo(2),
  isDominant: flag(2),
  hasSecondFragment: flag(3),
  maxSlots: rarely<number | null>(null, upTo(4)),
  trivialOption: rarely(true, fc.constant(false)),
  options: rarely<[OptionName, number][]>(
    [],
    fc.array(fc.tuple(fc.constantFrom(...OPTION_NAMES), upTo(6)), { maxLength: 2 }),
    3,
  ),
});

const quotas = (names: readonly string[]): fc.Arbitrary<[string, number][]> =>
  rarely<[string, number][]>([], fc.array(fc.tuple(fc.constantFrom(...names), upTo(5)), { maxLength: 3 }), 6);

const configs: fc.Arbitrary<ConfigData> = fc.record({
  maxRequests: rarely(-1, fc.constantFrom(1, 2, 3, 5, 0), 2),
  maxQueued: rarely(200, fc.constantFrom(1, 2, 4, 4, 0), 5),
  maxMem: rarely(-1, fc.constantFrom(8, 12, 16, 24, 40, 24, 40, 0), 2),
  minQuery: rarely(0, fc.constantFrom(1, 2, 4, -1, 20), 6),
  maxQuery: rarely(0, fc.constantFrom(2, 4, 8, 1, -1), 6),
  clamp: rarely(true, fc.constant(false)),
  timeout: fc.constantFrom(null, 100, 1000),
  onlyCoordinators: flag(8),
  users: quotas([...USERS, "*"]),
  groups: quotas(["dev", "ops", "it"]),
});

const worlds: fc.Arbitrary<World> = fc.record({
  admissiond: flag(4),
  dropsSchedules: flag(4),
  coordinators: fc.integer({ min: 1, max: 3 }),
  poolOrder: fc.uniqueArray(upTo(POOLS.length - 1), { maxLength: 2 }),
  flags: fc.record({
    clampToHosts: rarely(true, fc.constant(false)),
    dedicatedCoordinatorEstimates: rarely(true, fc.constant(false), 8),
    balanceGroups: flag(3),
    repaired: flag(3),
  }),
  hosts: fc.array(
    fc.record({
      isExecutor: rarely(true, fc.constant(false)),
      group: fc.oneof(fc.constant(0), upTo(EXECUTOR_GROUPS.length - 1)),
      mem: fc.constantFrom(8, 8, 12, 16, 4),
      slots: fc.constantFrom(2, 3, 4, 8),
    }),
    { minLength: 2, maxLength: MAX_HOSTS },
  ),
  shapes: fc.array(shapes, { minLength: 1, maxLength: 4 }),
  configs: fc.tuple(
    ...[...POOLS, ROOT].map((name) =>
      fc.array(
        configs.map((c) => (name === ROOT ? { ...c, onlyCoordinators: false } : c)),
        { minLength: 1, maxLength: 2 },
      ),
    ),
  ),
});

const bits = (n: number): fc.Arbitrary<number> => upTo(2 ** n - 1);
const someQuery = upTo(40);

const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 16,
    arbitrary: fc.record({
      do: fc.constant("submit"),
      at: upTo(2),
      pool: fc.oneof(fc.constant(0), upTo(POOLS.length - 1)),
      user: upTo(USERS.length - 1),
      shape: upTo(3),
      offset: upTo(3),
      avoid: rarely(0, bits(MAX_HOSTS), 6),
      again: flag(20),
      given: flag(20),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("releaseBackends"), query: someQuery, hosts: bits(MAX_HOSTS + 1) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("releaseQuery"),
      query: someQuery,
      peak: fc.constantFrom(-1, 0, 3, 4, 5, 600),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("cancel"), query: someQuery, waits: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("wake"), query: someQuery }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("pass") }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant("round"), reached: fc.oneof(fc.constant(15), bits(4)) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("repeatLastUpdate"), at: upTo(3) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("declareFailed"), at: upTo(3) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("restartStatestore") }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("report"),
      at: upTo(3),
      pool: upTo(POOLS.length - 1),
      reserved: upTo(12),
      queries: fc.array(someQuery, { maxLength: 7 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("member"),
      host: upTo(MAX_HOSTS - 1),
      change: fc.constantFrom("leave", "join", "join", "quiesce", "blacklist"),
      toldTo: bits(3),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("configure"), pool: upTo(POOLS.length), variant: upTo(1) }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("advance"), ms: fc.constantFrom(1, 50, 100, 1000, 4900, 5000, 70_000) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("heartbeat"), at: upTo(2), version: upTo(5), alive: bits(12) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("serviceMemory"), usage: upTo(3) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("reset"), pool: upTo(POOLS.length - 1) }) },
);

export const stories = (maxSteps: number): fc.Arbitrary<Story> =>
  fc.record({
    world: worlds,
    // Long stories are where queues build up; shrinking still gets to short ones.
    steps: fc.oneof(
      { withCrossShrink: true },
      { weight: 1, arbitrary: fc.array(steps, { maxLength: maxSteps }) },
      {
        weight: 3,
        arbitrary: fc.array(steps, { minLength: Math.floor(maxSteps / 3), maxLength: maxSteps, size: "max" }),
      },
    ),
  });

// ---- the world --------------------------------------------------------------------------------------------------

const hostName = (i: number): string => `host-${i}:27000`;

function shapeFrom(d: ShapeData): RequestShape {
  const alone = d.kind === "coordinatorOnly" || d.kind === "trivial";
  const isQuery = d.kind === "trivial" || !d.isDml;
  const fragment = (runsOn: "coordinator" | "executors", instances: number, reservation: number) => ({
    runsOn,
    instancesPerHost: instances,
    minReservationPerInstance: bytes(reservation * SMALL),
    minReservationPerBackend: bytes(reservation > 2 ? SMALL : 0),
    threadReservationPerInstance: d.threads,
    isDominant: d.isDominant,
  });
  const fragments = [];
  if (!alone) fragments.push(fragment("executors", d.instances, d.reservation));
  if (!alone && d.hasSecondFragment) fragments.push(fragment("executors", 1, 0));
  if (alone || isQuery) fragments.push(fragment("coordinator", 1, d.coordReservation));
  const options = { ...DEFAULT_ADMISSION_OPTIONS, enableTrivialQueryForAdmission: d.trivialOption };
  for (const [name, value] of d.options) options[name] = name.startsWith("thread") ? value : value * UNIT;
  return {
    stmtType: isQuery ? "QUERY" : "DML",
    perHostMemEstimate: bytes(d.estimate * UNIT),
    dedicatedCoordMemEstimate: bytes(d.coordEstimate * 2 * SMALL),
    isTrivial: d.kind === "trivial",
    coordinatorOnly: alone,
    includeAllCoordinators: d.kind === "allCoordinators",
    executors: d.kind === "narrow" ? d.width : d.kind === "allCoordinators" ? 0 : "all",
    fragments,
    options,
    maxSlotsPerExecutor: d.maxSlots,
  };
}

const configFrom = (d: ConfigData): PoolConfig => ({
  ...DEFAULT_POOL_CONFIG,
  maxRequests: d.maxRequests,
  maxQueued: d.maxQueued,
  maxMemResources: d.maxMem > 0 ? bytes(d.maxMem * UNIT) : d.maxMem === 0 ? bytes(0) : -1,
  minQueryMemLimit: d.minQuery > 0 ? d.minQuery * UNIT : d.minQuery,
  maxQueryMemLimit: d.maxQuery > 0 ? d.maxQuery * UNIT : d.maxQuery,
  clampMemLimitQueryOption: d.clamp,
  queueTimeout: d.timeout === null ? null : millis(d.timeout),
  onlyCoordinators: d.onlyCoordinators,
  userQueryLimits: new Map(d.users),
  groupQueryLimits: new Map(d.groups),
});

/** One process, twice. */
interface Pair {
  readonly host: string;
  readonly model: ControllerPort;
  readonly core: ControllerPort;
  lastUpdate: { model: ReturnType<Statestore["updateFor"]>; core: ReturnType<Statestore["updateFor"]> } | null;
}

export class Disagreement extends Error {
  override readonly name = "Disagreement";
}

export class Play {
  private readonly world: World;
  private readonly pairs: Pair[];
  private readonly coordinators: string[];
  private readonly descriptors: BackendDescriptor[];
  private readonly present: boolean[];
  private readonly quiescing: boolean[];
  private readonly blacklisted = new Set<string>();
  private removed: string[] = [];
  private version = 1;
  private readonly shapes: RequestShape[];
  private readonly configs: PoolConfig[][];
  private readonly inForce: number[];
  private readonly stores = { model: new Statestore(), core: new Statestore() };
  private now = 0;
  /** What the story came across: rules, ends and kinds of steps that did something. */
  readonly seen = new Map<string, number>();
  /** Every query ever submitted: late and repeated messages are about old ones. */
  private readonly queries: { readonly id: string; readonly coordinator: string; readonly pair: Pair }[] = [];

  constructor(world: World) {
    this.world = world;
    const n = Math.min(world.coordinators, world.hosts.length);
    this.coordinators = Array.from({ length: n }, (_, i) => hostName(i));
    this.descriptors = world.hosts.map((h, i) => ({
      address: hostName(i),
      isCoordinator: i < n,
      isExecutor: h.isExecutor || i >= n,
      isQuiescing: false,
      admitMemLimit: bytes(h.mem * UNIT),
      admissionSlots: h.slots,
      executorGroup: EXECUTOR_GROUPS[h.group]!,
    }));
    this.present = this.descriptors.map(() => true);
    this.quiescing = this.descriptors.map(() => false);
    this.shapes = world.shapes.map(shapeFrom);
    this.configs = world.configs.map((variants) => variants.map(configFrom));
    this.inForce = world.configs.map(() => 0);
    const deciders = world.admissiond ? ["admissiond:29500"] : this.coordinators;
    // One process that only reports what its host holds, as an executor does.
    const reporter = this.descriptors.at(-1)!.address;
    this.pairs = [...new Set([...deciders, reporter])].map((host) => this.pair(host));
    for (const p of this.pairs) this.tell(p);
  }

  private pair(host: string): Pair {
    const settings: ModelSettings = {
      ...this.world.flags,
      host,
      queueWaitTimeoutMs: 60_000,
      staleThresholdMs: 5000,
      admissiond: this.world.admissiond,
      dropsSchedulesWhenQueued: this.world.dropsSchedules,
      poolOrder: this.world.poolOrder.map((i) => POOLS[i]!),
    };
    return { host, model: new ModelPort(settings), core: makeCore(settings), lastUpdate: null };
  }

  run(steps: readonly Step[]): void {
    steps.forEach((step, i) => {
      const where = (): string => `step ${i + 1} ${JSON.stringify(step)} at ${this.now} ms`;
      this.do(step, where);
      for (const p of this.pairs) this.agree(where, `figures of ${p.host}`, p.model.figures(), p.core.figures());
    });
  }

  private agree(where: () => string, what: string, model: unknown, core: unknown): void {
    if (isDeepStrictEqual(model, core)) return;
    throw new Disagreement(`${where()}: ${what} differ\n${difference(model, core)}`);
  }

  private note(what: string): void {
    this.seen.set(what, (this.seen.get(what) ?? 0) + 1);
  }

  private noteEnd(end: End | null): void {
    if (end === null) return;
    this.note(end.kind === "reject" ? `${end.reason.rule} from the queue` : `${end.kind} from the queue`);
  }

  private pass(p: Pair, where: () => string): void {
    const ends = this.both(where, `pass of ${p.host}`, p, (s) => s.dequeuePass(this.now));
    for (const { end } of ends) this.noteEnd(end);
  }

  /** The same call on both sides; the answers must be equal. */
  private both<T>(where: () => string, what: string, p: Pair, call: (side: ControllerPort) => T): T {
    const model = call(p.model);
    const core = call(p.core);
    this.agree(where, what, model, core);
    return model;
  }

  private do(step: Step, where: () => string): void {
    switch (step.do) {
      case "submit":
        this.submit(step, where);
        return;
      case "releaseBackends": {
        const q = this.query(step.query);
        if (q === undefined) return;
        const hosts = [...this.chosenHosts(step.hosts), ...(step.hosts >= 2 ** MAX_HOSTS ? ["nobody:1"] : [])];
        this.both(where, "release", q.pair, (s) => s.releaseBackends(q.coordinator, q.id, hosts, this.now));
        return;
      }
      case "releaseQuery": {
        const q = this.query(step.query);
        if (q === undefined) return;
        const peak = step.peak < 0 ? -1 : step.peak * UNIT;
        this.both(where, "release", q.pair, (s) => s.releaseQuery(q.coordinator, q.id, peak, true, this.now));
        return;
      }
      case "cancel": {
        const q = this.query(step.query);
        if (q === undefined) return;
        const marked = this.both(where, "cancellation", q.pair, (s) => s.markCancelled(q.id));
        if (marked && !step.waits) this.noteEnd(this.both(where, "end", q.pair, (s) => s.waiterWakes(q.id, this.now)));
        return;
      }
      case "wake": {
        const q = this.query(step.query);
        if (q === undefined) return;
        this.both(where, "timeout", q.pair, (s) => s.timeoutOf(q.id));
        this.noteEnd(this.both(where, "end", q.pair, (s) => s.waiterWakes(q.id, this.now)));
        return;
      }
      case "pass":
        for (const p of this.pairs) this.pass(p, where);
        return;
      case "round":
        this.round(step.reached, where);
        return;
      case "repeatLastUpdate": {
        const p = this.pairs[step.at % this.pairs.length]!;
        const { lastUpdate } = p;
        if (lastUpdate === null) return;
        p.model.apply({ ...lastUpdate.model, full: false }, this.now);
        p.core.apply({ ...lastUpdate.core, full: false }, this.now);
        return;
      }
      case "declareFailed": {
        const { host } = this.pairs[step.at % this.pairs.length]!;
        this.stores.model.declareFailed(host);
        this.stores.core.declareFailed(host);
        return;
      }
      case "restartStatestore":
        this.stores.model.restart();
        this.stores.core.restart();
        return;
      case "report": {
        const p = this.pairs[step.at % this.pairs.length]!;
        const heavy = [...new Set(step.queries)].map((n) => ({ query: queryId(n), consumed: (n + 1) * SMALL }));
        this.both(where, "report", p, (s) => s.setBackendReserved(POOLS[step.pool]!, step.reserved * UNIT, heavy));
        return;
      }
      case "member":
        this.changeMember(step);
        return;
      case "configure":
        this.inForce[step.pool] = step.variant % this.configs[step.pool]!.length;
        return;
      case "advance":
        this.now += step.ms;
        return;
      case "heartbeat": {
        if (!this.world.admissiond) return;
        const coordinator = this.coordinators[step.at % this.coordinators.length]!;
        const alive = this.queries.filter(
          (q, i) => q.coordinator === coordinator && (step.alive >> (i % 12)) % 2 === 1,
        );
        const ids = alive.map((q) => q.id);
        this.both(where, "heartbeat", this.pairs[0]!, (s) => s.heartbeat(coordinator, step.version, ids, this.now));
        return;
      }
      case "reset":
        for (const p of this.pairs) this.both(where, "reset", p, (s) => s.resetInformational(POOLS[step.pool]!));
        return;
      case "serviceMemory":
        if (this.world.admissiond) this.both(where, "memory", this.pairs[0]!, (s) => s.setServiceMemory(step.usage, 2));
        return;
    }
  }

  private query(n: number) {
    return this.queries.length === 0 ? undefined : this.queries[n % this.queries.length];
  }

  private chosenHosts(mask: number): string[] {
    return this.descriptors.filter((_, i) => (mask >> i) % 2 === 1).map((d) => d.address);
  }

  private submit(step: Extract<Step, { do: "submit" }>, where: () => string): void {
    const coordinator = this.coordinators[step.at % this.coordinators.length]!;
    const pair = this.pairs[this.world.admissiond ? 0 : step.at % this.coordinators.length]!;
    const user = USERS[step.user]!;
    const last = this.queries.at(-1);
    const again = step.again && last !== undefined && last.pair === pair;
    const request: AdmissionRequest = {
      queryId: again ? last.id : queryId(this.queries.length),
      coordinator,
      pool: POOLS[step.pool]!,
      user,
      userGroups: GROUPS_OF[user]!,
      shape: this.shapes[step.shape % this.shapes.length]!,
      blacklistedExecutors: this.chosenHosts(step.avoid),
      placementOffset: step.offset,
    };
    // An id that has come to its end may come again in the story, but not in the product; don't tell that one.
    if (again && pair.model.timeoutOf(last.id) === null) return;
    if (!again) this.queries.push({ id: request.queryId, coordinator, pair });
    const config = this.config(step.pool);
    const root = this.config(POOLS.length);
    const decision = this.both(where, "decisions", pair, (s) =>
      step.given ? s.submitCancelled(request, config, root, this.now) : s.submit(request, config, root, this.now),
    );
    if (decision.kind === "admit") this.note(`admit ${decision.path}`);
    else if (decision.kind === "error") this.note("duplicate id");
    else if (decision.kind === "cancelled") this.note("given up before the decision");
    else this.note(`${decision.reason.rule} on submission`);
  }

  private config(pool: number): PoolConfig {
    return this.configs[pool]![this.inForce[pool]!]!;
  }

  /** Whoever isn't reached misses the exchange and catches up at a later one. */
  private round(reached: number, where: () => string): void {
    const taking = this.pairs.filter((_, i) => (reached >> i) % 2 === 1);
    for (const p of taking) {
      const model = p.model.publish(this.now);
      const core = p.core.publish(this.now);
      this.agree(where, "published keys", model?.map((e) => e.key).sort(), core?.map((e) => e.key).sort());
      if (model !== null) this.stores.model.publish(p.host, model);
      if (core !== null) this.stores.core.publish(p.host, core);
    }
    for (const p of taking) {
      this.tell(p);
      p.lastUpdate = { model: this.stores.model.updateFor(p.host), core: this.stores.core.updateFor(p.host) };
      p.model.apply(p.lastUpdate.model, this.now);
      p.core.apply(p.lastUpdate.core, this.now);
      this.pass(p, where);
    }
  }

  private changeMember(step: Extract<Step, { do: "member" }>): void {
    const i = step.host % this.descriptors.length;
    const { address, isCoordinator } = this.descriptors[i]!;
    if (step.change === "leave") {
      if (isCoordinator && this.present[i]) this.removed = [...this.removed, address].slice(-2);
      this.present[i] = false;
    } else if (step.change === "join") {
      this.present[i] = true;
      this.quiescing[i] = false;
      this.removed = this.removed.filter((a) => a !== address);
    } else if (step.change === "blacklist") {
      if (!this.blacklisted.delete(address)) this.blacklisted.add(address);
    } else this.quiescing[i] = true;
    this.version += 1;
    this.pairs.forEach((p, n) => {
      if ((step.toldTo >> n) % 2 === 1) this.tell(p);
    });
  }

  private tell(p: Pair): void {
    const cluster: ModelCluster = {
      version: this.version,
      backends: this.descriptors
        .filter((_, i) => this.present[i])
        .map((d) => ({ ...d, isQuiescing: this.quiescing[Number(/\d+/.exec(d.address)![0])]! })),
      blacklisted: [...this.blacklisted],
      removedCoordinators: this.world.admissiond ? this.removed : [],
    };
    p.model.setMembership(cluster, this.now);
    p.core.setMembership(cluster, this.now);
  }
}

const queryId = (n: number): string => `${"7".padStart(16, "0")}:${n.toString(16).padStart(16, "0")}`;

/** Throws at the first step at which the two sides differ; says what the story came across. */
export function play(story: Story): ReadonlyMap<string, number> {
  const told = new Play(story.world);
  told.run(story.steps);
  return told.seen;
}

// ---- what differs -----------------------------------------------------------------------------------------------

/** The paths at which two plain values differ, one a line. */
function difference(model: unknown, core: unknown, path = ""): string {
  if (isDeepStrictEqual(model, core)) return "";
  if (isRecord(model) && isRecord(core)) {
    const keys = [...new Set([...Object.keys(model), ...Object.keys(core)])];
    return keys.map((k) => difference(model[k], core[k], `${path}.${k}`)).join("");
  }
  return `  ${path}: model ${JSON.stringify(model)}, core ${JSON.stringify(core)}\n`;
}

const isRecord = (v: unknown): v is Record<string, unknown> => typeof v === "object" && v !== null;
