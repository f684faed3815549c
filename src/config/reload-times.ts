/**
 * When a daemon notices that its pool files have changed, in closed form (pool-configuration 4.1, 4.2).
 *
 * A run begins when its daemons start, so checks are due at every ten seconds of emulated time. The site file counts
 * at the first check after the write. The allocation file must also have rested for more than five seconds. Kept
 * equal to `pool-service.ts`, which does it with files and a clock; reload-times.test.ts compares the two.
 */
import type { Instant } from "../core/units.ts";
import { CHECK_EVERY, REST_BEFORE_LOAD } from "./pool-service.ts";

/** The first check at or after the write. */
export const siteNoticedAt = (written: Instant): Instant => (Math.ceil(written / CHECK_EVERY) * CHECK_EVERY) as Instant;

/** The first check, the one at the start aside, at which the file is older than the rest it needs. */
export const allocationNoticedAt = (written: Instant): Instant =>
  ((Math.floor((written + REST_BEFORE_LOAD) / CHECK_EVERY) + 1) * CHECK_EVERY) as Instant;
