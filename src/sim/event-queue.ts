/**
 * What happens next in virtual time: a heap of events on typed arrays.
 *
 * A file of its own because everything the simulator promises about order rests on it: events come out by
 * time, and events of one instant in the order in which they were scheduled. Times are whole microseconds,
 * so that two events meant for the same instant really meet (insight 6.1).
 *
 * An event is four numbers (time, kind, two operands) in a slot; no object is made per event. Slots are
 * reused, and a slot can be taken out again, because a queued query's time-out rarely comes to pass: left in
 * the heap, the dead time-outs of a busy day would outnumber the living events a thousand to one.
 *
 * Time-outs come in order already, as most are equally long, and few come to pass. So they have a lane, a list of
 * events of which only the first stands in the heap; one that is due before the lane's last stands in the heap by
 * itself. What comes out is the same, and in the same order.
 *
 * Bound: as many events as are pending at once; the arrays double when full and never shrink.
 */
import { fail } from "../core/assert.ts";
import type { Instant } from "../core/units.ts";

/** Whole microseconds of emulated time. Plain `number`: the inside of the simulator counts nothing else. */
export type Micros = number;

export const MICROS_PER_MS = 1000;
export const toInstant = (t: Micros): Instant => (t / MICROS_PER_MS) as Instant;
/** The nearest whole microsecond. */
export const toMicros = (ms: number): Micros => Math.round(ms * MICROS_PER_MS);

/** Names a pending event: valid from `add` until the event is taken or removed. */
export type EventHandle = number;

/** No event. */
export const NO_EVENT: EventHandle = -1;

/** Few, because a prediction makes hundreds of short runs. */
const FIRST_CAPACITY = 64;
/** Added to the order of events that come last in their instant: far above any count of events, exact in a double. */
const LAST = 2 ** 51;
/** Children of one heap place. Four halve the levels of a binary heap, at no more comparisons per level than a cache line holds. */
const ARITY_SHIFT = 2;
const NONE = -1;
/** Places of slots that are not in the heap. */
const FREE = -1;
const BEHIND = -2;

export class EventQueue {
  /** heap[i] = slot, ordered by (time, order of scheduling). */
  #heap = new Int32Array(FIRST_CAPACITY);
  /** Its time once more, where the next comparison finds it. */
  #heapTime = new Float64Array(FIRST_CAPACITY);
  #heapSize = 0;
  /** Where a slot stands in the heap, BEHIND the first of the lane, or FREE. */
  #place = new Int32Array(FIRST_CAPACITY).fill(FREE);
  #order = new Float64Array(FIRST_CAPACITY);
  #kind = new Int32Array(FIRST_CAPACITY);
  #a = new Int32Array(FIRST_CAPACITY);
  #b = new Int32Array(FIRST_CAPACITY);
  #laneFirst = NONE;
  #laneLast = NONE;
  /** Of slots in the lane: when they are due, and their neighbours. */
  #laneTime = new Float64Array(FIRST_CAPACITY);
  #before = new Int32Array(FIRST_CAPACITY);
  #after = new Int32Array(FIRST_CAPACITY);
  /** Free slots below `#used`, as a stack. */
  #free = new Int32Array(FIRST_CAPACITY);
  #freeCount = 0;
  #used = 0;
  #size = 0;
  #scheduled = 0;

  /** Of the event that `take` last returned. */
  time: Micros = 0;
  a = 0;
  b = 0;

  get size(): number {
    return this.#size;
  }

  /** Time of the next event, Infinity when there is none. */
  get nextTime(): Micros {
    return this.#size === 0 ? Number.POSITIVE_INFINITY : this.#heapTime[0]!;
  }

  /** hot: bench/simulate */
  add(time: Micros, kind: number, a: number, b: number): EventHandle {
    return this.#put(time, this.#scheduled++, kind, a, b);
  }

  /** After everything else of its instant; among each other first in, first out. */
  addLast(time: Micros, kind: number, a: number, b: number): EventHandle {
    return this.#put(time, LAST + this.#scheduled++, kind, a, b);
  }

  /** The same as `add`, for events that mostly come in order of time and are mostly removed. hot: bench/simulate */
  addInLane(time: Micros, kind: number, a: number, b: number): EventHandle {
    const last = this.#laneLast;
    if (last !== NONE && time < this.#laneTime[last]!) return this.add(time, kind, a, b);
    const slot = this.#fill(time, this.#scheduled++, kind, a, b);
    this.#laneTime[slot] = time;
    this.#before[slot] = last;
    this.#after[slot] = NONE;
    this.#laneLast = slot;
    if (last === NONE) {
      this.#laneFirst = slot;
      this.#rise(this.#heapSize++, slot, time);
    } else {
      this.#after[last] = slot;
      this.#place[slot] = BEHIND;
    }
    return slot;
  }

  #put(time: Micros, order: number, kind: number, a: number, b: number): EventHandle {
    const slot = this.#fill(time, order, kind, a, b);
    this.#rise(this.#heapSize++, slot, time);
    return slot;
  }

