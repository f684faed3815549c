/**
 * Random stories for a handful of controllers, as plain data: what fast-check prints when it has shrunk one can be
 * pasted into a test. `play.ts` tells them.
 *
 * Amounts come in few sizes, so that limits are met exactly, not only missed by far.
 */
import fc from "fast-check";
import type { ModelSettings } from "./controller.ts";

// ---- the story as data ----------------------------------------------------------------------------------------

export interface World {
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

export interface ShapeData {
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

export interface ConfigData {
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

export type Step =
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

export const UNIT = 256 * 1024 * 1024;
export const SMALL = 50 * 1024 * 1024;
export const POOLS = ["root.a", "root.a-b", "root.c", "default-pool"] as const;
export const ROOT = "root";
export const USERS = ["ana", "ben", "eva"] as const;
export const GROUPS_OF: Readonly<Record<string, readonly string[] | null>> = {
  ana: ["dev", "ops", "it"],
  ben: ["it"],
  eva: null,
};
export const EXECUTOR_GROUPS = [
  { name: "default", minSize: 1 },
  { name: "root.a-g1", minSize: 1 },
  { name: "root.a-g2", minSize: 2 },
  { name: "root.a-b-g1", minSize: 1 },
  { name: "default-pool-g1", minSize: 1 },
] as const;
export const MAX_HOSTS = 7;

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
