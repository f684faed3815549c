/**
 * `waterhole replay RECORDS`: a recorded run through the core again. Every call of every controller is made
 * once more, in its order, and must be answered as it was: same decision, reason and amounts.
 *
 * Exit 0 when all are; 1 with the first difference and both answers, as that is a fault of this program (or of
 * another version of it).
 */
import type { Command } from "commander";
import { ConfigError } from "../../config/config-error.ts";
import { type Difference, Replay, type ReplayCounts } from "../../sim/replay.ts";
import { cutOffNote, readRecords } from "./records-file.ts";
import { type Surroundings, writeJson, writeLines } from "./surroundings.ts";

export interface ReplayOptions {
  readonly json?: boolean;
}

export function registerReplay(program: Command, surroundings: Surroundings, exit: (code: number) => void): void {
  program
    .command("replay")
    .description("a recorded run through the core again: same decisions, or the first difference")
    .argument("<records>", "records file of a run")
    .option("--json", "print one JSON document")
    .action(async (records: string, options: ReplayOptions) => {
      exit(await replayCommand(records, options, surroundings));
    });
}

export async function replayCommand(
  file: string,
  options: ReplayOptions,
  { stdout, stderr }: Surroundings,
): Promise<number> {
  const replay = new Replay();
  let difference: Difference | null = null;
  const reader = await readRecords(file, (event) => {
    // After the first difference the rest follows from it.
    difference ??= replay.take(event);
  });
  const { counts } = replay;
  if (counts.calls === 0)
    throw new ConfigError(
      { file, line: null },
      "these records hold no controller calls",
      "Record the run again with this version of waterhole.",
    );
  const { program, mode, seed } = reader.header;
  writeLines(stderr, cutOffNote(file, reader));
  const isComplete = reader.isComplete;
  if (options.json)
    writeJson(stdout, {
      same: difference === null,
      ...counts,
      program,
      mode,
      seed,
      isComplete,
      difference: difference === null ? null : differenceDocument(difference),
    });
  else writeLines(stdout, difference === null ? sameLines(counts, mode) : differenceLines(difference, counts));
  return difference === null ? 0 : 1;
}

/** What was answered stands there in the form of the records file. */
function differenceDocument({ at, controller, call, op, recorded, replayed, state }: Difference): object {
  return { atMs: at, controller, call, op, recorded, replayed, state: state === null ? null : stateDocument(state) };
}

const stateDocument = ({ pools, hosts }: NonNullable<Difference["state"]>): object => ({
  pools: pools.map((p) => ({
    pool: p.name,
    running: p.localRunning,
    knownRunning: p.aggRunning,
    queued: p.localQueued,
    knownQueued: p.aggQueued,
    memAdmittedBytes: p.localMemAdmitted,
    memReservedBytes: p.aggMemReserved,
  })),
  hosts: [...hosts].map(([host, h]) => ({
    host,
    memReservedBytes: h.memReserved,
    memAdmittedBytes: h.memAdmitted,
    slotsInUse: h.slotsInUse,
  })),
});

const sameLines = ({ decisions, calls, controllers }: ReplayCounts, mode: string): string[] => [
  `Same: ${decisions} decisions in ${calls} calls to ${controllers} ${controllers === 1 ? "controller" : "controllers"} of a ${mode} run.`,
];

const differenceLines = (d: Difference, { decisions }: ReplayCounts): string[] => [
  `Different after ${decisions} decisions: call ${d.call}, ${d.op} at ${d.at} ms on ${d.controller}.`,
  "",
  `recorded  ${JSON.stringify(d.recorded)}`,
  `now       ${JSON.stringify(d.replayed)}`,
  ...(d.state === null ? [] : ["", "State of the controller now:", ...stateLines(d.state)]),
];

const stateLines = (state: NonNullable<Difference["state"]>): string[] => [
  ...state.pools.map(
    (p) =>
      `  ${p.name}: running ${p.localRunning} here, ${p.aggRunning} known; queued ${p.localQueued}, ${p.aggQueued}; memory admitted ${p.localMemAdmitted}, reserved ${p.aggMemReserved}`,
  ),
  ...[...state.hosts].map(
    ([host, h]) => `  ${host}: reserved ${h.memReserved}, admitted ${h.memAdmitted}, slots ${h.slotsInUse}`,
  ),
];
