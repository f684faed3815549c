/**
 * Sizes as `--scratch_dirs` writes them: a whole number with an optional unit, `-1` for none.
 *
 * A reader of its own, because the scenario's reader speaks of lines and this one of one flag's entry.
 */
import { GiB, KiB, MiB } from "../../core/units.ts";

const UNIT: Readonly<Record<string, number>> = { "": 1, b: 1, k: KiB, kb: KiB, m: MiB, mb: MiB, g: GiB, gb: GiB };

/** Bytes; -1 for "no limit"; null when it isn't a size. */
export function parseSize(text: string): number | null {
  if (text === "-1") return -1;
  const found = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text);
  const unit = found === null ? undefined : UNIT[found[2]!.toLowerCase()];
  if (found === null || unit === undefined) return null;
  return Math.floor(Number(found[1]) * unit);
}
