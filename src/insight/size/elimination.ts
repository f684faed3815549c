/**
 * From a thousand settings to a handful that are known well (insight 3.4).
 *
 *     screening ---> windows by the pool model ---> walk by the rules ---> days by the rules
 *     arithmetic     1 h, 4 h, the whole day         cheapest first,        finalists and today's setting,
 *                    wide margins                     until one suffices     intervals over days
 *                                                     on a day and on all
 *
 * Must stay true: today's setting is never dropped, and no change is chosen where it suffices and none is cheaper;
 * a setting is dropped by the model only with margins far wider than the model's error; "feasible" is said only of
 * what the rules have run for the whole first day, "meets the goal" only of all days; "no worse than today" always
 * means on the same requests;
 * and the result is a function of problem, candidates and goal, whoever runs the jobs in whatever order.
 */
import { Selection } from "./intervals.ts";
import { lossOf, type Outcome, spillShareOf } from "./outcome.ts";
import type { Engine, Evaluate, Job } from "./problem.ts";
import { costOrder, costsNoMore, keyOf, type Setting } from "./setting.ts";
import { isSameRun, levelOf, outcomesOf, type SharingRules } from "./sharing.ts";
import type { Window } from "./windows.ts";

/** What is wanted; null: no worse than today's setting. */
export interface Aim {
  readonly p95: number | null;
  readonly loss: number;
  readonly spill: number | null;
}

/** The same in numbers, on some days; means over them. */
export interface Goal {
  /** Over all submitted, milliseconds. */
  readonly p95: number;
  /** Share of submitted. */
  readonly loss: number;
  /** Share of submitted. */
  readonly spill: number;
  /** Admissions a day onto hosts that are full: always today's, for a host that gives more than it has fails queries. */
  readonly onFullHosts: number;
}

const LEAST_TARGET = 1000;
const LEAST_SPILL = 0.001;

/** `now`: today's setting on these days. A second and a thousandth are always good enough, unless asked for. */
export const goalOn = (aim: Aim, now: readonly Outcome[]): Goal => ({
  p95: aim.p95 ?? Math.max(LEAST_TARGET, meanOf(now, p95Of)),
  loss: aim.loss,
  spill: aim.spill ?? Math.max(LEAST_SPILL, meanOf(now, spillShareOf)),
  onFullHosts: meanOf(now, onFullHostsOf),
});

export const meetsGoal = (days: readonly Outcome[], goal: Goal): boolean =>
  meanOf(days, lossOf) <= goal.loss &&
  meanOf(days, p95Of) <= goal.p95 &&
  meanOf(days, spillShareOf) <= goal.spill &&
  meanOf(days, onFullHostsOf) <= goal.onFullHosts;

const meanOf = (days: readonly Outcome[], pick: (o: Outcome) => number): number =>
  days.reduce((sum, o) => sum + pick(o), 0) / days.length;

const p95Of = (o: Outcome): number => o.p95;
const onFullHostsOf = (o: Outcome): number => o.onFullHosts;

export interface EliminationInput {
  readonly now: Setting;
  readonly candidates: readonly Setting[];
  readonly aim: Aim;
  /** Of day 0, the whole day last. */
  readonly windows: readonly Window[];
  /** Requests of each day. */
  readonly days: readonly number[];
  /** Several controllers: counts are not shared between runs of the rules. */
  readonly manyControllers: boolean;
  readonly screen: (s: Setting) => DropReason | null;
  readonly evaluate: Evaluate;
  readonly options: EliminationOptions;
}

export interface EliminationOptions {
  readonly finalists: number;
  /** Most runs of the rules on the way to the cheapest sufficient setting. */
  readonly walk: number;
  /** How many runs the walk keeps going at once. */
  readonly width: number;
  readonly alpha: number;
  /** Differences that do not matter: of the p95 in ms, of the loss. */
  readonly delta: { readonly p95: number; readonly loss: number };
  /** Days before anybody is dropped; with fewer days nobody is. */
  readonly firstDays: number;
  /** False: screen the windows by the rules too; for tests, and for traffic the model cannot play. */
  readonly useModel: boolean;
}

export const DEFAULT_OPTIONS: Omit<EliminationOptions, "delta"> = {
  finalists: 5,
  walk: 40,
  width: 2,
  alpha: 0.05,
  firstDays: 10,
  useModel: true,
};

export type DropReason =
  | "rejects"
  | "overload"
  | "loses too much"
  | "waits too long"
  | "spills too much"
  | "fills hosts too much"
  | "dominated"
  | "same outcome"
  | "not needed";

