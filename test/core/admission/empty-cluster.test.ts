/** What a controller does while there is nobody to run on (admission 5.5, 6.2, 6.5). */
import { describe, expect, test } from "vitest";
import { rejectReasonText } from "../../../src/core/admission/reasons.ts";
import { Bench, coordinatorOnlyShape, dedicatedCoordinator, membership, poolConfig } from "../fixtures.ts";

const COORDINATOR = dedicatedCoordinator("h0:1");

describe("T-10 without any executor group nothing is dequeued", () => {
  const config = poolConfig({ maxRequests: 1 });

  test.each([
    { repaired: false, lines: [] },
    { repaired: true, lines: ["admitted second"] },
  ])("a coordinator-only head whose place is free, repaired $repaired", ({ repaired, lines }) => {
    const bench = new Bench(membership([COORDINATOR]), { repaired });
    const shape = coordinatorOnlyShape();
    const first = bench.submit(config, { queryId: "first", shape });
    expect(first.state).toBe("running");
    expect(bench.submit(config, { queryId: "second", shape }).state).toBe("queued");
    bench.release(first);
    expect(bench.pass().lines).toEqual(lines);
  });
});

describe("REJ-C1 an only-coordinators pool while every coordinator is quiescing", () => {
  const config = poolConfig({ onlyCoordinators: true });
  const newBench = () => new Bench(membership([{ ...COORDINATOR, isQuiescing: true }]));

  test("a query that scans can't be scheduled", () => {
    const q = newBench().submit(config);
    expect(q.state).toBe("rejected");
    expect(rejectReasonText(q.rejectReason!)).toBe(
      "Error during scheduling: Cannot schedule query: no registered backends available.",
    );
  });

  test("a coordinator-only query still runs on its own coordinator", () => {
    expect(newBench().submit(config, { shape: coordinatorOnlyShape() }).state).toBe("running");
  });
});
