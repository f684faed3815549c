/**
 * Who hears of a death, and when (admission 6.1, 9.5): live on a clock without threads, and in virtual time. Everybody
 * exchanges once a second, the coordinator on the second, and is missed after ten.
 */
import { describe, expect, test } from "vitest";
import type { Scenario } from "../../src/config/scenario.ts";
import type { RunEvent } from "../../src/core/events.ts";
import { differing } from "./fates.ts";
import { type Small, small } from "./live-fixture.ts";
import { simulated } from "./simulated.ts";
import { type Stepped, stepped } from "./stepped.ts";

const LONG = "2000s";
const EXEC_1 = "exec-1:27000";
const GONE = `Failed due to unreachable impalad(s): ${EXEC_1}`;
const NOT_SENT = `ExecQueryFInstances rpc to ${EXEC_1} failed`;

type Fault = Readonly<Record<string, unknown>>;

const one = (faults: readonly Fault[], said: Small = {}): Scenario =>
  small({
    ...said,
    cluster: { statestore: { every: "1s" }, ...said.cluster },
    query: { duration: LONG, ...said.query },
    faults,
  });

const dies = { at: "3s", fault: "hostDies", host: "exec-1" };

/** The same in both drivers. */
function inBoth(scenario: Scenario): Stepped {
  const live = stepped(scenario);
  expect(live.endedAt).not.toBeNull();
  expect(differing(live.events, simulated(scenario))).toEqual([]);
  return live;
}

const endsOf = (events: readonly RunEvent[]) =>
  events.flatMap((e) => (e.kind === "released" ? [{ at: e.at, error: e.error }] : []));

const finishedOn = (events: readonly RunEvent[], host: string): number[] =>
  events.flatMap((e) => (e.kind === "fragmentFinished" && e.host === host ? [e.at] : []));

describe("9.5 a host dies under a query", () => {
  test("it hangs, the rest of it too, until the coordinator hears that the host is missed", () => {
    // Done elsewhere after 5 s: without the host's part there is no end.
    const { events } = inBoth(one([dies], { query: { duration: "5s" } }));
    expect(endsOf(events)).toEqual([{ at: 13_000, error: GONE }]);
    expect(finishedOn(events, "exec-2:27000")).toEqual([13_000]);
  });

  test("the coordinator hears at its next exchange, not before", () => {
    const { events } = inBoth(one([{ ...dies, at: "3500ms" }]));
    expect(endsOf(events)).toEqual([{ at: 14_000, error: GONE }]);
  });

  test("a coordinator of admissiond hears when the statestore does", () => {
    const { events } = inBoth(one([{ ...dies, at: "3500ms" }], { cluster: { admission: "admissiond" } }));
    expect(endsOf(events)).toEqual([{ at: 13_500, error: GONE }]);
  });

  test("a new process under its name is heard of sooner, and is not the one that the query runs on", () => {
    const { events } = inBoth(one([dies, { at: "5500ms", fault: "hostReturns", host: "exec-1" }]));
    expect(endsOf(events)).toEqual([{ at: 6000, error: GONE }]);
  });

  test("what its client cancels ends at once", () => {
    const { events } = inBoth(one([dies], { query: { cancelAfter: "4s" } }));
    expect(endsOf(events)).toMatchObject([{ at: 4000, error: null }]);
  });

  test("without a statestore its status reports are missed, 720 s later", () => {
    const { events } = inBoth(one([{ at: "2s", fault: "statestoreStops" }, dies]));
    expect(endsOf(events)).toEqual([{ at: 723_000, error: `No status report from ${EXEC_1}` }]);
  });
});

describe("6.1 queries that are sent to a dead host", () => {
  const later = {
    arrivals: [
      { at: "5s", query: "q", count: 1 },
      { at: "6s", query: "q", count: 1 },
    ],
    query: { duration: "1s" },
  };

  test("the first fails at once, and the host is avoided", () => {
    const { events } = inBoth(one([dies], later));
    expect(endsOf(events)).toEqual([
      { at: 5000, error: NOT_SENT },
      { at: 7000, error: null },
    ]);
  });

  test("who waits is not sent there either", () => {
    const said = { ...later, flags: { default_pool_max_requests: "1" } };
    const { events } = inBoth(one([dies], { ...said, arrivals: [{ at: "5s", query: "q", count: 2 }] }));
    expect(endsOf(events)).toEqual([
      { at: 5000, error: NOT_SENT },
      { at: 6000, error: null },
    ]);
  });

  test.each(["distributed", "admissiond"])(
    "%s, blacklisting_enabled=false or admissiond (T-63): all fail",
    (admission) => {
      const { events } = inBoth(
        one([dies], { ...later, cluster: { admission }, flags: { blacklisting_enabled: "false" } }),
      );
      expect(endsOf(events)).toEqual([
        { at: 5000, error: NOT_SENT },
        { at: 6000, error: NOT_SENT },
      ]);
    },
  );
});

describe("9.5 a coordinator dies, and executors hold what they run for it", () => {
  const coordinatorDies = { at: "3s", fault: "coordinatorDies", host: "coord-1" };
  const two = { coordinators: [{ count: 2, on: "dedicated", memory: "10gb" }] };
  const waits = { arrivals: [{ at: "0s", coordinator: "coord-1", query: "q", count: 1 }], query: { duration: "5s" } };

  test.each(["distributed", "admissiond"])("%s: until it is missed, past the end of their work", (admission) => {
    const { events } = inBoth(one([coordinatorDies], { ...waits, cluster: { ...two, admission } }));
    expect(finishedOn(events, EXEC_1)).toEqual([13_000]);
    expect(endsOf(events)).toHaveLength(1);
  });

  test.each(["distributed", "admissiond"])(
    "%s: without a statestore until they give up reporting, 600 s",
    (admission) => {
      const faults = [{ at: "2s", fault: "statestoreStops" }, coordinatorDies];
      const { events, endedAt } = inBoth(one(faults, { ...waits, cluster: { ...two, admission } }));
      expect(finishedOn(events, EXEC_1)).toEqual([603_000]);
      expect(endedAt).toBe(603_000);
      // Only `admissiond` is there to be told, and nobody tells it.
      expect(endsOf(events)).toHaveLength(admission === "admissiond" ? 0 : 1);
    },
  );

  test.each(["distributed", "admissiond"])("%s: until there is a new one under its name", (admission) => {
    const faults = [coordinatorDies, { at: "5s", fault: "coordinatorReturns", host: "coord-1" }];
    const { events } = inBoth(one(faults, { ...waits, cluster: { ...two, admission } }));
    expect(finishedOn(events, EXEC_1)).toEqual([5000]);
  });

  test("a client of another coordinator that works there loses its query too", () => {
    const cluster = { coordinators: [{ count: 2, on: "executor" }] };
    const arrivals = [{ at: "0s", coordinator: "exec-2", query: "q", count: 1 }];
    const { events } = inBoth(one([{ ...coordinatorDies, host: "exec-1" }], { arrivals, cluster }));
    expect(endsOf(events)).toMatchObject([{ error: GONE }]);
  });

  test("Ctrl-C does not wait for what nobody waits for", () => {
    const scenario = one([{ at: "2s", fault: "statestoreStops" }, coordinatorDies], { ...waits, cluster: two });
    expect(stepped(scenario, { drainAt: 4000 }).endedAt).toBe(4000);
  });
});
