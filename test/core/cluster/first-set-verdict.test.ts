/** Why the planner takes the first group set unchecked, in the words of the profile (admission 6.4 item 4). */
import { expect, test } from "vitest";
import { firstSetVerdict } from "../../../src/core/cluster/group-sets.ts";

const usual = { numNodes: 0, enableReplan: true, isAutoScalable: true, isOnlyCoordinators: false };

test.each([
  [{}, null],
  [{ isOnlyCoordinators: true }, "Assign to first group because only coordinators request pool specified"],
  [{ isAutoScalable: false, isOnlyCoordinators: true }, "Assign to first group because query is not auto-scalable"],
  [{ enableReplan: false, isAutoScalable: false }, "Assign to first group because query option ENABLE_REPLAN=false"],
  [{ numNodes: 1, enableReplan: false }, "Assign to first group because the number of nodes is 1"],
  [{ numNodes: 2 }, null],
])("%j", (facts, verdict) => expect(firstSetVerdict({ ...usual, ...facts })).toBe(verdict));
