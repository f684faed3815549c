/**
 * The report of `size` as people read it (insight 3.6): the table, the two sentences, and how it was found.
 */
import { CONSTRAINT_TEXT, STALE_VIEW_MEANS, WORTH_EXPLAINING } from "../../insight/binding.ts";
import type { DropReason } from "../../insight/size/elimination.ts";
import {
  countText,
  lossText,
  memoryText,
  percent,
  type SizeReport,
  type SizeRow,
  seconds,
  waitText,
} from "../../insight/size/size-report.ts";
import { plural } from "./figures.ts";
import { fitting, type Look } from "./look.ts";
import { type Column, renderTable } from "./table.ts";

export function reportLines(r: SizeReport, look: Look): string[] {
  const table = renderTable<SizeRow>(
    [
      { head: "", align: "left", cell: (row) => row.label },
      { head: "memory", align: "right", cell: (row) => memoryText(row.setting.maxMem) },
      { head: "run", align: "right", cell: (row) => countText(row.setting.maxRunning) },
      { head: "queue", align: "right", cell: (row) => String(row.setting.maxQueued) },
      { head: "timeout", align: "right", cell: (row) => seconds(row.setting.timeout) },
      {
        head: "max-mem",
        align: "right",
        leaves: 3,
        cell: (row) => (row.setting.maxQueryMem > 0 ? memoryText(row.setting.maxQueryMem) : "none"),
      },
      ...(r.rows.some((row) => row.setting.minQueryMem > 0) ? [LEAST_QUERY_MEMORY] : []),
      { head: "large", align: "right", leaves: 1, cell: (row) => splitText(row) },
      {
        head: "p95 wait",
        align: "right",
        cell: (row) =>
          `${waitText(row.p95Ms)}${intervalText(notBelowZero(row.p95Interval), (n) => (n / 1000).toFixed(2))}`,
      },
      {
        head: "lost",
        align: "right",
        cell: (row) =>
          `${lossText(row)}${row.loss === 0 ? "" : intervalText(notBelowZero(row.lossInterval), (n) => (n * 100).toFixed(3))}`,
      },
      { head: "spill", align: "right", leaves: 2, cell: (row) => percent(row.spillShare) },
      { head: "mem used", align: "right", leaves: 4, cell: (row) => percent(row.memoryUsed) },
      { head: "binds (share)", align: "left", leaves: 5, cell: bindsText },
      {
        head: "against now, p95",
        align: "right",
        leaves: 6,
        cell: (row) =>
          row.against === null
            ? ""
            : `${signed(row.against.mean)}${intervalText(row.against, (n) => (n / 1000).toFixed(2))}`,
      },
    ],
    r.rows,
    look,
  );
  const texts = (lines: readonly string[]): string[] => lines.flatMap((line) => fitting(line, look));
  const { effort } = r;
  // Today more are lost than p95 looks at, so that no wait is worse than now.
  const wait = Number.isFinite(r.goal.p95) ? `p95 ${seconds(r.goal.p95)}` : "any p95 (today over 5 % are lost)";
  return [
    ...texts([
      `${r.pool}: ${r.requestsADay} requests a day, ${r.days} ${plural(r.days, "day")}; goal ${wait}, lost at most ${percent(r.goal.loss)}, spilling at most ${percent(r.goal.spill)}`,
    ]),
    "",
    ...(table ?? ["(the terminal is too narrow for the table; use --json)"]),
    "",
    ...texts([...r.sentences, ""]),
    ...texts([
      ...roomLines(r),
      ...r.rows.flatMap(remarksOf),
      ...(r.rows.some(isStaleOften) ? [STALE_VIEW_MEANS] : []),
      ...r.relief.map(reliefText),
      ...(r.alike.length === 0
        ? []
        : [`not to be told apart in p95 over these days: ${r.alike.map(([a, b]) => `${a} and ${b}`).join(", ")}`]),
      `tried ${effort.candidates} settings: ${effort.left.map((l) => `${l.candidates} left after ${stepText(l.step)}`).join(", ")}`,
      `dropped: ${
        Object.entries(r.dropped)
          .map(([why, n]) => `${n} ${DROPPED[why as DropReason]}`)
          .join(", ") || "none"
      }`,
      `${effort.modelRuns} runs of the pool model (${millions(effort.modelQueries)} queries), ${effort.rulesRuns} by the rules (${millions(effort.rulesQueries)})`,
      `assumed: ${r.assumptions.join("; ")}`,
    ]),
  ];
}

const LEAST_QUERY_MEMORY: Column<SizeRow> = {
  head: "min-mem",
  align: "right",
  leaves: 3,
  cell: (row) => (row.setting.minQueryMem > 0 ? memoryText(row.setting.minQueryMem) : "none"),
};

