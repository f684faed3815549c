/**
 * The result of `waterhole check` as text: what stops queries first, then the rest by severity, the pools as Impala
 * sees them, placement, and who may use what (insight 1.1).
 */

import { placeText } from "../../config/config-error.ts";
import { prettyBytes } from "../../core/pretty.ts";
import type { Finding, Severity } from "../../insight/pool-check/finding.ts";
import type { PoolCheck } from "../../insight/pool-check/pool-check.ts";
import type { FieldCell, PoolRow, RuleRow } from "../../insight/pool-check/pool-table.ts";
import type { LandingAnswer } from "../../insight/pool-check/where-a-request-lands.ts";
import { plural, timeText } from "./figures.ts";
import { type Look, type Paint, paint, wrap } from "./look.ts";
import { type Column, renderTable } from "./table.ts";

/** Lines without line ends. */
export function renderCheck(check: PoolCheck, answer: LandingAnswer | null, look: Look): string[] {
  const sections = [
    ...(answer === null ? [] : [answerLines(answer, look)]),
    findingLines(check.findings, look),
    poolLines(check, look),
    placementLines(check),
    userLines(check),
    logLines(check),
    [verdict(check)],
  ].filter((lines) => lines.length > 0);
  return sections.flatMap((lines, i) => (i === 0 ? lines : ["", ...lines]));
}

// --- findings -------------------------------------------------------------------------------------------

/** More of one id in one file are counted and not told. */
const TOLD_OF_ONE_ID = 5;

const PAINT: Readonly<Record<Severity, Paint>> = { error: "refused", warning: "queued", hint: "muted" };

function findingLines(findings: readonly Finding[], look: Look): string[] {
  const seen = new Map<string, number>();
  const lines: string[] = [];
  for (const finding of findings) {
    const key = `${finding.id} ${finding.file}`;
    const count = (seen.get(key) ?? 0) + 1;
    seen.set(key, count);
    if (count <= TOLD_OF_ONE_ID) lines.push(...oneFinding(finding, look));
  }
  for (const [key, count] of seen) {
    const [id = "", ...file] = key.split(" ");
    if (count > TOLD_OF_ONE_ID)
      lines.push(`${id}: ${count - TOLD_OF_ONE_ID} more in ${file.join(" ")}; --json has them all`);
  }
  return lines;
}

function oneFinding(finding: Finding, look: Look): string[] {
  const { id, name, severity, stops, pool, found, effect, remedy, rule } = finding;
  const head = `${placeText(finding)}: ${paint(look, PAINT[severity], `${severity} ${id} ${name}`)}${stops ? " (stops every query)" : ""}${pool === null ? "" : `, ${pool}`}`;
  return [
    head,
    ...indented(/[.!?]$/.test(found) ? `${found} ${effect}` : `${found}: ${effect}`, look),
    ...indented(`${remedy}  [${rule}]`, look),
  ];
}

const indented = (text: string, look: Look): string[] =>
  wrap(text.replaceAll("\n", " "), look.columns - 4).map((line) => `    ${line}`);

function verdict({ counts }: PoolCheck): string {
  const parts = [
    [counts.errors, "error"],
    [counts.warnings, "warning"],
    [counts.hints, "hint"],
  ] as const;
  const some = parts.filter(([n]) => n > 0).map(([n, what]) => `${n} ${plural(n, what)}`);
  return some.length === 0 ? "Nothing to complain about." : some.join(", ");
}

// --- pools ----------------------------------------------------------------------------------------------

function poolLines({ pools }: PoolCheck, look: Look): string[] {
  if (pools.length === 0) return [];
  const broken = pools.filter((row) => row.fields === null);
  const table = renderTable(COLUMNS, pools, look) ?? pools.flatMap((row) => poolBlock(row));
  return [
    paint(look, "bold", "Pools as Impala sees them"),
    ...table,
    MARKS_TEXT,
    ...broken.map((row) => `${row.pool}: every query fails with ${row.error}`),
    ...pools.flatMap(quotaLines),
    ...pools.flatMap(optionLines),
  ];
}

/** Behind each value where it comes from; nothing behind a built-in one. */
const MARKS: Readonly<Record<FieldCell["from"], string>> = {
  own: "*",
  unsuffixed: "+",
  fallback: "+",
  flag: "!",
  builtIn: "",
};
const MARKS_TEXT = "* its own   + for all pools   ! a flag   without mark: built in";

type Fields = NonNullable<PoolRow["fields"]>;

const column = (head: string, field: keyof Fields, text: (value: FieldCell["value"]) => string, leaves?: number) =>
  ({
    head,
    align: "right",
    cell: ({ fields }: PoolRow) => (fields === null ? "?" : text(fields[field].value) + MARKS[fields[field].from]),
    ...(leaves === undefined ? {} : { leaves }),
  }) satisfies Column<PoolRow>;

