/**
 * With `admissiond` the live driver decides, waits and hears as virtual time does (admission 7.7, 9.4, 9.5): the same
 * scenario through both, the live one on a clock without threads, and every event of every query at the same moment.
 */
import { describe, expect, test } from "vitest";
import type { RunEvent } from "../../src/core/events.ts";
import { expectSameAgain, type Small, small } from "./live-fixture.ts";
import { simulated } from "./simulated.ts";
import { stepped } from "./stepped.ts";

/**
 * What is the same for both: instances are numbered otherwise, peaks are not looked at here, and hosts that are done
 * in one instant are given back in one message or two.
 */
function linesOf(e: RunEvent): string[] {
  switch (e.kind) {
    case "queued":
      return [`queued ${e.reason.rule}`];
    case "admitted":
      return [`admitted ${e.path} after ${e.waited}`];
    case "rejected":
      return [`rejected ${e.reason.rule} after ${e.waited}`];
    case "timedOut":
    case "cancelled":
      return [`${e.kind} after ${e.waited}`];
    case "unresolved":
      return [`unresolved ${e.error}`];
    case "fragmentStarted":
      return [`started on ${e.host}`];
    case "backendsReleased":
      return e.hosts.map((host) => `gave back ${host}`);
    case "released":
      return [`released ${e.state}`];
    default:
      return [];
  }
}

/** By query, in order of time. */
function lives(events: readonly RunEvent[]): Record<string, string[]> {
  const found: Record<string, string[]> = {};
  for (const e of events) {
    if (!("query" in e)) continue;
    found[e.query] ??= [];
    found[e.query]!.push(...linesOf(e).map((line) => `${String(e.at).padStart(9)} ${line}`));
  }
  for (const lines of Object.values(found)) lines.sort();
  return found;
}

const two = { coordinators: [{ count: 2, on: "dedicated", memory: "10gb" }], admission: "admissiond" };
const uses = { peak: "10mb", spillable: false };
const flags = { default_pool_max_requests: "10" };

const story = (s: Small & { readonly coordinators?: number }) =>
  small({
    ...s,
    cluster: { ...two, ...s.cluster },
    query: { estimate: "100mb", uses, duration: "3s", ...s.query },
    flags: { ...flags, ...s.flags },
  });

