/**
 * What `size --json` prints. In the report a null p95 is an endless one: too many were lost.
 */
import type { Drop, Goal } from "../../../insight/size/elimination.ts";
import type { PoolRoom } from "../../../insight/size/pool-room.ts";
import type { Setting } from "../../../insight/size/setting.ts";
import type { ForSigma, Relief, SizeReport, SizeRow } from "../../../insight/size/size-report.ts";
import { endlessIfNull } from "./json-text.ts";

/** The same question with other guesses for what a log does not say. */
export interface OtherGuess {
  readonly donor: "low" | "high";
  readonly p95NowMs: number | null;
  readonly cheapest: SizeRow | null;
}

export const sizeDocument = (r: SizeReport, patch: object, guesses: readonly OtherGuess[]): object => ({
  pool: r.pool,
  room: roomDocument(r.room, r.notTried),
  goal: goalDocument(r.goal),
  days: r.days,
  requestsADay: r.requestsADay,
  rows: r.rows.map(rowDocument),
  cheapest: r.cheapest,
  relief: r.relief.map(reliefDocument),
  dropped: r.dropped,
  examples: r.examples.map(dropDocument),
  effort: r.effort,
  alike: r.alike,
  sentences: r.sentences,
  assumptions: r.assumptions,
  patch,
  guesses: guesses.map((g) => ({
    donor: g.donor,
    p95NowMs: endlessIfNull(g.p95NowMs),
    cheapest: g.cheapest === null ? null : rowDocument(g.cheapest),
  })),
});

const roomDocument = (room: PoolRoom, notTried: readonly number[]): object => ({
  hostsBytes: room.hosts,
  othersBytes: room.others,
  unlimitedPools: room.unlimited,
  mostBytes: room.most,
  isOvercommitted: room.isOvercommitted,
  oversubscribe: room.oversubscribe,
  notTriedBytes: notTried,
});

const goalDocument = (g: Goal): object => ({
  p95Ms: g.p95,
  lossShare: g.loss,
  spillShare: g.spill,
  onFullHostsADay: g.onFullHosts,
});

const rowDocument = (row: SizeRow): object => ({
  label: row.label,
  setting: settingDocument(row.setting),
  days: row.days,
  p95Ms: endlessIfNull(row.p95Ms),
  p95IntervalMs: row.p95Interval,
  p95ByClass: Object.entries(row.p95ByClassMs).map(([queryClass, ms]) => ({ queryClass, p95Ms: endlessIfNull(ms) })),
  p95ChangeMs: row.against,
  p95ForSigma: row.p95ForSigma === null ? null : sigmaDocument(row.p95ForSigma),
  lossShare: row.loss,
  lossShareInterval: row.lossInterval,
  lossShareBelow: row.lossBelow,
  spillShare: row.spillShare,
  failedShare: row.failedShare,
  onFullHostsADay: row.onFullHosts,
  memoryUsedShare: row.setting.maxMem > 0 ? row.memoryUsed : null,
  peakRunning: row.peakRunning,
  binding: row.binding,
  meetsGoal: row.meetsGoal,
  isExtrapolated: row.isExtrapolated,
});

export const settingDocument = (s: Setting): object => ({
  maxMemBytes: s.maxMem,
  maxRunning: s.maxRunning,
  maxQueued: s.maxQueued,
  timeoutMs: s.timeout,
  minQueryMemBytes: s.minQueryMem,
  maxQueryMemBytes: s.maxQueryMem,
  split: s.split === null ? null : { aboveBytes: s.split.above, share: s.split.share },
});

const sigmaDocument = (f: ForSigma): object => ({
  halfMs: endlessIfNull(f.half),
  assumedMs: endlessIfNull(f.assumed),
  doubleMs: endlessIfNull(f.double),
});

const reliefDocument = (r: Relief): object => ({
  of: r.of,
  limit: r.limit,
  step: r.step,
  p95Ms: endlessIfNull(r.p95Ms),
  p95BeforeMs: endlessIfNull(r.p95Before),
  lossShare: r.loss,
  lossShareBefore: r.lossBefore,
  effect: r.effect,
});

const dropDocument = (d: Drop): object => ({ setting: settingDocument(d.setting), why: d.why, where: d.where });
