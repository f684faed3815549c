/**
 * The form of a scenario file: every key, its meaning, its default. The published JSON Schema
 * (`schema/scenario.schema.json`) is made from this file, so the descriptions are what people read in
 * their editors; keep them true.
 *
 * Only forms are checked here (known keys, units, ranges). What needs to look at two places at once, or at
 * other files, is checked where the record is made (`scenario-build.ts`).
 */
import { z } from "zod";
import {
  type Parsed,
  parseRate,
  parseSize,
  parseTime,
  RATE_EXPECTED,
  RATE_PATTERN,
  SIZE_EXPECTED,
  SIZE_PATTERN,
  TIME_EXPECTED,
  TIME_PATTERN,
} from "./scenario-units.ts";

/** What a custom issue of ours carries, so that the message can be put together with its place. */
export interface IssueParams {
  readonly problem: string;
  readonly expected: string;
  readonly remedy: string | null;
}

// Leaves

function unitLeaf(parse: (input: unknown) => Parsed, expected: string, pattern: string, example: string) {
  return (description: string) =>
    z
      .union([z.string(), z.number()])
      .meta({ description, pattern, examples: [example] })
      .transform((input, ctx) => {
        const parsed = parse(input);
        if (parsed.ok) return parsed.value;
        const params: IssueParams = { problem: parsed.problem, expected, remedy: null };
        ctx.addIssue({ code: "custom", message: parsed.problem, params: { ...params } });
        return z.NEVER;
      });
}

const size = unitLeaf(parseSize, SIZE_EXPECTED, SIZE_PATTERN, "1.5gb");
const time = unitLeaf(parseTime, TIME_EXPECTED, TIME_PATTERN, "30s");
const rate = unitLeaf(parseRate, RATE_EXPECTED, RATE_PATTERN, "10/s");

const count = (description: string, least = 1) => z.int().min(least).max(1_000_000_000).describe(description);
const share = (description: string) => z.number().min(0).max(1).describe(description);
const positive = (description: string) => z.number().positive().describe(description);
const host = (description: string) =>
  z.string().min(1).describe(`${description} Zeros and port may be left out: exec-3.`);
const words = (description: string) => z.string().min(1).describe(description);

// Distributions

type Leaf = typeof size;

/** A fixed value, or one key that names the distribution. */
function distribution(value: Leaf, what: string) {
  return (description: string) =>
    z.union([
      value(`${description} The same for all.`),
      z
        .strictObject({
          fixed: value(`Always this ${what}.`).optional(),
          uniform: z
            .strictObject({ low: value("Least."), high: value("Most.") })
            .describe("Equally likely between low and high.")
            .optional(),
          exponential: z
            .strictObject({ mean: value("Mean.") })
            .describe("Memoryless; coefficient of variation 1.")
            .optional(),
          lognormal: z
            .strictObject({
              mean: value("Mean; together with cv.").optional(),
              cv: positive("Standard deviation / mean.").optional(),
              p50: value("Median; together with p95.").optional(),
              p95: value("95 % are not above it.").optional(),
            })
            .describe("Either mean and cv, or p50 and p95.")
            .optional(),
          pareto: z
            .strictObject({
              alpha: positive("Shape: the smaller, the heavier the tail."),
              low: value("Least."),
              high: value("Most; an unbounded tail would make intervals meaningless."),
            })
            .describe("Bounded Pareto.")
            .optional(),
          erlang: z
            .strictObject({ stages: count("Number of stages."), mean: value("Mean.") })
            .describe("Sum of equal exponentials; coefficient of variation below 1.")
            .optional(),
          hyperexponential: z
            .array(z.strictObject({ share: positive("Weight of the branch."), mean: value("Mean of the branch.") }))
            .min(2)
            .describe("Mixture of exponentials; coefficient of variation above 1.")
            .optional(),
          empirical: z.array(value("A value.")).min(1).describe("One of these, each equally likely.").optional(),
        })
        .describe(`${description} Exactly one key, which names the distribution.`),
    ]);
}

const timeOrDistribution = distribution(time, "time");
const sizeOrDistribution = distribution(size, "size");

// Cluster

