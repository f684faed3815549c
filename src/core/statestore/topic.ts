/**
 * The entries that controllers exchange through the statestore: keys and payloads (admission 7.1, 7.2).
 *
 * An entry carries its key already taken apart, because ten rounds a second over every controller would
 * otherwise spend their time on text; `topicKey` and `parseTopicKey` are the written form of the same.
 * Payloads are immutable once published: a reader keeps them, it doesn't copy them.
 */
import type { Bytes } from "../units.ts";

export const POOL_PREFIX = "POOL:";
export const STAT_PREFIX = "STAT:";

export const REQUEST_QUEUE_TOPIC = "impala-request-queue";
export const MEMBERSHIP_TOPIC = "impala-membership";

/** Both topics carry the prefix of `--cluster_membership_topic_id`, when there is one. */
export const topicName = (topic: string, clusterId: string): string =>
  clusterId === "" ? topic : `${clusterId}-${topic}`;

/** One of a host's heaviest queries in one pool (TPoolStats `heavy_memory_queries`). */
export interface HeavyQuery {
  readonly queryId: string;
  readonly consumed: Bytes;
}

/** TPoolStats: one publisher's figures of one pool. */
export interface PoolFigures {
  readonly numAdmittedRunning: number;
  /** This controller's queue only. */
  readonly numQueued: number;
  /** This host's reservations for the pool, whoever admitted the queries. */
  readonly backendMemReserved: Bytes;
  readonly userLoads: ReadonlyMap<string, number>;
  readonly heavyQueries: readonly HeavyQuery[];
  readonly minMemConsumed: Bytes;
  readonly maxMemConsumed: Bytes;
  readonly totalMemConsumed: Bytes;
  readonly numRunning: number;
}

/**
 * The controller's whole map of host figures. Columns, because it is copied and summed as a whole; readers
 * use `memAdmitted` and `slotsInUse` only (admission 7.2). Row i of every column is host `hosts[i]`.
 */
export interface HostFigures {
  readonly hosts: readonly string[];
  readonly memReserved: readonly number[];
  readonly memAdmitted: readonly number[];
  readonly numAdmitted: readonly number[];
  readonly slotsInUse: readonly number[];
}

/** `stats` null: the entry was deleted, because its publisher was declared failed. */
export type TopicEntry =
  | { readonly kind: "pool"; readonly pool: string; readonly host: string; readonly stats: PoolFigures | null }
  | { readonly kind: "hosts"; readonly host: string; readonly stats: HostFigures | null };

/**
 * `POOL:` entries of processes without a controller, all hosts of one pool at once: they have nothing to say
 * but what each host reserved. NaN: no entry. The same as that many pool entries, without an object for each;
 * a reader takes from it what has changed and keeps nothing of it.
 */
export interface ReservedColumn {
  readonly pool: string;
  /** The same list in every update, so that its names are looked up once. */
  readonly hosts: readonly string[];
  readonly bytes: Float64Array;
}

/** What one exchange brings to a subscriber. A full update (not a delta) first forgets all pool figures of others. */
export interface TopicUpdate {
  readonly isDelta: boolean;
  readonly entries: readonly TopicEntry[];
  /** Virtual time only; none when left out. */
  readonly columns?: readonly ReservedColumn[];
}

export const NOTHING_NEW: TopicUpdate = { isDelta: true, entries: [] };

export const poolTopicKey = (pool: string, host: string): string => `${POOL_PREFIX}${pool}!${host}`;
export const hostsTopicKey = (host: string): string => `${STAT_PREFIX}${host}`;

export const topicKey = (entry: TopicEntry): string =>
  entry.kind === "pool" ? poolTopicKey(entry.pool, entry.host) : hostsTopicKey(entry.host);

export type ParsedTopicKey =
  | { readonly kind: "pool"; readonly pool: string; readonly host: string }
  | { readonly kind: "hosts"; readonly host: string };

/** Pool and host part at the last `!`. Null for what a reader ignores: shorter than 8, other prefixes, no or a final `!`. */
export function parseTopicKey(key: string): ParsedTopicKey | null {
  if (key.length < 8) return null;
  const rest = key.slice(POOL_PREFIX.length);
  if (key.startsWith(STAT_PREFIX)) return { kind: "hosts", host: rest };
  if (!key.startsWith(POOL_PREFIX)) return null;
  const at = rest.lastIndexOf("!");
  return at < 0 || at === rest.length - 1 ? null : { kind: "pool", pool: rest.slice(0, at), host: rest.slice(at + 1) };
}
