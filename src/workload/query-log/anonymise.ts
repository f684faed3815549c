/**
 * A trace that can be given away: the shape of the traffic without the names (insight 4.7).
 *
 * What stays is what a replay needs: times (moved by whole weeks, so that hours and weekdays stay), amounts and
 * holds rounded to three digits, and which requests belong together. Users, coordinators, classes and, if
 * wished, pools become keyed hashes; ids go. The key is made for one export and written nowhere, so that a
 * guessed name cannot be tried.
 */
import { createHmac } from "node:crypto";
import { FEWEST_EXECUTIONS, log2Bucket } from "./query-classes.ts";
import type { TracedRequest } from "./traced-request.ts";

export interface AnonymiseOptions {
  /** At least 16 bytes from a secure source, never kept. */
  readonly key: Uint8Array;
  /** Whole weeks to move the start by. */
  readonly weeks: number;
  readonly renamePools: boolean;
}

export interface AnonymousTrace {
  readonly start: number;
  readonly requests: readonly TracedRequest[];
  /** Old name -> new name, for renaming pools in the files in step; empty when pools keep their names. */
  readonly pools: ReadonlyMap<string, string>;
}

const WEEK = 7 * 86_400e6;

export function anonymised(
  start: number,
  requests: readonly TracedRequest[],
  options: AnonymiseOptions,
): AnonymousTrace {
  const hash = (kind: string, text: string): string =>
    createHmac("sha256", options.key).update(`${kind}\n${text}`).digest("hex").slice(0, 10);
  const pools = new Map<string, string>();
  const poolName = (name: string): string => {
    if (!options.renamePools) return name;
    if (!pools.has(name))
      pools.set(
        name,
        name
          .split(".")
          .map((part) => renamedPart(part, hash))
          .join("."),
      );
    return pools.get(name)!;
  };
  const sizes = new Map<string, number>();
  for (const r of requests) sizes.set(r.queryClass, (sizes.get(r.queryClass) ?? 0) + 1);
  return {
    start: start + options.weeks * WEEK,
    pools,
    requests: requests.map((r, i) => ({
      ...r,
      queryId: `${i}:0`,
      // Rare classes would tell who asked: they become one class a size.
      queryClass:
        (sizes.get(r.queryClass) ?? 0) >= FEWEST_EXECUTIONS
          ? `c-${hash("class", r.queryClass)}`
          : `rare-${log2Bucket(r.estimate)}`,
      pool: poolName(r.pool),
      user: `u-${hash("user", r.user)}`,
      coordinator: r.coordinator === null ? null : `h-${hash("host", r.coordinator)}`,
      options: {
        ...r.options,
        memLimit: roundedUp(r.options.memLimit),
        memLimitExecutors: roundedUp(r.options.memLimitExecutors),
        memLimitCoordinators: roundedUp(r.options.memLimitCoordinators),
        requestPool: null,
      },
      estimate: roundedUp(r.estimate),
      coordinatorEstimate: roundedUp(r.coordinatorEstimate),
      reservation: roundedDown(r.reservation),
      hold: rounded(r.hold),
      peak: rounded(r.peak),
      reserved: roundedDown(r.reserved),
      spilled: rounded(r.spilled),
    })),
  };
}

/** `root` means the same everywhere and is no secret. */
const renamedPart = (part: string, hash: (kind: string, text: string) => string): string =>
  part === "root" ? part : `p-${hash("pool", part)}`;

/** Three significant digits, whole. */
const rounded = (n: number): number => inThreeDigits(n, Math.round);

// What fitted under its limit still does: limits go up, what must fit goes down.
const roundedUp = (n: number): number => inThreeDigits(n, Math.ceil);
const roundedDown = (n: number): number => inThreeDigits(n, Math.floor);

function inThreeDigits(n: number, whole: (x: number) => number): number {
  if (n < 1000) return n;
  const unit = 10 ** (Math.floor(Math.log10(n)) - 2);
  return whole(n / unit) * unit;
}
