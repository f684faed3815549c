/**
 * G01 to G03: flags and executor groups beside the files.
 */
import { REMOVED_FLAGS } from "../../config/impala-flags.ts";
import type { CheckContext, Rule } from "./check-context.ts";
import { type Finding, finding } from "./finding.ts";

export const flagFindings: Rule = (context) => [
  ...overridden(context),
  ...noWait(context),
  ...groupPrefixes(context),
  ...unhealthyGroups(context),
];

function overridden(context: CheckContext): readonly Finding[] {
  const { input } = context;
  return Object.entries(input.flags).flatMap(([name, value]) => {
    const effect = overriddenEffect(name, context);
    return effect === null
      ? []
      : [
          finding("G01", {
            at: { file: input.flagsFile, line: null },
            found: `${name}=${String(value)}`,
            effect,
            remedy: "Drop the flag.",
          }),
        ];
  });
}

function overriddenEffect(name: string, { input, flags }: CheckContext): string | null {
  if (REMOVED_FLAGS.has(name)) return "A flag of old: accepted and without effect.";
  if (name.startsWith("default_pool_") && input.allocation !== null)
    return "Ignored: with an allocation file the limits of pools come from the files.";
  if (name === "disable_pool_max_requests" && flags.disable_pool_max_requests)
    return "No pool has a limit on running queries, whatever the files say.";
  if (name === "disable_pool_mem_limits" && flags.disable_pool_mem_limits)
    return "No pool has a memory limit, whatever the files say, and hosts are not checked either.";
  if (name === "llama_site_path" && flags.fair_scheduler_allocation_path === "" && input.allocation === null)
    return "Ignored without --fair_scheduler_allocation_path.";
  return null;
}

function noWait({ flags, pools, input }: CheckContext): readonly Finding[] {
  const without = pools.filter((pool) => pool.config.queueTimeout === null);
  if (flags.queue_wait_timeout_ms > 0 || (without.length === 0 && input.allocation !== null)) return [];
  const names = without.length === 0 ? "default-pool" : without.map((pool) => pool.name).join(", ");
  return [
    finding("G02", {
      at: { file: input.flagsFile, line: null },
      found: `queue_wait_timeout_ms=${flags.queue_wait_timeout_ms}`,
      effect: `Queued queries time out at once in ${names}, which has no timeout of its own.`,
      remedy: "Set it above 0.",
    }),
  ];
}

const groupsOf = ({ input }: CheckContext): ReadonlyMap<string, { size: number; minSize: number }> => {
  const groups = new Map<string, { size: number; minSize: number }>();
  for (const host of input.cluster?.hosts ?? []) {
    if (!host.isExecutor) continue;
    const group = groups.get(host.group.name) ?? { size: 0, minSize: host.group.minSize };
    groups.set(host.group.name, { ...group, size: group.size + 1 });
  }
  return groups;
};

/** A pool uses the groups whose names begin with its own and a hyphen, also those meant for a longer name. */
function groupPrefixes(context: CheckContext): readonly Finding[] {
  const { pools, allocation } = context;
  const groups = [...groupsOf(context).keys()];
  return pools.flatMap((pool) =>
    pools
      .filter((other) => other.name.startsWith(`${pool.name}-`))
      .flatMap((other) => {
        const shared = groups.filter((group) => group.startsWith(`${other.name}-`));
        if (shared.length === 0) return [];
        return [
          finding("G03", {
            at: { file: allocation?.file ?? "", ...pool.queue.element.at },
            pool: pool.name,
            found: `pools ${pool.name} and ${other.name}, group ${shared.join(", ")}`,
            effect: `${pool.name} uses the groups of ${other.name} too: groups are found by the beginning of their names.`,
            remedy: "Rename one of the pools and its groups.",
          }),
        ];
      }),
  );
}

function unhealthyGroups(context: CheckContext): readonly Finding[] {
  return [...groupsOf(context)]
    .filter(([, group]) => group.size < group.minSize)
    .map(([name, group]) =>
      finding("G03", {
        at: { file: context.input.flagsFile, line: null },
        found: `group ${name} has ${group.size} of ${group.minSize} executors`,
        effect: "It is not healthy: its pools wait, and the fall back to the group default is blocked by it.",
        remedy: "Start the missing executors, or lower the minimum size.",
      }),
    );
}
