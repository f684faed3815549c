/**
 * `spilling` (page-and-demos 4.1): what does not fit is written in pieces, and the answer stays the same.
 *
 * The worked trace of memory 4.7 on real rows: one join, its build side dealt evenly over sixteen partitions, under
 * MEM_LIMIT 320, 128 and 60 MB.
 */
import type { OperatorSpec } from "../../../config/scenario.ts";
import { rejectReasonText } from "../../../core/admission/reasons.ts";
import { limitNeededFor } from "../../../core/admission/reservation-math.ts";
import { reservationLimitFor } from "../../../core/memory/reservation-limit.ts";
import { prettyBytes } from "../../../core/pretty.ts";
import { type Bytes, MiB } from "../../../core/units.ts";
import type { OperatorEvent } from "../../../runtime/operators/operator-context.ts";
import { plannedClients } from "../../../runtime/operators/run-operator.ts";
import { memoryLines, memoryNumbers, type PartitionState, partitionStrip } from "./memory-picture.ts";
import { rows, Stage, type StagedRun, spillLimits } from "./stage.ts";
import { exactBytes, exactly, type Finding, isSo, type Story } from "./story.ts";
import type { Teller } from "./teller.ts";

const PAGE = 2 * MiB;
const WIDTH = 92;
/** 160 MB of 100-byte rows in whole pages: five in each of sixteen partitions. */
const ROWS = 16 * 5 * Math.floor(PAGE / (WIDTH + 8));
const JOIN: OperatorSpec = {
  kind: "join",
  build: rows(ROWS, { kind: "dealt" }, WIDTH),
  probe: rows(ROWS, { kind: "dealt" }, WIDTH),
  limits: spillLimits(PAGE),
};
const POOL = 256 * MiB;
const BATCHES_A_FRAME = 40;

export const SPILLING: Story = {
  name: "spilling",
  title: "what does not fit is written in pieces, and the answer stays the same",
  rules: "R8, O18 to O21, B4, REJ-B2b, I24",
  setUp:
    `One host. One join: build side 160 MB (${ROWS.toLocaleString("en")} rows of 100 bytes, dealt evenly over 16 partitions), ` +
    "probe side the same, buffers of 2 MB. It runs under MEM_LIMIT 320 MB, then 128 MB, then 60 MB.",
  guess: "At 128 MB the join may reserve 96 MB. How many of its 16 partitions go to disk?",
  play,
  question: "Why does 60 MB not simply spill more?",
  answer:
    "The join needs 17 buffers of 2 MB, 34.00 MB, before its first row: one to write for each partition and one to read. 60 MB allow 28.00 MB. REJ-B2b asks for at least 66.00 MB.",
  next: [
    "waterhole demo skew                  one key is too large: where disk does not help",
    "waterhole demo two-queries-compete   the same memory, wanted twice",
    "waterhole demo scratch-full          three ways in which spilling turns into an error",
  ],
};

async function play(teller: Teller, seed: number): Promise<readonly Finding[]> {
  const stage = new Stage(POOL);
  try {
    teller.heading("MEM_LIMIT 320 MB");
    const free = await act(stage, teller, 320 * MiB, seed);
    teller.caption(
      "O19",
      `Everything fits: with its tables the reservation climbed to ${prettyBytes(free.peak)}, and nothing was written.`,
    );
    teller.heading("MEM_LIMIT 128 MB");
    const tight = await act(stage, teller, 128 * MiB, seed);
    teller.heading("MEM_LIMIT 60 MB");
    tellRejection(teller);
    const left = stage.leftBehind();
    return [
      exactly("partitions spilled at 320 MB", spilledIn(free), 0),
      exactly("partitions spilled at 128 MB", spilledIn(tight), 11, `${spilledIn(tight)} of 16`),
      exactBytes("peak reservation at 320 MB", free.peak, 208 * MiB),
      {
        what: "written at 128 MB",
        unit: "bytes",
        value: tight.written,
        least: 210 * MiB,
        most: 230 * MiB,
        text: prettyBytes(tight.written),
      },
      isSo("same rows and check-sum", sumOf(free) === sumOf(tight)),
      exactBytes("reserved at the end", left.reserved, 0),
      exactBytes("on disk at the end", left.onDisk, 0),
    ];
  } finally {
    stage.close();
  }
}

