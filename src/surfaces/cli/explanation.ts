/**
 * The life of one query as text: its profile's admission lines and timeline as Impala prints them, and below
 * them what Impala does not print: where its memory figure comes from, who was ahead, which checks stood in
 * its way, what each host had left (page-and-demos 3.5).
 */
import type { QueryClass, Scenario } from "../../config/scenario.ts";
import { backendsOf, hostNameOf } from "../../config/scenario-cluster.ts";
import type { MemoryToAdmit } from "../../core/admission/memory-to-admit.ts";
import {
  type QueueReason,
  queueReasonText,
  type RejectReason,
  rejectReasonText,
} from "../../core/admission/reasons.ts";
import type { PoolConfig } from "../../core/pool-config.ts";
import { prettyBytes } from "../../core/pretty.ts";
import { isUnlimited } from "../../core/units.ts";
import type { AheadQuery, QueryStory, Surroundings } from "../../insight/query-story.ts";
import { admissionProfile } from "../profile/profile-text.ts";
import { plural, timeText } from "./figures.ts";
import { type Look, padEnd, paint, widthOf, wrap } from "./look.ts";
import { shortId } from "./report.ts";
import { renderTable } from "./table.ts";

export interface ExplanationContext {
  readonly scenario: Scenario;
  readonly queryClass: QueryClass | null;
  readonly config: PoolConfig | null;
  /** What one of its class is charged; null: not to be known. */
  readonly charge: MemoryToAdmit | null;
  readonly epochMicros: number;
  readonly version: string;
}

/** Lines without line ends. */
export function renderExplanation(story: QueryStory, context: ExplanationContext, look: Look): string[] {
  const sections = [
    headline(story, look),
    profileSection(story, context, look),
    memorySection(story, context, look),
    waitingSection(story, look),
    aheadSection(story.ahead, look),
    checksSection(story, context, look),
    hostsSection(story, context, look),
    siblingsSection(story, look),
  ].filter((lines) => lines.length > 0);
  return sections.flatMap((lines, i) => (i === 0 ? lines : ["", ...lines]));
}

const title = (look: Look, text: string): string => paint(look, "bold", text);

// The first lines

function headline({ submitted, ...story }: QueryStory, look: Look): string[] {
  const where = submitted.pool === "" ? "no pool" : submitted.pool;
  const attempt = submitted.attempt > 1 ? `, attempt ${submitted.attempt}` : "";
  return [
    `${title(look, submitted.query)}  ${submitted.queryClass} by ${submitted.user} in ${where}, on ${hostNameOf(submitted.coordinator)}${attempt}`,
    ...wrap(outcome({ submitted, ...story }), look.columns),
  ];
}

function outcome({ submitted, unresolved, queued, decision, released }: QueryStory): string {
  if (unresolved !== null) return `refused before admission: ${unresolved.error}`;
  const submittedAt = `submitted at ${timeText(submitted.at)}`;
  switch (decision?.kind) {
    case "admitted": {
      const waited = decision.path === "fromQueue" ? `waited ${timeText(decision.waited)}` : "admitted at once";
      const ran = released === null ? "still runs" : `ran ${timeText(released.at - decision.at)}, ${released.state}`;
      return `${submittedAt}, ${waited}, ${ran}`;
    }
    case "rejected":
      return decision.fromQueue
        ? `${submittedAt}, waited ${timeText(decision.waited)}, then rejected`
        : `${submittedAt}, rejected at once`;
    case "timedOut":
      return `${submittedAt}, timed out after ${timeText(decision.waited)}`;
    case "cancelled":
      return `${submittedAt}, cancelled by its client after ${timeText(decision.waited)}`;
    case undefined:
      return queued === null ? `${submittedAt}, not decided yet` : `${submittedAt}, still waiting`;
  }
}

// As Impala prints it

