import { describe, expect, test } from "vitest";
import type { Instant } from "../../src/core/units.ts";
import { startClock } from "../../src/runtime/emulated-clock.ts";
import { Timers } from "../../src/runtime/timers.ts";

/** A million emulated milliseconds a real one: whatever the moment, it comes at the timer's next tick. */
const fast = (onError?: (error: unknown) => void) => new Timers(startClock(1_000_000), onError);
const at = (ms: number): Instant => ms as Instant;

describe("appointments", () => {
  test("are kept in order of their moments, equal ones in the order they were made", async () => {
    const timers = fast();
    const kept: string[] = [];
    await new Promise<void>((done) => {
      timers.at(at(300), () => kept.push("c"));
      timers.at(at(100), () => kept.push("a1"));
      timers.at(at(100), () => kept.push("a2"));
      timers.at(at(200), () => kept.push("b"));
      timers.at(at(400), () => done());
    });
    expect(kept).toEqual(["a1", "a2", "b", "c"]);
  });

  test("are never kept early, and what one makes for later is kept too", async () => {
    const timers = fast();
    const early = await new Promise<number[]>((done) => {
      const by: number[] = [];
      timers.at(at(1000), (now) => {
        by.push(now - 1000);
        timers.at(at(now + 5_000_000), (later) => {
          by.push(later - now - 5_000_000);
          done(by);
        });
      });
    });
    expect(Math.min(...early)).toBeGreaterThanOrEqual(0);
    expect(early).toHaveLength(2);
  });

  test("say how late they were kept", () => {
    let time = 0;
    let ring = (): void => undefined;
    const clock = { now: () => at(time), realUntil: () => 0 };
    const alarm = {
      listen: (act: () => void) => {
        ring = act;
      },
      set: () => undefined,
      clear: () => undefined,
    };
    const timers = new Timers(clock, undefined, alarm);
    expect(timers.latenessAt(100)).toBe(0);
    for (const due of [10, 20, 30]) timers.at(at(due), () => undefined);
    for (const late of [12, 20, 37]) {
      time = late;
      ring();
    }
    expect([50, 100].map((p) => Math.round(timers.latenessAt(p)))).toEqual([2, 7]);
  });

  test("that are cancelled are not kept, and leave no weight behind", async () => {
    const timers = fast();
    const many = Array.from({ length: 1000 }, (_, i) => timers.at(at(1e12 + i), () => expect.fail("cancelled")));
    for (const a of many) timers.cancel(a);
    timers.cancel(many[0]!);
    expect(timers.size).toBe(0);
    await new Promise<void>((done) => timers.at(at(1), () => done()));
    timers.close();
  });

  test("one that throws does not keep the others from happening", async () => {
    const errors: unknown[] = [];
    const timers = fast((error) => errors.push(error));
    await new Promise<void>((done) => {
      timers.at(at(1), () => {
        throw new Error("first");
      });
      timers.at(at(2), () => done());
    });
    expect(errors).toEqual([new Error("first")]);
  });

  test("after close nothing happens and nothing holds the process", () => {
    const pending = (): number => process.getActiveResourcesInfo().filter((r) => r === "Timeout").length;
    const before = pending();
    const timers = fast();
    timers.at(at(1), () => expect.fail("closed"));
    expect(pending()).toBe(before + 1);
    timers.close();
    expect([timers.size, pending()]).toEqual([0, before]);
  });
});
