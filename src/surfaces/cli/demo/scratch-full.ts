/**
 * `scratch-full` (memory 9.6 item 10): three ways in which "spill" turns into an error, with three texts, and one in
 * which it does not.
 */
import type { OperatorSpec } from "../../../config/scenario.ts";
import { SPILLING_DISABLED } from "../../../core/memory/refusal-text.ts";
import { prettyBytes } from "../../../core/pretty.ts";
import { MiB } from "../../../core/units.ts";
import { memoryLines, memoryNumbers } from "./memory-picture.ts";
import { rows, Stage, type StagedQuery, type StagedRun, spillLimits } from "./stage.ts";
import { exactBytes, exactly, type Finding, type Story } from "./story.ts";
import type { Teller } from "./teller.ts";

const POOL = 128 * MiB;
const MEM_LIMIT = 80 * MiB;
const ROWS = 4_000_000;
const SORT: OperatorSpec = { kind: "sort", input: rows(ROWS, { kind: "unique" }, 16), limits: spillLimits(2 * MiB) };
const NO_LIMIT = Number.POSITIVE_INFINITY;
const BATCHES_A_FRAME = 60;

export const SCRATCH_FULL: Story = {
  name: "scratch-full",
  title: "three ways in which spilling turns into an error",
  rules: "O2, S5, S7, S9",
  setUp:
    `One host. One sort of ${prettyBytes(ROWS * 24)} under MEM_LIMIT 80 MB, which allows 48 MB: half of it has to go to disk. ` +
    "The disks change: two with room for 24 MB each; SCRATCH_LIMIT 32 MB; no spilling allowed; one full, one with room.",
  guess: "In how many of the four does the sort finish?",
  play,
  question: "Which of the three errors does a larger MEM_LIMIT cure?",
  answer:
    "All three: a sort that fits never asks for the disk. That is also why such a query may run well for months and fail on the day a neighbour has the memory.",
  next: [
    "waterhole demo spilling              a disk that has room",
    "waterhole demo two-queries-compete   a neighbour that has the memory",
    "waterhole demo skew                  where even an endless disk does not help",
  ],
};

interface Act {
  readonly heading: string;
  readonly rule: string;
  readonly directories: readonly number[];
  readonly change: Partial<StagedQuery>;
  /** Impala's code, 0: it finishes. */
  readonly code: number;
}

const ACTS: readonly Act[] = [
  {
    heading: "Two scratch directories, 24 MB left in each",
    rule: "S5",
    directories: [24 * MiB, 24 * MiB],
    change: {},
    code: 101,
  },
  {
    heading: "SCRATCH_LIMIT 32 MB",
    rule: "S7",
    directories: [NO_LIMIT],
    change: { scratchLimit: 32 * MiB },
    code: 90,
  },
  {
    heading: "DISABLE_UNSAFE_SPILLS, a table without statistics",
    rule: "O2",
    directories: [NO_LIMIT],
    change: { spillingForbidden: { code: 7, text: `Memory limit exceeded: ${SPILLING_DISABLED}` } },
    code: 7,
  },
  { heading: "One directory full, one with room", rule: "S9", directories: [0, NO_LIMIT], change: {}, code: 0 },
];

async function play(teller: Teller, seed: number): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for (const act of ACTS) {
    teller.heading(act.heading);
    findings.push(...(await playAct(teller, act, seed)));
  }
  return findings;
}

async function playAct(teller: Teller, act: Act, seed: number): Promise<readonly Finding[]> {
  const stage = new Stage(POOL, act.directories);
  try {
    let refusals = 0;
    const run: StagedRun = stage.start({
      name: "sort",
      spec: SORT,
      memLimit: MEM_LIMIT,
      seed,
      ...act.change,
      note: (event) => {
        if (event.kind === "refused" && ++refusals === 1)
          teller.caption("O26", `A page is refused, so a run has to go: ${memoryNumbers(run.facts)}.`);
      },
    });
    while (run.outcome === null) {
      run.advance(BATCHES_A_FRAME);
      await teller.frame(() => memoryLines(run.facts, POOL, teller.picture));
    }
    const { outcome, written } = run;
    const code = outcome.kind === "failed" ? outcome.failure.code : 0;
    if (outcome.kind === "failed") teller.caption(act.rule, `Code ${code}: ${outcome.failure.text}`);
    else teller.caption(act.rule, `It finishes; ${prettyBytes(written)} went to the directory that had room.`);
    const left = stage.leftBehind();
    const ended = code === 0 ? "finishes" : `code ${code} after ${prettyBytes(written)}`;
    return [
      exactly(act.heading, code, act.code, ended, "errorCode"),
      exactBytes("  left behind", left.reserved + left.onDisk, 0, "nothing"),
    ];
  } finally {
    stage.close();
  }
}
