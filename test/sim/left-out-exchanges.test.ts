/**
 * Exchanges that nobody would notice are left out unless everything is told (`Exchanges`): what becomes of every
 * query, and when, must be the same either way.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { parseScenario } from "../../src/config/scenario-file.ts";
import { flagsOf, openPools } from "../../src/config/scenario-pools.ts";
import type { RunEvent } from "../../src/core/events.ts";
import { DEFAULT_POOL_CONFIG } from "../../src/core/pool-config.ts";
import { EventObserver } from "../../src/insight/event-observer.ts";
import { SummaryFold } from "../../src/insight/summary-fold.ts";
import { simulate } from "../../src/sim/simulate.ts";
import { poolResolver } from "../../src/workload/pool-resolver.ts";
import { createWorkload } from "../../src/workload/scenario-workload.ts";

const OUTCOMES = new Set(["queued", "admitted", "rejected", "timedOut", "cancelled", "unresolved", "released"]);

interface Told {
  readonly outcomes: readonly string[];
  /** Causes of the waiting in the one pool, and their shares. */
  readonly binding: unknown;
}

function told(text: Record<string, unknown>, onlyOutcomes: boolean): Told {
  const scenario = parseScenario(JSON.stringify({ pools: "flags", ...text }), "left-out.json");
  const flags = flagsOf(scenario);
  const directory = openPools(scenario, flags);
  const configOf = (pool: string) => {
    const found = directory.lookUp(pool);
    return found.kind === "found" ? found.config : null;
  };
  const fold = new SummaryFold({ configOf, admission: scenario.cluster.admission });
  const fromEvents = new EventObserver(fold);
  const outcomes: string[] = [];
  const { endedAt } = simulate({
    scenario,
    flags,
    workload: createWorkload(
      scenario,
      poolResolver(() => directory, flags, scenario.users),
    ),
    pools: { configOf: (pool) => configOf(pool) ?? DEFAULT_POOL_CONFIG },
    looksAtHosts: true,
    onlyOutcomes,
    ...(onlyOutcomes ? { observer: fold } : {}),
    emit: (event: RunEvent) => {
      if (!onlyOutcomes) fromEvents.add(event);
      if (!OUTCOMES.has(event.kind) || !("query" in event)) return;
      const why = event.kind === "timedOut" ? ` ${event.reason.rule}` : "";
      outcomes.push(`${event.at} ${event.kind} ${event.query}${why}`);
    },
  });
  if (!onlyOutcomes) fromEvents.end(endedAt);
  const binding = fold.finish().pools[0]?.binding;
  return { outcomes, binding: binding?.shares.map((s) => [s.constraint, Math.round(s.waitedMs)]) };
}

const admittedAt = (text: Record<string, unknown>): number[] =>
  told(text, true)
    .outcomes.filter((o) => o.includes("admitted"))
    .map((o) => Number.parseFloat(o));

const dir = mkdtempSync(join(tmpdir(), "waterhole-left-out-"));
afterAll(() => rmSync(dir, { recursive: true }));

/** A pool of 4000 mb whose queries are held to 512 mb and spill what they have above it. */
function poolFiles(): { readonly fairScheduler: string; readonly llamaSite: string } {
  const [fairScheduler, llamaSite] = [join(dir, "fair-scheduler.xml"), join(dir, "llama-site.xml")];
  writeFileSync(
    fairScheduler,
    `<allocations><queue name="root"><queue name="small"><aclSubmitApps>*</aclSubmitApps>
<maxResources>4000 mb, 0 vcores</maxResources></queue></queue></allocations>`,
  );
  const property = (name: string, value: number): string =>
    `<property><name>impala.admission-control.${name}.root.small</name><value>${value}</value></property>`;
  writeFileSync(
    llamaSite,
    `<configuration>${property("pool-queue-timeout-ms", 100)}${property("min-query-mem-limit", 2 ** 29)}</configuration>`,
  );
  return { fairScheduler, llamaSite };
}

/** Pool `a`, with more memory than there is, and `b`, which runs one at a time. */
function twoPools(): { readonly fairScheduler: string; readonly llamaSite: string } {
  const [fairScheduler, llamaSite] = [join(dir, "two-fair-scheduler.xml"), join(dir, "two-llama-site.xml")];
  const queue = (name: string): string =>
    `<queue name="${name}"><aclSubmitApps>*</aclSubmitApps><maxResources>90000 mb, 0 vcores</maxResources></queue>`;
  writeFileSync(fairScheduler, `<allocations><queue name="root">${queue("a")}${queue("b")}</queue></allocations>`);
  const property = (name: string, value: number): string =>
    `<property><name>${name}</name><value>${value}</value></property>`;
  writeFileSync(
    llamaSite,
    `<configuration>${property("llama.am.throttling.maximum.placed.reservations.root.b", 1)}
${property("impala.admission-control.pool-queue-timeout-ms.root.a", 500)}</configuration>`,
  );
  return { fairScheduler, llamaSite };
}

