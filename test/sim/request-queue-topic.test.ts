/** What a reader sees of hosts' reservations, moment by moment; layers and cells must tell the same. */
import { describe, expect, test } from "vitest";
import type { TopicUpdate } from "../../src/core/statestore/topic.ts";
import { ExchangeGrid } from "../../src/sim/exchange-grid.ts";
import type { Placement } from "../../src/sim/placement.ts";
import { RequestQueueTopic, type TopicReader } from "../../src/sim/request-queue-topic.ts";

const HOSTS = ["a", "b", "c", "d"];
/** Exchanges of host i at 25 i, 25 i + 100, ... */
const PERIOD = 100;

const placement: Pick<Placement, "hosts" | "hasWork" | "coordinatorAt"> = {
  hosts: Int32Array.of(0, 1, 2, 3),
  hasWork: Uint8Array.of(1, 1, 1, 1),
  coordinatorAt: 0,
};

function topicOf(lags = { publish: 0, receive: 0 }): { topic: RequestQueueTopic; reader: TopicReader } {
  const topic = new RequestQueueTopic(new ExchangeGrid(PERIOD, HOSTS.length), lags, HOSTS);
  topic.addPool(0, "p");
  const reader = { address: "reader", seen: 0, needsFull: true };
  topic.register(reader);
  topic.updateFor(reader, 0, true);
  return { topic, reader };
}

const entriesOf = (update: TopicUpdate): Record<string, number | null> =>
  Object.fromEntries(
    update.entries.map((e) => [e.host, e.kind === "pool" && e.stats !== null ? e.stats.backendMemReserved : null]),
  );

describe("7.3 a host publishes at its own exchange", () => {
  test.each([
    { read: 24, seen: {} },
    { read: 25, seen: { b: 8 } },
    { read: 74, seen: { b: 8, c: 8 } },
    { read: 75, seen: { b: 8, c: 8, d: 8 } },
    { read: 100, seen: { a: 8, b: 8, c: 8, d: 8 } },
  ])("8 bytes on each from 10 on, read at $read", ({ read, seen }) => {
    const { topic, reader } = topicOf();
    for (let host = 0; host < 4; host++) topic.change(host, 0, 8, 10);
    expect(entriesOf(topic.updateFor(reader, read, false))).toEqual(seen);
  });

  test("an exchange of the very instant takes the change, one after it doesn't wait for the next", () => {
    const { topic, reader } = topicOf();
    topic.change(1, 0, 8, 25);
    expect(entriesOf(topic.updateFor(reader, 25, false))).toEqual({ b: 8 });
    topic.change(1, 0, 8, 26);
    expect(entriesOf(topic.updateFor(reader, 124, false))).toEqual({});
    expect(entriesOf(topic.updateFor(reader, 125, false))).toEqual({ b: 16 });
  });

  test("what was taken before a later change is what arrives", () => {
    const { topic, reader } = topicOf();
    topic.change(1, 0, 8, 10);
    topic.change(1, 0, 100, 30);
    expect(entriesOf(topic.updateFor(reader, 60, false))).toEqual({ b: 8 });
  });

  test("a change that is undone in time is no news", () => {
    const { topic, reader } = topicOf();
    topic.change(1, 0, 8, 10);
    topic.change(1, 0, -8, 20);
    expect(topic.hasNewsFor(reader)).toBe(false);
    expect(entriesOf(topic.updateFor(reader, 500, false))).toEqual({});
  });

  test("lags: collected one receive lag after the exchange begins, there one publish lag later", () => {
    const { topic, reader } = topicOf({ publish: 5, receive: 3 });
    topic.change(1, 0, 8, 27);
    expect(entriesOf(topic.updateFor(reader, 32, false))).toEqual({});
    expect(entriesOf(topic.updateFor(reader, 33, false))).toEqual({ b: 8 });
  });
});

describe("T-37 a statestore that was away", () => {
  test("forgets, and hosts publish changes only", () => {
    const { topic, reader } = topicOf();
    for (let host = 0; host < 4; host++) topic.change(host, 0, 8, 10);
    topic.updateFor(reader, 200, false);
    topic.stop(210);
    topic.change(2, 0, 1, 220);
    topic.restart(400);
    topic.register(reader);
    expect(entriesOf(topic.updateFor(reader, 600, false))).toEqual({ c: 9 });
  });

  test("a failed host's entry is deleted, and the reader is told once", () => {
    const { topic, reader } = topicOf();
    topic.change(1, 0, 8, 10);
    topic.updateFor(reader, 200, false);
    topic.silence(1, 210);
    topic.change(1, 0, -8, 210);
    topic.forgetHost(1, 300);
    expect(entriesOf(topic.updateFor(reader, 300, false))).toEqual({ b: null });
    expect(entriesOf(topic.updateFor(reader, 900, false))).toEqual({});
  });
});

describe("levels instead of cells", () => {
  test("tell a reader the same at every moment", () => {
    const cells = topicOf();
    const levels = topicOf();
    levels.topic.keepLayers();
    let state = 7;
    const next = (below: number): number => {
      state = (state * 1_103_515_245 + 12_345) & 0x7fffffff;
      return state % below;
    };
    let now = 1;
    for (let step = 0; step < 2000; step++) {
      now += next(40);
      const bytes = next(2) === 0 ? 8 : -8;
      for (const { topic } of [cells, levels]) {
        topic.changeAll(placement as Placement, 0, bytes, 2 * bytes, now);
        // One host of the placement is done before the others.
        if (next(1) === 0 && step % 5 === 0) topic.change(2, 0, -3, now);
      }
      if (step % 3 !== 0) continue;
      const columns = [cells, levels].map(
        ({ topic, reader }) => topic.updateFor(reader, now, true).columns?.[0]?.bytes,
      );
      const [expected, found] = columns.map((bytes) => (bytes === undefined ? null : [...bytes]));
      expect(found).toEqual(expected);
      for (let host = 0; host < 4; host++) expect(levels.topic.heldOn(host, 0)).toBe(cells.topic.heldOn(host, 0));
    }
  });
});
