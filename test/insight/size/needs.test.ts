/**
 * Needs are worked out once for all settings that differ in nothing they depend on, and anew for all others.
 */
import { describe, expect, test } from "vitest";
import { configUnder, type Setting } from "../../../src/insight/size/setting.ts";
import { configOf, evaluatorOver, GiB, NOW, scenarioOf } from "./size-fixtures.ts";

const book = evaluatorOver(scenarioOf({ seconds: 20 })).needs(0);
const under = (change: Partial<Setting>) => book.under(configUnder(configOf(NOW), { ...NOW, ...change }));

describe("insight 3.2 what a kind of request is charged under a setting", () => {
  test.each<{ change: Partial<Setting>; same: boolean }>([
    { change: { maxRunning: 5 }, same: true },
    { change: { maxRunning: -1 }, same: true },
    { change: { maxQueued: 1 }, same: true },
    { change: { timeout: 1 }, same: true },
    { change: { maxRunning: 0 }, same: false },
    { change: { maxMem: 14 * GiB }, same: false },
    { change: { maxQueryMem: GiB }, same: false },
    { change: { minQueryMem: 5 * GiB }, same: false },
  ])("$change beside today's: the same is $same", ({ change, same }) => {
    const [now, other] = [under({}), under(change)];
    expect(Object.is(now, other)).toBe(same);
    if (!same) expect(other).not.toEqual(now);
  });

  test("rejections by rule, and amounts, are those of the setting asked for", () => {
    const [small] = [under({})[0]!];
    expect(small).toMatchObject({ isRejected: false, perHost: 1.5 * GiB });
    // Ten hosts of 1.5 GiB and the coordinator's share are more than 14 GiB (REJ-B7).
    expect(under({ maxMem: 14 * GiB })[0]!.isRejected).toBe(true);
    expect(under({ maxRunning: 0 })[0]!.isRejected).toBe(true);
    expect(under({ maxQueryMem: GiB })[0]!.perHost).toBe(GiB);
    expect(under({ minQueryMem: 5 * GiB })[0]!.perHost).toBe(5 * GiB);
  });
});
