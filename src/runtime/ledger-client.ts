/**
 * The host's trackers behind the door that buffer pool and operators know (`ReservationClient`): one tracker record,
 * every call one section under the host's lock.
 */
import { invariant } from "../core/assert.ts";
import {
  F_CHILD,
  F_LIMIT,
  F_RESERVATION,
  F_USED,
  get,
  type LedgerView,
  NONE,
  noRefusal,
  type Refusal,
} from "../core/memory/ledger-layout.ts";
import { shortRefusalText } from "../core/memory/refusal-text.ts";
import { type ReservationClient, unusedOf } from "../core/memory/reservation-client.ts";
import {
  allocateFrom,
  decreaseReservation,
  increaseReservation,
  increaseReservationToFit,
  releaseTo,
  transferReservation,
} from "../core/memory/reservation-trackers.ts";
import { closeTracker, openSub } from "../core/memory/tracker-records.ts";
import type { HostLedger } from "./host-ledger.ts";

export interface LedgerClientOptions {
  readonly ledger: HostLedger;
  readonly tracker: number;
  readonly label: string;
  readonly owner: number;
  readonly backend: string;
  /** The debug action's dice (R1 step 3). */
  readonly denies: () => boolean;
}

export class LedgerClient implements ReservationClient {
  readonly label: string;
  readonly tracker: number;
  readonly #o: LedgerClientOptions;
  /** Figures of the last refusal; its text is made when somebody reads it. */
  #refusal: Refusal = noRefusal();
  #isOpen = true;

  constructor(options: LedgerClientOptions) {
    this.label = options.label;
    this.tracker = options.tracker;
    this.#o = options;
  }

  get reservation(): number {
    return this.#read(F_RESERVATION);
  }
  get used(): number {
    return this.#read(F_USED);
  }
  get child(): number {
    return this.#read(F_CHILD);
  }
  get limit(): number {
    const limit = this.#read(F_LIMIT);
    return limit < 0 ? Number.POSITIVE_INFINITY : limit;
  }
  get refusal(): string {
    return this.#o.ledger.run(shortRefusalText, this.#refusal, this.#o.backend);
  }

  tryIncrease(bytes: number): boolean {
    return this.#grow(increaseReservation, bytes, bytes);
  }

  tryIncreaseToFit(bytes: number): boolean {
    return this.#grow(increaseReservationToFit, bytes, bytes - unusedOf(this));
  }

  decrease(bytes: number): void {
    this.#o.ledger.run(decreaseReservation, this.tracker, bytes);
  }

  allocate(bytes: number): void {
    this.#o.ledger.run(allocateFrom, this.tracker, bytes);
  }

  releaseUsed(bytes: number): void {
    this.#o.ledger.run(releaseTo, this.tracker, bytes);
  }

  transferTo(to: ReservationClient, bytes: number): boolean {
    invariant(to instanceof LedgerClient, "R4 both trackers are of one tree");
    const moved = this.#o.ledger.run(transferReservation, this.tracker, to.tracker, bytes);
    if (!moved) this.#keepRefusal();
    return moved;
  }

  subReservation(): ReservationClient {
    const { ledger, owner } = this.#o;
    const tracker = ledger.run(openSub, this.tracker, -1, owner);
    invariant(tracker !== NONE, "the ledger has a record for every part that an operator sets aside");
    return new LedgerClient({ ...this.#o, tracker, denies: never });
  }

  close(): void {
    if (this.#isOpen) this.#o.ledger.run(closeTracker, this.tracker);
    this.#isOpen = false;
  }

  /** What needs nothing more is granted before the dice are asked (R1 steps 2 and 3). */
  #grow(step: (v: LedgerView, t: number, bytes: number) => boolean, bytes: number, delta: number): boolean {
    if (delta > 0 && this.#o.denies()) {
      this.#refusal = { ...noRefusal(), kind: "denied", tracker: this.tracker, asker: this.tracker, asked: bytes };
      return false;
    }
    const granted = this.#o.ledger.run(step, this.tracker, bytes);
    if (!granted) this.#keepRefusal();
    return granted;
  }

  /** The view's record is this thread's own and used again by the next refusal. */
  #keepRefusal(): void {
    this.#refusal = { ...this.#o.ledger.view.refusal };
  }

  #read(field: number): number {
    return this.#o.ledger.run(get, this.tracker, field);
  }
}

const never = (): boolean => false;
