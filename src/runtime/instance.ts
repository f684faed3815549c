/**
 * What an executor thread carries: one fragment instance of one query on one host, with a footprint or with real
 * operators. The thread starts it, may end it from outside, and forgets it when it says that it has ended.
 */
import type { BufferAllocator } from "../core/memory/buffer-allocator.ts";
import type { Instant } from "../core/units.ts";
import type { Arena } from "./arena.ts";
import type { HostLedger } from "./host-ledger.ts";
import type { QueryOnHost } from "./instance-trackers.ts";
import type { OperatorChecks } from "./operator-checks.ts";
import type { OperatorArena } from "./operators/operator-arena.ts";
import type { FragmentError, FragmentOrder, Progress, QueryOrder } from "./protocol.ts";
import type { ScratchBooks } from "./scratch/scratch-directories.ts";

export interface Instance {
  readonly order: FragmentOrder;
  start(): void;
  /** The query was cancelled: everything is given back, now or at the next step. */
  cancel(): void;
  /** It does nothing more, and keeps what it has, until it is cancelled. */
  hold(): void;
  /** The host is lost: it never acts again, and what it holds is main's to give back. */
  abandon(): void;
}

/** A host as its thread works with it. */
export interface ThreadHost {
  readonly address: string;
  readonly ledger: HostLedger;
  readonly arena: Arena;
  readonly operators: HostOperators | null;
  /** By query id: those of several instances here that have not all ended. */
  readonly shared: Map<string, SharedQuery>;
}

/** What the instances of a query have in common on a host (R16: opened by the first of them, closed by the last). */
export interface SharedQuery {
  /** Or why it could not be opened: then none of its instances starts. */
  readonly opened: QueryOnHost | FragmentError;
  /** Instances that have not claimed their part of the minimum, and that have not ended. */
  toClaim: number;
  toEnd: number;
  readonly isAlone: boolean;
}

/** What real operators work with on one host. */
export interface HostOperators {
  readonly arena: OperatorArena;
  readonly allocator: BufferAllocator;
  readonly books: ScratchBooks;
  readonly places: WorkPlaces;
  /** Null: nobody asked for them. */
  readonly checks: OperatorChecks | null;
}

/** Work spaces of one host; who finds none waits until one is free, in the order of asking. */
export class WorkPlaces {
  readonly #free: number[];
  readonly #waiting: ((place: number) => void)[] = [];

  constructor(count: number) {
    this.#free = Array.from({ length: count }, (_, i) => count - 1 - i);
  }

  take(then: (place: number) => void): void {
    const place = this.#free.pop();
    if (place === undefined) this.#waiting.push(then);
    else then(place);
  }

  give(place: number): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free.push(place);
    else next(place);
  }
}

/** What an instance needs of its thread. */
export interface FragmentThread {
  readonly lockId: number;
  /** This run's scratch directory. */
  readonly scratch: string;
  now(): Instant;
  at(at: Instant, act: (now: Instant) => void): { cancel(): void };
  /** In a later turn of the event loop: whatever else the thread carries comes in between. */
  soon(act: () => void): void;
  tell(progress: Progress): void;
  /** The debug action's dice (R1 step 3). */
  denies(order: QueryOrder, fragment: FragmentOrder): boolean;
  ended(task: number): void;
}
