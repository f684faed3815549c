/**
 * How many queries of this controller run in each executor group (admission 10.4), gone with the group.
 */
import type { Membership } from "../cluster/membership.ts";
import type { HostBook } from "./host-book.ts";
import type { GroupGauge, Plan } from "./plan.ts";

export class GroupGauges {
  readonly #byName = new Map<string, GroupGauge>();

  get byName(): ReadonlyMap<string, GroupGauge> {
    return this.#byName;
  }

  /** A new group's gauge starts at its busiest host: queries of an earlier group of that name may linger. */
  update({ groups }: Membership, book: HostBook): void {
    const present = new Set(groups.map((g) => g.name));
    for (const [name, gauge] of this.#byName) {
      if (present.has(name)) continue;
      gauge.isLive = false;
      this.#byName.delete(name);
    }
    for (const { name, executors } of groups) {
      if (this.#byName.has(name)) continue;
      let busiest = 0;
      for (const e of executors) busiest = Math.max(busiest, book.numAdmittedBySelf(book.host(e.address)));
      this.#byName.set(name, { value: busiest, isLive: true });
    }
  }

  /** A query of this plan ended: in its own gauge, or in that of a later group of the same name. */
  lower({ gauge, schedule }: Plan): void {
    if (gauge === null) return;
    const current = gauge.isLive ? gauge : this.#byName.get(schedule.group);
    if (current !== undefined) current.value--;
  }
}
