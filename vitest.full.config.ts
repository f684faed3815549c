import { defineConfig } from "vitest/config";

/** The long suites: minutes each, run before a release and by hand. `npm run test:full` */
export default defineConfig({
  test: { include: ["test/full/**/*.test.ts"], pool: "forks", testTimeout: 1_800_000, hookTimeout: 1_800_000 },
});
