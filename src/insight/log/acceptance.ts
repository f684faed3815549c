/**
 * Does a log explain its own waits (insight 4.6)? Its requests, replayed against the pool files it was made
 * under, must wait about as they did.
 *
 * Where they do not, something decided that the log does not hold: other pools' traffic, other files, hosts
 * that were gone. Then nothing should be sized on it, and the report says so in its first line.
 */
import type { ImpalaFlags } from "../../config/impala-flags.ts";
import type { Scenario } from "../../config/scenario.ts";
import type { AdmissionPath } from "../../core/events.ts";
import type { PoolConfig } from "../../core/pool-config.ts";
import type { NameKind, QueryFacts } from "../../core/run-observer.ts";
import { simulate } from "../../sim/simulate.ts";
import type { TracedRequest } from "../../workload/query-log/traced-request.ts";
import type { Workload } from "../../workload/workload.ts";
import { quantileOrNull } from "../quantile.ts";
import { SilentObserver } from "../silent-observer.ts";

export interface Acceptance {
  readonly hours: readonly HourCheck[];
  /** Hours with enough queries in which one of the two is missed. */
  readonly failed: readonly HourCheck[];
}

export interface HourCheck {
  readonly pool: string;
  /** Hours since the first request. */
  readonly hour: number;
  readonly requests: number;
  readonly waited: { readonly recorded: number; readonly replayed: number };
  /** Of those that were queued and admitted, milliseconds; null: nobody was. */
  readonly p95: { readonly recorded: number | null; readonly replayed: number | null };
  readonly isMet: boolean;
}

const FEWEST = 200;
const SHARE_WITHIN = 0.03;
const P95_WITHIN = 0.2;
/** Below it a wait is a round of the topic, and 20 % of it is nothing. */
const LEAST_MS = 500;

export interface ReplayInput {
  /** With the trace's rows, on the log's cluster and pool files. */
  readonly scenario: Scenario;
  readonly workload: Workload;
  readonly flags: ImpalaFlags;
  readonly configOf: (pool: string) => PoolConfig;
}

export function acceptanceOf(requests: readonly TracedRequest[], replay: ReplayInput): Acceptance {
  const recorded = new Hours();
  for (const r of requests) {
    const wait = (r.recorded.wait ?? 0) / 1000;
    const { outcome } = r.recorded;
    const queued = outcome === "fromQueue" || outcome === "timedOut" || outcome === "cancelledInQueue";
    recorded.add(r.pool, r.at / 1000, queued, outcome === "fromQueue" ? wait : null);
  }
  const observer = new HourObserver();
  const { scenario, workload, flags, configOf } = replay;
  simulate({ scenario, workload, flags, pools: { configOf }, observer });
  const hours = [...recorded.all()].map(([key, r]) => checkOf(key, r, observer.hours.find(key)));
  return { hours, failed: hours.filter((h) => !h.isMet) };
}

function checkOf(key: string, recorded: Hour, replayed: Hour): HourCheck {
  const [pool = "", hour = "0"] = key.split("\n");
  const share = (h: Hour): number => (h.requests === 0 ? 0 : h.queued / h.requests);
  const waited = { recorded: share(recorded), replayed: share(replayed) };
  const p95 = { recorded: quantileOrNull(recorded.waits, 0.95), replayed: quantileOrNull(replayed.waits, 0.95) };
  const isJudged = recorded.requests >= FEWEST;
  return {
    pool,
    hour: Number(hour),
    requests: recorded.requests,
    waited,
    p95,
    isMet:
      !isJudged ||
      (Math.abs(waited.recorded - waited.replayed) <= SHARE_WITHIN && isNear(p95.recorded ?? 0, p95.replayed ?? 0)),
  };
}

const isNear = (recorded: number, replayed: number): boolean =>
  Math.abs(recorded - replayed) <= Math.max(LEAST_MS, P95_WITHIN * recorded);

interface Hour {
  requests: number;
  queued: number;
  readonly waits: number[];
}

const HOUR_MS = 3_600_000;

class Hours {
  private readonly hours = new Map<string, Hour>();

  /** `wait`: of one that was queued and admitted, else null. */
  add(pool: string, at: number, queued: boolean, wait: number | null): void {
    const key = `${pool}\n${Math.floor(at / HOUR_MS)}`;
    const hour = this.hours.get(key) ?? { requests: 0, queued: 0, waits: [] };
    this.hours.set(key, hour);
    hour.requests++;
    if (queued) hour.queued++;
    if (wait !== null) hour.waits.push(wait);
  }

  all(): IterableIterator<[string, Hour]> {
    return this.hours.entries();
  }

  find(key: string): Hour {
    return this.hours.get(key) ?? { requests: 0, queued: 0, waits: [] };
  }
}

class HourObserver extends SilentObserver {
  readonly hours = new Hours();
  private readonly pools: string[] = [];

  override named(kind: NameKind, index: number, name: string): void {
    if (kind === "pool") this.pools[index] = name;
  }

  override admitted(at: number, q: QueryFacts, path: AdmissionPath): void {
    this.add(q, path === "fromQueue", path === "fromQueue" ? at - q.intended : null);
  }

  override rejected(_at: number, q: QueryFacts): void {
    this.add(q, false, null);
  }

  override timedOut(_at: number, q: QueryFacts): void {
    this.add(q, true, null);
  }

  override cancelled(_at: number, q: QueryFacts, _waited: number, wasQueued: boolean): void {
    this.add(q, wasQueued, null);
  }

  private add(q: QueryFacts, queued: boolean, wait: number | null): void {
    this.hours.add(this.pools[q.pool] ?? "", q.intended, queued, wait);
  }
}

/** The first line of a report on a log that does not explain its own waits; null when it does. */
export function acceptanceWarning(a: Acceptance): string | null {
  if (a.failed.length === 0) return null;
  const worst = a.failed.slice(0, 3).map((h) => {
    const p95 = (ms: number | null): string => (ms === null ? "none" : `${(ms / 1000).toFixed(1)} s`);
    return `hour ${h.hour} of ${h.pool}: ${(h.waited.recorded * 100).toFixed(0)} % waited, replayed ${(h.waited.replayed * 100).toFixed(0)} %; p95 ${p95(h.p95.recorded)}, replayed ${p95(h.p95.replayed)}`;
  });
  const more = a.failed.length > worst.length ? `; and ${a.failed.length - worst.length} more hours` : "";
  return `THIS LOG DOES NOT EXPLAIN ITS OWN WAITS. Replayed on the scenario's cluster and pools it waits otherwise (${worst.join("; ")}${more}). Something decided that is not in it.`;
}
