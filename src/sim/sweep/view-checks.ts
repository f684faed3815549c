/**
 * view: once nothing has moved for a while, every controller believes what is so (admission 7.3, 7.4).
 *
 * Running queries, and memory and slots of hosts, are compared at the end of an instant, between several controllers.
 * What hosts reserved is compared at a decision: exchanges that could bring nothing to anybody are left out of a run,
 * and what they would have brought is made good when somebody looks.
 */
import { fail } from "../../core/assert.ts";
import { toInstant } from "../event-queue.ts";
import type { Seat } from "../seat.ts";
import type { SimQuery } from "../sim-query.ts";
import type { Simulation } from "../simulation.ts";

/** Rounds of the statestore after which everybody has heard of everything: two are enough (7.5). */
const ENOUGH_ROUNDS = 4;

export class ViewChecks {
  /** When anything that others would hear of last happened. */
  #movedAt = 0;
  /** Reserved at the end of the last instant, by pool and host; and since when it is so. */
  #reserved: number[] = [];
  #reservedSince = 0;

  moved(at: number): void {
    this.#movedAt = at;
  }

  instantOver(sim: Simulation): void {
    const now = toInstant(sim.now);
    const reserved = reservedIn(sim);
    if (!areEqual(reserved, this.#reserved)) this.#reservedSince = now;
    this.#reserved = reserved;
    if (sim.seats.length === 1 || now - this.#movedAt < longEnough(sim)) return;
    for (const seat of sim.seats) checkAdmitted(seat, sim);
  }

  /** The query's controller has just looked at what it knows. Only a pool with a maximum asks for memory (T-15). */
  decided(at: number, q: SimQuery, sim: Simulation): void {
    const { name, stats, config } = q.admission.pool;
    if (config === null || config.maxMemResources < 0) return;
    // An exchange can have collected what was so in the middle of an instant only.
    const quietSince = Math.max(this.#reservedSince, this.#movedAt);
    if (at - quietSince < longEnough(sim) || !areEqual(reservedIn(sim), this.#reserved)) return;
    const seat = sim.seats[q.seat]!;
    const hosts = sim.backends.length;
    const inPool = sum(this.#reserved.slice(q.pool * hosts, (q.pool + 1) * hosts));
    if (stats.aggMemReserved !== inPool)
      fail(`view: ${seat.address} believes ${stats.aggMemReserved} bytes reserved in ${name}, there are ${inPool}`);
    const book = seat.controller.hosts;
    sim.backends.forEach(({ address }, host) => {
      const onHost = sum(this.#reserved.filter((_, i) => i % hosts === host));
      const known = book.knows(address) ? book.memReserved[book.host(address)]! : 0;
      if (known !== onHost) fail(`view: ${seat.address} believes ${known} bytes reserved on ${address}, not ${onHost}`);
    });
  }
}

function checkAdmitted({ controller, address }: Seat, sim: Simulation): void {
  for (const { name, stats } of controller.pools) {
    const running = sumOver(sim, (s) => s.controller.pool(name)?.stats.localRunning ?? 0);
    if (stats.aggRunning !== running)
      fail(`view: ${address} believes ${stats.aggRunning} running in ${name}, there are ${running}`);
  }
  const { hosts } = controller;
  for (let h = 0; h < hosts.size; h++) {
    const host = hosts.address(h);
    const mem = hosts.admittedBySelf(h) + hosts.remoteMem[h]!;
    const slots = hosts.slotsBySelf(h) + hosts.remoteSlots[h]!;
    const realMem = sumOver(sim, (s) => onHost(s, host, (n) => s.controller.hosts.admittedBySelf(n)));
    const realSlots = sumOver(sim, (s) => onHost(s, host, (n) => s.controller.hosts.slotsBySelf(n)));
    if (mem !== realMem) fail(`view: ${address} believes ${mem} bytes admitted on ${host}, there are ${realMem}`);
    if (slots !== realSlots) fail(`view: ${address} believes ${slots} slots in use on ${host}, there are ${realSlots}`);
  }
}

const onHost = ({ controller }: Seat, host: string, figure: (h: number) => number): number =>
  controller.hosts.knows(host) ? figure(controller.hosts.host(host)) : 0;

const longEnough = (sim: Simulation): number => ENOUGH_ROUNDS * toInstant(sim.exchanges.period);

function reservedIn({ poolNames, backends, topic }: Simulation): number[] {
  const reserved: number[] = [];
  for (let pool = 0; pool < poolNames.size; pool++)
    for (let host = 0; host < backends.length; host++) reserved.push(topic.heldOn(host, pool));
  return reserved;
}

function areEqual(a: readonly number[], b: readonly number[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

const sum = (figures: readonly number[]): number => figures.reduce((n, figure) => n + figure, 0);

const sumOver = (sim: Simulation, figure: (seat: Seat) => number): number =>
  sim.seats.reduce((n, seat) => n + figure(seat), 0);
