/**
 * Neutral defaults for tests of the core: a test states only what matters to it.
 */
import { AdmissionController } from "../../src/core/admission/controller.ts";
import { type ControllerOptions, controllerOptions } from "../../src/core/admission/controller-options.ts";
import type { DequeueSink } from "../../src/core/admission/dequeue-pass.ts";
import { checkSnapshot } from "../../src/core/admission/invariants.ts";
import type { AdmissionQuery } from "../../src/core/admission/query.ts";
import type { QueueReason } from "../../src/core/admission/reasons.ts";
import {
  type AdmissionOptions,
  type AdmissionRequest,
  DEFAULT_ADMISSION_OPTIONS,
  type FragmentShape,
  type RequestShape,
} from "../../src/core/admission/request.ts";
import { snapshotOf } from "../../src/core/admission/snapshot.ts";
import type { BackendDescriptor } from "../../src/core/cluster/backend.ts";
import { type Membership, membershipOf } from "../../src/core/cluster/membership.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig } from "../../src/core/pool-config.ts";
import { type Bytes, bytes, GiB, type Instant, instant, MiB } from "../../src/core/units.ts";

export const mib = (n: number): Bytes => bytes(n * MiB);
export const gib = (n: number): Bytes => bytes(n * GiB);
export const at = (n: number): Instant => instant(n);

/** An executor of the group `default` that also coordinates: 100 GiB, 16 slots. */
export const backend = (address: string, over: Partial<BackendDescriptor> = {}): BackendDescriptor => ({
  address,
  isCoordinator: false,
  isExecutor: true,
  isQuiescing: false,
  admitMemLimit: gib(100),
  admissionSlots: 16,
  executorGroup: { name: "default", minSize: 1 },
  ...over,
});

export const dedicatedCoordinator = (address: string, over: Partial<BackendDescriptor> = {}): BackendDescriptor =>
  backend(address, { isCoordinator: true, isExecutor: false, ...over });

/** `h0` to `h(n-1)`, all executors of one group; `h0` coordinates. */
export const hosts = (n: number, over: Partial<BackendDescriptor> = {}): BackendDescriptor[] =>
  Array.from({ length: n }, (_, i) => backend(`h${i}:1`, { isCoordinator: i === 0, ...over }));

export const group = (name: string, minSize = 1): BackendDescriptor["executorGroup"] => ({ name, minSize });

let lastVersion = 1;
/** Every membership of a test run has a version of its own, growing. */
export const membership = (
  backends: readonly BackendDescriptor[],
  over: Partial<Parameters<typeof membershipOf>[0]> = {},
): Membership => membershipOf({ version: ++lastVersion, backends, ...over });

export const fragment = (over: Partial<FragmentShape> = {}): FragmentShape => ({
  runsOn: "executors",
  instancesPerHost: 1,
  minReservationPerInstance: bytes(0),
  minReservationPerBackend: bytes(0),
  threadReservationPerInstance: 1,
  isDominant: false,
  ...over,
});

export const options = (over: Partial<AdmissionOptions> = {}): AdmissionOptions => ({
  ...DEFAULT_ADMISSION_OPTIONS,
  ...over,
});

/** A SELECT on all executors with a root fragment: 1 GiB a host, 100 MiB on a dedicated coordinator. */
export const shape = (over: Partial<RequestShape> = {}): RequestShape => ({
  stmtType: "QUERY",
  perHostMemEstimate: gib(1),
  dedicatedCoordMemEstimate: mib(100),
  isTrivial: false,
  coordinatorOnly: false,
  includeAllCoordinators: false,
  executors: "all",
  fragments: [fragment({ runsOn: "coordinator" }), fragment()],
  options: DEFAULT_ADMISSION_OPTIONS,
  maxSlotsPerExecutor: null,
  ...over,
});

export const coordinatorOnlyShape = (over: Partial<RequestShape> = {}): RequestShape =>
  shape({ coordinatorOnly: true, fragments: [fragment({ runsOn: "coordinator" })], ...over });

export const trivialShape = (): RequestShape => coordinatorOnlyShape({ isTrivial: true, perHostMemEstimate: mib(10) });

const THE_SHAPE = shape();
let lastId = 0;
export const request = (over: Partial<AdmissionRequest> = {}): AdmissionRequest => ({
  queryId: `q${++lastId}`,
  coordinator: "h0:1",
  pool: "root.p",
  user: "ana",
  userGroups: [],
  shape: THE_SHAPE,
  blacklistedExecutors: [],
  placementOffset: 0,
  ...over,
});

export const poolConfig = (over: Partial<PoolConfig> = {}): PoolConfig => ({ ...DEFAULT_POOL_CONFIG, ...over });

/** What a pass did, one word and the query's id each, and the reasons that heads were told. */
export interface PassLog {
  readonly lines: string[];
  readonly reasons: QueueReason[];
}

/** A controller on a clock that stands still unless told, with its view fresh. */
export class Bench {
  readonly controller: AdmissionController;
  now: Instant = at(0);
  root: PoolConfig = DEFAULT_POOL_CONFIG;

  constructor(cluster: Membership, over: Partial<ControllerOptions> = {}) {
    this.controller = new AdmissionController(controllerOptions({ hostId: "h0:1", ...over }));
    this.controller.setMembership(cluster);
    this.tick();
  }

  /** One exchange that brings nothing: the view is fresh again and a pass is due. */
  tick(): void {
    this.controller.collectUpdate();
    this.controller.applyUpdate({ isDelta: true, entries: [] }, this.now);
  }

  submit(config: PoolConfig, over: Partial<AdmissionRequest> = {}): AdmissionQuery {
    const q = this.controller.submit(request(over), config, this.root, this.now);
    this.check();
    return q;
  }

  pass(): PassLog {
    const log: PassLog = { lines: [], reasons: [] };
    const sink: DequeueSink = {
      admitted: (q) => log.lines.push(`admitted ${q.id}`),
      rejected: (q) => log.lines.push(`rejected ${q.id}`),
      cancelled: (q) => log.lines.push(`cancelled ${q.id}`),
      stillQueued: (q) => {
        log.lines.push(`waits ${q.id}`);
        log.reasons.push(q.latestReason!);
      },
    };
    this.controller.dequeuePass(this.now, sink);
    this.check();
    return log;
  }

  release(q: AdmissionQuery, peak = -1): void {
    this.controller.releaseQuery(q, peak);
    this.check();
  }

  check(): void {
    checkSnapshot(snapshotOf(this.controller, this.now), this.controller.options.repaired);
  }

  stats(pool = "root.p") {
    return this.controller.pool(pool)!.stats;
  }
}
