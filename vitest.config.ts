import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/full/**"],
    globalSetup: ["scripts/build-kernels.mjs"],
    pool: "forks",
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
