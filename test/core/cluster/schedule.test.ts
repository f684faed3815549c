import { describe, expect, test } from "vitest";
import type { RequestShape } from "../../../src/core/admission/request.ts";
import type { Membership } from "../../../src/core/cluster/membership.ts";
import { positionOf, type Schedule, scheduleFor } from "../../../src/core/cluster/schedule.ts";
import {
  backend,
  coordinatorOnlyShape,
  dedicatedCoordinator,
  fragment,
  gib,
  hosts,
  membership,
  mib,
  shape,
} from "../fixtures.ts";

const schedule = (
  m: Membership,
  over: Partial<RequestShape> = {},
  coordinator = "h0:1",
  placementOffset = 0,
): Schedule =>
  scheduleFor({
    shape: shape(over),
    coordinator: m.backend(coordinator)!,
    group: m.groups[0]!,
    allCoordinators: m.allCoordinators,
    placementOffset,
  });

/** host: instances / slots */
const held = (s: Schedule) =>
  Object.fromEntries(s.backends.map((b) => [b.desc.address, `${b.numInstances}/${b.slots}`]));

describe("1.4 and 6.3 who is in a schedule", () => {
  test("all executors and the coordinator, which may be one of them", () => {
    const s = schedule(membership(hosts(3)));
    expect(held(s)).toEqual({ "h0:1": "2/1", "h1:1": "1/1", "h2:1": "1/1" });
    expect(s.isFullWidth).toBe(true);
  });

  test("a dedicated coordinator is always there, even with nothing on it (T-18)", () => {
    const m = membership([dedicatedCoordinator("c:1"), ...hosts(2)]);
    const s = schedule(m, { fragments: [fragment()] }, "c:1");
    expect(held(s)).toEqual({ "c:1": "0/0", "h0:1": "1/1", "h1:1": "1/1" });
    expect(s.isFullWidth).toBe(true);
  });

  test.each([
    { offset: 0, on: ["h0:1", "h1:1"] },
    { offset: 2, on: ["h0:1", "h2:1", "h3:1"] },
    { offset: 3, on: ["h0:1", "h3:1"] },
    { offset: 7, on: ["h0:1", "h3:1"] },
  ])("two of four from $offset on", ({ offset, on }) => {
    const s = schedule(membership(hosts(4)), { executors: 2 }, "h0:1", offset);
    expect(s.hosts).toEqual(on);
    expect(s.isFullWidth).toBe(false);
  });

  test.each([3, 4, 99])("%i of three is all of them", (n) => {
    expect(schedule(membership(hosts(3)), { executors: n })).toMatchObject({
      isFullWidth: true,
      hosts: ["h0:1", "h1:1", "h2:1"],
    });
  });

  test("every host is found at its place, others are not", () => {
    const s = schedule(membership(hosts(12)));
    expect(s.hosts.map((host) => positionOf(s, host))).toEqual(s.hosts.map((_, i) => i));
    expect(["", "h0:0", "h5:2", "z"].map((host) => positionOf(s, host))).toEqual([-1, -1, -1, -1]);
  });

  test("an unpartitioned plan stays on the coordinator in any group", () => {
    const s = schedule(membership(hosts(3)), coordinatorOnlyShape({ fragments: [fragment()] }));
    expect(held(s)).toEqual({ "h0:1": "1/1" });
  });

  test("T-61: a system-table query adds every coordinator, each like an executor", () => {
    const m = membership([dedicatedCoordinator("c:1"), dedicatedCoordinator("d:1"), ...hosts(2)]);
    const s = schedule(m, { includeAllCoordinators: true, executors: 0 }, "c:1");
    expect(held(s)).toEqual({ "c:1": "2/1", "d:1": "1/1", "h0:1": "1/1" });
    expect(s.isFullWidth).toBe(false);
  });
});

describe("1.4 what each backend holds", () => {
  const fragments = [
    fragment({ runsOn: "coordinator", minReservationPerInstance: mib(1), threadReservationPerInstance: 2 }),
    fragment({ instancesPerHost: 3, minReservationPerInstance: mib(10), minReservationPerBackend: mib(5) }),
    fragment({ instancesPerHost: 2, minReservationPerInstance: mib(1), threadReservationPerInstance: 4 }),
  ];

  test("instances, reservations and threads add up over fragments; slots are the largest fragment's", () => {
    const s = schedule(membership(hosts(2)), { fragments });
    const [coordinator, executor] = s.backends;
    expect(executor).toMatchObject({ numInstances: 5, minReservation: mib(37), threadReservation: 11, slots: 3 });
    expect(coordinator).toMatchObject({ numInstances: 6, minReservation: mib(38), threadReservation: 13, slots: 3 });
    expect(s).toMatchObject({
      largestMinReservation: mib(37),
      coordMinReservation: mib(38),
      largestReservation: { value: mib(38), host: "h0:1" },
      sumMinReservation: mib(75),
      largestThreads: { value: 13, host: "h0:1" },
      sumThreads: 24,
    });
  });

  test.each([
    { cap: null, dominant: [true, true], slots: 3 },
    { cap: 0, dominant: [true, true], slots: 3 },
    { cap: 16, dominant: [true, true], slots: 5 },
    { cap: 4, dominant: [true, true], slots: 4 },
    { cap: 16, dominant: [false, true], slots: 3 }, // fewer than the default
    { cap: 2, dominant: [false, false], slots: 2 },
  ])("PLANNER_CPU_ASK with a cap of $cap, dominant $dominant: $slots slots", ({ cap, dominant, slots }) => {
    const marked = fragments.slice(1).map((f, i) => ({ ...f, isDominant: dominant[i]! }));
    const s = schedule(membership(hosts(2)), { fragments: marked, maxSlotsPerExecutor: cap });
    expect(s.executorSlots).toBe(slots);
  });

  test("the smallest executor leaves out the coordinator's host", () => {
    const m = membership([
      backend("h0:1", { isCoordinator: true, admitMemLimit: gib(1) }),
      backend("h1:1", { admitMemLimit: gib(2) }),
    ]);
    expect(schedule(m).smallestExecutor?.address).toBe("h1:1");
    expect(schedule(m, coordinatorOnlyShape()).smallestExecutor).toBeNull();
  });
});
