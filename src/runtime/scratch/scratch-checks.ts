/**
 * What must hold of one query's scratch files at every instant: I12 (memory 9.2).
 */
import type { DiskRange } from "../../core/memory/page-store.ts";
import type { FileGroup } from "./file-group.ts";

/** `live`: the ranges of all pages of the query, `scratchLimit` as in FileGroupOptions. Empty when all is well. */
export function brokenScratchRules(group: FileGroup, live: readonly DiskRange[], scratchLimit: number): string[] {
  const { charged, fileBytes, recycled } = group.snapshot();
  const found: string[] = [];
  const liveBytes = live.reduce((sum, r) => sum + r.length, 0);
  if (charged !== fileBytes) found.push(`I12 the query is charged ${charged} bytes, its files have ${fileBytes}`);
  if (charged < liveBytes + recycled)
    found.push(`I12 the query is charged ${charged} bytes for ${liveBytes} live and ${recycled} recycled`);
  if (scratchLimit >= 0 && charged > scratchLimit)
    found.push(`I12 ${charged} bytes are over SCRATCH_LIMIT ${scratchLimit}`);
  const inOrder = [...live].sort((a, b) => a.file - b.file || a.offset - b.offset);
  for (const [i, range] of inOrder.entries()) {
    const next = inOrder[i + 1];
    if (range.stored > range.length) found.push(`I12 ${range.stored} bytes in a range of ${range.length}`);
    if (next !== undefined && next.file === range.file && next.offset < range.offset + range.length)
      found.push(`I12 ranges overlap at ${next.offset} of file ${next.file}`);
  }
  return found;
}
