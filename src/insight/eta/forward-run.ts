/**
 * The core run forward from a snapshot, once for each set of drawn holds, until the last queued query is
 * decided (insight 5.2).
 *
 * One controller holds what runs and queues what waits, in order, and decides by its own rules; releases and
 * time-outs come at their drawn moments. Later arrivals cannot pass anybody in a FIFO, so there are none. The
 * controller serves all runs of a prediction: after each it gives everything back.
 */
import { AdmissionController } from "../../core/admission/controller.ts";
import { type ControllerFlags, controllerOptions } from "../../core/admission/controller-options.ts";
import type { DequeueSink } from "../../core/admission/dequeue-pass.ts";
import type { AdmissionQuery } from "../../core/admission/query.ts";
import type { AdmissionRequest, RequestShape } from "../../core/admission/request.ts";
import { membershipOf } from "../../core/cluster/membership.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig } from "../../core/pool-config.ts";
import { NOTHING_NEW } from "../../core/statestore/topic.ts";
import type { Instant } from "../../core/units.ts";
import { EventQueue, toInstant, toMicros } from "../../sim/event-queue.ts";
import type { EtaSnapshot, QueuedQuery, RunningQuery } from "./eta-snapshot.ts";

export type ForwardOutcome = "admitted" | "timedOut" | "rejected";

/** By index in the snapshot's `queued`. */
export interface ForwardResult {
  /** Milliseconds from the snapshot to the decision. */
  readonly waits: Float64Array;
  readonly outcomes: readonly ForwardOutcome[];
}

/** Holds of one run: what is left for the i-th running one, all of it for the j-th queued one. */
export interface DrawnHolds {
  readonly remaining: (i: number) => number;
  readonly whole: (j: number) => number;
}

const RELEASE = 0;
const TIMEOUT = 1;

export class ForwardRuns {
  readonly #snapshot: EtaSnapshot;
  readonly #controller: AdmissionController;
  readonly #running: readonly { readonly request: AdmissionRequest; readonly released: readonly number[] }[];
  readonly #queued: readonly {
    readonly request: AdmissionRequest;
    readonly config: PoolConfig;
    readonly left: number;
  }[];

  constructor(snapshot: EtaSnapshot, flags?: ControllerFlags) {
    this.#snapshot = snapshot;
    this.#controller = new AdmissionController(
      controllerOptions({ hostId: "prediction", keepsIds: false, ...(flags === undefined ? {} : { flags }) }),
    );
    this.#controller.setMembership(membershipOf({ version: 2, backends: snapshot.backends }));
    const shapes = new Map<string, RequestShape>();
    this.#running = snapshot.running.map((q) => ({
      request: requestOf(q, fixedShape(q, shapes)),
      released: q.released,
    }));
    const configs = new Map<string, PoolConfig>();
    this.#queued = snapshot.queued.map((q) => ({
      request: requestOf(q, q.shape),
      config: waitingConfig(q.pool, snapshot.configs, configs),
      left: Math.max(0, q.enqueuedAt + q.timeout - snapshot.now),
    }));
  }

  run(holds: DrawnHolds): ForwardResult {
    const events = new EventQueue();
    const handles: AdmissionQuery[] = [];
    const waits = new Float64Array(this.#queued.length);
    const outcomes = new Array<ForwardOutcome>(this.#queued.length).fill("admitted");
    const indexOf = new Map<AdmissionQuery, number>();
    const controller = this.#controller;
    let open = this.#queued.length;
    let now = 0;
    const decide = (q: AdmissionQuery, outcome: ForwardOutcome): void => {
      const index = indexOf.get(q)!;
      waits[index] = toInstant(now);
      outcomes[index] = outcome;
      open--;
      if (outcome === "admitted") this.#releaseLater(q, holds.whole(index), now, handles, events);
    };
    const sink: DequeueSink = {
      admitted: (q) => decide(q, "admitted"),
      rejected: (q) => decide(q, "rejected"),
      cancelled: (q) => decide(q, "rejected"),
      stillQueued: () => undefined,
    };
    controller.applyUpdate(NOTHING_NEW, 0 as Instant);
    this.#running.forEach((r, i) => {
      const q = controller.submit(r.request, HOLDS_ALREADY, HOLDS_ALREADY, 0 as Instant);
      if (r.released.length > 0) controller.releaseBackends(q, r.released);
      this.#releaseLater(q, holds.remaining(i), now, handles, events);
    });
    this.#queued.forEach((w, index) => {
      const q = controller.submit(w.request, w.config, DEFAULT_POOL_CONFIG, 0 as Instant);
      indexOf.set(q, index);
      if (q.state === "running") decide(q, "admitted");
      else if (q.state === "rejected") decide(q, "rejected");
      else {
        handles.push(q);
        events.add(toMicros(w.left as Instant), TIMEOUT, handles.length - 1, 0);
      }
    });
    while (open > 0) {
      const kind = events.take();
      if (kind < 0) break;
      now = events.time;
      const q = handles[events.a]!;
      if (kind === RELEASE) controller.releaseQuery(q, -1);
      else if (q.state === "queued") {
        controller.timeOut(q, toInstant(now));
        decide(q, "timedOut");
      }
      // What ends together is free together. A time-out wakes nobody by itself, but the topic's next round does
      // (5.4), which is a tenth of a second later and counts as now.
      if (events.nextTime > now) controller.dequeuePass(toInstant(now), sink);
    }
    for (const q of [...controller.runningQueries()]) controller.releaseQuery(q, -1);
    return { waits, outcomes };
  }

  /** For tests and for the reason that is shown: what the snapshot's order means. */
  get queued(): readonly QueuedQuery[] {
    return this.#snapshot.queued;
  }

  #releaseLater(q: AdmissionQuery, hold: number, now: number, handles: AdmissionQuery[], events: EventQueue): void {
    handles.push(q);
    events.add(now + toMicros(Math.max(0, hold) as Instant), RELEASE, handles.length - 1, 0);
  }
}

