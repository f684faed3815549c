import { describe, expect, test } from "vitest";
import { givePages, missingPages, newestPages, pagesFor, takePages } from "../../../src/core/memory/arena-pages.ts";
import { claim, giveBackClaim, takeMinimum } from "../../../src/core/memory/initial-reservations.ts";
import { checkIdle, checkLedger } from "../../../src/core/memory/ledger-checks.ts";
import {
  at,
  F_LIMIT,
  F_PARENT,
  F_RESERVATION,
  F_SCRATCH,
  F_USED,
  get,
  NONE,
  poolReservedOf,
  ROOT,
} from "../../../src/core/memory/ledger-layout.ts";
import { queryIdOf } from "../../../src/core/memory/refusal-text.ts";
import { memLimitFor, reservationLimitFor } from "../../../src/core/memory/reservation-limit.ts";
import { allocateFrom, increaseReservation, releaseTo } from "../../../src/core/memory/reservation-trackers.ts";
import {
  closeTracker,
  endExecution,
  giveBackScratch,
  openClient,
  openInstance,
  openUnclaimed,
  queryIdParts,
  takeScratch,
} from "../../../src/core/memory/tracker-records.ts";
import { commit, put, rollBack } from "../../../src/core/memory/undo-log.ts";
import { GiB, MiB } from "../../../src/core/units.ts";
import { client, ledger, query } from "./ledger-fixture.ts";

describe("R8, R9 memory limit and reservation limit", () => {
  test.each([
    [10 * MiB, 0],
    [32 * MiB, 0],
    [32 * MiB + 1, 1],
    [100 * MiB, 68 * MiB],
    [160 * MiB, 128 * MiB],
    [200 * MiB, 160 * MiB],
    [GiB, Math.floor(0.8 * GiB)],
    [2 * GiB, Math.floor(1.6 * GiB)],
    [-1, -1],
  ])("MEM_LIMIT %d: %d may be reserved", (limit, reserved) => {
    expect(reservationLimitFor(limit, -1, 0)).toBe(reserved);
  });

  test("the lower of query and process decides; BUFFER_POOL_LIMIT stands alone", () => {
    expect(reservationLimitFor(200 * MiB, 160 * MiB, 0)).toBe(128 * MiB);
    expect(reservationLimitFor(-1, 160 * MiB, 0)).toBe(128 * MiB);
    expect(reservationLimitFor(200 * MiB, 160 * MiB, 500 * MiB)).toBe(500 * MiB);
  });

  test.each([
    [46 * MiB, 78 * MiB],
    [128 * MiB, 160 * MiB],
    [200 * MiB, 250 * MiB],
  ])("reservation %d needs a limit of %d", (reservation, limit) => {
    expect(memLimitFor(reservation)).toBe(limit);
  });
});

describe("records", () => {
  test("a ledger has room for exactly its capacity, and again after closing", () => {
    const v = ledger({ trackers: 3 });
    const a = query(v);
    const b = query(v);
    expect(query(v)).toBe(NONE);
    expect(checkLedger(v)).toEqual([]);
    closeTracker(v, a);
    expect(query(v)).toBe(a);
    closeTracker(v, a);
    closeTracker(v, b);
    expect(checkIdle(v)).toEqual([]);
  });

  test("R6 a parent can't close before its children", () => {
    const v = ledger();
    const c = client(v);
    expect(() => closeTracker(v, get(v, c, F_PARENT))).toThrow("R6");
  });

  test("a query's id survives as numbers", () => {
    const v = ledger();
    const q = query(v, { id: queryIdParts("fefc7ac1b2d4e6f8:0123456789abcdef") });
    expect(queryIdOf(v, q)).toBe("fefc7ac1b2d4e6f8:0123456789abcdef");
  });

  test("a process limit bounds a query without a limit of its own", () => {
    const v = ledger({ processLimit: 160 * MiB });
    expect(get(v, query(v), F_LIMIT)).toBe(128 * MiB);
  });
});

describe("admission 7.2 what a pool has reserved on a host", () => {
  test("the limit while it executes, its consumption afterwards", () => {
    const v = ledger({ pool: 1000 * MiB });
    const c = client(v, { pool: 7, memLimit: (200 * MiB) as never });
    increaseReservation(v, c, 30 * MiB);
    expect(poolReservedOf(v, 7)).toBe(200 * MiB);
    endExecution(v, get(v, get(v, c, F_PARENT), F_PARENT));
    expect(poolReservedOf(v, 7)).toBe(30 * MiB);
    expect(checkLedger(v)).toEqual([]);
  });

  test("without a limit always its consumption", () => {
    const v = ledger();
    const c = client(v, { pool: 7 });
    expect(poolReservedOf(v, 7)).toBe(0);
    increaseReservation(v, c, 30);
    expect(poolReservedOf(v, 7)).toBe(30);
  });
});

