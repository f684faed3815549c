/**
 * Whether a plan's hosts have room, and which is the first that hasn't (ADM-3, ADM-5), without looking at every
 * host: a plan on a whole executor group asks the group's ledger (DESIGN 6).
 *
 * The plain checks of can-admit.ts say the same and are the measure; only equality with them matters.
 */
import type { HostBook } from "./host-book.ts";
import type { Plan } from "./plan.ts";
import type { HostsView } from "./views.ts";

/** A controller's view of a plan's hosts, for the plain checks. */
export class PlanRoom implements HostsView {
  readonly #plan: Plan;
  readonly #book: HostBook;

  constructor(plan: Plan, book: HostBook) {
    this.#plan = plan;
    this.#book = book;
  }

  memReservedOn(_host: string, position: number): number {
    return this.#book.effectiveReserved(this.#plan.hosts[position]!);
  }

  slotsInUseOn(_host: string, position: number): number {
    return this.#book.effectiveSlots(this.#plan.hosts[position]!);
  }

  slotsFrom(): number {
    return firstShortOfSlots(this.#plan, this.#book);
  }

  memoryFrom(): number {
    return firstShortOfMemory(this.#plan, this.#book);
  }
}

/** hot: bench/decision */
export function slotsFit(plan: Plan, book: HostBook): boolean {
  const { schedule, ledger, hosts } = plan;
  if (ledger === null) {
    for (let i = 0; i < hosts.length; i++) {
      const b = schedule.backends[i]!;
      if (book.effectiveSlots(hosts[i]!) + b.slots > b.desc.admissionSlots) return false;
    }
    return true;
  }
  if (!coordinatorHasSlots(plan, book)) return false;
  const needed = schedule.executorSlots + ledger.slots;
  if (ledger.slotRoom.least >= needed) return true;
  return plan.coordinatorLeaf >= 0 && ledger.slotRoom.leastExcept(plan.coordinatorLeaf) >= needed;
}

/** hot: bench/decision */
export function memoryFits(plan: Plan, book: HostBook): boolean {
  const { schedule, ledger, hosts, memory } = plan;
  if (ledger === null) {
    for (let i = 0; i < hosts.length; i++) {
      const b = schedule.backends[i]!;
      const needed = b.isCoordBackend ? memory.onCoordinator : memory.perHost;
      if (book.effectiveReserved(hosts[i]!) + needed > b.desc.admitMemLimit) return false;
    }
    return true;
  }
  if (!coordinatorHasMemory(plan, book)) return false;
  const leaf = plan.coordinatorLeaf;
  const needed = memory.perHost;
  const admitted = needed + ledger.mem;
  if (ledger.admittedRoom.least < admitted && (leaf < 0 || ledger.admittedRoom.leastExcept(leaf) < admitted))
    return false;
  return ledger.reservedRoom.least >= needed || (leaf >= 0 && ledger.reservedRoom.leastExcept(leaf) >= needed);
}

function coordinatorHasSlots({ schedule, coordinatorHost }: Plan, book: HostBook): boolean {
  const { slots, desc } = schedule.coordinatorBackend;
  return book.effectiveSlots(coordinatorHost) + slots <= desc.admissionSlots;
}

function coordinatorHasMemory({ schedule, coordinatorHost, memory }: Plan, book: HostBook): boolean {
  return (
    book.effectiveReserved(coordinatorHost) + memory.onCoordinator <= schedule.coordinatorBackend.desc.admitMemLimit
  );
}

/** Position in the schedule of the first host without the slots, its length when there is none. */
function firstShortOfSlots(plan: Plan, book: HostBook): number {
  const { ledger, schedule, coordinatorLeaf } = plan;
  if (ledger === null) return 0;
  const leaf = ledger.slotRoom.firstBelowExcept(schedule.executorSlots + ledger.slots, coordinatorLeaf);
  return firstOf(plan, leaf, coordinatorHasSlots(plan, book));
}

/** The same for memory. */
function firstShortOfMemory(plan: Plan, book: HostBook): number {
  const { ledger, memory, coordinatorLeaf } = plan;
  if (ledger === null) return 0;
  const admitted = ledger.admittedRoom.firstBelowExcept(memory.perHost + ledger.mem, coordinatorLeaf);
  const reserved = ledger.reservedRoom.firstBelowExcept(memory.perHost, coordinatorLeaf);
  const leaf = admitted < 0 || (reserved >= 0 && reserved < admitted) ? reserved : admitted;
  return firstOf(plan, leaf, coordinatorHasMemory(plan, book));
}

/** Members stand in the schedule as in the ledger, with a coordinator from outside in between. */
function firstOf(plan: Plan, leaf: number, coordinatorFits: boolean): number {
  const { hosts, coordinatorIndex, coordinatorLeaf } = plan;
  const isAfterOutsider = coordinatorLeaf < 0 && leaf >= coordinatorIndex;
  const member = leaf < 0 ? hosts.length : isAfterOutsider ? leaf + 1 : leaf;
  return coordinatorFits ? member : Math.min(member, coordinatorIndex);
}
