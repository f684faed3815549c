/** Every interleaving of threads at one host's lock, with a kill at every step of the walk (DESIGN 5). */
import { describe, expect, test } from "vitest";
import { takePages } from "../../src/core/memory/arena-pages.ts";
import { checkIdle, liveTrackers } from "../../src/core/memory/ledger-checks.ts";
import {
  F_OWNER,
  F_PAGE_COUNT,
  F_PARENT,
  get,
  type LedgerView,
  NONE,
  ROOT,
} from "../../src/core/memory/ledger-layout.ts";
import { allocateFrom, increaseReservation } from "../../src/core/memory/reservation-trackers.ts";
import { closeWithAll, giveBackOf, HostLedger } from "../../src/runtime/host-ledger.ts";
import { breakLock, type LockAtomics, MAIN_ID, releaseLock, takeLock } from "../../src/runtime/host-lock.ts";
import { client, ledger, query } from "../core/memory/ledger-fixture.ts";
import { explore, type ThreadBody } from "./interleave.ts";

const supervisor = {
  id: MAIN_ID,
  body:
    (dead: number): ThreadBody =>
    (view, atomics) => {
      const host = new HostLedger(view, MAIN_ID, atomics, 0);
      host.breakLockOf(dead);
      host.run(giveBackOf, dead);
    },
};

/** Opens a query of its own, reserves, uses, takes pages; gives all back in another section. */
const wholeQuery =
  (id: number, bytes: number): ThreadBody =>
  (view, atomics) => {
    const host = new HostLedger(view, id, atomics, 0);
    const c = host.run(openAndGrow, id, bytes);
    host.run(closeQueryOf, c);
  };

/** Opens a query and ends with it open. */
const openQueryOnly =
  (id: number): ThreadBody =>
  (view, atomics) =>
    void new HostLedger(view, id, atomics, 0).run(query, { owner: id, pool: id, bufferPoolLimit: 100 });

function openAndGrow(v: LedgerView, owner: number, bytes: number): number {
  const opened = client(v, { owner, pool: owner });
  if (increaseReservation(v, opened, bytes)) {
    allocateFrom(v, opened, bytes);
    takePages(v, opened, new Int32Array(Math.floor(bytes / 100)));
  }
  return opened;
}

function closeQueryOf(v: LedgerView, c: number): void {
  for (let t = c, up = NONE; t > 0; t = up) {
    up = get(v, t, F_PARENT);
    closeWithAll(v, t);
  }
}

const lockOnly =
  (id: number, times: number): ThreadBody =>
  (view, atomics) => {
    for (let n = 0; n < times; n++) {
      takeLock(view.i32, id, atomics, 0);
      view.f64[8 + 13] = view.f64[8 + 13]! + 1;
      releaseLock(view.i32, id, atomics);
    }
  };

describe("the lock alone", () => {
  const breaksOnly = {
    id: MAIN_ID,
    body:
      (dead: number): ThreadBody =>
      (view: LedgerView, atomics: LockAtomics) => {
        if (breakLock(view.i32, dead, MAIN_ID, atomics)) releaseLock(view.i32, MAIN_ID, atomics);
      },
  };

  test("three threads, two sections each: nobody is inside with another, nobody sleeps for ever", () => {
    const found = explore({
      ledger: ledger({ trackers: 1, pages: 0 }),
      threads: [2, 3, 4].map((id) => ({ id, body: lockOnly(id, 2) })),
      supervisor: breaksOnly,
      kills: 0,
      atEnd: (v) => (v.f64[8 + 13] === 6 ? [] : [`${v.f64[8 + 13]} of 6 sections counted`]),
      most: 400_000,
    });
    expect(found.sleeps).toBeGreaterThan(100);
    expect(found.ends).toBeGreaterThan(0);
  });

  test("three threads, one section each, up to two of them killed anywhere: no wake-up is lost", () => {
    const found = explore({
      ledger: ledger({ trackers: 1, pages: 0 }),
      threads: [2, 3, 4].map((id) => ({ id, body: lockOnly(id, 1) })),
      supervisor: breaksOnly,
      kills: 2,
      atEnd: () => [],
      most: 400_000,
    });
    expect(found.killed).toBeGreaterThan(1000);
  });

  test("the harness sees a lost wake-up when the supervisor wakes nobody", () => {
    const silent: LockAtomics["notify"] = () => 0;
    expect(() =>
      explore({
        ledger: ledger({ trackers: 1, pages: 0 }),
        threads: [2, 3, 4].map((id) => ({ id, body: lockOnly(id, 1) })),
        supervisor: {
          id: MAIN_ID,
          body: (dead) => (view, atomics) => breaksOnly.body(dead)(view, { ...atomics, notify: silent }),
        },
        kills: 1,
        atEnd: () => [],
        most: 400_000,
      }),
    ).toThrow("sleep for ever");
  });

  test("the harness sees words touched without the lock", () => {
    expect(() =>
      explore({
        ledger: ledger({ trackers: 1, pages: 0 }),
        threads: [
          {
            id: 2,
            body: (view) => {
              view.f64[8 + 13] = 1;
            },
          },
        ],
        supervisor: breaksOnly,
        kills: 0,
        atEnd: () => [],
        most: 10,
      }),
    ).toThrow("touches shared words");
  });
});

describe("a query's life on a host", () => {
  const onlyOf =
    (id: number) =>
    (v: LedgerView): string[] => {
      for (const t of liveTrackers(v)) if (t !== ROOT && get(v, t, F_OWNER) === id) closeWithAll(v, t);
      return checkIdle(v);
    };

  test("one thread, killed at any access: nothing of it is left", () => {
    const found = explore({
      ledger: ledger({ trackers: 5, pages: 4, pool: 500 }),
      threads: [{ id: 2, body: wholeQuery(2, 300) }],
      supervisor,
      kills: 1,
      atEnd: checkIdle,
      most: 400_000,
    });
    expect(found.killed).toBeGreaterThan(300);
  });

  test("two threads, one of them killed at any access: every instant balances, the other's numbers stand", () => {
    const found = explore({
      ledger: ledger({ trackers: 5, pages: 4, pool: 500 }),
      threads: [
        { id: 2, body: wholeQuery(2, 300) },
        { id: 3, body: openQueryOnly(3) },
      ],
      supervisor,
      kills: 1,
      atEnd: onlyOf(3),
      most: 400_000,
    });
    expect(found.killed).toBeGreaterThan(1000);
  });
});

describe("misuse is noticed", () => {
  test("a release by somebody who was declared dead", () => {
    const words = new Int32Array(16);
    takeLock(words, 5, Atomics, 0);
    expect(breakLock(words, 5, MAIN_ID, Atomics)).toBe(true);
    expect(() => releaseLock(words, 5, Atomics)).toThrow("lock released by 5");
  });

  test("a section that throws leaves the ledger as it was and the lock open", () => {
    const v = ledger();
    const host = new HostLedger(v, 2);
    const c = host.run((view) => client(view));
    expect(() =>
      host.run((view) => {
        increaseReservation(view, c, 100);
        allocateFrom(view, c, 101);
      }),
    ).toThrow("R3");
    expect(host.tryRun((view) => get(view, c, F_PAGE_COUNT))).toBe(0);
  });
});
