/** The told stories: their numbers, their order, and what is asked of whom (page-and-demos 4, 6.3). */
import { readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { describe, expect, test } from "vitest";
import { MiB } from "../../../src/core/units.ts";
import { memoryLines, partitionStrip } from "../../../src/surfaces/cli/demo/memory-picture.ts";
import { Stage } from "../../../src/surfaces/cli/demo/stage.ts";
import { STORIES } from "../../../src/surfaces/cli/demo-command.ts";
import { lookOf } from "../../../src/surfaces/cli/look.ts";
import { main } from "../../../src/surfaces/cli/main.ts";
import { waterhole } from "./command-line.ts";

const NAMES = STORIES.map((s) => s.name);

describe("waterhole demo", () => {
  test("without a name it says which there are", async () => {
    const { code, stdout } = await waterhole("demo");
    expect(code).toBe(0);
    for (const { name, title } of STORIES) expect(stdout).toContain(`${name.padEnd(21)}${title}`);
    expect(stdout).toMatch(/^next: waterhole demo /m);
  });

  test("an unknown name is wrong input, with the names there are", async () => {
    const { code, stderr } = await waterhole("demo", "flood");
    expect(code).toBe(2);
    expect(stderr).toContain(`Choose one of ${NAMES.join(", ")}.`);
  });
});

describe("a story that is broken off by its listener (| head)", () => {
  const folders = (): string[] =>
    readdirSync(tmpdir()).filter((name) => name.startsWith(`waterhole-demo-${process.pid}-`));

  test("leaves no folder when the process ends, and asks nothing of it once it is over", () => {
    const before = process.listeners("exit");
    const stage = new Stage(MiB);
    const added = process.listeners("exit").filter((listener) => !before.includes(listener));
    expect(folders()).toHaveLength(1);
    for (const listener of added) listener(0);
    expect(folders()).toEqual([]);
    stage.close();
    expect(process.listeners("exit")).toEqual(before);
  });
});

describe("the numbers of every story", () => {
  test.each(NAMES)("%s", async (name) => {
    const { code, stdout } = await waterhole("demo", name, "--check", "--seed", "8");
    expect(stdout).not.toContain("FAIL");
    expect(code).toBe(0);
  });

  test("as one JSON document, alone on stdout", async () => {
    const { code, stdout, stderr } = await waterhole("demo", "scratch-full", "--json");
    expect([code, stderr]).toEqual([0, ""]);
    expect(JSON.parse(stdout)).toMatchObject({
      story: "scratch-full",
      holds: true,
      numbers: expect.arrayContaining([
        expect.objectContaining({ what: "SCRATCH_LIMIT 32 MB", value: 90, holds: true }),
      ]),
    });
  });
});

describe("spilling, told", () => {
  const spilling = STORIES.find((s) => s.name === "spilling")!;

  test("in a pipe: captions in order, no question asked, no codes, and the answer only when asked for", async () => {
    const { stdout, stderr } = await waterhole("demo", "spilling", "--fast");
    const inOrder = [
      "How many of its 16 partitions go to disk?",
      "\nMEM_LIMIT 320 MB\n",
      "with its tables the reservation climbed to 208.00 MB, and nothing was",
      "\nMEM_LIMIT 128 MB\n",
      "The next page is refused: used 96.00 MB, reserved 96.00 MB of 96.00 MB.",
      "Partition 0 is spilled, 6.00 MB. Used falls, the reservation does not (B4)",
      "8 partitions spilled, 80.00 MB in memory.",
      "11 spilled partitions will keep their probe rows too: 22.00 MB",
      "Each of the 11 comes back whole",
      "\nMEM_LIMIT 60 MB\n",
      "at least 66.00 MB",
      "What came out",
      "partitions spilled at 128 MB  11 of 16",
      "Why does 60 MB not simply spill more?",
      "next: waterhole demo skew",
    ];
    const places = inOrder.map((text) => stdout.indexOf(text));
    expect(places).toEqual([...places].sort((a, b) => a - b));
    expect(places).not.toContain(-1);
    expect(stdout).not.toContain("\x1b");
    expect(stdout).not.toContain(spilling.answer.slice(0, 40));
    expect(stderr).toBe("");
    const { stdout: answered } = await waterhole("demo", "skew", "--fast", "--answers");
    expect(answered).toContain(STORIES.find((s) => s.name === "skew")!.answer.slice(0, 40));
  });

  test("at a terminal the guess is asked first and stands beside the number; the answer comes after Enter", async () => {
    const asked: string[] = [];
    let text = "";
    const code = await main(["demo", "scratch-full", "--fast"], {
      stdout: {
        write: (t: string) => {
          text += t;
        },
      },
      stderr: { write: () => undefined },
      environment: {},
      ask: async (question) => {
        asked.push(`${question}@${text.includes("What came out") ? "end" : "start"}`);
        return asked.length === 1 ? "two" : "";
      },
    });
    expect(code).toBe(0);
    expect(asked).toEqual(["your guess, or Enter: @start", "Enter for the answer @end"]);
    expect(text).toContain("you said two");
    expect(text).toContain("All three: a sort that fits never asks for the disk.");
  });
});

test("Ctrl-C stops a story between two frames and leaves no folder behind", async () => {
  const folders = () => readdirSync(tmpdir()).filter((f) => f.startsWith(`waterhole-demo-${process.pid}-`));
  const code = await main(["demo", "spilling", "--fast"], {
    stdout: {
      write: (text: string) => {
        if (text.includes("MEM_LIMIT 320 MB\n")) process.emit("SIGINT");
      },
    },
    stderr: { write: () => undefined },
    environment: {},
  });
  expect(code).toBe(130);
  expect(folders()).toEqual([]);
});

describe("the picture: limit, reservation, used", () => {
  const facts = { name: "join", limit: 96 * MiB, reservation: 80 * MiB, used: 48 * MiB, onDisk: 4 * MiB };
  const look = (environment: Record<string, string>, columns = 80) =>
    lookOf({ isTerminal: true, columns, environment, wished: false });

  test("a part for each, the limit's end marked, numbers below", () => {
    expect(memoryLines(facts, 256 * MiB, look({ LANG: "C.UTF-8" }))).toEqual([
      `  join        ${"█".repeat(12)}${"▒".repeat(8)}${"·".repeat(4)}│`,
      "              used 48.00 MB, reserved 80.00 MB of 96.00 MB, on disk 4.00 MB",
    ]);
    expect(memoryLines(facts, 256 * MiB, look({ LANG: "en_US.ISO-8859-1" }))[0]).toBe(
      `  join        ${"#".repeat(12)}${"=".repeat(8)}${".".repeat(4)}|`,
    );
  });

  test("unpinning turns used into reserved and moves nothing else", () => {
    const [before] = memoryLines(facts, 256 * MiB, look({}));
    const [after] = memoryLines({ ...facts, used: 32 * MiB }, 256 * MiB, look({}));
    expect(after!.length).toBe(before!.length);
    expect([...after!].filter((c) => c === "█").length).toBe(8);
  });

  test("it fits narrow terminals", () => {
    for (const columns of [40, 60, 80, 120])
      for (const line of memoryLines(facts, 96 * MiB, look({}, columns)))
        expect(line.length).toBeLessThanOrEqual(columns);
  });

  test("sixteen partitions in a row", () => {
    const states = ["disk", ...new Array<"memory">(14).fill("memory"), "done"] as const;
    expect(partitionStrip(states, look({}))).toContain("d m m m m m m m m m m m m m m .");
  });
});
