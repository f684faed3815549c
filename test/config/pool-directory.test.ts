import { describe, expect, test } from "vitest";
import { parseFlags } from "../../src/config/impala-flags.ts";
import { openPoolDirectory, type PoolDirectory, withAncestors } from "../../src/config/pool-directory.ts";
import { EMPTY_SITE } from "../../src/config/site-file.ts";
import { groupTable, injectedGroups } from "../../src/config/user-groups.ts";
import { DEFAULT_POOL_CONFIG } from "../../src/core/pool-config.ts";
import { allocation, configError, directory, queue, site } from "./fixtures.ts";

const onlyA = allocation(queue("", "a"));

describe("admission 11.3: the record of a pool", () => {
  test("the worked example: limits of both files in one record, each with its place", () => {
    const d = directory({
      allocation: allocation(queue(queue("<maxResources>200000 mb, 0 vcores</maxResources>", "dashboards"), "root")),
      site: site({
        "placed.root.dashboards": "20",
        "queued.root.dashboards": "50",
        "timeout.root.dashboards": "30000",
        "min-mem.root.dashboards": "1073741824",
        "max-mem.root.dashboards": "8589934592",
      }),
    });
    expect(d.configOf("root.dashboards")).toEqual({
      ...DEFAULT_POOL_CONFIG,
      maxMemResources: 200_000 * 1024 * 1024,
      maxRequests: 20,
      maxQueued: 50,
      queueTimeout: 30_000,
      minQueryMemLimit: 1024 ** 3,
      maxQueryMemLimit: 8 * 1024 ** 3,
    });
    expect(d.lookUp("root.dashboards")).toMatchObject({
      origins: {
        maxMemResources: { from: "own", at: { file: "fair-scheduler.xml", line: 1 } },
        maxQueued: { from: "own", text: "50", at: { file: "llama-site.xml", line: 3 } },
        maxMtDop: { from: "builtIn" },
      },
    });
  });

  test("a pool that nobody has written about has the defaults", () => {
    expect(directory({ allocation: onlyA, site: EMPTY_SITE }).configOf("root.nobody")).toEqual(DEFAULT_POOL_CONFIG);
  });
});

describe("pool-configuration 2.3: own key, unsuffixed key, built-in", () => {
  const at = (keys: Record<string, string>, pool = "root.a") =>
    directory({ allocation: onlyA, site: site(keys) }).lookUp(pool);

  test.each([
    [{ "placed.root.a": "1", placed: "2" }, 1, "own"],
    [{ placed: "2" }, 2, "unsuffixed"],
    [{ "placed.a": "3", "placed.root": "4" }, -1, "builtIn"],
    [{ "placed.root.a.b": "3" }, -1, "builtIn"],
  ])("%j gives %d, %s", (keys, maxRequests, from) => {
    expect(at(keys)).toMatchObject({ config: { maxRequests }, origins: { maxRequests: { from } } });
  });

  test("nothing is inherited along the path", () => {
    expect(at({ "placed.root.a": "1" }, "root.a.b")).toMatchObject({ config: { maxRequests: -1 } });
  });

  test("texts and switches look in the same places", () => {
    expect(at({ "options.root.a": "x=1", options: "y=2" })).toMatchObject({ config: { defaultQueryOptions: "x=1" } });
    expect(at({ options: " y=2 " })).toMatchObject({ config: { defaultQueryOptions: " y=2 " } });
    expect(at({ "clamp.root.a": "yes", clamp: " FALSE " })).toMatchObject({
      config: { clampMemLimitQueryOption: false },
      origins: { clampMemLimitQueryOption: { from: "unsuffixed" } },
    });
    expect(at({ "clamp.root.a": "0" })).toMatchObject({ config: { clampMemLimitQueryOption: true } });
  });

  test.each([
    ["1", 1],
    ["0", null],
    ["-1", null],
  ])("a timeout of %s ms is %s (T-5)", (text, queueTimeout) => {
    expect(at({ "timeout.root.a": text })).toMatchObject({ config: { queueTimeout } });
  });

  test("an own timeout of 0 hides the unsuffixed one", () => {
    expect(at({ "timeout.root.a": "0", timeout: "5" })).toMatchObject({ config: { queueTimeout: null } });
  });

  test.each([
    ["9007199254740991", 9007199254740991, false],
    ["9007199254740992", 9007199254740991, true],
    ["-9223372036854775808", -9007199254740991, true],
  ])("%s beyond what a number holds becomes the nearest, and says so", (text, maxQueryMemLimit, beyond) => {
    expect(at({ "max-mem.root.a": text })).toMatchObject({
      config: { maxQueryMemLimit },
      origins: { maxQueryMemLimit: { text } },
      saturated: beyond ? ["maxQueryMemLimit"] : [],
    });
  });
});

