import { describe, expect, test } from "vitest";
import { bucketEnd, quantileOfBuckets, WAIT_BUCKETS, waitBucket } from "../../../src/insight/size/outcome.ts";

function countsOf(waits: readonly number[]): Uint32Array {
  const counts = new Uint32Array(WAIT_BUCKETS);
  for (const wait of waits) counts[waitBucket(wait)]!++;
  return counts;
}

describe("insight 2.7 quantiles of waits", () => {
  test.each([0.001, 0.5, 1, 3.7, 9000, 29_999.9, 3_600_000, 1e9])("%d ms is told by less than 0.1 %% more", (wait) => {
    const told = quantileOfBuckets(countsOf([wait]), 1, 0.95, Number.POSITIVE_INFINITY);
    expect(told).toBeGreaterThanOrEqual(wait);
    expect(told).toBeLessThanOrEqual(wait * 1.001);
  });

  test("a bucket ends where the next one begins", () => {
    for (let bucket = 1; bucket < WAIT_BUCKETS - 1; bucket += 97) {
      expect(waitBucket(bucketEnd(bucket) * (1 - 2 ** -40))).toBe(bucket);
      expect(waitBucket(bucketEnd(bucket))).toBe(bucket + 1);
    }
  });

  test("no quantile is longer than the longest wait", () => {
    expect(quantileOfBuckets(countsOf([9000, 9000, 9000]), 3, 0.95, 9000)).toBe(9000);
  });

  test.each([
    { lost: 4, p95: 1000 },
    { lost: 5, p95: 1000 },
    { lost: 6, p95: Number.POSITIVE_INFINITY },
  ])("with $lost of 100 lost, the p95 over all submitted is $p95", ({ lost, p95 }) => {
    const waits = Array.from({ length: 100 - lost }, () => 1000);
    expect(quantileOfBuckets(countsOf(waits), 100, 0.95, 1000)).toBe(p95);
  });
});