function profileSection(story: QueryStory, context: ExplanationContext, look: Look): string[] {
  const { queryClass, epochMicros, version } = context;
  const backends = backendsOf(context.scenario.cluster);
  return [
    title(look, "PROFILE, what concerns admission (--profile prints all of it)"),
    ...admissionProfile(story, { queryClass, backends, epochMicros, version }),
  ];
}

// Memory to admit

function memorySection(story: QueryStory, { queryClass, charge }: ExplanationContext, look: Look): string[] {
  const { decision } = story;
  if (queryClass === null || charge === null || story.unresolved !== null) return [];
  const admitted = decision?.kind === "admitted" ? decision : null;
  const perHost = admitted?.perHost ?? charge.perHost;
  const onCoordinator = admitted?.onCoordinator ?? charge.onCoordinator;
  const cluster = admitted?.cluster ?? charge.cluster;
  const others = perHost > 0 ? Math.round((cluster - onCoordinator) / perHost) : 0;
  const rows: readonly (readonly [string, string, string])[] = [
    ["planner's estimate", prettyBytes(queryClass.shape.perHostMemEstimate), "a host (MEM-3)"],
    ["charged on each executor", prettyBytes(perHost), charge.perHostSource],
    ["charged on the coordinator", prettyBytes(onCoordinator), charge.onCoordinatorSource],
    [
      "charged to the pool",
      prettyBytes(cluster),
      `${others} x ${prettyBytes(perHost)} + ${prettyBytes(onCoordinator)} (MEM-10)`,
    ],
    ["enforced on each executor", limitText(admitted?.memLimit ?? charge.memLimit), "(MEM-9)"],
    ...peakRow(story),
  ];
  return [title(look, "MEMORY TO ADMIT"), ...aligned(rows)];
}

const limitText = (limit: number): string => (limit < 0 ? "nothing" : prettyBytes(limit));

const bytesOrDash = (bytes: number | null): string => (bytes === null ? "-" : prettyBytes(bytes));

function peakRow({ released, hosts }: QueryStory): (readonly [string, string, string])[] {
  const spilled = hosts.reduce((sum, h) => sum + (h.spilled ?? 0), 0);
  const peak = released?.peak ?? -1;
  return peak < 0
    ? []
    : [["used at most", prettyBytes(peak), spilled > 0 ? `and spilled ${prettyBytes(spilled)} in all` : "on one host"]];
}

// Waiting

function waitingSection({ attempts, queued, decision }: QueryStory, look: Look): string[] {
  if (queued === null) return [];
  const rows = attempts.map(({ at, reason, times }) => {
    const often = times > 1 ? `, ${times} times` : "";
    return [timeText(at), `${reason.rule}${often}`, queueReasonText(reason)] as const;
  });
  const end = decision === null ? [] : [[timeText(decision.at), WORD[decision.kind], ""] as const];
  return [title(look, "WAITING"), ...wrapped([...rows, ...end], look)];
}

const WORD = { admitted: "admitted", rejected: "rejected", timedOut: "timed out", cancelled: "cancelled" } as const;

function aheadSection(ahead: readonly AheadQuery[], look: Look): string[] {
  const [head] = ahead;
  if (head === undefined) return [];
  const classes = new Map<string, number>();
  for (const { queryClass } of ahead) classes.set(queryClass, (classes.get(queryClass) ?? 0) + 1);
  const counts = [...classes].map(([name, n]) => `${n} ${name}`).join(", ");
  return [
    title(look, "AHEAD"),
    ...wrap(
      `  ${ahead.length} ${plural(ahead.length, "query", "queries")} when it queued (${counts}). At their head ${shortId(head.query)}: ${queueReasonText(head.waitedFor)}`,
      look.columns - 2,
    ).map((line) => `  ${line}`),
  ];
}

// Checks against the exact state

interface Check {
  readonly rule: string;
  readonly what: string;
  readonly sides: string;
  readonly verdict: string;
  readonly fails: boolean;
}