const executors = z
  .strictObject({
    count: count("How many of these.").prefault(1),
    memory: size("What each can give to queries (admit_mem_limit)."),
    slots: count("Admission slots of each.").prefault(16),
    executorGroup: z
      .union([
        words("name, or name:minSize as in --executor_groups."),
        z.strictObject({
          name: words("Group name. Pools use groups called <pool>-something."),
          minSize: count("Fewer healthy executors than this: the group takes no query.").prefault(1),
        }),
      ])
      .describe(
        "Executor group of these hosts; without one they form the group 'default', whose slots are not checked.",
      )
      .optional(),
    scratch: size("Scratch space of each; without it there is no limit.").optional(),
  })
  .describe("A number of equal executors.");

const coordinators = z
  .strictObject({
    count: count("How many of these.").prefault(1),
    on: z
      .enum(["executor", "dedicated"])
      .describe("executor: they live on the first executors. dedicated: hosts of their own that execute nothing.")
      .prefault("executor"),
    memory: size("admit_mem_limit of each dedicated one; default: as the first executors.").optional(),
    slots: count("Admission slots of each dedicated one; default: 8 times those of the first executors.").optional(),
  })
  .describe("A number of equal coordinators.");

const cluster = z
  .strictObject({
    executors: z.array(executors).min(1).describe("Hosts that execute: exec-1, exec-2, ..."),
    coordinators: z
      .array(coordinators)
      .min(1)
      .describe("Hosts that clients talk to.")
      .prefault([{ count: 1, on: "executor" }]),
    admission: z
      .enum(["distributed", "admissiond"])
      .describe(
        "distributed: each coordinator decides for its own queries. admissiond: one controller decides for all.",
      )
      .prefault("distributed"),
    statestore: z
      .strictObject({
        every: time("Time between two exchanges of one subscriber.").prefault("100ms"),
        publishLag: time("From a controller's update to the statestore having it.").prefault("0ms"),
        receiveLag: time("From the statestore's sending to the controller having applied it.").prefault("0ms"),
        failureAfter: time("A subscriber silent for so long has failed.").prefault("10s"),
      })
      .describe("How controllers learn of each other.")
      .prefault({}),
    route: words("How clients choose a coordinator: round-robin, random, or the name of one.").prefault("round-robin"),
  })
  .describe("The hosts.");

// Queries

const keys = z
  .union([
    z.enum(["uniform", "sorted", "unique", "dealt"]),
    z.strictObject({
      uniform: z
        .strictObject({ distinct: count("Number of different keys.") })
        .describe("Every key equally likely.")
        .optional(),
      zipf: z
        .strictObject({
          distinct: count("Number of different keys."),
          exponent: positive("Key k is drawn with a chance proportional to 1/k^exponent.").prefault(1),
        })
        .describe("Few keys are frequent.")
        .optional(),
      hot: z
        .strictObject({
          share: share("Share of all rows that carry the one hot key."),
          distinct: count("Number of the other keys.").optional(),
        })
        .describe("One key has a large share of the rows.")
        .optional(),
    }),
  ])
  .describe("Keys of the rows: uniform (as many keys as rows), sorted, unique, or { uniform | zipf | hot: ... }.");

const rowKeys = {
  rows: count("Rows on each host."),
  width: z
    .union([
      z.int().min(0).max(65_536),
      z.strictObject({ min: z.int().min(0).max(65_536), max: z.int().min(0).max(65_536) }),
    ])
    .describe("Bytes of payload beside the 8-byte key; { min, max } for variable width.")
    .prefault(16),
  keys: keys.prefault("uniform"),
};

const operatorLimits = {
  bufferSize: size("A power of two; left out: what DEFAULT_SPILLABLE_BUFFER_SIZE says, 2mb.").optional(),
  maxRowSize: size("Left out: what MAX_ROW_SIZE says, 512kb.").optional(),
};

const operators = {
  sort: z
    .strictObject({ ...rowKeys, ...operatorLimits })
    .describe("A real external sort of generated rows.")
    .optional(),
  aggregate: z
    .strictObject({
      ...rowKeys,
      preAggregate: z.boolean().describe("A streaming pre-aggregation before it.").prefault(false),
      ...operatorLimits,
    })
    .describe("A real grouping aggregation of generated rows; groups are the distinct keys.")
    .optional(),
  join: z
    .strictObject({
      build: z.strictObject(rowKeys).describe("The side that is held in memory."),
      probe: z.strictObject(rowKeys).describe("The side that streams by."),
      ...operatorLimits,
    })
    .describe("A real hash join of generated rows.")
    .optional(),
};