describe("pool-configuration 2.4: a number that is none breaks the record, every time", () => {
  const bad = (keys: Record<string, string>, pool = "root.a") =>
    directory({ allocation: onlyA, site: site(keys) }).lookUp(pool);
  const failure = (text: string) => ({ kind: "failed", error: `NumberFormatException: For input string: "${text}"` });

  test("of its own pool only", () => {
    expect(bad({ "max-mem.root.a": "8gb" })).toMatchObject(failure("8gb"));
    expect(bad({ "max-mem.root.a": "8gb" }, "root.b").kind).toBe("found");
    expect(bad({ "max-mem.root.a": "8gb" }, "root").kind).toBe("found");
  });

  test("unsuffixed: of every pool, also of one with a good value of its own", () => {
    expect(bad({ "max-mem": "8gb", "max-mem.root.a": "8" })).toMatchObject(failure("8gb"));
  });

  test("the first in the product's order is named", () => {
    expect(bad({ "cpu-coord": "x", "max-mem": "y", "placed.root.a": "z" })).toMatchObject(failure("z"));
    expect(bad({ "min-mem.root.a": "x", "max-mem": "y" })).toMatchObject(failure("y"));
    expect(bad({ "timeout.root.a": "x", timeout: "y" })).toMatchObject(failure("y"));
  });

  test("who asks for the bare record gets a ConfigError with the place", () => {
    const d = directory({ allocation: onlyA, site: site({ "placed.root.a": "many" }) });
    expect(configError(() => d.configOf("root.a")).message).toContain("llama-site.xml:2: pool root.a: NumberFormat");
  });
});

describe("pool-configuration 3.1, 5: one file, no file, switches", () => {
  const flags = (written: Record<string, unknown>) => parseFlags(written);

  test("without an allocation file every name has the one record", () => {
    const d = directory({
      flags: flags({ default_pool_max_requests: 5, default_pool_max_queued: 7, default_pool_mem_limit: "2gb" }),
      site: site({ placed: "1" }),
    });
    const record = { ...DEFAULT_POOL_CONFIG, maxRequests: 5, maxQueued: 7, maxMemResources: 2 * 1024 ** 3 };
    for (const pool of ["default-pool", "root", "anything"]) expect(d.configOf(pool)).toEqual(record);
    expect(d.resolve("anything", "")).toEqual({ kind: "resolved", pool: "default-pool", effectiveUser: "" });
    expect(d.declaredPools()).toEqual(["default-pool"]);
  });

  test.each([
    ["", -1],
    ["0", -1],
    ["-1", -1],
    ["1", 1],
    ["50%", 500],
  ])("--default_pool_mem_limit=%s is %d", (text, maxMemResources) => {
    const d = directory({ flags: flags({ default_pool_mem_limit: text }), physicalMemory: 1000 });
    expect(d.configOf("default-pool")).toMatchObject({ maxMemResources });
  });

  test("with an allocation file the default_pool flags have no say", () => {
    const d = directory({ allocation: onlyA, flags: flags({ default_pool_max_requests: 5 }) });
    expect(d.configOf("root.a").maxRequests).toBe(-1);
  });

  test("the disabling flags win, bounds and quotas stay", () => {
    const d = directory({
      allocation: allocation(queue("<maxResources>1 mb, 0 vcores</maxResources>")),
      site: site({ placed: "1", "min-mem": "7" }),
      flags: flags({ disable_pool_max_requests: true, disable_pool_mem_limits: true }),
    });
    expect(d.configOf("root.a")).toMatchObject({ maxRequests: -1, maxMemResources: -1, minQueryMemLimit: 7 });
  });

  test.each(["true", "TRUE", " True "])("onlyCoordinators %s counts only beside a site file", (text) => {
    const only = allocation(queue(`<onlyCoordinators>${text}</onlyCoordinators>`));
    expect(directory({ allocation: only, site: EMPTY_SITE }).configOf("root.a").onlyCoordinators).toBe(true);
    expect(directory({ allocation: only, site: null }).configOf("root.a").onlyCoordinators).toBe(false);
  });

  test("a missing file is told with its path", () => {
    const error = configError(() => openPoolDirectory({ fairScheduler: "/nowhere/f.xml", llamaSite: null }));
    expect(error.file).toBe("/nowhere/f.xml");
  });
});

