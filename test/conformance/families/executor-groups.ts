/** Family executor-groups: who belongs to a group, and which groups a query is tried on (admission 6). */
import { queueReasonText } from "../../../src/core/admission/reasons.ts";
import type { BackendDescriptor } from "../../../src/core/cluster/backend.ts";
import { balanced, candidateGroups } from "../../../src/core/cluster/candidate-groups.ts";
import { ExecutorGroup } from "../../../src/core/cluster/executor-group.ts";
import { membershipOf } from "../../../src/core/cluster/membership.ts";
import { type Bytes, GiB } from "../../../src/core/units.ts";
import type { FamilyRunner, Verdict } from "../family.ts";
import { compare, type Json, textMatches } from "./inputs.ts";

export const run: FamilyRunner = ({ input, expected }) =>
  input.kind === "membership" ? membership(input) : select(input, expected);

function membership(input: Json): Verdict {
  let executors: Json[] = [];
  for (const op of input.ops) {
    if (op.op === "add") executors.push(op.executor);
    else if (op.op === "remove") executors = executors.filter((e) => addressOf(e) !== addressOf(op.executor));
    else {
      const verdict = check(groupOf(input.group, executors), executors, op);
      if (verdict.kind !== "pass") return verdict;
    }
  }
  return { kind: "pass" };
}

const addressOf = (e: Json): string => `${e.hostname}:${e.port}`;

/** The group was there first: an executor that states another size for it is left out, whichever comes first. */
function groupOf(group: Json, executors: readonly Json[]): ExecutorGroup {
  const backends = executors
    .map((e) => backendFrom(e, group))
    .filter((b) => b.executorGroup.minSize === group.min_size);
  const { groups } = membershipOf({ version: 1, backends });
  return groups.find((g) => g.name === group.name) ?? new ExecutorGroup(group.name, group.min_size, []);
}

/** One that doesn't mention the group is no contradiction. */
const backendFrom = (e: Json, group: Json): BackendDescriptor => ({
  address: addressOf(e),
  isCoordinator: false,
  isExecutor: true,
  isQuiescing: false,
  admitMemLimit: e.admit_mem_limit,
  admissionSlots: 8,
  executorGroup: {
    name: group.name,
    minSize: (e.groups ?? []).find((g: Json) => g.name === group.name)?.min_size ?? group.min_size,
  },
});

function check(group: ExecutorGroup, executors: readonly Json[], expected: Json): Verdict {
  const isMember = (e: Json) => group.executors.some((m) => m.address === addressOf(e));
  const members = executors.filter(isMember);
  const ipOf = (host: string): string | null =>
    members.find((e) => e.ip === host || e.hostname === host || (host === "localhost" && e.ip === "127.0.0.1"))?.ip ??
    null;
  const each = (asked: Json, answer: (key: string) => unknown) =>
    Object.fromEntries(Object.keys(asked ?? {}).map((key) => [key, answer(key)]));
  const { op: _op, ...rest } = expected;
  return compare(rest, {
    per_executor_mem_limit: group.smallestMemLimit,
    num_executors: group.executors.length,
    healthy: group.isHealthy,
    lookup_ip: each(expected.lookup_ip, ipOf),
    executors_on_ip: each(expected.executors_on_ip, (ip) => members.filter((e) => e.ip === ip).length),
    lookup_executor: (expected.lookup_executor ?? []).filter(isMember),
    lookup_executor_missing: (expected.lookup_executor_missing ?? []).filter((e: Json) => !isMember(e)),
  });
}

function select(input: Json, expected: Json): Verdict {
  const found = candidateGroups(
    {
      coordinator: "coordinator:1",
      pool: input.pool,
      onlyCoordinators: false,
      coordinatorOnly: false,
      blacklistedExecutors: [],
    },
    membershipOf({ version: 1, backends: [COORDINATOR, ...input.groups.flatMap(executorsOf)] }),
  );
  if (found.kind !== "groups") {
    const reason = queueReasonText({ rule: "NO-EXECUTORS" });
    const holds = found.kind === "noExecutors" && expected.groups.length === 0 && textMatches(expected, reason);
    return holds ? { kind: "pass" } : { kind: "fail", expected, got: found.kind };
  }
  const inOrder = input.flags?.balance_queries_across_executor_groups
    ? balanced(found.groups, (g) => input.available[g.whole.name])
    : found.groups;
  return compare({ groups: expected.groups }, { groups: inOrder.map((g) => g.whole.name) });
}

const COORDINATOR: BackendDescriptor = {
  address: "coordinator:1",
  isCoordinator: true,
  isExecutor: false,
  isQuiescing: false,
  admitMemLimit: GiB as Bytes,
  admissionSlots: 8,
  executorGroup: { name: "", minSize: 1 },
};

const executorsOf = (g: Json): BackendDescriptor[] =>
  Array.from({ length: g.num_executors }, (_, i) => ({
    ...COORDINATOR,
    address: `${g.name}-${i}:1`,
    isCoordinator: false,
    isExecutor: true,
    executorGroup: { name: g.name, minSize: g.min_size },
  }));
