import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkIdle, checkLedger } from "../../../src/core/memory/ledger-checks.ts";
import {
  F_CHILD,
  F_MEM_CONSUMED,
  F_PARENT,
  F_RESERVATION,
  F_USED,
  get,
  NONE,
  ROOT,
} from "../../../src/core/memory/ledger-layout.ts";
import { consume, HARD, release, SOFT, spareCapacity, tryConsume } from "../../../src/core/memory/mem-trackers.ts";
import { refusalText } from "../../../src/core/memory/refusal-text.ts";
import {
  allocateFrom,
  decreaseReservation,
  increaseReservation,
  increaseReservationToFit,
  releaseTo,
  transferReservation,
  unusedOf,
} from "../../../src/core/memory/reservation-trackers.ts";
import {
  closeTracker,
  openClient,
  openExchange,
  openInstance,
  openSub,
} from "../../../src/core/memory/tracker-records.ts";
import { MiB } from "../../../src/core/units.ts";
import { client, ledger, query } from "./ledger-fixture.ts";

const wordsOf = (v: { f64: Float64Array }): number[] => [...v.f64];

describe("R1 a reservation grows at every level or at none", () => {
  test.each([
    { asked: 3199, granted: true },
    { asked: 3200, granted: true },
    { asked: 3201, granted: false },
  ])("host limit 3200, asked $asked: granted = $granted", ({ asked, granted }) => {
    const v = ledger();
    const c = client(v);
    expect(increaseReservation(v, c, asked)).toBe(granted);
    expect(get(v, ROOT, F_RESERVATION)).toBe(granted ? asked : 0);
    expect(checkLedger(v)).toEqual([]);
  });

  test("query limit: BUFFER_POOL_LIMIT decides, equality is granted", () => {
    const v = ledger();
    const c = client(v, { bufferPoolLimit: 1000 });
    expect(increaseReservation(v, c, 1000)).toBe(true);
    expect(increaseReservation(v, c, 1)).toBe(false);
    expect(v.refusal).toMatchObject({ kind: "reservation", asked: 1, limit: 1000, reservation: 1000, child: 1000 });
  });

  test("I15 a refusal changes nothing but the count of refusals", () => {
    const v = ledger({ pool: 100 });
    const c = client(v);
    increaseReservation(v, c, 60);
    const before = wordsOf(v);
    expect(increaseReservation(v, c, 41)).toBe(false);
    const changed = wordsOf(v).filter((w, i) => w !== before[i]);
    expect(changed).toEqual([1]);
  });

  test("ToFit asks only for what is missing", () => {
    const v = ledger();
    const c = client(v);
    increaseReservation(v, c, 100);
    allocateFrom(v, c, 70);
    expect(increaseReservationToFit(v, c, 30)).toBe(true);
    expect(get(v, c, F_RESERVATION)).toBe(100);
    expect(increaseReservationToFit(v, c, 31)).toBe(true);
    expect(get(v, c, F_RESERVATION)).toBe(101);
  });

  test("an ancestor first hands down what it has unused", () => {
    const v = ledger();
    const c = client(v);
    const instance = get(v, c, F_PARENT);
    increaseReservation(v, instance, 50);
    increaseReservation(v, c, 80);
    expect([get(v, instance, F_RESERVATION), get(v, instance, F_CHILD)]).toEqual([80, 80]);
    expect(get(v, ROOT, F_RESERVATION)).toBe(80);
    expect(checkLedger(v)).toEqual([]);
  });

  test("an exchange reserves from the root and is charged to its query (2.1)", () => {
    const v = ledger();
    const c = client(v, { memLimit: (100 * MiB) as never });
    const instance = get(v, c, F_PARENT);
    const exchange = openExchange(v, instance, 1);
    expect(increaseReservation(v, exchange, 300)).toBe(true);
    const q = get(v, instance, F_PARENT);
    expect([get(v, q, F_RESERVATION), get(v, q, F_MEM_CONSUMED)]).toEqual([0, 300]);
    expect(checkLedger(v)).toEqual([]);
  });
});

