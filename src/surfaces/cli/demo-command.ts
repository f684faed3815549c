/**
 * `waterhole demo [NAME]`: the told stories (page-and-demos 4).
 *
 * Set-up, guess, what happens, the numbers beside the guess, question, answer. Where nobody can type, nothing is asked;
 * the answer is printed only when it was asked for. Exit code 99 when a number of the story is not what it has to be.
 */
import { type Command, InvalidArgumentError, Option } from "commander";
import { SCRATCH_FULL } from "./demo/scratch-full.ts";
import { SKEW } from "./demo/skew.ts";
import { SPILLING } from "./demo/spilling.ts";
import { type Finding, holds, type Story } from "./demo/story.ts";
import { StoryStopped, Teller } from "./demo/teller.ts";
import { TWO_QUERIES_COMPETE } from "./demo/two-queries-compete.ts";
import { paint, wrap } from "./look.ts";
import { seedOption } from "./options.ts";
import { type ColourChoice, type Surroundings, writeJson, writeLines } from "./surroundings.ts";

export const STORIES: readonly Story[] = [SPILLING, TWO_QUERIES_COMPETE, SKEW, SCRATCH_FULL];

const DOES_NOT_HOLD = 99;
/** As a shell says it. */
const INTERRUPTED = 130;
const DEFAULT_SEED = 7;

interface DemoFlags extends ColourChoice {
  readonly fast?: boolean;
  readonly answers?: boolean;
  readonly check?: boolean;
  readonly json?: boolean;
  readonly seed?: number;
}

export function registerDemo(program: Command, surroundings: Surroundings, exit: (code: number) => void): void {
  program
    .command("demo")
    .description("a told story, on real rows; without a name: which there are")
    .argument("[name]", `one of ${STORIES.map((s) => s.name).join(", ")}`, storyNamed)
    .option("--fast", "at once, without pauses")
    .option("--answers", "print the answer to the question at the end")
    .addOption(new Option("--check", "only the numbers, exit 99 when one is off").conflicts("json"))
    .addOption(seedOption())
    .option("--json", "print one JSON document")
    .action(async (story: Story | undefined, flags: DemoFlags, command: Command) => {
      exit(await demoCommand(story, { ...flags, ...command.optsWithGlobals<ColourChoice>() }, surroundings));
    });
}

function storyNamed(name: string): Story {
  const story = STORIES.find((s) => s.name === name);
  if (story === undefined) throw new InvalidArgumentError(`Choose one of ${STORIES.map((s) => s.name).join(", ")}.`);
  return story;
}

async function demoCommand(story: Story | undefined, flags: DemoFlags, surroundings: Surroundings): Promise<number> {
  if (story === undefined) return list(surroundings, flags);
  const quiet = flags.json === true || flags.check === true;
  const teller = new Teller(surroundings, { ...flags, quiet, fast: quiet || flags.fast === true });
  const onInterrupt = () => teller.stop();
  // Once: a second Ctrl-C ends the program where it stands.
  process.once("SIGINT", onInterrupt);
  try {
    const guess = quiet ? null : await begin(story, teller, surroundings);
    const findings = await story.play(teller, flags.seed ?? DEFAULT_SEED);
    if (flags.json) writeJson(surroundings.stdout, document(story, findings));
    else if (flags.check) writeLines(surroundings.stdout, checkLines(story, findings));
    else await conclude(story, findings, guess, teller, surroundings, flags.answers === true);
    return findings.every(holds) ? 0 : DOES_NOT_HOLD;
  } catch (error) {
    if (error instanceof StoryStopped) return INTERRUPTED;
    throw error;
  } finally {
    process.off("SIGINT", onInterrupt);
    teller.end();
  }
}

function list(surroundings: Surroundings, flags: DemoFlags): number {
  const width = Math.max(...STORIES.map((s) => s.name.length)) + 2;
  if (flags.json)
    writeJson(
      surroundings.stdout,
      STORIES.map(({ name, title, rules }) => ({ name, title, rules })),
    );
  else
    writeLines(surroundings.stdout, [
      ...STORIES.map((s) => `${s.name.padEnd(width)}${s.title}`),
      "",
      `next: waterhole demo ${STORIES[0]!.name}`,
    ]);
  return 0;
}

async function begin(story: Story, teller: Teller, { ask }: Surroundings): Promise<string | null> {
  teller.lines(
    paint(teller.look, "bold", `${story.name}: ${story.title}`),
    paint(teller.look, "muted", story.rules),
    "",
    ...wrap(story.setUp, teller.look.columns),
    "",
    ...wrap(story.guess, teller.look.columns),
  );
  if (ask === undefined) return null;
  const guess = (await ask("your guess, or Enter: ")).trim();
  return guess === "" ? null : guess;
}

async function conclude(
  story: Story,
  findings: readonly Finding[],
  guess: string | null,
  teller: Teller,
  { ask }: Surroundings,
  answers: boolean,
): Promise<void> {
  const width = Math.max(...findings.map((f) => f.what.length)) + 2;
  const line = (f: Finding) => {
    const wrong = holds(f) ? "" : paint(teller.look, "refused", "  NOT AS IT SHOULD BE");
    return `  ${f.what.padEnd(width)}${f.text}${wrong}`;
  };
  teller.heading("What came out");
  teller.lines(...findings.map(line), ...(guess === null ? [] : ["", `  you said ${guess}`]), "", story.question);
  if (ask !== undefined && !answers) await ask("Enter for the answer ");
  if (ask !== undefined || answers) teller.lines(...wrap(story.answer, teller.look.columns));
  else teller.lines(paint(teller.look, "muted", "the answer: --answers"));
  teller.lines("", ...story.next.map((command) => `next: ${command}`));
}

const checkLines = (story: Story, findings: readonly Finding[]): string[] =>
  findings.map((f) => `${holds(f) ? "ok  " : "FAIL"}  ${story.name}: ${f.what.trim()}  ${f.text}`);

const document = (story: Story, findings: readonly Finding[]) => ({
  story: story.name,
  title: story.title,
  holds: findings.every(holds),
  numbers: findings.map((f) => ({ ...f, what: f.what.trim(), holds: holds(f) })),
});
