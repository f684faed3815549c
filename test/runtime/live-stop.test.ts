/** How a run ends before its time: Ctrl-C, and kill -9 with a new start. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { drainedAtOnce, drainedWhileBusy, expectClean, leavesNothingBehind } from "./live-checks.ts";
import { firstEvent, open, runOf, SCRATCH, small } from "./live-fixture.ts";

leavesNothingBehind();

describe("Ctrl-C", () => {
  test("once: who waits is cancelled, who runs finishes, and there is a report", async () => {
    await drainedWhileBusy(undefined, 5);
  });

  test("twice: who runs is cancelled too, at once", async () => {
    const told = await open(small({ query: { duration: "10h" } }));
    const done = told.run.run();
    await firstEvent(told, (e) => e.kind === "fragmentStarted");
    told.run.drain();
    told.run.stop();
    const report = await done;
    expect(report.ended).toBe("stopped");
    expect(told.events.at(-1)).toMatchObject({ kind: "released", state: "cancelled" });
    expectClean(report);
  });

  test("before the first thread is there", () => drainedAtOnce(undefined));
});

describe("kill -9", () => {
  test("the next start finds and removes what the dead process left", async () => {
    const fixture = JSON.stringify(join(import.meta.dirname, "live-fixture.ts"));
    const script = `
      import { open, small, firstEvent } from ${fixture};
      const told = await open(small({ query: { duration: "10h", uses: { peak: "4gb", shape: "flat" }, options: { MEM_LIMIT: "2gb" } } }));
      void told.run.run();
      await firstEvent(told, (e) => e.kind === "spilled");
      process.stdout.write(told.run.fleet.scratch.directory + "\\n");`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, WATERHOLE_TEST_SCRATCH: SCRATCH },
    });
    const [line] = await once(child.stdout, "data");
    child.kill("SIGKILL");
    await once(child, "exit");
    const directory = String(line).trim();
    expect(readdirSync(directory, { recursive: true }).length).toBeGreaterThan(0);
    const { report } = await runOf(small());
    expect(report.scratchRemoved).toEqual([directory.split("/").at(-1)]);
    expectClean(report);
  });
});
