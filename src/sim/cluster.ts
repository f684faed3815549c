/**
 * Which processes are there, and which of them the statestore believes in (admission 6.1).
 *
 *     UP --dies, is cut off--> SILENT --failureAfter--> FAILED --returns, rejoins--> UP
 *      '--quiesces--> QUIESCING: still there, takes nothing new
 *
 * Versions grow with everything that subscribers will hear of.
 */
import type { BackendDescriptor } from "../core/cluster/backend.ts";
import type { Micros } from "./event-queue.ts";

interface Process {
  readonly desc: BackendDescriptor;
  isUp: boolean;
  isQuiescing: boolean;
  /** In the statestore's membership. */
  isKnown: boolean;
  /** Start of the process; what ran under its name before is gone. */
  bornAt: Micros;
}

export class Cluster {
  readonly #processes: readonly Process[];
  #version = 1;
  #changedAt: Micros = -1;
  #known: readonly BackendDescriptor[];

  constructor(backends: readonly BackendDescriptor[]) {
    this.#processes = backends.map((desc) => ({ desc, isUp: true, isQuiescing: false, isKnown: true, bornAt: -1 }));
    this.#known = backends;
  }

  get version(): number {
    return this.#version;
  }

  /** When the version began. */
  get changedAt(): Micros {
    return this.#changedAt;
  }

  /** As the statestore would tell it now. */
  get known(): readonly BackendDescriptor[] {
    return this.#known;
  }

  isUp(host: number): boolean {
    return this.#processes[host]!.isUp;
  }

  isKnown(host: number): boolean {
    return this.#processes[host]!.isKnown;
  }

  dies(host: number): void {
    this.#processes[host]!.isUp = false;
  }

  bornAt(host: number): Micros {
    return this.#processes[host]!.bornAt;
  }

  /** A new process under the old name. */
  returns(host: number, now: Micros): void {
    const process = this.#processes[host]!;
    process.isUp = true;
    process.isQuiescing = false;
    process.isKnown = true;
    process.bornAt = now;
    this.#changed(now);
  }

  /** The same process reaches the statestore again. */
  rejoins(host: number, now: Micros): void {
    this.#processes[host]!.isKnown = true;
    this.#changed(now);
  }

  quiesces(host: number, now: Micros): void {
    this.#processes[host]!.isQuiescing = true;
    this.#changed(now);
  }

  failed(host: number, now: Micros): void {
    this.#processes[host]!.isKnown = false;
    this.#changed(now);
  }

  #changed(now: Micros): void {
    this.#version++;
    this.#changedAt = now;
    this.#known = this.#processes
      .filter((p) => p.isKnown)
      .map((p) => (p.isQuiescing ? { ...p.desc, isQuiescing: true } : p.desc));
  }
}
