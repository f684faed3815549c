/**
 * One recorded run against its prediction: everything that `compare` and the bench print.
 */
import type { RunEvent } from "../../core/events.ts";
import { EventObserver } from "../event-observer.ts";
import type { SummaryFold } from "../summary-fold.ts";
import { type Causes, causesOf } from "./causes.ts";
import { type ComparisonContext, compareRuns, type PoolComparison } from "./comparison.ts";
import { type MeasuredRun, MeasuredRunFold } from "./measured-run.ts";
import { type PredictionSetting, predict } from "./prediction.ts";

export interface Fidelity {
  readonly queries: number;
  readonly measured: MeasuredRun;
  readonly pools: readonly PoolComparison[];
  /** The same with the live driver's measured delays put in. */
  readonly poolsWithDelays: readonly PoolComparison[];
  readonly causes: Causes;
}

export interface FidelitySetting extends PredictionSetting {
  readonly newFold: () => SummaryFold;
  readonly configOf: ComparisonContext["configOf"];
  readonly level?: number;
}

/** Takes the events of a recorded run, then compares. */
export class FidelityFold {
  readonly #setting: FidelitySetting;
  readonly #measured: MeasuredRunFold;
  readonly #summary: SummaryFold;
  readonly #observer: EventObserver;

  constructor(setting: FidelitySetting) {
    this.#setting = setting;
    this.#measured = new MeasuredRunFold(setting.scenario.cluster.admission);
    this.#summary = setting.newFold();
    this.#observer = new EventObserver(this.#summary);
  }

  add(event: RunEvent): void {
    this.#measured.add(event);
    this.#observer.add(event);
  }

  finish(isLive: boolean): Fidelity {
    const measured = this.#measured.finish();
    this.#observer.end(measured.until);
    const { predicted, summary } = predictedWithSummary(measured, this.#setting);
    const { scenario, level } = this.#setting;
    const { cluster } = scenario;
    const context: ComparisonContext = {
      configOf: this.#setting.configOf,
      controllers: cluster.admission === "admissiond" ? 1 : cluster.coordinators.reduce((n, c) => n + c.count, 0),
      ...(level === undefined ? {} : { level }),
      summaries: { measured: this.#summary.finish().pools, predicted: summary },
    };
    const causes = causesOf(measured, predicted, this.#setting, isLive);
    return {
      queries: measured.queries.length,
      measured,
      pools: compareRuns(measured, predicted, context),
      poolsWithDelays: compareRuns(measured, causes.predicted, context),
      causes,
    };
  }
}

function predictedWithSummary(measured: MeasuredRun, setting: FidelitySetting) {
  const summary = setting.newFold();
  const observer = new EventObserver(summary);
  const predicted = predict(measured, setting, undefined, (event) => observer.add(event));
  observer.end(predicted.until);
  return { predicted, summary: summary.finish().pools };
}
