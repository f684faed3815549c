/**
 * Emulated time on real hardware: the machine's monotonic clock since the run began, times `scale.time`.
 *
 * The origin is a reading of the clock that all threads of the process share, so an instant means the same on every
 * thread. (`performance.now` counts from each thread's own start.)
 */
import type { Instant } from "../core/units.ts";

export interface ClockSettings {
  /** `monotonicMillis()` at emulated time 0. */
  readonly origin: number;
  /** Emulated milliseconds in a real one, > 0. */
  readonly scale: number;
}

/** `hrtime` is the same clock on every thread; `performance.now` reads it more cheaply. */
const OFFSET = hrtimeMillis() - performance.now();

export const monotonicMillis = (): number => performance.now() + OFFSET;

export class EmulatedClock {
  readonly settings: ClockSettings;

  constructor(settings: ClockSettings) {
    this.settings = settings;
  }

  /** Whole microseconds, so that a record and what was decided agree to the last digit. */
  now(): Instant {
    const { origin, scale } = this.settings;
    return (Math.floor((monotonicMillis() - origin) * scale * 1000) / 1000) as Instant;
  }

  /** Real milliseconds until then, at least 0. */
  realUntil(at: Instant): number {
    const { origin, scale } = this.settings;
    return Math.max(0, at / scale - (monotonicMillis() - origin));
  }
}

export const startClock = (scale: number): EmulatedClock => new EmulatedClock({ origin: monotonicMillis(), scale });

function hrtimeMillis(): number {
  const [seconds, nanos] = process.hrtime();
  return seconds * 1000 + nanos / 1e6;
}
