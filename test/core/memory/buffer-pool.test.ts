/** One client's pages: states, pins, write-back (B3 to B12, I7, I10, I16, I18). */
import { describe, expect, test } from "vitest";
import { allocatorStateBytes, BufferAllocator, NO_LOCK } from "../../../src/core/memory/buffer-allocator.ts";
import { BufferPoolClient, type Page } from "../../../src/core/memory/buffer-pool.ts";
import { brokenPoolRules } from "../../../src/core/memory/buffer-pool-checks.ts";
import { LocalReservation } from "../../../src/core/memory/local-reservation.ts";
import { unusedOf } from "../../../src/core/memory/reservation-client.ts";
import { SimulatedStore, seeded } from "./simulated-store.ts";

const MIN = 16;

/** A host with a pool of `limit` bytes and clients that share it. `chance` as in SimulatedStore. */
function host(o: { clean?: number; chance?: () => number } = {}) {
  const limit = 16 * MIN;
  const { clean = limit, chance = () => 0.9 } = o;
  const arena = new Uint8Array(limit * 4);
  const options = {
    minBufferBytes: MIN,
    limitBytes: limit,
    cleanLimitBytes: clean,
    baseAddress: 0,
    addressBytes: limit * 4,
  };
  const words = new Int32Array(allocatorStateBytes(options) / 4);
  BufferAllocator.format(words, options);
  const allocator = new BufferAllocator(words, options, NO_LOCK);
  const root = new LocalReservation({ label: "Process", limit });
  const checksum = (address: number, bytes: number) =>
    arena.subarray(address, address + bytes).reduce((a, b) => (Math.imul(a, 31) + b) | 0, 7);
  const clients: BufferPoolClient[] = [];
  function client(reservation: number, store: SimulatedStore | null = new SimulatedStore(arena, chance)) {
    const tracker = new LocalReservation({ label: `client-${clients.length}`, parent: root });
    if (!tracker.tryIncrease(reservation)) throw new Error(tracker.refusal);
    const made = new BufferPoolClient({ allocator, reservation: tracker, store, owner: clients.length + 1, checksum });
    clients.push(made);
    return { client: made, tracker, store: store as SimulatedStore };
  }
  const broken = () =>
    brokenPoolRules(
      allocator.snapshot(),
      clients.map((c) => c.snapshot()),
      MIN,
    );
  const write = (c: BufferPoolClient, page: Page, value: number) =>
    arena.fill(value, c.addressOf(page), c.addressOf(page) + page.bytes);
  const reads = (c: BufferPoolClient, page: Page) => arena.subarray(c.addressOf(page), c.addressOf(page) + page.bytes);
  return { arena, allocator, root, client, broken, write, reads };
}

const stateOf = (c: BufferPoolClient, page: Page) => c.snapshot().pages.find((p) => p.id === page.id)?.state;

describe("B4, I16 unpin", () => {
  test("used falls by the page, the reservation stays, and a write starts at once", () => {
    const { client: c, tracker } = host().client(4 * MIN);
    const page = c.createPage(MIN);
    expect(tracker.used).toBe(MIN);
    c.unpin(page);
    expect([tracker.used, tracker.reservation]).toEqual([0, 4 * MIN]);
    expect(stateOf(c, page)).toBe("inFlight");
  });

  test("a page pinned twice uses twice its length and stays until the last pin goes", () => {
    const { client: c, tracker } = host().client(4 * MIN);
    const page = c.createPage(MIN);
    c.pin(page);
    expect(tracker.used).toBe(2 * MIN);
    c.unpin(page);
    expect(stateOf(c, page)).toBe("pinned");
    expect(tracker.used).toBe(MIN);
  });

  test("B1: without a file group unpinning is a bug", () => {
    const { client: c } = host().client(MIN, null);
    expect(() => c.unpin(c.createPage(MIN))).toThrow("B1");
  });
});

