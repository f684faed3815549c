import { describe, expect, test } from "vitest";
import { heardAt, nextHeartbeat, timeoutNoticedAt } from "../../../src/core/admission/status-calls.ts";

const MS = 1000;
const DEFAULT = { wait: 100 * MS, retry: 10 * MS };
const LONG = 60_000 * MS;

describe("7.7 when a coordinator hears of a decision", () => {
  // Calls last from 0 to 100 ms, from 110 to 210, from 220 to 320, ...
  test.each([
    { decided: 0, heard: 0 },
    { decided: 99.999, heard: 99.999 },
    { decided: 100, heard: 100 },
    { decided: 100.001, heard: 110 },
    { decided: 109.999, heard: 110 },
    { decided: 110, heard: 110 },
    { decided: 215, heard: 220 },
  ])("decided at $decided ms, heard at $heard ms", ({ decided, heard }) => {
    expect(heardAt(DEFAULT, 0, LONG, decided * MS)).toBe(heard * MS);
  });

  test.each([
    { timeout: 50, noticed: 50 },
    { timeout: 100, noticed: 100 },
    { timeout: 101, noticed: 210 },
    { timeout: 210, noticed: 210 },
    { timeout: 211, noticed: 320 },
    { timeout: 30_000, noticed: 30_020 },
  ])("a timeout of $timeout ms is noticed after $noticed ms", ({ timeout, noticed }) => {
    expect(timeoutNoticedAt(DEFAULT, 7 * MS, timeout * MS)).toBe((7 + noticed) * MS);
  });

  test("never earlier than the timeout, never more than a call and a pause later", () => {
    for (let timeout = 1; timeout < 1000; timeout += 7) {
      const late = timeoutNoticedAt(DEFAULT, 0, timeout * MS) / MS - timeout;
      expect(late).toBeGreaterThanOrEqual(0);
      expect(late).toBeLessThanOrEqual(110);
    }
  });

  test("a timeout of nothing is noticed at once, also without pauses", () => {
    expect(timeoutNoticedAt(DEFAULT, 5, 0)).toBe(5);
    expect(timeoutNoticedAt({ wait: 0, retry: 0 }, 5, 3)).toBe(8);
    expect(heardAt({ wait: 0, retry: 0 }, 0, 0, 42)).toBe(42);
  });

  test.each([0, -1])("a wait of %d: one call for all the time that the query may wait", (wait) => {
    const calls = { wait, retry: 10 };
    expect(timeoutNoticedAt(calls, 5, 1000)).toBe(1005);
    expect(heardAt(calls, 5, 1000, 999)).toBe(999);
  });
});

describe("9.5 heartbeats", () => {
  test.each([
    { now: 0, next: 1000 },
    { now: 999, next: 1000 },
    { now: 1000, next: 2000 },
    { now: 1001, next: 2000 },
  ])("after $now ms the next one comes at $next ms", ({ now, next }) => {
    expect(nextHeartbeat(1000, now)).toBe(next);
  });
});
