import { describe, expect, test } from "vitest";
import { ConfigError } from "../../src/config/config-error.ts";
import type { RunEvent } from "../../src/core/events.ts";
import { encodeEnd, encodeEvent, encodeHeader, RecordsReader } from "../../src/insight/records.ts";
import { ADM2, Stream } from "./stream.ts";

const HEADER = encodeHeader({
  program: "0.0.0",
  mode: "virtual",
  seed: 7,
  scenario: { path: "x.yaml", text: "name: x" },
  pools: { fairScheduler: null, llamaSite: null },
  machine: null,
});
const STREAM = new Stream().submit(0, "a").queue(0, "a", ADM2(1, 1)).admit(5, "a", 10, "fromQueue", 5).end(9, "a");
const BODY = STREAM.events.map(encodeEvent).join("");
const WHOLE = HEADER + BODY + encodeEnd(9, STREAM.events.length);

function read(text: string): { readonly reader: RecordsReader; readonly events: RunEvent[] } {
  const reader = new RecordsReader("r.jsonl");
  const lines = text.split("\n");
  const rest = lines.pop() ?? "";
  const events = lines.map((line) => reader.read(line)).filter((e) => e !== null);
  const last = reader.readCutOff(rest);
  return { reader, events: last === null ? events : [...events, last] };
}

function problemOf(text: string): string {
  try {
    read(text);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  throw new Error("no error was raised");
}

describe("a records file", () => {
  test("comes back as it was written", () => {
    const { reader, events } = read(WHOLE);
    expect(events).toEqual(STREAM.events);
    expect(reader.header).toMatchObject({ seed: 7, mode: "virtual", scenario: { path: "x.yaml" } });
    expect(reader).toMatchObject({ isComplete: true, until: 9, events: 5 });
  });

  test("cut off at any byte after the header it gives the events that are whole", () => {
    for (let cut = HEADER.length; cut < WHOLE.length - 1; cut++) {
      const { reader, events } = read(WHOLE.slice(0, cut));
      expect(events).toEqual(STREAM.events.slice(0, events.length));
      expect(reader.isComplete).toBe(false);
    }
    expect(read(HEADER + BODY).events).toHaveLength(5);
  });

  test("kinds that a newer program writes are passed over", () => {
    const { events } = read(`${HEADER}{"kind":"moonrise","at":3}\n${BODY}`);
    expect(events).toEqual(STREAM.events);
  });
});

describe("files that are none", () => {
  test.each([
    ["an empty line", "\n", "r.jsonl:1: this is no records file"],
    ["text", "hello\n", "r.jsonl:1: this is no records file. Expected a file that"],
    ["text without line break", "hello", "r.jsonl:1: this is no records file"],
    ["JSON lines of somebody else", '{"level":"info"}\n', "r.jsonl:1: this is no records file"],
    ["a JSON list", "[1]\n", "r.jsonl:1: this is no records file"],
    [
      "another version",
      HEADER.replace('"version":1', '"version":2'),
      "r.jsonl:1: the records have version 2. Expected 1",
    ],
    ["a header without seed", HEADER.replace('"seed"', '"sead"'), "the header has no seed"],
    ["a damaged line", `${HEADER}{"kind":\n`, "r.jsonl:2: this line is no JSON"],
    ["a line that is no event", `${HEADER}{"kind":"queued"}\n`, "r.jsonl:2: this line is no event"],
    [
      "a field of another type",
      `${HEADER}${encodeEvent(STREAM.events[0]!).replace('"attempt":1', '"attempt":"1"')}`,
      'r.jsonl:2: the event "submitted" has no attempt of type number',
    ],
    ["a lost line", HEADER + encodeEnd(9, 5), "r.jsonl:2: the end counts 5 events, but 0 were read"],
    ["two files in one", WHOLE + BODY, "r.jsonl:8: there is a line after the end"],
  ])("%s", (_, text, problem) => {
    expect(problemOf(text)).toContain(problem);
  });

  test("an empty file has no header", () => {
    expect(() => read("").reader.header).toThrow("r.jsonl:1: the file is empty");
  });
});
