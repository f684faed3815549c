/**
 * Nothing hangs: a live run ends by itself whatever is gone for good, as and when the same run does in virtual time. Live on
 * a clock without threads (`stepped.ts`).
 */
import { describe, expect, test } from "vitest";
import type { Instant } from "../../src/core/units.ts";
import { differing, fates } from "./fates.ts";
import { expectSameAgain, type Small, small } from "./live-fixture.ts";
import { simulated } from "./simulated.ts";
import { stepped } from "./stepped.ts";

type Faults = readonly Record<string, unknown>[];

const ADMISSIONS = ["distributed", "admissiond"];
const COORDINATORS = {
  "two apart": [{ count: 2, on: "dedicated", memory: "10gb" }],
  "two on executors": [{ count: 2, on: "executor" }],
};
const COORDINATOR = { "two apart": ["coord-1", "coord-2"], "two on executors": ["exec-1", "exec-2"] };
type Place = keyof typeof COORDINATORS;
const PLACES = Object.keys(COORDINATORS) as Place[];

/** What happens to the statestore at 2 s, while queries run and wait. */
const STATESTORES: Readonly<Record<string, Faults>> = {
  stays: [],
  "stops for good": [{ fault: "statestoreStops", at: "2s" }],
  "is away for five minutes": [
    { fault: "statestoreStops", at: "2s" },
    { fault: "statestoreStarts", at: "302s" },
  ],
};

/** And then to processes. */
const DEATHS: Readonly<Record<string, (coordinators: readonly string[]) => Faults>> = {
  "all coordinators die": (all) => all.map((host) => ({ fault: "coordinatorDies", at: "3s", host })),
  "all hosts die": (all) =>
    [...new Set([...all, "exec-1", "exec-2", "exec-3"])].map((host) => ({ fault: "hostDies", at: "3s", host })),
  "all executors die": () => ["exec-1", "exec-2", "exec-3"].map((host) => ({ fault: "hostDies", at: "3s", host })),
  "one coordinator dies, the other is cut off": ([one, other]) => [
    { fault: "coordinatorDies", at: "3s", host: one },
    { fault: "coordinatorCutOff", at: "3s", host: other },
  ],
  "all coordinators are cut off": (all) => all.map((host) => ({ fault: "coordinatorCutOff", at: "3s", host })),
  "a coordinator dies and comes back": ([one]) => [
    { fault: "coordinatorDies", at: "3s", host: one },
    { fault: "coordinatorReturns", at: "20s", host: one },
  ],
  "all coordinators die, and one comes back": (all) => [
    ...all.map((host) => ({ fault: "coordinatorDies", at: "3s", host })),
    { fault: "coordinatorReturns", at: "40s", host: all[1] },
  ],
};

const FLAGS = {
  patience: { queue_wait_timeout_ms: "60000" },
  "a queue timeout of nothing": { queue_wait_timeout_ms: "0" },
  "one removed coordinator remembered": { cluster_membership_retained_removed_coords: "1" },
};

const flagsFor = (place: Place): readonly (keyof typeof FLAGS)[] =>
  place === "two apart"
    ? ["patience", "a queue timeout of nothing", "one removed coordinator remembered"]
    : ["a queue timeout of nothing"];

const CASES = ADMISSIONS.flatMap((admission) =>
  PLACES.flatMap((place) =>
    Object.keys(STATESTORES).flatMap((statestore) =>
      Object.keys(DEATHS).flatMap((death) =>
        flagsFor(place).map((flags) => ({ admission, place, statestore, death, flags })),
      ),
    ),
  ),
);

type Story = (typeof CASES)[number];

function scenarioOf({ admission, place, statestore, death, flags }: Story) {
  const said: Small = {
    cluster: { admission, coordinators: COORDINATORS[place], statestore: { every: "1s" } },
    flags: { default_pool_max_requests: "4", ...FLAGS[flags] },
    query: { duration: "30s" },
    arrivals: [
      { at: "0s", query: "q", count: 12 },
      // Some find nobody, or nobody who hears.
      { at: "11s", query: "q", count: 2 },
      { at: "71s", query: "q", count: 2 },
    ],
    faults: [...STATESTORES[statestore]!, ...DEATHS[death]!(COORDINATOR[place])],
  };
  return small(said);
}

