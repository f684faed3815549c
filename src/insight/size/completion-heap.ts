/**
 * When running queries will be done, earliest first, equal times in the order they were added.
 *
 * Typed arrays and one number per entry: the screening runs hundreds of millions of these.
 */

const FIRST_CAPACITY = 1024;

export class CompletionHeap {
  private times = new Float64Array(FIRST_CAPACITY);
  private ids = new Int32Array(FIRST_CAPACITY);
  private orders = new Float64Array(FIRST_CAPACITY);
  private added = 0;
  size = 0;

  get firstTime(): number {
    return this.times[0]!;
  }

  add(time: number, id: number): void {
    if (this.size === this.times.length) this.grow();
    let at = this.size++;
    const order = this.added++;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.isBefore(time, order, parent)) break;
      this.move(parent, at);
      at = parent;
    }
    this.put(at, time, id, order);
  }

  take(): number {
    const first = this.ids[0]!;
    const last = --this.size;
    const time = this.times[last]!;
    const id = this.ids[last]!;
    const order = this.orders[last]!;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= last) break;
      if (child + 1 < last && this.isBefore(this.times[child + 1]!, this.orders[child + 1]!, child)) child++;
      if (this.isBefore(time, order, child)) break;
      this.move(child, at);
      at = child;
    }
    this.put(at, time, id, order);
    return first;
  }

  private grow(): void {
    const { times, ids, orders } = this;
    this.times = new Float64Array(times.length * 2);
    this.ids = new Int32Array(times.length * 2);
    this.orders = new Float64Array(times.length * 2);
    this.times.set(times);
    this.ids.set(ids);
    this.orders.set(orders);
  }

  private isBefore(time: number, order: number, at: number): boolean {
    const other = this.times[at]!;
    return time < other || (time === other && order < this.orders[at]!);
  }

  private move(from: number, to: number): void {
    this.put(to, this.times[from]!, this.ids[from]!, this.orders[from]!);
  }

  private put(at: number, time: number, id: number, order: number): void {
    this.times[at] = time;
    this.ids[at] = id;
    this.orders[at] = order;
  }
}
