/**
 * The two pool files with other values for one pool, everything else left to the letter.
 *
 * People keep these files by hand, with comments and an order of their own, so a new value goes where the old
 * one stands and nothing is reformatted. Whether the change does what it should is not argued but checked: the
 * changed texts are read again as Impala reads them and must give exactly the record that was wanted.
 */
import type { PoolConfig } from "../core/pool-config.ts";
import { MiB } from "../core/units.ts";
import { parseAllocationFile } from "./allocation-file.ts";
import { PoolDirectory } from "./pool-directory.ts";
import { SITE_KEYS } from "./pool-record.ts";
import { DEFAULT_SETTINGS, type PoolSettings } from "./pool-settings.ts";
import { parseSiteFile } from "./site-file.ts";

export interface PoolFileTexts {
  readonly fairScheduler: string;
  readonly llamaSite: string | null;
}

/** What may change; sizes in bytes, times in milliseconds; -1: no limit, 0 for the two query limits: none. */
export interface PoolChange {
  readonly maxMem: number;
  readonly maxRunning: number;
  readonly maxQueued: number;
  readonly timeout: number;
  readonly minQueryMem: number;
  readonly maxQueryMem: number;
}

export type PoolPatch =
  | { readonly kind: "patched"; readonly files: PoolFileTexts }
  /** The files are written in a way that this does not change; the values have to be put in by hand. */
  | { readonly kind: "byHand"; readonly why: string };

export function patchPool(
  files: PoolFileTexts,
  pool: string,
  before: PoolChange,
  after: PoolChange,
  settings: Partial<PoolSettings> = {},
): PoolPatch {
  try {
    const fairScheduler =
      after.maxMem === before.maxMem ? files.fairScheduler : withMemory(files.fairScheduler, pool, after.maxMem);
    const llamaSite = siteWith(files.llamaSite ?? EMPTY_SITE_TEXT, pool, before, after);
    const patched = { fairScheduler, llamaSite: llamaSite === EMPTY_SITE_TEXT ? files.llamaSite : llamaSite };
    const wrong = whatDiffers(patched, pool, after, settings);
    return wrong === null ? { kind: "patched", files: patched } : { kind: "byHand", why: wrong };
  } catch (e) {
    return { kind: "byHand", why: e instanceof Error ? e.message : String(e) };
  }
}

const EMPTY_SITE_TEXT = '<?xml version="1.0"?>\n<configuration>\n</configuration>\n';

// The allocation file

