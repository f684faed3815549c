/**
 * The table of rooms and arrows (STYLE 1), held against the import lines of every file.
 */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { describe, expect, test } from "vitest";

const root = resolve(import.meta.dirname, "..");

/** Room -> rooms and packages it may use besides itself. `node:` stands for everything of Node's. */
const MAY_USE: Readonly<Record<string, readonly string[]>> = {
  "src/core": [],
  "src/config": ["src/core", "fast-xml-parser", "yaml", "zod", "node:"],
  "src/workload": ["src/core", "src/config", "hyparquet", "node:"],
  "src/sim": ["src/core", "src/config", "src/workload", "eventemitter3"],
  "src/runtime": ["src/core", "src/config", "src/workload", "piscina", "comlink", "eventemitter3", "node:"],
  "src/insight": ["src/core", "src/config", "src/workload", "src/sim"],
  "src/surfaces": [
    "src/core",
    "src/config",
    "src/workload",
    "src/sim",
    "src/runtime",
    "src/insight",
    "commander",
    "string-width",
    "piscina",
    "node:",
  ],
  workers: ["src", "comlink", "piscina", "node:"],
};

/** Only ever shorter. `file -> specifier`, with the reason. */
const EXCEPTIONS: readonly string[] = [];

/** In core nothing may reach for these: time, chance, consoles and waits are the driver's. */
const NEVER_IN_CORE = [
  /\bDate\b/,
  /\bMath\.random\b/,
  /\bset(Timeout|Interval|Immediate)\b/,
  /\bconsole\b/,
  /\bprocess\./,
  /\bAtomics\.wait\b/,
];

function filesBelow(dir: string): string[] {
  return readdirSync(join(root, dir), { recursive: true, encoding: "utf8" })
    .filter((f) => f.endsWith(".ts"))
    .map((f) => join(dir, f).split(sep).join("/"));
}

function importsOf(file: string): string[] {
  const text = readFileSync(join(root, file), "utf8");
  const found = text.matchAll(
    /(?:^|\n)\s*(?:import|export)\s[^;]*?from\s+"([^"]+)"|import\("([^"]+)"\)|^import\s+"([^"]+)"/gm,
  );
  return [...found].map((m) => m[1] ?? m[2] ?? m[3] ?? "");
}

const roomOf = (file: string): string | undefined =>
  Object.keys(MAY_USE).find((room) => file === room || file.startsWith(`${room}/`));

/** Surfaces don't use each other: each folder below src/surfaces is a room of its own. */
const surfaceOf = (file: string): string | null => /^src\/surfaces\/([^/]+)\//.exec(file)?.[1] ?? null;

function complaint(file: string, specifier: string): string | null {
  const room = roomOf(file);
  if (room === undefined) return null;
  const allowed = MAY_USE[room] ?? [];
  const say = (why: string) => `${file} imports ${specifier}: ${why}`;
  if (EXCEPTIONS.includes(`${file} -> ${specifier}`)) return null;
  if (specifier.startsWith(".")) {
    const target = relative(root, resolve(root, dirname(file), specifier))
      .split(sep)
      .join("/");
    const there = surfaceOf(target);
    const here = surfaceOf(file);
    // The command line starts the servers; nothing else among the surfaces knows a sibling.
    if (here !== null && there !== null && here !== there && here !== "cli")
      return say("surfaces don't use each other");
    if (target.startsWith(`${room}/`)) return null;
    return allowed.some((a) => target.startsWith(`${a}/`)) ? null : say(`${room} may not use it`);
  }
  if (specifier.startsWith("node:")) return allowed.includes("node:") ? null : say(`${room} may not use Node`);
  const name = specifier.startsWith("@") ? specifier.split("/").slice(0, 2).join("/") : specifier.split("/")[0];
  return allowed.includes(name ?? "") ? null : say(`${room} may not use this package`);
}

describe("rooms and arrows", () => {
  const files = [...filesBelow("src"), ...filesBelow("workers")];

  test("there are files to look at", () => {
    expect(files.length).toBeGreaterThan(5);
  });

  test("every import stays inside the table", () => {
    const complaints = files.flatMap((f) => importsOf(f).map((s) => complaint(f, s))).filter((c) => c !== null);
    expect(complaints).toEqual([]);
  });

  test("core knows no clock, no chance and no console", () => {
    const complaints = files
      .filter((f) => f.startsWith("src/core/"))
      .flatMap((f) => {
        const code = readFileSync(join(root, f), "utf8").replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "");
        return NEVER_IN_CORE.filter((p) => p.test(code)).map((p) => `${f}: ${p.source}`);
      });
    expect(complaints).toEqual([]);
  });

  test("the table would catch a wrong arrow", () => {
    expect(complaint("src/core/units.ts", "node:fs")).toContain("may not use Node");
    expect(complaint("src/core/units.ts", "../runtime/fleet.ts")).toContain("may not use it");
    expect(complaint("src/surfaces/web/page.ts", "../hs2/server.ts")).toContain("surfaces don't use each other");
  });
});
