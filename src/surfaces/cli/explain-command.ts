/**
 * `waterhole explain RECORDS QUERY`: the life of one query of a recorded run.
 *
 * Reads the file twice: to find the query that was meant, then to follow everything up to its end. A query may
 * be named by the beginning of its id.
 */
import type { Command } from "commander";
import { ConfigError } from "../../config/config-error.ts";
import { backendsOf } from "../../config/scenario-cluster.ts";
import type { EventOf } from "../../core/events.ts";
import { chargeOfClass } from "../../insight/charge.ts";
import { DEFAULT_EPOCH } from "../../insight/query-log-export.ts";
import { type QueryStory, QueryStoryFold } from "../../insight/query-story.ts";
import type { RecordsReader } from "../../insight/records.ts";
import { profileText } from "../profile/profile-text.ts";
import { explainDocument } from "./documents/explain.ts";
import { type ExplanationContext, renderExplanation } from "./explanation.ts";
import { programVersion } from "./program-version.ts";
import { recordedRun } from "./recorded-run.ts";
import { readRecords } from "./records-file.ts";
import { type ColourChoice, lookFor, type Surroundings, writeJson, writeLines } from "./surroundings.ts";

export interface ExplainOptions extends ColourChoice {
  readonly json?: boolean;
  /** Only the profile, as Impala prints it. */
  readonly profile?: boolean;
}

export function registerExplain(program: Command, surroundings: Surroundings, exit: (code: number) => void): void {
  program
    .command("explain")
    .description("the life of one query of a recorded run")
    .argument("<records>", "records file of a run")
    .argument("<query>", "query id, or its beginning")
    .option("--profile", "only the profile, as Impala prints it")
    .option("--json", "print one JSON document")
    .action(async (records: string, query: string, options: ExplainOptions, command: Command) => {
      const all = { ...options, ...command.optsWithGlobals<ColourChoice>() };
      exit(await explainCommand(records, query, all, surroundings));
    });
}

export async function explainCommand(
  file: string,
  query: string,
  options: ExplainOptions,
  surroundings: Surroundings,
): Promise<number> {
  const { story, context } = await storyOf(file, query);
  if (options.json)
    writeJson(surroundings.stdout, explainDocument(story, context.charge, profileOf(story, context).join("\n")));
  else {
    const look = lookFor(surroundings.stdout, surroundings, options);
    writeLines(
      surroundings.stdout,
      options.profile ? profileOf(story, context) : renderExplanation(story, context, look),
    );
  }
  return 0;
}

async function storyOf(file: string, query: string): Promise<{ story: QueryStory; context: ExplanationContext }> {
  const { reader, submitted } = await findQuery(file, query);
  const { scenario, flags, pools } = recordedRun(reader.header);
  const fold = new QueryStoryFold(submitted.query, submitted.request, scenario.cluster.admission);
  await readRecords(file, (event) => fold.add(event));
  const story = fold.finish();
  if (story === null) throw notFound(file, query, []);
  const queryClass = scenario.queries.find((q) => q.name === submitted.queryClass) ?? null;
  const found = pools.lookUp(submitted.pool);
  const config = submitted.pool !== "" && found.kind === "found" ? found.config : null;
  return {
    story,
    context: {
      scenario,
      queryClass,
      config,
      charge: queryClass === null || config === null ? null : chargeOfClass(scenario, queryClass, config, flags),
      epochMicros: DEFAULT_EPOCH,
      version: programVersion,
    },
  };
}

const MOST_NAMED = 5;

async function findQuery(
  file: string,
  query: string,
): Promise<{ readonly reader: RecordsReader; readonly submitted: EventOf<"submitted"> }> {
  const wanted = query.toLowerCase();
  const matches: EventOf<"submitted">[] = [];
  const some: string[] = [];
  const reader = await readRecords(file, (event) => {
    if (event.kind !== "submitted") return;
    if (some.length < MOST_NAMED) some.push(event.query);
    if (event.query.startsWith(wanted)) matches.push(event);
  });
  const [submitted, second] = matches;
  if (submitted === undefined) throw notFound(file, query, some);
  if (second !== undefined && submitted.query !== wanted)
    throw new ConfigError(
      { file, line: null },
      `${matches.length} queries begin with "${query}"`,
      `Give more of the id: ${matches
        .slice(0, MOST_NAMED)
        .map((m) => m.query)
        .join(", ")}`,
    );
  return { reader, submitted };
}

function notFound(file: string, query: string, some: readonly string[]): ConfigError {
  const remedy =
    some.length === 0 ? "It has no queries at all." : `Queries of this run are, for instance, ${some.join(", ")}`;
  return new ConfigError({ file, line: null }, `there is no query "${query}" in this run`, remedy);
}

const profileOf = (story: QueryStory, { queryClass, scenario, epochMicros, version }: ExplanationContext): string[] =>
  profileText(story, { queryClass, backends: backendsOf(scenario.cluster), epochMicros, version });
