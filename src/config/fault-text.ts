/**
 * A fault in one line, for records, reports and pages: `host dies, host exec-1:27000`.
 */
import type { Fault, QueryClass } from "./scenario.ts";

export function faultText(fault: Fault, classes: readonly Pick<QueryClass, "name">[]): string {
  const { kind, at: _, ...details } = fault;
  const said = Object.entries(details)
    .filter(([, value]) => value !== null)
    .map(([key, value]) => (key === "queryClass" ? `class ${classes[Number(value)]?.name}` : `${key} ${value}`));
  return [kind.replace(/[A-Z]/g, (c) => ` ${c.toLowerCase()}`), ...said].join(", ");
}
