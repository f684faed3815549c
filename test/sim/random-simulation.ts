/** A seed of the sweep, run with somebody listening. */
import type { RunEvent } from "../../src/core/events.ts";
import type { RunObserver } from "../../src/core/run-observer.ts";
import { simulate } from "../../src/sim/simulate.ts";
import { randomRun } from "../../src/sim/sweep/random-scenario.ts";
import { partsOf } from "../../src/sim/sweep/sweep.ts";

export interface Listener {
  readonly emit?: (event: RunEvent) => void;
  readonly observer?: RunObserver;
  readonly looksAtHosts?: boolean;
}

export function simulateSeed(seed: number, listener: Listener): void {
  simulate({ ...partsOf(randomRun(seed)), ...listener });
}
