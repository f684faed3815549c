/**
 * What is to be seen while a run goes on: a block of lines on a terminal, redrawn in place, gone before the
 * report (page-and-demos 3.1, 3.2). Where there is no terminal there is no block.
 *
 * No line may be as wide as the terminal and the block must be lower than it: one that wraps or scrolls is not where it
 * was drawn any more, and every frame would leave the last one standing.
 */
import { queueReasonText } from "../../core/admission/reasons.ts";
import { prettyBytes } from "../../core/pretty.ts";
import type { PoolFold } from "../../insight/pool-fold.ts";
import type { SummaryFold } from "../../insight/summary-fold.ts";
import { plural, timeText } from "./figures.ts";
import { cutEnd, type Look, type Paint, padEnd, paint, widthOf } from "./look.ts";
import type { OutputStream } from "./surroundings.ts";

export interface ProgressFacts {
  readonly at: number;
  readonly submitted: number;
  readonly running: number;
  readonly waiting: number;
  readonly finished: number;
  readonly rejected: number;
  readonly timedOut: number;
  readonly spilledBytes: number;
  readonly pools: readonly PoolProgress[];
}

export interface PoolProgress {
  readonly pool: string;
  readonly running: number;
  readonly maxRunning: number;
  readonly waiting: number;
  readonly maxWaiting: number;
  readonly memoryBytes: number;
  readonly maxMemoryBytes: number;
  readonly head: string | null;
}

export function progressOf(fold: SummaryFold, at: number): ProgressFacts {
  const pools = fold.pools.filter((p) => p !== undefined && p.name !== "");
  const sum = (n: (p: PoolFold) => number): number => pools.reduce((total, p) => total + n(p), 0);
  return {
    at,
    submitted: fold.pools.reduce((total, p) => total + (p?.submitted ?? 0), 0),
    running: sum((p) => p.running),
    waiting: sum((p) => p.queued),
    finished: sum((p) => p.finished),
    rejected: sum((p) => p.rejected),
    timedOut: sum((p) => p.timedOut),
    spilledBytes: sum((p) => p.spilledBytes),
    pools: pools.map(poolProgress).sort((a, b) => (a.pool < b.pool ? -1 : 1)),
  };
}

function poolProgress(p: PoolFold): PoolProgress {
  const reason = p.headReason;
  return {
    pool: p.name,
    running: p.running,
    maxRunning: p.config?.maxRequests ?? -1,
    waiting: p.queued,
    maxWaiting: p.config?.maxQueued ?? -1,
    memoryBytes: p.memory,
    maxMemoryBytes: p.config?.maxMemResources ?? -1,
    head: reason === null ? null : queueReasonText(reason),
  };
}

/** Columns of the little chart: one for each emulated second. */
const CHART_COLUMNS = 30;

/** Waiting queries of a pool, one number a second, the latest last. */
export class WaitingHistory {
  readonly #byPool = new Map<string, number[]>();
  #second = -1;