const CASES: readonly { name: string; small: Small; kinds: readonly string[] }[] = [
  {
    name: "waves through one queue",
    small: { arrivals: [{ at: "0s", query: "q", count: 35 }] },
    kinds: ["admitted fromQueue"],
  },
  {
    name: "a decision between two calls is heard at the next one",
    small: { query: { duration: "3075ms" }, arrivals: [{ at: "0s", query: "q", count: 24 }] },
    kinds: ["3075 admitted fromQueue", "3080 started"],
  },
  {
    name: "calls that a query's own arrival began, short and long ones",
    small: {
      query: { duration: "777ms" },
      arrivals: [{ every: "13ms", query: "q", count: 60 }],
      flags: {
        default_pool_max_requests: "3",
        admission_status_wait_time_ms: "33",
        admission_status_retry_time_ms: "29",
      },
    },
    kinds: ["admitted fromQueue"],
  },
  {
    name: "time-outs are noticed where a call ends",
    small: { flags: { queue_wait_timeout_ms: "1000" }, arrivals: [{ at: "0s", query: "q", count: 13 }] },
    kinds: ["1090 timedOut after 1090"],
  },
  {
    name: "one call for the whole wait",
    small: {
      flags: { queue_wait_timeout_ms: "1000", admission_status_wait_time_ms: "0" },
      arrivals: [{ at: "0s", query: "q", count: 13 }],
    },
    kinds: ["1000 timedOut after 1000"],
  },
  {
    name: "a queue timeout of nothing",
    small: { flags: { queue_wait_timeout_ms: "0" }, arrivals: [{ at: "0s", query: "q", count: 13 }] },
    kinds: ["0 timedOut after 0"],
  },
  {
    name: "a full queue",
    small: { flags: { default_pool_max_queued: "2" }, arrivals: [{ at: "0s", query: "q", count: 15 }] },
    kinds: ["rejected REJ-A5"],
  },
  {
    name: "cancelled in a call, and in a pause",
    small: {
      query: { duration: "10s", cancelAfter: "1095ms" },
      arrivals: [
        { at: "0s", query: "q", count: 10 },
        { at: "5ms", query: "q", count: 1 },
        { at: "1ms", query: "q", count: 1 },
      ],
      flags: { default_pool_max_requests: "1" },
    },
    kinds: ["cancelled after"],
  },
  {
    name: "9.5 a lost release is made up for by the next heartbeat, which is one for all",
    small: {
      query: { duration: "2950ms" },
      arrivals: [
        { coordinator: "coord-1", at: "0s", query: "q", count: 12 },
        { coordinator: "coord-2", at: "1s", query: "q", count: 2 },
      ],
      faults: [{ fault: "releasesLost", at: "0s", chance: 1 }],
    },
    kinds: ["3000 released finished", "3000 admitted fromQueue", "6000 released finished"],
  },
  {
    name: "T-59 a dead coordinator's queries: the running ones are missed, the queued ones refused at the head",
    small: {
      query: { duration: "30s" },
      arrivals: [
        { coordinator: "coord-1", at: "0s", query: "q", count: 12 },
        { coordinator: "coord-2", at: "2s", query: "q", count: 1 },
      ],
      faults: [{ fault: "coordinatorDies", at: "1s", host: "coord-1" }],
    },
    kinds: ["rejected REJ-C2", "released failed", "admitted fromQueue"],
  },
  {
    name: "a dead coordinator's query is let in before anybody misses its coordinator, and held until then",
    small: {
      query: { duration: "3s" },
      arrivals: [
        { coordinator: "coord-2", at: "0s", query: "q", count: 10 },
        { coordinator: "coord-1", at: "10ms", query: "q", count: 4 },
      ],
      faults: [{ fault: "coordinatorDies", at: "1s", host: "coord-1" }],
    },
    kinds: ["3000 admitted fromQueue", "released failed"],
  },
  {
    name: "a coordinator that comes back names nothing of the old process",
    small: {
      query: { duration: "3s" },
      arrivals: [
        { coordinator: "coord-2", at: "0s", query: "q", count: 9 },
        { coordinator: "coord-1", at: "10ms", query: "q", count: 4 },
        { coordinator: "coord-1", at: "1500ms", query: "q", count: 1 },
        { coordinator: "coord-1", at: "2200ms", query: "q", count: 1 },
      ],
      faults: [
        { fault: "coordinatorDies", at: "1s", host: "coord-1" },
        { fault: "coordinatorReturns", at: "2100ms", host: "coord-1" },
      ],
    },
    kinds: ["unresolved Could not connect to coord-1:27000", "4000 released failed"],
  },
  {
    name: "9.5 as many removed coordinators are remembered as the flag says",
    small: {
      cluster: { coordinators: [{ count: 3, on: "dedicated", memory: "10gb" }] },
      query: { duration: "20s" },
      arrivals: [
        { coordinator: "coord-3", at: "0s", query: "q", count: 10 },
        { coordinator: "coord-2", at: "1s", query: "q", count: 1 },
        { coordinator: "coord-1", at: "2s", query: "q", count: 1 },
        { coordinator: "coord-3", at: "3s", query: "q", count: 1 },
      ],
      faults: [
        { fault: "coordinatorDies", at: "4s", host: "coord-1" },
        { fault: "coordinatorDies", at: "4500ms", host: "coord-2" },
      ],
      flags: { cluster_membership_retained_removed_coords: "1" },
    },
    // coord-2 is remembered, coord-1 not: its query is refused by nobody, and the one behind it times out.
    kinds: ["rejected REJ-C2", "timedOut after"],
  },
  {
    name: "given up between the decision and the hearing",
    small: {
      query: { duration: "3075ms", cancelAfter: "3078ms" },
      arrivals: [{ at: "0s", query: "q", count: 11 }],
    },
    kinds: ["3075 admitted fromQueue", "3080 released cancelled"],
  },
];

describe("7.7, 9.4 a live admissiond does what a simulated one does, when it does it", () => {
  test.each(CASES)("$name", ({ small: said, kinds }) => {
    const scenario = story(said);
    const run = stepped(scenario);
    const live = lives(run.events);
    expect(run.endedAt).not.toBeNull();
    expect(live).toEqual(lives(simulated(scenario)));
    for (const kind of kinds) expect(Object.values(live).flat().join("\n")).toContain(kind);
    expectSameAgain(run.events.filter((e) => e.kind === "controllerCall"));
  });
});
