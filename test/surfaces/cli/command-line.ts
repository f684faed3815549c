/**
 * The command line as tests use it: the same entry as the program's, with what it writes kept apart by stream.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { main } from "../../../src/surfaces/cli/main.ts";

export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** One command, neither on a terminal nor with anything in its environment. */
export async function waterhole(...args: readonly string[]): Promise<Outcome> {
  const written = { stdout: "", stderr: "" };
  const stream = (name: "stdout" | "stderr") => ({
    write: (text: string) => {
      written[name] += text;
    },
  });
  const code = await main(args, { stdout: stream("stdout"), stderr: stream("stderr"), environment: {} });
  return { code, ...written };
}

/** Of one test file; gone when its tests are. */
export function testFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "waterhole-test-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  return folder;
}