/** What runs was let in long ago: no limit asks again. */
const HOLDS_ALREADY: PoolConfig = { ...DEFAULT_POOL_CONFIG, maxQueued: Number.MAX_SAFE_INTEGER };

/** The pool's record for those who wait in it: they were let into the queue, so its length and quotas don't ask again. */
function waitingConfig(
  pool: string,
  configs: Readonly<Record<string, PoolConfig>>,
  made: Map<string, PoolConfig>,
): PoolConfig {
  let config = made.get(pool);
  if (config === undefined) {
    config = {
      ...(configs[pool] ?? DEFAULT_POOL_CONFIG),
      maxQueued: Number.MAX_SAFE_INTEGER,
      userQueryLimits: new Map(),
      groupQueryLimits: new Map(),
    };
    made.set(pool, config);
  }
  return config;
}

/** The amounts it was admitted with, by the two options that no bound touches (MEM-5, MEM-6). */
function fixedShape(q: RunningQuery, made: Map<string, RequestShape>): RequestShape {
  const key = `${q.perHost} ${q.onCoordinator} ${JSON.stringify(q.shape)}`;
  let shape = made.get(key);
  if (shape === undefined) {
    const options = {
      ...q.shape.options,
      memLimit: 0,
      memLimitExecutors: q.perHost,
      memLimitCoordinators: q.onCoordinator,
      bufferPoolLimit: 0,
    };
    shape = { ...q.shape, isTrivial: false, options };
    made.set(key, shape);
  }
  return shape;
}

const requestOf = (q: RunningQuery | QueuedQuery, shape: RequestShape): AdmissionRequest => ({
  queryId: q.query,
  coordinator: q.coordinator,
  pool: q.pool,
  user: q.user,
  userGroups: [],
  shape,
  blacklistedExecutors: [],
  placementOffset: q.placementOffset,
});