export interface Drop {
  readonly setting: Setting;
  readonly why: DropReason;
  /** Where: `screening`, a window, `walk`. */
  readonly where: string;
}

/** A setting with its whole days by the rules. */
export interface Finalist {
  readonly setting: Setting;
  /** By day; fewer than all where it was dropped on the way. */
  readonly outcomes: readonly Outcome[];
  /** On average over its days, against today's setting on the same days. */
  readonly meetsGoal: boolean;
}

export interface Elimination {
  /** Over all days. */
  readonly goal: Goal;
  readonly now: Finalist;
  /** In order of cost. */
  readonly finalists: readonly Finalist[];
  /** The cheapest of them and today's that meets the goal: what is advised. Null: none does. */
  readonly cheapest: Finalist | null;
  readonly drops: readonly Drop[];
  readonly effort: Effort;
}

/** Runs that were made, by engine, and the requests in them. */
export interface Effort {
  readonly candidates: number;
  readonly modelRuns: number;
  readonly modelQueries: number;
  readonly rulesRuns: number;
  readonly rulesQueries: number;
  /** Candidates still in after each step. */
  readonly left: readonly { readonly step: string; readonly candidates: number }[];
}

/** Margins of a window round: it is the worst part of the day. */
const WINDOW_LOSS = 10;
const WINDOW_P95 = 6;
/** Of the whole day by the model, whose p95 was seen to be off by a tenth. */
const DAY_LOSS = 3;
const DAY_P95 = 1.5;
/** Below it a wait is no wait, whatever the goal. */
const LEAST_P95 = 1000;

export async function eliminate(input: EliminationInput): Promise<Elimination> {
  const run = new Run(input);
  await run.firstDayOf([input.now]);
  let alive = run.screen(input.candidates);
  for (const [i, window] of input.windows.entries())
    alive = await run.windowRound(alive, window, i === input.windows.length - 1);
  const cheapest = await run.walk(alive);
  const finalists = await run.choose(alive, cheapest);
  return run.result(await run.days(finalists));
}

class Run {
  private readonly input: EliminationInput;
  private readonly byCost: (a: Setting, b: Setting) => number;
  private readonly dropped: Drop[] = [];
  private readonly left: { step: string; candidates: number }[] = [];
  private readonly effort = { modelRuns: 0, modelQueries: 0, rulesRuns: 0, rulesQueries: 0 };
  /** Whole first day, by engine. */
  private modelDay = new Map<string, Outcome>();
  private readonly rulesDay = new Map<string, Outcome>();
  /** Whole further days by the rules. */
  private readonly laterDays = new Map<string, Outcome>();
  private readonly rulesRun: { readonly setting: Setting; readonly outcome: Outcome }[] = [];

  constructor(input: EliminationInput) {
    this.input = input;
    this.byCost = costOrder(input.now);
  }

  // Rounds

  screen(candidates: readonly Setting[]): Setting[] {
    const nowKey = keyOf(this.input.now);
    const unique = [...new Map(candidates.map((s) => [keyOf(s), s])).values()].filter((s) => keyOf(s) !== nowKey);
    const alive = unique.filter((s) => {
      const why = this.input.screen(s);
      if (why !== null) this.drop(s, why, "screening");
      return why === null;
    });
    this.note("screening", alive);
    return alive;
  }

  async windowRound(alive: readonly Setting[], window: Window, isWhole: boolean): Promise<Setting[]> {
    const engine: Engine = this.input.options.useModel ? "model" : "rules";
    const sharing: SharingRules = { counts: engine === "model" || !this.input.manyControllers };
    const outcomes = await outcomesOf(alive, sharing, (batch) =>
      this.runJobs(batch.map((setting) => ({ engine, day: 0, from: window.from, to: window.to, setting }))),
    );
    if (isWhole) this.modelDay = outcomes;
    if (isWhole && engine === "rules") for (const [key, o] of outcomes) this.rulesDay.set(key, o);
    const { goal } = this;
    const most = {
      loss: goal.loss * (isWhole ? DAY_LOSS : WINDOW_LOSS),
      p95: Math.max(LEAST_P95, goal.p95) * (isWhole ? DAY_P95 : WINDOW_P95),
    };
    const within = alive.filter((s) => {
      const o = outcomes.get(keyOf(s))!;
      const why: DropReason | null =
        lossOf(o) > most.loss ? "loses too much" : o.p95 > most.p95 ? "waits too long" : null;
      if (why !== null) this.drop(s, why, window.name);
      return why === null;
    });
    const kept = this.withoutDominated(within, outcomes, window.name, isWhole);
    this.note(window.name, kept);
    return kept;
  }

