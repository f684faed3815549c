/**
 * What lies between the coordinators and `admissiond` in virtual time (admission 7.7, 9.4, 9.5): queries are handed
 * over, answers are asked for, releases are messages that can get lost, heartbeats make up for them.
 *
 * Only runs with `admissiond` have one, so that a coordinator that decides for itself is asked nothing about it. When
 * somebody hears is `status-calls.ts`'s, what `admissiond` remembers the service's: both are the live driver's too.
 */
import type { ImpalaFlags } from "../config/impala-flags.ts";
import { serviceTimingOf } from "../config/service-timing.ts";
import type { AdmissionService } from "../core/admission/admission-service.ts";
import type { AdmissionQuery } from "../core/admission/query.ts";
import { heardAt, nextHeartbeat, type StatusCalls, timeoutNoticedAt } from "../core/admission/status-calls.ts";
import { fail } from "../core/assert.ts";
import type { PoolConfig } from "../core/pool-config.ts";
import { type Micros, NO_EVENT, toInstant, toMicros } from "./event-queue.ts";
import type { SimQuery } from "./sim-query.ts";
import type { Simulation } from "./simulation.ts";

interface Kinds {
  readonly hears: number;
  readonly heartbeat: number;
}

export class ServiceLine {
  readonly #sim: Simulation;
  readonly #service: AdmissionService;
  readonly #kinds: Kinds;
  readonly #calls: StatusCalls;
  readonly #heartbeat: Micros;

  constructor(sim: Simulation, service: AdmissionService, kinds: Kinds, flags: ImpalaFlags) {
    const { calls, heartbeat } = serviceTimingOf(flags);
    this.#sim = sim;
    this.#service = service;
    this.#kinds = kinds;
    this.#calls = { wait: toMicros(calls.wait), retry: toMicros(calls.retry) };
    this.#heartbeat = toMicros(heartbeat);
  }

  admit(q: SimQuery, config: PoolConfig, rootConfig: PoolConfig, now: Micros): AdmissionQuery {
    const admission = this.#service.admit(q.submission, config, rootConfig, toInstant(now));
    return admission ?? fail("every submission has an id of its own");
  }

  // Waiting

  timeoutNoticedAt(q: SimQuery): Micros {
    return timeoutNoticedAt(this.#calls, q.submittedAt, toMicros(q.admission.timeout));
  }

  /** The call that ends at the deadline or after it; a cell that is set ends its call before that. */
  timeOut(q: SimQuery, now: Micros): void {
    this.#service.poll(q.queryId, toInstant(now));
  }

  /** The client gives up while its query waits, is decided and its coordinator has not heard, or runs. */
  cancel(q: SimQuery, now: Micros): void {
    const sim = this.#sim;
    if (q.admission.state === "queued") {
      // The cell is set: no time-out can be noticed any more.
      if (q.timeout !== NO_EVENT) sim.events.remove(q.timeout);
      q.timeout = NO_EVENT;
      this.#service.cancel(q.queryId);
      // A pass may come before the poll.
      sim.exchanges.mayMoveLater(sim.seats[q.seat]!, now);
      this.hearLater(q, now);
    } else if (q.hears !== NO_EVENT) q.outcome = "cancelled";
    else sim.stopAndFinish(q, "cancelled", now);
  }

  /** Its coordinator hears at its next poll. */
  hearLater(q: SimQuery, now: Micros): void {
    const timeout = toMicros(q.admission.timeout);
    this.#plan(q, heardAt(this.#calls, q.submittedAt, timeout, now), this.#kinds.hears);
  }

  #plan(q: SimQuery, at: Micros, kind: number): void {
    const { events } = this.#sim;
    if (q.hears !== NO_EVENT) events.remove(q.hears);
    q.hears = events.add(at, kind, q.slot, 0);
  }

  /** A pass that met the cell first has made the service forget the query: then it tells of nothing any more. */
  hears(q: SimQuery, now: Micros): void {
    const sim = this.#sim;
    const seat = sim.seats[q.seat]!;
    const { admission } = q;
    q.hears = NO_EVENT;
    const wasQueued = admission.state === "queued";
    this.#service.poll(q.queryId, toInstant(now));
    sim.exchanges.mayMoveLater(seat, now);
    if (admission.state === "running") {
      // Whoever gave up in between is told that it may run all the same, and gives it back.
      if (q.outcome === "cancelled") sim.stopAndFinish(q, "cancelled", now);
      else sim.begin(q, now);
    } else if (admission.state === "rejected") sim.end(q, "rejected", now);
    else {
      if (wasQueued) {
        sim.leftQueue(q, seat);
        sim.teller.cancelled(q, true, now);
      }
      sim.end(q, "cancelled", now);
    }
  }

  // Release

  releaseBackends(q: SimQuery, positions: readonly number[], now: Micros): void {
    const { addresses } = q.placement;
    const hosts = positions.map((i) => addresses[i]!);
    if (this.#sim.faults.losesRelease(q, positions)) {
      q.lost = [...(q.lost ?? []), ...positions];
      this.#sim.teller.releaseLost(q, hosts, null, now);
      return;
    }
    const bytes = this.#service.releaseBackends(q.queryId, hosts);
    this.#sim.backendsReleased(q, hosts, bytes ?? fail("only what is held is given back"), now);
  }

  /** The query is over for its client; `admissiond` has to hear of it. */
  release(q: SimQuery, now: Micros): void {
    const sim = this.#sim;
    if (sim.faults.losesRelease(q, null)) {
      sim.teller.releaseLost(q, [], q.outcome, now);
      sim.tellClient(q, q.outcome, now);
      this.releaseAtHeartbeat(q, now);
      return;
    }
    const bytes = this.#service.release(q.queryId, q.peak) ?? fail("a query is released once");
    sim.restReleased(q, bytes, now);
  }

  /** The coordinator's next heartbeat does not name the query, and makes `admissiond` release it (9.5). */
  releaseAtHeartbeat(q: SimQuery, now: Micros): void {
    this.#plan(q, nextHeartbeat(this.#heartbeat, now), this.#kinds.heartbeat);
  }

  heartbeat(q: SimQuery, now: Micros): void {
    q.hears = NO_EVENT;
    const { coordinator } = q.submission;
    const live = new Set<string>();
    for (const other of this.#sim.queries)
      if (other.state !== "free" && !other.isClientGone && other.submission.coordinator === coordinator)
        live.add(other.queryId);
    const version = Math.round(now / this.#heartbeat);
    this.releasedByService(this.#service.heartbeat(coordinator, version, live), now);
  }

  /** Without having been told to: their coordinator named them no more, or is gone. */
  releasedByService(released: readonly AdmissionQuery[], now: Micros): void {
    const sim = this.#sim;
    for (const a of released) {
      const q = a.owner as SimQuery;
      sim.executors.stop(q, now);
      const hosts = sim.unreleased(q);
      sim.backendsReleased(q, hosts, amountOn(q, hosts), now);
      sim.released(q, now);
    }
  }
}

/** What the controller held of the query on these hosts (MEM-11). */
function amountOn(q: SimQuery, hosts: readonly string[]): number {
  const { perHost, onCoordinator } = q.admission.memory!;
  const { coordinator } = q.submission;
  return hosts.reduce((sum, host) => sum + (host === coordinator ? onCoordinator : perHost), 0);
}