const host = { executors: [{ memory: "12gb" }], coordinators: [{ on: "dedicated" }] };
/** Waits for one that runs and, after it, for the topic. */
const PAIR = {
  cluster: { executors: [{ memory: "2gb" }] },
  flags: { default_pool_mem_limit: "1536mb" },
  queries: { q: { estimate: "1gb", duration: "30ms" } },
  arrivals: [{ at: "0s" }, { at: "50ms" }],
};
/** The second one comes when its host is cut off; the last round before said what the first one held, now gone. */
const CUT_OFF = {
  ...PAIR,
  queries: { q: { estimate: "1gb", duration: "200ms" } },
  arrivals: [{ at: "0s" }, { at: "210ms" }],
  faults: [
    { at: "150ms", fault: "coordinatorCutOff", host: "exec-1" },
    { at: "600ms", fault: "coordinatorRejoins", host: "exec-1" },
  ],
};
/**
 * The second query of `a` waits for memory at 250 ms, when the other pool's first one has ended; and then again for one
 * of the two places, as the other pool's next one comes at 260 ms, or follows in the very pass that has looked at `a`.
 */
const BUSY = {
  cluster: { executors: [{ memory: "4gb", slots: 2, executorGroup: "root.a-g" }] },
  pools: twoPools(),
  queries: {
    large: { pool: "root.a", estimate: "3gb", duration: "2s" },
    long: { pool: "root.b", coordinatorOnly: true, duration: "2s" },
    brief: { pool: "root.b", coordinatorOnly: true, duration: "250ms" },
  },
};
const TAKES_A_PLACE = {
  ...BUSY,
  arrivals: [
    { at: "0s", query: "brief" },
    { count: 2, at: "0s", query: "large" },
    { at: "260ms", query: "long" },
  ],
};
const TAKES_A_PLACE_LATER = {
  ...BUSY,
  arrivals: [
    { at: "0s", query: "brief" },
    { count: 2, at: "0s", query: "large" },
    { at: "0s", query: "long" },
  ],
};
/** The first one ends in the very instant of an exchange; the head has lost its coordinator, which ends the pass. */
const CUT_PASS = {
  cluster: {
    executors: [{ memory: "12gb" }],
    coordinators: [{ count: 2, on: "dedicated" }],
    admission: "admissiond",
    statestore: { failureAfter: "150ms" },
  },
  flags: { default_pool_max_requests: "1" },
  queries: { q: { estimate: "1gb", duration: "475ms" } },
  arrivals: [
    { at: "0s", coordinator: "coord-1" },
    { at: "10ms", coordinator: "coord-2" },
    { at: "20ms", coordinator: "coord-1" },
  ],
  faults: [{ at: "100ms", fault: "coordinatorDies", host: "coord-2" }],
};
/** A host is declared failed at 430 ms, which the exchange at 475 ms brings. */
const LOST_HOST = {
  cluster: {
    executors: [{ memory: "4gb" }, { memory: "2gb" }],
    coordinators: [{ on: "dedicated" }],
    admission: "admissiond",
    statestore: { failureAfter: "300ms" },
  },
  flags: { default_pool_mem_limit: "100gb" },
  queries: { q: { estimate: "1.5gb", duration: "2s" } },
  arrivals: [{ at: "0s" }, { at: "440ms" }],
  faults: [{ at: "130ms", fault: "hostDies", host: "exec-2" }],
};
/** Exchanges of `admissiond` at 80, 240, 400 and 560 ms; what exec-1 collects at 320 ms is in the topic at 470 ms. */
const ON_ITS_WAY = {
  cluster: {
    executors: [{ memory: "12gb" }],
    admission: "admissiond",
    statestore: { every: "10ms", publishLag: "150ms" },
  },
  flags: { default_pool_mem_limit: "4gb" },
  queries: {
    large: { estimate: "2.5gb", duration: "250ms" },
    small: { estimate: "256mb", duration: "280ms" },
  },
  arrivals: [
    { at: "200ms", query: "large" },
    { at: "210ms", query: "small" },
    { at: "500ms", query: "large" },
  ],
};
const spilling = {
  seed: 628,
  cluster: host,
  pools: poolFiles(),
  queries: {
    q0: {
      pool: "root.small",
      estimate: "20mb",
      uses: { peak: { uniform: { low: "100mb", high: "4gb" } } },
      duration: "0s",
    },
  },
  arrivals: [{ rate: "5/s" }],
  limits: { queries: 20 },
};
const brief = {
  seed: 5,
  queries: { q: { estimate: "1gb", uses: { peak: "1gb" }, duration: "10ms" } },
  arrivals: [{ rate: "4/s" }],
  flags: { default_pool_mem_limit: "2500mb" },
  limits: { queries: 150 },
};

