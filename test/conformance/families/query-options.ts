/**
 * Family `query-options`: which source of an option has its way.
 *
 * `REQUEST_POOL` among the effective options is the resolved pool, as the product's profile shows it.
 */
import { join } from "node:path";
import { openPoolDirectory } from "../../../src/config/pool-directory.ts";
import { effectiveOptions } from "../../../src/config/query-options.ts";
import type { FamilyRunner } from "../family.ts";

export const run: FamilyRunner = (vector, dir) => {
  const { config_files, pool, process_defaults } = vector.input;
  const { connection_open_options, connection_options, statement_options } = vector.input;
  const directory = openPoolDirectory({
    fairScheduler: config_files.allocation_file ? join(dir, config_files.allocation_file) : null,
    llamaSite: config_files.llama_site_file ? join(dir, config_files.llama_site_file) : null,
  });
  const record = directory.configOf(pool);
  const { options } = effectiveOptions({
    processDefaults: pairs(process_defaults)
      .map(([name, value]) => `${name}=${value}`)
      .join(","),
    pool: record.defaultQueryOptions,
    connection: [...pairs(connection_open_options), ...pairs(connection_options)],
    statement: pairs(statement_options),
    maxMtDop: record.maxMtDop,
  });
  const got = new Map([...options, ["REQUEST_POOL", pool]]);
  const wanted = pairs(vector.expected.effective_contains);
  const absent: string[] = vector.expected.absent ?? [];
  const fits =
    wanted.every(([name, value]) => got.get(name) === value) &&
    absent.every((entry) => ![...got].some(([name, value]) => entry === name || entry === `${name}=${value}`));
  return fits ? { kind: "pass" } : { kind: "fail", expected: vector.expected, got: Object.fromEntries(got) };
};

const pairs = (options: Readonly<Record<string, string>> | undefined): [string, string][] =>
  Object.entries(options ?? {});
