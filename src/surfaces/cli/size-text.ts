/**
 * The report of `size` as people read it (insight 3.6): the table, the two sentences, and how it was found.
 */
import { CONSTRAINT_TEXT } from "../../insight/binding.ts";
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
import type { Look } from "./look.ts";
import { renderTable } from "./table.ts";

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
  const { effort } = r;
  // Today more are lost than p95 looks at, so that no wait is worse than now.
  const wait = Number.isFinite(r.goal.p95) ? `p95 ${seconds(r.goal.p95)}` : "any p95";
  return [
    `${r.pool}: ${r.requestsADay} requests a day, ${r.days} day(s); goal ${wait}, lost at most ${percent(r.goal.loss)}, spilling at most ${percent(r.goal.spill)}`,
    "",
    ...(table ?? ["(the terminal is too narrow for the table; use --json)"]),
    "",
    ...r.sentences,
    "",
    ...r.rows.flatMap(remarksOf),
    ...r.relief.map(reliefText),
    ...(r.alike.length === 0
      ? []
      : [`not to be told apart in p95 over these days: ${r.alike.map(([a, b]) => `${a} and ${b}`).join(", ")}`]),
    `tried ${effort.candidates} settings: ${effort.left.map((l) => `${l.candidates} left after ${l.step}`).join(", ")}`,
    `dropped: ${
      Object.entries(r.dropped)
        .map(([why, n]) => `${n} ${why}`)
        .join(", ") || "none"
    }`,
    `${effort.modelRuns} runs of the pool model (${millions(effort.modelQueries)} M queries), ${effort.rulesRuns} by the rules (${millions(effort.rulesQueries)} M)`,
    `assumed: ${r.assumptions.join("; ")}`,
  ];
}

const splitText = (row: SizeRow): string =>
  row.setting.split === null ? "" : `${percent(row.setting.split.share)} above ${memoryText(row.setting.split.above)}`;

const bindsText = (row: SizeRow): string =>
  row.binding
    .slice(0, 2)
    .filter((b) => b.share >= 0.005)
    .map((b) => `${CONSTRAINT_TEXT[b.constraint]} ${percent(b.share)}`)
    .join(", ") || "nothing";

function remarksOf(row: SizeRow): string[] {
  const remarks: string[] = [];
  if (row.p95ForSigma !== null)
    remarks.push(
      `${row.label} rests on what spilling costs: p95 ${waitText(row.p95ForSigma.half)} if it costs half as much, ${waitText(row.p95ForSigma.double)} if twice`,
    );
  if (row.isExtrapolated)
    remarks.push(
      `${row.label} is extrapolated: ${row.peakRunning} would run at once, more than was ever seen; holds may grow`,
    );
  return remarks;
}

function reliefText(relief: SizeReport["relief"][number]): string {
  const change = `p95 ${waitText(relief.p95Before)} -> ${waitText(relief.p95Ms)}, lost ${percent(relief.lossBefore)} -> ${percent(relief.loss)}`;
  return `${relief.of === "now" ? "now" : "chosen"} with ${relief.step}: ${relief.helps ? change : "no difference"}`;
}

const intervalText = (i: SizeRow["p95Interval"], text: (n: number) => string): string =>
  i === null || i.low === i.high ? "" : ` [${text(i.low)}, ${text(i.high)}]`;

/** Waits and losses are not below 0, whatever a t interval says. */
const notBelowZero = (i: SizeRow["p95Interval"]): SizeRow["p95Interval"] =>
  i === null ? null : { ...i, low: Math.max(0, i.low) };
const signed = (ms: number): string => `${ms > 0 ? "+" : ""}${(ms / 1000).toFixed(2)} s`;
const millions = (n: number): string => (n / 1e6).toFixed(1);
