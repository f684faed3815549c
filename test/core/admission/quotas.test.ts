import { describe, expect, test } from "vitest";
import { quotaReason } from "../../../src/core/admission/quotas.ts";
import { rejectReasonText } from "../../../src/core/admission/reasons.ts";
import { shortUser } from "../../../src/core/admission/short-user.ts";
import type { PoolConfig } from "../../../src/core/pool-config.ts";
import { poolConfig } from "../fixtures.ts";

interface Given {
  readonly groups?: readonly string[] | null;
  readonly users?: Record<string, number>;
  readonly groupLimits?: Record<string, number>;
  readonly root?: Record<string, number>;
  readonly load?: number;
  readonly rootLoad?: number;
}

const limits = (users: Record<string, number>, groups: Record<string, number> = {}): PoolConfig =>
  poolConfig({ userQueryLimits: new Map(Object.entries(users)), groupQueryLimits: new Map(Object.entries(groups)) });

const judge = (given: Given) =>
  quotaReason({
    pool: "root.p",
    user: "ana",
    groups: given.groups === undefined ? [] : given.groups,
    config: limits(given.users ?? {}, given.groupLimits),
    rootConfig: limits(given.root ?? {}),
    poolLoad: given.load ?? 0,
    rootLoad: given.rootLoad ?? 0,
  });

describe("REJ-C3 one level", () => {
  test.each([
    { limit: 0, load: 0, refused: true }, // 0 bars the user
    { limit: 1, load: 0, refused: false },
    { limit: 3, load: 2, refused: false },
    { limit: 3, load: 3, refused: true },
  ])("a user's own limit of $limit with $load: $refused", ({ limit, load, refused }) => {
    expect(judge({ users: { ana: limit }, load }) !== null).toBe(refused);
  });

  test("an own rule that passes ends the level: neither group nor wildcard is asked", () => {
    expect(judge({ users: { ana: 9, "*": 1 }, groups: ["dev"], groupLimits: { dev: 1 }, load: 5 })).toBeNull();
  });

  test("a group rule that passes hides the wildcard", () => {
    expect(judge({ users: { "*": 1 }, groups: ["dev"], groupLimits: { dev: 9 }, load: 5 })).toBeNull();
  });

  test("T-32: of several groups the largest limit counts, the first on ties, the others are listed", () => {
    const given = { groups: ["it", "support", "dev"], groupLimits: { it: 2, support: 5, dev: 5 }, load: 5 };
    const reason = judge(given)!;
    expect(rejectReasonText(reason)).toBe(
      "current per-group load 5 for user 'ana' in group 'support' is at or above the group limit 5 in pool 'root.p' (Ignored Group Quotas 'it':2 'dev':5)",
    );
    expect(judge({ ...given, load: 4 })).toBeNull();
  });

  test("the wildcard counts the user's own queries", () => {
    expect(rejectReasonText(judge({ users: { "*": 2 }, load: 2 })!)).toBe(
      "current per-user load 2 for user 'ana' is at or above the wildcard limit 2 in pool 'root.p'",
    );
    expect(judge({ users: { "*": 2 }, load: 1 })).toBeNull();
  });

  test("no rule that matches: no limit", () => {
    expect(judge({ users: { bob: 0 }, groupLimits: { dev: 0 }, load: 99 })).toBeNull();
  });

  test("a failing group lookup refuses with an empty reason, unless the user has a rule of their own", () => {
    expect(rejectReasonText(judge({ users: { bob: 1 }, groups: null })!)).toBe("");
    expect(judge({ users: { ana: 1 }, groups: null })).toBeNull();
    expect(judge({ groups: null })).toBeNull();
  });
});

describe("REJ-C3 two levels", () => {
  test("the pool is asked first, then root, which is named as the pool", () => {
    expect(judge({ users: { ana: 1 }, root: { ana: 1 }, load: 1, rootLoad: 1 })).toMatchObject({ pool: "root.p" });
    expect(judge({ users: { ana: 9 }, root: { ana: 1 }, load: 1, rootLoad: 1 })).toMatchObject({ pool: "root" });
    expect(judge({ root: { "*": 3 }, rootLoad: 2 })).toBeNull();
  });
});

describe("8.4 the short name", () => {
  test.each([
    { name: "ana", kerberos: true, short: "ana" },
    { name: "ana@REALM", kerberos: true, short: "ana" },
    { name: "ana/host@REALM", kerberos: true, short: "ana" },
    { name: "ana@REALM", kerberos: false, short: "ana@REALM" },
    { name: "@REALM", kerberos: true, short: null },
    { name: "a/b/c@REALM", kerberos: true, short: null },
  ])("$name with Kerberos $kerberos: $short", ({ name, kerberos, short }) => {
    expect(shortUser(name, kerberos)).toBe(short);
  });
});
