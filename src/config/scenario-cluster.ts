/**
 * The backends of a scenario's cluster: names, roles, groups.
 *
 * Numbers in names have as many digits as the largest needs, so that address order, which decides ties
 * everywhere, is the order in which people count. Whoever names a host may leave zeros and port out.
 */
import type { BackendDescriptor } from "../core/cluster/backend.ts";
import type { ClusterSpec, CoordinatorSpec, ExecutorSpec } from "./scenario.ts";

const KRPC_PORT = 27000;

/** All backends in address order: dedicated coordinators (`coord-1:27000`) before executors (`exec-1:27000`). */
export function backendsOf(cluster: ClusterSpec): BackendDescriptor[] {
  const executors = cluster.executors.flatMap((spec) => repeat(spec.count, spec));
  const onExecutors = sumOf(cluster.coordinators.filter((c) => c.on === "executor"));
  const dedicated = cluster.coordinators.filter((c) => c.on === "dedicated").flatMap((c) => repeat(c.count, c));
  const names = addressesOf("exec", executors.length);
  return [
    ...addressesOf("coord", dedicated.length).map((address, i) => dedicatedCoordinator(address, dedicated[i]!)),
    ...names.map((address, i) => executor(address, executors[i]!, i < onExecutors)),
  ];
}

/** Bytes of scratch by backend, Infinity: no limit (S9). */
export function scratchLimitsOf(cluster: ClusterSpec, backends: readonly BackendDescriptor[]): number[] {
  const limits = cluster.executors.flatMap((spec) => repeat(spec.count, spec.scratch ?? Number.POSITIVE_INFINITY));
  let executor = 0;
  return backends.map((b) => (b.isExecutor ? limits[executor++]! : Number.POSITIVE_INFINITY));
}

/** Addresses of all coordinators in address order. */
export const coordinatorsOf = (backends: readonly BackendDescriptor[]): string[] =>
  backends.filter((b) => b.isCoordinator).map((b) => b.address);

/** `exec-3`, `exec-03` and `exec-03:27000` are one host; null when there is none of that name. */
export function findHost(backends: readonly BackendDescriptor[], name: string): BackendDescriptor | null {
  const wanted = bareName(name);
  return backends.find((b) => bareName(b.address) === wanted) ?? null;
}

/** `exec-03` of `exec-03:27000`: how a host is called where the port would only be noise. */
export const hostNameOf = (address: string): string => address.replace(/:\d+$/, "");

const bareName = (name: string): string => hostNameOf(name.trim().toLowerCase()).replace(/-0+(?=\d)/, "-");

function executor(address: string, spec: ExecutorSpec, coordinates: boolean): BackendDescriptor {
  return {
    address,
    isCoordinator: coordinates,
    isExecutor: true,
    isQuiescing: false,
    admitMemLimit: spec.memory,
    admissionSlots: spec.slots,
    executorGroup: spec.group,
  };
}

function dedicatedCoordinator(address: string, spec: CoordinatorSpec): BackendDescriptor {
  return {
    address,
    isCoordinator: true,
    isExecutor: false,
    isQuiescing: false,
    admitMemLimit: spec.memory,
    admissionSlots: spec.slots,
    executorGroup: { name: "default", minSize: 1 },
  };
}

function addressesOf(prefix: string, count: number): string[] {
  const digits = String(count).length;
  return Array.from({ length: count }, (_, i) => `${prefix}-${String(i + 1).padStart(digits, "0")}:${KRPC_PORT}`);
}

const repeat = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value);
const sumOf = (specs: readonly CoordinatorSpec[]): number => specs.reduce((n, c) => n + c.count, 0);
