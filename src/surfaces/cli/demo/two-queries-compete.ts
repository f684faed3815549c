/**
 * `two-queries-compete` (page-and-demos 4.2): memory on a host goes to who asks first, not to who needs it.
 *
 * Two equal sorts on a host whose buffer pool holds one and two thirds of them. Each is far below its own limit.
 */
import type { OperatorSpec } from "../../../config/scenario.ts";
import { prettyBytes } from "../../../core/pretty.ts";
import { MiB } from "../../../core/units.ts";
import type { OperatorEvent } from "../../../runtime/operators/operator-context.ts";
import { memoryLines, memoryNumbers } from "./memory-picture.ts";
import { rows, Stage, type StagedRun, spillLimits } from "./stage.ts";
import { exactBytes, exactly, type Finding, isSo, type Story } from "./story.ts";
import type { Teller } from "./teller.ts";

const PAGE = 2 * MiB;
const POOL = 256 * MiB;
const MEM_LIMIT = 200 * MiB;
const PAGES = 75;
const SORT: OperatorSpec = {
  kind: "sort",
  input: rows(PAGES * Math.floor(PAGE / 24), { kind: "unique" }, 16),
  limits: spillLimits(PAGE),
};
const BATCHES_A_FRAME = 120;
/** A's client takes so many batches while B does a frame's work. */
const SLOW_READER = 20;

export const TWO_QUERIES_COMPETE: Story = {
  name: "two-queries-compete",
  title: "memory on a host goes to who asks first, not to who needs it",
  rules: "R1, R5, R7, O26, O27, memory 9.4",
  setUp:
    "One host with a buffer pool of 256 MB. Two equal sorts of 150 MB, MEM_LIMIT 200 MB each, so each may reserve 160 MB; " +
    "admission let both in (400 of 512 MB). B starts when A is sorted; A's client reads slowly.",
  guess: "Who spills: both a little, the later one, or the one over its limit?",
  play,
  question: "Would MEM_LIMIT 300 MB help B?",
  answer:
    "No; its limit never refused anything. The refusal came from the pool of the host, which A holds. Only less promised at the door helps: that is what admission is for.",
  next: [
    "waterhole demo spilling       one query, three limits",
    "waterhole demo scratch-full   what if B could not write either",
    "waterhole run examples/spilling/scenario.yaml   many at a time; then halve default_pool_mem_limit",
  ],
};

async function play(teller: Teller, seed: number): Promise<readonly Finding[]> {
  const stage = new Stage(POOL);
  try {
    return await compete(stage, teller, seed);
  } finally {
    stage.close();
  }
}

async function compete(stage: Stage, teller: Teller, seed: number): Promise<readonly Finding[]> {
  const runs: StagedRun[] = [];
  const frame = () => teller.frame(() => runs.flatMap((r) => memoryLines(r.facts, POOL, teller.picture)));
  let isSorted = false;
  const a = stage.start({
    name: "A",
    spec: SORT,
    memLimit: MEM_LIMIT,
    seed,
    note: (e) => {
      if (e.kind === "runSorted") isSorted = true;
    },
  });
  runs.push(a);
  while (!isSorted) {
    a.advance(BATCHES_A_FRAME);
    await frame();
  }
  teller.caption("O27", `A is sorted in one run and hands out rows: ${memoryNumbers(a.facts)}.`);

  const told = { refused: 0 };
  const b: StagedRun = stage.start({
    name: "B",
    spec: SORT,
    memLimit: MEM_LIMIT,
    seed,
    note: (event) => tellB(teller, event, told, () => `B: ${memoryNumbers(b.facts)}. A: ${memoryNumbers(a.facts)}`),
  });
  runs.push(b);
  while (b.outcome === null) {
    b.advance(BATCHES_A_FRAME);
    a.advance(SLOW_READER);
    await frame();
  }
  while (a.outcome === null) {
    a.advance(BATCHES_A_FRAME);
    await frame();
  }
  teller.caption(
    "I21",
    "Both answers are the same, row for row: one never left memory, the other went to disk and back.",
  );
  const left = stage.leftBehind();
  const same = outputOf(a) === outputOf(b);
  return [
    exactBytes("written by A", a.written, 0),
    exactly("runs of B", b.outcome.counters.operator.initialRunsCreated ?? 0, 2),
    exactBytes("written by B", b.written, PAGES * PAGE),
    exactBytes(
      "peak reservation of B",
      b.peak,
      (POOL / PAGE - PAGES) * PAGE,
      `${prettyBytes(b.peak)} of its own 160.00 MB`,
    ),
    isSo("same rows in the same order", same),
    exactBytes("reserved at the end", left.reserved, 0),
    exactBytes("on disk at the end", left.onDisk, 0),
  ];
}

function tellB(teller: Teller, event: OperatorEvent, told: { refused: number }, numbers: () => string): void {
  switch (event.kind) {
    case "refused":
      told.refused++;
      if (told.refused > 1) return;
      teller.caption("R1", `B is refused a page. ${numbers()}.`);
      teller.caption("R5", `${event.text}  (the tracker named is Process, the host, not B)`);
      return;
    case "runSorted":
      teller.caption(
        "O26",
        `B sorts what it has, ${event.rows.toLocaleString("en")} rows, and unpins it: run ${event.run}.`,
      );
      return;
    case "runsMerged":
      teller.caption("O28", `B merges ${event.inputs} runs, a page of each at a time.`);
      return;
  }
}

const outputOf = (run: StagedRun): string =>
  run.outcome?.kind === "done" ? JSON.stringify(run.outcome.output) : `${run.name} ${run.outcome?.kind}`;