describe("admission 7.3, 7.4: exchanges that are left out", () => {
  test.each([
    ["the exchange at the very start tells what runs since then (7.3): until the round at 100 ms", PAIR, [0, 100]],
    [
      "whoever is cut off goes by what its last round told of its own host: until it is back at 600 ms",
      CUT_OFF,
      [0, 600],
    ],
  ])("%s, the second one waits", (_, text, admitted) => {
    expect(admittedAt(text)).toEqual(admitted);
  });

  test("a pass looks at an exchange of its instant already (T-9): after a rejection the rest waits for the next one", () => {
    expect(admittedAt(CUT_PASS)).toEqual([0, 575]);
  });

  test("who is declared failed is there until an exchange says so (7.1): its memory is short until 475 ms", () => {
    expect(admittedAt(LOST_HOST)).toEqual([0, 475]);
  });

  test("what is on its way is not known yet (7.3): the pool has room for the next one at 500 ms", () => {
    expect(admittedAt(ON_ITS_WAY)).toEqual([200, 210, 500]);
  });

  test.each([
    ["at once", TAKES_A_PLACE],
    ["later in the same pass", TAKES_A_PLACE_LATER],
  ])("others that are admitted %s change what a head waits for, and it is told so (5.6)", (_, text) => {
    expect(
      told(text, true)
        .outcomes.filter((o) => o.includes("timedOut"))
        .map((o) => o.split(" ").at(-1)),
    ).toEqual(["ADM-3"]);
  });

  test.each([
    ["from the start", PAIR],
    ["a coordinator is cut off after its last round", CUT_OFF],
    ["a pass is cut in the instant of an exchange", CUT_PASS],
    ["a host is declared failed between two rounds", LOST_HOST],
    ["updates take time to arrive in the topic", ON_ITS_WAY],
    ["another pool takes a place at once", TAKES_A_PLACE],
    ["another pool takes a place in the same pass", TAKES_A_PLACE_LATER],
    ["long rounds", { ...PAIR, cluster: { ...PAIR.cluster, statestore: { every: "400ms" } } }],
    [
      "the statestore is away for a while",
      {
        ...spilling,
        faults: [
          { at: "2844ms", fault: "statestoreStops" },
          { at: "3882ms", fault: "statestoreStarts" },
        ],
      },
    ],
    [
      "a coordinator is cut off for a while",
      {
        ...spilling,
        faults: [
          { at: "2844ms", fault: "coordinatorCutOff", host: "coord-1" },
          { at: "3882ms", fault: "coordinatorRejoins", host: "coord-1" },
        ],
      },
    ],
    ["updates take time to arrive", { ...brief, cluster: { ...host, statestore: { receiveLag: "250ms" } } }],
    [
      "updates take time to arrive at admissiond",
      {
        ...brief,
        cluster: { ...host, admission: "admissiond", statestore: { receiveLag: "250ms", publishLag: "40ms" } },
      },
    ],
    [
      "a coordinator returns to a queue that waited for it",
      {
        cluster: { executors: [{ memory: "12gb" }] },
        flags: { default_pool_max_requests: "3" },
        queries: { q0: { uses: { peak: "10mb" }, duration: { exponential: { mean: "400ms" } } } },
        arrivals: [{ rate: "20/s" }, { clients: 2, think: "70ms" }],
        limits: { queries: 134 },
        faults: [
          { at: "162ms", fault: "coordinatorDies", host: "exec-1" },
          { at: "2740ms", fault: "coordinatorReturns", host: "exec-1" },
        ],
      },
    ],
    [
      "a coordinator returns, and who waited for it waits for a place",
      {
        cluster: { executors: [{ memory: "12gb" }] },
        flags: { default_pool_max_requests: "3" },
        queries: { q0: { uses: { peak: "10mb" }, duration: "2s" } },
        arrivals: [{ rate: "20/s" }, { clients: 2, think: "70ms" }],
        limits: { queries: 134 },
        faults: [
          { at: "162ms", fault: "coordinatorDies", host: "exec-1" },
          { at: "2740ms", fault: "coordinatorReturns", host: "exec-1" },
        ],
      },
    ],
  ])("%s: same outcomes, same causes", (_, text) => {
    const all = told(text, false);
    const few = told(text, true);
    expect(few.outcomes.length).toBeGreaterThan(3);
    expect(few.outcomes).toEqual(all.outcomes);
    expect(few.binding).toEqual(all.binding);
  });
});