  /** Worse or equal in everything than one that costs no more; equal outcomes count only over the whole day. */
  private withoutDominated(
    settings: readonly Setting[],
    outcomes: ReadonlyMap<string, Outcome>,
    where: string,
    isWhole: boolean,
  ): Setting[] {
    const inOrder = [...settings].sort(this.byCost);
    const kept: Setting[] = [];
    const falls = new Set<Setting>();
    for (const s of inOrder) {
      const mine = outcomes.get(keyOf(s))!;
      let why: DropReason | null = null;
      for (const other of kept) {
        if (!costsNoMore(other, s)) continue;
        const theirs = outcomes.get(keyOf(other))!;
        if (isDominatedBy(mine, theirs)) why = "dominated";
        else if (isWhole && isEqual(mine, theirs)) why = "same outcome";
        if (why !== null) break;
      }
      if (why === null) kept.push(s);
      else {
        falls.add(s);
        this.drop(s, why, where);
      }
    }
    return inOrder.filter((s) => !falls.has(s));
  }

  /**
   * By the rules, cheapest first, until one meets the goal on the first day and then on all: the first of many to
   * pass a day is one that this day flatters. Today's setting in its turn.
   */
  async walk(alive: readonly Setting[]): Promise<Setting | null> {
    const { now } = this.input;
    // Whether a query spills follows from its peak and its limit: the model knows it as well as the rules.
    const inOrder = [...alive, now]
      .sort(this.byCost)
      .filter((s) => s === now || spillShareOf(this.modelDay.get(keyOf(s))!) <= this.goal.spill);
    const { width, walk, finalists } = this.input.options;
    let runs = 0;
    let flattered = 0;
    for (let i = 0; i < inOrder.length; ) {
      const batch: Setting[] = [];
      let end = i;
      for (; end < inOrder.length && batch.length < width; end++)
        if (!this.isKnown(inOrder[end]!)) batch.push(inOrder[end]!);
      if (batch.length > 0 && runs + batch.length > walk) break;
      runs += batch.length;
      await this.firstDayOf(batch);
      for (; i < end; i++) {
        const s = inOrder[i]!;
        if (!this.isKnown(s)) break;
        const firstDay = this.rulesDay.get(keyOf(s))!;
        if (!meetsGoal([firstDay], this.goal)) {
          if (s !== now) this.drop(s, whyNot([firstDay], this.goal), "walk");
          continue;
        }
        await this.runDays([s, now], this.input.days.length);
        const days = this.allDaysOf(s);
        const goal = goalOn(this.input.aim, this.allDaysOf(now));
        if (meetsGoal(days, goal) || ++flattered === finalists) return s;
        if (s !== now) this.drop(s, whyNot(days, goal), "days");
      }
    }
    return null;
  }

  /** The cheapest, and those that buy something for more memory: each a fifth better than the one before. */
  async choose(alive: readonly Setting[], cheapest: Setting | null): Promise<Setting[]> {
    const { now, options } = this.input;
    const finalists = options.finalists + Number(cheapest === now);
    const o = (s: Setting): Outcome => this.rulesDay.get(keyOf(s)) ?? this.modelDay.get(keyOf(s))!;
    const better = [...alive]
      .sort(this.byCost)
      .filter((s) => cheapest === null || this.byCost(cheapest, s) < 0)
      .filter((s) => this.isNearlyFeasible(o(s)));
    const chosen = cheapest === null ? [] : [cheapest];
    for (const level of levelsOf(better)) {
      if (chosen.length >= finalists) break;
      const best = level.reduce((a, b) => (betterOf(o(a), o(b)) ? a : b));
      const last = chosen.at(-1);
      if (last === undefined || buysSomething(o(best), o(last))) chosen.push(best);
    }
    const taken = new Set(chosen.map(keyOf));
    for (const s of alive)
      if (!taken.has(keyOf(s)) && !this.dropped.some((d) => keyOf(d.setting) === keyOf(s)))
        this.drop(s, "not needed", "choice");
    const others = chosen.filter((s) => s !== now);
    this.note("finalists", others);
    return others;
  }

