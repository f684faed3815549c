import { describe, expect, test } from "vitest";
import { instant } from "../../src/core/units.ts";
import { type QueryStory, QueryStoryFold } from "../../src/insight/query-story.ts";
import { ADM1, ADM2, ADM4, COORD, Stream } from "./stream.ts";

function storyOf(stream: Stream, query: string, request = query): QueryStory {
  const fold = new QueryStoryFold(query, request, "distributed");
  for (const event of stream.events) fold.add(event);
  const story = fold.finish();
  if (story === null) throw new Error("the query is not in the stream");
  return story;
}

/** a runs, b and c wait, d is somewhere else. */
const QUEUE = new Stream()
  .submit(0, "a")
  .admit(0, "a", 60)
  .submit(1, "x", { coordinator: "coord-2:27000" })
  .queue(1, "x", ADM2(1, 1))
  .submit(2, "b")
  .queue(2, "b", ADM4(60, 100))
  .submit(3, "d", { pool: "root.other" })
  .admit(3, "d", 7)
  .submit(4, "c")
  .queue(4, "c", ADM1(1))
  .end(1000, "a")
  .admit(1000, "b", 60, "fromQueue", 998)
  .head(1000, "c", ADM4(60, 100))
  .end(1500, "b")
  .admit(1500, "c", 60, "fromQueue", 1496)
  .end(1600, "c")
  .end(1700, "d");

describe("the life of one query", () => {
  test("its own events", () => {
    const story = storyOf(QUEUE, "c");
    expect(story.attempts).toEqual([
      { at: 4, reason: ADM1(1), times: 1 },
      { at: 1000, reason: ADM4(60, 100), times: 1 },
    ]);
    expect(story).toMatchObject({ decision: { kind: "admitted", waited: 1496 }, released: { at: 1600 }, groupLoad: 2 });
  });

  test("who was ahead: its own controller's queue for its pool, head first", () => {
    expect(storyOf(QUEUE, "c").ahead).toEqual([{ query: "b", queryClass: "q", waitedFor: ADM4(60, 100) }]);
    expect(storyOf(QUEUE, "b").ahead).toEqual([]);
  });

  test("the exact state around it, over all controllers, before its own step", () => {
    const story = storyOf(QUEUE, "c");
    expect(story.atSubmission).toMatchObject({ running: 1, queued: 2, memory: 60 });
    expect(story.atSubmission.admittedOn).toEqual(new Map([["exec-1:27000", 67]]));
    expect(story.atLastFailure).toMatchObject({ at: 1000, running: 1, memory: 60 });
    expect(story.atDecision).toMatchObject({ at: 1500, running: 0, memory: 0 });
    expect(story.atDecision?.admittedOn).toEqual(new Map([["exec-1:27000", 7]]));
  });

  test("what its fragments did on each host, in address order", () => {
    const on = (host: string, at: number, kind: "start" | "end", over: object = {}) =>
      kind === "start"
        ? ({ kind: "fragmentStarted", at: instant(at), query: "a", host, instance: 0 } as const)
        : ({
            kind: "fragmentFinished",
            at: instant(at),
            query: "a",
            host,
            instance: 0,
            peak: 5 as never,
            spilled: 2 as never,
            error: null,
            ...over,
          } as const);
    const s = new Stream()
      .submit(0, "a")
      .admit(0, "a", 10)
      .other(on("h2", 1, "start"))
      .other(on("h1", 2, "start"))
      .other(on("h1", 3, "start"))
      .other(on("h1", 7, "end"))
      .other(on("h1", 9, "end", { error: "disk full" }))
      .end(10, "a");
    expect(storyOf(s, "a").hosts).toEqual([
      { host: "h1", instances: 2, startedAt: 2, finishedAt: 9, peak: 10, spilled: 4, error: "disk full" },
      { host: "h2", instances: 1, startedAt: 1, finishedAt: null, peak: null, spilled: null, error: null },
    ]);
  });

  test("other attempts of the same request", () => {
    const s = new Stream()
      .submit(0, "a")
      .reject(0, "a", { rule: "REJ-A1" })
      .submit(5, "a2", { request: "a", attempt: 2 })
      .admit(5, "a2", 1)
      .end(9, "a2");
    expect(storyOf(s, "a2", "a").siblings).toEqual([{ query: "a", attempt: 1, at: 0 }]);
  });

  test("a query that is not there has no story", () => {
    const fold = new QueryStoryFold("z", "z", "distributed");
    for (const event of QUEUE.events) fold.add(event);
    expect(fold.finish()).toBeNull();
  });

  test("one queue for all coordinators under admissiond", () => {
    const fold = new QueryStoryFold("c", "c", "admissiond");
    for (const event of QUEUE.events) fold.add(event);
    expect(fold.finish()?.ahead.map((a) => a.query)).toEqual(["x", "b"]);
  });

  test("the stream's coordinator", () => {
    expect(storyOf(QUEUE, "a").submitted.coordinator).toBe(COORD);
  });
});
