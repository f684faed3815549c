import { describe, expect, test } from "vitest";
import { AdmissionService } from "../../../src/core/admission/admission-service.ts";
import { AdmissionController } from "../../../src/core/admission/controller.ts";
import { controllerOptions } from "../../../src/core/admission/controller-options.ts";
import { checkSnapshot } from "../../../src/core/admission/invariants.ts";
import { rejectionError } from "../../../src/core/admission/reasons.ts";
import { snapshotOf } from "../../../src/core/admission/snapshot.ts";
import { withRemovedCoordinators } from "../../../src/core/cluster/membership.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig } from "../../../src/core/pool-config.ts";
import { millis } from "../../../src/core/units.ts";
import {
  at,
  backend,
  dedicatedCoordinator,
  fragment,
  gib,
  membership,
  poolConfig,
  request,
  shape,
  trivialShape,
} from "../fixtures.ts";

const coordinators = ["a:1", "b:1"].map((address) => dedicatedCoordinator(address));
const executors = ["e1:1", "e2:1"].map((address) => backend(address));

class Service {
  readonly service: AdmissionService;
  now = at(0);

  constructor(over: Partial<Parameters<typeof controllerOptions>[0]> = {}) {
    const options = controllerOptions({ hostId: "admissiond:29500", mode: "global", ...over });
    this.service = new AdmissionService(new AdmissionController(options));
    this.service.setMembership(membership([...coordinators, ...executors]));
    this.service.controller.applyUpdate({ isDelta: true, entries: [] }, at(0));
  }

  submit(config: PoolConfig, over: Parameters<typeof request>[0] = {}): string {
    const r = request({ coordinator: "a:1", ...over });
    this.service.accept(r);
    this.service.decide(r.queryId, config, DEFAULT_POOL_CONFIG, this.now);
    return r.queryId;
  }

  /** `pending`, `unknown`, or the query's state. */
  poll(id: string, time = this.now as number): string {
    const status = this.service.poll(id, at(time));
    checkSnapshot(snapshotOf(this.service.controller, at(time)));
    return status.kind === "answered" ? status.query.state : status.kind;
  }

  pass(): string[] {
    const lines: string[] = [];
    this.service.dequeuePass(this.now, {
      admitted: (q) => lines.push(`admitted ${q.id}`),
      rejected: (q) => lines.push(`rejected ${q.id}: ${rejectionError(q.request.pool, q.rejectReason!)}`),
      cancelled: (q) => lines.push(`cancelled ${q.id}`),
      stillQueued: () => undefined,
    });
    return lines;
  }
}

const one = poolConfig({ maxRequests: 1, queueTimeout: millis(5000) });

