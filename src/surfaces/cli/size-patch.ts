/**
 * What `size` advises, as a change of the two pool files: read again as Impala reads them, and looked over by
 * `check`, so that the advice does not bring a surprise of its own.
 */
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { changeOf, patchPool, unifiedDiff } from "../../config/pool-file-patch.ts";
import type { CheckInput } from "../../insight/pool-check/check-input.ts";
import type { Finding } from "../../insight/pool-check/finding.ts";
import { checkPools } from "../../insight/pool-check/pool-check.ts";
import { clusterFacts, trafficFacts } from "../../insight/pool-check/scenario-facts.ts";
import type { SizeReport } from "../../insight/size/size-report.ts";
import type { Opened } from "./size-problem.ts";

export interface Patch {
  readonly kind: "patch" | "byHand" | "none";
  readonly files: readonly { readonly name: string; readonly text: string; readonly diff: readonly string[] }[];
  readonly why: string;
  /** What `check` finds in the changed files and not in the present ones. */
  readonly findings: readonly Finding[];
}

export function patchOf(opened: Opened, report: SizeReport): Patch {
  const { scenario, flags, pools, problem } = opened;
  const chosen = report.rows.find((r) => r.label === report.cheapest);
  if (chosen === undefined) return { kind: "none", files: [], why: "no setting meets the goal", findings: [] };
  if (chosen.setting.split !== null)
    return {
      kind: "byHand",
      files: [],
      why: "a pool of its own for large queries also needs clients that ask for it",
      findings: [],
    };
  if (scenario.pools.kind !== "files")
    return { kind: "byHand", files: [], why: "the pool comes from flags", findings: [] };
  const { fairScheduler, llamaSite } = scenario.pools;
  const names: FileNames = {
    fairScheduler: basename(fairScheduler),
    llamaSite: llamaSite === null ? "llama-site.xml" : basename(llamaSite),
  };
  const before = {
    fairScheduler: readFileSync(fairScheduler, "utf8"),
    llamaSite: llamaSite === null ? null : readFileSync(llamaSite, "utf8"),
  };
  const was = changeOf(problem.configs[problem.pool]!, flags.queue_wait_timeout_ms);
  const { split: _split, ...wanted } = chosen.setting;
  const result = patchPool(before, problem.pool, was, wanted, pools.settings);
  if (result.kind === "byHand") return { kind: "byHand", files: [], why: result.why, findings: [] };
  const files = [
    { name: names.fairScheduler, was: before.fairScheduler, is: result.files.fairScheduler },
    { name: names.llamaSite, was: before.llamaSite ?? "", is: result.files.llamaSite ?? "" },
  ].filter((f) => f.was !== f.is);
  return {
    kind: files.length === 0 ? "none" : "patch",
    files: files.map((f) => ({ name: f.name, text: f.is, diff: unifiedDiff(f.name, f.was, f.is) })),
    why: files.length === 0 ? "the files stay as they are" : "",
    findings: newFindings(checkInput(opened, names, before), checkInput(opened, names, result.files)),
  };
}

export function patchLines(patch: Patch): string[] {
  if (patch.kind === "none") return [`no patch: ${patch.why}`];
  if (patch.kind === "byHand") return [`no patch: ${patch.why}. Put the values in by hand and run  waterhole check.`];
  return [
    "the files, read again and found to give these settings:",
    ...patch.files.flatMap((f) => f.diff),
    ...(patch.findings.length === 0
      ? ["check finds nothing in them that it does not find now"]
      : patch.findings.map((f) => `check: ${f.id} ${f.name}, ${f.file}:${f.line ?? ""} ${f.effect} ${f.remedy}`)),
  ];
}

interface FileNames {
  readonly fairScheduler: string;
  readonly llamaSite: string;
}

function checkInput(
  { scenario }: Opened,
  names: FileNames,
  files: { readonly fairScheduler: string; readonly llamaSite: string | null },
): CheckInput {
  const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
  return {
    allocation: { file: names.fairScheduler, bytes: bytes(files.fairScheduler) },
    site: files.llamaSite === null ? null : { file: names.llamaSite, bytes: bytes(files.llamaSite) },
    flags: scenario.flags,
    flagsFile: scenario.file,
    groups: null,
    cluster: clusterFacts(scenario),
    traffic: trafficFacts(scenario),
    around: { environment: {}, systemProperties: {} },
  };
}

function newFindings(before: CheckInput, after: CheckInput): Finding[] {
  const known = new Set(checkPools(before).findings.map((f) => `${f.id} ${f.pool}`));
  return checkPools(after).findings.filter((f) => !known.has(`${f.id} ${f.pool}`));
}
