/**
 * Tells one story to the slow model and to the core side by side. After every step both must have answered the same
 * and must stand at the same figures.
 */
import { isDeepStrictEqual } from "node:util";
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
import {
  type ConfigData,
  EXECUTOR_GROUPS,
  GROUPS_OF,
  MAX_HOSTS,
  POOLS,
  type ShapeData,
  SMALL,
  type Step,
  type Story,
  UNIT,
  USERS,
  type World,
} from "./story.ts";

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
    if (again && (pair.model.timeoutOf(last.id) === null || !pair.model.knows(last.id))) return;
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
