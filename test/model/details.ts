/**
 * "Additional Details" of a time-out: the five heaviest queries of a host or a pool, laid out as the product does
 * it (admission 4). For the slow reference model.
 */
import { bytesText } from "./texts.ts";

export interface Heavy {
  readonly query: string;
  readonly consumed: number;
}

/** One host's report on one pool: its heaviest five and sums over all of its queries. */
export interface HeavyReport {
  readonly heavy: readonly Heavy[];
  readonly numRunning: number;
  readonly min: number;
  readonly max: number;
  readonly total: number;
}

export const NO_HEAVY: HeavyReport = { heavy: [], numRunning: 0, min: 0, max: 0, total: 0 };

export function reportOf(queries: readonly Heavy[]): HeavyReport {
  const sizes = queries.map((q) => q.consumed);
  return {
    heavy: [...queries].sort(heaviestFirst).slice(0, 5),
    numRunning: queries.length,
    min: queries.length === 0 ? 0 : Math.min(...sizes),
    max: Math.max(0, ...sizes),
    total: sizes.reduce((a, b) => a + b, 0),
  };
}

const heaviestFirst = (a: Heavy, b: Heavy): number => b.consumed - a.consumed || (a.query < b.query ? 1 : -1);

/** `reports`: what that host said about each pool. */
export function hostDetails(host: string, reports: ReadonlyMap<string, HeavyReport>): string {
  const items = [...reports].flatMap(([pool, r]) => r.heavy.map((h) => ({ pool, report: r, ...h })));
  if (items.length === 0) return "";
  items.sort(
    (a, b) => b.consumed - a.consumed || (a.pool === b.pool ? (a.query < b.query ? 1 : -1) : a.pool < b.pool ? 1 : -1),
  );
  const top = items.slice(0, 5);
  const lines = ["", `Stats for host ${host}`];
  for (const pool of [...new Set(top.map((i) => i.pool))]) {
    const members = top.filter((i) => i.pool === pool);
    const report = members[0]?.report ?? NO_HEAVY;
    lines.push(`   pool_name=${pool}: `, ...topLines(members, report.total, 6));
    lines.push(
      "      all_query_stats: ",
      `         num_running=${report.numRunning}, `,
      `         min=${bytesText(report.min)}, `,
      `         max=${bytesText(report.max)}, `,
      `         pool_total_mem=${bytesText(report.total)}, `,
    );
    if (report.numRunning > 0)
      lines.push(`         average=${bytesText(Math.trunc(report.total / report.numRunning))}`);
  }
  return lines.map((l) => `${l}\n`).join("");
}

/** `reports`: what each host said about that pool. */
export function poolDetails(pool: string, reports: readonly HeavyReport[]): string {
  const sums = new Map<string, number>();
  for (const r of reports) for (const h of r.heavy) sums.set(h.query, (sums.get(h.query) ?? 0) + h.consumed);
  if (sums.size === 0) return "";
  const total = [...sums.values()].reduce((a, b) => a + b, 0);
  const top = [...sums]
    .map(([query, consumed]) => ({ query, consumed }))
    .sort(heaviestFirst)
    .slice(0, 5);
  const lines = ["", `Aggregated stats for pool ${pool}:`, ...topLines(top, total, 3)];
  return lines.map((l) => `${l}\n`).join("");
}

function topLines(items: readonly Heavy[], total: number, indent: number): string[] {
  const pad = (more: number, text: string): string => " ".repeat(indent + more) + text;
  const consumed = items.reduce((sum, i) => sum + i.consumed, 0);
  const lines = [pad(0, "topN_query_stats: "), pad(3, "queries=[")];
  items.forEach((item, i) => {
    const comma = i < items.length - 1 ? ", " : "";
    lines.push(pad(6, `id=${item.query}, consumed=${bytesText(item.consumed)}${comma}`));
  });
  lines.push(pad(3, "],"), pad(3, `total_consumed=${bytesText(consumed)}`));
  if (total > 0)
    lines.push(
      pad(3, `fraction_of_pool_total_mem=${twoDigits(Math.fround(Math.fround(consumed) / Math.fround(total)))}`),
    );
  return lines;
}

/** Two significant digits, as a C++ stream prints them. */
const twoDigits = (n: number): string => String(Number(n.toPrecision(2)));
