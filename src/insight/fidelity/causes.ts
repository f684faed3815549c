/**
 * Where a difference between a measured and a predicted run comes from (insight 7.5): each delay of the live driver
 * that the records carry is put into the simulation by itself, and what it moves the mean wait by is its part.
 *
 * Delays that lie inside the measured holds move nothing and are only told: the prediction has them already.
 */
import { quantileOfSorted, sortedCopy } from "../quantile.ts";
import { mean, waitOf } from "./comparison.ts";
import type { MeasuredRun } from "./measured-run.ts";
import { type MeasuredDelays, NO_DELAYS, type PredictionSetting, predict } from "./prediction.ts";

export interface Cause {
  readonly name: string;
  /** As recorded, milliseconds; null: the records hold none. */
  readonly recorded: { readonly mean: number; readonly median: number; readonly p99: number } | null;
  /** Mean wait over all admitted with it switched on; null: it lies in the measured holds. */
  readonly meanWait: number | null;
  /** Of the difference between measured and predicted mean wait; null with the one before, or where they are equal. */
  readonly explains: number | null;
}

export interface Causes {
  readonly measuredMeanWait: number;
  readonly predictedMeanWait: number;
  readonly causes: readonly Cause[];
  /** All that can be switched on, together. */
  readonly together: Cause;
  /** With all of them on. */
  readonly predicted: MeasuredRun;
}

/** `isLive`: in virtual time exchanges that bring nothing are left out, so what is between two says nothing. */
export function causesOf(
  measured: MeasuredRun,
  predicted: MeasuredRun,
  setting: PredictionSetting,
  isLive: boolean,
): Causes {
  const before = { measured: meanWait(measured), predicted: meanWait(predicted) };
  const { queries } = measured;
  const admitted = queries.filter((q) => q.decision === "admitted");
  const intervals = isLive ? intervalsOf(measured) : [];
  const lags = queries.map((q) => q.submitted - q.intended);
  const wakeUps = admitted.filter((q) => q.wakeUp > 0).map((q) => q.wakeUp);
  const switched = (name: string, recorded: readonly number[], delays: Partial<MeasuredDelays>): Cause =>
    causeOf(name, recorded, meanWait(predict(measured, setting, { ...NO_DELAYS, ...delays })), before);
  const told = (name: string, recorded: readonly number[]): Cause => ({
    name,
    recorded: spreadOf(recorded),
    meanWait: null,
    explains: null,
  });
  const all = predict(measured, setting, { submitLag: true, wakeUp: true, exchanges: isLive });
  return {
    measuredMeanWait: before.measured,
    predictedMeanWait: before.predicted,
    causes: [
      switched("submit lag", lags, { submitLag: true }),
      switched("wake-up", wakeUps, { wakeUp: true }),
      told("start-up", spans(admitted.map((q) => q.startedAt - q.decidedAt))),
      told("release lag", spans(admitted.map((q) => q.releasedAt - q.workedUntil))),
      switched("topic rounds", intervals, { exchanges: isLive }),
    ],
    together: causeOf("together", [], meanWait(all), before),
    predicted: all,
  };
}

function causeOf(
  name: string,
  recorded: readonly number[],
  withIt: number,
  before: { readonly measured: number; readonly predicted: number },
): Cause {
  const difference = before.measured - before.predicted;
  const explains = difference === 0 ? null : (withIt - before.predicted) / difference;
  return { name, recorded: spreadOf(recorded), meanWait: withIt, explains };
}

/** Between two exchanges of one controller. The first view of a run is not an exchange of its round. */
function intervalsOf({ applied }: MeasuredRun): number[] {
  return [...applied.values()].flatMap((times) => times.slice(2).map((at, i) => at - times[i + 1]!));
}

const spans = (values: readonly number[]): number[] => values.filter((v) => !Number.isNaN(v));

function meanWait({ queries }: MeasuredRun): number {
  return mean(queries.filter((q) => q.decision === "admitted").map(waitOf));
}

function spreadOf(values: readonly number[]): Cause["recorded"] {
  if (values.length === 0) return null;
  const sorted = sortedCopy(values);
  return { mean: mean(values), median: quantileOfSorted(sorted, 0.5), p99: quantileOfSorted(sorted, 0.99) };
}
