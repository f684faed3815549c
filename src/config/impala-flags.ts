/**
 * Impala's own flags that change a decision or its timing, with their defaults (admission 11.1, 11.2).
 *
 * A scenario writes them under `flags:` with Impala's names. Numbers are int64 unless said otherwise; memory flags
 * keep their text, because a percentage means something else on every host.
 */
import { ConfigError, type SourcePlace } from "./config-error.ts";
import { parseMemorySpec } from "./memory-spec.ts";
import { nearestName } from "./nearest-name.ts";

type FlagKind = "integer" | "decimal" | "boolean" | "text" | "memory";
type FlagValue = number | boolean | string;

interface Flag<T extends FlagValue> {
  readonly kind: FlagKind;
  readonly initial: T;
  /** Where the product refuses to start with another value; only few of its flags do. */
  readonly between?: readonly [least: number, most: number];
}

const integer = (initial: number, between?: readonly [number, number]): Flag<number> =>
  between === undefined ? { kind: "integer", initial } : { kind: "integer", initial, between };
const decimal = (initial: number): Flag<number> => ({ kind: "decimal", initial });
const boolean = (initial: boolean): Flag<boolean> => ({ kind: "boolean", initial });
const text = (initial: string): Flag<string> => ({ kind: "text", initial });
const memory = (initial: string): Flag<string> => ({ kind: "memory", initial });

export const IMPALA_FLAGS = {
  queue_wait_timeout_ms: integer(60_000),
  default_pool_max_requests: integer(-1),
  default_pool_mem_limit: memory(""),
  default_pool_max_queued: integer(200),
  disable_pool_max_requests: boolean(false),
  disable_pool_mem_limits: boolean(false),
  fair_scheduler_allocation_path: text(""),
  llama_site_path: text(""),
  require_username: boolean(false),
  clamp_query_mem_limit_backend_mem_limit: boolean(true),
  use_dedicated_coordinator_estimates: boolean(true),
  balance_queries_across_executor_groups: boolean(false),
  admission_control_stale_topic_threshold_ms: integer(5000),
  cluster_membership_topic_id: text(""),
  admission_control_slots: integer(0),
  max_concurrent_queries: integer(0),
  mem_limit: memory("80%"),
  mem_limit_includes_jvm: boolean(false),
  codegen_cache_capacity: memory("1GB"),
  num_cores: integer(0),
  is_coordinator: boolean(true),
  is_executor: boolean(true),
  executor_groups: text(""),
  default_query_options: text(""),
  blacklisting_enabled: boolean(true),
  expected_executor_group_sets: text(""),
  num_expected_executors: integer(20),
  skip_resource_checking_on_last_executor_group_set: boolean(true),
  query_cpu_count_divisor: decimal(1),
  query_cpu_root_factor: decimal(1.5),
  injected_group_members_debug_only: text(""),
  statestore_priority_update_frequency_ms: integer(100),
  statestore_update_frequency_ms: integer(2000),
  statestore_heartbeat_frequency_ms: integer(1000),
  statestore_max_missed_heartbeats: integer(10),
  statestore_num_priority_update_threads: integer(10),
  statestore_subscriber_timeout_seconds: integer(30),
  statestore_subscriber_recovery_grace_period_ms: integer(30_000),
  release_backend_states_delay_ms: integer(1000),
  batched_release_decay_factor: integer(2),
  admission_service_host: text(""),
  admission_service_port: integer(29_500),
  admission_thread_pool_size: integer(5),
  max_admission_queue_size: integer(50),
  admission_control_service_num_svc_threads: integer(0),
  admission_control_service_queue_mem_limit: memory("50MB"),
  admission_status_wait_time_ms: integer(100),
  admission_status_retry_time_ms: integer(10),
  admission_max_retry_time_s: integer(60),
  admission_heartbeat_frequency_ms: integer(1000),
  admission_control_rpc_compress_threshold_bytes: integer(0),
  cluster_membership_retained_removed_coords: integer(1000, [1, 1000]),
  enable_admission_service_mem_safeguard: boolean(true),
} as const;

export type ImpalaFlagName = keyof typeof IMPALA_FLAGS;
export type ImpalaFlags = {
  readonly [K in ImpalaFlagName]: (typeof IMPALA_FLAGS)[K] extends Flag<infer T> ? T : never;
};

