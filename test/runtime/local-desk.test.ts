/** The desk of a coordinator that decides alone says what of the hosts stops those who wait (insight 2.3). */
import { describe, expect, test } from "vitest";
import { controllerOptions } from "../../src/core/admission/controller-options.ts";
import { DEFAULT_POOL_CONFIG } from "../../src/core/pool-config.ts";
import { NOTHING_NEW } from "../../src/core/statestore/topic.ts";
import type { Instant } from "../../src/core/units.ts";
import type { Answer } from "../../src/runtime/admission-desk.ts";
import { LocalDesk } from "../../src/runtime/local-desk.ts";
import { gib, group, hosts, membership, poolConfig, request } from "../core/fixtures.ts";

function deskOn(slots: number) {
  let now = 0;
  const later: (() => void)[] = [];
  const told: string[] = [];
  const desk = new LocalDesk(controllerOptions({ hostId: "h0:1" }), {
    timers: { at: () => ({}) as never, cancel: () => undefined },
    now: () => now as Instant,
    soon: (act) => later.push(act),
    tell: (answer: Answer) => {
      if (answer.kind === "queued") told.push(`${now} ${answer.kind} ${answer.reason.rule}`);
    },
    hostsChecked: (q, onSlots, onMemory) => told.push(`${now} ${q.id} slots ${onSlots} memory ${onMemory}`),
  });
  desk.setMembership(
    membership(hosts(2, { executorGroup: group("root.p-g"), admissionSlots: slots, admitMemLimit: gib(100) })),
  );
  return {
    told,
    submit: (queryId: string, maxRequests: number) =>
      desk.submit(request({ queryId }), poolConfig({ maxRequests }), DEFAULT_POOL_CONFIG),
    exchangeAt: (at: number) => {
      now = at;
      desk.exchange([], NOTHING_NEW);
      for (const act of later.splice(0)) act();
    },
  };
}

describe("5.4, T-12 a place given back in the turn of an exchange", () => {
  test("is filled again before the exchange says how many run", () => {
    const later: (() => void)[] = [];
    const running: (number | undefined)[] = [];
    const desk = new LocalDesk(controllerOptions({ hostId: "h0:1" }), {
      timers: { at: () => ({}) as never, cancel: () => undefined },
      now: () => 0 as Instant,
      soon: (act) => later.push(act),
      tell: (answer: Answer) => {
        if (answer.kind !== "exchanged") return;
        for (const e of answer.entries) if (e.kind === "pool") running.push(e.stats?.numAdmittedRunning);
      },
      hostsChecked: () => undefined,
    });
    desk.setMembership(membership(hosts(2, { executorGroup: group("root.p-g"), admitMemLimit: gib(100) })));
    for (const queryId of ["a", "b"])
      desk.submit(request({ queryId }), poolConfig({ maxRequests: 1 }), DEFAULT_POOL_CONFIG);
    desk.exchange([], NOTHING_NEW);
    for (const act of later.splice(0)) act();
    desk.release("a", [0, 1], 0);
    desk.exchange([], NOTHING_NEW);
    expect(running).toEqual([1, 1]);
    for (const act of later.splice(0)) act();
    desk.release("b", [0, 1], 0);
    desk.exchange([], NOTHING_NEW);
    expect(running).toEqual([1, 1, 0]);
  });
});

describe("insight 2.3 the desk of a coordinator that decides alone", () => {
  test("the running limit is named; that slots are short too is told at the next exchange, and then no more", () => {
    const { told, submit, exchangeAt } = deskOn(1);
    submit("a", 1);
    submit("b", 1);
    exchangeAt(100);
    exchangeAt(200);
    exchangeAt(700);
    expect(told).toEqual(["0 queued ADM-2", "100 b slots true memory false"]);
  });

  test("with slots for two only the limit stops it", () => {
    const { told, submit, exchangeAt } = deskOn(2);
    submit("a", 1);
    submit("b", 1);
    exchangeAt(100);
    expect(told).toEqual(["0 queued ADM-2", "100 b slots false memory false"]);
  });
});
