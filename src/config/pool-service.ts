/**
 * The pool files as a running daemon sees them: watched, reloaded with Impala's timing and with its behaviour on
 * broken files (pool-configuration 4, admission 5.7).
 *
 * The two files are treated differently, and both ways look odd. The allocation file is read when its change is
 * noticed, must have rested for 5 s, and a bad one leaves the old in force. The site file is only *marked* as
 * changed and read at the next lookup; if that fails, one lookup fails and from then on every key has its built-in
 * default, until the file changes again.
 *
 * Time and files are arguments, and both must be on one clock: `now` is compared with modification times.
 */
import { readFileSync, statSync } from "node:fs";
import { type AllocationFile, parseAllocationFile } from "./allocation-file.ts";
import { ConfigError } from "./config-error.ts";
import { PoolDirectory, type PoolFilePaths, type PoolSource, type Resolution } from "./pool-directory.ts";
import type { PoolLookup } from "./pool-record.ts";
import { DEFAULT_SETTINGS, type PoolSettings } from "./pool-settings.ts";
import { EMPTY_SITE, parseSiteFile, type SiteFile } from "./site-file.ts";

/** Both watchers look this often, milliseconds. */
export const CHECK_EVERY = 10_000;
/** The allocation file must not have changed for so long before it is read. */
export const REST_BEFORE_LOAD = 5_000;

export interface FileAccess {
  /** Modification time in milliseconds on the caller's clock; 0 when there is no such file. */
  modified(path: string): number;
  /** Throws when there is no such file. */
  read(path: string): Uint8Array;
}

/** Real files and the real clock. */
export const REAL_FILES: FileAccess = {
  modified: (path) => Math.trunc(statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0),
  read: (path) => readFileSync(path),
};

export interface LogLine {
  readonly level: "info" | "warn" | "error";
  readonly text: string;
}

export interface PoolServiceOptions {
  readonly paths: PoolFilePaths;
  readonly files: FileAccess;
  readonly log: (line: LogLine) => void;
  readonly settings: Omit<PoolSettings, "allocation" | "site">;
}

/**
 *   site:  read ──noticed a newer mtime──> stale ──lookup, parses──> read
 *                                            └────lookup, broken───> that lookup fails, then read as empty
 */
type SiteState =
  | { readonly kind: "none" }
  | { readonly kind: "stale" }
  | { readonly kind: "read"; readonly site: SiteFile };

export class PoolService implements PoolSource {
  readonly #options: PoolServiceOptions;
  #directory: PoolDirectory;
  #allocation: AllocationFile | null = null;
  #allocationLoadedAt = 0;
  #allocationFailed = false;
  #nextAllocationCheck = Number.POSITIVE_INFINITY;
  #site: SiteState = { kind: "none" };
  #siteModified = 0;
  #siteMissing = false;
  #nextSiteCheck = Number.POSITIVE_INFINITY;

  /** Loads what a daemon loads at start; throws ConfigError where the daemon would abort. */
  constructor(options: PoolServiceOptions, now: number) {
    this.#options = options;
    this.#directory = new PoolDirectory({ ...DEFAULT_SETTINGS, ...options.settings });
    const { fairScheduler, llamaSite } = options.paths;
    if (fairScheduler === null) return;
    this.#requireFile(fairScheduler, "Unable to find allocation configuration file");
    if (llamaSite !== null) {
      this.#requireFile(llamaSite, "Unable to find configuration file");
      // Even a file that will turn out to be broken makes `onlyCoordinators` count.
      this.#site = { kind: "stale" };
      this.#nextSiteCheck = now;
    }
    this.#loadAllocation(fairScheduler, now);
    this.#nextAllocationCheck = now + CHECK_EVERY;
    this.check(now);
  }

