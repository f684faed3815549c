import { beforeAll, describe, expect, test } from "vitest";
import { adviceDocument } from "../../../../src/surfaces/cli/documents/import.ts";
import { jsonText } from "../../../../src/surfaces/cli/documents/json-text.ts";
import { queueReasonDocument, rejectReasonDocument } from "../../../../src/surfaces/cli/documents/reason.ts";
import { settingDocument } from "../../../../src/surfaces/cli/documents/size.ts";
import { testFolder } from "../command-line.ts";
import { ADVICE, examplesIn, QUEUE_REASONS, REJECT_REASONS, SPLIT } from "./examples.ts";
import { jsonPage, PageCheck } from "./json-page.ts";

const page = jsonPage();
const check = new PageCheck(page);
const dir = testFolder();

beforeAll(async () => {
  for (const [table, documents] of await examplesIn(dir))
    for (const d of documents) {
      // Without a name `demo` prints a list.
      if (table === "demo") for (const item of d as unknown[]) check.document(table, item);
      else check.document(table, d);
    }
  const see = (table: string, made: object): void => check.document(table, JSON.parse(jsonText(made)));
  for (const reason of QUEUE_REASONS) see("Reason", queueReasonDocument(reason));
  for (const reason of REJECT_REASONS) see("Reason", rejectReasonDocument(reason));
  for (const advice of ADVICE) see("Advice", adviceDocument(advice));
  see("Setting", settingDocument(SPLIT));
}, 120_000);

describe("docs/json.md is what the commands print (STYLE 2)", () => {
  test("every key that is printed is on the page, with this type, and null only where the page says so", () => {
    expect([...check.complaints]).toEqual([]);
  });

  test("every key on the page is printed", () => {
    const all = [...page].flatMap(([table, rows]) => rows.map((r) => `${table}.${r.key}`));
    expect(all.filter((key) => !check.seen.has(key))).toEqual([]);
  });

  test.each([
    ["ms", /Ms$/],
    ["bytes", /Bytes$/],
    ["share", /(^s|S)hare/],
    ["map of bytes", /Bytes$/],
  ])("a key of type %s says so", (type, name) => {
    const keys = [...page.values()].flat().filter((r) => r.type === type);
    expect(keys.length).toBeGreaterThan(0);
    expect(keys.map((r) => r.key).filter((key) => !name.test(key))).toEqual([]);
  });
});

describe("the check itself", () => {
  const wrong = (document: object): string[] => {
    const own = new PageCheck(
      new Map([
        [
          "t",
          [
            { key: "aMs", type: "ms", missing: "" },
            { key: "b", type: "text", missing: "none" },
          ],
        ],
      ]),
    );
    own.document("t", document);
    return [...own.complaints];
  };

  test.each([
    [{ aMs: 1, b: "x" }, []],
    [{ aMs: 1, b: null }, []],
    [{ aMs: null, b: "x" }, ["t.aMs is null"]],
    [{ aMs: "1", b: "x" }, ['t.aMs is "1", not ms']],
    [{ aMs: 1 }, ["t.b is not there"]],
    [{ aMs: 1, b: "x", c: 1 }, ["t.c is not on the page"]],
    [{ aMs: 1, b: null, endless: ["b"] }, ["t.b is endless"]],
  ])("%j", (document, complaints) => {
    expect(wrong(document)).toEqual(complaints);
  });
});
