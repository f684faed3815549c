import { describe, expect, test } from "vitest";
import { EventQueue } from "../../src/sim/event-queue.ts";

/** Everything left, as [time, kind, a, b]. */
function drain(q: EventQueue): number[][] {
  const out: number[][] = [];
  for (let kind = q.take(); kind >= 0; kind = q.take()) out.push([q.time, kind, q.a, q.b]);
  return out;
}

/** A stream of small numbers that is the same everywhere. */
function numbers(seed: number): (below: number) => number {
  let s = seed;
  return (below) => {
    s ^= s << 13;
    s ^= s >>> 17;
    s ^= s << 5;
    return (s >>> 0) % below;
  };
}

describe("the event queue", () => {
  test("events come out by time, with their operands", () => {
    const q = new EventQueue();
    q.add(30, 3, 1, 2);
    q.add(10, 1, 3, 4);
    q.add(20, 2, 5, 6);
    expect(drain(q)).toEqual([
      [10, 1, 3, 4],
      [20, 2, 5, 6],
      [30, 3, 1, 2],
    ]);
  });

  test("events of one instant come out in the order in which they were scheduled", () => {
    const q = new EventQueue();
    for (let i = 0; i < 100; i++) q.add(i % 3, 0, i, 0);
    const order = drain(q).map(([, , a]) => a);
    const expected = [0, 1, 2].flatMap((t) => Array.from({ length: 100 }, (_, i) => i).filter((i) => i % 3 === t));
    expect(order).toEqual(expected);
  });

  test("an empty queue has no next time and nothing to take", () => {
    const q = new EventQueue();
    expect(q.nextTime).toBe(Number.POSITIVE_INFINITY);
    expect(q.take()).toBe(-1);
  });

  test("a removed event does not happen, and its slot is used again", () => {
    const q = new EventQueue();
    const gone = q.add(10, 1, 0, 0);
    q.add(20, 2, 0, 0);
    q.remove(gone);
    expect(q.add(5, 3, 0, 0)).toBe(gone);
    expect(drain(q).map(([t]) => t)).toEqual([5, 20]);
  });

  test("removing what is not pending is a bug of ours", () => {
    const q = new EventQueue();
    const handle = q.add(10, 1, 0, 0);
    q.take();
    expect(() => q.remove(handle)).toThrow("not pending");
  });

  test("an event for the past is a bug of ours, one for this instant is not", () => {
    const q = new EventQueue();
    q.add(10, 1, 0, 0);
    q.take();
    expect(() => q.add(9, 1, 0, 0)).toThrow("for the past");
    expect(q.add(10, 1, 0, 0)).toBeGreaterThanOrEqual(0);
  });

  test("times beyond 32 bits keep their microsecond", () => {
    const q = new EventQueue();
    const week = 604_800_000_000;
    q.add(week + 1, 2, 0, 0);
    q.add(week, 1, 0, 0);
    expect(drain(q).map(([t]) => t)).toEqual([week, week + 1]);
  });

  test("events of the lane and others come out in one order", () => {
    const q = new EventQueue();
    q.addInLane(20, 1, 0, 0);
    q.add(20, 2, 1, 0);
    q.addInLane(20, 1, 2, 0);
    q.addInLane(10, 1, 3, 0); // before the lane's last: stands by itself
    q.addLast(20, 3, 4, 0);
    q.addInLane(20, 1, 5, 0);
    expect(q.size).toBe(6);
    expect(drain(q).map(([t, , a]) => [t, a])).toEqual([
      [10, 3],
      [20, 0],
      [20, 1],
      [20, 2],
      [20, 5],
      [20, 4],
    ]);
  });

  test.each([
    ["first", [1, 2, 3]],
    ["middle", [0, 2, 3]],
    ["last", [0, 1, 2]],
  ])("the %s of the lane can be removed, and the lane goes on", (which, left) => {
    const q = new EventQueue();
    const handles = [0, 1, 2].map((i) => q.addInLane(10 + i, 1, i, 0));
    handles.push(q.addInLane(20, 1, 3, 0));
    q.remove(handles[which === "first" ? 0 : which === "middle" ? 1 : 3]!);
    q.addInLane(30, 1, 4, 0);
    expect(drain(q).map(([, , a]) => a)).toEqual([...left, 4]);
    expect(q.nextTime).toBe(Number.POSITIVE_INFINITY);
    q.addInLane(40, 1, 5, 0);
    expect(drain(q).map(([, , a]) => a)).toEqual([5]);
  });

  test("removing what is not pending in the lane is a bug of ours", () => {
    const q = new EventQueue();
    q.addInLane(10, 1, 0, 0);
    const behind = q.addInLane(10, 1, 1, 0);
    q.remove(behind);
    expect(() => q.remove(behind)).toThrow("not pending");
  });

  test.each([1, 2, 3, 4])("adds, takes and removals in any mix agree with a sorted list (seed %i)", (seed) => {
    const next = numbers(seed);
    // The lane's events are due much later, and nearly in order; a few overtake.
    const laneDelay = (): number => 2000 + (next(20) === 0 ? -next(2000) : 0);
    const q = new EventQueue();
    const list: { time: number; order: number; handle: number }[] = [];
    let order = 0;
    for (let step = 0; step < 20_000; step++) {
      const choice = next(10);
      if (choice < 5 || list.length === 0) {
        const inLane = next(2) === 0;
        const time = q.time + (inLane ? laneDelay() : next(500));
        const handle = inLane ? q.addInLane(time, 1, order, 0) : q.add(time, 1, order, 0);
        list.push({ time, order, handle });
        order++;
      } else if (choice < 8) {
        list.sort((x, y) => x.time - y.time || x.order - y.order);
        const first = list.shift();
        expect(q.take()).toBe(1);
        expect([q.time, q.a]).toEqual([first?.time, first?.order]);
      } else {
        const [victim] = list.splice(next(list.length), 1);
        if (victim !== undefined) q.remove(victim.handle);
      }
    }
    list.sort((x, y) => x.time - y.time || x.order - y.order);
    expect(drain(q).map(([t, , a]) => [t, a])).toEqual(list.map((e) => [e.time, e.order]));
  });
});
