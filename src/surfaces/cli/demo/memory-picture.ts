/**
 * Three numbers of a query's memory in one bar: limit, reservation, used (memory 9.6 item 2), and what is on disk.
 *
 * A function of facts, width and glyphs. `used` is the dark part, what is reserved beyond it the light part, the rest up
 * to the limit dots; so a page that is unpinned turns dark to light, and one that is given back light to dots.
 */
import { prettyBytes } from "../../../core/pretty.ts";
import { cutEnd, type Look, padEnd, paint } from "../look.ts";

export interface MemoryFacts {
  readonly name: string;
  readonly limit: number;
  readonly reservation: number;
  readonly used: number;
  readonly onDisk: number;
}

const GLYPHS = {
  unicode: { used: "█", reserved: "▒", free: "·", end: "│" },
  ascii: { used: "#", reserved: "=", free: ".", end: "|" },
} as const;

const NAME_WIDTH = 12;
const WIDEST_BAR = 96;

/** The bar, and its numbers below. `whole`: bytes of the full bar's width, at least the largest limit. */
export function memoryLines(f: MemoryFacts, whole: number, look: Look): string[] {
  const glyphs = look.unicode ? GLYPHS.unicode : GLYPHS.ascii;
  const width = Math.max(1, Math.min(WIDEST_BAR, look.columns - NAME_WIDTH - 4));
  const cells = (bytes: number) => Math.round((width * bytes) / whole);
  const limit = cells(f.limit);
  const reserved = Math.min(limit, cells(f.reservation));
  const used = Math.min(reserved, cells(f.used));
  const bar =
    paint(look, "running", glyphs.used.repeat(used)) +
    glyphs.reserved.repeat(reserved - used) +
    paint(look, "muted", glyphs.free.repeat(limit - reserved)) +
    glyphs.end;
  return [
    `  ${padEnd(f.name, NAME_WIDTH)}${bar}`,
    cutEnd(`  ${padEnd("", NAME_WIDTH)}${memoryNumbers(f)}`, look.columns - 1, look),
  ];
}

export function memoryNumbers(f: MemoryFacts): string {
  const disk = f.onDisk > 0 ? `, on disk ${prettyBytes(f.onDisk)}` : "";
  return `used ${prettyBytes(f.used)}, reserved ${prettyBytes(f.reservation)} of ${prettyBytes(f.limit)}${disk}`;
}

export type PartitionState = "memory" | "disk" | "done";

/** Sixteen partitions in a row: `m` in memory, `d` on disk, `.` done. */
export function partitionStrip(states: readonly PartitionState[], look: Look): string {
  const mark = { memory: "m", disk: "d", done: "." } as const;
  const text = states.map((s) => paint(look, s === "disk" ? "queued" : "running", mark[s])).join(" ");
  return `  ${padEnd("partitions", NAME_WIDTH)}${text}   m in memory, d spilled`;
}
