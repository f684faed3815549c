/**
 * Topic entries and pool records as JSON can hold them, and back: for records and replays.
 */
import type { PoolConfig } from "../pool-config.ts";
import type { HostFigures, TopicEntry } from "../statestore/topic.ts";
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
  return { ...entry, stats: entry.stats === null ? null : plainFigures(entry.stats) };
}

const plainFigures = (f: HostFigures) => ({
  hosts: f.hosts,
  memReserved: [...f.memReserved],
  memAdmitted: [...f.memAdmitted],
  numAdmitted: [...f.numAdmitted],
  slotsInUse: [...f.slotsInUse],
});

export function entryOfPlain(plain: PlainEntry): TopicEntry {
  if (plain.kind === "pool")
    return {
      ...plain,
      stats: plain.stats === null ? null : { ...plain.stats, userLoads: new Map(plain.stats.userLoads) },
    };
  const { stats } = plain;
  if (stats === null) return { kind: "hosts", host: plain.host, stats: null };
  return {
    kind: "hosts",
    host: plain.host,
    stats: {
      hosts: stats.hosts,
      memReserved: Float64Array.from(stats.memReserved),
      memAdmitted: Float64Array.from(stats.memAdmitted),
      numAdmitted: Float64Array.from(stats.numAdmitted),
      slotsInUse: Float64Array.from(stats.slotsInUse),
    },
  };
}