  /** When `check` has something to do next. */
  get nextCheck(): number {
    return Math.min(this.#nextAllocationCheck, this.#nextSiteCheck);
  }

  /** Looks at the files that are due; returns whether records or placement may have changed. */
  check(now: number): boolean {
    const allocation = now >= this.#nextAllocationCheck && this.#checkAllocation(now);
    const site = now >= this.#nextSiteCheck && this.#checkSite(now);
    return allocation || site;
  }

  lookUp(pool: string): PoolLookup {
    if (this.#site.kind !== "stale") return this.#directory.lookUp(pool);
    const failure = this.#readSite();
    return failure ?? this.#directory.lookUp(pool);
  }

  resolve(requestedPool: string, user: string): Resolution {
    return this.#directory.resolve(requestedPool, user);
  }

  groupsOf(user: string): readonly string[] {
    return this.#directory.groupsOf(user);
  }

  // --- allocation file ----------------------------------------------------------------------------------

  #checkAllocation(now: number): boolean {
    const path = this.#options.paths.fairScheduler ?? "";
    this.#nextAllocationCheck = now + CHECK_EVERY;
    const modified = this.#options.files.modified(path);
    // With the time of the last load and not with the last modification time: an older file put in its place is
    // never noticed.
    if (modified > this.#allocationLoadedAt && now > modified + REST_BEFORE_LOAD)
      return this.#reloadAllocation(path, now);
    if (modified === 0) {
      if (!this.#allocationFailed)
        this.#warn("Failed to reload fair scheduler config file because last modified returned 0. File exists: false");
      this.#allocationFailed = true;
    }
    return false;
  }

  #reloadAllocation(path: string, now: number): boolean {
    try {
      this.#loadAllocation(path, now);
      return true;
    } catch (cause) {
      if (!this.#allocationFailed)
        this.#options.log({
          level: "error",
          text: `Failed to reload fair scheduler config file - will use existing allocations. ${cause instanceof Error ? cause.message : cause}`,
        });
      this.#allocationFailed = true;
      return false;
    }
  }

  #loadAllocation(path: string, now: number): void {
    this.#info(`Loading allocation file ${path}`);
    this.#allocation = parseAllocationFile(this.#options.files.read(path), path);
    this.#allocationLoadedAt = now;
    this.#allocationFailed = false;
    for (const warning of this.#allocation.warnings) this.#warn(warning);
    this.#info(`Completed loading allocation file ${path}`);
    this.#rebuild();
  }

  // --- site file ----------------------------------------------------------------------------------------

  #checkSite(now: number): boolean {
    const path = this.#options.paths.llamaSite ?? "";
    while (this.#nextSiteCheck <= now) this.#nextSiteCheck += CHECK_EVERY;
    const modified = this.#options.files.modified(path);
    if (modified > this.#siteModified) {
      this.#info(`Loading configuration: ${path}`);
      this.#siteModified = modified;
      this.#siteMissing = false;
      this.#site = { kind: "stale" };
      return true;
    }
    if (modified === 0 && !this.#siteMissing) {
      this.#siteMissing = true;
      this.#warn(`File does not exist: ${path}`);
    }
    return false;
  }

  /** The lookup after a change. On failure the empty site is in force from the next lookup on. */
  #readSite(): PoolLookup | null {
    const path = this.#options.paths.llamaSite ?? "";
    try {
      this.#site = { kind: "read", site: parseSiteFile(this.#options.files.read(path), path) };
      this.#rebuild();
      return null;
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      this.#options.log({
        level: "error",
        text: `Failed to read ${path}; every key has its built-in default until the file changes again. ${why}`,
      });
      this.#site = { kind: "read", site: EMPTY_SITE };
      this.#rebuild();
      return { kind: "failed", error: siteFailure(cause, path), at: { file: path, line: lineOf(cause) } };
    }
  }

  #rebuild(): void {
    const site = this.#site.kind === "read" ? this.#site.site : this.#site.kind === "stale" ? EMPTY_SITE : null;
    this.#directory = new PoolDirectory({
      ...DEFAULT_SETTINGS,
      ...this.#options.settings,
      allocation: this.#allocation,
      site,
    });
  }

  // --- small steps --------------------------------------------------------------------------------------

  #requireFile(path: string, problem: string): void {
    if (this.#options.files.modified(path) > 0) return;
    throw new ConfigError({ file: path, line: null }, `${problem}: ${path}`, "Check the path.");
  }

  #info(text: string): void {
    this.#options.log({ level: "info", text });
  }

  #warn(text: string): void {
    this.#options.log({ level: "warn", text });
  }
}

const lineOf = (cause: unknown): number | null => (cause instanceof ConfigError ? cause.line : null);

/** What the client reads whose query was the first after the change: the parser's exception, wrapped. */
function siteFailure(cause: unknown, path: string): string {
  if (!(cause instanceof ConfigError))
    return `RuntimeException: java.io.FileNotFoundException: ${path} (No such file or directory)`;
  const { problem, line, column } = cause;
  const kind = /^Unexpected EOF/.test(problem)
    ? "WstxEOFException"
    : /^Unexpected character/.test(problem)
      ? "WstxUnexpectedCharException"
      : "WstxParsingException";
  return `RuntimeException: com.ctc.wstx.exc.${kind}: ${problem}\n at [row,col,system-id]: [${line ?? 1},${column ?? 1},"file:${cause.file}"]`;
}
