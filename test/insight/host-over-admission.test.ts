import { describe, expect, test } from "vitest";
import { HostOverAdmissionFold } from "../../src/insight/host-over-admission.ts";
import { Stream } from "./stream.ts";

const EXEC = "exec-1:27000";

/** What the fold says of a stream in which one executor of 100 bytes takes everything. */
function hostsOf(stream: Stream, until = 1000) {
  const fold = new HostOverAdmissionFold([
    { address: "coord-1:27000", admitMemLimit: 100 },
    { address: EXEC, admitMemLimit: 100 },
  ]);
  for (const event of stream.events) fold.add(event);
  return fold.finish(until);
}

describe("T-12 memory that all controllers together admitted to a host", () => {
  test.each([
    { second: 39, over: 0 },
    { second: 40, over: 0 },
    { second: 41, over: 1 },
  ])("60 and $second of 100: $over over", ({ second, over }) => {
    const s = new Stream().submit(0, "a").admit(0, "a", 60).submit(100, "b").admit(100, "b", second);
    s.end(300, "a").end(400, "b");
    const expected = over === 0 ? [] : [{ host: EXEC, limitBytes: 100, mostBytes: over, timeMs: 200 }];
    expect(hostsOf(s)).toEqual(expected);
  });

  test("what comes and goes in one instant is no peak", () => {
    const s = new Stream().submit(0, "a").admit(0, "a", 90).submit(0, "b").admit(500, "b", 90).freeMemory(500, "a");
    expect(hostsOf(s)).toEqual([]);
  });

  test("memory that came back with a host's release does not come back again with the query's", () => {
    const s = new Stream().submit(0, "a").admit(0, "a", 150).freeMemory(100, "a").freePlace(200, "a");
    s.submit(300, "b").admit(300, "b", 120);
    expect(hostsOf(s)).toEqual([{ host: EXEC, limitBytes: 100, mostBytes: 50, timeMs: 100 + 700 }]);
  });

  test("what is never told to be released on a host comes back with the query", () => {
    const s = new Stream().submit(0, "a").admit(0, "a", 150).freePlace(200, "a");
    expect(hostsOf(s)).toEqual([{ host: EXEC, limitBytes: 100, mostBytes: 50, timeMs: 200 }]);
  });

  test("a coordinator's host is charged the coordinator's share", () => {
    const s = new Stream().submit(0, "a").admit(0, "a", 150);
    expect(hostsOf(s).map((h) => h.host)).toEqual([EXEC]);
  });
});