function checksSection(story: QueryStory, context: ExplanationContext, look: Look): string[] {
  const moment = story.atLastFailure ?? story.atDecision;
  const { config, charge } = context;
  if (moment === null || config === null || charge === null) return [];
  const toAdmit = [runningCheck(config, moment), ...memoryChecks(story, config, charge, moment, context)];
  const checks =
    story.decision?.kind === "rejected"
      ? [rejection(story.decision.reason), ...toAdmit.map((c) => ({ ...c, verdict: "not reached", fails: false }))]
      : [...toAdmit, ...reportedCheck(story.attempts.at(-1)?.reason ?? null)];
  const when = story.atLastFailure === null ? "when it was decided" : "at its last failed attempt";
  const table = aligned(checks.map((c) => [`${c.rule}  ${c.what}`, c.sides, c.verdict] as const));
  return [
    title(look, `CHECKS ${when}, ${timeText(moment.at)}, against the exact state`),
    ...table.map((line, i) => (checks[i]?.fails ? paint(look, "refused", line) : line)),
  ];
}

const rejection = (reason: RejectReason): Check => ({
  rule: reason.rule,
  what: "rejection",
  sides: rejectReasonText(reason).split("\n")[0] ?? "",
  verdict: "FAILS",
  fails: true,
});

function runningCheck({ maxRequests }: PoolConfig, { running }: Surroundings): Check {
  const fails = !isUnlimited(maxRequests) && running >= maxRequests;
  const sides = isUnlimited(maxRequests) ? `${running}, no limit` : `${running} of ${maxRequests}`;
  return { rule: "ADM-2", what: "running", sides, verdict: fails ? "FAILS" : "ok", fails };
}

function memoryChecks(
  { submitted }: QueryStory,
  { maxMemResources: limit }: PoolConfig,
  charge: MemoryToAdmit,
  moment: Surroundings,
  { scenario, queryClass }: ExplanationContext,
): Check[] {
  if (isUnlimited(limit))
    return [
      {
        rule: "ADM-4",
        what: "pool memory",
        sides: "no limit, so hosts are not looked at either",
        verdict: "ok",
        fails: false,
      },
    ];
  const over = moment.memory + charge.cluster - limit;
  const sides = `${prettyBytes(moment.memory)} + ${prettyBytes(charge.cluster)} of ${prettyBytes(limit)}`;
  const pool: Check = {
    rule: "ADM-4",
    what: "pool memory",
    sides,
    verdict: over > 0 ? `FAILS by ${prettyBytes(over)}` : "ok",
    fails: over > 0,
  };
  const hosts = backendsOf(scenario.cluster).filter((b) => b.isExecutor || b.address === submitted.coordinator);
  const full = hosts.filter(({ address, admitMemLimit }) => {
    const need = address === submitted.coordinator ? charge.onCoordinator : charge.perHost;
    return (moment.admittedOn.get(address) ?? 0) + need > admitMemLimit;
  });
  const isNarrow = queryClass?.shape.executors !== "all";
  const some = full.map((b) => hostNameOf(b.address));
  return [
    pool,
    {
      rule: "ADM-5",
      what: "host memory",
      sides:
        full.length === 0
          ? `${hosts.length} of ${hosts.length} hosts have room`
          : `no room on ${some.slice(0, 4).join(", ")}${some.length > 4 ? ", ..." : ""}`,
      verdict: full.length === 0 ? "ok" : isNarrow ? "FAILS there" : "FAILS",
      fails: full.length > 0,
    },
  ];
}

/** What its controller said, where the exact state alone cannot tell it. */
function reportedCheck(reason: QueueReason | null): Check[] {
  if (reason === null || ["ADM-1", "ADM-2", "ADM-4", "ADM-5"].includes(reason.rule)) return [];
  return [
    {
      rule: reason.rule,
      what: "as its controller saw it",
      sides: queueReasonText(reason),
      verdict: "FAILS",
      fails: true,
    },
  ];
}

// What each host had left

interface HostRow {
  readonly host: string;
  readonly limit: number;
  readonly admitted: number;
  readonly part: QueryStory["hosts"][number] | null;
}

