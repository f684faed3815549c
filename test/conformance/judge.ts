/**
 * Runs one collected vector with its family's runner. A family without a runner and a runner that throws are
 * failures: neither may pass in silence.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Collected } from "./collect.ts";
import type { FamilyModule, Verdict } from "./family.ts";

const loaded = new Map<string, FamilyModule | null>();

async function moduleOf(family: string): Promise<FamilyModule | null> {
  const known = loaded.get(family);
  if (known !== undefined) return known;
  const file = join(import.meta.dirname, "families", `${family}.ts`);
  const module: FamilyModule | null =
    /^[a-z-]+$/.test(family) && existsSync(file) ? await import(pathToFileURL(file).href) : null;
  loaded.set(family, module);
  return module;
}

export async function judge({ vector, dir }: Collected): Promise<Verdict> {
  const module = await moduleOf(vector.family);
  if (module === null)
    return {
      kind: "fail",
      expected: vector.expected,
      got: `no runner in test/conformance/families for ${vector.family}`,
    };
  try {
    return await module.run(vector, dir);
  } catch (error) {
    return {
      kind: "fail",
      expected: vector.expected,
      got: error instanceof Error ? (error.stack ?? error.message) : String(error),
    };
  }
}
