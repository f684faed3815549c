/**
 * What a scenario vector expects, held against what has happened (README of the vectors, scenario). One small check
 * for each key; a key that nobody knows is an error, never a silent pass.
 */
import type { PoolFigures } from "../model/port.ts";
import { addressOf, type Cluster, hostOf, type Outcome, type Query, RESULT_TEXT } from "./cluster.ts";
import { evaluate, holds } from "./expressions.ts";

// biome-ignore lint/suspicious/noExplicitAny: the vectors' own schema.
type Any = any;

/** Everything running was closed at once; `growth`: how many were admitted then. */
export interface Wave {
  readonly remainingQueued: number;
  readonly growth: number;
}

export interface SoFar {
  readonly cluster: Cluster;
  /** Over all coordinators. */
  readonly counts: Readonly<Record<string, number>>;
  /** As they were at the story's first check. */
  readonly initialCounts: Readonly<Record<string, number>>;
  readonly waves: readonly Wave[];
  readonly flagAccepted: Readonly<Record<string, boolean>>;
  readonly verdictOf: (q: Query) => string | null;
}

export class Expectations {
  private readonly soFar: SoFar;
  private readonly when: string;
  private complaints: string[] = [];

  constructor(soFar: SoFar, when: string) {
    this.soFar = soFar;
    this.when = when;
  }

  /** One line for each thing that isn't as expected. */
  check(expected: Readonly<Record<string, Any>>): string[] {
    const { any_of, ...all } = expected;
    this.complaints = [];
    for (const [key, want] of Object.entries(all)) this.checkKey(key, want);
    const { complaints } = this;
    if (any_of === undefined) return complaints;
    const alternatives: string[][] = any_of.map((one: Any) => new Expectations(this.soFar, this.when).check(one));
    return alternatives.some((wrong) => wrong.length === 0) ? complaints : [...complaints, ...alternatives.flat()];
  }

  private checkKey(key: string, want: Any): void {
    const check = this.checks[key];
    if (check !== undefined) check(want);
    else if (key in OF_A_QUERY) this.checkEachQuery(key, want);
    else if (!this.checkNumberOfTexts(key, want)) this.checkTexts(key, want);
  }

  private fail(what: string, want: unknown, got: unknown): void {
    this.complaints.push(`${this.when}: ${what} is ${JSON.stringify(got)}, expected ${JSON.stringify(want)}`);
  }

  private equal(what: string, want: unknown, got: unknown): void {
    if (JSON.stringify(want) !== JSON.stringify(got)) this.fail(what, want, got);
  }

  private atLeast(what: string, least: number, got: number): void {
    if (!(got >= least)) this.fail(what, `>= ${least}`, got);
  }

  // ---- by key -------------------------------------------------------------------------------------------------------

