/** Values of query options, read as Impala reads them; for all who look at options in force. */
import { parseMemorySpec } from "./memory-spec.ts";

/** Query options by upper-case name, as written. */
export type OptionTexts = Readonly<Record<string, string>>;

/** Null: nothing that sets a size, or no size as Impala reads one in an option. */
export function memoryOption(text: string): number | null {
  const written = text.trim();
  if (written === "" || written === "-1") return null;
  const spec = parseMemorySpec(written);
  return spec?.kind === "bytes" ? spec.bytes : null;
}
