/**
 * Values from distributions: one uniform each, by inversion (insight 6.2).
 *
 * One uniform per value whatever the distribution, because runs that differ in one parameter are compared
 * query by query: the pairs must stay pairs. Inversion also keeps order: a larger uniform never gives a
 * smaller value.
 */
import type { Distribution } from "../config/scenario.ts";
import { exp, inverseNormal, ln, pow } from "../core/exact-math.ts";
import { MICROS_PER_MS } from "../core/units.ts";

/** hot: bench/workload. `u` is strictly between 0 and 1. */
export function draw(d: Distribution, u: number): number {
  switch (d.kind) {
    case "fixed":
      return d.value;
    case "exponential":
      return -d.mean * ln(1 - u);
    case "lognormal":
      return exp(d.mu + d.sigma * inverseNormal(u));
    case "uniform":
      return d.low + u * (d.high - d.low);
    case "pareto":
      return d.low * pow(1 - u * (1 - pow(d.low / d.high, d.alpha)), -1 / d.alpha);
    case "empirical":
      return d.values[Math.min(d.values.length - 1, Math.floor(u * d.values.length))]!;
    case "erlang":
      return erlang(d.stages, d.mean, u);
    case "hyperexponential":
      return hyperexponential(d.branches, u);
  }
}

/** As a time that may enter an event queue: whole microseconds, so that ties are ties everywhere. */
export const wholeMicros = (ms: number): number => Math.round(ms * MICROS_PER_MS) / MICROS_PER_MS;

export const isRandom = (d: Distribution): boolean => d.kind !== "fixed";

export function meanOf(d: Distribution): number {
  switch (d.kind) {
    case "fixed":
      return d.value;
    case "exponential":
    case "erlang":
      return d.mean;
    case "lognormal":
      return exp(d.mu + (d.sigma * d.sigma) / 2);
    case "uniform":
      return (d.low + d.high) / 2;
    case "pareto":
      return paretoMean(d.alpha, d.low, d.high);
    case "empirical":
      return d.values.reduce((sum, v) => sum + v, 0) / d.values.length;
    case "hyperexponential":
      return d.branches.reduce((sum, b) => sum + b.share * b.mean, 0);
  }
}

function paretoMean(alpha: number, low: number, high: number): number {
  const ratio = low / high;
  const scale = 1 - pow(ratio, alpha);
  if (alpha === 1) return (low * ln(high / low)) / scale;
  return (low * alpha * (1 - pow(ratio, alpha - 1))) / ((alpha - 1) * scale);
}

/** P(X > x) for k stages of mean m/k is exp(-y) (1 + y + ... + y^(k-1)/(k-1)!), y = x k / m. */
function erlang(stages: number, mean: number, u: number): number {
  const survival = (y: number): number => {
    let term = 1;
    let sum = 1;
    for (let j = 1; j < stages; j++) {
      term *= y / j;
      sum += term;
    }
    return exp(-y) * sum;
  };
  return (inverted(survival, 1 - u, stages) * mean) / stages;
}

type Branches = Extract<Distribution, { kind: "hyperexponential" }>["branches"];

function hyperexponential(branches: Branches, u: number): number {
  const survival = (x: number): number => branches.reduce((sum, b) => sum + b.share * exp(-x / b.mean), 0);
  const mean = branches.reduce((sum, b) => sum + b.share * b.mean, 0);
  return inverted(survival, 1 - u, mean);
}

/** The x at which a falling function from 1 to 0 has this value, to the last bits; `scale` is a first step. */
function inverted(falling: (x: number) => number, value: number, scale: number): number {
  let low = 0;
  let high = scale;
  while (falling(high) > value) {
    low = high;
    high *= 2;
  }
  for (let step = 0; step < 60; step++) {
    const middle = (low + high) / 2;
    if (middle <= low || middle >= high) break;
    if (falling(middle) > value) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}
