/**
 * Both drivers' executors do the same sums: a footprint on a real ledger comes to what virtual time says of it.
 *
 * Live it moves in pieces and pages, virtual time knows its course: what is held may differ by a piece that is not
 * tried any smaller, what is spilled by the block that is written at least.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { FootprintProfile, QueryClass } from "../../src/config/scenario.ts";
import { parseScenario } from "../../src/config/scenario-file.ts";
import { reservationLimitFor } from "../../src/core/memory/reservation-limit.ts";
import { xoshiroFor } from "../../src/core/random.ts";
import { type Bytes, MiB, type Millis } from "../../src/core/units.ts";
import { hostWork } from "../../src/sim/work.ts";
import { footprintMinimum } from "../../src/workload/footprint-minimum.ts";
import { FootprintThread } from "./footprint-thread.ts";

const DURATION = 800;
/** O4: the smallest piece that a refused growth is tried in. */
const PIECE = 2 * MiB;
const PROFILES: readonly FootprintProfile[] = ["flat", "ramp", "spike", "triangle"];

let scratch = "";
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), "waterhole-test-"));
});
afterEach(() => rmSync(scratch, { recursive: true, force: true }));

interface Case {
  readonly profile: FootprintProfile;
  readonly peak: number;
  readonly memLimit: number;
  readonly spillable: boolean;
}

function drawn(seed: number): Case {
  const dice = xoshiroFor(seed, 0, "virtual executor");
  const below = (n: number): number => Math.floor(dice.uniform() * n);
  return {
    profile: PROFILES[below(PROFILES.length)]!,
    peak: MiB + below(96 * MiB),
    memLimit: below(4) === 0 ? -1 : 34 * MiB + below(100 * MiB),
    spillable: below(3) > 0,
  };
}

function classOf({ profile, peak, spillable }: Case): QueryClass {
  const q = { estimate: "1gb", uses: { peak: `${peak}b`, shape: profile, spillable }, duration: `${DURATION}ms` };
  const text = JSON.stringify({ cluster: { executors: [{ memory: "64gb" }] }, pools: "flags", queries: { q } });
  return parseScenario(text.replace(/}$/, ',"arrivals":[{"at":"0s"}]}'), "executor.json").queries[0]!;
}

interface Outcome {
  readonly fails: boolean;
  readonly peak: number;
  readonly spilled: number;
}

function virtual(c: Case, queryClass: QueryClass, room: number): Outcome {
  const model = { scratchBandwidth: 1024 * MiB, cores: null };
  const wanted = { peak: c.peak, duration: DURATION * 1000, spilled: 0 };
  const { wants, peak, spilled } = hostWork(queryClass, model, wanted, { bytes: room, refused: null });
  return { fails: wants !== null, peak, spilled };
}

function live(c: Case, minimum: number): Outcome {
  const thread = new FootprintThread(scratch, 512 * MiB);
  const memory = { memLimit: c.memLimit as Bytes, minReservation: minimum as Bytes, claim: minimum as Bytes };
  const { profile, spillable } = c;
  thread.run({ ...memory, peak: c.peak as Bytes }, { profile, spillable, duration: DURATION as Millis });
  thread.moveTo(DURATION);
  const { error, peak, spilled } = thread.end()!;
  return { fails: error !== null, peak, spilled };
}

describe("R8, O3 the same limit, the same refusals", () => {
  test.each(Array.from({ length: 150 }, (_, i) => i + 1))("footprint of seed %d", (seed) => {
    const c = drawn(seed);
    const queryClass = classOf(c);
    const room = reservationLimitFor(c.memLimit, -1, 0);
    const minimum = footprintMinimum(queryClass.uses, 0, c.peak, room, 1);
    const foretold = virtual(c, queryClass, room);
    const real = live(c, minimum);
    expect(real.fails).toBe(foretold.fails);
    expect(foretold.peak - real.peak).toBeGreaterThanOrEqual(0);
    expect(foretold.peak - real.peak).toBeLessThanOrEqual(PIECE);
    expect(real.spilled > 0).toBe(foretold.spilled > 0);
    expect(real.spilled - foretold.spilled).toBeGreaterThanOrEqual(0);
    expect(real.spilled - foretold.spilled).toBeLessThanOrEqual(PIECE);
  });
});