const uses = z
  .strictObject({
    peak: sizeOrDistribution(
      "Bytes used at the peak on each host, shared evenly by its fragment instances.",
    ).optional(),
    shape: z
      .union([
        z.enum(["flat", "ramp", "spike", "triangle", "saw"]),
        z.array(z.tuple([share("Share of the duration."), share("Share of the peak.")])).min(2),
      ])
      .describe(
        "How use moves over the duration: flat at once, ramp up to the end, spike in the middle, triangle up and down, saw four times up, or points [share of duration, share of peak].",
      )
      .prefault("ramp"),
    perHost: z
      .record(z.string(), positive("Factor on the peak."))
      .describe("Skew: host name -> factor on the peak there.")
      .optional(),
    spillable: z
      .boolean()
      .describe(
        "Whether it can write to scratch when memory is refused; otherwise it fails. Without a minReservation of its own, one that can holds at least 6mb an instance while it runs (three buffers of 2mb, as Impala plans for a sort), or its peak or what its memory limit leaves, if those are less; admission does not count this default.",
      )
      .prefault(true),
    ...operators,
  })
  .describe(
    "What a query does with memory on each host: a footprint (peak) or real operators. Left out: a ramp up to half the estimate.",
  );

const fragment = z
  .strictObject({
    on: z.enum(["coordinator", "executors"]).describe("Where its instances run."),
    instances: count("Instances on each host.").prefault(1),
    minReservation: size("Minimum reservation of each instance.").prefault("0b"),
    perBackend: size("Minimum reservation once a host (runtime filters).").prefault("0b"),
    threads: count("Threads that each instance reserves.", 0).prefault(1),
    dominant: z.boolean().describe("Marked by the planner under COMPUTE_PROCESSING_COST.").prefault(false),
  })
  .describe("One plan fragment.");

const retries = z
  .union([
    z.literal("none"),
    z.strictObject({
      on: z
        .array(z.enum(["rejected", "timedOut", "failed", "cancelled"]))
        .min(1)
        .describe("Ends after which the client asks again.")
        .prefault(["rejected"]),
      attempts: z
        .union([z.literal("unlimited"), count("Attempts in all.")])
        .describe("All attempts of one request, the first included; unlimited only with limits.")
        .prefault(5),
      wait: time("Always the same wait before the next attempt; 0s is at once.").optional(),
      backoff: z
        .strictObject({
          from: time("Wait before the second attempt."),
          to: time("No wait is longer."),
          factor: z.number().min(1).describe("Each wait is so many times the one before.").prefault(2),
          jitter: z
            .enum(["none", "full", "equal"])
            .describe("full: uniform between 0 and the wait. equal: between half of it and all of it.")
            .prefault("full"),
        })
        .describe("Growing waits.")
        .optional(),
    }),
  ])
  .describe("What clients do when they get no answer: none, or attempts with a wait or a backoff.");

const queryClass = z
  .strictObject({
    pool: z.string().describe("REQUEST_POOL as the client sets it; left out: none is asked for.").optional(),
    user: z
      .union([words("The connected user."), z.array(words("A user.")).min(1)])
      .describe("The connected user; several take turns.")
      .prefault("client"),
    statement: z.string().describe("Statement text for profiles and logs.").optional(),
    stmtType: z.enum(["QUERY", "DML"]).describe("QUERY needs a coordinator fragment, DML does not.").prefault("QUERY"),
    estimate: size(
      "Per host, what the planner would say. Left out: enough for the peak of the footprint, or the operators' own estimate.",
    ).optional(),
    coordinatorEstimate: size("The planner's estimate for a dedicated coordinator.").prefault("100mb"),
    uses: uses.optional(),
    ...operators,
    minReservation: size(
      "Minimum reservation of each executor fragment instance. Left out: what the operators need; for a footprint 0, and see spillable.",
    ).optional(),
    coordinatorMinReservation: size("Minimum reservation of the coordinator's fragment.").prefault("0b"),
    threads: count("Threads that each fragment instance reserves.", 0).prefault(1),
    mtDop: z
      .int()
      .min(0)
      .max(64)
      .describe(
        "MT_DOP: fragment instances, and so slots, on each host; 0 counts as 1. The live fleet shares a footprint's peak among so many; real operators run as one instance a host and count as so many.",
      )
      .optional(),
    fragments: z
      .array(fragment)
      .min(1)
      .describe("The plan's fragments, instead of the one on executors and the one on the coordinator.")
      .optional(),
    hosts: z
      .union([z.literal("all"), count("So many executors of the group.")])
      .describe("How many executors take part.")
      .prefault("all"),
    duration: timeOrDistribution(
      "From admission to the last row, on an idle cluster. Operators take the time they take when live; left out, 100 ns a row stand for it in virtual time.",
    ).optional(),
    trivial: z.boolean().describe("The planner marks it as trivial (select 1).").prefault(false),
    coordinatorOnly: z.boolean().describe("One fragment, on the coordinator.").prefault(false),
    allCoordinators: z.boolean().describe("Also runs on every coordinator (system tables).").prefault(false),
    options: z
      .record(z.string(), z.union([z.string(), z.number(), z.boolean()]))
      .describe("Query options by Impala's names, sizes with unit: { MEM_LIMIT: 2gb }.")
      .prefault({}),
    cancelAfter: timeOrDistribution("The client gives up so long after submitting, waiting or running.").optional(),
    retries: retries.optional(),
  })
  .describe("A class of equal queries.");

