/**
 * Writing a query's memory and slots onto its hosts, and taking them off again (admission 5.8, 9.2).
 *
 * A query on a whole executor group is one charge on the group's ledger plus what the coordinator holds
 * differently. When some of its backends are released before the others, each gets a correction of its own;
 * once the last one goes, the group's charge is taken off and the corrections with it. If the group has
 * changed in between, its ledger was written down to the hosts, and the release goes host by host.
 */
import { invariant } from "../assert.ts";
import type { HostBook } from "./host-book.ts";
import type { AdmissionQuery } from "./query.ts";

/** hot: bench/decision */
export function chargeBackends(q: AdmissionQuery, book: HostBook): void {
  const plan = q.plan!;
  const memory = q.memory!;
  const { ledger, schedule } = plan;
  q.heldBackends = plan.hosts.length;
  if (ledger === null) {
    addToEach(q, book, 1);
    return;
  }
  invariant(!ledger.isRetired, "plans are made anew when a group changes");
  ledger.mem += memory.perHost;
  ledger.num += 1;
  ledger.slots += schedule.executorSlots;
  addCoordinatorShare(q, book, 1);
}

/** hot: bench/decision. Everything that is still held. */
export function releaseRest(q: AdmissionQuery, book: HostBook): void {
  if (q.heldBackends === 0) return;
  const plan = q.plan!;
  const { ledger, schedule } = plan;
  if (ledger === null || ledger.isRetired) addToEach(q, book, -1);
  else {
    undoCorrections(q, book);
    ledger.mem -= q.memory!.perHost;
    ledger.num -= 1;
    ledger.slots -= schedule.executorSlots;
    invariant(ledger.num >= 0 && ledger.mem >= 0 && ledger.slots >= 0, "a group gives back what it was charged");
    if (!isReleased(q, plan.coordinatorIndex)) addCoordinatorShare(q, book, -1);
  }
  q.heldBackends = 0;
}

/** The bytes still held by the query's backends. */
export function heldBytes(q: AdmissionQuery): number {
  if (q.releasedBackends === null) return q.heldBackends === 0 ? 0 : q.memory!.cluster;
  let sum = 0;
  q.releasedBackends.forEach((released, i) => {
    if (released === 0) sum += q.memOn(i);
  });
  return sum;
}

/** One backend of several; the caller has seen that it is still held. */
export function releaseOne(q: AdmissionQuery, i: number, book: HostBook): void {
  if (q.heldBackends === 1) {
    releaseRest(q, book);
    markReleased(q, i);
    return;
  }
  const { plan } = q;
  book.add(plan!.hosts[i]!, -q.memOn(i), -1, -plan!.schedule.backends[i]!.slots);
  markReleased(q, i);
  q.heldBackends--;
}

export const isReleased = (q: AdmissionQuery, i: number): boolean =>
  q.releasedBackends !== null && q.releasedBackends[i] === 1;

function markReleased(q: AdmissionQuery, i: number): void {
  q.releasedBackends ??= new Uint8Array(q.plan!.hosts.length);
  q.releasedBackends[i] = 1;
}

/** Host by host, those that are still held. */
function addToEach(q: AdmissionQuery, book: HostBook, sign: 1 | -1): void {
  const { hosts, schedule } = q.plan!;
  for (let i = 0; i < hosts.length; i++)
    if (!isReleased(q, i)) book.add(hosts[i]!, sign * q.memOn(i), sign, sign * schedule.backends[i]!.slots);
}

/** What the coordinator holds beyond the group's charge: all of it when it isn't a member. */
function addCoordinatorShare(q: AdmissionQuery, book: HostBook, sign: 1 | -1): void {
  const plan = q.plan!;
  const memory = q.memory!;
  const { executorSlots, coordinatorSlots } = plan.schedule;
  if (plan.coordinatorLeaf < 0) {
    book.add(plan.coordinatorHost, sign * memory.onCoordinator, sign, sign * coordinatorSlots);
    return;
  }
  const mem = memory.onCoordinator - memory.perHost;
  const slots = coordinatorSlots - executorSlots;
  if (mem !== 0 || slots !== 0) book.add(plan.coordinatorHost, sign * mem, 0, sign * slots);
}

/**
 * Released members of the group carry minus the group's charge; with the charge gone they carry nothing. A
 * released coordinator inside the group lost its own share too, so it also gets back exactly the charge.
 */
function undoCorrections(q: AdmissionQuery, book: HostBook): void {
  const { releasedBackends, plan, memory } = q;
  if (releasedBackends === null) return;
  const { hosts, coordinatorIndex, coordinatorLeaf, schedule } = plan!;
  for (let i = 0; i < hosts.length; i++) {
    if (releasedBackends[i] === 0 || (i === coordinatorIndex && coordinatorLeaf < 0)) continue;
    book.add(hosts[i]!, memory!.perHost, 1, schedule.executorSlots);
  }
}
