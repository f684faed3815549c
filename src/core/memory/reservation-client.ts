/**
 * The one door through which the buffer pool and the operators ask for memory (memory 2.1, 2.2).
 *
 * It exists so that they don't know who keeps the books: the host's trackers in shared memory, or the small
 * tree of `local-reservation.ts` in a test. An implementation must keep, at every return: 0 <= used,
 * 0 <= child, used + child <= reservation <= limit, and a refused call changes nothing (R1, I15).
 *
 * A refusal is an answer (R7): `false`, with its text kept in `refusal` until the next one. A call that the
 * rules forbid (R2, R3 without the unused bytes) is a bug and throws InvariantError.
 */
export interface ReservationClient {
  /** The operator's name as it stands in messages, e.g. `SORT_NODE (id=3)`. */
  readonly label: string;
  /** Bytes promised to this client. */
  readonly reservation: number;
  /** Bytes of the promise that back pinned pages and allocated buffers. */
  readonly used: number;
  /** Bytes of the promise handed on to sub-reservations (SubReservation, memory 2.1). */
  readonly child: number;
  /** Own limit; Infinity: only the trackers above limit it. */
  readonly limit: number;
  /** Text of the last refusal (R5 or memory 1.5); empty when nothing was refused yet. */
  readonly refusal: string;

  /** R1, plain: this many bytes more, all or nothing. */
  tryIncrease(bytes: number): boolean;
  /** R1, "ToFit": as many bytes more as are missing until `bytes` are unused, all or nothing. */
  tryIncreaseToFit(bytes: number): boolean;
  /** R2: gives unused bytes back, all the way to the root. */
  decrease(bytes: number): void;
  /** R3: unused bytes become used. Local, tells no parent. */
  allocate(bytes: number): void;
  /** R3: used bytes become unused; the reservation stays. */
  releaseUsed(bytes: number): void;
  /** R4: unused bytes move to another client of the same tree; false when a limit on the way refuses. */
  transferTo(to: ReservationClient, bytes: number): boolean;
  /** A part of this client's own reservation set aside (O1). Give it back with `transferTo(owner)`, then close it. */
  subReservation(): ReservationClient;
  /** R6: nothing used, nothing handed on; everything goes back up the tree. */
  close(): void;
}

/** reservation - used - child (memory 2.1). */
export const unusedOf = (c: ReservationClient): number => c.reservation - c.used - c.child;