describe("7.7 AdmitQuery and GetQueryStatus", () => {
  test("nothing is known before a worker has taken it; a repeated message is ignored", () => {
    const s = new Service();
    const r = request({ coordinator: "a:1" });
    expect([s.service.accept(r), s.service.accept(r)]).toEqual([true, false]);
    expect(s.poll(r.queryId)).toBe("pending");
    s.service.decide(r.queryId, one, DEFAULT_POOL_CONFIG, at(0));
    expect([s.poll(r.queryId), s.poll(r.queryId)]).toEqual(["running", "running"]);
    expect(s.poll("nobody")).toBe("unknown");
  });

  test("one queue for the whole cluster: places and order span coordinators", () => {
    const s = new Service();
    const running = s.submit(one);
    const waiting = ["b:1", "a:1", "b:1"].map((coordinator) => s.submit(one, { coordinator }));
    for (const id of waiting) {
      s.service.release(
        s.service.controller.runningAt("a:1")[0]?.id ?? s.service.controller.runningAt("b:1")[0]!.id,
        -1,
      );
      expect(s.pass()).toEqual([`admitted ${id}`]);
    }
    expect(s.service.release(running, -1), "released before").toBeNull();
  });

  test("time-outs are noticed only by a poll, and late ones count the time until then", () => {
    const s = new Service();
    s.submit(one);
    const id = s.submit(one);
    expect([s.poll(id, 4999), s.service.controller.pool("root.p")!.stats.localQueued]).toEqual(["pending", 1]);
    const query = s.service.controller.find(id)!;
    expect(s.poll(id, 5107)).toBe("timedOut");
    expect(query).toMatchObject({ waited: 5107, timeout: 5000 });
    expect([s.poll(id), s.service.numQueries]).toEqual(["unknown", 1]);
  });

  test("T-59: nobody polls for a dead coordinator, so its query stays, and is refused at the head", () => {
    const s = new Service();
    const running = s.submit(one, { coordinator: "b:1" });
    const orphan = s.submit(one);
    const next = s.submit(one, { coordinator: "b:1" });
    const gone = [...coordinators.slice(1), ...executors];
    const removedCoordinators = withRemovedCoordinators(s.service.controller.membership, gone);
    s.service.setMembership(membership(gone, { removedCoordinators }));
    s.now = at(600_000);
    s.service.release(running, -1);
    expect(s.pass()).toEqual([
      `rejected ${orphan}: Rejected query from pool root.p: The coordinator no longer exists: a:1`,
    ]);
    expect(s.pass()).toEqual([`admitted ${next}`]);
  });

  test("9.5: beyond the memory for removed coordinators the reason degrades and the entry blocks the head", () => {
    const s = new Service();
    const running = s.submit(one, { coordinator: "b:1" });
    const orphan = s.submit(one);
    s.service.setMembership(membership([...coordinators.slice(1), ...executors]));
    s.service.release(running, -1);
    expect(s.pass()).toEqual([]);
    expect(s.service.controller.find(orphan)).toMatchObject({
      state: "queued",
      attemptReason: { rule: "NO-COORDINATOR" },
    });
  });
});

describe("9.4 CancelAdmission", () => {
  test("sets the cell only; the next poll cleans up", () => {
    const s = new Service();
    s.submit(one);
    const id = s.submit(one);
    s.service.cancel(id);
    expect(s.service.controller.pool("root.p")!.stats.localQueued).toBe(1);
    expect(s.poll(id, 40)).toBe("cancelled");
    expect(s.service.controller.pool("root.p")!.stats).toMatchObject({ localQueued: 0, totalDequeued: 1 });
  });

  test("or the pass does, ends, and the service forgets the query", () => {
    const s = new Service();
    const running = s.submit(one);
    const id = s.submit(one);
    s.service.cancel(id);
    s.service.release(running, -1);
    expect(s.pass()).toEqual([`cancelled ${id}`]);
    expect(s.poll(id)).toBe("unknown");
  });

  test("before a worker took the request: nothing is charged", () => {
    const s = new Service();
    const r = request({ coordinator: "a:1" });
    s.service.accept(r);
    s.service.cancel(r.queryId);
    s.service.decide(r.queryId, one, DEFAULT_POOL_CONFIG, at(0));
    expect([s.poll(r.queryId), s.service.numQueries]).toEqual(["cancelled", 0]);
  });
});

