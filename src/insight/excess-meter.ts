/** How far and how long something was above its limit. */
export class ExcessMeter {
  most = 0;
  timeMs = 0;
  /** Excess times length, in units of the value times milliseconds. */
  area = 0;

  /** The value has held for so long. A negative limit is none. */
  add(value: number, limit: number, ms: number): void {
    const over = value - limit;
    if (limit < 0 || over <= 0) return;
    if (over > this.most) this.most = over;
    this.timeMs += ms;
    this.area += over * ms;
  }
}