  /** Today's setting first, then the finalists: further days; with enough of them, whoever is worse in some objective and better in none is dropped. */
  async days(finalists: readonly Setting[]): Promise<Finalist[]> {
    const { now, days, options, aim } = this.input;
    const outcomes = new Map<string, Outcome[]>([now, ...finalists].map((s) => [keyOf(s), []]));
    const selection = new Selection(finalists.length, options.firstDays, options.alpha);
    let active = [...finalists];
    // Nobody is dropped before.
    await this.runDays([now, ...finalists], Math.min(days.length, options.firstDays));
    for (let day = 0; day < days.length; day++) {
      const running = [now, ...active];
      const done = await this.dayOf(running, day);
      running.forEach((s, i) => {
        outcomes.get(keyOf(s))!.push(done[i]!);
      });
      if (day + 1 >= options.firstDays) active = active.filter((s) => !this.isBeaten(s, active, outcomes, selection));
    }
    const today = outcomes.get(keyOf(now))!;
    return [now, ...finalists].map((setting) => {
      const own = outcomes.get(keyOf(setting))!;
      return { setting, outcomes: own, meetsGoal: meetsGoal(own, goalOn(aim, today.slice(0, own.length))) };
    });
  }

  private isBeaten(
    s: Setting,
    active: readonly Setting[],
    outcomes: ReadonlyMap<string, readonly Outcome[]>,
    selection: Selection,
  ): boolean {
    const { options } = this.input;
    const mine = outcomes.get(keyOf(s))!;
    const beaten = active.some((other) => {
      if (other === s || this.byCost(other, s) > 0) return false;
      const theirs = outcomes.get(keyOf(other))!;
      const worse = (pick: (o: Outcome) => number, delta: number): boolean =>
        selection.isWorse(mine.map(pick), theirs.map(pick), delta);
      const better = (pick: (o: Outcome) => number, delta: number): boolean =>
        selection.isWorse(theirs.map(pick), mine.map(pick), delta);
      const { p95, loss } = options.delta;
      return (worse(p95Of, p95) || worse(lossOf, loss)) && !better(p95Of, p95) && !better(lossOf, loss);
    });
    if (beaten) this.drop(s, "dominated", "days");
    return beaten;
  }

  result(known: readonly Finalist[]): Elimination {
    const [now, ...others] = known;
    const inOrder = [...known].sort((a, b) => this.byCost(a.setting, b.setting));
    return {
      goal: goalOn(this.input.aim, now!.outcomes),
      now: now!,
      finalists: others.sort((a, b) => this.byCost(a.setting, b.setting)),
      cheapest: inOrder.find((f) => f.meetsGoal) ?? null,
      drops: this.dropped,
      effort: { candidates: this.input.candidates.length, ...this.effort, left: this.left },
    };
  }

  // Runs

  /** Whole first day by the rules, from an earlier run where that is the same run. */
  async firstDayOf(settings: readonly Setting[]): Promise<readonly Outcome[]> {
    const missing = settings.filter((s) => !this.isKnown(s));
    const unique = [...new Map(missing.map((s) => [keyOf(s), s])).values()];
    const to = this.input.days[0]!;
    const done = await this.runJobs(unique.map((setting) => ({ engine: "rules", day: 0, from: 0, to, setting })));
    unique.forEach((setting, i) => {
      this.rulesDay.set(keyOf(setting), done[i]!);
      this.rulesRun.push({ setting, outcome: done[i]! });
    });
    return settings.map((s) => this.rulesDay.get(keyOf(s))!);
  }

  /** The first `count` days of each, all that are missing at once: what one thread waits for, others can use. */
  private async runDays(settings: readonly Setting[], count: number): Promise<void> {
    const later = Array.from({ length: count - 1 }, (_, i) => i + 1);
    await this.firstDayOf(settings);
    await this.runLater(settings.flatMap((setting) => later.map((day) => ({ setting, day }))));
  }

  /** Each of the whole day by the rules, once. */
  private async dayOf(settings: readonly Setting[], day: number): Promise<readonly Outcome[]> {
    if (day === 0) return this.firstDayOf(settings);
    await this.runLater(settings.map((setting) => ({ setting, day })));
    return settings.map((s) => this.laterDays.get(laterKey(s, day))!);
  }

  private async runLater(wanted: readonly { readonly setting: Setting; readonly day: number }[]): Promise<void> {
    const unknown = wanted.filter(({ setting, day }) => !this.laterDays.has(laterKey(setting, day)));
    const missing = [...new Map(unknown.map((w) => [laterKey(w.setting, w.day), w])).values()];
    const jobs = missing.map(
      ({ setting, day }): Job => ({ engine: "rules", day, from: 0, to: this.input.days[day]!, setting }),
    );
    const done = await this.runJobs(jobs);
    missing.forEach(({ setting, day }, i) => {
      this.laterDays.set(laterKey(setting, day), done[i]!);
    });
  }

