/**
 * The state of the cluster as nobody in it sees it: the sum over all controllers, now (insight 2.3, 2.4).
 *
 * A controller's view lags by the topic; comparing the checks of both tells a wait for room from a wait for
 * news. What hosts really hold in reservations comes from the driver, which has them.
 */
import type { AdmissionController } from "./controller.ts";
import type { HostsView, PoolView } from "./views.ts";

export interface Reservations {
  /** Bytes reserved by a pool's queries over all hosts, and by everybody on one host, right now. */
  ofPool(pool: string): number;
  onHost(host: string): number;
}

export class ExactState implements HostsView {
  readonly #controllers: readonly AdmissionController[];
  readonly #reservations: Reservations;

  constructor(controllers: readonly AdmissionController[], reservations: Reservations) {
    this.#controllers = controllers;
    this.#reservations = reservations;
  }

  memReservedOn(host: string): number {
    return Math.max(
      this.#reservations.onHost(host),
      this.#sum((c) => onHost(c, host, (h) => c.hosts.admittedBySelf(h))),
    );
  }

  slotsInUseOn(host: string): number {
    return this.#sum((c) => onHost(c, host, (h) => c.hosts.slotsBySelf(h)));
  }

  /** For `AdmissionController.checksFor`. */
  slotsFrom(): number {
    return 0;
  }

  memoryFrom(): number {
    return 0;
  }

  viewOf(pool: string): { readonly pool: PoolView; readonly hosts: HostsView } {
    return { pool: this.#poolView(pool), hosts: this };
  }

  #poolView(name: string): PoolView {
    const aggQueued = this.#sum((c) => c.pool(name)?.stats.localQueued ?? 0);
    const admitted = this.#sum((c) => c.pool(name)?.stats.localMemAdmitted ?? 0);
    return {
      name,
      localQueued: aggQueued,
      aggQueued,
      aggRunning: this.#sum((c) => c.pool(name)?.stats.localRunning ?? 0),
      effectiveMemReserved: Math.max(this.#reservations.ofPool(name), admitted),
    };
  }

  #sum(figure: (c: AdmissionController) => number): number {
    let sum = 0;
    for (const c of this.#controllers) sum += figure(c);
    return sum;
  }
}

const onHost = (c: AdmissionController, host: string, figure: (h: number) => number): number =>
  c.hosts.knows(host) ? figure(c.hosts.host(host)) : 0;
