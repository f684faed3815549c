/**
 * `npm run conformance [-- --dir DIR]`: every family, field case and real-world XML case of a folder, a line per
 * family, a block per failure, a total. Exit codes: 0 all that ran passed, 1 something failed, 2 the folder or
 * a flag can't be used.
 */
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { BadFolder, type Collected, collect } from "./collect.ts";
import type { Verdict } from "./family.ts";
import { judge } from "./judge.ts";

interface Count {
  passed: number;
  failed: number;
  skipped: number;
}

const DEFAULT_DIR = resolve(import.meta.dirname, "../../../shared/conformance");

async function main(argv: readonly string[]): Promise<number> {
  let found: Collected[];
  let dir: string;
  try {
    const { values } = parseArgs({ args: [...argv], options: { dir: { type: "string" } } });
    dir = resolve(values.dir ?? DEFAULT_DIR);
    found = collect(dir);
  } catch (error) {
    if (error instanceof BadFolder || (error instanceof TypeError && "code" in error)) {
      process.stderr.write(`${error.message}\nUsage: npm run conformance [-- --dir DIR]\n`);
      return 2;
    }
    throw error;
  }

  console.log(dir);
  const total: Count = { passed: 0, failed: 0, skipped: 0 };
  for (const [family, members] of byFamily(found)) {
    const count: Count = { passed: 0, failed: 0, skipped: 0 };
    const details: string[] = [];
    for (const member of members) {
      const verdict = await judge(member);
      note(count, verdict);
      if (verdict.kind !== "pass" || verdict.note !== undefined) details.push(describe(member, verdict));
    }
    console.log([`${family.padEnd(18)} ${line(count)}`, ...details].join("\n"));
    total.passed += count.passed;
    total.failed += count.failed;
    total.skipped += count.skipped;
  }
  console.log(`total: ${line(total)}`);
  return total.failed > 0 ? 1 : 0;
}

function byFamily(found: readonly Collected[]): Map<string, Collected[]> {
  const families = new Map<string, Collected[]>();
  for (const one of found) families.set(one.vector.family, [...(families.get(one.vector.family) ?? []), one]);
  return families;
}

function note(count: Count, verdict: Verdict): void {
  if (verdict.kind === "pass") count.passed += 1;
  else if (verdict.kind === "fail") count.failed += 1;
  else count.skipped += 1;
}

const line = (c: Count): string => `${c.passed} passed, ${c.failed} failed, ${c.skipped} skipped`;

function describe({ vector }: Collected, verdict: Verdict): string {
  if (verdict.kind === "skip") return `  skip ${vector.id}: ${verdict.why}`;
  if (verdict.kind === "fail")
    return `  FAIL ${vector.id}: ${vector.description}\n    expected ${text(verdict.expected)}\n    got      ${text(verdict.got)}`;
  return `  note ${vector.id}: passes ${verdict.note ?? ""}`;
}

const text = (v: unknown): string => (typeof v === "string" ? v : (JSON.stringify(v) ?? String(v)));

process.exitCode = await main(process.argv.slice(2));