describe("B5 pin", () => {
  test("a dirty page comes back without I/O", () => {
    const { client: c, store } = host().client(4 * MIN);
    const pages = [0, 1, 2].map(() => c.createPage(MIN));
    for (const p of pages) c.unpin(p);
    expect(stateOf(c, pages[2]!)).toBe("dirty");
    c.pin(pages[2]!);
    expect(store.written).toEqual([]);
  });

  test("a page in flight waits for its write, then needs no read and gives its range back", () => {
    const { client: c, store } = host().client(4 * MIN);
    const page = c.createPage(MIN);
    c.unpin(page);
    c.pin(page);
    expect(store.written).toEqual([page.id]);
    expect([c.counters.readIoOps, store.freed, store.stored.size]).toEqual([0, 1, 0]);
  });

  test("an evicted page is read back with its contents, and its range is given back", () => {
    const h = host({ clean: 0 });
    const { client: c, store } = h.client(4 * MIN);
    const page = c.createPage(MIN);
    h.write(c, page, 77);
    c.unpin(page);
    const [a, b, d, e] = [0, 1, 2, 3].map(() => c.createPage(MIN));
    h.write(c, a!, 1);
    expect(stateOf(c, page)).toBe("evicted");
    for (const p of [a, b, d, e]) c.destroyPage(p!);
    c.pin(page);
    expect([...h.reads(c, page)]).toEqual(new Array(MIN).fill(77));
    expect([c.counters.readIoOps, store.freed]).toEqual([1, 1]);
    expect(h.broken()).toEqual([]);
  });

  test("118: a byte that changed on disk is noticed", () => {
    const h = host({ clean: 0 });
    const { client: c, store } = h.client(MIN);
    const page = c.createPage(MIN);
    c.unpin(page);
    c.destroyPage(c.createPage(MIN));
    for (const bytes of store.stored.values()) bytes[3]! ^= 1;
    c.pin(page);
    expect(() => c.addressOf(page)).toThrow(
      expect.objectContaining({ failure: expect.objectContaining({ code: 118 }) }),
    );
  });
});

describe("B7, B8 room for dirty pages inside the promise", () => {
  test.each([
    { reservation: 3, waits: 0 },
    { reservation: 2, waits: 1 },
    { reservation: 1, waits: 2 },
  ])("two pages unpinned, one allocated under $reservation: $waits writes are waited for", ({ reservation, waits }) => {
    const h = host({ chance: () => 0.9 });
    const { client: c, tracker, store } = h.client(3 * MIN);
    store.maxInFlight = 0;
    for (const page of [c.createPage(MIN), c.createPage(MIN)]) c.unpin(page);
    tracker.tryIncreaseToFit(0);
    // Give back what this case must not have; B9 writes for it, so only the rest is left to wait for.
    const before = store.written.length;
    c.decreaseReservation((3 - reservation) * MIN);
    c.createPage(MIN);
    expect(store.written.length - before).toBe(waits);
    expect(h.broken()).toEqual([]);
  });

  test("I18, B9: a promise leaves only when the dirty pages fit in the rest", () => {
    const { client: c, store } = host().client(2 * MIN);
    store.maxInFlight = 0;
    for (const page of [c.createPage(MIN), c.createPage(MIN)]) c.unpin(page);
    c.decreaseReservation(MIN);
    expect(store.written.length).toBe(1);
    expect(c.snapshot()).toMatchObject({ reservation: MIN, dirty: MIN, inFlight: 0 });
  });
});

describe("B10 write-back", () => {
  test("as many writes as may be in flight, the most recently unpinned page first", () => {
    const { client: c, store } = host().client(8 * MIN);
    const pages = [0, 1, 2, 3, 4].map(() => c.createPage(MIN));
    for (const p of pages) c.unpin(p);
    expect(pages.map((p) => stateOf(c, p))).toEqual(["inFlight", "inFlight", "dirty", "dirty", "dirty"]);
    // This disk finishes the younger of two writes first, so page 0 is waited for until all others are done.
    c.destroyPage(pages[0]!);
    expect(store.written).toEqual([1, 4, 3, 2, 0].map((at) => pages[at]!.id));
  });

  test("a page destroyed while dirty never touches the disk", () => {
    const { client: c, store } = host().client(4 * MIN);
    store.maxInFlight = 0;
    const page = c.createPage(MIN);
    c.unpin(page);
    c.destroyPage(page);
    c.close();
    expect(store.written).toEqual([]);
  });
});