/** Accepted and without effect in the product (pool-configuration 6). */
export const REMOVED_FLAGS: ReadonlySet<string> = new Set([
  "disable_admission_control",
  "enable_rm",
  "rm_always_use_defaults",
  "rm_default_memory",
  "rm_default_cpu_vcores",
  "llama_host",
  "llama_port",
  "llama_callback_port",
  "llama_registration_timeout_secs",
  "llama_registration_wait_secs",
  "llama_max_request_attempts",
  "cgroup_hierarchy_path",
  "staging_cgroup",
  "resource_broker_cnxn_attempts",
  "resource_broker_cnxn_retry_interval_ms",
  "resource_broker_send_timeout",
  "resource_broker_recv_timeout",
  "local_nodemanager_url",
]);

export const DEFAULT_FLAGS: ImpalaFlags = Object.freeze(
  Object.fromEntries(Object.entries(IMPALA_FLAGS).map(([name, flag]) => [name, flag.initial])),
) as ImpalaFlags;

/**
 * Defaults overlaid with what was written. Values may be of their type already or the text of a command line.
 * Throws ConfigError for an unknown name or a text that is not of the flag's type; `placeOf` says where it stands.
 */
export function parseFlags(
  written: Readonly<Record<string, unknown>>,
  placeOf: (name: string) => SourcePlace = (name) => ({ file: `--${name}`, line: null }),
): ImpalaFlags {
  const flags: Record<string, FlagValue> = { ...DEFAULT_FLAGS };
  for (const [name, value] of Object.entries(written)) {
    if (REMOVED_FLAGS.has(name)) continue;
    if (!isFlagName(name)) throw unknownFlag(name, placeOf(name));
    const parsed = parseFlag(IMPALA_FLAGS[name].kind, value);
    if (parsed === null) throw wrongType(name, value, placeOf(name));
    const { between }: Flag<FlagValue> = IMPALA_FLAGS[name];
    if (between !== undefined && !isWithin(Number(parsed), between))
      throw outOfRange(name, value, between, placeOf(name));
    flags[name] = parsed;
  }
  return flags as ImpalaFlags;
}

export const isFlagName = (name: string): name is ImpalaFlagName => Object.hasOwn(IMPALA_FLAGS, name);

function parseFlag(kind: FlagKind, value: unknown): FlagValue | null {
  if (kind === "boolean") return parseBoolean(value);
  if (kind === "integer") return parseInteger(value);
  if (kind === "decimal") return parseDecimal(value);
  const written = typeof value === "string" ? value : typeof value === "number" ? String(value) : null;
  if (written === null) return null;
  return kind === "text" || parseMemorySpec(written.trim()) !== null ? written.trim() : null;
}

/** The words of the product's flag library. */
function parseBoolean(value: unknown): boolean | null {
  if (typeof value === "boolean") return value;
  const word = String(value).toLowerCase();
  if (["1", "t", "true", "y", "yes"].includes(word)) return true;
  return ["0", "f", "false", "n", "no"].includes(word) ? false : null;
}

function parseInteger(value: unknown): number | null {
  if (typeof value === "number") return Number.isSafeInteger(value) ? value : null;
  if (typeof value !== "string" || !/^\s*[+-]?(?:[0-9]+|0[xX][0-9a-fA-F]+)\s*$/.test(value)) return null;
  const digits = value.trim().replace(/^[+-]/, "");
  const number = Number(digits) * (value.trim().startsWith("-") ? -1 : 1);
  return Number.isSafeInteger(number) ? number : null;
}

function parseDecimal(value: unknown): number | null {
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : null;
}

function unknownFlag(name: string, at: SourcePlace): ConfigError {
  const near = nearestName(name, Object.keys(IMPALA_FLAGS));
  return new ConfigError(
    at,
    `"${name}" is not a flag that Waterhole knows`,
    near === null ? "Only flags that change admission are emulated; delete it." : `Do you mean ${near}?`,
  );
}

function wrongType(name: ImpalaFlagName, value: unknown, at: SourcePlace): ConfigError {
  const { kind, initial } = IMPALA_FLAGS[name];
  const expected = {
    integer: "a whole number",
    decimal: "a number",
    boolean: "true or false",
    text: "a text",
    memory: "a size such as 200gb, bytes, or a percentage such as 80%",
  }[kind];
  const problem =
    name === "default_pool_mem_limit"
      ? `Unable to parse default pool mem limit from '${value}'.`
      : `${name} is ${JSON.stringify(value)}, which is not ${expected}`;
  return new ConfigError(at, problem, `Write ${expected}; the default is ${JSON.stringify(initial)}.`);
}

const isWithin = (n: number, [least, most]: readonly [number, number]): boolean => n >= least && n <= most;

const outOfRange = (name: ImpalaFlagName, value: unknown, [least, most]: readonly [number, number], at: SourcePlace) =>
  new ConfigError(
    at,
    `${name} is ${JSON.stringify(value)}, outside ${least} to ${most}`,
    `Write a number from ${least} to ${most}.`,
  );