describe("every live run ends by itself, as it does in virtual time", () => {
  test.each(CASES)("$admission, $place, $flags: the statestore $statestore, $death", (story) => {
    const scenario = scenarioOf(story);
    const live = stepped(scenario);
    expect(live.endedAt).not.toBeNull();
    const virtual = simulated(scenario);
    expect(fates(live.events)).toEqual(fates(virtual));
    expect(differing(live.events, virtual)).toEqual([]);
    expectSameAgain(live.events.filter((e) => e.kind === "controllerCall"));
  });
});

describe("Ctrl-C waits for nobody that nobody waits for", () => {
  test("four are held and eight queued for dead coordinators: it is over at once", () => {
    const scenario = scenarioOf({
      admission: "admissiond",
      place: "two apart",
      flags: "patience",
      statestore: "stops for good",
      death: "all coordinators die",
    });
    const requests = { ...scenario, arrivals: scenario.arrivals.slice(0, 1) };
    const faults = [...requests.faults, { kind: "statestoreStarts", at: 36_000_000 as Instant } as const];
    // Without it the statestore's return would be waited for.
    expect(stepped({ ...requests, faults }).endedAt).toBeNull();
    expect(stepped({ ...requests, faults }, { drainAt: 5000 }).endedAt).toBe(5000);
  });
});

describe("9.5 a coordinator that executes dies as a whole, in both drivers", () => {
  test("what another coordinator has there fails", () => {
    const scenario = small({
      cluster: { coordinators: COORDINATORS["two on executors"] },
      query: { duration: "30s" },
      arrivals: [{ at: "0s", coordinator: "exec-2", query: "q", count: 1 }],
      faults: [{ fault: "coordinatorDies", at: "3s", host: "exec-1" }],
    });
    const live = fates(stepped(scenario).events);
    expect(Object.values(live)).toEqual(["immediately failed"]);
    expect(live).toEqual(fates(simulated(scenario)));
  });

  test("and when it is back it executes again", () => {
    const scenario = small({
      cluster: { coordinators: COORDINATORS["two on executors"] },
      arrivals: [{ at: "60s", coordinator: "exec-1", query: "q", count: 1 }],
      faults: [
        { fault: "coordinatorDies", at: "3s", host: "exec-1" },
        { fault: "coordinatorReturns", at: "30s", host: "exec-1" },
      ],
    });
    const { events } = stepped(scenario);
    const hosts = events.flatMap((e) => (e.kind === "fragmentStarted" ? [e.host] : []));
    expect(hosts.sort()).toEqual(["exec-1:27000", "exec-2:27000", "exec-3:27000"]);
    expect(fates(events)).toEqual(fates(simulated(scenario)));
  });
});

describe("9.5 a coordinator that is missed, and lives, has not heard yet that its query may run", () => {
  test("admissiond gives the place back, the query fails, and what was to be heard is not heard", () => {
    const scenario = small({
      cluster: { admission: "admissiond", coordinators: COORDINATORS["two apart"] },
      // Calls of 10 ms and pauses of 5 s: let in at 10.5 s it would hear at 15.03 s, and is missed at 11 s.
      flags: {
        default_pool_max_requests: "1",
        admission_status_wait_time_ms: "10",
        admission_status_retry_time_ms: "5000",
      },
      query: { duration: "10500ms" },
      arrivals: [
        { at: "0s", coordinator: "coord-2", query: "q", count: 1 },
        { at: "0s", coordinator: "coord-1", query: "q", count: 1 },
        { at: "12s", coordinator: "coord-2", query: "q", count: 1 },
      ],
      faults: [{ fault: "coordinatorCutOff", at: "1s", host: "coord-1" }],
    });
    const { events, endedAt } = stepped(scenario);
    expect(endedAt).not.toBeNull();
    expect(Object.values(fates(events)).sort()).toEqual([
      "immediately finished",
      "immediately finished",
      "queued fromQueue failed",
    ]);
    expect(fates(events)).toEqual(fates(simulated(scenario)));
    expectSameAgain(events.filter((e) => e.kind === "controllerCall"));
  });
});
