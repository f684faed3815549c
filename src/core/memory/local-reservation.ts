/**
 * A reservation tree in plain objects: for tests, benches and stories that have no host (memory 2.2).
 *
 * The host's trackers in shared memory are the real thing; this one is small enough to be read at a glance
 * and serves as their yardstick. It can refuse by dice, as Impala's debug action does: `denies` is asked
 * before any limit, at every level that has one (R1 step 3).
 *
 * Must keep: used + child <= reservation <= limit; child = sum of the children's reservations (I2); a
 * refused increase leaves every number as it was (I15).
 */
import { invariant } from "../assert.ts";
import { prettyBytes } from "../pretty.ts";
import { type ReservationClient, unusedOf } from "./reservation-client.ts";

export interface LocalReservationOptions {
  readonly label: string;
  readonly parent?: LocalReservation;
  /** Bytes; left out: no limit of its own. */
  readonly limit?: number;
  /** True refuses this increase whatever the limits say (SET_DENY_RESERVATION_PROBABILITY). */
  readonly denies?: () => boolean;
}

export class LocalReservation implements ReservationClient {
  readonly label: string;
  readonly limit: number;
  readonly parent: LocalReservation | null;
  reservation = 0;
  used = 0;
  child = 0;
  refusal = "";
  peakReservation = 0;
  peakUsed = 0;
  readonly #denies: (() => boolean) | null;
  #closed = false;

  constructor(options: LocalReservationOptions) {
    this.label = options.label;
    this.parent = options.parent ?? null;
    this.limit = options.limit ?? Number.POSITIVE_INFINITY;
    this.#denies = options.denies ?? null;
  }

  tryIncrease(bytes: number): boolean {
    return this.#grow(bytes, bytes, this);
  }

  tryIncreaseToFit(bytes: number): boolean {
    return this.#grow(Math.max(0, bytes - unusedOf(this)), bytes, this);
  }

  /** R1 from step 2 on, at this level: `delta` more here, of which `asked` go to the child that asks. */
  #grow(delta: number, asked: number, asker: LocalReservation): boolean {
    if (delta > 0) {
      if (this.#denies?.()) return asker.#refuse("Debug random failure mode is turned on: reservation denied.");
      if (this.reservation + delta > this.limit) return asker.#refuse(this.#overLimit(delta));
      const parent = this.parent;
      if (parent !== null && !parent.#grow(Math.max(0, delta - unusedOf(parent)), delta, asker)) return false;
      this.reservation += delta;
      this.peakReservation = Math.max(this.peakReservation, this.reservation);
    }
    if (asker !== this) this.child += asked;
    return true;
  }

  #refuse(why: string): false {
    this.refusal = why;
    return false;
  }

  /** R5. */
  #overLimit(delta: number): string {
    return (
      `Failed to increase reservation by ${prettyBytes(delta)} because it would exceed the applicable reservation ` +
      `limit for the "${this.label}" ReservationTracker: reservation_limit=${prettyBytes(this.limit)} ` +
      `reservation=${prettyBytes(this.reservation)} used_reservation=${prettyBytes(this.used)} ` +
      `child_reservations=${prettyBytes(this.child)}`
    );
  }

  decrease(bytes: number): void {
    invariant(bytes >= 0 && unusedOf(this) >= bytes, "R2 unused >= the bytes given back");
    this.reservation -= bytes;
    let below: LocalReservation | null = this.parent;
    for (; below !== null; below = below.parent) {
      below.child -= bytes;
      below.reservation -= bytes;
      invariant(below.child >= 0, "I2 child >= 0");
    }
  }

  allocate(bytes: number): void {
    invariant(bytes >= 0 && unusedOf(this) >= bytes, "R3 unused >= the bytes allocated");
    this.used += bytes;
    this.peakUsed = Math.max(this.peakUsed, this.used);
  }

  releaseUsed(bytes: number): void {
    invariant(bytes >= 0 && this.used >= bytes, "R3 used >= the bytes released");
    this.used -= bytes;
  }

  transferTo(to: ReservationClient, bytes: number): boolean {
    invariant(to instanceof LocalReservation, "R4 both trackers are of one tree");
    invariant(bytes >= 0 && unusedOf(this) >= bytes, "R4 unused >= the bytes moved");
    const common = nearestCommonAncestor(this, to);
    for (let t: LocalReservation = to; t !== common; t = t.parent!)
      if (t.reservation + bytes > t.limit) return this.#refuse(t.#overLimit(bytes));
    for (let t: LocalReservation = to; t !== common; t = t.parent!) {
      t.reservation += bytes;
      t.peakReservation = Math.max(t.peakReservation, t.reservation);
      if (t.parent === common ? common === this : true) t.parent!.child += bytes;
    }
    for (let t: LocalReservation = this; t !== common; t = t.parent!) {
      t.reservation -= bytes;
      if (t.parent === common ? common === to : true) t.parent!.child -= bytes;
    }
    return true;
  }

  subReservation(): LocalReservation {
    return new LocalReservation({ label: this.label, parent: this });
  }

  close(): void {
    if (this.#closed) return;
    invariant(this.used === 0 && this.child === 0, "R6 nothing used and nothing handed on at close");
    this.decrease(this.reservation);
    this.#closed = true;
  }
}

function nearestCommonAncestor(a: LocalReservation, b: LocalReservation): LocalReservation {
  const path = new Set<LocalReservation>();
  for (let t: LocalReservation | null = a; t !== null; t = t.parent) path.add(t);
  for (let t: LocalReservation | null = b; t !== null; t = t.parent) if (path.has(t)) return t;
  invariant(false, "R4 both trackers are of one tree");
}
