/** How a measured value is held against a closed form (insight 6.5): the tolerance is chosen before the run. */
import { expect } from "vitest";
import { run, type TextbookQueue } from "./queueing.ts";

/** Standard errors allowed: a change of generator then fails once in 150,000 values. */
const SIGMAS = 4.5;

/** Seeds are fixed, one a queue: the outcome is a constant, never a matter of luck. */
const seedOf = (id: string): number => 100 + Number(id.slice(1));

export function expectClosedForm(queue: TextbookQueue, queries: number): void {
  const measured = run(queue, queries, seedOf(queue.id));
  const { expected, se } = queue;
  const within = (percent: number | undefined): number =>
    (SIGMAS * (percent ?? 0)) / 100 / Math.sqrt((0.9 * queries) / 1e6);
  const near = (name: string, value: number, reference: number | undefined, tolerance: number): void => {
    if (reference === undefined) return;
    const off = reference === 0 ? Math.abs(value) : Math.abs(value / reference - 1);
    expect(off, `${queue.id} ${name}: ${value} against ${reference}`).toBeLessThanOrEqual(tolerance);
  };
  near("mean wait", measured.wait, expected.wait, within(se.wait));
  near("P(wait)", measured.pWait, expected.pWait, within(se.wait));
  // Taken from simulations for fixed holds, there known to about 1 %.
  near("p95", measured.p95, expected.p95, within(se.wait) + (queue.hold === "fixed" ? 0.01 : 0));
  near("lost", measured.lost, expected.lost, within(se.lost));
  near("throughput", measured.throughput, expected.throughput, within(se.throughput));
}