describe("R1 step 6, R11: the soft limit bites before the reservation limit", () => {
  test.each([
    { other: 79 * MiB, granted: true },
    { other: 80 * MiB, granted: true },
    { other: 80 * MiB + 1, granted: false },
  ])("limit 200 MB, other memory $other, reserving 100 MB: $granted", ({ other, granted }) => {
    const v = ledger({ pool: 1000 * MiB });
    const c = client(v, { memLimit: (200 * MiB) as never });
    consume(v, c, other);
    expect(increaseReservation(v, c, 100 * MiB)).toBe(granted);
    expect(v.refusal.kind).toBe(granted ? "none" : "mem");
    expect(checkLedger(v)).toEqual([]);
  });

  test("an exchange asks with the hard limit", () => {
    const v = ledger({ pool: 1000 * MiB });
    const c = client(v, { memLimit: (200 * MiB) as never });
    consume(v, c, 180 * MiB);
    expect(increaseReservation(v, c, 1)).toBe(false);
    const exchange = openExchange(v, get(v, c, F_PARENT), 1);
    expect(increaseReservation(v, exchange, 20 * MiB)).toBe(true);
    expect(increaseReservation(v, exchange, 1)).toBe(false);
  });
});

describe("R2 to R4", () => {
  test("R2 what is given back leaves every level up to the root", () => {
    const v = ledger();
    const c = client(v);
    increaseReservation(v, c, 500);
    allocateFrom(v, c, 200);
    decreaseReservation(v, c, 300);
    expect(get(v, ROOT, F_RESERVATION)).toBe(200);
    expect(() => decreaseReservation(v, c, 1)).toThrow("R2");
    expect(checkLedger(v)).toEqual([]);
  });

  test("R3 used stays within what is reserved and tells no parent", () => {
    const v = ledger();
    const c = client(v);
    increaseReservation(v, c, 100);
    allocateFrom(v, c, 100);
    expect(() => allocateFrom(v, c, 1)).toThrow("R3");
    releaseTo(v, c, 100);
    expect(() => releaseTo(v, c, 1)).toThrow("R3");
    expect(get(v, c, F_RESERVATION)).toBe(100);
  });

  test("R4, I17 a transfer leaves the common ancestor as it was", () => {
    const v = ledger();
    const a = client(v);
    const instance = get(v, a, F_PARENT);
    const b = openClient(v, instance, 1, 50 as never, 1);
    increaseReservation(v, a, 100);
    expect(transferReservation(v, a, b, 51)).toBe(false);
    expect(transferReservation(v, a, b, 50)).toBe(true);
    expect([get(v, a, F_RESERVATION), get(v, b, F_RESERVATION), get(v, instance, F_RESERVATION)]).toEqual([
      50, 50, 100,
    ]);
    expect(checkLedger(v)).toEqual([]);
  });

  test("R4 between a client and a part set aside below it", () => {
    const v = ledger();
    const a = client(v);
    const sub = openSub(v, a, -1, 1);
    increaseReservation(v, a, 100);
    expect(transferReservation(v, a, sub, 40)).toBe(true);
    expect([unusedOf(v, a), get(v, a, F_CHILD)]).toEqual([60, 40]);
    expect(checkLedger(v)).toEqual([]);
    expect(transferReservation(v, sub, a, 40)).toBe(true);
    expect(unusedOf(v, a)).toBe(100);
    expect(checkLedger(v)).toEqual([]);
  });
});

describe("M5 to M10", () => {
  test("M7 all or nothing, at the process too", () => {
    const v = ledger({ processLimit: 1000 });
    const c = client(v);
    expect(tryConsume(v, c, 900, SOFT)).toBe(true);
    expect(tryConsume(v, c, 1, SOFT)).toBe(false);
    expect(tryConsume(v, c, 100, HARD)).toBe(true);
    expect(spareCapacity(v, c, HARD)).toBe(0);
    consume(v, c, 50);
    expect(spareCapacity(v, c, HARD)).toBe(-50);
    expect(() => closeTracker(v, c)).toThrow("M10");
    release(v, c, 1050);
    expect(checkLedger(v)).toEqual([]);
  });
});

