import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { main } from "../../../src/surfaces/cli/main.ts";
import { testFolder, waterhole } from "./command-line.ts";

const EXAMPLES = resolve(import.meta.dirname, "../../../examples/dashboards");
const dir = testFolder();

function scenario(name: string, arrivals: string, coordinators = "[{ count: 1, on: executor }]"): string {
  const path = join(dir, name);
  writeFileSync(
    path,
    `cluster:
  executors: [{ count: 10, memory: 100gb, slots: 16 }]
  coordinators: ${coordinators}
pools: { fairScheduler: ${join(EXAMPLES, "fair-scheduler.xml")}, llamaSite: ${join(EXAMPLES, "llama-site.xml")} }
queries:
  tile: { pool: root.dashboards, user: ana, estimate: 1.5gb, duration: { exponential: { mean: 4s } }, uses: { peak: 1.1gb } }
arrivals: [${arrivals}]
`,
  );
  return path;
}

interface Document {
  readonly running: number;
  readonly queries: readonly { readonly position: number; readonly became: string; readonly becameAfterMs: number }[];
}

const AT_60 = "{ at: 0s, query: tile, count: 60 }";

describe("waterhole eta", () => {
  test("one line for each that waits: position, interval, and what became of it", async () => {
    const { code, stdout, stderr } = await waterhole("eta", scenario("a.yaml", AT_60), "--at", "5s");
    expect(stderr).toBe("");
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^at 5 s: 1[0-3] running, \d+ queued\n\nroot\.dashboards: the head waits because Not enough aggregate memory/,
    );
    expect(stdout).toMatch(
      /\n {3}1 {2}tile {2}about [\d.]+ s \([\d.]+ s to [\d.]+ s\).*; then started after [\d.]+ s\n/,
    );
  });

  test("each coordinator has a queue of its own; admissiond has one for all", async () => {
    const heads = async (coordinators: string): Promise<string[]> =>
      (await waterhole("eta", scenario("d.yaml", AT_60, coordinators), "--at", "5s")).stdout
        .split("\n")
        .filter((line) => line.includes("the head waits"))
        .map((line) => line.replace(/:.*/, ""));
    expect(await heads("[{ count: 3, on: executor }]")).toEqual([
      "root.dashboards at exec-01",
      "root.dashboards at exec-02",
      "root.dashboards at exec-03",
    ]);
    expect(await heads("[{ count: 3, on: executor }]\n  admission: admissiond")).toEqual(["root.dashboards"]);
  });

  test("what comes later changes nothing that is said now, byte for byte (insight 5.4)", async () => {
    const told = async (arrivals: string): Promise<Document> =>
      JSON.parse((await waterhole("eta", scenario("b.yaml", arrivals), "--at", "5s", "--json")).stdout);
    const quiet = await told(AT_60);
    const busy = await told(`${AT_60}, { at: 5001ms, query: tile, count: 40 }, { at: 9s, query: tile, count: 40 }`);
    const saidNow = (d: Document): unknown => ({
      ...d,
      queries: d.queries.map(({ became: _became, becameAfterMs: _after, ...said }) => said),
    });
    expect(saidNow(busy)).toEqual(saidNow(quiet));
    expect(quiet.queries.length).toBeGreaterThan(10);
    expect(quiet.queries.map((q) => q.position)).toEqual(quiet.queries.map((_, i) => i + 1));
  });

  test("what it is doing shows on a terminal only, and is gone before the answer, or the error", async () => {
    const onTerminal = async (path: string, at: string): Promise<{ out: string; err: string }> => {
      const written = { out: "", err: "" };
      const stream = (name: "out" | "err") => ({
        isTTY: true,
        write: (text: string) => {
          written[name] += text;
        },
      });
      await main(["eta", path, "--at", at], { stdout: stream("out"), stderr: stream("err"), environment: {} });
      return written;
    };
    const path = scenario("e.yaml", AT_60);
    const { out, err } = await onTerminal(path, "5s");
    expect(err).toContain("eta: 199 of 199 runs forward");
    expect(err.endsWith("\x1b[?25h")).toBe(true);
    expect(out).toContain("at 5 s: ");
    expect((await onTerminal(path, "9h")).err).toMatch(/\[\?25h.*the run is over before 9 h/s);
  });

  test("nobody waits; the run is over; no moment given", async () => {
    const calm = scenario("c.yaml", "{ at: 0s, query: tile, count: 3 }");
    expect((await waterhole("eta", calm, "--at", "100ms")).stdout).toMatch(/\d running, 0 queued\nnobody waits/);
    const over = await waterhole("eta", calm, "--at", "9h");
    expect([over.code, over.stderr]).toEqual([
      2,
      expect.stringMatching(/the run is over before 9 h\.\nnext: Give an earlier/),
    ]);
    expect((await waterhole("eta", calm)).code).toBe(2);
  });
});
