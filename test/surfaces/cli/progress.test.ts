import { describe, expect, test } from "vitest";
import type { Look } from "../../../src/surfaces/cli/look.ts";
import {
  ProgressBlock,
  type ProgressFacts,
  renderProgress,
  WaitingHistory,
} from "../../../src/surfaces/cli/progress.ts";

const GB = 2 ** 30;
const look = (columns: number, over: Partial<Look> = {}): Look => ({
  colour: false,
  unicode: true,
  columns,
  tableColumns: columns,
  ...over,
});

const facts = (over: Partial<ProgressFacts> = {}): ProgressFacts => ({
  at: 14_000,
  submitted: 60,
  running: 13,
  waiting: 8,
  finished: 39,
  rejected: 0,
  timedOut: 0,
  spilledBytes: 0,
  pools: [
    {
      pool: "root.dashboards",
      running: 13,
      maxRunning: 20,
      waiting: 8,
      maxWaiting: 50,
      memoryBytes: 195 * GB,
      maxMemoryBytes: 200_000 * 2 ** 20,
      head: "Not enough aggregate memory available in pool root.dashboards with max mem resources 195.31 GB.",
    },
  ],
  ...over,
});

/** As much of a terminal as the block uses. */
class Screen {
  readonly lines: string[] = [""];
  row = 0;
  cursorShown = true;

  write(text: string): void {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the codes.
    for (const part of text.split(/(\x1b\[[?0-9]*[a-zA-Z]|\n)/).filter((p) => p !== "")) this.#apply(part);
  }

  #apply(part: string): void {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: as above.
    const up = /^\x1b\[(\d+)A$/.exec(part);
    if (part === "\n") {
      this.row++;
      this.lines[this.row] ??= "";
    } else if (up !== null) this.row -= Number(up[1]);
    else if (part === "\x1b[0J") this.lines.splice(this.row, this.lines.length, "");
    else if (part === "\x1b[?25l") this.cursorShown = false;
    else if (part === "\x1b[?25h") this.cursorShown = true;
    else if (!part.startsWith("\x1b")) this.lines[this.row] += part;
  }
}

describe("the block while it runs (page-and-demos 3.2)", () => {
  test("one line of totals, two for each pool", () => {
    const history = new WaitingHistory();
    for (let s = 0; s <= 14; s++) {
      const pools = facts().pools.map((p) => ({ ...p, waiting: 47 - 13 * Math.floor(s / 4) }));
      history.note(facts({ at: s * 1000, pools }));
    }
    expect(renderProgress(facts(), history, look(120))).toEqual([
      " 14.0s  submitted 60  running 13  waiting 8  finished 39  rejected 0  timed out 0  spilled 0",
      " root.dashboards  13/20 running  8/50 waiting  195.00 of 195.31 GB  ████▆▆▆▆▄▄▄▄▂▂▂",
      "   head: Not enough aggregate memory available in pool root.dashboards with max mem resources 195.31 GB.",
    ]);
  });

  test.each([30, 40, 60, 80, 91, 92])("no line is as wide as a terminal of %i columns, coloured or not", (columns) => {
    const many = facts({ rejected: 8, timedOut: 36, submitted: 1_000_000 });
    const plain = renderProgress(many, new WaitingHistory(), look(columns));
    for (const line of plain) expect(line.length).toBeLessThan(columns);
    const coloured = renderProgress(many, new WaitingHistory(), look(columns, { colour: true }));
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the codes.
    expect(coloured.map((line) => line.replace(/\x1b\[\d+m/g, ""))).toEqual(plain);
  });

  test.each([
    [56, " 14.0s  submitted 60  running 13  waiting 8"],
    [57, " 14.0s  submitted 60  running 13  waiting 8  finished 39"],
    [68, " 14.0s  submitted 60  running 13  waiting 8  finished 39"],
    [69, " 14.0s  submitted 60  running 13  waiting 8  finished 39  rejected 0"],
  ])("%i columns have room for so many totals", (columns, line) => {
    const [totals] = renderProgress(facts(), new WaitingHistory(), look(columns));
    expect(totals).toBe(line);
  });

  describe("is lower than the terminal: the cursor has its last row, and the first one stays", () => {
    const pools = ["a", "b", "c"].map((pool) => ({ ...facts().pools[0]!, pool }));
    const at = (rows: number) =>
      renderProgress(facts({ pools }), new WaitingHistory(), look(200), rows).map((l) => l.slice(0, 8).trim());

    test("totals and two lines a pool while there is room", () => {
      expect(at(9)).toEqual(["14.0s", "a  13/2", "head:", "b  13/2", "head:", "c  13/2", "head:"]);
    });

    test("then without the heads, then the first pools only", () => {
      expect(at(8)).toEqual(["14.0s", "a  13/2", "b  13/2", "c  13/2"]);
      expect(at(6)).toEqual(["14.0s", "a  13/2", "b  13/2", "c  13/2"]);
      expect(at(5)).toEqual(["14.0s", "a  13/2", "and 2 m"]);
    });

    test("a terminal of a few rows still has the totals", () => {
      expect(at(4)).toEqual(["14.0s", "and 3 m"]);
      for (const rows of [0, 1, 2, 3]) expect(at(rows)).toEqual(["14.0s"]);
    });
  });

  test("unlimited is no number, nobody waits is said", () => {
    const pools = facts().pools.map((p) => ({ ...p, maxRunning: -1, maxMemoryBytes: -1, head: null }));
    const [, numbers, head] = renderProgress(facts({ pools }), new WaitingHistory(), look(120, { unicode: false }));
    expect(numbers).toBe(" root.dashboards  13 running  8/50 waiting  195.00 GB");
    expect(head).toBe("   nobody waits");
  });
});

describe("drawing in place", () => {
  test("frames replace each other, the end leaves nothing but a cursor", () => {
    const screen = new Screen();
    screen.write("before\n");
    const block = new ProgressBlock(screen);
    block.draw(["a", "bbb", "c"]);
    expect(screen.lines).toEqual(["before", "a", "bbb", "c", ""]);
    expect(screen.cursorShown).toBe(false);
    block.draw(["d", "e"]);
    expect(screen.lines).toEqual(["before", "d", "e", ""]);
    block.end();
    expect(screen.lines).toEqual(["before", ""]);
    expect(screen.cursorShown).toBe(true);
  });

  test("an unchanged frame writes nothing, an end without frames neither", () => {
    const writes: string[] = [];
    const block = new ProgressBlock({ write: (text) => writes.push(text) });
    block.end();
    block.draw(["a"]);
    block.draw(["a"]);
    expect(writes).toHaveLength(1);
  });
});

describe("the history of waiting", () => {
  test("one column a second, the last thirty; a second that was missed repeats what was seen", () => {
    const history = new WaitingHistory();
    const at = (ms: number, waiting: number) =>
      history.note(facts({ at: ms, pools: facts().pools.map((p) => ({ ...p, waiting })) }));
    at(100, 5);
    at(900, 7);
    at(3000, 2);
    expect(history.of("root.dashboards")).toEqual([7, 2, 2, 2]);
    at(100_000, 1);
    expect(history.of("root.dashboards")).toEqual(new Array(30).fill(1));
    expect(history.of("other")).toEqual([]);
  });
});
