import { defineConfig } from "vitest/config";

/**
 * The long suites: minutes each, run before a release and by hand. `npm run test:full`. Each file keeps one core busy
 * and measures nothing in real time, so all cores are used; left to itself, vitest keeps one free.
 */
export default defineConfig({
  test: {
    include: ["test/full/**/*.test.ts"],
    pool: "forks",
    maxWorkers: "100%",
    testTimeout: 1_800_000,
    hookTimeout: 1_800_000,
  },
});