  private readonly checks: Readonly<Record<string, (want: Any) => void>> = {
    outcomes: (want) => {
      for (const [name, outcome] of entries(want)) {
        const q = this.query(name);
        if (!isOutcome(q.outcome, outcome)) this.fail(`outcome of ${name}`, outcome, `${q.outcome} ${q.error}`);
      }
    },
    outcome_counts: (want) => {
      for (const [outcome, n] of entries(want)) this.equal(`number of ${outcome}`, n, this.withOutcome(outcome).length);
    },
    min_outcome_counts: (want) => {
      for (const [outcome, n] of entries(want))
        this.atLeast(`number of ${outcome}`, n, this.withOutcome(outcome).length);
    },
    outcome_counts_zero: (want) => {
      for (const outcome of want) this.equal(`number of ${outcome}`, 0, this.withOutcome(outcome).length);
    },
    each: (want) => {
      for (const [outcome, texts] of entries(want))
        for (const q of this.withOutcome(outcome))
          for (const [key, text] of entries(texts)) this.checkText(q, key, text);
    },

    counts: (want) => {
      for (const [name, n] of entries(want)) this.equal(name, n, this.named(name));
    },
    min_counts: (want) => {
      for (const [name, n] of entries(want)) this.atLeast(name, n, this.named(name));
    },
    counts_range: (want) => {
      for (const [name, [least, most]] of entries(want)) {
        const got = this.named(name);
        const [low, high] = [evaluate(least, this.named), evaluate(most, this.named)];
        if (got < low || got > high) this.fail(name, [low, high], got);
      }
    },
    counts_sum: (want) => {
      const sum = want.of.reduce((total: number, name: string) => total + this.named(name), 0);
      this.equal(`sum of ${want.of.join(", ")}`, want.equals, sum);
    },
    relations: (want) => {
      for (const relation of want) if (!holds(relation, this.named)) this.fail(relation, true, this.soFar.counts);
    },
    per_wave: (want) => this.checkWaves(want),
    still_queued: (want) => {
      this.equal("number queued", want, this.all.filter((q) => !q.gone && q.outcome === "queued").length);
    },

    metrics: (want) => {
      for (const [name, value] of entries(want)) this.equal(name, value, this.metric(name));
    },
    min_metrics: (want) => {
      for (const [name, n] of entries(want)) this.atLeast(name, n, this.metric(name));
    },
    metrics_increased: (want) => {
      for (const name of want) this.atLeast(name, 1, this.metric(name));
    },

    planner_verdict: (want) => {
      for (const [name, verdict] of entries(want))
        this.equal(`verdict on ${name}`, verdict, this.soFar.verdictOf(this.query(name)));
    },
    hosts_used: (want) => {
      for (const [name, hosts] of entries(want)) {
        const used = this.query(name).admission?.backends.map((b) => hostOf(b.address)) ?? [];
        this.equal(`hosts of ${name}`, [...hosts].sort(), used.sort());
      }
    },
    finished: (want) => {
      for (const name of want) this.equal(`${name} finished`, true, this.query(name).gone);
    },
    all_finished: (want) =>
      this.equal(
        "everything finished",
        want,
        this.all.every((q) => q.gone),
      ),
    in_flight: (want) => this.equal("queries in flight", want, this.all.filter((q) => !q.gone).length),

    mem_admitted_by_host: (want) => {
      for (const [host, mem] of entries(want)) this.equal(`memory admitted on ${host}`, mem, this.memAdmittedOn(host));
    },
    executors_at_zero: (want) => {
      const idle = this.soFar.cluster.liveHosts().filter((h) => h.executor && this.memAdmittedOn(h.name) === 0);
      this.equal("executors without admitted memory", want, idle.length);
    },
    queries_per_host: (want) => {
      const { cluster } = this.soFar;
      for (const { name } of cluster.liveHosts()) this.equal(`queries on ${name}`, want, cluster.queriesOn(name));
    },
    current_users: (want) => this.checkUsers(want),

    staleness_contains: (want) => {
      const { cluster } = this.soFar;
      for (const { name, controller } of cluster.controllers()) {
        const text = controller.stalenessText(cluster.time.now);
        for (const part of [want].flat()) if (!text.includes(part)) this.fail(`staleness at ${name}`, part, text);
      }
    },
    min_ms_since_update: (want) => {
      const { cluster } = this.soFar;
      for (const host of cluster.liveCoordinators())
        this.atLeast(`ms since an update at ${host}`, want, cluster.msSinceUpdate(host) ?? Number.POSITIVE_INFINITY);
    },
    flag_accepted: (want) => {
      for (const [value, accepted] of entries(want))
        this.equal(`flag value ${value} accepted`, accepted, this.soFar.flagAccepted[value]);
    },
  };

  private checkEachQuery(key: string, want: Any): void {
    for (const [name, value] of entries(want))
      this.equal(`${key} of ${name}`, value, OF_A_QUERY[key]!(this.query(name)));
  }

  private checkWaves(rule: string): void {
    const found = /^admitted grows by (.*)$/.exec(rule);
    if (found === null) throw new Error(`this stepper doesn't know the rule "${rule}" for waves`);
    for (const { remainingQueued, growth } of this.soFar.waves) {
      const names = (name: string): number => (name === "remaining queued" ? remainingQueued : this.named(name));
      this.equal(`growth of a wave with ${remainingQueued} queued`, evaluate(found[1]!, names), growth);
    }
  }

  /** By host: over all its pools. By pool: at every coordinator. */
  private checkUsers(want: Any): void {
    const controllers = this.soFar.cluster.controllers();
    for (const [name, users] of entries(want)) {
      const atHost = controllers.filter((c) => c.name === name);
      for (const { name: at, controller } of atHost.length > 0 ? atHost : controllers) {
        const { pools } = controller.figures();
        const seen: (PoolFigures | undefined)[] = atHost.length > 0 ? Object.values(pools) : [pools[name]];
        const known = (of: (p: PoolFigures) => object): string[] =>
          [...new Set(seen.flatMap((p) => (p === undefined ? [] : Object.keys(of(p)))))].sort();
        if (users.agg !== undefined)
          this.equal(
            `users known at ${at}`,
            [...users.agg].sort(),
            known((p) => p.aggUsers),
          );
        if (users.local !== undefined)
          this.equal(
            `own users of ${at}`,
            [...users.local].sort(),
            known((p) => p.localUsers),
          );
      }
    }
  }

  // ---- texts --------------------------------------------------------------------------------------------------------

  /** `error_contains`, `latest_queue_reason`, `profile_regex`, ...: by query. */
  private checkTexts(key: string, want: Any): void {
    for (const [name, text] of entries(want)) this.checkText(this.query(name), key, text);
  }

  private checkText(q: Query, key: string, want: Any): void {
    const [, what = "", how = "contains"] = /^(.*?)(?:_(contains|equals|regex))?$/.exec(key) ?? [];
    const text = textOf(q, what);
    const fits = (one: string): boolean =>
      how === "equals" ? text === one : how === "regex" ? new RegExp(one, "s").test(text) : text.includes(one);
    for (const one of [want].flat()) if (!fits(one)) this.fail(`${what} of ${q.spec.name}`, one, text);
  }