  #fill(time: Micros, order: number, kind: number, a: number, b: number): number {
    if (time < this.time) fail("an event is scheduled for the past");
    const slot = this.#freeCount > 0 ? this.#free[--this.#freeCount]! : this.#newSlot();
    this.#size++;
    this.#order[slot] = order;
    this.#kind[slot] = kind;
    this.#a[slot] = a;
    this.#b[slot] = b;
    return slot;
  }

  /** Takes the next event out and returns its kind; time and operands are in the fields. -1: nothing left. */
  take(): number {
    if (this.#size === 0) return -1;
    const slot = this.#heap[0]!;
    this.time = this.#heapTime[0]!;
    this.a = this.#a[slot]!;
    this.b = this.#b[slot]!;
    this.#leaveHeap(0, slot);
    return this.#kind[slot]!;
  }

  /** The event will not happen. Its handle is dead afterwards. */
  remove(handle: EventHandle): void {
    const place = this.#place[handle] ?? FREE;
    if (place === FREE) fail("an event is removed that is not pending");
    if (place === BEHIND) this.#leaveLane(handle);
    else this.#leaveHeap(place, handle);
  }

  /** Its place goes to the next one of the lane, which is not due earlier, or to the last one of the heap. */
  #leaveHeap(place: number, slot: number): void {
    this.#release(slot);
    if (slot === this.#laneFirst && this.#shiftLane()) {
      const next = this.#laneFirst;
      this.#sink(place, next, this.#laneTime[next]!);
      return;
    }
    const end = --this.#heapSize;
    if (place === end) return;
    const last = this.#heap[end]!;
    const time = this.#heapTime[end]!;
    // The last one may belong above or below the hole.
    if (place > 0 && this.#isBefore(last, time, (place - 1) >> ARITY_SHIFT)) this.#rise(place, last, time);
    else this.#sink(place, last, time);
  }

  /** The next one is the first; false: there is none. */
  #shiftLane(): boolean {
    const next = this.#after[this.#laneFirst]!;
    this.#laneFirst = next;
    if (next === NONE) this.#laneLast = NONE;
    return next !== NONE;
  }

  /** From behind the first: somebody stands before it. */
  #leaveLane(slot: number): void {
    const before = this.#before[slot]!;
    const after = this.#after[slot]!;
    this.#release(slot);
    this.#after[before] = after;
    if (after === NONE) this.#laneLast = before;
    else this.#before[after] = before;
  }

  #release(slot: number): void {
    this.#free[this.#freeCount++] = slot;
    this.#place[slot] = FREE;
    this.#size--;
  }

  #isBefore(slot: number, time: Micros, at: number): boolean {
    const there = this.#heapTime[at]!;
    return time < there || (time === there && this.#order[slot]! < this.#order[this.#heap[at]!]!);
  }

  #rise(from: number, slot: number, time: Micros): void {
    const heap = this.#heap;
    const times = this.#heapTime;
    const place = this.#place;
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >> ARITY_SHIFT;
      if (!this.#isBefore(slot, time, parent)) break;
      const above = heap[parent]!;
      heap[at] = above;
      times[at] = times[parent]!;
      place[above] = at;
      at = parent;
    }
    heap[at] = slot;
    times[at] = time;
    place[slot] = at;
  }

  /** hot: bench/simulate */
  #sink(from: number, slot: number, time: Micros): void {
    const heap = this.#heap;
    const times = this.#heapTime;
    const place = this.#place;
    const orders = this.#order;
    const size = this.#heapSize;
    let at = from;
    for (;;) {
      const first = (at << ARITY_SHIFT) + 1;
      if (first >= size) break;
      const end = Math.min(first + 4, size);
      let least = first;
      let leastTime = times[first]!;
      for (let child = first + 1; child < end; child++) {
        const t = times[child]!;
        if (t < leastTime || (t === leastTime && orders[heap[child]!]! < orders[heap[least]!]!)) {
          least = child;
          leastTime = t;
        }
      }
      const below = heap[least]!;
      if (time < leastTime || (time === leastTime && orders[slot]! < orders[below]!)) break;
      heap[at] = below;
      times[at] = leastTime;
      place[below] = at;
      at = least;
    }
    heap[at] = slot;
    times[at] = time;
    place[slot] = at;
  }

  #newSlot(): number {
    if (this.#used === this.#heap.length) this.#grow();
    return this.#used++;
  }

  #grow(): void {
    const capacity = this.#heap.length * 2;
    const wider = <T extends Int32Array | Float64Array>(fresh: T, old: T): T => {
      fresh.set(old);
      return fresh;
    };
    this.#heap = wider(new Int32Array(capacity), this.#heap);
    this.#place = wider(new Int32Array(capacity).fill(FREE), this.#place);
    this.#heapTime = wider(new Float64Array(capacity), this.#heapTime);
    this.#order = wider(new Float64Array(capacity), this.#order);
    this.#kind = wider(new Int32Array(capacity), this.#kind);
    this.#a = wider(new Int32Array(capacity), this.#a);
    this.#b = wider(new Int32Array(capacity), this.#b);
    this.#laneTime = wider(new Float64Array(capacity), this.#laneTime);
    this.#before = wider(new Int32Array(capacity), this.#before);
    this.#after = wider(new Int32Array(capacity), this.#after);
    this.#free = wider(new Int32Array(capacity), this.#free);
  }
}
