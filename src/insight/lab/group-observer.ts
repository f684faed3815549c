/**
 * Waits and losses of small and large queries apart, whatever pools they went through.
 */
import type { AdmissionPath, FinishState } from "../../core/events.ts";
import type { NameKind, QueryFacts } from "../../core/run-observer.ts";
import { SilentObserver } from "../silent-observer.ts";
import { quantileOfBuckets, WAIT_BUCKETS, waitBucket } from "../size/outcome.ts";

export interface GroupFigures {
  readonly submitted: number;
  readonly admitted: number;
  readonly lost: number;
  /** Of the admitted, milliseconds. */
  readonly meanWait: number;
  readonly longestWait: number;
  /** Over all submitted; null when more than 5 % are lost. */
  readonly p95: number | null;
}

class Group {
  submitted = 0;
  admitted = 0;
  lost = 0;
  sum = 0;
  longest = 0;
  readonly waits = new Uint32Array(WAIT_BUCKETS);

  wait(ms: number): void {
    this.admitted++;
    this.sum += ms;
    if (ms > this.longest) this.longest = ms;
    this.waits[waitBucket(ms)]!++;
  }

  figures(): GroupFigures {
    const p95 = quantileOfBuckets(this.waits, this.submitted, 0.95, this.longest);
    return {
      submitted: this.submitted,
      admitted: this.admitted,
      lost: this.lost,
      meanWait: this.admitted === 0 ? 0 : this.sum / this.admitted,
      longestWait: this.longest,
      p95: this.submitted === 0 ? 0 : Number.isFinite(p95) ? p95 : null,
    };
  }
}

export class GroupObserver extends SilentObserver {
  private readonly pools: readonly string[];
  private readonly isLarge: (queryId: string) => boolean;
  private readonly own: boolean[] = [];
  private readonly all = new Group();
  private readonly small = new Group();
  private readonly large = new Group();
  private memory = 0;
  private memoryAt = 0;
  private memoryTime = 0;
  private from = -1;

  constructor(pools: readonly string[], isLarge: (queryId: string) => boolean) {
    super();
    this.pools = pools;
    this.isLarge = isLarge;
  }

  finish(maxMem: number): { all: GroupFigures; small: GroupFigures; large: GroupFigures; memoryUsed: number | null } {
    const span = this.memoryAt - Math.max(0, this.from);
    return {
      all: this.all.figures(),
      small: this.small.figures(),
      large: this.large.figures(),
      memoryUsed: maxMem <= 0 || span <= 0 ? null : this.memoryTime / (maxMem * span),
    };
  }

  override named(kind: NameKind, index: number, name: string): void {
    if (kind === "pool") this.own[index] = this.pools.includes(name);
  }

  override submitted(at: number, q: QueryFacts): void {
    // Of the run, as its other reports count it.
    if (this.from < 0) this.from = at;
    if (this.own[q.pool] !== true) return;
    this.all.submitted++;
    this.groupOf(q).submitted++;
  }

  override admitted(at: number, q: QueryFacts, _path: AdmissionPath, _waited: number, cluster: number): void {
    if (this.own[q.pool] !== true) return;
    this.all.wait(at - q.intended);
    this.groupOf(q).wait(at - q.intended);
    this.changeMemory(at, cluster);
  }

  /** Of a pool's queries only who asked a coordinator that was gone; those without a pool are in none. */
  override unresolved(_at: number, q: QueryFacts): void {
    this.lose(q);
  }

  override rejected(_at: number, q: QueryFacts): void {
    this.lose(q);
  }

  override timedOut(_at: number, q: QueryFacts): void {
    this.lose(q);
  }

  override cancelled(_at: number, q: QueryFacts): void {
    this.lose(q);
  }

  override memoryReleased(at: number, q: QueryFacts, bytes: number): void {
    if (this.own[q.pool] === true) this.changeMemory(at, -bytes);
  }

  override released(_at: number, q: QueryFacts, state: FinishState): void {
    if (state === "failed") this.lose(q);
  }

  override ended(at: number): void {
    this.changeMemory(at, 0);
  }

  private lose(q: QueryFacts): void {
    if (this.own[q.pool] !== true) return;
    this.all.lost++;
    this.groupOf(q).lost++;
  }

  private groupOf(q: QueryFacts): Group {
    return this.isLarge(q.queryId) ? this.large : this.small;
  }

  private changeMemory(at: number, by: number): void {
    this.memoryTime += this.memory * (at - this.memoryAt);
    this.memoryAt = at;
    this.memory += by;
  }
}
