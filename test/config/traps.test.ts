/**
 * Traps of admission section 12 about the pool files and flags that no other test has as its subject.
 * test/traps.test.ts holds the whole list together.
 */
import { describe, expect, test } from "vitest";
import { parseFlags } from "../../src/config/impala-flags.ts";
import { DEFAULT_POOL } from "../../src/core/pool-config.ts";
import { allocation, configError, directory, queue, site } from "./fixtures.ts";

const MAX = "<maxResources>2500 mb, 0 vcores</maxResources>";
const pool = (body: string, name: string): string => queue(queue(body, name), "root");

describe("T-27 0 memory disables a pool in the files and means no limit in the flag", () => {
  test("the file", () => {
    const files = { allocation: allocation(pool("<maxResources>0 mb, 0 vcores</maxResources>", "a")) };
    expect(directory(files).configOf("root.a").maxMemResources).toBe(0);
  });
  test.each(["0", "-1", ""])("--default_pool_mem_limit=%s", (limit) => {
    const d = directory({ flags: parseFlags({ default_pool_mem_limit: limit }), physicalMemory: 1024 ** 3 });
    expect(d.configOf(DEFAULT_POOL).maxMemResources).toBe(-1);
  });
});

describe("T-33 totalCount comes after at least one name", () => {
  const quota = (body: string) => allocation(queue(`<userQueryLimit>${body}</userQueryLimit>`, "root"));
  const name = "<user>ana</user>";
  const count = "<totalCount>3</totalCount>";

  test("after it: a limit", () => {
    const d = directory({ allocation: quota(name + count), site: site({}) });
    expect(d.configOf("root").userQueryLimits).toEqual(new Map([["ana", 3]]));
  });
  test("before it: the file doesn't load", () => expect(() => configError(() => quota(count + name))).not.toThrow());
});

describe("T-44 the one pool of the flags is default-pool, the one of the files root.default", () => {
  test("flags only", () => {
    expect(directory({}).resolve("anything", "ana")).toMatchObject({ kind: "resolved", pool: "default-pool" });
  });
  test("files with a default rule", () => {
    const policy =
      '<queuePlacementPolicy><rule name="specified" create="false"/><rule name="default"/></queuePlacementPolicy>';
    const d = directory({ allocation: allocation(pool("", "a") + policy) });
    expect(d.resolve("", "ana")).toMatchObject({ kind: "resolved", pool: "root.default" });
  });
});

describe("T-45 the default length of a queue is 200, not unlimited", () => {
  test("by flags and by files", () => {
    expect(directory({}).configOf(DEFAULT_POOL).maxQueued).toBe(200);
    expect(directory({ allocation: allocation(pool(MAX, "a")), site: site({}) }).configOf("root.a").maxQueued).toBe(
      200,
    );
  });
});

describe("T-46 maxResources without vcores doesn't load", () => {
  test.each(["2500 mb", "2500mb"])("%s", (text) => {
    expect(() => allocation(pool(`<maxResources>${text}</maxResources>`, "a"))).toThrow();
  });
  test("with vcores it does", () => expect(() => allocation(pool(MAX, "a"))).not.toThrow());
});

describe("T-47 a user without rights gets an error, not the default pool", () => {
  const closed = "<aclSubmitApps> </aclSubmitApps>";
  const policy =
    '<queuePlacementPolicy><rule name="specified" create="false"/><rule name="default"/></queuePlacementPolicy>';
  const carols = queue("<aclSubmitApps>carol</aclSubmitApps>", "c");
  const open = queue("<aclSubmitApps>*</aclSubmitApps>", "default");
  const d = directory({ allocation: allocation(queue(closed + carols + open, "root") + policy) });

  test("a declared pool", () => {
    expect(d.resolve("root.c", "bob")).toMatchObject({
      kind: "refused",
      error: "Request from user 'bob' with requested pool 'root.c' denied access to assigned pool 'root.c'",
    });
  });
  test("only an undeclared one falls through to the default rule", () => {
    expect(d.resolve("root.nosuch", "bob")).toMatchObject({ kind: "resolved", pool: "root.default" });
  });
});

describe("T-49 REQUEST_POOL=default is the same as none", () => {
  test.each(["", "default"])("requested: '%s'", (requested) => {
    const d = directory({ allocation: allocation(queue(queue("", "default") + queue("", "a"), "root")) });
    // No policy: `specified`, then `user`; a request for `default` skips the first.
    expect(d.resolve(requested, "ana")).toMatchObject({ kind: "resolved", pool: "root.ana" });
  });
});

describe("T-50 onlyCoordinators counts only with a site file", () => {
  const file = allocation(pool("<onlyCoordinators>true</onlyCoordinators>", "a"));

  test("with one, however empty", () => {
    expect(directory({ allocation: file, site: site({}) }).configOf("root.a").onlyCoordinators).toBe(true);
  });
  test("without", () => expect(directory({ allocation: file }).configOf("root.a").onlyCoordinators).toBe(false));
});

describe("T-51 pool settings don't come from the parent queue", () => {
  test("neither keys of the site file nor memory nor quotas", () => {
    const parent = queue(
      `${MAX}<userQueryLimit><user>ana</user><totalCount>1</totalCount></userQueryLimit>${queue("", "child")}`,
      "parent",
    );
    const d = directory({
      allocation: allocation(queue(parent, "root")),
      site: site({ "placed.root.parent": "7", "queued.root.parent": "8" }),
    });
    expect(d.configOf("root.parent")).toMatchObject({
      maxRequests: 7,
      maxQueued: 8,
      maxMemResources: 2500 * 1024 ** 2,
    });
    expect(d.configOf("root.parent.child")).toMatchObject({
      maxRequests: -1,
      maxQueued: 200,
      maxMemResources: -1,
      userQueryLimits: new Map(),
    });
  });
});
