/**
 * What `check` is given: the two files, and whatever else is known about the cluster and its traffic. Each part that
 * is there unlocks findings; none but the files is needed.
 */
import type { Surroundings } from "../../config/site-file.ts";

export interface CheckInput {
  readonly allocation: FileText | null;
  readonly site: FileText | null;
  /** As written, by Impala's names; only those that somebody set. */
  readonly flags: Readonly<Record<string, unknown>>;
  /** Where the flags stand, for those who have to change one. */
  readonly flagsFile: string;
  /** User -> ordered groups; null: no table was given. */
  readonly groups: Readonly<Record<string, readonly string[]>> | null;
  readonly cluster: ClusterFacts | null;
  readonly traffic: TrafficFacts | null;
  readonly around: Surroundings;
}

export interface FileText {
  readonly file: string;
  readonly bytes: Uint8Array;
}

export interface ClusterFacts {
  readonly hosts: readonly HostFacts[];
  /** One controller for all coordinators. */
  readonly admissiond: boolean;
  /** What a dedicated coordinator is charged when nothing better is known. */
  readonly coordinatorEstimate: number;
}

export interface HostFacts {
  readonly address: string;
  readonly isCoordinator: boolean;
  readonly isExecutor: boolean;
  readonly admitMemLimit: number;
  readonly slots: number;
  readonly group: { readonly name: string; readonly minSize: number };
  /** `--mem_limit` in bytes; null: not known. */
  readonly processMemLimit: number | null;
}

export interface TrafficFacts {
  readonly classes: readonly TrafficClass[];
}

/** One class of queries, over the time that was looked at. Memory in bytes, times in milliseconds. */
export interface TrafficClass {
  readonly name: string;
  readonly user: string;
  /** REQUEST_POOL, empty for none. */
  readonly requestedPool: string;
  /** Where it ran, from a log; null: placement by today's rules tells. */
  readonly landedPool: string | null;
  readonly count: number;
  /** Planner's estimates. */
  readonly perHostEstimate: number;
  readonly coordinatorEstimate: number;
  /** MEM_LIMIT of the client, 0: not set. */
  readonly memLimit: number;
  /** Executors used; `all` of the group. */
  readonly executors: "all" | number;
  readonly slotsPerHost: number;
  readonly meanHold: number;
  /** Mean and 95 % quantile of the largest peak over the hosts; null: not known. */
  readonly peak: { readonly mean: number; readonly p95: number } | null;
  /** Largest minimum reservation over the hosts. */
  readonly minReservation: number;
  /** Most queries at one moment. */
  readonly largestBurst: number;
  /** Arrivals per second in the busiest hour; 0 when only bursts are known. */
  readonly peakRate: number;
}
