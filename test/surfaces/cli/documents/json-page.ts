/**
 * docs/json.md as data: a table for each heading that has one, and whether a document is as they say.
 */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";

interface Row {
  readonly key: string;
  readonly type: string;
  /** When it is null or absent; empty: never. */
  readonly missing: string;
}

export type Page = ReadonlyMap<string, readonly Row[]>;

export function jsonPage(): Page {
  const page = new Map<string, Row[]>();
  let heading = "";
  for (const line of readFileSync(resolve(import.meta.dirname, "../../../../docs/json.md"), "utf8").split("\n")) {
    heading = /^##+ (.*)/.exec(line)?.[1] ?? heading;
    const [, key, type, missing] = /^\| `(\w+)` \| (.*?) \| .*\| (.*?) ?\|$/.exec(line) ?? [];
    if (key === undefined) continue;
    const rows = page.get(heading) ?? [];
    page.set(heading, [...rows, { key, type: type!.replace(/\[(\w+)\]\(#\w+\)/g, "$1"), missing: missing! }]);
  }
  return page;
}

/** Walks through documents, noting what it saw and what the page does not say. */
export class PageCheck {
  readonly seen = new Set<string>();
  readonly complaints = new Set<string>();
  readonly #page: Page;

  constructor(page: Page) {
    this.#page = page;
  }

  document(table: string, document: unknown): void {
    this.#value(table, document, table);
  }

  #value(type: string, value: unknown, where: string): void {
    const [, listed] = /^list of (.*)/.exec(type) ?? [];
    const [, mapped] = /^map of (.*)/.exec(type) ?? [];
    if (listed !== undefined) {
      if (!Array.isArray(value)) this.#complain(where, `is no ${type}`);
      else
        for (const item of value) if (item !== null || where !== "Binding.overTime") this.#value(listed, item, where);
    } else if (mapped !== undefined) {
      if (!isObject(value)) this.#complain(where, `is no ${type}`);
      else for (const item of Object.values(value)) this.#value(mapped, item, where);
    } else if (this.#page.has(type)) this.#table(type, value, where);
    else if (!isScalar(type, value)) this.#complain(where, `is ${JSON.stringify(value)}, not ${type}`);
  }

  #table(name: string, value: unknown, where: string): void {
    if (!isObject(value)) {
      this.#complain(where, `is no ${name}`);
      return;
    }
    const { endless = [], ...keys } = value;
    const rows = this.#page.get(name)!;
    for (const key of Object.keys(keys))
      if (!rows.some((r) => r.key === key)) this.#complain(`${name}.${key}`, "is not on the page");
    for (const row of rows) this.#row(name, row, keys, (endless as readonly string[]).includes(row.key));
  }

  #row(table: string, { key, type, missing }: Row, value: Record<string, unknown>, isEndless: boolean): void {
    const where = `${table}.${key}`;
    if (key in value) this.seen.add(where);
    else if (!missing.includes("absent")) this.#complain(where, "is not there");
    if (value[key] === null) this.#null(where, missing, isEndless);
    else if (key in value) this.#value(type, value[key], where);
  }

  #null(where: string, missing: string, isEndless: boolean): void {
    if (isEndless && !missing.includes("`endless`")) this.#complain(where, "is endless");
    // Where the page knows no other reason it has to be this one.
    else if (!isEndless && /^(absent.*|`endless`.*|)$/.test(missing)) this.#complain(where, "is null");
  }

  #complain(where: string, what: string): void {
    this.complaints.add(`${where} ${what}`);
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function isScalar(type: string, value: unknown): boolean {
  switch (type) {
    case "count":
      return Number.isSafeInteger(value);
    case "bytes":
    case "ms":
    case "number":
    case "share":
      return Number.isFinite(value);
    case "text":
      return typeof value === "string";
    case "yes/no":
      return typeof value === "boolean";
    default:
      return type === "any";
  }
}