  /** After `runDays`. */
  private allDaysOf(s: Setting): readonly Outcome[] {
    const later = this.input.days.slice(1).map((_, i) => this.laterDays.get(laterKey(s, i + 1))!);
    return [this.rulesDay.get(keyOf(s))!, ...later];
  }

  private isKnown(s: Setting): boolean {
    if (this.rulesDay.has(keyOf(s))) return true;
    const rules: SharingRules = { counts: !this.input.manyControllers };
    const same = this.rulesRun.find((r) => isSameRun(r.setting, r.outcome, s, rules));
    if (same !== undefined) this.rulesDay.set(keyOf(s), same.outcome);
    return same !== undefined;
  }

  private async runJobs(jobs: readonly Job[]): Promise<readonly Outcome[]> {
    if (jobs.length === 0) return [];
    for (const j of jobs) {
      if (j.engine === "model") {
        this.effort.modelRuns++;
        this.effort.modelQueries += j.to - j.from;
      } else {
        this.effort.rulesRuns++;
        this.effort.rulesQueries += j.to - j.from;
      }
    }
    return this.input.evaluate(jobs);
  }

  // Judgements

  /** On the first day, which today's setting has run. */
  private get goal(): Goal {
    const { now, aim } = this.input;
    return goalOn(aim, [this.rulesDay.get(keyOf(now))!]);
  }

  private isNearlyFeasible(o: Outcome): boolean {
    return (
      lossOf(o) <= this.goal.loss * DAY_LOSS &&
      o.p95 <= Math.max(LEAST_P95, this.goal.p95) * DAY_P95 &&
      o.onFullHosts <= this.goal.onFullHosts
    );
  }

  private drop(setting: Setting, why: DropReason, where: string): void {
    this.dropped.push({ setting, why, where });
  }

  private note(step: string, settings: readonly Setting[]): void {
    this.left.push({ step, candidates: settings.length });
  }
}

const whyNot = (days: readonly Outcome[], goal: Goal): DropReason =>
  meanOf(days, lossOf) > goal.loss
    ? "loses too much"
    : meanOf(days, p95Of) > goal.p95
      ? "waits too long"
      : meanOf(days, spillShareOf) > goal.spill
        ? "spills too much"
        : "fills hosts too much";

const isDominatedBy = (a: Outcome, b: Outcome): boolean =>
  b.p95 <= a.p95 &&
  lossOf(b) <= lossOf(a) &&
  spillShareOf(b) <= spillShareOf(a) &&
  b.onFullHosts <= a.onFullHosts &&
  (b.p95 < a.p95 || lossOf(b) < lossOf(a) || spillShareOf(b) < spillShareOf(a));

const isEqual = (a: Outcome, b: Outcome): boolean =>
  a.p95 === b.p95 &&
  lossOf(a) === lossOf(b) &&
  spillShareOf(a) === spillShareOf(b) &&
  a.onFullHosts === b.onFullHosts &&
  a.meanWait === b.meanWait;

/** Lower p95, then less loss, then fewer spills. */
const betterOf = (a: Outcome, b: Outcome): boolean =>
  a.p95 !== b.p95
    ? a.p95 < b.p95
    : lossOf(a) !== lossOf(b)
      ? lossOf(a) < lossOf(b)
      : spillShareOf(a) <= spillShareOf(b);

const buysSomething = (a: Outcome, before: Outcome): boolean =>
  a.p95 <= 0.8 * before.p95 - 1e-9 ||
  (a.p95 <= before.p95 && lossOf(before) > 0 && lossOf(a) <= 0.5 * lossOf(before)) ||
  (a.p95 <= before.p95 && spillShareOf(before) > 0 && spillShareOf(a) <= 0.5 * spillShareOf(before));

/** Settings that differ only in running, queue and timeout, in order of cost. */
function levelsOf(settings: readonly Setting[]): Setting[][] {
  const levels = new Map<string, Setting[]>();
  for (const s of settings) {
    const level = levels.get(levelOf(s));
    if (level === undefined) levels.set(levelOf(s), [s]);
    else level.push(s);
  }
  return [...levels.values()];
}

const laterKey = (s: Setting, day: number): string => `${day} ${keyOf(s)}`;
