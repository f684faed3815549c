import { describe, expect, test } from "vitest";
import { NO_USAGE } from "../../../src/core/admission/pool-stats.ts";
import { BackendReporter } from "../../../src/core/statestore/backend-reporter.ts";
import {
  hostsTopicKey,
  type PoolFigures,
  parseTopicKey,
  poolTopicKey,
  REQUEST_QUEUE_TOPIC,
  type TopicEntry,
  topicName,
} from "../../../src/core/statestore/topic.ts";
import { TopicStore } from "../../../src/core/statestore/topic-store.ts";
import { bytes } from "../../../src/core/units.ts";

describe("7.1 topic names and keys", () => {
  test("the cluster's prefix", () => {
    expect([topicName(REQUEST_QUEUE_TOPIC, ""), topicName(REQUEST_QUEUE_TOPIC, "c1")]).toEqual([
      "impala-request-queue",
      "c1-impala-request-queue",
    ]);
  });

  test.each([
    { key: "POOL:root.q!h:1", parsed: { kind: "pool", pool: "root.q", host: "h:1" } },
    { key: "POOL:a!b!h:1", parsed: { kind: "pool", pool: "a!b", host: "h:1" } },
    { key: "POOL:!h:1", parsed: { kind: "pool", pool: "", host: "h:1" } },
    { key: "POOL:root.q!", parsed: null },
    { key: "POOL:root.q", parsed: null },
    { key: "STAT:h:1", parsed: { kind: "hosts", host: "h:1" } },
    { key: "STAT:h1", parsed: null }, // 7 characters
    { key: "HOST:root.q!h:1", parsed: null },
    { key: "", parsed: null },
  ])("$key", ({ key, parsed }) => {
    expect(parseTopicKey(key)).toEqual(parsed);
  });

  test("what is made is parsed again", () => {
    expect(parseTopicKey(poolTopicKey("root.x!y", "h:1"))).toEqual({ kind: "pool", pool: "root.x!y", host: "h:1" });
    expect(parseTopicKey(hostsTopicKey("h:1"))).toEqual({ kind: "hosts", host: "h:1" });
  });
});

const figures = (numAdmittedRunning: number): PoolFigures => ({
  numAdmittedRunning,
  numQueued: 0,
  backendMemReserved: bytes(0),
  userLoads: new Map(),
  heavyQueries: [],
  minMemConsumed: bytes(0),
  maxMemConsumed: bytes(0),
  totalMemConsumed: bytes(0),
  numRunning: 0,
});

const entry = (host: string, running: number, pool = "p"): TopicEntry => ({
  kind: "pool",
  pool,
  host,
  stats: figures(running),
});

describe("7.1 the statestore's side", () => {
  const readers = (...ids: string[]): TopicStore => {
    const store = new TopicStore();
    for (const id of ids) store.subscribe(id);
    return store;
  };

  test("full updates until something was published, then what is new, then nothing", () => {
    const store = readers("a", "b");
    expect(store.updateFor("b")).toEqual({ isDelta: false, entries: [] });
    store.publish("a", [entry("a", 1)]);
    expect(store.updateFor("b")).toEqual({ isDelta: false, entries: [entry("a", 1)] });
    store.publish("a", [entry("a", 2), entry("a", 3, "q")]);
    expect(store.updateFor("b")).toEqual({ isDelta: true, entries: [entry("a", 2), entry("a", 3, "q")] });
    expect(store.updateFor("b")).toEqual({ isDelta: true, entries: [] });
  });

  test("only the last of several changes of one key is sent", () => {
    const store = readers("a", "b");
    store.publish("a", [entry("a", 1, "x")]);
    store.updateFor("b");
    for (let i = 0; i < 500; i++) store.publish("a", [entry("a", i)]);
    expect(store.updateFor("b").entries).toEqual([entry("a", 499)]);
  });

  test("one who joins late gets what is there, without deletions", () => {
    const store = readers("a", "b");
    store.publish("a", [entry("a", 1)]);
    store.publish("b", [entry("b", 2)]);
    store.fail("a");
    store.subscribe("c");
    expect(store.updateFor("c")).toEqual({ isDelta: false, entries: [entry("b", 2)] });
  });

  test("a failed publisher's entries are deleted for those who knew them; it must register again", () => {
    const store = readers("a", "b");
    store.publish("a", [entry("a", 1)]);
    store.updateFor("b");
    store.fail("a");
    expect(store.updateFor("b")).toEqual({ isDelta: true, entries: [{ ...entry("a", 1), stats: null }] });
    store.publish("a", [entry("a", 9)]);
    expect(store.updateFor("b").entries, "ignored").toEqual([]);
    store.subscribe("a");
    store.publish("a", [entry("a", 9)]);
    expect(store.updateFor("b").entries).toEqual([entry("a", 9)]);
  });

  test("T-37: after a restart everybody gets full updates of an empty topic", () => {
    const store = readers("a", "b");
    store.publish("a", [entry("a", 1)]);
    store.updateFor("b");
    store.restart();
    expect(store.isSubscribed("b")).toBe(false);
    store.subscribe("b");
    expect([store.updateFor("b"), store.updateFor("b")]).toEqual([
      { isDelta: false, entries: [] },
      { isDelta: false, entries: [] },
    ]);
  });

  test("executors subscribe to POOL: entries only", () => {
    const store = readers("a");
    store.subscribe("e", true);
    const stats = {
      hosts: [],
      memReserved: [],
      memAdmitted: [],
      numAdmitted: [],
      slotsInUse: [],
    };
    store.publish("a", [entry("a", 1), { kind: "hosts", host: "a", stats }]);
    expect(store.updateFor("e").entries.map((e) => e.kind)).toEqual(["pool"]);
  });
});

describe("7.2 a process that only executes", () => {
  test("publishes a pool's reservation when it changed", () => {
    const reporter = new BackendReporter("e:1");
    const reserves = (n: number) => reporter.setBackendUsage("p", { ...NO_USAGE, memReserved: bytes(n) });
    expect(reporter.collectUpdate()).toEqual([]);
    reserves(0);
    expect(reporter.collectUpdate()).toEqual([]);
    reserves(5);
    expect(reporter.collectUpdate()).toMatchObject([{ pool: "p", host: "e:1", stats: { backendMemReserved: 5 } }]);
    expect(reporter.collectUpdate()).toEqual([]);
    reserves(0);
    expect(reporter.collectUpdate()).toMatchObject([{ stats: { backendMemReserved: 0, numAdmittedRunning: 0 } }]);
  });
});