// Traffic

const arrival = z
  .strictObject({
    query: z
      .union([words("Name of a query class."), z.record(z.string(), positive("Weight."))])
      .describe("The class, or classes with weights: { tile: 9, report: 1 }. May be left out when there is one class.")
      .optional(),
    at: time("Burst: when.").optional(),
    count: count("Burst: how many. With every: how many in all.").optional(),
    within: time("Burst: spread evenly over this time instead of one instant.").optional(),
    rate: rate("Poisson arrivals.").optional(),
    day: z
      .union([
        z.array(z.number().min(0)).length(24),
        z.strictObject({
          swing: share(
            "The rate moves between 1 - swing and 1 + swing times its mean, peak at 06:00 of emulated time.",
          ),
        }),
      ])
      .describe("With rate: factor for each hour of the day, 24 numbers, or a sine with a swing.")
      .optional(),
    every: time("Fixed distance between two arrivals.").optional(),
    clients: count("Closed loop: so many clients that think, ask, wait for the answer, and think again.").optional(),
    think: timeOrDistribution("With clients: pause between answer and next question.").optional(),
    requests: count("With clients: so many requests of each client.").optional(),
    trace: words(
      "File with recorded requests, relative to the scenario: a query log or a trace made from one.",
    ).optional(),
    scale: positive(
      "With trace: 1 as recorded, below it thinned out at random, above it jittered copies are added.",
    ).optional(),
    hold: z
      .enum(["lastRow", "unregister"])
      .describe("With trace: when a recorded query gave its place back; default lastRow.")
      .optional(),
    from: time("First moment.").optional(),
    to: time("None comes from this moment on.").optional(),
    coordinator: words("round-robin, random, or the name of one; default: cluster.route.").optional(),
    retries: retries.optional(),
  })
  .describe("Exactly one of at, rate, every, clients, trace.");

// Faults

const at = { at: time("When.") };
const onHost = { host: host("Which host.") };
const fault = z.discriminatedUnion("fault", [
  z.strictObject({ ...at, fault: z.literal("hostDies"), ...onHost }),
  z.strictObject({ ...at, fault: z.literal("hostReturns"), ...onHost }),
  z.strictObject({ ...at, fault: z.literal("hostQuiesces"), ...onHost }),
  z.strictObject({ ...at, fault: z.literal("workerKilled"), ...onHost }),
  z.strictObject({ ...at, fault: z.literal("coordinatorDies"), ...onHost }),
  z.strictObject({ ...at, fault: z.literal("coordinatorReturns"), ...onHost }),
  z.strictObject({ ...at, fault: z.literal("coordinatorCutOff"), ...onHost }),
  z.strictObject({ ...at, fault: z.literal("coordinatorRejoins"), ...onHost }),
  z.strictObject({ ...at, fault: z.literal("statestoreStops") }),
  z.strictObject({ ...at, fault: z.literal("statestoreStarts") }),
  z.strictObject({
    ...at,
    fault: z.literal("releasesLost"),
    chance: share(
      "Chance that a release message to admissiond is lost, from now on; 0 ends it. Not in distributed mode.",
    ),
    host: host("Only messages of this coordinator.").optional(),
  }),
  z.strictObject({
    ...at,
    fault: z.literal("refusals"),
    chance: share("Chance that a growth of a reservation is refused, from now on; 0 ends it."),
    host: host("Only on this host.").optional(),
    query: words("Only this class.").optional(),
  }),
  z.strictObject({
    at: time(
      "When the files are written. Daemons look every 10 seconds: the site file counts at the next look, the allocation file once it is older than 5 seconds.",
    ),
    fault: z.literal("configChanges"),
    fairScheduler: words("The file that takes the place of the allocation file.").optional(),
    llamaSite: words("The file that takes the place of the site file.").optional(),
  }),
  z.strictObject({
    ...at,
    fault: z.literal("statisticsDropped"),
    query: words("Which class."),
    factor: positive("Its estimates are multiplied by this."),
  }),
]);

