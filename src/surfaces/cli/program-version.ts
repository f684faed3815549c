/**
 * The version of the package this code belongs to, from source and compiled alike.
 */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { fail } from "../../core/assert.ts";

export const packageRoot: string = findRoot(dirname(fileURLToPath(import.meta.url)));

export const programVersion: string = (
  JSON.parse(readFileSync(join(packageRoot, "package.json"), "utf8")) as { readonly version: string }
).version;

function findRoot(from: string): string {
  if (existsSync(join(from, "package.json"))) return from;
  const above = dirname(from);
  return above === from ? fail("the program stands outside of its package") : findRoot(above);
}
