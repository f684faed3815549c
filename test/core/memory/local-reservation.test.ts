/** The small reservation tree that the pool's and the operators' tests stand on. */
import { describe, expect, test } from "vitest";
import { LocalReservation } from "../../../src/core/memory/local-reservation.ts";
import { unusedOf } from "../../../src/core/memory/reservation-client.ts";

const numbers = (t: LocalReservation) => [t.reservation, t.used, t.child];

function tree(limits: { root?: number; query?: number; client?: number } = {}) {
  const node = (label: string, limit: number | undefined, parent?: LocalReservation) =>
    new LocalReservation({
      label,
      ...(limit === undefined ? {} : { limit }),
      ...(parent === undefined ? {} : { parent }),
    });
  const root = node("Process", limits.root);
  const query = node("Query(1:0)", limits.query, root);
  const client = node("SORT_NODE (id=1)", limits.client, query);
  return { root, query, client };
}

describe("R1 increasing a reservation", () => {
  test.each([
    { root: 100, ask: 99, granted: true },
    { root: 100, ask: 100, granted: true },
    { root: 100, ask: 101, granted: false },
  ])("root limit $root, asked $ask: granted = $granted", ({ root, ask, granted }) => {
    const t = tree({ root });
    expect(t.client.tryIncrease(ask)).toBe(granted);
    const held = granted ? ask : 0;
    expect(numbers(t.client)).toEqual([held, 0, 0]);
    expect(numbers(t.query)).toEqual([held, 0, held]);
    expect(numbers(t.root)).toEqual([held, 0, held]);
  });

  test("ToFit asks only for what is missing, a plain call for everything", () => {
    const { client } = tree();
    client.tryIncrease(10);
    client.tryIncreaseToFit(12);
    expect(client.reservation).toBe(12);
    client.tryIncrease(12);
    expect(client.reservation).toBe(24);
  });

  test("an ancestor first hands down what it has unused", () => {
    const { root, query, client } = tree({ root: 10 });
    query.tryIncrease(10);
    expect(client.tryIncrease(10)).toBe(true);
    expect(numbers(query)).toEqual([10, 0, 10]);
    expect(numbers(root)).toEqual([10, 0, 10]);
  });

  test("R5: the refusal names the tracker that refused, not the one that asked", () => {
    const { client } = tree({ root: 1024 });
    client.tryIncrease(1000);
    expect(client.tryIncrease(100)).toBe(false);
    expect(client.refusal).toContain('limit for the "Process" ReservationTracker: reservation_limit=1.00 KB');
  });

  test("the dice are asked before the limit, and not for what fits already", () => {
    const t = new LocalReservation({ label: "x", denies: () => true });
    expect(t.tryIncrease(1)).toBe(false);
    expect(t.tryIncreaseToFit(0)).toBe(true);
  });
});

describe("R2 to R6", () => {
  test("R2: giving back goes all the way to the root", () => {
    const { root, query, client } = tree();
    client.tryIncrease(10);
    client.decrease(4);
    expect([root.reservation, query.reservation, client.reservation]).toEqual([6, 6, 6]);
  });

  test("R3: used and unused move locally", () => {
    const { root, client } = tree();
    client.tryIncrease(10);
    client.allocate(7);
    expect(unusedOf(client)).toBe(3);
    expect(root.used).toBe(0);
    expect(() => client.allocate(4)).toThrow("R3");
  });

  test("R4: a transfer leaves the common ancestor's total, even with every limit above at its end", () => {
    const { root, query, client } = tree({ root: 10, query: 10 });
    const other = new LocalReservation({ label: "JOIN", parent: query });
    client.tryIncrease(10);
    expect(client.transferTo(other, 6)).toBe(true);
    expect([root, query].map(numbers)).toEqual([
      [10, 0, 10],
      [10, 0, 10],
    ]);
    expect([client.reservation, other.reservation]).toEqual([4, 6]);
  });

  test("R4: only the receiving path is checked, and a refusal changes nothing", () => {
    const { query, client } = tree();
    const small = new LocalReservation({ label: "small", parent: query, limit: 5 });
    client.tryIncrease(10);
    expect(client.transferTo(small, 6)).toBe(false);
    expect([client.reservation, small.reservation, query.child]).toEqual([10, 0, 10]);
  });

  test("O1: a sub-reservation is set aside and comes back", () => {
    const { client } = tree();
    client.tryIncrease(10);
    const sub = client.subReservation();
    expect(client.transferTo(sub as LocalReservation, 4)).toBe(true);
    expect(numbers(client)).toEqual([10, 0, 4]);
    expect(sub.transferTo(client, 4)).toBe(true);
    expect(numbers(client)).toEqual([10, 0, 0]);
    sub.close();
    client.close();
  });

  test("R6: closing with used bytes is a bug", () => {
    const { client } = tree();
    client.tryIncrease(1);
    client.allocate(1);
    expect(() => client.close()).toThrow("R6");
  });
});
