/**
 * How long a query held its place, and how long it would have, had it not been cut off (insight 4.2, 4.3).
 *
 * The wait must never be in the hold: under load it mostly is the total time, and a replay would then wait for
 * the waiting. Queries that failed or were cancelled while running show only that they would have held
 * longer; leaving them out would make everybody shorter than they are.
 */
import { isAdmitted, type LoggedQuery } from "./logged-query.ts";

export type HoldRule = "lastRow" | "unregister";

/** Time from admission to the return of the place in microseconds; null: not admitted, or the log has no end. */
export function holdOf(q: LoggedQuery, rule: HoldRule): number | null {
  if (!isAdmitted(q.outcome) || q.completedAdmission === null) return null;
  const end = endOfHold(q, rule);
  return end === null ? null : end - q.completedAdmission;
}

function endOfHold(q: LoggedQuery, rule: HoldRule): number | null {
  // A profile tells the very moment; the table knows only the events around it.
  if (rule === "lastRow") return q.released ?? q.lastRow ?? q.unregistered;
  return q.unregistered ?? q.released ?? q.lastRow;
}

/** Waiting for admission; null where admission never saw it or the log lacks the events. */
export function waitOf(q: LoggedQuery): number | null {
  if (q.outcome === "none" || q.completedAdmission === null) return null;
  return q.completedAdmission - (q.submitted ?? 0);
}

/** A value that was reached (`cut: false`) or only known to be exceeded. */
export interface Observation {
  readonly value: number;
  readonly cut: boolean;
}

/**
 * Product-limit estimate of a distribution from partly cut observations (Kaplan and Meier 1958).
 *
 * `values` are the uncut ones in rising order, `survival[i]` the chance to exceed `values[i]`. Where a cut and
 * an uncut value coincide, the cut one counts as still there, as is usual.
 */
export class ProductLimit {
  private readonly values: readonly number[];
  private readonly survival: readonly number[];

  constructor(observations: readonly Observation[]) {
    const sorted = [...observations].sort((a, b) => a.value - b.value || Number(a.cut) - Number(b.cut));
    const values: number[] = [];
    const survival: number[] = [];
    let atRisk = sorted.length;
    let alive = 1;
    for (let i = 0; i < sorted.length; ) {
      const { value } = sorted[i]!;
      let ended = 0;
      let gone = 0;
      for (; i < sorted.length && sorted[i]!.value === value; i++) {
        gone++;
        if (!sorted[i]!.cut) ended++;
      }
      if (ended > 0) {
        alive *= 1 - ended / atRisk;
        values.push(value);
        survival.push(alive);
      }
      atRisk -= gone;
    }
    this.values = values;
    this.survival = survival;
  }

  get isEmpty(): boolean {
    return this.values.length === 0;
  }

  /** Chance to exceed `value`. */
  beyond(value: number): number {
    let s = 1;
    for (let i = 0; i < this.values.length && this.values[i]! <= value; i++) s = this.survival[i]!;
    return s;
  }

  /**
   * A value above `cut`, `u` uniform in (0, 1). What the observations leave open beyond the last uncut value
   * becomes that value; nothing is ever below the cut.
   */
  drawBeyond(cut: number, u: number): number {
    const target = this.beyond(cut) * (1 - u);
    for (let i = 0; i < this.values.length; i++)
      if (this.values[i]! > cut && this.survival[i]! <= target) return this.values[i]!;
    return Math.max(cut, this.values.at(-1) ?? cut);
  }
}
