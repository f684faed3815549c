/** Virtual time for the conformance stepper: what is due when, in the order in which it was asked for. */
interface Due {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
}

/** No story needs more; a wait that gets here waits for something that never comes. */
const END_OF_TIME_MS = 4 * 3600 * 1000;

export class Timeline {
  now = 0;
  private readonly due: Due[] = [];
  private order = 0;

  at(time: number, run: () => void): void {
    const entry = { at: Math.max(time, this.now), order: this.order++, run };
    let i = this.due.length;
    while (i > 0 && this.due[i - 1]!.at > entry.at) i -= 1;
    this.due.splice(i, 0, entry);
  }

  /** Runs everything due up to and including `time`, then stands there. */
  advanceTo(time: number): void {
    while (this.due.length > 0 && this.due[0]!.at <= time) this.step();
    this.now = Math.max(this.now, time);
  }

  /** Runs everything due before `time`, then stands at it: what is due at `time` comes after what the caller does. */
  advanceBefore(time: number): void {
    while (this.due.length > 0 && this.due[0]!.at < time) this.step();
    this.now = Math.max(this.now, time);
  }

  /** Runs one thing after the other until the condition holds; throws when nothing can make it so. */
  advanceUntil(what: string, holds: () => boolean): void {
    while (!holds()) {
      if (this.due.length === 0) throw new Error(`nothing left to happen while waiting until ${what}`);
      if (this.now > END_OF_TIME_MS) throw new Error(`still waiting until ${what} after ${this.now} ms`);
      this.step();
    }
  }

  private step(): void {
    const next = this.due.shift()!;
    this.now = Math.max(this.now, next.at);
    next.run();
  }
}
