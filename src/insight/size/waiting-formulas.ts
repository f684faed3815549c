/**
 * Closed forms for steady traffic (insight 3.3 items 4 and 5): Poisson arrivals, c equal places, first come
 * first served.
 *
 * Time is in any one unit; `load` is a = λ·S, the mean number of places wanted. Logarithms and powers are our
 * own, so that what is screened out on one machine is screened out on every machine (insight 6.1). The tests
 * hold them against the reference values V1 to V19.
 */
import { exp, ln } from "../../core/exact-math.ts";

export interface SteadyTraffic {
  /** Arrivals per unit of time. */
  readonly rate: number;
  /** Mean hold. */
  readonly hold: number;
  readonly places: number;
}

export interface WaitFigures {
  /** Chance that one has to wait: of all arrivals, or of the accepted ones where some are turned away at once. */
  readonly waits: number;
  /** Mean wait of the admitted. */
  readonly meanWait: number;
  /** Share of all that are lost. */
  readonly lost: number;
}

const loadOf = (t: SteadyTraffic): number => t.rate * t.hold;

/** Chance to find all places taken when nobody waits. B ← aB/(j + aB), j = 1..c, from 1. */
export function erlangB(load: number, places: number): number {
  let b = 1;
  for (let j = 1; j <= places; j++) b = (load * b) / (j + load * b);
  return b;
}

/** Chance to wait with an endless queue; 1 from load = places on. */
export function erlangC(load: number, places: number): number {
  if (load >= places) return 1;
  const b = erlangB(load, places);
  const rho = load / places;
  return b / (1 - rho * (1 - b));
}

/** M/M/c. Infinite waits from ρ = 1 on. */
export function mmc(t: SteadyTraffic): WaitFigures {
  const load = loadOf(t);
  const waits = erlangC(load, t.places);
  const meanWait = load >= t.places ? Number.POSITIVE_INFINITY : (waits * t.hold) / (t.places - load);
  return { waits, meanWait, lost: 0 };
}

/** The p-quantile of the wait of all, 0 when fewer than 1 - p wait at all. */
export function mmcWaitQuantile(t: SteadyTraffic, p: number): number {
  const load = loadOf(t);
  if (load >= t.places) return Number.POSITIVE_INFINITY;
  const waits = erlangC(load, t.places);
  return waits <= 1 - p ? 0 : (ln(waits / (1 - p)) * t.hold) / (t.places - load);
}

/** M/M/c/K: a queue of `maxQueued` places, who finds it full is turned away. */
export function mmcWithQueueLimit(t: SteadyTraffic, maxQueued: number): WaitFigures {
  const load = loadOf(t);
  const { places } = t;
  // Weights relative to state c, so that nothing overflows however many places there are.
  const below = sumBelow(load, places);
  const rho = load / places;
  let weight = 1;
  let waiting = 0;
  let length = 0;
  let sumAtLeastC = 0;
  for (let k = 0; k <= maxQueued; k++) {
    sumAtLeastC += weight;
    length += k * weight;
    if (k < maxQueued) waiting += weight;
    if (k < maxQueued) weight *= rho;
  }
  const total = below + sumAtLeastC;
  const lost = weight / total;
  const accepted = 1 - lost;
  return {
    waits: waiting / total / accepted,
    // Little's law over the accepted ones.
    meanWait: length / total / (t.rate * accepted),
    lost,
  };
}

/** Σ over j < c of p(j) / p(c), p(j) ∝ a^j/j!. */
function sumBelow(load: number, places: number): number {
  let weight = 1;
  let sum = 0;
  for (let j = places; j > 0; j--) {
    weight *= j / load;
    sum += weight;
  }
  return sum;
}

/** M/M/c whose customers leave after waiting exactly `patience` (Barrer; Baccelli and Hébuterne). */
export interface PatienceFigures extends WaitFigures {
  /** Chance that the wait of a served or lost one is above x, x < patience. */
  readonly exceeds: (x: number) => number;
  /** Largest x below the patience with `exceeds(x)` >= chance; Infinity when more than that are lost. */
  readonly quantile: (p: number) => number;
}

export function mmcWithPatience(t: SteadyTraffic, patience: number): PatienceFigures {
  const load = loadOf(t);
  const { places, hold } = t;
  const drain = (places - load) / hold;
  const f0 = densityAtZero(t, patience, drain);
  const lost = ((f0 * hold) / places) * exp(-drain * patience);
  const within = f0 * integralOfExp(drain, patience);
  const served = 1 - lost;
  const exceeds = (x: number): number => f0 * exp(-drain * x) * integralOfExp(drain, patience - x) + lost;
  return {
    waits: within + lost,
    meanWait: (f0 * integralOfTimesExp(drain, patience)) / served,
    lost,
    exceeds,
    quantile: (p) => invert(exceeds, 1 - p, patience, lost),
  };
}

/** f(0) from Σ p(j<c) + ∫ f = 1 and f(0) = λ p(c-1). */
function densityAtZero(t: SteadyTraffic, patience: number, drain: number): number {
  const load = loadOf(t);
  // Σ over j < c of p(j) / p(c-1).
  const below = sumBelow(load, t.places) * (load / t.places);
  const waiting = integralOfExp(drain, patience) + (t.hold / t.places) * exp(-drain * patience);
  return 1 / (below / t.rate + waiting);
}

/** ∫ from 0 to T of e^(-dv). */
function integralOfExp(d: number, end: number): number {
  const x = d * end;
  // Near 0 the difference of two nearly equal numbers loses its digits: the series is exact enough there.
  return Math.abs(x) < 1e-5 ? end * (1 - x / 2 + (x * x) / 6) : (1 - exp(-x)) / d;
}

/** ∫ from 0 to T of v e^(-dv). */
function integralOfTimesExp(d: number, end: number): number {
  const x = d * end;
  if (Math.abs(x) < 1e-4) return end * end * (1 / 2 - x / 3 + (x * x) / 8);
  return (1 - exp(-x) * (1 + x)) / (d * d);
}

function invert(exceeds: (x: number) => number, chance: number, patience: number, lost: number): number {
  if (lost >= chance) return Number.POSITIVE_INFINITY;
  if (exceeds(0) <= chance) return 0;
  let low = 0;
  let high = patience;
  for (let i = 0; i < 60; i++) {
    const middle = (low + high) / 2;
    if (exceeds(middle) > chance) low = middle;
    else high = middle;
  }
  return high;
}

// Other holds than exponential ones

/** Allen and Cunneen: factor on the mean wait for the squared coefficients of variation of gaps and holds. */
export const variationFactor = (gapsCv2: number, holdsCv2: number): number => (gapsCv2 + holdsCv2) / 2;

/** Cosmetatos: mean wait of M/D/c over that of M/M/c. */
export function fixedHoldFactor(load: number, places: number): number {
  const rho = load / places;
  return 0.5 * (1 + ((1 - rho) * (places - 1) * (Math.sqrt(4 + 5 * places) - 2)) / (16 * rho * places));
}

/** Mean wait with holds of this variation: fixed ones by Cosmetatos, a straight line in cv² from there (Allen and Cunneen). */
export function generalMeanWait(t: SteadyTraffic, holdsCv2: number): number {
  const exponential = mmc(t).meanWait;
  if (holdsCv2 >= 1 || !Number.isFinite(exponential)) return exponential * variationFactor(1, holdsCv2);
  const fixed = exponential * fixedHoldFactor(loadOf(t), t.places);
  return fixed + (exponential - fixed) * holdsCv2;
}
