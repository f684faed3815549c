/**
 * A run, snapshots of it, and what the forward run makes of each of them when it is told what really came.
 */
import { parseScenario } from "../../../src/config/scenario-file.ts";
import { flagsOf } from "../../../src/config/scenario-pools.ts";
import type { AdmissionQuery } from "../../../src/core/admission/query.ts";
import type { FinishState } from "../../../src/core/events.ts";
import type { PoolConfig } from "../../../src/core/pool-config.ts";
import type { QueryFacts } from "../../../src/core/run-observer.ts";
import type { Decision } from "../../../src/insight/eta/decision-observer.ts";
import { type ArrivalRate, type EtaSnapshot, snapshotOf } from "../../../src/insight/eta/eta-snapshot.ts";
import { ForwardRuns } from "../../../src/insight/eta/forward-run.ts";
import { TrafficWatch } from "../../../src/insight/eta/traffic-watch.ts";
import { toInstant } from "../../../src/sim/event-queue.ts";
import type { SimQuery } from "../../../src/sim/sim-query.ts";
import { simulate } from "../../../src/sim/simulate.ts";
import type { Simulation } from "../../../src/sim/simulation.ts";
import { createWorkload } from "../../../src/workload/scenario-workload.ts";

interface Happened {
  readonly kind: string;
  readonly submittedAt: number;
  decidedAt: number;
  hold: number;
}

const kindOf = (q: { readonly queryClass: string; readonly coordinator: string }): string =>
  `${q.queryClass} ${q.coordinator}`;

/** Writes down what became of everybody. */
class Chronicle extends TrafficWatch {
  readonly queries = new Map<string, Happened>();
  readonly snapshots: EtaSnapshot[] = [];

  override submitted(at: number, q: QueryFacts): void {
    super.submitted(at, q);
    const { coordinator } = (q as SimQuery).submission;
    const kind = kindOf({ queryClass: this.classOf(q), coordinator });
    this.queries.set(q.queryId, { kind, submittedAt: at, decidedAt: Number.NaN, hold: Number.NaN });
  }
  override decided(at: number, q: QueryFacts, _: Decision): void {
    this.queries.get(q.queryId)!.decidedAt = at;
  }
  override released(at: number, q: QueryFacts, state: FinishState, hold: number): void {
    super.released(at, q, state, hold);
    this.queries.get(q.queryId)!.hold = hold;
  }
}

export interface Compared {
  readonly at: number;
  readonly query: string;
  readonly foretold: number;
  readonly happened: number;
}

/** Waits of everybody who was queued at one of the moments, from it on; a moment every so often until then. */
export function comparisons(text: string, config: PoolConfig, every: number, until: number): Compared[] {
  const scenario = parseScenario(text, "/exact.yaml");
  const chronicle = new Chronicle(scenario.cluster.statestore);
  const resolve = (pool: string, user: string) =>
    ({ kind: "resolved", pool, user, groups: [], defaultOptions: {}, maxMtDop: -1 }) as const;
  let next = every;
  simulate({
    scenario,
    flags: flagsOf(scenario),
    workload: createWorkload(scenario, { resolve }),
    pools: { configOf: () => config },
    observer: chronicle,
    inspect: (simulation: Simulation) => {
      const now = toInstant(simulation.now);
      if (now < next || now > until || !simulation.isInstantOver || !simulation.seats.some((s) => s.queued > 0)) return;
      next = now + every;
      const classOf = (a: AdmissionQuery): string => chronicle.classOf(a.owner as SimQuery);
      const controllers = simulation.seats.map((s) => s.controller);
      chronicle.snapshots.push(snapshotOf(controllers, now, classOf, scenario.cluster, chronicle.recentAt(now)));
    },
  });
  return chronicle.snapshots.flatMap((s) => compared(s, chronicle.queries));
}

function compared(s: EtaSnapshot, queries: ReadonlyMap<string, Happened>): Compared[] {
  const { waits } = new ForwardRuns(s).run({
    remaining: (i) => {
      const { query, admittedAt } = s.running[i]!;
      return admittedAt + queries.get(query)!.hold - s.now;
    },
    whole: (j) => queries.get(s.queued[j]!.query)!.hold,
    nextArrival: arrivalsAfter(s, queries),
  });
  return s.queued.map(({ query }, j) => ({
    at: s.now,
    query,
    foretold: waits[j]!,
    happened: queries.get(query)!.decidedAt - s.now,
  }));
}

/** As they really came, kind by kind. */
function arrivalsAfter(s: EtaSnapshot, queries: ReadonlyMap<string, Happened>) {
  const coming = s.arrivals.map((a: ArrivalRate) =>
    [...queries.values()].filter((q) => q.kind === kindOf(a) && q.submittedAt > s.now),
  );
  const last = s.arrivals.map(() => s.now as number);
  return (k: number) => {
    const next = coming[k]!.shift();
    if (next === undefined) return { gap: 1e12, hold: 1 };
    const gap = next.submittedAt - last[k]!;
    last[k] = next.submittedAt;
    return { gap, hold: Number.isNaN(next.hold) ? 1 : next.hold };
  };
}