// The whole

export const SCENARIO_SCHEMA = z
  .strictObject({
    $schema: z.string().describe("Where an editor finds this schema.").optional(),
    name: words("Name of the scenario; default: the file's name.").optional(),
    description: z.string().describe("For people.").optional(),
    seed: z.int().min(0).max(4_294_967_295).describe("Everything random follows from it.").prefault(1),
    cluster,
    pools: z
      .union([
        z.literal("flags"),
        z.strictObject({
          fairScheduler: words("Allocation file (fair-scheduler.xml), relative to the scenario."),
          llamaSite: words("Site file (llama-site.xml), relative to the scenario.").optional(),
        }),
      ])
      .describe("The pool files, or flags: one pool, default-pool, set by the flags default_pool_*.")
      .prefault("flags"),
    flags: z
      .record(z.string(), z.union([z.string(), z.number(), z.boolean()]))
      .describe("Impala's start flags by their own names, such as queue_wait_timeout_ms.")
      .prefault({}),
    users: z
      .record(z.string(), z.union([z.array(z.string()), z.null()]))
      .describe("Groups of each user, in the order they are consulted; null: the lookup fails.")
      .prefault({}),
    queries: z
      .record(z.string(), queryClass)
      .describe("Query classes by name. Needed by all arrivals but trace, which brings its own.")
      .prefault({}),
    arrivals: z.array(arrival).min(1).describe("Who asks, when."),
    retries: retries.prefault("none"),
    faults: z.array(fault).describe("What goes wrong, when.").prefault([]),
    scale: z
      .strictObject({
        time: positive("Live: emulated seconds in a real one.").prefault(1),
        memory: positive(
          "Live: emulated bytes for each byte a footprint really touches; default 1024, or 1 with real operators.",
        ).optional(),
      })
      .describe("How emulated time and memory relate to real ones in a live run.")
      .prefault({}),
    threads: z
      .union([z.literal("auto"), z.int().min(1).max(256)])
      .describe("Live: worker threads that carry the hosts.")
      .prefault("auto"),
    model: z
      .strictObject({
        scratchBandwidth: size("What a host writes to or reads from scratch in a second.").prefault("1gb"),
        cores: z
          .union([z.literal("unlimited"), z.int().min(1)])
          .describe(
            "Cores of a host; more running instances than that slow each other. Recorded queries take as long as they did.",
          )
          .prefault("unlimited"),
      })
      .describe("How virtual executors behave where the live fleet has real hardware.")
      .prefault({}),
    thresholds: z
      .array(words("number compared with a value."))
      .describe('What must hold at the end, such as "pool.root.dashboards.wait.p95 < 20s" or "rejected == 0".')
      .prefault([]),
    limits: z
      .strictObject({
        time: time("Nothing is submitted from this moment on.").optional(),
        queries: count("Nor after so many submissions.").optional(),
      })
      .describe("Bounds of the whole run.")
      .prefault({}),
  })
  .meta({ title: "Waterhole scenario" });

export type ScenarioInput = z.output<typeof SCENARIO_SCHEMA>;
export type QueryClassInput = z.output<typeof queryClass>;
export type ArrivalInput = z.output<typeof arrival>;
export type FaultInput = z.output<typeof fault>;
export type RetriesInput = z.output<typeof retries>;
export type UsesInput = z.output<typeof uses>;
export type DistributionInput = Exclude<QueryClassInput["duration"], undefined>;
export type RowsInput = z.output<z.ZodObject<typeof rowKeys>>;
export type KeysInput = z.output<typeof keys>;

/** The JSON Schema of the file as people write it. */
export const scenarioJsonSchema = (): unknown =>
  z.toJSONSchema(SCENARIO_SCHEMA, { io: "input", target: "draft-2020-12" });