async function act(stage: Stage, teller: Teller, memLimit: number, seed: number): Promise<StagedRun> {
  const limit = reservationLimitFor(memLimit, -1, 0);
  teller.caption(
    "R8",
    `Of ${prettyBytes(memLimit)} the join may reserve ${prettyBytes(limit)}: ${limit / PAGE} pages of 2 MB.`,
  );
  const partitions: PartitionState[] = new Array(16).fill("memory");
  let refusals = 0;
  const run: StagedRun = stage.start({
    name: "join",
    spec: JOIN,
    memLimit,
    seed,
    note: (event) => {
      if (event.kind === "partitionSpilled") partitions[event.partition] = "disk";
      if (event.kind === "partitionRestored") comeBack(partitions);
      if (event.kind === "refused") refusals++;
      tell(teller, event, () => memoryNumbers(run.facts), refusals);
    },
  });
  while (run.outcome === null) {
    run.advance(BATCHES_A_FRAME);
    await teller.frame(() => [
      ...memoryLines(run.facts, POOL, teller.picture),
      partitionStrip(partitions, teller.picture),
    ]);
  }
  const restored = spilledIn(run);
  if (restored > 0)
    teller.caption(
      "O21",
      `Each of the ${restored} comes back whole, last one first, and is joined alone with its probe rows.`,
    );
  return run;
}

/** The last spilled one is joined; those that were in memory were done before it (O21). */
function comeBack(partitions: PartitionState[]): void {
  for (const [p, state] of partitions.entries()) if (state === "memory") partitions[p] = "done";
  partitions[partitions.lastIndexOf("disk")] = "done";
}

/** Not every event: the first of each kind, and those that decide something. */
function tell(teller: Teller, event: OperatorEvent, numbers: () => string, refusals: number): void {
  switch (event.kind) {
    case "refused":
      if (refusals === 1) {
        teller.caption("O3", `The next page is refused: ${numbers()}.`);
        teller.caption("R5", event.text);
      } else if (!event.what.startsWith("a page")) teller.caption("O19", `Refused: ${event.what}.`);
      return;
    case "partitionSpilled":
      teller.caption(
        "O18",
        `Partition ${event.partition} is spilled, ${prettyBytes(event.bytes)}. ${refusals === 1 ? "Used falls, the reservation does not (B4): " : ""}${numbers()}.`,
      );
      return;
    case "buildFinished":
      teller.caption(
        "O19",
        `All build rows are in: ${event.spilled} partitions spilled, ${prettyBytes(event.pinned)} in memory.`,
      );
      return;
    case "probeBuffers":
      if (event.spilled > 0)
        teller.caption(
          "O20",
          `${event.spilled} spilled partitions will keep their probe rows too: ${prettyBytes(event.bytes)} to write them with.`,
        );
      return;
  }
}

function tellRejection(teller: Teller): void {
  const needed = plannedClients(JOIN)[0]!.minReservation;
  const reason = rejectReasonText({
    rule: "REJ-B2b",
    needed: needed as Bytes,
    source: "QUERY_OPTION_MEM_LIMIT",
    pool: "root.default",
    limitNeeded: limitNeededFor(needed),
  });
  teller.caption(
    "R8",
    `60 MB allow ${prettyBytes(reservationLimitFor(60 * MiB, -1, 0))}; the join's minimum is ${prettyBytes(needed)}. It never starts:`,
  );
  teller.caption("REJ-B2b", reason);
}

const spilledIn = (run: StagedRun): number => run.outcome?.counters.operator.spilledPartitions ?? -1;
const sumOf = (run: StagedRun): string =>
  run.outcome?.kind === "done"
    ? `${run.outcome.output.rows} ${run.outcome.output.sum}`
    : `${run.name} ${run.outcome?.kind}`;
