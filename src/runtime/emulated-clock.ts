/**
 * Emulated time on real hardware: the machine's monotonic clock since the run began, times `scale.time`.
 *
 * The origin is a reading of the clock that all threads of the process share, so an instant means the same on every
 * thread. (`performance.now` counts from each thread's own start.)
 */
import type { Instant } from "../core/units.ts";

/**
 *   word      unit    written by                                how
 *   origin    f64[0]  main, once, before it hands out work      plain; the message that brings work publishes it
 */
export interface ClockSettings {
  /** `monotonicMillis()` at emulated time 0. */
  readonly origin: SharedArrayBuffer;
  /** Emulated milliseconds in a real one, > 0. */
  readonly scale: number;
}

/**
 * `hrtime` is the same clock on every thread; `performance.now` reads it more cheaply. Whatever comes between the two
 * readings makes the difference too small, so the largest of some is the thread's.
 */
const OFFSET = Math.max(...Array.from({ length: 16 }, () => hrtimeMillis() - performance.now()));

export const monotonicMillis = (): number => performance.now() + OFFSET;

export class EmulatedClock {
  readonly settings: ClockSettings;
  readonly #scale: number;
  readonly #origin: Float64Array;

  constructor(settings: ClockSettings) {
    this.settings = settings;
    this.#scale = settings.scale;
    this.#origin = new Float64Array(settings.origin);
  }

  /** Emulated time 0 is now. Only main calls it, before any other thread looks at the clock. */
  restart(): void {
    this.#origin[0] = monotonicMillis();
  }

  /** Whole microseconds, so that a record and what was decided agree to the last digit. */
  now(): Instant {
    return (Math.floor(this.#real() * this.#scale * 1000) / 1000) as Instant;
  }

  /** Real milliseconds until then, at least 0. */
  realUntil(at: Instant): number {
    return Math.max(0, at / this.#scale - this.#real());
  }

  #real(): number {
    return monotonicMillis() - this.#origin[0]!;
  }
}

export function startClock(scale: number): EmulatedClock {
  const clock = new EmulatedClock({ origin: new SharedArrayBuffer(8), scale });
  clock.restart();
  return clock;
}

function hrtimeMillis(): number {
  const [seconds, nanos] = process.hrtime();
  return seconds * 1000 + nanos / 1e6;
}
