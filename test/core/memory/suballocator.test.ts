/** Pieces of buffers (B15). */
import { describe, expect, test } from "vitest";
import { allocatorStateBytes, BufferAllocator, NO_LOCK } from "../../../src/core/memory/buffer-allocator.ts";
import { BufferPoolClient } from "../../../src/core/memory/buffer-pool.ts";
import { LocalReservation } from "../../../src/core/memory/local-reservation.ts";
import { type Piece, Suballocator } from "../../../src/core/memory/suballocator.ts";
import { KiB } from "../../../src/core/units.ts";
import { seeded } from "./simulated-store.ts";

function pieces(limit: number, bufferBytes = 64 * KiB) {
  const options = {
    minBufferBytes: 8 * KiB,
    limitBytes: 1024 * KiB,
    cleanLimitBytes: 0,
    baseAddress: 0,
    addressBytes: 2048 * KiB,
  };
  const words = new Int32Array(allocatorStateBytes(options) / 4);
  BufferAllocator.format(words, options);
  const reservation = new LocalReservation({ label: "x", limit });
  const pool = new BufferPoolClient({
    allocator: new BufferAllocator(words, options, NO_LOCK),
    reservation,
    store: null,
    owner: 1,
    checksum: () => 0,
  });
  return { reservation, suballocator: new Suballocator(pool, bufferBytes) };
}

describe("B15 suballocator", () => {
  test("a buffer is split in halves, lowest address first, down to 4 KB", () => {
    const { reservation, suballocator } = pieces(1024 * KiB);
    const [a, b, c] = [16, 4, 1].map((kb) => suballocator.tryAllocate(kb * KiB)!);
    expect([a!.address, a!.bytes]).toEqual([0, 16 * KiB]);
    expect([b!.address, b!.bytes]).toEqual([16 * KiB, 4 * KiB]);
    expect([c!.address, c!.bytes]).toEqual([20 * KiB, 4 * KiB]);
    expect(reservation.used).toBe(64 * KiB);
  });

  test("halves join at once, and an empty buffer goes back", () => {
    const { reservation, suballocator } = pieces(1024 * KiB);
    const all = [8, 8, 16, 32].map((kb) => suballocator.tryAllocate(kb * KiB)!);
    for (const piece of all.slice(0, 3)) suballocator.free(piece);
    expect(suballocator.tryAllocate(32 * KiB)!.address).toBe(0);
    expect(reservation.used).toBe(64 * KiB);
    suballocator.free(all[3]!);
    suballocator.free({ ...all[0]!, bytes: 32 * KiB });
    expect(reservation.used).toBe(0);
  });

  test.each([
    [64, 64, true],
    [64, 63, false],
    [65, 128, true],
    [65, 127, false],
  ])("a piece of %i KB under %i KB of reservation: granted = %s", (asked, limit, granted) => {
    const { suballocator } = pieces(limit * KiB);
    expect(suballocator.tryAllocate(asked * KiB) !== null).toBe(granted);
  });

  test("a piece given back twice is a bug", () => {
    const { suballocator } = pieces(1024 * KiB);
    const [a] = [suballocator.tryAllocate(4 * KiB)!, suballocator.tryAllocate(4 * KiB)!];
    suballocator.free(a);
    expect(() => suballocator.free(a)).toThrow("B15");
  });

  test.each([1, 2, 3, 4, 5])("random work leaves no overlap and nothing behind, seed %i", (seed) => {
    const chance = seeded(seed);
    const { reservation, suballocator } = pieces(512 * KiB);
    const held: Piece[] = [];
    for (let step = 0; step < 400; step++) {
      if (chance() < 0.55) {
        const piece = suballocator.tryAllocate(Math.ceil(chance() * 100 * KiB));
        if (piece !== null) held.push(piece);
      } else if (held.length > 0) suballocator.free(held.splice(Math.floor(chance() * held.length), 1)[0]!);
      const byAddress = [...held].sort((a, b) => a.address - b.address);
      for (const [i, p] of byAddress.entries())
        expect(p.address + p.bytes).toBeLessThanOrEqual(byAddress[i + 1]?.address ?? Number.POSITIVE_INFINITY);
      expect(suballocator.pieceBytes).toBe(held.reduce((sum, p) => sum + p.bytes, 0));
    }
    for (const piece of held) suballocator.free(piece);
    expect(reservation.used).toBe(0);
  });
});
