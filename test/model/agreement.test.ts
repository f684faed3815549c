/** Model and core on a few hundred random stories; `npm run fuzz` plays tens of thousands. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { play } from "./play.ts";
import { stories } from "./story.ts";

test("model and core agree on every step of random stories", () => {
  let told = 0;
  fc.assert(
    fc.property(stories(40), (story) => {
      told += 1;
      play(story);
    }),
    { seed: 20_261_130, numRuns: 300 },
  );
  expect(told).toBe(300);
});
