/**
 * One request pool at one controller: its figures, its queue, and the configuration of its last submission.
 */
import type { PoolConfig } from "../pool-config.ts";
import { Fifo } from "./fifo.ts";
import { PoolStats } from "./pool-stats.ts";

export class Pool {
  readonly name: string;
  readonly stats: PoolStats;
  readonly queue = new Fifo();
  /** poolConfigMap of admission 5.7: overwritten by each submission, null while there was none. */
  config: PoolConfig | null = null;
  /** Its figures go out with the next update (admission 7.3). */
  isMarked = false;

  constructor(name: string) {
    this.name = name;
    this.stats = new PoolStats(name);
  }
}
