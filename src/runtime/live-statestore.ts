/**
 * The statestore of a live run: who exchanges when, and what travels how long (admission 7.1 to 7.6).
 *
 * Every backend is a subscriber of its own. Its exchanges start a period apart, and those of all are spread evenly over
 * one, on the same grid of emulated time that the simulation has; the update is taken then, applied a receive lag
 * later, and what the subscriber has to say arrives a publish lag after that. A process without a controller only
 * publishes what its host's ledger says.
 */
import type { StatestoreSpec } from "../config/scenario.ts";
import { type BackendUsage, NO_USAGE } from "../core/admission/pool-stats.ts";
import type { RunEvent } from "../core/events.ts";
import { BackendReporter } from "../core/statestore/backend-reporter.ts";
import type { TopicEntry, TopicUpdate } from "../core/statestore/topic.ts";
import { TopicStore } from "../core/statestore/topic-store.ts";
import type { Bytes, Instant } from "../core/units.ts";
import type { PoolUsage } from "./admission-desk.ts";
import type { Fleet } from "./fleet.ts";
import type { Appointment, Timers } from "./timers.ts";
import type { TopicReader } from "./topic-reader.ts";

const EXCHANGES_PER_LOOK = 10;

type Answered = (entries: readonly TopicEntry[], at: Instant) => void;

const ignored: Answered = () => undefined;

export interface StatestoreSurroundings {
  readonly timers: Timers;
  readonly fleet: Pick<Fleet, "poolUsages" | "poolReserved">;
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
  readonly coordinator: TopicReader | null;
  readonly reporter: BackendReporter | null;
  /** Its rounds are so long after whole periods. */
  readonly phase: number;
  next: Appointment | null;
  /** When its present exchange was to begin; timers are late by their grain and by what else goes on. */
  due: Instant;
  sequence: number;
  exchanges: number;
  /** As last looked up, by pool number. */
  usages: BackendUsage[];
  isCutOff: boolean;
  isAlive: boolean;
  /** Grows when it registers anew: what is left of an exchange from before leads to no other. */
  life: number;
}

export interface SubscriberSpec {
  readonly address: string;
  readonly host: number;
  readonly coordinator: TopicReader | null;
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
    this.#subscribers = subscribers.map((s, i) => ({
      ...s,
      phase: Math.floor((i * this.#period * 1000) / subscribers.length) / 1000,
      reporter: s.coordinator === null ? new BackendReporter(s.address) : null,
      next: null,
      due: 0 as Instant,
      sequence: 0,
      exchanges: 0,
      usages: [],
      isCutOff: false,
      isAlive: true,
      life: 0,
    }));
  }

  /** From the start of one exchange to that of the next, when nothing is late. */
  get #period(): number {
    return this.#spec.every + this.#spec.publishLag + this.#spec.receiveLag;
  }

  /**
   * The cluster has been up for a while when the run begins: everybody is known, every view is fresh. Rounds are
   * counted from emulated zero, however long after it this is called.
   */
  start(now: Instant): void {
    this.#isRunning = true;
    for (const s of this.#subscribers) {
      this.#store.subscribe(s.address, s.coordinator === null);
      if (s.coordinator !== null) this.#ask(s, s.coordinator, this.#store.updateFor(s.address), now, ignored);
      this.#plan(s, s.phase as Instant);
    }
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  /** Nobody is called any more; what was on its way is lost. */
  stop(): void {
    this.#isRunning = false;
    for (const s of this.#subscribers) {
      s.coordinator?.disconnected();
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
      s.life++;
      if (!s.isCutOff) s.coordinator?.reconnected(now);
      this.#store.subscribe(s.address, s.coordinator === null);
      this.#planFrom(s, now);
    }
  }

  cutOff(address: string, isCutOff: boolean): void {
    for (const s of this.#named(address)) {
      s.isCutOff = isCutOff;
      if (isCutOff) s.coordinator?.disconnected();
      else if (this.#isRunning) s.coordinator?.rejoined();
    }
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
      s.isCutOff = false;
      s.life++;
      if (!this.#isRunning) {
        s.coordinator?.disconnected();
        continue;
      }
      this.#store.subscribe(s.address, s.coordinator === null);
      this.#planFrom(s, now);
    }
  }

  #named(address: string): Subscriber[] {
    return this.#subscribers.filter((s) => s.address === address);
  }

  #plan(s: Subscriber, at: Instant): void {
    s.due = at;
    s.next = this.#around.timers.at(at, (now) => this.#exchange(s, now));
  }

  /** Its first round then or after it: rounds stand where they stood, whoever was away. */
  #planFrom(s: Subscriber, now: Instant): void {
    const period = this.#period;
    const rounds = Math.ceil(Math.round((now - s.phase) * 1000) / Math.round(period * 1000));
    this.#plan(s, (s.phase + rounds * period) as Instant);
  }

  #exchange(s: Subscriber, now: Instant): void {
    const { coordinator, life } = s;
    if (s.isCutOff) this.#planNext(s, now);
    else if (coordinator === null) this.#later(this.#spec.receiveLag, now, (at) => this.#reportOf(s, life, at));
    else {
      const update = this.#store.updateFor(s.address);
      const answered = (entries: readonly TopicEntry[], at: Instant): void => this.#answer(s, life, entries, at);
      this.#later(this.#spec.receiveLag, now, (at) => this.#ask(s, coordinator, update, at, answered));
    }
  }

  /** A process without a controller says what its host has reserved when the update has come to it. */
  #reportOf(s: Subscriber, life: number, now: Instant): void {
    if (!this.#isRunning || !s.isAlive || s.life !== life) return;
    const entries = this.#report(s);
    if (entries.length > 0) this.#around.emit({ kind: "topicPublished", at: now, host: s.address });
    this.#answer(s, life, entries, now);
  }

  /** The exchange's second half; the next one starts when it has ended. */
  #answer(s: Subscriber, life: number, entries: readonly TopicEntry[], now: Instant): void {
    this.#later(this.#spec.publishLag, now, (at) => {
      if (!this.#isRunning || !s.isAlive || s.life !== life) return;
      this.#store.publish(s.address, entries);
      this.#planNext(s, at);
    });
  }

  /**
   * Whole periods after this one was due. What an exchange takes in emulated time are its lags; that this machine was
   * late is nothing that the emulated cluster did, so it neither stretches its rounds nor moves them against each other.
   */
  #planNext(s: Subscriber, ended: Instant): void {
    const periods = Math.floor((ended - s.due) / this.#period) + 1;
    this.#plan(s, (s.due + Math.max(1, periods) * this.#period) as Instant);
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

  /** The answer comes when the coordinator's thread has got to it; from one that dies meanwhile, never. */
  #ask(s: Subscriber, coordinator: TopicReader, update: TopicUpdate, now: Instant, then: Answered): void {
    const usages: PoolUsage[] = [];
    this.#usages(s, (pool, usage) => usages.push({ pool, usage }));
    const { isAlive } = coordinator;
    coordinator.exchange(usages, update, now, (entries, at) => {
      if (isAlive) this.#around.emit({ kind: "topicApplied", at, coordinator: s.address, sequence: ++s.sequence });
      then(entries, at);
    });
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