describe("R15 to R20 initial reservations", () => {
  function setUp(min: number) {
    const v = ledger({ pool: 100 });
    const q = query(v);
    const unclaimed = openUnclaimed(v, q, 1);
    const instance = openInstance(v, q, 1, 1);
    return { v, q, unclaimed, instance, granted: takeMinimum(v, unclaimed, min, min + 20) };
  }

  test.each([
    [99, true],
    [100, true],
    [101, false],
  ])("R17 a minimum of %d of 100: %s", (min, granted) => {
    const s = setUp(min);
    expect(s.granted).toBe(granted);
    expect(get(s.v, ROOT, F_RESERVATION)).toBe(granted ? min : 0);
  });

  test("R19, R20 operators claim in phases and return; what nobody will claim goes up", () => {
    const { v, unclaimed, instance } = setUp(60);
    const first = openClient(v, instance, 0, -1, 1);
    claim(v, unclaimed, first, 50);
    increaseReservation(v, first, 5);
    giveBackClaim(v, unclaimed, first);
    expect(get(v, unclaimed, F_RESERVATION)).toBe(30);
    const second = openClient(v, instance, 1, -1, 1);
    claim(v, unclaimed, second, 30);
    expect(() => claim(v, unclaimed, second, 1)).toThrow("I11");
    giveBackClaim(v, unclaimed, second);
    expect(get(v, ROOT, F_RESERVATION)).toBe(0);
    expect(checkLedger(v)).toEqual([]);
  });
});

describe("the arena's pages", () => {
  const using = (bytes: number) => {
    const v = ledger();
    const c = client(v);
    increaseReservation(v, c, bytes);
    allocateFrom(v, c, bytes);
    return { v, c };
  };

  test.each([
    [99, 0],
    [100, 1],
    [199, 1],
    [3200, 32],
  ])("%d used bytes stand for %d pages of 100", (bytes, pages) => {
    const { v, c } = using(bytes);
    expect([pagesFor(v, bytes), missingPages(v, c)]).toEqual([pages, pages]);
  });

  test("pages given back are given out first, then fresh ones", () => {
    const { v, c } = using(1000);
    const first = new Int32Array(3);
    takePages(v, c, first);
    expect([...first]).toEqual([0, 1, 2]);
    givePages(v, c, 2);
    const second = new Int32Array(4);
    takePages(v, c, second);
    expect([...second]).toEqual([0, 1, 3, 4]);
    expect(checkLedger(v)).toEqual([]);
    const newest = new Int32Array(5);
    newestPages(v, c, newest);
    expect([...newest]).toEqual([0, 1, 3, 4, 2]);
    givePages(v, c, 5);
    releaseTo(v, c, get(v, c, F_USED));
    expect(checkLedger(v)).toEqual([]);
  });

  test("a client with pages can't close", () => {
    const { v, c } = using(1000);
    takePages(v, c, new Int32Array(1));
    expect(() => closeTracker(v, c)).toThrow("without pages");
  });
});

describe("S5 scratch limit of a query on a host", () => {
  test.each([
    [100, 99, true],
    [100, 100, true],
    [100, 101, false],
    [-1, 1e12, true],
    [0, 1, false],
  ])("limit %d, %d bytes: %s", (scratchLimit, bytes, granted) => {
    const v = ledger();
    const q = query(v, { scratchLimit });
    expect(takeScratch(v, q, bytes)).toBe(granted ? "taken" : "queryLimit");
    expect(get(v, q, F_SCRATCH)).toBe(granted ? bytes : 0);
    expect(checkLedger(v)).toEqual([]);
    giveBackScratch(v, q);
    closeTracker(v, q);
    expect(checkIdle(v)).toEqual([]);
  });
});

describe("S5 the host's scratch space", () => {
  test.each([
    [99, "taken"],
    [100, "taken"],
    [101, "hostFull"],
  ])("100 bytes in all, %d asked for: %s", (bytes, answer) => {
    const v = ledger({ scratchCapacity: 150 });
    expect(takeScratch(v, query(v), 50)).toBe("taken");
    expect(takeScratch(v, query(v), bytes)).toBe(answer);
    expect(checkLedger(v)).toEqual([]);
  });
});

describe("a step that was cut off is rolled back", () => {
  test("words go back to what they were, the last written first", () => {
    const v = ledger();
    const c = client(v);
    const place = at(c, F_USED);
    put(v, place, 5);
    put(v, place, 9);
    expect(rollBack(v)).toBe(true);
    expect(get(v, c, F_USED)).toBe(0);
    expect(rollBack(v)).toBe(false);
  });

  test("a finished step stays", () => {
    const v = ledger();
    const c = client(v);
    put(v, at(c, F_USED), 5);
    commit(v);
    expect(rollBack(v)).toBe(false);
    expect(get(v, c, F_USED)).toBe(5);
  });
});
