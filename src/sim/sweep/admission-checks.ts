/**
 * Every admission against the limits that the rules put in its way, at the moment when it is made (admission 4).
 *
 *   own view    what its controller believes is over none of them with it: ADM-2 to ADM-5
 *   limits      one controller: nor is what really runs (7.5)
 *   overshoot   many: what really runs is over a limit by no more than what the others have let in since this
 *               controller can have heard of them (7.5)
 *   clamp       MEM-7: no share above the smallest host that it may be placed on
 *
 * Sums are made here anew, from the queries; of the controllers' own only single figures are taken. Pool memory has
 * no line of its own in `overshoot`: what others admitted is not looked at (T-26), so each keeps to the maximum for
 * itself, which `own view` says.
 */
import { isReleased } from "../../core/admission/charge.ts";
import type { AdmissionQuery } from "../../core/admission/query.ts";
import { fail } from "../../core/assert.ts";
import { ALL_COORDINATORS_GROUP, DEFAULT_GROUP, EMPTY_GROUP } from "../../core/cluster/backend.ts";
import { DEFAULT_POOL } from "../../core/pool-config.ts";
import { toInstant } from "../event-queue.ts";
import type { Seat } from "../seat.ts";
import type { SimQuery } from "../sim-query.ts";
import type { Simulation } from "../simulation.ts";

interface Admission {
  readonly at: number;
  readonly seat: number;
  readonly query: AdmissionQuery;
}

/** What queries hold now, over all controllers. */
interface Holdings {
  readonly running: number;
  readonly poolMem: number;
  /** On the hosts of the query that is checked, in its order. */
  readonly mem: readonly number[];
  readonly slots: readonly number[];
}

export class AdmissionChecks {
  /** Everybody hears of everybody within two rounds. */
  readonly #allHear: boolean;
  /** Of the last two rounds, where several controllers decide. */
  #recent: Admission[] = [];

  constructor(allHear: boolean) {
    this.#allHear = allHear;
  }

  admitted(at: number, q: SimQuery, sim: Simulation): void {
    const { admission } = q;
    const seat = sim.seats[q.seat]!;
    const isAlone = sim.seats.length === 1;
    if (!isAlone) this.#remember({ at, seat: q.seat, query: admission }, sim);
    if (sim.flags.clamp_query_mem_limit_backend_mem_limit) checkClamp(admission, sim);
    // T-3: a trivial query passes by every limit.
    if (admission.isTrivial) return;
    checkOwnView(q, seat, sim);
    if (isAlone || this.#allHear) this.#checkHoldings(q, sim);
  }

  #remember(admission: Admission, sim: Simulation): void {
    const from = admission.at - oldestNews(sim);
    if (this.#recent.length > 0 && this.#recent[0]!.at < from) this.#recent = this.#recent.filter((r) => r.at >= from);
    this.#recent.push(admission);
  }

  /** limits, overshoot. */
  #checkHoldings(q: SimQuery, sim: Simulation): void {
    const { admission, placement } = q;
    const { name, config } = admission.pool;
    const held = holdingsOf(sim, name, placement.addresses);
    const isAlone = sim.seats.length === 1;
    const check = (figure: number, limit: number, unheard: (a: AdmissionQuery) => number, what: string): void => {
      if (figure <= limit) return;
      const allowed = isAlone ? limit : limit + this.#sumOfOthers(q.seat, unheard);
      if (figure > allowed) fail(`${isAlone ? "limits" : "overshoot"}: ${figure} of ${allowed} ${what}`);
    };
    const { maxRequests, maxMemResources } = config!;
    if (maxRequests >= 0) check(held.running, maxRequests, (a) => (a.pool.name === name ? 1 : 0), `running in ${name}`);
    if (maxMemResources >= 0 && isAlone) check(held.poolMem, maxMemResources, () => 0, `bytes admitted in ${name}`);
    placement.hosts.forEach((host, i) => {
      const { address, admitMemLimit, admissionSlots } = sim.backends[host]!;
      if (maxMemResources >= 0)
        check(held.mem[i]!, admitMemLimit, (a) => heldOn(a, address, memOf), `bytes admitted on ${address}`);
      if (!areSlotsExempt(admission))
        check(held.slots[i]!, admissionSlots, (a) => heldOn(a, address, slotsOf), `slots in use on ${address}`);
    });
  }

  #sumOfOthers(seat: number, figure: (a: AdmissionQuery) => number): number {
    let sum = 0;
    for (const r of this.#recent) if (r.seat !== seat) sum += figure(r.query);
    return sum;
  }
}

