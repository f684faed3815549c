/**
 * Parity (insight 7.1): records gone through again give every decision again, and a difference is seen where
 * it arises.
 */
import { describe, expect, test } from "vitest";
import type { EventOf, RunEvent } from "../../src/core/events.ts";
import { type Difference, Replay } from "../../src/sim/replay.ts";
import { simulateSeed } from "./random-simulation.ts";

type Call = EventOf<"controllerCall">;

/** As they would be read back from a file. */
function recordsOf(seed: number): RunEvent[] {
  const lines: string[] = [];
  simulateSeed(seed, { emit: (e) => lines.push(JSON.stringify(e)) });
  return lines.map((line) => JSON.parse(line) as RunEvent);
}

function replayed(records: readonly RunEvent[]): { difference: Difference | null; decisions: number } {
  const replay = new Replay();
  let difference: Difference | null = null;
  for (const event of records) difference ??= replay.take(event);
  return { difference, decisions: replay.counts.decisions };
}

type Submit = Extract<Call["call"], { readonly op: "submit" | "submitCancelled" }>;
interface SubmitCall extends Call {
  readonly call: Submit;
}

const submitsOf = (records: readonly RunEvent[]): SubmitCall[] =>
  records.filter((e): e is SubmitCall => e.kind === "controllerCall" && e.call.op === "submit");

describe("replay", () => {
  test.each(Array.from({ length: 40 }, (_, i) => 500 + i))("seed %i: every decision again", (seed) => {
    const records = recordsOf(seed);
    const { difference, decisions } = replayed(records);
    expect(difference).toBeNull();
    expect(decisions).toBeGreaterThanOrEqual(submitsOf(records).length);
  });

  test("seeds cover many controllers, faults and outcomes", () => {
    const kinds = new Set(Array.from({ length: 40 }, (_, i) => recordsOf(500 + i).map((e) => e.kind)).flat());
    for (const kind of ["admitted", "rejected", "timedOut", "cancelled", "hostLost", "fault", "unresolved"])
      expect(kinds).toContain(kind);
  });

  test("another answer in the records is the first difference, with both answers and the state", () => {
    const records = recordsOf(500);
    const victim = submitsOf(records)[3]!;
    const at = records.indexOf(victim);
    const lie = {
      ...victim,
      call: { ...victim.call, verdict: { ...victim.call.verdict, state: "cancelled" as const } },
    };
    const { difference } = replayed(records.with(at, lie));
    expect(difference).toMatchObject({ op: "submit", controller: victim.controller, at: victim.at });
    expect(difference?.recorded).toMatchObject({ state: "cancelled" });
    expect(difference?.replayed).toMatchObject({ state: victim.call.verdict.state });
    expect(difference?.state?.pools.length).toBeGreaterThan(0);
  });

  test("other limits decide otherwise", () => {
    const records = recordsOf(500);
    const tight = records.map((e) =>
      e.kind === "controllerCall" && e.call.op === "config"
        ? { ...e, call: { ...e.call, config: { ...e.call.config, maxRequests: 0 } } }
        : e,
    );
    const { difference } = replayed(tight);
    expect(difference?.op).toBe("submit");
    expect(difference?.replayed).toMatchObject({ state: "rejected", rejectReason: { rule: "REJ-A1" } });
  });

  test("a lost topic update shows at the first decision that depended on it", () => {
    const changed = Array.from({ length: 40 }, (_, i) => recordsOf(500 + i)).filter((records) => {
      const without = records.filter(
        (e) => !(e.kind === "controllerCall" && e.call.op === "apply" && e.call.entries.length > 0),
      );
      return replayed(without).difference !== null;
    });
    expect(changed.length).toBeGreaterThan(0);
  });

  test("records that begin in the middle say so", () => {
    const records = recordsOf(500).filter((e) => !(e.kind === "controllerCall" && e.call.op === "start"));
    expect(replayed(records).difference?.replayed).toContain("no controller of this name");
  });
});