function withMemory(text: string, pool: string, maxMem: number): string {
  const file = parseAllocationFile(new TextEncoder().encode(text), "fair-scheduler.xml");
  const queue = file.queues.findLast((q) => q.pool === pool);
  if (queue === undefined) throw new Error(`${pool} is not declared in the allocation file`);
  const from = offsetOf(text, queue.element.at.line, queue.element.at.column);
  const old = queue.element.children.findLast((c) => c.kind === "element" && c.name === "maxResources");
  if (old !== undefined) {
    const start = offsetOf(text, old.at.line, old.at.column);
    const element = /^<maxResources\b[^>]*>[\s\S]*?<\/maxResources\s*>/.exec(text.slice(start));
    if (element === null) throw new Error("maxResources is written in an unusual way");
    return maxMem < 0
      ? withoutLine(text, start, start + element[0].length)
      : splice(text, start, start + element[0].length, memoryElement(maxMem));
  }
  if (maxMem < 0) return text;
  const open = /^<[^\s/>]+(?:\s+[^\s=]+\s*=\s*(?:"[^"]*"|'[^']*'))*\s*(\/?)>/.exec(text.slice(from));
  if (open === null) throw new Error("the queue is written in an unusual way");
  const end = from + open[0].length;
  const indent = `${indentAt(text, from)}  `;
  if (open[1] !== "/") return splice(text, end, end, `\n${indent}${memoryElement(maxMem)}`);
  const opened = `${open[0].replace(/\s*\/>$/, "")}>`;
  const name = /^<([^\s/>]+)/.exec(open[0])?.[1] ?? "queue";
  return splice(text, from, end, `${opened}\n${indent}${memoryElement(maxMem)}\n${indentAt(text, from)}</${name}>`);
}

/** Whole MiB, which is all that the format knows. */
const memoryElement = (bytes: number): string => `<maxResources>${Math.ceil(bytes / MiB)} mb, 0 vcores</maxResources>`;

// The site file

function siteWith(text: string, pool: string, before: PoolChange, after: PoolChange): string {
  let changed = text;
  const set = (key: string, was: number, is: number): void => {
    if (was !== is) changed = withProperty(changed, `${key}.${pool}`, String(is));
  };
  set(SITE_KEYS.maxRequests, before.maxRunning, after.maxRunning);
  set(SITE_KEYS.maxQueued, before.maxQueued, after.maxQueued);
  set(SITE_KEYS.queueTimeout, before.timeout, after.timeout);
  set(SITE_KEYS.minQueryMemLimit, before.minQueryMem, after.minQueryMem);
  set(SITE_KEYS.maxQueryMemLimit, before.maxQueryMem, after.maxQueryMem);
  return changed;
}

function withProperty(text: string, key: string, value: string): string {
  const escaped = key.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const property = new RegExp(`(<name>\\s*${escaped}\\s*</name>\\s*<value>)[^<]*(</value>)`, "g");
  if (property.test(text)) return text.replace(property, `$1${value}$2`);
  const end = text.lastIndexOf("</configuration>");
  if (end < 0) throw new Error("the site file has no </configuration> of its own");
  const indent = /\n([ \t]*)<property>/.exec(text)?.[1] ?? "  ";
  const added = `${indent}<property>\n${indent}  <name>${key}</name>\n${indent}  <value>${value}</value>\n${indent}</property>\n`;
  const at = text.lastIndexOf("\n", end) + 1;
  return splice(text, at, at, added);
}

// Checking

function whatDiffers(
  files: PoolFileTexts,
  pool: string,
  wanted: PoolChange,
  settings: Partial<PoolSettings>,
): string | null {
  const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
  const directory = new PoolDirectory({
    ...DEFAULT_SETTINGS,
    ...settings,
    allocation: parseAllocationFile(encode(files.fairScheduler), "fair-scheduler.xml"),
    site: files.llamaSite === null ? null : parseSiteFile(encode(files.llamaSite), "llama-site.xml"),
  });
  const found = directory.lookUp(pool);
  if (found.kind === "failed") return `the changed files would fail: ${found.error}`;
  const is = changeOf(found.config, directory.settings.flags.queue_wait_timeout_ms);
  const memory = wanted.maxMem < 0 ? -1 : Math.ceil(wanted.maxMem / MiB) * MiB;
  const names = (Object.keys(is) as (keyof PoolChange)[]).filter(
    (k) => is[k] !== (k === "maxMem" ? memory : wanted[k]),
  );
  return names.length === 0 ? null : `other settings of the files decide ${names.join(", ")}`;
}

export const changeOf = (c: PoolConfig, flagTimeout: number): PoolChange => ({
  maxMem: c.maxMemResources,
  maxRunning: c.maxRequests,
  maxQueued: c.maxQueued,
  timeout: c.queueTimeout ?? flagTimeout,
  minQueryMem: c.minQueryMemLimit,
  maxQueryMem: c.maxQueryMemLimit,
});

// Text

function offsetOf(text: string, line: number, column: number): number {
  let at = text.startsWith("\uFEFF") ? 1 : 0;
  for (let n = 1; n < line; n++) at = text.indexOf("\n", at) + 1;
  return at + column - 1;
}

const splice = (text: string, from: number, to: number, put: string): string =>
  text.slice(0, from) + put + text.slice(to);

/** The whole line where nothing else stands on it. */
function withoutLine(text: string, from: number, to: number): string {
  const start = text.lastIndexOf("\n", from) + 1;
  const end = text.indexOf("\n", to);
  const alone = text.slice(start, from).trim() === "" && (end < 0 || text.slice(to, end).trim() === "");
  return alone ? splice(text, start, end < 0 ? text.length : end + 1, "") : splice(text, from, to, "");
}

function indentAt(text: string, offset: number): string {
  const line = text.slice(text.lastIndexOf("\n", offset) + 1, offset);
  return /^[ \t]*$/.test(line) ? line : "";
}

/** Lines that go and come, with three lines around them: the form that `patch` reads. Empty when nothing changes. */
export function unifiedDiff(name: string, before: string, after: string): string[] {
  const a = before.split("\n");
  const b = after.split("\n");
  const edits = editsOf(a, b);
  if (edits.length === 0) return [];
  const lines = [`--- ${name}`, `+++ ${name}`];
  for (const hunk of hunksOf(edits)) {
    const fromA = Math.max(0, hunk[0]!.a - CONTEXT);
    const last = hunk.at(-1)!;
    const toA = Math.min(a.length, last.a + last.removed + CONTEXT);
    const shift = hunk[0]!.b - hunk[0]!.a;
    const added = hunk.reduce((n, e) => n + e.added - e.removed, 0);
    lines.push(`@@ -${fromA + 1},${toA - fromA} +${fromA + shift + 1},${toA - fromA + added} @@`);
    let at = fromA;
    for (const e of hunk) {
      for (; at < e.a; at++) lines.push(` ${a[at]}`);
      for (let i = 0; i < e.removed; i++) lines.push(`-${a[e.a + i]}`);
      for (let i = 0; i < e.added; i++) lines.push(`+${b[e.b + i]}`);
      at = e.a + e.removed;
    }
    for (; at < toA; at++) lines.push(` ${a[at]}`);
  }
  return lines;
}

const CONTEXT = 3;

interface Edit {
  readonly a: number;
  readonly b: number;
  readonly removed: number;
  readonly added: number;
}

/** Longest common subsequence of what lies between the common beginning and the common end. */
function editsOf(a: readonly string[], b: readonly string[]): Edit[] {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const n = a.length - start - end;
  const m = b.length - start - end;
  const width = m + 1;
  const common = new Int32Array((n + 1) * width);
  for (let i = n - 1; i >= 0; i--)
    for (let j = m - 1; j >= 0; j--)
      common[i * width + j] =
        a[start + i] === b[start + j]
          ? common[(i + 1) * width + j + 1]! + 1
          : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
  const edits: Edit[] = [];
  let i = 0;
  let j = 0;
  while (i < n || j < m) {
    if (i < n && j < m && a[start + i] === b[start + j]) {
      i++;
      j++;
      continue;
    }
    const from = { a: start + i, b: start + j };
    while ((i < n || j < m) && !(i < n && j < m && a[start + i] === b[start + j])) {
      if (j >= m || (i < n && common[(i + 1) * width + j]! >= common[i * width + j + 1]!)) i++;
      else j++;
    }
    edits.push({ ...from, removed: start + i - from.a, added: start + j - from.b });
  }
  return edits;
}

function hunksOf(edits: readonly Edit[]): Edit[][] {
  const hunks: Edit[][] = [];
  for (const e of edits) {
    const before = hunks.at(-1)?.at(-1);
    if (before !== undefined && e.a - (before.a + before.removed) <= 2 * CONTEXT) hunks.at(-1)!.push(e);
    else hunks.push([e]);
  }
  return hunks;
}
