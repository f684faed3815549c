/**
 * A live run's pool files as its daemons see them: whoever edits one while the run goes on is noticed with Impala's
 * timing (pool-configuration 4), and what was reloaded or why the old stays in force is told.
 *
 * Files have real modification times, the run has its own clock. This file sets the one against the other: the
 * service's clock stands at the real moment of the opening when emulated time begins, and goes on in emulated
 * milliseconds; what was written after the beginning is as long ago, emulated, as the clock's scale says. So ten
 * seconds between two looks and five of rest are the run's, not the wall's.
 *
 * One service for all coordinators, which in the product look each for itself, up to ten seconds apart.
 */
import { ROOT_POOL } from "../core/pool-config.ts";
import type { Instant } from "../core/units.ts";
import type { ImpalaFlags } from "./impala-flags.ts";
import type { PoolSource, Resolution } from "./pool-directory.ts";
import type { PoolLookup } from "./pool-record.ts";
import { type FileAccess, type LogLine, PoolService, REAL_FILES } from "./pool-service.ts";
import type { Scenario } from "./scenario.ts";
import { poolSettings } from "./scenario-pools.ts";
import { NO_SURROUNDINGS } from "./site-file.ts";

export class FollowedPools implements PoolSource {
  /** Hears the product's lines about the files, from the beginning of emulated time on. */
  onLine: (line: LogLine) => void = () => undefined;
  readonly #service: PoolService;
  readonly #openedAt: number;
  readonly #scale: number;
  /** Real moment of emulated time 0; null before. */
  #begunAt: number | null = null;
  /** How often a look has found that records or placement may have changed. */
  changes = 0;

  constructor(scenario: Scenario, flags: ImpalaFlags, files: FileAccess = REAL_FILES, openedAt: number = Date.now()) {
    this.#openedAt = openedAt;
    this.#scale = scenario.scale.time;
    const { pools } = scenario;
    const paths =
      pools.kind === "files"
        ? { fairScheduler: pools.fairScheduler, llamaSite: pools.llamaSite }
        : { fairScheduler: null, llamaSite: null };
    const log = (line: LogLine): void => {
      if (this.#begunAt !== null) this.onLine(line);
    };
    const onOurClock = { read: files.read, modified: (path: string) => this.#onOurClock(files.modified(path)) };
    const settings = { around: NO_SURROUNDINGS, ...poolSettings(scenario, flags) };
    this.#service = new PoolService({ paths, files: onOurClock, log, settings }, openedAt);
    this.#readSite();
  }

  /** Emulated time begins now. */
  begin(realNow: number = Date.now()): void {
    this.#begunAt = realNow;
  }

  /** Infinity: there is nothing to look at. */
  get nextCheck(): Instant {
    return (this.#service.nextCheck - this.#openedAt) as Instant;
  }

  /** Looks at the files that are due; true: records or placement may have changed. */
  check(now: Instant): boolean {
    const changed = this.#service.check(this.#openedAt + now);
    if (changed) {
      this.changes++;
      this.#readSite();
    }
    return changed;
  }

  lookUp(pool: string): PoolLookup {
    return this.#service.lookUp(pool);
  }

  resolve(requestedPool: string, user: string): Resolution {
    return this.#service.resolve(requestedPool, user);
  }

  groupsOf(user: string): readonly string[] {
    return this.#service.groupsOf(user);
  }

  /** The lookup that reads a changed site file; that it fails where the file is broken costs no query (4.2). */
  #readSite(): void {
    this.#service.lookUp(ROOT_POOL);
  }

  /** 0 is no file. What changed between the opening and the beginning counts as written right after it. */
  #onOurClock(modified: number): number {
    if (modified <= this.#openedAt) return modified;
    const since = this.#begunAt === null ? 0 : (modified - this.#begunAt) * this.#scale;
    return this.#openedAt + Math.max(1, Math.trunc(since));
  }
}