describe("pool-configuration 1.6: access climbs the ancestors", () => {
  const closed = (inner: string) => allocation(queue(`<aclSubmitApps> </aclSubmitApps>${inner}`, "root"));
  const may = (d: PoolDirectory, pool: string, ...users: string[]) => users.filter((user) => d.hasAccess(pool, user));

  test("rights of an ancestor hold below it, rights of a leaf only there", () => {
    const d = directory({
      allocation: closed(
        queue(`<aclSubmitApps>p</aclSubmitApps>${queue("<aclSubmitApps>l g</aclSubmitApps>", "leaf")}`, "parent"),
      ),
      groups: groupTable({ m: ["x", "g"] }),
    });
    expect(may(d, "root.parent.leaf", "p", "l", "m", "other")).toEqual(["p", "l", "m"]);
    expect(may(d, "root.parent", "p", "l", "m")).toEqual(["p"]);
    expect(may(d, "root", "p")).toEqual([]);
    expect(may(d, "root.parent.undeclared", "p", "l")).toEqual(["p"]);
  });

  test("a root without a list of its own opens everything (T-48)", () => {
    const d = directory({ allocation: allocation(queue("<aclSubmitApps>l</aclSubmitApps>")) });
    expect(may(d, "root.a", "l", "other")).toEqual(["l", "other"]);
  });

  test("names are compared as they are", () => {
    const d = directory({ allocation: closed(queue("<aclSubmitApps>Ana</aclSubmitApps>")) });
    expect(may(d, "root.a", "ana", "Ana", "Ana@REALM", "Ana/host@REALM")).toEqual([
      "Ana",
      "Ana@REALM",
      "Ana/host@REALM",
    ]);
  });

  test("odd names have ancestors too", () => {
    expect(withAncestors(".")).toEqual([".", ""]);
    expect(withAncestors("root..x")).toEqual(["root..x", "root.", "root"]);
  });
});

describe("pool-configuration 3.4: where a request lands", () => {
  const policy = (rules: string) => `<queuePlacementPolicy>${rules}</queuePlacementPolicy>`;
  const strict = directory({
    allocation: allocation(
      queue(`${queue("<aclSubmitApps>ana</aclSubmitApps>", "queueA")}<aclSubmitApps> </aclSubmitApps>`, "root") +
        policy('<rule name="specified" create="false"/><rule name="reject"/>'),
    ),
  });

  test.each([
    ["queueA", "root.queueA"],
    ["root.queueA", "root.queueA"],
    ["QUEUEA", null],
    [" queueA", null],
    ["", null],
    ["default", null],
    ["root", null],
  ])("requested %j: %s", (requested, pool) => {
    const r = strict.resolve(requested, "ana");
    expect(r.kind === "resolved" ? r.pool : null).toBe(pool);
    if (pool === null)
      expect(r).toMatchObject({
        pool: null,
        error: `Request from user 'ana' with requested pool '${requested}' denied access to assigned pool ''`,
      });
  });

  test("without access the assigned pool is named, and the full user name", () => {
    expect(strict.resolve("queueA", "bob@REALM")).toEqual({
      kind: "refused",
      error: "Request from user 'bob@REALM' with requested pool 'queueA' denied access to assigned pool 'root.queueA'",
      pool: "root.queueA",
      effectiveUser: "bob@REALM",
      status: "ok",
    });
  });

  test("an empty user is `default`, unless one is required", () => {
    const open = { allocation: allocation("") };
    expect(directory(open).resolve("", "")).toEqual({
      kind: "resolved",
      pool: "root.default",
      effectiveUser: "default",
    });
    expect(directory({ ...open, flags: parseFlags({ require_username: true }) }).resolve("", "")).toMatchObject({
      error: "User must be specified because -require_username=true.",
    });
  });

  test("a malformed principal is an internal error with an empty pool", () => {
    expect(directory({ allocation: allocation("") }).resolve("p", "a@b@c")).toMatchObject({
      status: "internalError",
      error: "Request from user 'a@b@c' with requested pool 'p' denied access to assigned pool ''",
    });
  });

  test("rules that need groups", () => {
    const byGroup = (groups: Record<string, string[]>) =>
      directory({ allocation: allocation(policy('<rule name="primaryGroup"/>')), groups: groupTable(groups) }).resolve(
        "",
        "u@R",
      );
    expect(byGroup({ u: ["g.1", "h"] })).toMatchObject({ pool: "root.g_dot_1" });
    expect(byGroup({})).toMatchObject({
      error: expect.stringMatching(/^Failed to resolve user 'u@R' to a pool while evaluating/),
    });
    expect(byGroup({ u: [] })).toMatchObject({ error: "No groups returned for user u" });
  });

  test("groups come from a table or from the product's test flag", () => {
    const groups = injectedGroups("g1:a,b;g2:b; bad ;g3:");
    expect(["a", "b", "c"].map((user) => groups.groupsOf(user))).toEqual([["g1"], ["g1", "g2"], null]);
    expect(groupTable({}).groupsOf("toString")).toBe(null);
  });

  test("what is remembered about names from outside is bounded and right", () => {
    const d = directory({ allocation: allocation("") });
    for (let i = 0; i < 25_000; i++) d.resolve(`p${i}`, "u");
    expect(d.resolve("p1", "u")).toMatchObject({ pool: "root.p1" });
  });
});