describe("release, lost, late and repeated", () => {
  test("ReleaseQuery takes the rest with it and is done once", () => {
    const s = new Service();
    const id = s.submit(one);
    const held = s.service.controller.pool("root.p")!.stats.localMemAdmitted;
    expect(s.service.releaseBackends(id, ["e1:1"])).toBe(gib(1));
    expect(s.service.releaseBackends(id, ["e2:1", "e1:1"]), "one of them again").toBeNull();
    expect([s.service.release(id, gib(1)), s.service.release(id, gib(1))]).toEqual([held - gib(1), null]);
    expect(s.service.releaseBackends(id, ["e2:1"]), "late").toBeNull();
    expect(s.service.controller.pool("root.p")!.stats).toMatchObject({
      localRunning: 0,
      localMemAdmitted: 0,
      totalReleased: 1,
    });
  });

  test("a heartbeat releases a query that the service has forgotten too early", () => {
    const s = new Service();
    const running = s.submit(one);
    const early = s.submit(one);
    // A release that overtook the admission: nothing runs yet, and the service knows the query no more.
    expect(s.service.release(early, -1)).toBeNull();
    s.service.release(running, -1);
    expect(s.pass()).toEqual([`admitted ${early}`]);
    expect(s.service.heartbeat("a:1", 1, new Set()).map((q) => q.id)).toEqual([early]);
    expect(s.service.controller.runningAt("a:1")).toEqual([]);
  });

  test("a heartbeat releases what its coordinator no longer knows, queued ones stay; older ones are ignored", () => {
    const s = new Service();
    const two = poolConfig({ maxRequests: 2 });
    const [lost, live] = [s.submit(two), s.submit(two)];
    const queued = s.submit(two);
    const others = s.submit(two, { coordinator: "b:1" });
    expect(s.service.heartbeat("a:1", 2, new Set([lost, live])).map((q) => q.id)).toEqual([]);
    expect(
      s.service.heartbeat("a:1", 1, new Set()).map((q) => q.id),
      "older",
    ).toEqual([]);
    expect(s.service.heartbeat("a:1", 3, new Set([live])).map((q) => q.id)).toEqual([lost]);
    expect([queued, others].map((id) => s.poll(id))).toEqual(["pending", "pending"]);
    expect(s.pass()).toEqual([`admitted ${queued}`]);
  });

  test("9.5: a vanished coordinator's running queries are released in full", () => {
    const s = new Service();
    const free = poolConfig();
    const [a, b] = [s.submit(free), s.submit(free, { coordinator: "b:1" })];
    s.service.releaseBackends(a, ["e1:1"]);
    const released = s.service.setMembership(membership([...coordinators.slice(1), ...executors]));
    expect(released.map((q) => q.id)).toEqual([a]);
    expect([s.poll(a), s.poll(b)]).toEqual(["unknown", "running"]);
    expect(s.service.controller.hosts.memReservedOn("e1:1")).toBe(gib(1));
  });

  test("the size of the map and its high-water mark", () => {
    const s = new Service();
    const ids = [1, 2, 3].map(() => s.submit(poolConfig()));
    for (const id of ids) s.service.release(id, -1);
    expect([s.service.numQueries, s.service.highWaterMark]).toEqual([0, 3]);
  });
});

describe("REJ-C4 the memory safeguard", () => {
  test.each([
    { use: 99, state: "running" },
    { use: 100, state: "running" },
    { use: 101, state: "rejected" },
  ])("$use of 100 bytes: $state", ({ use, state }) => {
    const s = new Service();
    s.service.controller.setProcessMemory(use, 100);
    expect(s.poll(s.submit(poolConfig()))).toBe(state);
  });

  test("trivial queries are exempt; others are refused even if they would be admitted, and counted", () => {
    const s = new Service();
    s.service.controller.setProcessMemory(2, 1);
    expect(s.poll(s.submit(poolConfig(), { shape: trivialShape() }))).toBe("running");
    s.submit(poolConfig());
    expect(s.service.controller.pool("root.p")!.stats).toMatchObject({ totalRejected: 1, localRunning: 1 });
  });
});

describe("REJ-C5 a compressed request that can't be read any more", () => {
  test("is refused when it is next tried", () => {
    const s = new Service();
    const running = s.submit(one);
    const id = s.submit(one);
    s.service.controller.spoil(s.service.controller.find(id)!, { rule: "REJ-C5", error: "bad block" });
    s.service.release(running, -1);
    expect(s.pass()).toEqual([
      `rejected ${id}: Rejected query from pool root.p: Failed to get query execution request: bad block`,
    ]);
  });
});

describe("T-61 a query on every coordinator", () => {
  test("charges the other coordinators what executors are charged, and can fail there on an idle cluster", () => {
    const s = new Service();
    const small = [coordinators[0]!, dedicatedCoordinator("b:1", { admitMemLimit: gib(1) }), ...executors];
    s.service.setMembership(membership(small));
    const system = (estimate: number) =>
      shape({
        includeAllCoordinators: true,
        executors: 0,
        perHostMemEstimate: gib(estimate),
        fragments: [fragment({ runsOn: "coordinator" }), fragment()],
      });
    const config = poolConfig({ maxMemResources: gib(100) });
    expect(s.poll(s.submit(config, { shape: system(1) }))).toBe("running");
    const id = s.submit(config, { shape: system(2) });
    expect(s.service.controller.find(id)!.initialReason).toMatchObject({ rule: "ADM-5", host: "b:1", needed: gib(2) });
  });
});