function hostsSection(story: QueryStory, { scenario }: ExplanationContext, look: Look): string[] {
  const moment = story.atDecision ?? story.atLastFailure ?? story.atSubmission;
  const rows = backendsOf(scenario.cluster).map(
    (b): HostRow => ({
      host: b.address,
      limit: b.admitMemLimit,
      admitted: moment.admittedOn.get(b.address) ?? 0,
      part: story.hosts.find((h) => h.host === b.address) ?? null,
    }),
  );
  const ran = story.hosts.length > 0;
  const right = (head: string, cell: (r: HostRow) => string) => ({ head, align: "right" as const, cell });
  const columns = [
    { head: "  HOST", align: "left" as const, cell: (r: HostRow) => `  ${hostNameOf(r.host)}`, shrinksTo: 8 },
    right("LIMIT", (r) => prettyBytes(r.limit)),
    right("ADMITTED", (r) => prettyBytes(r.admitted)),
    right("LEFT", (r) => prettyBytes(Math.max(0, r.limit - r.admitted))),
    ...(ran
      ? [
          { ...right("STARTED", (r: HostRow) => (r.part === null ? "-" : timeText(r.part.startedAt))), leaves: 2 },
          {
            ...right("ENDED", (r: HostRow) => (r.part?.finishedAt == null ? "-" : timeText(r.part.finishedAt))),
            leaves: 1,
          },
          right("PEAK", (r) => bytesOrDash(r.part?.peak ?? null)),
          right("SPILLED", (r) => bytesOrDash(r.part?.spilled ?? null)),
        ]
      : []),
  ];
  const sorted = byRoom(rows);
  const table = renderTable(columns, sorted.slice(0, MOST_HOSTS), look) ?? [];
  const rest = sorted.slice(MOST_HOSTS);
  const least = rest[0];
  if (least !== undefined)
    table.push(
      `  and ${rest.length} more with at least ${prettyBytes(Math.max(0, least.limit - least.admitted))} left`,
    );
  const errors = story.hosts.filter((h) => h.error !== null).map((h) => `  ${hostNameOf(h.host)}: ${h.error}`);
  return [title(look, `HOSTS at ${timeText(moment.at)}, before it`), ...table, ...errors];
}

const MOST_HOSTS = 16;

/** Fullest first; equal ones stay in address order. */
const byRoom = (rows: readonly HostRow[]): HostRow[] =>
  [...rows].sort((a, b) => a.limit - a.admitted - (b.limit - b.admitted));

function siblingsSection({ siblings }: QueryStory, look: Look): string[] {
  if (siblings.length === 0) return [];
  return [
    title(look, "OTHER ATTEMPTS OF THIS REQUEST"),
    ...siblings.map((s) => `  attempt ${s.attempt} at ${timeText(s.at)}: ${s.query}`),
  ];
}

// Layout

function aligned(rows: readonly (readonly string[])[]): string[] {
  const widths = rows.reduce<number[]>((most, row) => row.map((cell, i) => Math.max(most[i] ?? 0, widthOf(cell))), []);
  return rows.map((row) => `  ${row.map((cell, i) => padEnd(cell, widths[i]!)).join("  ")}`.trimEnd());
}

/** The last cell is wrapped under itself. */
function wrapped(rows: readonly (readonly [string, string, string])[], look: Look): string[] {
  const [first, second] = [0, 1].map((i) => Math.max(...rows.map((r) => widthOf(r[i]!))));
  const indent = 2 + first! + 2 + second! + 2;
  return rows.flatMap(([a, b, text]) => {
    const lines = wrap(text, Math.max(24, look.columns - indent));
    const head = `  ${padEnd(a, first!)}  ${padEnd(b, second!)}  `;
    return lines.length === 0 ? [head.trimEnd()] : lines.map((line, i) => (i === 0 ? head : " ".repeat(indent)) + line);
  });
}
