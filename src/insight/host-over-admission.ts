/**
 * How far all controllers together have admitted more memory to a host than it can give (T-12, ADM-5).
 *
 * Each controller keeps to a host's limit as far as it knows what the others admitted there; what they did not know
 * of each other shows here, in the sum over all queries that hold something on the host. So does what came in through
 * a pool without a memory limit, whose queries no controller checks against hosts. Like all peaks, it is taken when an
 * instant is over (DESIGN 3).
 */
import type { EventOf, RunEvent } from "../core/events.ts";
import { ExcessMeter } from "./excess-meter.ts";

export interface HostOverAdmission {
  readonly host: string;
  /** `admit_mem_limit` */
  readonly limitBytes: number;
  /** Most that was admitted above it, > 0, and how long anything was. */
  readonly mostBytes: number;
  readonly timeMs: number;
}

interface HostMeter {
  readonly limit: number;
  admitted: number;
  /** Since when. */
  since: number;
  readonly excess: ExcessMeter;
}

export class HostOverAdmissionFold {
  readonly #hosts: ReadonlyMap<string, HostMeter>;
  /** What a query still holds, by host; of queries that run. */
  readonly #held = new Map<string, Map<string, number>>();
  /** Of queries that were not yet admitted, or run. */
  readonly #coordinators = new Map<string, string>();

  constructor(hosts: readonly { readonly address: string; readonly admitMemLimit: number }[]) {
    this.#hosts = new Map(
      hosts.map((h) => [h.address, { limit: h.admitMemLimit, admitted: 0, since: 0, excess: new ExcessMeter() }]),
    );
  }

  add(event: RunEvent): void {
    switch (event.kind) {
      case "submitted":
        this.#coordinators.set(event.query, event.coordinator);
        break;
      case "admitted":
        this.#admitted(event);
        break;
      case "backendsReleased":
        for (const host of event.hosts) this.#released(event.query, host, event.at);
        break;
      case "released":
        for (const host of [...(this.#held.get(event.query)?.keys() ?? [])])
          this.#released(event.query, host, event.at);
        this.#held.delete(event.query);
        this.#coordinators.delete(event.query);
        break;
      case "unresolved":
      case "rejected":
      case "timedOut":
      case "cancelled":
        this.#coordinators.delete(event.query);
        break;
      default:
        break;
    }
  }

  /** Hosts that had too much, the one with most first; equal ones by name. */
  finish(at: number): HostOverAdmission[] {
    for (const meter of this.#hosts.values()) advance(meter, at);
    return [...this.#hosts]
      .filter(([, { excess }]) => excess.most > 0)
      .map(([host, { limit, excess }]) => ({ host, limitBytes: limit, mostBytes: excess.most, timeMs: excess.timeMs }))
      .sort((a, b) => b.mostBytes - a.mostBytes || (a.host < b.host ? -1 : 1));
  }

  #admitted({ at, query, hosts, perHost, onCoordinator }: EventOf<"admitted">): void {
    const coordinator = this.#coordinators.get(query);
    const held = new Map<string, number>();
    for (const host of hosts) {
      const bytes = host === coordinator ? onCoordinator : perHost;
      held.set(host, bytes);
      this.#change(host, bytes, at);
    }
    this.#held.set(query, held);
  }

  #released(query: string, host: string, at: number): void {
    const held = this.#held.get(query);
    const bytes = held?.get(host);
    if (bytes === undefined) return;
    held!.delete(host);
    this.#change(host, -bytes, at);
  }

  #change(host: string, bytes: number, at: number): void {
    const meter = this.#hosts.get(host);
    if (meter === undefined) return;
    advance(meter, at);
    meter.admitted += bytes;
  }
}

/** What was admitted has been so until now. */
function advance(meter: HostMeter, at: number): void {
  const ms = at - meter.since;
  if (ms <= 0) return;
  meter.excess.add(meter.admitted, meter.limit, ms);
  meter.since = at;
}