  /** `..._counts`: how many queries have a text that fits. False: the key is of another kind. */
  private checkNumberOfTexts(key: string, want: Any): boolean {
    const found = /^(min_)?(error|initial_queue_reason|latest_queue_reason|profile)(?:_regex)?_counts$/.exec(key);
    if (found === null) return false;
    const texts = this.all.map((q) => textOf(q, found[2]!));
    for (const { contains, regex, dotall, count } of want) {
      const pattern = regex === undefined ? null : new RegExp(regex, dotall ? "s" : "");
      const fitting = texts.filter((text) => (pattern === null ? text.includes(contains) : pattern.test(text)));
      const what = `number of texts with ${contains ?? regex} among ${[...new Set(texts)].join(" | ")}`;
      if (found[1] === "min_") this.atLeast(what, count, fitting.length);
      else this.equal(what, count, fitting.length);
    }
    return true;
  }

  // ---- figures ------------------------------------------------------------------------------------------------------

  private get all(): readonly Query[] {
    return this.soFar.cluster.queries;
  }

  private query(name: string): Query {
    return this.soFar.cluster.byName(name);
  }

  private withOutcome(outcome: string): readonly Query[] {
    return this.all.filter((q) => isOutcome(q.outcome, outcome));
  }

  private memAdmittedOn(host: string): number {
    return this.soFar.cluster
      .controllers()
      .reduce((sum, { controller }) => sum + (controller.figures().hosts[addressOf(host)]?.memAdmitted ?? 0), 0);
  }

  /** A product metric by its name without `admission-controller.`, the pool's name at its end. */
  private metric(name: string): number {
    const { cluster } = this.soFar;
    if (name === "num-queries") return cluster.theService().numQueries();
    if (name === "num-queries-high-water-mark") return cluster.theService().highWaterMark();
    const figures = cluster.controllers().map(({ controller }) => controller.figures());
    if (name === "total-dequeue-failed-coordinator-limited")
      return figures.reduce((sum, f) => sum + f.coordinatorLimited, 0);
    const dot = name.indexOf(".");
    const of = METRICS[name.slice(0, dot)];
    if (of === undefined) throw new Error(`this stepper has no metric "${name}"`);
    const values = figures.flatMap((f) => f.pools[name.slice(dot + 1)] ?? []).map(of);
    // An aggregate is everybody's view of the same thing; the others are shares.
    return name.startsWith("agg-") ? Math.max(0, ...values) : values.reduce((a, b) => a + b, 0);
  }

  private readonly named = (name: string): number => {
    const initial = /^initial (.*)$/.exec(name);
    const value = initial === null ? this.soFar.counts[name] : this.soFar.initialCounts[initial[1]!];
    if (value === undefined) throw new Error(`no count is called "${name}"`);
    return value;
  };
}

const entries = (record: Any): [string, Any][] => Object.entries<Any>(record);

/** Keys that give one plain value by query. */
const OF_A_QUERY: Readonly<Record<string, (q: Query) => unknown>> = {
  executor_group: (q) => q.admission?.group,
  group_query_load_at_admission: (q) => q.admission?.groupLoad,
  resolved_pool: (q) => q.pool,
  num_completed_backends: (q) => (q.admission?.backends.length ?? 0) - q.held.length,
  release_count: (q) => q.releases,
};

const METRICS: Readonly<Record<string, (p: PoolFigures) => number>> = {
  "total-admitted": (p) => p.totals.admitted!,
  "total-queued": (p) => p.totals.queued!,
  "total-dequeued": (p) => p.totals.dequeued!,
  "total-rejected": (p) => p.totals.rejected!,
  "total-timed-out": (p) => p.totals.timedOut!,
  "total-released": (p) => p.totals.released!,
  "time-in-queue-ms": (p) => p.totals.timeInQueueMs!,
  "agg-num-running": (p) => p.aggRunning,
  "agg-num-queued": (p) => p.aggQueued,
  "agg-mem-reserved": (p) => p.aggMemReserved,
  "local-mem-admitted": (p) => p.localMemAdmitted,
  "local-num-admitted-running": (p) => p.localRunning,
  "local-num-queued": (p) => p.localQueued,
  "local-backend-mem-reserved": (p) => p.localMemReserved,
};

/** `failed`: the query ended in an error, and the vector looks no further. */
const isOutcome = (got: Outcome, want: string): boolean =>
  got === want || (want === "failed" && (got === "rejected" || got === "timed-out"));

function textOf(q: Query, what: string): string {
  if (what === "error") return q.error;
  if (what === "initial_queue_reason") return q.initialReason?.text ?? "";
  if (what === "latest_queue_reason") return q.latestReason?.text ?? "";
  if (what === "profile") return q.profile.join("\n");
  // The lines a client's log shows while it waits: `KEY : VALUE`.
  if (what === "query_log")
    return `Admission result : ${RESULT_TEXT[q.outcome] ?? ""}\nLatest admission queue reason : ${q.latestReason?.text ?? ""}`;
  throw new Error(`this stepper has no text "${what}" of a query`);
}
