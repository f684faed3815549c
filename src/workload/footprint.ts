/**
 * How a footprint moves between its start and its end; both drivers follow the same curve.
 */
import type { FootprintProfile } from "../config/scenario.ts";

const SPIKE_BASE = 0.1;
const SPIKE_FROM = 0.45;
const SPIKE_TO = 0.55;
const SAW_TEETH = 4;

/** Share of the peak, 0 to 1, at a share of the duration, 0 to 1. */
export function shareOfPeak(profile: FootprintProfile, progress: number): number {
  const at = Math.min(1, Math.max(0, progress));
  switch (profile) {
    case "flat":
      return 1;
    case "ramp":
      return at;
    case "spike":
      return at >= SPIKE_FROM && at <= SPIKE_TO ? 1 : SPIKE_BASE;
    case "triangle":
      return at <= 0.5 ? 2 * at : 2 - 2 * at;
    case "saw":
      return at === 1 ? 1 : (at * SAW_TEETH) % 1;
    default:
      return between(profile, at);
  }
}

/** Where the peak is reached first: who goes in steps looks here too, so that no spike falls between two. */
export function progressOfPeak(profile: FootprintProfile): number {
  switch (profile) {
    case "flat":
      return 0;
    case "ramp":
    case "saw":
      return 1;
    case "spike":
      return SPIKE_FROM;
    case "triangle":
      return 0.5;
    default: {
      const most = Math.max(...profile.map(([, share]) => share));
      return profile.find(([, share]) => share === most)?.[0] ?? 1;
    }
  }
}

function between(points: readonly (readonly [number, number])[], at: number): number {
  for (let i = 1; i < points.length; i++) {
    const [x0, y0] = points[i - 1]!;
    const [x1, y1] = points[i]!;
    if (at <= x1) return x1 === x0 ? y1 : y0 + ((y1 - y0) * (at - x0)) / (x1 - x0);
  }
  return points[points.length - 1]![1];
}
