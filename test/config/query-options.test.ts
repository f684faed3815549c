import { describe, expect, test } from "vitest";
import { effectiveOptions, type OptionSources, parseOptionString, readOption } from "../../src/config/query-options.ts";

const sources = (some: Partial<OptionSources>): OptionSources => ({
  processDefaults: "",
  pool: "",
  connection: [],
  statement: [],
  maxMtDop: -1,
  ...some,
});
const effective = (some: Partial<OptionSources>) => effectiveOptions(sources(some));
const options = (some: Partial<OptionSources>) => Object.fromEntries(effective(some).options);

describe("pool-configuration 2.5: option strings", () => {
  test.each([
    ["mem_limit=2g,mt_dop=4", { MEM_LIMIT: "2147483648", MT_DOP: "4" }],
    ["MEM_LIMIT=128m", { MEM_LIMIT: "134217728" }],
    ["a,,mt_dop=1,", { MT_DOP: "1" }],
    [" mt_dop=1 , num_nodes=1", { MT_DOP: "1", NUM_NODES: "1" }],
    ["mt_dop==2", { MT_DOP: "2" }],
    ["mt_dop= 2", { MT_DOP: "2" }],
    ["mt_dop=2,mt_dop=3", { MT_DOP: "3" }],
    ["mt_dop=2,mt_dop=", {}],
    ['debug_action="a,b",mt_dop=1', { DEBUG_ACTION: '"a,b"', MT_DOP: "1" }],
    ["request_pool=root.x", { REQUEST_POOL: "root.x" }],
  ])("%s", (text, expected) => {
    expect(Object.fromEntries(parseOptionString(text).options)).toEqual(expected);
  });

  test.each([
    ["a", "Invalid configuration option 'a'."],
    ["a=b=c", "Invalid configuration option 'a=b=c'."],
    ["mem_limit:42", "Invalid configuration option 'mem_limit:42'."],
    ["mem_limit = 2g", "Invalid query option: mem_limit "],
    ["not_a_valid_option=foo.bar", "Invalid query option: not_a_valid_option"],
    ["yarn_pool=x", "Invalid query option: yarn_pool"],
    ["mem_limit=5%", "Failed to parse query option 'MEM_LIMIT': 5%"],
    ["mem_limit=-2", "Failed to parse query option 'MEM_LIMIT': -2"],
    ["mt_dop=65", "Invalid value for query option MT_DOP: 65 is not in range [0, 64]"],
    ["query_timeout_s=-1", "Invalid value for query option QUERY_TIMEOUT_S: Value must be non-negative: -1"],
    [
      "thread_reservation_limit=-2",
      "Invalid value for query option THREAD_RESERVATION_LIMIT: Value must be greater than or equal to -1, actual value: -2",
    ],
    [
      "query_cpu_count_divisor=0",
      "Invalid value for query option QUERY_CPU_COUNT_DIVISOR: Value must be greater than 0, actual value: 0",
    ],
    [
      "slot_count_strategy=all",
      "Invalid Slot count strategy: 'all'. Valid values are LARGEST_FRAGMENT(0), PLANNER_CPU_ASK(1).",
    ],
    ["max_sort_run_size=1", "Invalid value for query option MAX_SORT_RUN_SIZE: Value can't be 1, actual value: 1"],
    [
      "min_spillable_buffer_size=3k",
      "Invalid value for query option MIN_SPILLABLE_BUFFER_SIZE: Value must be a power of two: 3072",
    ],
  ])("%s is dropped, the rest applies", (piece, error) => {
    const parsed = parseOptionString(`${piece},num_nodes=1`);
    expect(parsed.errors).toEqual([error]);
    expect(Object.fromEntries(parsed.options)).toEqual({ NUM_NODES: "1" });
  });

  test("removed options are accepted and have no effect", () => {
    const parsed = parseOptionString("max_io_buffers=10,V_CPU_CORES=x");
    expect(parsed).toMatchObject({ removed: ["MAX_IO_BUFFERS", "V_CPU_CORES"], errors: [] });
    expect(parsed.options.size).toBe(0);
  });

  test.each([
    ["abort_on_error", "TRUE", "1"],
    ["abort_on_error", "1", "1"],
    ["abort_on_error", "yes", "0"],
    ["mem_limit", "-1", "0"],
    ["mem_limit", "1.5gb", "1610612736"],
    ["mem_limit", "10b", "10"],
    ["scratch_limit", "-1", "-1"],
    ["explain_level", "2", "EXTENDED"],
    ["replica_preference", "4", "REMOTE"],
    ["runtime_filter_error_rate", "0.5", "0.500000"],
  ])("%s=%s is kept as %s", (name, value, kept) => {
    expect(readOption(name, value)).toEqual({ kind: "set", name: name.toUpperCase(), value: kept });
  });
});

describe("admission 1.2: which source has its way", () => {
  test("from weak to strong", () => {
    const all = {
      processDefaults: "mem_limit=1,num_nodes=1,batch_size=1,max_errors=1",
      pool: "num_nodes=0,batch_size=2,max_errors=2",
      connection: [
        ["batch_size", "3"],
        ["max_errors", "3"],
      ] as const,
      statement: [["max_errors", "4"]] as const,
    };
    expect(options(all)).toEqual({ MEM_LIMIT: "1", NUM_NODES: "0", BATCH_SIZE: "3", MAX_ERRORS: "4" });
  });

  test("an emptied option shows what is weaker", () => {
    const pool = "mem_limit=2";
    expect(
      options({
        pool,
        connection: [
          ["mem_limit", "3"],
          ["mem_limit", ""],
        ],
      }),
    ).toEqual({ MEM_LIMIT: "2" });
    expect(options({ pool, connection: [["mem_limit", "3"]], statement: [["mem_limit", ""]] })).toEqual({
      MEM_LIMIT: "3",
    });
    expect(options({ pool: "mem_limit=", processDefaults: "mem_limit=1" })).toEqual({ MEM_LIMIT: "1" });
  });

  test("what the client gets wrong is its error, what the pool gets wrong is only logged", () => {
    expect(effective({ pool: "x=1", statement: [["y", "1"]] })).toMatchObject({
      poolErrors: ["Invalid query option: x"],
      clientErrors: ["Invalid query option: y"],
    });
  });

  test.each([
    [4, "4", null],
    [3, "3", 4],
    [0, "0", 4],
    [-1, "4", null],
    [4294967296, "4", null],
  ])("max-mt-dop %d: MT_DOP 4 becomes %s", (maxMtDop, mtDop, overriddenMtDop) => {
    const result = effective({ pool: "mt_dop=4", maxMtDop });
    expect(result.options.get("MT_DOP")).toBe(mtDop);
    expect(result.overriddenMtDop).toBe(overriddenMtDop);
  });

  test("an unset MT_DOP is left alone", () => {
    expect(effective({ maxMtDop: 0 }).options.has("MT_DOP")).toBe(false);
  });

  test.each([
    ["max_result_spooling_mem=0", 1],
    ["max_result_spooling_mem=0,max_spilled_result_spooling_mem=0", 0],
    ["max_result_spooling_mem=2g", 1],
    ["max_result_spooling_mem=1g", 0],
  ])("%s: %d complaint about spooling", (pool, complaints) => {
    expect(effective({ pool }).poolErrors).toHaveLength(complaints);
  });
});
