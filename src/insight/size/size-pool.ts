/**
 * `waterhole size` from problem to report: goal, candidates, elimination, what bound, what would relieve.
 *
 * Who runs the jobs is the caller's business (`Evaluate`): this thread, a pool of threads, outcomes of other
 * machines. Everything here is a function of their outcomes.
 */
import type { EliminationOptions, Finalist } from "./elimination.ts";
import { type Aim, DEFAULT_OPTIONS, eliminate, goalOn } from "./elimination.ts";
import { type AskedValues, candidatesOf } from "./grid.ts";
import { type BindingShare, lossOf, type Outcome, spillShareOf } from "./outcome.ts";
import { roomOf } from "./pool-room.ts";
import { canAddExecutor, type Evaluate, Evaluator, type Job, jobKey, type SizeProblem } from "./problem.ts";
import { hasManyControllers } from "./rules-run.ts";
import { medianNeed } from "./saturation.ts";
import { screenedOut } from "./screening.ts";
import { configUnder, keyOf, type Setting, settingOf } from "./setting.ts";
import {
  type ForSigma,
  memoryText,
  type Relief,
  type ReliefEffect,
  type SizeReport,
  sizeReport,
} from "./size-report.ts";
import { type Window, windowsOf } from "./windows.ts";

export interface SizeOptions extends Aim {
  readonly asked: AskedValues;
  /** Candidates at most. */
  readonly most: number;
  readonly oversubscribe: number;
  readonly elimination: Partial<EliminationOptions>;
  /** Tried as they are, instead of a grid; for tests and for those who know what they want. */
  readonly candidates: readonly Setting[] | null;
}

export const DEFAULT_SIZE_OPTIONS: SizeOptions = {
  p95: null,
  loss: 0.001,
  spill: null,
  asked: {},
  most: 1000,
  oversubscribe: 1,
  elimination: {},
  candidates: null,
};

/** `part` takes this machine's share of the candidates; all of them when nothing is said. */
export async function sizePool(
  problem: SizeProblem,
  options: SizeOptions,
  evaluate: Evaluate,
  part: (all: readonly Setting[]) => readonly Setting[] = (all) => all,
): Promise<SizeReport> {
  const local = new Evaluator(problem);
  const day = problem.days[0]!;
  const base = local.configOf(problem.pool);
  const now = settingOf(base, problem.flags.queue_wait_timeout_ms);
  const needsUnder = (s: Setting) =>
    local
      .needs(0)
      .under(configUnder(base, s))
      .map((need, kind) => (day.kinds[kind]!.pool === problem.pool ? need : null));
  const needsNow = needsUnder(now);
  const windows = windowsOf(day, needsNow);
  const cached = withMemory(evaluate);
  const firstDay = goalOn(options, await cached([{ engine: "rules", day: 0, from: 0, to: day.count, setting: now }]));
  const book = local.needs(0);
  const peaks = book.peaksUnder(base);
  const room = roomOf(problem.pool, problem.configs, problem.scenario.cluster, options.oversubscribe);
  const candidates =
    options.candidates ??
    candidatesOf({
      requests: day,
      needs: needsNow,
      needsUnder,
      peaks,
      now,
      smallestHost: book.smallestHost,
      mostMemory: room.most,
      asked: options.asked,
      most: options.most,
    });
  const manyControllers = hasManyControllers(problem.scenario);
  const elimination = await eliminate({
    now,
    candidates: part(candidates),
    aim: options,
    windows,
    days: problem.days.map((d) => d.count),
    manyControllers,
    screen: (s) =>
      screenedOut(s, {
        requests: day,
        needs: needsUnder(s),
        needsNow,
        peaks,
        sigma: problem.sigma,
        loss: options.loss,
      }),
    evaluate: cached,
    options: {
      ...DEFAULT_OPTIONS,
      delta: { p95: Math.max(1, firstDay.p95 * 0.1), loss: 0.0005 },
      ...options.elimination,
    },
  });
  const worst = windows.at(-2) ?? windows[0]!;
  const shown = [elimination.now, ...elimination.finalists].map((f) => f.setting);
  const bindings = await bindingsOf(shown, worst, cached);
  const chosen = elimination.cheapest?.setting ?? null;
  const step = medianNeed(needsNow.filter((n) => n !== null).map((n) => n.cluster));
  const relief = [
    ...(await reliefOf("now", now, worst, problem, step, cached)),
    ...(chosen === null || keyOf(chosen) === keyOf(now)
      ? []
      : await reliefOf("chosen", chosen, worst, problem, step, cached)),
  ];
  const sigmas = await sigmasOf([elimination.now, ...elimination.finalists], problem, cached);
  return sizeReport({
    sigmas,
    observedConcurrency: problem.observedConcurrency,
    pool: problem.pool,
    room,
    notTried: (options.asked.memory ?? []).filter((m) => m > room.most),
    elimination,
    bindings,
    relief,
    assumptions: assumptionsOf(problem, sigmas.size > 0, worst, manyControllers),
  });
}

