/**
 * The second driver: a scenario on a virtual clock.
 *
 * The rules are the core's, the requests the workload's; here is only what the live fleet gets from the
 * world: when things happen. One loop takes the earliest of the next submission and the next event; every step
 * is done whole before the next, so the run is a function of scenario and seed. At one instant submissions come
 * before events, and events in the order in which they were scheduled.
 *
 *     submit -> admitted ---> work on the hosts -> backends released in batches -> query released
 *            -> queued -----> pass | time-out | cancellation
 *            -> rejected
 *
 * Passes run when the instant has nothing else left to do, exchanges with the statestore only when they could
 * bring or take something (`RequestQueueTopic`).
 */
import { DEFAULT_FLAGS, type ImpalaFlags } from "../config/impala-flags.ts";
import type { Fault, Scenario } from "../config/scenario.ts";
import type { BackendDescriptor } from "../core/cluster/backend.ts";
import type { PoolConfig } from "../core/pool-config.ts";
import type { RunObserver } from "../core/run-observer.ts";
import type { Submission, Workload } from "../workload/workload.ts";
import { type Micros, toInstant } from "./event-queue.ts";
import type { MeasuredWorkOf } from "./executors.ts";
import type { QueueDiscipline } from "./queue-discipline.ts";
import type { NewController } from "./seat.ts";
import { Simulation } from "./simulation.ts";
import type { EmitEvent } from "./teller.ts";

/** What one submission has of its pool and of `root`; in force for its pool from then on (5.7). */
export interface SubmittedConfigs {
  readonly config: PoolConfig;
  readonly rootConfig: PoolConfig;
}

/** What a pool's record is at the moment; a reload makes another object. */
export interface PoolConfigs {
  configOf(pool: string): PoolConfig;
}

export interface SimulationInput {
  readonly scenario: Scenario;
  readonly workload: Workload;
  readonly pools: PoolConfigs;
  /** Those that are there when the run begins; the scenario's when left out. */
  readonly backends?: readonly BackendDescriptor[];
  /** Parsed `scenario.flags`; Impala's defaults when left out. */
  readonly flags?: ImpalaFlags;
  /** Each thing that happens, as an event object; slow. */
  readonly emit?: EmitEvent;
  /** `emit` hears what becomes of queries and nothing of controllers' calls, topics and single fragments; faster. */
  readonly onlyOutcomes?: boolean;
  /** The same in plain numbers; fast. */
  readonly observer?: RunObserver;
  /** The pools after a fault of kind `configChanges`. */
  readonly changedPools?: (fault: Fault) => PoolConfigs;
  /** Of requests that were recorded with theirs; null, or left out: the pools' own. */
  readonly configsOf?: (submission: Submission) => SubmittedConfigs | null;
  /** Makes the controllers; the core's own when left out. */
  readonly newController?: NewController;
  /** Another order than Impala's; for comparing policies. */
  readonly discipline?: QueueDiscipline;
  /** What queries took where they were measured; the nominal model when left out. */
  readonly measured?: MeasuredWorkOf;
  /** When each subscriber's exchanges with the statestore started, by address; an even grid when left out. */
  readonly exchangeStarts?: ReadonlyMap<string, Float64Array>;
  /** Also told: what stops whoever waits on the hosts, and what each admission's view was (`HostLooks`). */
  readonly looksAtHosts?: boolean;
  /** After every event and submission: checkers look at the whole state. */
  readonly inspect?: (simulation: Simulation) => void;
  /** The run ends as soon as it says so, whatever is still to come. */
  readonly until?: () => boolean;
}

export interface SimulationResult {
  /** Emulated milliseconds at which the last thing happened. */
  readonly endedAt: number;
  readonly submitted: number;
  /** Events taken from the queue. */
  readonly steps: number;
}

export function simulate(input: SimulationInput): SimulationResult {
  const simulation = new Simulation({ ...input, flags: input.flags ?? DEFAULT_FLAGS });
  simulation.run();
  return resultOf(simulation);
}

const resultOf = (simulation: Simulation): SimulationResult => ({
  endedAt: toInstant(simulation.now as Micros),
  submitted: simulation.submitted,
  steps: simulation.steps,
});
