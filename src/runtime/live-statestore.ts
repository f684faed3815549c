/**
 * The statestore of a live run: who exchanges when, and what travels how long (admission 7.1 to 7.6).
 *
 * Every backend is a subscriber of its own. Its exchange starts `every` after its last one ended; the update is taken
 * then, applied a receive lag later, and what the subscriber has to say arrives a publish lag after that. A process
 * without a controller only publishes what its host's ledger says.
 */
import type { StatestoreSpec } from "../config/scenario.ts";
import { type BackendUsage, NO_USAGE } from "../core/admission/pool-stats.ts";
import type { RunEvent } from "../core/events.ts";
import { BackendReporter } from "../core/statestore/backend-reporter.ts";
import type { TopicEntry, TopicUpdate } from "../core/statestore/topic.ts";
import { TopicStore } from "../core/statestore/topic-store.ts";
import type { Bytes, Instant } from "../core/units.ts";
import type { Coordinator } from "./coordinator.ts";
import type { Fleet } from "./fleet.ts";
import type { Appointment, Timers } from "./timers.ts";

const EXCHANGES_PER_LOOK = 10;

export interface StatestoreSurroundings {
  readonly timers: Timers;
  readonly fleet: Fleet;
  now(): Instant;
  emit(event: RunEvent): void;
  /** Names of the pools that have numbers, by number. */
  readonly pools: readonly string[];
}

interface Subscriber {
  readonly address: string;
  /** Its host's ledger, -1: admissiond has none. */
  readonly host: number;
  /** Null: it only publishes. */
  readonly coordinator: Coordinator | null;
  readonly reporter: BackendReporter | null;
  next: Appointment | null;
  sequence: number;
  exchanges: number;
  /** As last looked up, by pool number. */
  usages: BackendUsage[];
  isCutOff: boolean;
  isAlive: boolean;
}

export interface SubscriberSpec {
  readonly address: string;
  readonly host: number;
  readonly coordinator: Coordinator | null;
}

export class LiveStatestore {
  readonly #spec: StatestoreSpec;
  readonly #around: StatestoreSurroundings;
  readonly #subscribers: readonly Subscriber[];
  readonly #store = new TopicStore();
  #isRunning = false;

  constructor(spec: StatestoreSpec, subscribers: readonly SubscriberSpec[], around: StatestoreSurroundings) {
    this.#spec = spec;
    this.#around = around;
    this.#subscribers = subscribers.map((s) => ({
      ...s,
      reporter: s.coordinator === null ? new BackendReporter(s.address) : null,
      next: null,
      sequence: 0,
      exchanges: 0,
      usages: [],
      isCutOff: false,
      isAlive: true,
    }));
  }

  /** The cluster has been up for a while when the run begins: everybody is known, every view is fresh. */
  start(now: Instant): void {
    this.#isRunning = true;
    const period = this.#spec.every + this.#spec.publishLag + this.#spec.receiveLag;
    this.#subscribers.forEach((s, i) => {
      this.#store.subscribe(s.address, s.coordinator === null);
      if (s.coordinator !== null) this.#apply(s, this.#store.updateFor(s.address), now);
      this.#plan(s, (now + (i * period) / this.#subscribers.length) as Instant);
    });
  }

  /** Nobody is called any more; what was on its way is lost. */
  stop(): void {
    this.#isRunning = false;
    for (const s of this.#subscribers) {
      this.#around.timers.cancel(s.next);
      s.next = null;
    }
  }

  /** An empty topic; everybody registers again (T-37). */
  restart(now: Instant): void {
    this.#store.restart();
    this.#isRunning = true;
    for (const s of this.#subscribers) {
      if (!s.isAlive) continue;
      this.#store.subscribe(s.address, s.coordinator === null);
      this.#plan(s, (now + this.#spec.every) as Instant);
    }
  }

  cutOff(address: string, isCutOff: boolean): void {
    for (const s of this.#named(address)) s.isCutOff = isCutOff;
  }

  /** Declared failed: its entries are gone for all. */
  failed(address: string): void {
    for (const s of this.#named(address)) {
      s.isAlive = false;
      this.#around.timers.cancel(s.next);
      s.next = null;
      if (this.#store.isSubscribed(address)) this.#store.fail(address);
    }
  }

  /** A new process registers: its view starts from nothing. */
  joined(address: string, now: Instant): void {
    for (const s of this.#named(address)) {
      this.#around.timers.cancel(s.next);
      s.isAlive = true;
      if (!this.#isRunning) continue;
      this.#store.subscribe(s.address, s.coordinator === null);
      this.#plan(s, now);
    }
  }

  #named(address: string): Subscriber[] {
    return this.#subscribers.filter((s) => s.address === address);
  }

  #plan(s: Subscriber, at: Instant): void {
    s.next = this.#around.timers.at(at, (now) => this.#exchange(s, now));
  }

  #exchange(s: Subscriber, now: Instant): void {
    if (s.isCutOff) this.#plan(s, (now + this.#spec.every) as Instant);
    else if (s.coordinator === null) this.#answer(s, this.#report(s), now);
    else {
      const update = this.#store.updateFor(s.address);
      this.#later(this.#spec.receiveLag, now, (at) => this.#answer(s, this.#apply(s, update, at), at));
    }
  }

  /** The exchange's second half; the next one starts when it has ended. */
  #answer(s: Subscriber, entries: readonly TopicEntry[], now: Instant): void {
    this.#later(this.#spec.publishLag, now, (at) => {
      if (!this.#isRunning || !s.isAlive) return;
      this.#store.publish(s.address, entries);
      this.#plan(s, (at + this.#spec.every) as Instant);
    });
  }

  #later(lag: number, now: Instant, act: (at: Instant) => void): void {
    if (lag === 0) act(now);
    else this.#around.timers.at((now + lag) as Instant, act);
  }

  /** What the host's ledger says; nothing this time when somebody is inside it just now. */
  #report(s: Subscriber): readonly TopicEntry[] {
    const reporter = s.reporter;
    if (reporter === null) return [];
    this.#usages(s, (pool, usage) => reporter.setBackendUsage(pool, usage));
    return reporter.collectUpdate();
  }

  #apply(s: Subscriber, update: TopicUpdate, now: Instant): readonly TopicEntry[] {
    const { coordinator } = s;
    if (coordinator === null || !coordinator.isAlive) return [];
    const { controller } = coordinator;
    coordinator.refreshMembership(now);
    this.#usages(s, (pool, usage) => controller.setBackendUsage(pool, usage));
    const entries = controller.collectUpdate();
    controller.applyUpdate(update, now);
    this.#around.emit({ kind: "topicApplied", at: now, coordinator: s.address, sequence: ++s.sequence });
    coordinator.duePass();
    return entries;
  }

  /** Which queries are the heaviest is looked up less often than how much is reserved: nothing is decided by it. */
  #usages(s: Subscriber, set: (pool: string, usage: BackendUsage) => void): void {
    const { fleet, pools } = this.#around;
    if (s.host < 0 || pools.length === 0) return;
    const whole = s.exchanges++ % EXCHANGES_PER_LOOK === 0 ? fleet.poolUsages(s.host, pools.length) : null;
    if (whole !== null) s.usages = whole;
    const reserved = whole === null ? fleet.poolReserved(s.host, pools.length) : null;
    for (let i = 0; i < pools.length; i++) {
      const known = s.usages[i] ?? NO_USAGE;
      const memReserved = (reserved?.[i] ?? known.memReserved) as Bytes;
      if (memReserved !== known.memReserved) s.usages[i] = { ...known, memReserved };
      set(pools[i]!, s.usages[i] ?? known);
    }
  }
}
