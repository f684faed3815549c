/**
 * Distributions as a scenario file writes them: one word for the kind, its parameters, and no nonsense among them.
 */
import { ln } from "../core/exact-math.ts";
import type { Distribution } from "./scenario.ts";
import type { Path, ScenarioSource } from "./scenario-issues.ts";
import type { DistributionInput } from "./scenario-schema.ts";

const Z95 = 1.6448536269514722;

export function buildDistribution(input: DistributionInput, path: Path, source: ScenarioSource): Distribution {
  if (typeof input === "number") return { kind: "fixed", value: input };
  const kinds = ["fixed", "uniform", "exponential", "lognormal", "pareto", "erlang", "hyperexponential", "empirical"];
  expectOne(Object.keys(input), kinds, path, source);
  const { fixed, uniform, exponential, lognormal, pareto, erlang, hyperexponential, empirical } = input;
  if (fixed !== undefined) return { kind: "fixed", value: fixed };
  if (uniform !== undefined) {
    ordered(uniform.low, uniform.high, [...path, "uniform"], source);
    return { kind: "uniform", low: uniform.low, high: uniform.high };
  }
  if (exponential !== undefined) return { kind: "exponential", mean: exponential.mean };
  if (lognormal !== undefined) return buildLognormal(lognormal, [...path, "lognormal"], source);
  if (pareto !== undefined) {
    ordered(pareto.low, pareto.high, [...path, "pareto"], source);
    if (pareto.low === 0)
      source.fail(
        [...path, "pareto", "low"],
        "low is 0. Expected a value above 0",
        "Write the least value that occurs.",
      );
    return { kind: "pareto", alpha: pareto.alpha, low: pareto.low, high: pareto.high };
  }
  if (erlang !== undefined) return { kind: "erlang", stages: erlang.stages, mean: erlang.mean };
  if (hyperexponential !== undefined) {
    const total = hyperexponential.reduce((sum, b) => sum + b.share, 0);
    return {
      kind: "hyperexponential",
      branches: hyperexponential.map((b) => ({ share: b.share / total, mean: b.mean })),
    };
  }
  return { kind: "empirical", values: [...empirical!].sort((a, b) => a - b) };
}

type LognormalInput = NonNullable<Exclude<DistributionInput, number>["lognormal"]>;

function buildLognormal(input: LognormalInput, path: Path, source: ScenarioSource): Distribution {
  const { mean, cv, p50, p95 } = input;
  if (mean !== undefined && cv !== undefined && p50 === undefined && p95 === undefined && mean > 0) {
    const variance = ln(1 + cv * cv);
    return { kind: "lognormal", mu: ln(mean) - variance / 2, sigma: Math.sqrt(variance) };
  }
  if (p50 !== undefined && p95 !== undefined && mean === undefined && cv === undefined && p50 > 0 && p95 >= p50)
    return { kind: "lognormal", mu: ln(p50), sigma: ln(p95 / p50) / Z95 };
  return source.fail(
    path,
    `lognormal has ${Object.keys(input).join(", ") || "nothing"}. Expected mean and cv, or p50 and p95, above 0`,
    "Write  lognormal: { mean: 4s, cv: 1 }",
  );
}

function ordered(low: number, high: number, path: Path, source: ScenarioSource): void {
  if (low > high) source.fail(path, "low is above high. Expected low <= high", "Swap them.");
}

export function expectOne(
  found: readonly string[],
  known: readonly string[],
  path: Path,
  source: ScenarioSource,
): void {
  if (found.length !== 1)
    source.fail(
      path,
      `${found.length} kinds are given (${found.join(", ") || "none"}). Expected exactly one of ${known.join(", ")}`,
      "Keep one.",
    );
}
