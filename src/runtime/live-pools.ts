/**
 * The pools of a live run as they are now, and the numbers that its ledgers know them by.
 *
 * A configuration is the same object until it changes: controllers compare it by identity.
 */
import type { Fault } from "../config/scenario.ts";
import { fail } from "../core/assert.ts";
import { DEFAULT_POOL_CONFIG, type PoolConfig } from "../core/pool-config.ts";
import type { Instant } from "../core/units.ts";
import type { Timers } from "./timers.ts";

/** The pools as they are now; a fault can put others in their place. */
export interface LivePools {
  current(): PoolRecords;
  change(fault: ConfigChange): void;
  /** Files that are followed while the run goes on; left out: none are. */
  readonly followed?: FollowedFiles;
}

/** All that a run asks of a `PoolSource`. */
export interface PoolRecords {
  lookUp(pool: string): { readonly kind: "found"; readonly config: PoolConfig } | { readonly kind: "failed" };
}

export type ConfigChange = Extract<Fault, { kind: "configChanges" }>;

/** Emulated time begins, and from then on the files are looked at when they are due. */
export interface FollowedFiles {
  begin(): void;
  readonly nextCheck: Instant;
  /** True: pools or placement may be others than before. */
  check(now: Instant): boolean;
}

/** Hosts and pools can be more than anybody will have; a ledger costs memory only where it is used. */
export const MOST_POOLS = 1024;

export class PoolsInForce {
  readonly #pools: LivePools;
  readonly #numbers = new Map<string, number>();
  readonly #configs = new Map<string, PoolConfig>();
  /** By number. */
  readonly names: string[] = [];

  constructor(pools: LivePools) {
    this.#pools = pools;
  }

  configOf(pool: string): PoolConfig {
    let config = this.#configs.get(pool);
    if (config === undefined) {
      const found = this.#pools.current().lookUp(pool);
      // A query of a pool without a record ends before admission (1.5); `root` may be such a pool.
      config = found.kind === "found" ? found.config : DEFAULT_POOL_CONFIG;
      this.#configs.set(pool, config);
    }
    return config;
  }

  change(fault: ConfigChange): void {
    this.#pools.change(fault);
    this.#configs.clear();
  }

  /** Looks at the files from now on, whenever they are due. */
  follow(timers: Pick<Timers, "at">, changed: () => void): void {
    const { followed } = this.#pools;
    if (followed === undefined) return;
    followed.begin();
    const look = (now: Instant): void => {
      if (followed.check(now)) {
        this.#configs.clear();
        changed();
      }
      timers.at(followed.nextCheck, look);
    };
    if (followed.nextCheck < Number.POSITIVE_INFINITY) timers.at(followed.nextCheck, look);
  }

  numberOf(name: string): number {
    let number = this.#numbers.get(name);
    if (number === undefined) {
      number = this.names.length;
      if (number >= MOST_POOLS) fail(`more than ${MOST_POOLS} pools in one run`);
      this.#numbers.set(name, number);
      this.names.push(name);
    }
    return number;
  }
}