describe("B12 a write that fails", () => {
  test("ends the client at its next pin, allocation or change of reservation, and stops writing", () => {
    const h = host();
    const { client: c, store } = h.client(4 * MIN);
    const pages = [0, 1, 2, 3].map(() => c.createPage(MIN));
    store.failure = { code: 101, text: "no scratch" };
    for (const p of pages) c.unpin(p);
    expect(() => c.createPage(MIN)).toThrow("no scratch");
    expect(() => c.decreaseReservation(MIN)).toThrow("no scratch");
    expect(h.broken()).toEqual([]);
    c.close();
    expect(c.snapshot()).toMatchObject({ used: 0, pinned: 0, dirty: 0, inFlight: 0, pages: [] });
  });
});

describe("B6 destroy and extract", () => {
  test("an extracted page is a buffer at the same place", () => {
    const h = host();
    const { client: c, tracker } = h.client(MIN);
    const page = c.createPage(MIN);
    const address = c.addressOf(page);
    expect(c.extractBuffer(page)).toBe(address);
    expect(h.broken()).toEqual([]);
    c.freeBuffer(address, MIN);
    expect(tracker.used).toBe(0);
  });
});

describe("I7, I10 are seen when broken", () => {
  const h = host();
  const { client: c, store } = h.client(4 * MIN);
  store.maxInFlight = 1;
  const pages = [0, 1, 2].map(() => c.createPage(MIN));
  c.unpin(pages[1]!);
  c.unpin(pages[2]!);
  const good = c.snapshot();
  const withPage = (id: number, change: object) => ({
    ...good,
    pages: good.pages.map((p) => (p.id === id ? { ...p, ...change } : p)),
  });

  test.each([
    [{ ...good, used: MIN + 1 }, "I7"],
    [{ ...good, reservation: MIN }, "I7"],
    [{ ...good, pinned: 0, used: 0 }, "I7"],
    [{ ...good, dirty: 0 }, "I7"],
    [withPage(1, { state: "clean" }), "I10"],
    [withPage(1, { pins: 0 }), "I10"],
    [withPage(3, { state: "evicted" }), "I10"],
    [withPage(2, { range: { file: 0, offset: 0, length: MIN, stored: MIN } }), "I10"],
    [withPage(1, { address: 999 }), "I10"],
  ])("case %#", (snapshot, rule) => {
    const check = (s: typeof good) => brokenPoolRules(h.allocator.snapshot(), [s], MIN).join("\n");
    expect(check(good)).toBe("");
    expect(check(snapshot as typeof good)).toContain(rule);
  });
});

describe("I7 to I10 after every step", () => {
  test.each(Array.from({ length: 60 }, (_, seed) => seed))("random work of three clients, seed %i", (seed) => {
    const chance = seeded(seed);
    const h = host({ clean: Math.floor(chance() * 6) * MIN, chance });
    const clients = [h.client(0), h.client(0), h.client(0)];
    const pages = clients.map(() => new Map<Page, number>());
    const pick = <T>(from: readonly T[]): T | undefined => from[Math.floor(chance() * from.length)];

    for (let step = 0; step < 150; step++) {
      const at = Math.floor(chance() * 3);
      const { client: c, tracker } = clients[at]!;
      const mine = pages[at]!;
      const page = pick([...mine.keys()]);
      const bytes = MIN * 2 ** Math.floor(chance() * 3);
      const dice = chance();
      if (dice < 0.35) {
        if (tracker.tryIncreaseToFit(bytes)) {
          const made = c.createPage(bytes);
          h.write(c, made, step & 255);
          mine.set(made, step & 255);
        }
      } else if (page !== undefined && dice < 0.6) {
        if (page.pins > 0) c.unpin(page);
      } else if (page !== undefined && dice < 0.8) {
        if (tracker.tryIncreaseToFit(page.bytes)) {
          c.pin(page);
          expect(h.reads(c, page).every((b) => b === mine.get(page))).toBe(true);
        }
      } else if (page !== undefined && dice < 0.9) {
        c.destroyPage(page);
        mine.delete(page);
      } else if (unusedOf(tracker) > 0) c.decreaseReservation(unusedOf(tracker));
      expect(h.broken(), `step ${step}`).toEqual([]);
    }

    for (const { client: c, tracker, store } of clients) {
      c.close();
      tracker.close();
      expect(store.stored.size).toBe(0);
    }
    expect(h.broken()).toEqual([]);
    expect(h.root.reservation).toBe(0);
    expect(h.allocator.snapshot()).toMatchObject({ inUse: 0, clean: 0 });
  });
});
