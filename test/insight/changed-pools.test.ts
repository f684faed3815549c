/** Pools whose records change while a run goes on: everything is judged by the record in force (admission 5.7). */
import { describe, expect, test } from "vitest";
import type { PoolConfig } from "../../src/core/pool-config.ts";
import { EventObserver } from "../../src/insight/event-observer.ts";
import type { PoolSummary } from "../../src/insight/summary.ts";
import { SummaryFold } from "../../src/insight/summary-fold.ts";
import { ADM1, ADM2, pool, Stream } from "./stream.ts";

function changedAt(at: number, before: PoolConfig, after: PoolConfig, { events }: Stream): PoolSummary {
  let changes = 0;
  const fold = new SummaryFold({
    configOf: () => (changes === 0 ? before : after),
    changes: () => changes,
    admission: "distributed",
  });
  const observer = new EventObserver(fold);
  for (const event of events) {
    if (event.at >= at) changes = 1;
    observer.add(event);
  }
  observer.end();
  return fold.finish().pools[0]!;
}

const NONE = { most: 0, timeMs: 0, areaMs: 0 };

describe("a limit that is raised", () => {
  const one = pool({ maxRequests: 1, maxMem: 100 });
  const two = pool({ maxRequests: 2, maxMem: 200 });
  const summary = changedAt(
    50,
    one,
    two,
    new Stream()
      .submit(0, "a")
      .admit(0, "a", 40)
      .submit(0, "b")
      .queue(0, "b", ADM2(1, 1))
      .submit(60, "c")
      .queue(60, "c", ADM1(1))
      .admit(100, "b", 40, "fromQueue", 100)
      .end(200, "a")
      .end(200, "b")
      .admit(200, "c", 40, "fromQueue", 140)
      .end(300, "c"),
  );

  test("nobody is over it", () => {
    expect(summary.overAdmission).toMatchObject({ running: NONE, memoryBytes: NONE, staleAdmissions: 0 });
    expect(summary.limits).toMatchObject({ maxRequests: 2, maxMemoryBytes: 200 });
  });

  test("the old one binds b until a submission brings the new one at 60 ms, which binds c from 100 to 200 ms", () => {
    const waited = (constraint: string) => summary.binding?.shares.find((s) => s.constraint === constraint)?.waitedMs;
    expect(waited("runningLimit")).toBe(60 + 100);
    expect(waited("staleView")).toBe(40 + 40);
  });

  test("utilisation is of what there was: 1 for 60 ms, 2 for 240", () => {
    expect(summary.placesUtilisationShare).toBeCloseTo((100 + 200 + 100) / (60 + 2 * 240), 12);
    expect(summary.utilisationShare).toBeCloseTo((40 * 400) / (100 * 60 + 200 * 240), 12);
  });
});

describe("a limit that falls below what runs", () => {
  const story = new Stream()
    .submit(0, "a")
    .admit(0, "a", 10)
    .submit(0, "b")
    .admit(0, "b", 10)
    .submit(0, "c")
    .admit(0, "c", 10)
    .submit(100, "d")
    .queue(100, "d", ADM2(3, 1))
    .end(200, "a")
    .end(300, "b")
    .end(400, "c")
    .admit(400, "d", 10, "fromQueue", 300);
  const change = (s: Stream): PoolSummary => changedAt(100, pool({ maxRequests: 3 }), pool({ maxRequests: 1 }), s);

  test("those who run were let in by the old one: nobody is over it", () => {
    expect(change(story.end(500, "d")).overAdmission).toMatchObject({ running: NONE, staleAdmissions: 0 });
  });

  test("one more than the new one is one too many, from when there was room for one only", () => {
    const more = new Stream();
    more.events.push(...story.events.filter((e) => e.at < 450));
    more.submit(450, "e").admit(450, "e", 10).end(500, "d").end(500, "e");
    expect(change(more).overAdmission).toMatchObject({
      running: { most: 1, timeMs: 50, areaMs: 50 },
      staleAdmissions: 1,
    });
  });
});

test("limits that come or go leave no share of them", () => {
  const story = new Stream().submit(0, "a").admit(0, "a", 10).submit(100, "b").admit(100, "b", 10);
  story.end(200, "a").end(200, "b");
  expect(changedAt(100, pool({ maxRequests: 3 }), pool({}), story).placesUtilisationShare).toBeNull();
  expect(changedAt(100, pool({}), pool({ maxRequests: 3 }), story).placesUtilisationShare).toBeNull();
});