describe("R5 the text of a refusal", () => {
  test("names limit, reservation, used and child of the tracker that refused", () => {
    const v = ledger({ pool: 4 * MiB });
    const c = client(v);
    increaseReservation(v, c, 3 * MiB);
    increaseReservation(v, c, 2 * MiB);
    expect(refusalText(v, v.refusal, "exec-1:27000")).toBe(
      [
        'Failed to increase reservation by 2.00 MB because it would exceed the applicable reservation limit for the "Process" ReservationTracker: reservation_limit=4.00 MB reservation=3.00 MB used_reservation=0 child_reservations=3.00 MB',
        "The top 5 queries that allocated memory under this tracker are:",
        "Query(0000000100000002:0000000300000004): Reservation=3.00 MB OtherMemory=0 Total=3.00 MB Peak=3.00 MB",
      ].join("\n"),
    );
  });

  test("1.5 a query at its soft limit prints the usage tree", () => {
    const v = ledger({ pool: 1000 * MiB });
    const c = client(v, { memLimit: (200 * MiB) as never });
    consume(v, c, 30 * MiB);
    increaseReservation(v, c, 149 * MiB);
    increaseReservation(v, c, 2 * MiB);
    expect(refusalText(v, v.refusal, "exec-2:27000")).toMatchInlineSnapshot(`
      "Memory limit exceeded: Could not allocate memory while trying to increase reservation.
      Query(0000000100000002:0000000300000004) could not allocate 2.00 MB without exceeding limit.
      Error occurred on backend exec-2:27000
      Memory left in query limit: 21.00 MB
      Query(0000000100000002:0000000300000004): Limit=200.00 MB Reservation=149.00 MB ReservationLimit=160.00 MB OtherMemory=30.00 MB Total=179.00 MB Peak=179.00 MB
        Fragment 0000000100000002:0000000300000005: Reservation=149.00 MB OtherMemory=30.00 MB Total=179.00 MB Peak=179.00 MB
          Operator (id=0): Reservation=149.00 MB OtherMemory=30.00 MB Total=179.00 MB Peak=179.00 MB"
    `);
  });
});

describe("I1 to I6 after any sequence of steps", () => {
  const step = fc.record({
    what: fc.constantFrom("grow", "fit", "shrink", "use", "unuse", "move", "consume", "release", "open", "close"),
    a: fc.nat(),
    b: fc.nat(),
    bytes: fc.integer({ min: 0, max: 600 }),
  });

  test("the books balance after every step and are empty after closing", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
        const v = ledger({ pool: 1500, processLimit: 4000 });
        const clients: number[] = [];
        const pick = (n: number): number => clients[n % clients.length] ?? NONE;
        for (const s of steps) {
          const t = pick(s.a);
          if (s.what === "open") {
            const q = query(v, { bufferPoolLimit: s.bytes });
            const i = q === NONE ? NONE : openInstance(v, q, 1, 1);
            const c = i === NONE ? NONE : openClient(v, i, 0, -1, 1);
            if (c !== NONE) clients.push(c);
          } else if (t === NONE) continue;
          else if (s.what === "grow") increaseReservation(v, t, s.bytes);
          else if (s.what === "fit") increaseReservationToFit(v, t, s.bytes);
          else if (s.what === "shrink") decreaseReservation(v, t, Math.min(s.bytes, unusedOf(v, t)));
          else if (s.what === "use") allocateFrom(v, t, Math.min(s.bytes, unusedOf(v, t)));
          else if (s.what === "unuse") releaseTo(v, t, Math.min(s.bytes, get(v, t, F_USED)));
          else if (s.what === "move") transferReservation(v, t, t, Math.min(s.bytes, unusedOf(v, t)));
          else if (s.what === "consume") tryConsume(v, t, s.bytes, s.b % 2);
          else if (s.what === "release") {
            const other = get(v, t, F_MEM_CONSUMED) - get(v, t, F_RESERVATION);
            release(v, t, Math.min(s.bytes, other));
          } else {
            closeWhole(v, t);
            clients.splice(clients.indexOf(t), 1);
          }
          expect(checkLedger(v)).toEqual([]);
        }
        for (const t of clients) closeWhole(v, t);
        expect(checkIdle(v).filter((b) => !b.includes("trackers are open"))).toEqual([]);
      }),
      { numRuns: 150 },
    );
  });

  function closeWhole(v: ReturnType<typeof ledger>, t: number): void {
    releaseTo(v, t, get(v, t, F_USED));
    release(v, t, get(v, t, F_MEM_CONSUMED) - get(v, t, F_RESERVATION));
    const instance = get(v, t, F_PARENT);
    const q = get(v, instance, F_PARENT);
    for (const i of [t, instance, q]) closeTracker(v, i);
  }
});
