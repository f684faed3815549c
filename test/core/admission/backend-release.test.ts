import { describe, expect, test } from "vitest";
import { BackendRelease } from "../../../src/core/admission/backend-release.ts";
import { at } from "../fixtures.ts";

/** Backends finish at their times; `calls` are the batches that were released, each at its time. */
function play(numBackends: number, coordinator: number, ends: readonly (readonly [backend: number, time: number])[]) {
  const release = new BackendRelease(numBackends, coordinator, at(0));
  const calls: string[] = [];
  for (const [backend, time] of ends) {
    const due = release.finished(backend, at(time));
    if (due.length === 0) continue;
    calls.push(`${time}: ${due.join(" ")}`);
    release.released(due);
  }
  return { calls, rest: release.close() };
}

describe("9.1 releasing backends in batches", () => {
  test("timed and batched must hold together (T-57)", () => {
    const early = [1, 2, 3, 4].map((b) => [b, 900] as const);
    expect(play(8, 0, early)).toEqual({ calls: [], rest: [0, 1, 2, 3, 4, 5, 6, 7] });
    expect(play(8, 0, [...early, [5, 1000]]).calls, "the delay is exclusive").toEqual([]);
    expect(play(8, 0, [...early, [5, 1001]]).calls).toEqual(["1001: 1 2 3 4 5"]);
  });

  test("too few are not released however late", () => {
    expect(
      play(8, 0, [
        [1, 5000],
        [2, 6000],
        [3, 7000],
      ]).calls,
    ).toEqual([]);
    expect(
      play(8, 0, [
        [1, 5000],
        [2, 6000],
        [3, 7000],
        [4, 8000],
      ]).calls,
    ).toEqual(["8000: 1 2 3 4"]);
  });

  test("batches halve: 16 backends take 8, then 4, then 2, then 1", () => {
    const ends = Array.from({ length: 15 }, (_, i) => [i + 1, (i + 1) * 2000] as const);
    expect(play(16, 0, ends).calls).toEqual([
      "16000: 1 2 3 4 5 6 7 8",
      "24000: 9 10 11 12",
      "28000: 13 14",
      "30000: 15",
    ]);
  });

  test("exactly one in use while the coordinator isn't released, whichever one that is (T-57)", () => {
    expect(
      play(3, 0, [
        [1, 10],
        [2, 20],
      ]).calls,
    ).toEqual(["20: 1 2"]);
    expect(
      play(3, 0, [
        [0, 10],
        [1, 20],
      ]).calls,
      "the coordinator is among the released",
    ).toEqual(["20: 0 1"]);
  });

  test("a backend that finishes twice, or after the end, changes nothing", () => {
    const release = new BackendRelease(3, 0, at(0));
    release.finished(1, at(10));
    expect(release.finished(1, at(20))).toEqual([]);
    expect(release.close()).toEqual([0, 1, 2]);
    expect(release.finished(2, at(30))).toEqual([]);
  });

  test("released ones are not in the last call", () => {
    expect(
      play(4, 0, [
        [1, 1500],
        [2, 1600],
      ]),
    ).toEqual({ calls: ["1600: 1 2"], rest: [0, 3] });
  });

  test("a single backend waits for the end", () => {
    expect(play(1, 0, [[0, 10]])).toEqual({ calls: [], rest: [0] });
  });
});
