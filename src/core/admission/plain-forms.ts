/**
 * Topic entries and pool records as JSON can hold them, and back: for records and replays.
 */
import type { PoolConfig } from "../pool-config.ts";
import type { TopicEntry } from "../statestore/topic.ts";
import type { PlainConfig, PlainEntry } from "./controller-call.ts";

export const plainConfig = (config: PoolConfig): PlainConfig => ({
  ...config,
  userQueryLimits: [...config.userQueryLimits],
  groupQueryLimits: [...config.groupQueryLimits],
});

export const configOfPlain = (plain: PlainConfig): PoolConfig => ({
  ...plain,
  userQueryLimits: new Map(plain.userQueryLimits),
  groupQueryLimits: new Map(plain.groupQueryLimits),
});

export function plainEntry(entry: TopicEntry): PlainEntry {
  if (entry.kind === "pool")
    return { ...entry, stats: entry.stats === null ? null : { ...entry.stats, userLoads: [...entry.stats.userLoads] } };
  return entry;
}

export function entryOfPlain(plain: PlainEntry): TopicEntry {
  if (plain.kind === "pool")
    return {
      ...plain,
      stats: plain.stats === null ? null : { ...plain.stats, userLoads: new Map(plain.stats.userLoads) },
    };
  return plain;
}
