/**
 * `skew` (memory 9.6 item 9): one key is too large, and disk does not help.
 *
 * A join whose build side has one key in three rows of five. Partitioning again sends all rows of one key to one place
 * again; when a partition is that key and nothing else, the query ends with code 76.
 */
import type { OperatorSpec, RowsSpec } from "../../../config/scenario.ts";
import { reservationLimitFor } from "../../../core/memory/reservation-limit.ts";
import { prettyBytes } from "../../../core/pretty.ts";
import { MiB } from "../../../core/units.ts";
import { memoryLines, memoryNumbers } from "./memory-picture.ts";
import { rows, Stage, type StagedRun, spillLimits } from "./stage.ts";
import { exactBytes, exactly, type Finding, isSo, type Story } from "./story.ts";
import type { Teller } from "./teller.ts";

const PAGE = 2 * MiB;
const POOL = 256 * MiB;
const WIDTH = 92;
const BUILD_ROWS = 1_000_000;
const PROBE_ROWS = 50_000;
const HOT_SHARE = 0.6;
const LARGE = 320 * MiB;
const SMALL = 90 * MiB;
const BATCHES_A_FRAME = 40;

const join = (keys: RowsSpec["keys"]): OperatorSpec => ({
  kind: "join",
  build: rows(BUILD_ROWS, keys, WIDTH),
  // Only keys that the hot one is not among: pairs are few, it is the build side that this is about.
  probe: rows(PROBE_ROWS, { kind: "sorted" }, WIDTH),
  limits: spillLimits(PAGE),
});

export const SKEW: Story = {
  name: "skew",
  title: "one key is too large, and disk does not help",
  rules: "O21, O22, I22",
  setUp:
    `One host. A join with a build side of ${prettyBytes(BUILD_ROWS * (WIDTH + 8))} under MEM_LIMIT 90 MB, which allows 58 MB. ` +
    "First with keys that are all different, then with one key in six of ten rows.",
  guess: "Both sides are equally large. Do both finish?",
  play,
  question: "Why not keep partitioning the hot rows until the pieces fit?",
  answer:
    "Rows are dealt by a hash of the key. Equal keys have equal hashes at every level, so they stay together: each level takes away only the other keys. When nothing else is left, the next level would change nothing, and the join says so at once.",
  next: [
    "waterhole demo spilling       the same with keys that can be dealt",
    "waterhole demo scratch-full   other ways for a spill to end",
    "waterhole run examples/spilling/scenario.yaml   write keys: { hot: { share: 0.6 } } into the join",
  ],
};

async function play(teller: Teller, seed: number): Promise<readonly Finding[]> {
  const stage = new Stage(POOL);
  try {
    teller.heading("Different keys, MEM_LIMIT 90 MB");
    const even = await act(stage, teller, join({ kind: "unique" }), SMALL, seed);
    teller.caption("O21", `It spills ${even.counters.operator.spilledPartitions} partitions and finishes.`);

    teller.heading("One key in 60 % of the rows, MEM_LIMIT 90 MB");
    const hot = join({ kind: "hot", share: HOT_SHARE, distinct: BUILD_ROWS });
    const levels: number[] = [];
    const skewed = await act(stage, teller, hot, SMALL, seed, (level, all, most) => {
      levels.push(level);
      const rest = all - most;
      const left = rest === 0 ? "nothing: all rows have one key" : `${rest.toLocaleString("en")} rows of other keys`;
      teller.caption(
        "O21",
        `Level ${level}: ${all.toLocaleString("en")} rows dealt out again; the hot key's partition lost ${left}.`,
      );
    });
    const code = skewed.kind === "failed" ? skewed.failure.code : 0;
    if (skewed.kind === "failed") teller.caption("O22", `Code ${code}: ${skewed.failure.text}`);

    teller.heading("The same, MEM_LIMIT 320 MB");
    const roomy = await act(stage, teller, hot, LARGE, seed);
    teller.caption("O5", "The key fits in memory, and there is nothing wrong with it.");
    const left = stage.leftBehind();
    return [
      isSo("different keys finish", even.kind === "done"),
      exactly("code with the hot key", code, 76, String(code), "errorCode"),
      {
        what: "levels until it is alone",
        unit: "count",
        value: levels.length,
        least: 3,
        most: 7,
        text: String(levels.length),
      },
      isSo("with room for the key", roomy.kind === "done", roomy.kind === "done" ? "finishes" : "FAILS"),
      exactBytes("reserved at the end", left.reserved, 0),
      exactBytes("on disk at the end", left.onDisk, 0),
    ];
  } finally {
    stage.close();
  }
}

async function act(
  stage: Stage,
  teller: Teller,
  spec: OperatorSpec,
  memLimit: number,
  seed: number,
  repartitioned?: (level: number, rows: number, largest: number) => void,
) {
  teller.caption("R8", `It may reserve ${prettyBytes(reservationLimitFor(memLimit, -1, 0))}.`);
  let refusals = 0;
  const run: StagedRun = stage.start({
    name: "join",
    spec,
    memLimit,
    seed,
    note: (event) => {
      if (event.kind === "refused" && ++refusals === 1)
        teller.caption("O3", `The first page is refused: ${memoryNumbers(run.facts)}.`);
      if (event.kind === "repartitioned") repartitioned?.(event.level, event.rows, event.largest);
    },
  });
  while (run.outcome === null) {
    run.advance(BATCHES_A_FRAME);
    await teller.frame(() => memoryLines(run.facts, POOL, teller.picture));
  }
  return run.outcome;
}
