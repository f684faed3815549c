/**
 * What must hold of buffers and pages at every snapshot: I7 to I10 (memory 9.2).
 *
 * Functions from a snapshot to complaints, so that tests run them after every step and the fleet on demand.
 * Each complaint begins with the rule's id. Not checked, because not required (memory 9.4): that an unpinned
 * page is written, that anything is given back early.
 */
import { type AllocatorSnapshot, isPowerOfTwo } from "./buffer-allocator.ts";
import type { ClientSnapshot, PageSnapshot } from "./buffer-pool.ts";

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);
const bytesIn = (pages: readonly PageSnapshot[], state: string): number =>
  sum(pages.filter((p) => p.state === state).map((p) => p.bytes));

/** `clients` are all that allocate from this pool; `minBufferBytes` is the pool's smallest buffer. */
export function brokenPoolRules(
  pool: AllocatorSnapshot,
  clients: readonly ClientSnapshot[],
  minBufferBytes: number,
): readonly string[] {
  return [
    ...clients.flatMap(brokenClientSums),
    ...brokenPoolSums(pool),
    ...brokenBuffers(pool, minBufferBytes),
    ...clients.flatMap((c) => brokenPages(c, pool)),
    ...brokenOwnership(pool, clients),
  ];
}

function brokenClientSums(c: ClientSnapshot): string[] {
  const found: string[] = [];
  if (c.used !== c.allocated + c.pinned)
    found.push(`I7 ${c.label}: used ${c.used} is not allocated ${c.allocated} + pinned ${c.pinned}`);
  if (c.reservation < c.allocated + c.pinned + c.dirty + c.inFlight)
    found.push(
      `I7 ${c.label}: reservation ${c.reservation} is below allocated ${c.allocated} + pinned ${c.pinned} + dirty ${c.dirty} + in flight ${c.inFlight}`,
    );
  const pins = sum(c.pages.map((p) => p.bytes * p.pins));
  if (pins !== c.pinned) found.push(`I7 ${c.label}: its pages are pinned ${pins}, it counts ${c.pinned}`);
  if (bytesIn(c.pages, "dirty") !== c.dirty) found.push(`I7 ${c.label}: dirty bytes are not those of its pages`);
  if (bytesIn(c.pages, "inFlight") !== c.inFlight)
    found.push(`I7 ${c.label}: bytes in flight are not those of its pages`);
  return found;
}

function brokenPoolSums(p: AllocatorSnapshot): string[] {
  const found: string[] = [];
  if (p.inUse + p.free + p.clean + p.systemRemaining !== p.limit)
    found.push(
      `I8 in use ${p.inUse} + free ${p.free} + clean ${p.clean} + remaining ${p.systemRemaining} is not ${p.limit}`,
    );
  if (Math.min(p.inUse, p.free, p.clean, p.systemRemaining) < 0) found.push("I8 one of the pool's sums is negative");
  if (p.clean > p.cleanLimit) found.push(`I8 clean ${p.clean} is over its limit ${p.cleanLimit}`);
  return found;
}

function brokenBuffers(p: AllocatorSnapshot, minBufferBytes: number): string[] {
  const found: string[] = [];
  let end = Number.NEGATIVE_INFINITY;
  for (const b of p.buffers) {
    if (!isPowerOfTwo(b.bytes) || b.bytes < minBufferBytes || b.bytes > p.limit)
      found.push(`I9 a buffer of ${b.bytes} bytes`);
    if (b.address < end) found.push(`I9 the buffer at ${b.address} overlaps the one before it`);
    end = b.address + b.bytes;
  }
  for (const place of ["inUse", "free", "clean"] as const) {
    const there = sum(p.buffers.filter((b) => b.place === place).map((b) => b.bytes));
    if (there !== p[place]) found.push(`I9 buffers ${place} are ${there} bytes, the pool counts ${p[place]}`);
  }
  return found;
}

function brokenPages(c: ClientSnapshot, pool: AllocatorSnapshot): string[] {
  const found: string[] = [];
  const placeAt = new Map(pool.buffers.map((b) => [b.address, b]));
  for (const page of c.pages) {
    const buffer = placeAt.get(page.address);
    const is = `I10 ${c.label} page ${page.id} is ${page.state}`;
    if ((page.state === "pinned") !== page.pins > 0) found.push(`${is} with ${page.pins} pins`);
    if (page.state === "evicted" ? buffer !== undefined : buffer?.bytes !== page.bytes)
      found.push(`${is} and its buffer is ${buffer?.bytes ?? "none"}`);
    const place = page.state === "clean" ? "clean" : "inUse";
    if (page.state !== "evicted" && buffer?.place !== place) found.push(`${is} and its buffer is ${buffer?.place}`);
    const onDisk = page.state === "clean" || page.state === "evicted";
    // A pinned page that is still being read keeps its range until somebody looks at it.
    if (onDisk && page.range === null && !c.failed) found.push(`${is} without a disk range`);
    if ((page.state === "dirty" || page.state === "inFlight") && page.range !== null)
      found.push(`${is} with a disk range`);
  }
  return found;
}

/** Every buffer in use is held by somebody, once: what one client's books say is what its buffers add up to. */
function brokenOwnership(pool: AllocatorSnapshot, clients: readonly ClientSnapshot[]): string[] {
  const held = sum(
    clients.map(
      (c) => c.allocated + sum(c.pages.filter((p) => p.address >= 0 && p.state !== "clean").map((p) => p.bytes)),
    ),
  );
  return held === pool.inUse ? [] : [`I9 clients hold ${held} bytes of buffers, the pool counts ${pool.inUse} in use`];
}
