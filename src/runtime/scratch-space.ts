/**
 * Files that spilling queries write to (memory 5): one directory per process run, in it one per host, in it one file
 * per query; gone when the query is gone (S12), when the fleet stops, and, after a crash, when the next run starts.
 *
 * The run's directory says in its name whose it is: machine, process id, and when that process was started. A later
 * run removes what a process of this machine has left that no longer lives, and touches nothing else: a process with
 * a reused id has another start, and another machine's (or container's) processes can't be seen from here.
 */
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readvSync,
  rmSync,
  unlinkSync,
  writevSync,
} from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { ConfigError, whyNotWritten } from "../config/config-error.ts";

/**
 * `--scratch_dirs` has a default too; ours is never shared with an Impala, nor with another user of this machine, who
 * could neither write into what we made nor remove what we left. Windows has a temporary folder for each user.
 */
export const DEFAULT_SCRATCH_BASE = join(tmpdir(), `waterhole-scratch${ownSuffix(process.getuid?.())}`);

function ownSuffix(user: number | undefined): string {
  return user === undefined ? "" : `-${user}`;
}

const RUN = /^run-(?<machine>.+)-(?<pid>\d+)-(?<started>\d+)-(?<number>\d+)$/;
let runsOfThisProcess = 0;

/** This run's own directory, made new, after left-overs of dead processes have been removed. */
export class ScratchSpace {
  readonly directory: string;
  /** Directories that dead processes had left and that are gone now. */
  readonly removed: readonly string[];

  /** Throws ConfigError where nothing can be written. */
  constructor(base: string = DEFAULT_SCRATCH_BASE) {
    const name = `run-${machineName()}-${process.pid}-${startOf(process.pid) ?? 0}-${++runsOfThisProcess}`;
    this.directory = join(base, name);
    try {
      mkdirSync(base, { recursive: true });
      this.removed = removeLeftOvers(base);
      mkdirSync(this.directory);
    } catch (cause) {
      throw new ConfigError(
        { file: base, line: null },
        `the scratch folder cannot be used: ${whyNotWritten(cause)}`,
        "Name another folder with  --scratch FOLDER",
        { cause },
      );
    }
  }

  /** Bytes in files are nobody's any more. */
  remove(): void {
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** Of a host that died: its queries' files. */
  removeHost(host: string): void {
    rmSync(hostDirectory(this.directory, host), { recursive: true, force: true });
  }

  /** Names of files still there; empty after every run. */
  files(): string[] {
    return readdirSync(this.directory, { recursive: true, encoding: "utf8" }).filter((f) => f.endsWith(SUFFIX));
  }
}

/** Removes directories of processes of this machine that don't live any more; gives their names. */
export function removeLeftOvers(base: string): string[] {
  const machine = machineName();
  const removed: string[] = [];
  for (const name of readdirSync(base)) {
    const owner = RUN.exec(name)?.groups;
    if (owner === undefined || owner.machine !== machine) continue;
    if (isAlive(Number(owner.pid), Number(owner.started))) continue;
    rmSync(join(base, name), { recursive: true, force: true });
    removed.push(name);
  }
  return removed;
}

const SUFFIX = ".scratch";
/** Where a host's files are. */
export const hostDirectory = (run: string, host: string): string => join(run, host.replaceAll(":", "_"));

/** One query's file on one host. Made at the first write. Used by one thread. */
export class ScratchFile {
  readonly path: string;
  readonly #directory: string;
  #fd = -1;
  #end = 0;

  constructor(run: string, host: string, query: string) {
    this.#directory = hostDirectory(run, host);
    this.path = join(this.#directory, `${query.replace(":", "-")}${SUFFIX}`);
  }

  /** Bytes in the file. */
  get size(): number {
    return this.#end;
  }

  /** Appends; gives the place of the first byte. Throws what the system says (disk full, no rights). */
  write(views: readonly Uint8Array[]): number {
    if (this.#fd < 0) {
      mkdirSync(this.#directory, { recursive: true });
      this.#fd = openSync(this.path, "wx+");
    }
    const at = this.#end;
    let left = views as Uint8Array[];
    while (left.length > 0) {
      const written = writevSync(this.#fd, left, this.#end);
      this.#end += written;
      left = without(left, written);
    }
    return at;
  }

  /** Fills the views from `at` on; gives the bytes that it got, fewer when the file is too short (S11). */
  read(views: readonly Uint8Array[], at: number): number {
    let left = views as Uint8Array[];
    let from = at;
    while (left.length > 0) {
      const read = readvSync(this.#fd, left, from);
      if (read === 0) break;
      from += read;
      left = without(left, read);
    }
    return from - at;
  }

  /** Closed, but left where it is. */
  close(): void {
    if (this.#fd >= 0) closeSync(this.#fd);
    this.#fd = -1;
  }

  /** S12: closed and gone. */
  remove(): void {
    if (this.#fd < 0) return;
    this.close();
    unlinkSync(this.path);
  }
}

/** What is left of the views after the first `count` bytes. */
function without(views: Uint8Array[], count: number): Uint8Array[] {
  let skip = count;
  let i = 0;
  while (i < views.length && skip >= views[i]!.length) skip -= views[i++]!.length;
  const rest = views.slice(i);
  if (skip > 0) rest[0] = rest[0]!.subarray(skip);
  return rest;
}

const machineName = (): string => hostname().replace(/[^A-Za-z0-9.]/g, "_");

function isAlive(pid: number, started: number): boolean {
  const now = startOf(pid);
  if (now !== null) return now === started;
  if (started !== 0) return false;
  // No /proc here: all we can ask is whether some process has this id. EPERM: it has, and it isn't ours.
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/** Clock ticks between the machine's start and the process's; null when there is no such process, or no /proc. */
function startOf(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The command's name stands in brackets and may hold anything; what follows is the third field.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return Number(fields[19]);
  } catch {
    return null;
  }
}
