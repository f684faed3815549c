/** Inputs of `check` for tests: neutral parts, so that a test writes only what matters to it. */
import type { CheckInput, ClusterFacts, HostFacts, TrafficClass } from "../../../src/insight/pool-check/check-input.ts";
import { checkPools } from "../../../src/insight/pool-check/pool-check.ts";
import { siteText } from "../../config/fixtures.ts";

export const GiB = 1024 ** 3;

export interface CheckTexts {
  /** What stands inside `<allocations>`; null: no allocation file. */
  readonly allocation?: string | null;
  /** A whole allocation file instead. */
  readonly whole?: string;
  /** Site keys by their short names; null: no site file. */
  readonly site?: Readonly<Record<string, string>> | string | null;
  readonly flags?: CheckInput["flags"];
  readonly groups?: CheckInput["groups"];
  readonly cluster?: ClusterFacts | null;
  readonly traffic?: readonly Partial<TrafficClass>[] | null;
}

export function inputOf(texts: CheckTexts): CheckInput {
  const { allocation, whole, site = {}, flags = {}, groups = null, cluster = null, traffic = null } = texts;
  const allocationText = whole ?? (allocation == null ? null : `<allocations>${allocation}</allocations>`);
  const siteFile = site === null ? null : typeof site === "string" ? site : siteText(site);
  return {
    allocation: allocationText === null ? null : { file: "fair-scheduler.xml", bytes: Buffer.from(allocationText) },
    site: siteFile === null ? null : { file: "llama-site.xml", bytes: Buffer.from(siteFile) },
    flags,
    flagsFile: "scenario.yaml",
    groups,
    cluster,
    traffic: traffic === null ? null : { classes: traffic.map(trafficClass) },
    around: { environment: {}, systemProperties: {} },
  };
}

export const check = (texts: CheckTexts) => checkPools(inputOf(texts));
export const ids = (texts: CheckTexts): string[] => check(texts).findings.map((f) => f.id);

export const host = (some: Partial<HostFacts> = {}): HostFacts => ({
  address: "exec-1:27000",
  isCoordinator: false,
  isExecutor: true,
  admitMemLimit: 100 * GiB,
  slots: 16,
  group: { name: "default", minSize: 1 },
  processMemLimit: null,
  ...some,
});

export const executors = (count: number, some: Partial<HostFacts> = {}): HostFacts[] =>
  Array.from({ length: count }, (_, i) => host({ address: `exec-${i + 1}:27000`, ...some }));

export const coordinators = (count: number): HostFacts[] =>
  Array.from({ length: count }, (_, i) =>
    host({ address: `coord-${i + 1}:27000`, isExecutor: false, isCoordinator: true }),
  );

export const cluster = (hosts: readonly HostFacts[], some: Partial<ClusterFacts> = {}): ClusterFacts => ({
  hosts,
  admissiond: false,
  coordinatorEstimate: 100 * 1024 ** 2,
  ...some,
});

/** The worked example's query: 1.5 GiB on all hosts for 4 s. */
const trafficClass = (some: Partial<TrafficClass>): TrafficClass => ({
  name: "tile",
  user: "ana",
  requestedPool: "a",
  landedPool: null,
  count: 100,
  perHostEstimate: 1.5 * GiB,
  coordinatorEstimate: 100 * 1024 ** 2,
  memLimit: 0,
  executors: "all",
  slotsPerHost: 1,
  meanHold: 4000,
  peak: null,
  minReservation: 0,
  largestBurst: 1,
  peakRate: 0,
  ...some,
});
