/** What a controller does while there is nobody to run on (admission 5.5, 6.2, 6.5). */
import { describe, expect, test } from "vitest";
import { AdmissionController } from "../../../src/core/admission/controller.ts";
import { controllerOptions } from "../../../src/core/admission/controller-options.ts";
import type { AdmissionQuery } from "../../../src/core/admission/query.ts";
import { rejectReasonText } from "../../../src/core/admission/reasons.ts";
import type { BackendDescriptor } from "../../../src/core/cluster/backend.ts";
import { membershipOf } from "../../../src/core/cluster/membership.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig } from "../../../src/core/pool-config.ts";
import { bytes, GiB, instant, MiB } from "../../../src/core/units.ts";
import { shapeOf } from "../../conformance/shapes.ts";

const COORDINATOR: BackendDescriptor = {
  address: "coord:1",
  isCoordinator: true,
  isExecutor: false,
  isQuiescing: false,
  admitMemLimit: bytes(8 * GiB),
  admissionSlots: 8,
  executorGroup: { name: "default", minSize: 1 },
};

function controllerWithoutExecutors(repaired: boolean, coordinator = COORDINATOR): AdmissionController {
  const controller = new AdmissionController(controllerOptions({ hostId: "coord:1", repaired }));
  controller.setMembership(membershipOf({ version: 2, backends: [coordinator] }));
  return controller;
}

function submit(
  controller: AdmissionController,
  id: string,
  coordinatorOnly: boolean,
  config: PoolConfig,
): AdmissionQuery {
  const shape = shapeOf({
    stmtType: "QUERY",
    perHostEstimate: 10 * MiB,
    coordEstimate: 100 * MiB,
    trivial: false,
    coordinatorOnly,
    allCoordinators: false,
    executors: "all",
    slotsPerHost: 1,
    coordSlots: 1,
    minReservation: 0,
    coordMinReservation: 0,
    options: {},
  });
  const request = {
    queryId: id,
    coordinator: "coord:1",
    pool: "root.p",
    user: "ana",
    userGroups: [],
    shape,
    blacklistedExecutors: [],
    placementOffset: 0,
  };
  return controller.submit(request, config, DEFAULT_POOL_CONFIG, instant(0));
}

function passOf(controller: AdmissionController): string[] {
  const lines: string[] = [];
  controller.dequeuePass(instant(0), {
    admitted: (q) => lines.push(`admitted ${q.id}`),
    rejected: (q) => lines.push(`rejected ${q.id}`),
    cancelled: (q) => lines.push(`cancelled ${q.id}`),
    stillQueued: () => undefined,
  });
  return lines;
}

describe("T-10 without any executor group nothing is dequeued", () => {
  const config = { ...DEFAULT_POOL_CONFIG, maxRequests: 1 };

  test.each([
    { repaired: false, lines: [] },
    { repaired: true, lines: ["admitted second"] },
  ])("a coordinator-only head whose place is free, repaired $repaired", ({ repaired, lines }) => {
    const controller = controllerWithoutExecutors(repaired);
    const first = submit(controller, "first", true, config);
    expect(first.state).toBe("running");
    expect(submit(controller, "second", true, config).state).toBe("queued");
    controller.releaseQuery(first, -1);
    expect(passOf(controller)).toEqual(lines);
  });
});

describe("REJ-C1 an only-coordinators pool while every coordinator is quiescing", () => {
  const config = { ...DEFAULT_POOL_CONFIG, onlyCoordinators: true };
  const quiescing = { ...COORDINATOR, isQuiescing: true };

  test("a query that scans can't be scheduled", () => {
    const q = submit(controllerWithoutExecutors(false, quiescing), "q", false, config);
    expect(q.state).toBe("rejected");
    expect(rejectReasonText(q.rejectReason!)).toBe(
      "Error during scheduling: Cannot schedule query: no registered backends available.",
    );
  });

  test("a coordinator-only query still runs on its own coordinator", () => {
    expect(submit(controllerWithoutExecutors(false, quiescing), "q", true, config).state).toBe("running");
  });
});
