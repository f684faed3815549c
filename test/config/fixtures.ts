/** Small files for the tests of src/config: only what matters to a test is written in it. */
import { type AllocationFile, parseAllocationFile } from "../../src/config/allocation-file.ts";
import { ConfigError } from "../../src/config/config-error.ts";
import { PoolDirectory } from "../../src/config/pool-directory.ts";
import { DEFAULT_SETTINGS, type PoolSettings } from "../../src/config/pool-settings.ts";
import { parseSiteFile, type SiteFile } from "../../src/config/site-file.ts";

export const KEYS = {
  placed: "llama.am.throttling.maximum.placed.reservations",
  queued: "llama.am.throttling.maximum.queued.reservations",
  timeout: "impala.admission-control.pool-queue-timeout-ms",
  options: "impala.admission-control.pool-default-query-options",
  "max-mem": "impala.admission-control.max-query-mem-limit",
  "min-mem": "impala.admission-control.min-query-mem-limit",
  clamp: "impala.admission-control.clamp-mem-limit-query-option",
  "mt-dop": "impala.admission-control.max-mt-dop",
  "cpu-node": "impala.admission-control.max-query-cpu-core-per-node-limit",
  "cpu-coord": "impala.admission-control.max-query-cpu-core-coordinator-limit",
} as const;

/** What stands inside `<allocations>`. */
export const allocation = (body: string): AllocationFile =>
  parseAllocationFile(`<allocations>${body}</allocations>`, "fair-scheduler.xml");

export const queue = (body: string, name = "a"): string => `<queue name="${name}">${body}</queue>`;

export const property = (key: string, value: string, more = ""): string =>
  `<property><name>${key}</name><value>${value}</value>${more}</property>`;

/** `{ "placed.root.a": "5" }`, with the short names of KEYS. */
export const siteText = (keys: Readonly<Record<string, string>>): string =>
  `<configuration>\n${Object.entries(keys)
    .map(([key, value]) => property(longKey(key), value))
    .join("\n")}\n</configuration>`;

export const longKey = (key: string): string => {
  const [short = "", ...rest] = key.split(".");
  const long = Object.entries(KEYS).find(([name]) => name === short)?.[1];
  return long === undefined ? key : [long, ...rest].join(".");
};

export const site = (keys: Readonly<Record<string, string>>): SiteFile =>
  parseSiteFile(siteText(keys), "llama-site.xml");

export const directory = (settings: Partial<PoolSettings>): PoolDirectory =>
  new PoolDirectory({ ...DEFAULT_SETTINGS, ...settings });

/** The ConfigError that `action` throws; fails the test when it throws none. */
export function configError(action: () => unknown): ConfigError {
  try {
    action();
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
  throw new Error("expected a ConfigError");
}
