/**
 * One `userQueryLimit` or `groupQueryLimit` (pool-configuration 1.7, admission 8.1).
 *
 * The walk complains after each child that comes before the first name, and takes -1 for "no count yet": both look
 * like slips and are the product's behaviour (T-33).
 */
import { AllocationFault } from "./allocation-fault.ts";
import { numberFormatMessage, parseInt32 } from "./java-text.ts";
import type { Place, XmlElement } from "./located-xml.ts";
import { elementsOf, trimmedValueOf } from "./value-element.ts";

export type QuotaTag = "user" | "group";

export interface QuotaBlock {
  readonly names: readonly { readonly name: string; readonly at: Place }[];
  readonly limit: number;
  readonly at: Place;
}

const NO_COUNT = -1;
const SHAPE = "Write the names first, then one totalCount with a whole number other than -1.";

export function readQuotaBlock(block: XmlElement, tag: QuotaTag, file: string, pool: string | null): QuotaBlock {
  const names: { name: string; at: Place }[] = [];
  let limit = NO_COUNT;
  const fault = (kind: "quotaMalformed" | "quotaOrder", place: Place, problem: string) =>
    new AllocationFault(kind, { file, place, pool }, problem, SHAPE);
  for (const child of elementsOf(block)) {
    if (child.name === tag) {
      const name = trimmedValueOf(child, file, pool);
      if (names.some((n) => n.name === name))
        throw fault("quotaMalformed", child.at, `Duplicate value given for name ${name}`);
      names.push({ name, at: child.at });
    } else if (child.name === "totalCount") {
      if (limit !== NO_COUNT)
        throw fault("quotaMalformed", child.at, `Duplicate totalCount tags for ${block.name}/totalCount`);
      limit = countIn(child, block, fault, file, pool);
    }
    if (names.length === 0) throw fault("quotaOrder", child.at, `Empty user names for ${block.name}`);
  }
  if (limit === NO_COUNT) throw fault("quotaMalformed", block.at, `No totalCount for ${block.name}`);
  return { names, limit, at: block.at };
}

function countIn(
  child: XmlElement,
  block: XmlElement,
  fault: (kind: "quotaMalformed", place: Place, problem: string) => AllocationFault,
  file: string,
  pool: string | null,
): number {
  const text = trimmedValueOf(child, file, pool);
  const count = parseInt32(text);
  if (count !== null) return count;
  const error = fault("quotaMalformed", child.at, `Could not parse query totalCount for ${block.name}/totalCount`);
  error.cause = new Error(numberFormatMessage(text));
  throw error;
}
