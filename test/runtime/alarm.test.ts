import { describe, expect, test } from "vitest";
import type { Instant } from "../../src/core/units.ts";
import { type AlarmLoop, FineAlarm, finenessFor, MOST_SPIN, SPIN_SHARE } from "../../src/runtime/alarm.ts";
import { AlarmThread } from "../../src/runtime/alarm-thread.ts";
import { monotonicMillis } from "../../src/runtime/emulated-clock.ts";

/** An event loop whose time the test moves; one emulated millisecond is a real one. */
class HandLoop implements AlarmLoop {
  time = 0;
  asked: number | null = null;
  turns: (() => void)[] = [];
  /** What a turn of the loop takes. */
  turnTakes = 0.01;
  waitedInTurns = 0;

  now(): number {
    return this.time;
  }

  ask(at: number): void {
    this.asked = at;
  }

  turn(act: () => void): void {
    this.turns.push(act);
  }

  /** Until nobody wants another turn. */
  run(): void {
    for (let act = this.turns.shift(); act !== undefined; act = this.turns.shift()) {
      this.time += this.turnTakes;
      this.waitedInTurns += this.turnTakes;
      act();
    }
  }
}

const REST = 0.2;
const LEAD = 0.15;
const FINE = { rest: REST, lead: LEAD };

function alarmOn(loop: HandLoop, fineness = FINE) {
  const rings: number[] = [];
  const alarm = new FineAlarm({ realUntil: (at) => Math.max(0, at - loop.time) }, loop, fineness);
  alarm.listen(() => rings.push(loop.time));
  return { alarm, rings };
}

const at = (ms: number): Instant => ms as Instant;

/** The other thread rings when it was asked to, or later. */
function rungAt(loop: HandLoop, alarm: FineAlarm, time: number): void {
  loop.time = time;
  alarm.rung();
  loop.run();
}

describe("a fine alarm", () => {
  test("asks to be woken a little early and waits out the rest in turns: never early, a turn late at most", () => {
    const loop = new HandLoop();
    const { alarm, rings } = alarmOn(loop);
    alarm.set(at(10));
    expect(loop.asked).toBeCloseTo(10 - LEAD, 9);
    rungAt(loop, alarm, 9.9);
    expect(rings).toHaveLength(1);
    expect(rings[0]).toBeGreaterThanOrEqual(10);
    expect(rings[0]).toBeLessThanOrEqual(10 + loop.turnTakes);
    alarm.clear();
  });

  test.each([5, 4])("one that is due already, at %d of 5, rings in a later turn, never within the call", (due) => {
    const loop = new HandLoop();
    const { alarm, rings } = alarmOn(loop);
    loop.time = 5;
    alarm.set(at(due));
    expect(rings).toEqual([]);
    loop.run();
    expect(rings).toHaveLength(1);
    alarm.clear();
  });

  test.each([
    { comes: 10 - LEAD + 0.001, waits: true },
    { comes: 10, waits: false },
    { comes: 12, waits: false },
  ])("woken at $comes for 10: waits in turns = $waits, and rings once", ({ comes, waits }) => {
    const loop = new HandLoop();
    const { alarm, rings } = alarmOn(loop);
    alarm.set(at(10));
    rungAt(loop, alarm, comes);
    expect(loop.waitedInTurns > 0).toBe(waits);
    expect(rings).toHaveLength(1);
    rungAt(loop, alarm, comes + 1);
    expect(rings).toHaveLength(1);
    alarm.clear();
  });

  test("a ring for what is not set any more does nothing", () => {
    const loop = new HandLoop();
    const { alarm, rings } = alarmOn(loop);
    alarm.set(at(10));
    alarm.set(at(50));
    rungAt(loop, alarm, 10);
    expect([rings, loop.waitedInTurns]).toEqual([[], 0]);
    alarm.clear();
    rungAt(loop, alarm, 60);
    expect(rings).toEqual([]);
  });

  test("what is set anew while it waits in turns is what it rings for", () => {
    const loop = new HandLoop();
    const { alarm, rings } = alarmOn(loop);
    alarm.set(at(10));
    loop.time = 9.9;
    alarm.rung();
    alarm.set(at(9.95));
    loop.run();
    expect(rings).toHaveLength(1);
    expect(rings[0]).toBeLessThan(9.98);
    alarm.clear();
  });

  test("appointments however dense cost a twentieth of the time in turns, and rings that are apart", () => {
    const loop = new HandLoop();
    const { alarm } = alarmOn(loop);
    const asked: number[] = [];
    for (let due = 0.3; loop.time < 200; due = loop.time + 0.12) {
      loop.asked = null;
      alarm.set(at(due));
      if (loop.asked === null) loop.run();
      else {
        asked.push(loop.asked);
        rungAt(loop, alarm, Math.max(loop.time, loop.asked));
      }
      loop.time = Math.max(loop.time, due);
    }
    expect(asked.length).toBeGreaterThan(100);
    for (let i = 1; i < asked.length; i++) expect(asked[i]! - asked[i - 1]!).toBeGreaterThanOrEqual(REST - 1e-9);
    // The last wait may run over by as much as one turn.
    expect(loop.waitedInTurns).toBeLessThanOrEqual(MOST_SPIN + loop.time * SPIN_SHARE + LEAD);
    expect(loop.waitedInTurns).toBeGreaterThan(loop.time * SPIN_SHARE * 0.5);
    alarm.clear();
  });

  test.each([
    { scale: 1, rest: 1, lead: 0 },
    { scale: 2, rest: 1, lead: 0 },
    { scale: 4, rest: 0.5, lead: 0 },
    { scale: 10, rest: 0.2, lead: 0.15 },
    { scale: 100, rest: 0.2, lead: 0.15 },
  ])("is as fine as can be seen at $scale times: rests $rest ms, asks $lead ms early", ({ scale, rest, lead }) => {
    expect(finenessFor(scale).rest).toBeCloseTo(rest, 9);
    expect(finenessFor(scale).lead).toBe(lead);
  });

  test("that asks for nothing early waits in no turns", () => {
    const loop = new HandLoop();
    const { alarm, rings } = alarmOn(loop, { rest: 1, lead: 0 });
    alarm.set(at(10));
    expect(loop.asked).toBe(10);
    rungAt(loop, alarm, 10.05);
    expect([rings, loop.waitedInTurns]).toEqual([[10.05], 0]);
  });

  test("without an answer from the other thread a Node timer rings", async () => {
    const alarm = new FineAlarm({ realUntil: () => 1 }, new HandLoop(), FINE);
    await new Promise<void>((done) => {
      alarm.listen(done);
      alarm.set(at(0));
    });
  });
});

describe("the thread of an alarm", () => {
  test("rings once for what it was asked last, not before its moment", async () => {
    const rung: number[] = [];
    let hear: () => void = () => undefined;
    const errors: Error[] = [];
    const thread = new AlarmThread(
      () => {
        rung.push(monotonicMillis());
        hear();
      },
      (error) => errors.push(error),
    );
    await thread.start();
    const heard = new Promise<void>((resolve) => {
      hear = resolve;
    });
    const wanted = monotonicMillis() + 30;
    thread.ask(wanted + 1e9);
    thread.ask(wanted);
    // The thread does not hold the process; whoever waits for it does.
    const held = setInterval(() => undefined, 1000);
    await heard;
    clearInterval(held);
    expect(rung).toHaveLength(1);
    expect(rung[0]).toBeGreaterThanOrEqual(wanted);
    await thread.stop();
    thread.ask(monotonicMillis());
    expect(rung).toHaveLength(1);
    expect(errors).toEqual([]);
  });
});
