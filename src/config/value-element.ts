/**
 * How Impala takes a value out of an element (pool-configuration 1.2): the first child node must be a text, and
 * its data alone is the value. Anything else costs the whole file, without a tidy message.
 */
import { AllocationFault } from "./allocation-fault.ts";
import { javaTrim } from "./java-text.ts";
import type { XmlElement } from "./located-xml.ts";

/** Not trimmed; what follows the first text (a CDATA section, an element) has no say. */
export function rawValueOf(element: XmlElement, file: string, pool: string | null): string {
  const first = element.children[0];
  if (first === undefined)
    throw new AllocationFault(
      "valueMissing",
      { file, place: element.at, pool },
      `<${element.name}> is empty, which ends in a NullPointerException`,
      remedyFor(element),
    );
  if (first.kind === "element" || first.kind === "instruction")
    throw new AllocationFault(
      "valueMissing",
      { file, place: element.at, pool },
      `<${element.name}> begins with ${first.kind === "element" ? `<${first.name}>` : "a processing instruction"} instead of text, which ends in a ClassCastException`,
      remedyFor(element),
    );
  return first.data;
}

function remedyFor(element: XmlElement): string {
  if (element.name === "aclSubmitApps")
    return "For nobody write one blank: <aclSubmitApps> </aclSubmitApps>; for everybody write *.";
  return `Write a text into <${element.name}>, or delete the element.`;
}

export const trimmedValueOf = (element: XmlElement, file: string, pool: string | null): string =>
  javaTrim(rawValueOf(element, file, pool));

export const elementsOf = (parent: XmlElement): readonly XmlElement[] =>
  parent.children.filter((child) => child.kind === "element");