  note(facts: ProgressFacts): void {
    const second = Math.floor(facts.at / 1000);
    for (const { pool, waiting } of facts.pools) {
      const list = this.#byPool.get(pool) ?? [];
      const missed = Math.min(CHART_COLUMNS, Math.max(0, second - this.#second));
      if (list.length === 0 || missed > 0) for (let i = 0; i < Math.max(1, missed); i++) list.push(waiting);
      else list[list.length - 1] = waiting;
      this.#byPool.set(pool, list.slice(-CHART_COLUMNS));
    }
    this.#second = second;
  }

  of(pool: string): readonly number[] {
    return this.#byPool.get(pool) ?? [];
  }
}

/**
 * Of a terminal of so many rows. The cursor stands below the block, and above it stays a row: clearing from the first
 * row on is to some terminals clearing the screen, and they keep what was on it.
 */
export function renderProgress(
  facts: ProgressFacts,
  history: WaitingHistory,
  look: Look,
  rows = Number.POSITIVE_INFINITY,
): string[] {
  const { pools } = facts;
  const room = rows - 3;
  if (room < 1) return [totalsLine(facts, look)];
  if (2 * pools.length <= room) return [totalsLine(facts, look), ...pools.flatMap((p) => poolLines(p, history, look))];
  const shown = pools.length <= room ? pools : pools.slice(0, room - 1);
  const numbers = shown.map((p) => poolLines(p, history, look)[0]);
  const rest = pools.length - shown.length;
  const more = rest === 0 ? [] : [cutEnd(` and ${rest} more ${plural(rest, "pool")}`, look.columns - 1, look)];
  return [totalsLine(facts, look), ...numbers, ...more];
}

/** As many of the totals as fit, the first ones first. */
function totalsLine(facts: ProgressFacts, look: Look): string {
  const { at, submitted, running, waiting, finished, rejected, timedOut, spilledBytes } = facts;
  const totals: readonly (readonly [text: string, how: Paint | null])[] = [
    [`submitted ${submitted}`, null],
    [`running ${running}`, "running"],
    [`waiting ${waiting}`, "queued"],
    [`finished ${finished}`, null],
    [`rejected ${rejected}`, rejected > 0 ? "refused" : null],
    [`timed out ${timedOut}`, timedOut > 0 ? "refused" : null],
    [`spilled ${prettyBytes(spilledBytes)}`, null],
  ];
  let line = timeText(at).padStart(6);
  let width = widthOf(line);
  for (const [text, how] of totals) {
    width += 2 + widthOf(text);
    if (width >= look.columns) break;
    line += `  ${how === null ? text : paint(look, how, text)}`;
  }
  return line;
}

function poolLines(p: PoolProgress, history: WaitingHistory, look: Look): [numbers: string, head: string] {
  const of = (n: number, limit: number): string => (limit < 0 ? String(n) : `${n}/${limit}`);
  const memory =
    p.maxMemoryBytes < 0
      ? prettyBytes(p.memoryBytes)
      : `${prettyBytes(p.memoryBytes).replace(/ \w+$/, "")} of ${prettyBytes(p.maxMemoryBytes)}`;
  const chart = look.unicode ? `  ${chartOf(history.of(p.pool), p.maxWaiting)}` : "";
  const numbers = ` ${p.pool}  ${of(p.running, p.maxRunning)} running  ${of(p.waiting, p.maxWaiting)} waiting  ${memory}`;
  const head = p.head === null ? "   nobody waits" : `   head: ${p.head}`;
  return [cutEnd(numbers + chart, look.columns - 1, look), cutEnd(padEnd(head, 1), look.columns - 1, look)];
}

const BLOCKS = " ▁▂▃▄▅▆▇█";

function chartOf(values: readonly number[], limit: number): string {
  const most = limit > 0 ? limit : Math.max(1, ...values);
  return values.map((n) => BLOCKS[Math.min(8, Math.ceil((n / most) * 8))]).join("");
}

const BEGIN = "\x1b[?2026h\x1b[?25l";
const END = "\x1b[?2026l";
const SHOW_CURSOR = "\x1b[?25h";

/** Draws over what it drew last; each frame is one write. */
export class ProgressBlock {
  readonly #stream: OutputStream;
  #lines = 0;
  #last = "";

  constructor(stream: OutputStream) {
    this.#stream = stream;
  }

  draw(lines: readonly string[]): void {
    const text = lines.join("\n");
    if (text === this.#last) return;
    this.#stream.write(`${BEGIN}${this.#back()}${text}\n${END}`);
    this.#last = text;
    this.#lines = lines.length;
  }

  /** Takes the block away and gives the cursor back. May be called twice. */
  end(): void {
    if (this.#lines > 0) this.#stream.write(`${BEGIN}${this.#back()}${END}`);
    if (this.#last !== "") this.#stream.write(SHOW_CURSOR);
    this.#lines = 0;
    this.#last = "";
  }

  #back(): string {
    return this.#lines === 0 ? "" : `\x1b[${this.#lines}A\x1b[0J`;
  }
}

const CLEAR_LINE = "\r\x1b[2K";

/** One line, written again and again. It leaves the cursor alone: whoever stops the command keeps it. */
export class ProgressLine {
  readonly #stream: OutputStream;
  readonly #now: () => number;
  readonly #every: number;
  #drawnAt: number;
  #isShown = false;

  /** Drawn at most every so many real milliseconds, the first time after as many. */
  constructor(stream: OutputStream, every: number, now: () => number) {
    this.#stream = stream;
    this.#now = now;
    this.#every = every;
    this.#drawnAt = now();
  }

  /** `text` is asked for only if it will be seen. */
  draw(text: () => string): void {
    if (this.#now() - this.#drawnAt >= this.#every) this.drawNow(text());
  }

  drawNow(text: string): void {
    this.#drawnAt = this.#now();
    this.#isShown = true;
    this.#stream.write(`${CLEAR_LINE}${text.slice(0, (this.#stream.columns ?? 80) - 1)}`);
  }

  /** May be called twice. */
  end(): void {
    if (this.#isShown) this.#stream.write(CLEAR_LINE);
    this.#isShown = false;
  }
}