/** Outcomes once known are not run again: today's setting serves goal, days and relief. */
function withMemory(evaluate: Evaluate): Evaluate {
  const known = new Map<string, Outcome>();
  return async (jobs) => {
    const missing = [...new Map(jobs.map((j) => [jobKey(j), j])).values()].filter((j) => !known.has(jobKey(j)));
    if (missing.length > 0) {
      const done = await evaluate(missing);
      missing.forEach((j, i) => {
        known.set(jobKey(j), done[i]!);
      });
    }
    return jobs.map((j) => known.get(jobKey(j))!);
  };
}

async function bindingsOf(
  settings: readonly Setting[],
  window: Window,
  evaluate: Evaluate,
): Promise<Map<string, readonly BindingShare[]>> {
  const jobs = settings.map(
    (setting): Job => ({ engine: "rules", day: 0, from: window.from, to: window.to, setting, binding: true }),
  );
  const outcomes = await evaluate(jobs);
  return new Map(settings.map((s, i) => [keyOf(s), outcomes[i]!.binding ?? []]));
}

/** What rests on the price of spilling, for half of it and twice: nobody has measured it on this cluster. */
async function sigmasOf(
  known: readonly Finalist[],
  problem: SizeProblem,
  evaluate: Evaluate,
): Promise<ReadonlyMap<string, ForSigma>> {
  const spilling = known.filter((f) => f.outcomes[0] !== undefined && spillShareOf(f.outcomes[0]) > 0);
  const to = problem.days[0]!.count;
  const jobs = spilling.flatMap((f) =>
    [problem.sigma / 2, problem.sigma * 2].map(
      (sigma): Job => ({ engine: "rules", day: 0, from: 0, to, setting: f.setting, sigma }),
    ),
  );
  const outcomes = await evaluate(jobs);
  const finite = (n: number): number | null => (Number.isFinite(n) ? n : null);
  return new Map(
    spilling.map((f, i) => [
      keyOf(f.setting),
      {
        half: finite(outcomes[2 * i]!.p95),
        assumed: finite(f.outcomes[0]!.p95),
        double: finite(outcomes[2 * i + 1]!.p95),
      },
    ]),
  );
}

async function reliefOf(
  of: Relief["of"],
  setting: Setting,
  window: Window,
  problem: SizeProblem,
  step: number,
  evaluate: Evaluate,
): Promise<Relief[]> {
  const job = (changed: Setting, ease?: Job["ease"]): Job => ({
    engine: "rules",
    day: 0,
    from: window.from,
    to: window.to,
    setting: changed,
    ...(ease === undefined ? {} : { ease }),
  });
  const tries: { limit: Relief["limit"]; step: string; job: Job }[] = [];
  if (setting.maxMem >= 0)
    tries.push({
      limit: "memory",
      step: `${memoryText(step)} more memory`,
      job: job({ ...setting, maxMem: setting.maxMem + step }),
    });
  if (setting.maxRunning >= 0)
    tries.push({
      limit: "running",
      step: "one more running",
      job: job({ ...setting, maxRunning: setting.maxRunning + 1 }),
    });
  tries.push({
    limit: "queue",
    step: "a queue twice as long",
    job: job({ ...setting, maxQueued: setting.maxQueued * 2 }),
  });
  tries.push({ limit: "slots", step: "one more slot on every host", job: job(setting, "slots") });
  if (canAddExecutor(problem.scenario))
    tries.push({ limit: "executors", step: "one more executor", job: job(setting, "executors") });
  const [before, ...after] = await evaluate([job(setting), ...tries.map((t) => t.job)]);
  return tries.map((t, i) => reliefRow(of, t.limit, t.step, before!, after[i]!));
}

/** Less is no difference, even if the numbers differ. */
const WORTH_IT = 0.05;
const WORTH_MS = 1;
const WORTH_LOSS = 0.0001;

function reliefRow(of: Relief["of"], limit: Relief["limit"], step: string, before: Outcome, after: Outcome): Relief {
  const finite = (n: number): number | null => (Number.isFinite(n) ? n : null);
  return {
    of,
    limit,
    step,
    p95Ms: finite(after.p95),
    p95Before: finite(before.p95),
    loss: lossOf(after),
    lossBefore: lossOf(before),
    effect: effectOf(before, after),
  };
}

function effectOf(before: Outcome, after: Outcome): ReliefEffect {
  const isLess = (a: number, b: number, worth: number): boolean => a < b * (1 - WORTH_IT) - worth;
  const betters = isLess(after.p95, before.p95, WORTH_MS) || isLess(lossOf(after), lossOf(before), WORTH_LOSS);
  const worsens = isLess(before.p95, after.p95, WORTH_MS) || isLess(lossOf(before), lossOf(after), WORTH_LOSS);
  return betters ? (worsens ? "trades" : "helps") : worsens ? "worsens" : "none";
}

function assumptionsOf(problem: SizeProblem, usesSigma: boolean, worst: Window, many: boolean): string[] {
  return [
    "holds do not change with load",
    problem.days.length === 1
      ? "one day: the numbers are exact for it, and say nothing of others"
      : `${problem.days.length} simulated days`,
    `binding and relief are those of the ${worst.name}`,
    ...(usesSigma ? [`a query that spills takes 1 + ${problem.sigma} (peak / limit - 1) times as long`] : []),
    ...problem.remarks,
    ...(many ? ["several controllers: over-admission is in the numbers"] : []),
  ];
}
