/** The reference model against the numbers and texts of admission section 14, before it judges the core. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { DEFAULT_ADMISSION_OPTIONS, type RequestShape } from "../../src/core/admission/request.ts";
import { DEFAULT_POOL_CONFIG } from "../../src/core/pool-config.ts";
import { bytes } from "../../src/core/units.ts";
import { allowed, memoryToAdmit, needed } from "./memory.ts";
import { bytesText, timeText } from "./texts.ts";

const MiB = 1024 * 1024;
const GiB = 1024 * MiB;

describe("14.2 reservation functions", () => {
  test.each([
    [0, 33554432],
    [38 * MiB, 73400320],
    [128 * MiB, 167772160],
    [200 * MiB, 262144000],
    [GiB, 1342177280],
  ])("needed(%i) is %i", (r, limit) => expect(needed(r)).toBe(limit));

  test.each([
    [15 * MiB, 0],
    [40 * MiB, 8388608],
    [160 * MiB, 134217728],
    [GiB, 858993459],
    [1024 * GiB, 879609302220],
  ])("allowed(%i) is %i", (limit, r) => expect(allowed(limit)).toBe(r));
});

describe("14.1 printing", () => {
  test.each([
    [0, "0"],
    [512, "512.00 B"],
    [128 * MiB, "128.00 MB"],
    [1.5 * GiB, "1.50 GB"],
    [1024 * GiB, "1024.00 GB"],
  ])("%i bytes", (n, text) => expect(bytesText(n)).toBe(text));

  test.each([
    [0, "0"],
    [745, "745ms"],
    [5000, "5s000ms"],
    [65000, "1m5s"],
    [7380000, "2h3m"],
  ])("%i ms", (n, text) => expect(timeText(n)).toBe(text));
});

interface MemVector {
  readonly id: string;
  // biome-ignore lint/suspicious/noExplicitAny: the vectors' own schema.
  readonly input: any;
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  readonly expected: any;
}

describe("section 2 against the vectors of mem-to-admit", () => {
  const file = join(import.meta.dirname, "../conformance/vectors/mem-to-admit.json");
  const { vectors } = JSON.parse(readFileSync(file, "utf8")) as { vectors: MemVector[] };

  test.each(vectors.map((v) => [v.id, v] as const))("%s", (_, { input, expected }) => {
    const { request, limits = {}, flags = {} } = input;
    const shape: RequestShape = {
      stmtType: request.stmt_type,
      perHostMemEstimate: bytes(request.per_host_mem_estimate ?? 0),
      dedicatedCoordMemEstimate: bytes(request.dedicated_coord_mem_estimate ?? 0),
      isTrivial: false,
      coordinatorOnly: input.num_backends === 1,
      includeAllCoordinators: false,
      executors: "all",
      fragments: [],
      maxSlotsPerExecutor: null,
      options: {
        ...DEFAULT_ADMISSION_OPTIONS,
        memLimit: request.options?.mem_limit ?? 0,
        memLimitExecutors: request.options?.mem_limit_executors ?? 0,
        memLimitCoordinators: request.options?.mem_limit_coordinators ?? 0,
        maxMemEstimateForAdmission: request.options?.max_mem_estimate_for_admission ?? 0,
      },
    };
    const instances = { nothing: 0, "coordinator-fragment": 1, "executor-fragments": 2 }[
      String(input.coordinator_runs)
    ];
    const got = memoryToAdmit({
      shape,
      pool: {
        ...DEFAULT_POOL_CONFIG,
        maxMemResources: limits.max_mem_resources ?? -1,
        minQueryMemLimit: limits.min_query_mem_limit ?? 0,
        maxQueryMemLimit: limits.max_query_mem_limit ?? 0,
        clampMemLimitQueryOption: limits.clamp_mem_limit_query_option ?? true,
      },
      largestMinReservation: request.largest_min_reservation ?? 0,
      coordMinReservation: request.coord_min_reservation ?? 0,
      numBackends: input.num_backends,
      coordinatorIsExecutor: !input.dedicated_coordinator,
      coordinatorInstances: instances ?? 1,
      smallestExecutor: input.smallest_executor_admit_mem_limit ?? Number.MAX_SAFE_INTEGER,
      coordinatorHost: input.coordinator_admit_mem_limit ?? Number.MAX_SAFE_INTEGER,
      clampToHosts: flags.clamp_query_mem_limit_backend_mem_limit ?? true,
      dedicatedCoordinatorEstimates: flags.use_dedicated_coordinator_estimates ?? true,
    });
    const side = (mem: number, limit: number, source: string) => ({ mem_to_admit: mem, mem_limit: limit, source });
    if (expected.executor)
      expect(side(got.perHost, got.perHostLimit, got.perHostSource)).toMatchObject(expected.executor);
    if (expected.coordinator)
      expect(side(got.coordinator, got.coordinatorLimit, got.coordinatorSource)).toMatchObject(expected.coordinator);
    if (expected.cluster_mem_to_admit !== undefined) expect(got.cluster).toBe(expected.cluster_mem_to_admit);
    if (expected.cluster_mem_text !== undefined) expect(bytesText(got.cluster)).toBe(expected.cluster_mem_text);
  });
});
