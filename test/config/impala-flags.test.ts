import { describe, expect, test } from "vitest";
import { DEFAULT_FLAGS, parseFlags } from "../../src/config/impala-flags.ts";
import { parseMemorySpec, specBytes } from "../../src/config/memory-spec.ts";
import { shortName } from "../../src/config/short-name.ts";
import { configError } from "./fixtures.ts";

describe("admission 11.1: flags", () => {
  test("what is not written has Impala's default", () => {
    expect(parseFlags({})).toEqual(DEFAULT_FLAGS);
    expect(DEFAULT_FLAGS).toMatchObject({
      queue_wait_timeout_ms: 60_000,
      default_pool_max_queued: 200,
      mem_limit: "80%",
      clamp_query_mem_limit_backend_mem_limit: true,
    });
  });

  test.each([
    ["queue_wait_timeout_ms", "0x10", 16],
    ["queue_wait_timeout_ms", -1, -1],
    ["require_username", "yes", true],
    ["require_username", "0", false],
    ["default_pool_mem_limit", " 10gb", "10gb"],
    ["query_cpu_count_divisor", "1.5", 1.5],
    ["executor_groups", "root.a-1:3", "root.a-1:3"],
  ])("%s=%j is %j", (name, written, value) => {
    expect(parseFlags({ [name]: written })).toMatchObject({ [name]: value });
  });

  test.each([
    ["queue_wait_timeout_ms", "30s", "a whole number"],
    ["queue_wait_timeout_ms", 1.5, "a whole number"],
    ["require_username", "maybe", "true or false"],
    ["mem_limit", "lots", "a size"],
    ["mem_limit", null, "a size"],
  ])("%s=%j is told with what is expected", (name, written, expected) => {
    expect(configError(() => parseFlags({ [name]: written })).remedy).toContain(expected);
  });

  test("the product's own words for a bad pool memory limit", () => {
    expect(configError(() => parseFlags({ default_pool_mem_limit: "-5" })).problem).toBe(
      "Unable to parse default pool mem limit from '-5'.",
    );
  });

  test("an unknown flag is an error that names the nearest one, a removed one is nothing", () => {
    expect(configError(() => parseFlags({ queue_wait_timout_ms: 1 })).remedy).toBe(
      "Do you mean queue_wait_timeout_ms?",
    );
    expect(parseFlags({ disable_admission_control: true })).toEqual(DEFAULT_FLAGS);
  });
});

describe("pool-configuration 2.5, 3.1: sizes", () => {
  test.each([
    ["", 0],
    ["-1", 0],
    ["1024", 1024],
    ["1024b", 1024],
    ["1k", 1024],
    ["1.5GB", 1610612736],
    ["2 g", 2147483648],
    ["1tb", 1099511627776],
    ["50%", 500],
    ["9007199254740993", 9007199254740991],
  ])("%j is %d bytes", (text, expected) => {
    const spec = parseMemorySpec(text);
    expect(spec === null ? null : specBytes(spec, 1000)).toBe(expected);
  });

  test.each(["-2", "1.5", "5%b", "g", "1gbb", "1 gib", "ten", "-5%", "9223372036854775808"])(
    "%j is no size",
    (text) => {
      expect(parseMemorySpec(text)).toBe(null);
    },
  );
});

describe("pool-configuration 3.3: short names", () => {
  test.each([
    ["ana", "ana"],
    ["ana@R", "ana"],
    ["ana/host", "ana"],
    ["ana/host@R", "ana"],
    ["a.b@R.COM", "a.b"],
    ["a/b/c", "a/b/c"],
    ["a/b/c@R", null],
    ["a@b@c", null],
    ["@R", null],
    ["", ""],
  ])("%j: %j", (name, short) => {
    expect(shortName(name)).toBe(short);
  });
});