const unlimited = (value: FieldCell["value"]): string => (Number(value) < 0 ? "unlimited" : String(value));
const memory = (value: FieldCell["value"]): string => (Number(value) < 0 ? "unlimited" : prettyBytes(Number(value)));
const bound = (value: FieldCell["value"]): string => (Number(value) <= 0 ? "-" : prettyBytes(Number(value)));
const cap = (value: FieldCell["value"]): string => (Number(value) < 0 ? "-" : String(value));
const core = (value: FieldCell["value"]): string => (Number(value) <= 0 ? "-" : String(value));

const COLUMNS: readonly Column<PoolRow>[] = [
  { head: "pool", align: "left", cell: (row) => row.pool, shrinksTo: 12 },
  column("memory", "maxMemResources", memory),
  column("running", "maxRequests", unlimited),
  column("queued", "maxQueued", String),
  column("timeout", "queueTimeout", (value) => (value === null ? "flag" : timeText(Number(value)))),
  column("min", "minQueryMemLimit", bound, 6),
  column("max", "maxQueryMemLimit", bound, 7),
  column("clamp", "clampMemLimitQueryOption", (value) => (value === true ? "yes" : "no"), 4),
  column("mt_dop", "maxMtDop", cap, 3),
  column("cores", "maxQueryCpuCorePerNodeLimit", core, 2),
  column("coord cores", "maxQueryCpuCoreCoordinatorLimit", core, 1),
  column("coord only", "onlyCoordinators", (value) => (value === true ? "yes" : "no"), 5),
  {
    head: "may submit",
    align: "left",
    cell: ({ acl, kind }) => (acl === null ? (kind === "root" ? "everybody" : "as above it") : JSON.stringify(acl)),
    leaves: 8,
  },
];

/** Where the table does not fit: one value a line. */
function poolBlock(row: PoolRow): string[] {
  return [row.pool, ...COLUMNS.slice(1).map((c) => `  ${c.head}: ${c.cell(row)}`)];
}

function quotaLines({ pool, fields }: PoolRow): string[] {
  if (fields === null) return [];
  return (["userQueryLimits", "groupQueryLimits"] as const).flatMap((field) => {
    const limits = Object.entries(fields[field].value ?? {});
    const what = field === "userQueryLimits" ? "user" : "each user of group";
    return limits.length === 0 ? [] : [`${pool}: ${limits.map(([name, n]) => `${what} ${name} ${n}`).join(", ")}`];
  });
}

const optionLines = ({ pool, fields }: PoolRow): string[] =>
  fields === null || fields.defaultQueryOptions.value === ""
    ? []
    : [`${pool}: default options ${String(fields.defaultQueryOptions.value)}`];

// --- placement ------------------------------------------------------------------------------------------

function placementLines({ placement }: PoolCheck): string[] {
  if (placement === null) return [];
  const head = placement.builtIn ? "Placement (built-in rules, none are written)" : "Placement";
  return [head, ...placement.rules.map((rule, i) => `  ${i + 1}. ${ruleText(rule)}`)];
}

function ruleText(rule: RuleRow): string {
  const target = rule.pool === null ? "" : ` ${rule.pool}`;
  const inner = rule.inner === null ? "" : ` of (${ruleText(rule.inner)})`;
  const create = rule.name === "reject" ? "" : rule.create ? ", creates pools" : ", declared pools only";
  return `${rule.name}${target}${inner}${rule.name === "default" && rule.create ? "" : create}${rule.line === null ? "" : `  (line ${rule.line})`}`;
}

function userLines({ users }: PoolCheck): string[] {
  if (users.length === 0) return [];
  return [
    "Users",
    ...users.map(({ user, lands, mayUse }) => {
      const landing = lands === null ? "is refused without REQUEST_POOL" : `lands in ${lands} without REQUEST_POOL`;
      return `  ${user} ${landing}; may use ${mayUse.length === 0 ? "no declared pool" : mayUse.join(", ")}`;
    }),
  ];
}

const logLines = ({ logWarnings }: PoolCheck): string[] =>
  logWarnings.length === 0 ? [] : ["Impala itself logs while loading", ...logWarnings.map((line) => `  ${line}`)];

function answerLines(answer: LandingAnswer, look: Look): string[] {
  const asked = answer.requestedPool === "" ? "no pool" : `pool ${answer.requestedPool}`;
  const head = answer.hasAccess
    ? `${answer.user} asking for ${asked} runs in ${answer.pool}`
    : `${answer.user} asking for ${asked} is refused`;
  return [
    paint(look, "bold", head),
    ...answer.because.map((line) => `  ${line}`),
    ...(answer.error === null ? [] : [`  The client reads: ${answer.error}`]),
  ];
}