const DROPPED: Readonly<Record<DropReason, string>> = {
  rejects: "would reject some queries always",
  overload: "have too little for the busiest hour",
  "loses too much": "lose too much",
  "waits too long": "wait too long",
  "spills too much": "spill too much",
  "fills hosts too much": "let more onto full hosts than today",
  dominated: "worse than a cheaper one",
  "same outcome": "no better than a cheaper one",
  "not needed": "not looked at further",
};

const stepText = (step: string): string =>
  step === "screening" ? "arithmetic" : step === "finalists" ? "the choice" : `the ${step}`;

const splitText = (row: SizeRow): string =>
  row.setting.split === null ? "" : `${percent(row.setting.split.share)} above ${memoryText(row.setting.split.above)}`;

const bindsText = (row: SizeRow): string =>
  row.binding
    .slice(0, 2)
    .filter((b) => b.share >= 0.005)
    .map((b) => `${CONSTRAINT_TEXT[b.constraint]} ${percent(b.share)}`)
    .join(", ") || "nothing";

/** Whether the pool may be given more, and why not (insight 3.2). */
function roomLines({ pool, room, notTried }: SizeReport): string[] {
  const { hosts, others, unlimited, most, isOvercommitted, oversubscribe } = room;
  const ofHosts = `${oversubscribe === 1 ? "" : `${oversubscribe} times `}its hosts' ${memoryText(hosts)}`;
  const promised = `the ${memoryText(others)} of other pools' limits`;
  const may = isOvercommitted
    ? `${pool} is given no more than it has: ${others > 0 ? `with ${promised} that is` : "that is"} more than ${ofHosts}`
    : `${pool} may have at most ${memoryText(most)} of ${ofHosts}${others > 0 ? `, beside ${promised}` : ""}`;
  const uncounted =
    unlimited.length === 0
      ? ""
      : `; not counted, for want of a limit: ${unlimited.slice(0, 3).join(", ")}${unlimited.length > 3 ? ` and ${unlimited.length - 3} more` : ""}`;
  const dropped = notTried.length === 0 ? "" : `; so ${notTried.map(memoryText).join(", ")} not tried`;
  return [`${may} (more: --oversubscribe)${uncounted}${dropped}`];
}

const isStaleOften = ({ binding }: SizeRow): boolean =>
  binding.some((b) => b.constraint === "staleView" && b.share >= WORTH_EXPLAINING);

function remarksOf(row: SizeRow): string[] {
  const remarks: string[] = [];
  if (row.failedShare > 0)
    remarks.push(
      `${row.label} fails ${percent(row.failedShare)} of the queries: they need more memory than their limit leaves and cannot spill`,
    );
  if (row.onFullHosts > 0)
    remarks.push(
      `${row.label} lets ${countADay(row.onFullHosts)} ${plural(row.onFullHosts, "query", "queries")} a day onto hosts that are full: each coordinator knows late what the others let in there`,
    );
  if (row.p95ForSigma !== null)
    remarks.push(
      `${row.label} rests on what spilling costs: on the first day p95 ${waitText(row.p95ForSigma.half)} if it costs half as much, ${waitText(row.p95ForSigma.assumed)} as assumed, ${waitText(row.p95ForSigma.double)} if twice`,
    );
  if (row.isExtrapolated)
    remarks.push(
      `${row.label} is extrapolated: ${row.peakRunning} would run at once, more than was ever seen; holds may grow`,
    );
  return remarks;
}

function reliefText(relief: SizeReport["relief"][number]): string {
  const [p95Before, p95] = [waitText(relief.p95Before), waitText(relief.p95Ms)];
  const [lossBefore, loss] = [finePercent(relief.lossBefore), finePercent(relief.loss)];
  const wait = p95Before === p95 ? `p95 stays ${p95}` : `p95 ${p95Before} -> ${p95}`;
  const change = `${wait}, lost ${lossBefore === loss ? lossBefore : `${lossBefore} -> ${loss}`}`;
  return `${relief.of} with ${relief.step}: ${relief.effect === "none" ? "no difference" : change}`;
}

const countADay = (n: number): string => (Number.isInteger(n) ? String(n) : n.toFixed(1));
const intervalText = (i: SizeRow["p95Interval"], text: (n: number) => string): string =>
  i === null || i.low === i.high ? "" : ` [${text(i.low)}, ${text(i.high)}]`;

/** Waits and losses are not below 0, whatever a t interval says. */
const notBelowZero = (i: SizeRow["p95Interval"]): SizeRow["p95Interval"] =>
  i === null ? null : { ...i, low: Math.max(0, i.low) };
const signed = (ms: number): string => `${ms > 0 ? "+" : ""}${(ms / 1000).toFixed(2)} s`;
/** As far as small differences show. */
const finePercent = (share: number): string => (share < 0.1 ? percent(share) : `${(share * 100).toFixed(1)} %`);
const millions = (n: number): string => (n < 100_000 ? String(n) : `${(n / 1e6).toFixed(1)} M`);
