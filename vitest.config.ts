import { join } from "node:path";
import { defineConfig } from "vitest/config";

/**
 * Live runs: they have threads and processes of their own, and wait. One file after the other, or they would be late
 * because of each other.
 */
const LIVE = ["test/runtime/**/*.test.ts", "test/surfaces/**/*.test.ts"];

/** Every thread of a live run reads the sources anew; what Node makes of them is kept: a fourth of the time. */
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, "node_modules/.cache/compiled");

export default defineConfig({
  test: {
    globalSetup: ["scripts/build-kernels.mjs"],
    pool: "forks",
    testTimeout: 300_000,
    hookTimeout: 300_000,
    projects: [
      {
        extends: true,
        test: {
          name: "rules",
          include: ["test/**/*.test.ts"],
          exclude: ["test/full/**", ...LIVE],
          // A file for each core: left to itself, vitest keeps one free.
          maxWorkers: "100%",
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: { name: "live", include: LIVE, maxWorkers: 1, sequence: { groupOrder: 1 } },
      },
    ],
  },
});