/**
 * How long ago another controller can have let in what this one has not heard of: until the other's next exchange, on
 * to the statestore, until this one's next, and on to it.
 */
function oldestNews({ exchanges, scenario }: Simulation): number {
  const { publishLag, receiveLag } = scenario.cluster.statestore;
  return 2 * toInstant(exchanges.period) + publishLag + receiveLag;
}

/** own view, the admitted query included; limits are the cluster's own, whatever the controller takes them for. */
function checkOwnView({ admission: a, placement }: SimQuery, { controller, address }: Seat, sim: Simulation): void {
  const { name, stats, config } = a.pool;
  const { maxRequests, maxMemResources } = config!;
  const say = (what: string): never => fail(`own view: ${address} let in ${a.id} with ${what}`);
  if (maxRequests >= 0 && stats.aggRunning > maxRequests)
    say(`${stats.aggRunning} of ${maxRequests} running in ${name}`);
  if (maxMemResources >= 0) {
    const known = Math.max(stats.aggMemReserved + a.memory!.cluster, stats.localMemAdmitted);
    if (known > maxMemResources) say(`${known} of ${maxMemResources} bytes taken in ${name}`);
  }
  const { hosts } = controller;
  placement.hosts.forEach((host, i) => {
    const desc = sim.backends[host]!;
    const h = hosts.host(desc.address);
    const slots = hosts.slotsBySelf(h) + hosts.remoteSlots[h]!;
    if (!areSlotsExempt(a) && slots > desc.admissionSlots)
      say(`${slots} of ${desc.admissionSlots} slots in use on ${desc.address}`);
    const mem = Math.max(hosts.memReserved[h]! + a.memOn(i), hosts.admittedBySelf(h) + hosts.remoteMem[h]!);
    if (maxMemResources >= 0 && mem > desc.admitMemLimit)
      say(`${mem} of ${desc.admitMemLimit} bytes taken on ${desc.address}`);
  });
}

/** clamp: on which hosts of the cluster it could have been placed is known for sure only where there is one group. */
function checkClamp(a: AdmissionQuery, { backends, scenario }: Simulation): void {
  const { memLimit } = a.memory!;
  const isOnCoordinators = a.plan!.schedule.group === ALL_COORDINATORS_GROUP;
  const isOneGroup = scenario.cluster.executors.length === 1;
  let smallest = Number.POSITIVE_INFINITY;
  let largest = 0;
  for (const b of backends) {
    if (b.admitMemLimit > largest) largest = b.admitMemLimit;
    if ((isOnCoordinators ? b.isCoordinator : b.isExecutor) && b.admitMemLimit < smallest) smallest = b.admitMemLimit;
  }
  if (memLimit > (isOneGroup ? smallest : largest)) fail(`clamp: ${a.id} may use ${memLimit} bytes on a host`);
}

function holdingsOf(sim: Simulation, pool: string, hosts: readonly string[]): Holdings {
  const mem = hosts.map(() => 0);
  const slots = hosts.map(() => 0);
  let running = 0;
  let poolMem = 0;
  for (const seat of sim.seats) {
    if (!seat.isAlive) continue;
    for (const a of seat.controller.runningQueries()) {
      const isOfPool = a.pool.name === pool;
      if (isOfPool) running++;
      if (a.heldBackends === 0) continue;
      a.plan!.schedule.backends.forEach((b, i) => {
        if (isReleased(a, i)) return;
        if (isOfPool) poolMem += a.memOn(i);
        const at = hosts.indexOf(b.desc.address);
        if (at < 0) return;
        mem[at] = mem[at]! + a.memOn(i);
        slots[at] = slots[at]! + b.slots;
      });
    }
  }
  return { running, poolMem, mem, slots };
}

const memOf = (a: AdmissionQuery, position: number): number => a.memOn(position);
const slotsOf = (a: AdmissionQuery, position: number): number => a.plan!.schedule.backends[position]!.slots;

function heldOn(a: AdmissionQuery, address: string, figure: (a: AdmissionQuery, position: number) => number): number {
  const position = a.plan!.schedule.hosts.indexOf(address);
  return position < 0 ? 0 : figure(a, position);
}

/** ADM-3's exemption (T-39). */
function areSlotsExempt({ plan, pool }: AdmissionQuery): boolean {
  const { group } = plan!.schedule;
  return group === DEFAULT_GROUP || (group === EMPTY_GROUP && pool.name === DEFAULT_POOL);
}
