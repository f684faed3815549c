/** The events of a query's timeline (admission 10.3). */
import { describe, expect, test } from "vitest";
import { QueryStoryFold } from "../../../src/insight/query-story.ts";
import { type ProfileContext, timelineOf } from "../../../src/surfaces/profile/profile-text.ts";
import { ADM2, Stream } from "../../insight/stream.ts";

const NO_CLASS: ProfileContext = { queryClass: null, backends: [], epochMicros: 0, version: "" };

function timeline(stream: Stream, query: string): [string, number][] {
  const fold = new QueryStoryFold(query, query, "distributed");
  for (const event of stream.events) fold.add(event);
  const story = fold.finish();
  if (story === null) throw new Error("the query is not in the stream");
  return timelineOf(story, NO_CLASS).map(([label, at]) => [label, at]);
}

describe("T-54: `Completed admission` is marked however admission ends", () => {
  const stream = new Stream()
    .submit(0, "admitted")
    .admit(0, "admitted", 1)
    .submit(1, "rejected")
    .reject(1, "rejected", { rule: "REJ-A1" })
    .submit(2, "timed out")
    .queue(2, "timed out", ADM2(1, 1))
    .timeOut(60_002, "timed out", 60_000, ADM2(1, 1))
    .submit(3, "cancelled")
    .queue(3, "cancelled", ADM2(1, 1))
    .cancel(50, "cancelled", 47);

  test.each([
    ["admitted", 0],
    ["rejected", 1],
    ["timed out", 60_002],
    ["cancelled", 50],
  ])("%s", (query, at) => {
    expect(timeline(stream, query)).toContainEqual(["Completed admission", at]);
  });

  test("`Queued` only for those that were", () => {
    const labels = (query: string): string[] => timeline(stream, query).map(([label]) => label);
    expect(labels("rejected")).not.toContain("Queued");
    expect(labels("timed out").slice(0, 4)).toEqual([
      "Query submitted",
      "Submit for admission",
      "Queued",
      "Completed admission",
    ]);
  });
});
