/**
 * The main thread's end of a coordinator that has a thread of its own, and the supervision of that thread.
 *
 *   spare --open--> in use --close (its death)--> terminated        a new spare is started at once
 *     '---------------'----finish (end of the run)--> terminated    nothing is started any more
 *
 * A process that comes back is not late by what starting a thread takes: its thread waits since the death of the one
 * before it. What a dead one told before main knew of its death counts; what arrives later does not.
 */
import { Worker } from "node:worker_threads";
import type { AdmissionRequest, RequestShape } from "../core/admission/request.ts";
import { InvariantError } from "../core/assert.ts";
import type { Membership } from "../core/cluster/membership.ts";
import type { PoolConfig } from "../core/pool-config.ts";
import type { TopicUpdate } from "../core/statestore/topic.ts";
import type { Instant, Millis } from "../core/units.ts";
import type { AdmissionDesk, Answer, PoolUsage } from "./admission-desk.ts";
import { entryFile } from "./entry-file.ts";
import type { CoordinatorSettings, FromCoordinator, Question } from "./protocol.ts";
import { withResolvers } from "./with-resolvers.ts";

export interface ThreadSurroundings {
  now(): Instant;
  /** Runs what a thread's answers bring about; what it throws ends the run. */
  guard(act: () => void): void;
  /** A thread failed by itself. */
  broke(error: Error): void;
}

/** The threads of one coordinator, one after the other. */
export class CoordinatorThreads {
  readonly #settings: CoordinatorSettings;
  readonly #around: ThreadSurroundings;
  #thread: CoordinatorLine | null = null;
  readonly #ended: Promise<void>[] = [];
  #isStopping = false;

  constructor(settings: CoordinatorSettings, around: ThreadSurroundings) {
    this.#settings = settings;
    this.#around = around;
  }

  /** Resolves when the first thread is loaded. */
  async start(): Promise<void> {
    await this.#line().ready;
  }

  open(hear: (answer: Answer) => void): AdmissionDesk {
    return new ThreadDesk(() => this.#line(), {
      now: () => this.#around.now(),
      guard: (act) => this.#around.guard(act),
      hear,
      closed: () => this.#replace(),
    });
  }

  /** `inOrder`: everything that was asked is answered first. Resolves when no thread is left. */
  async stop(inOrder: boolean): Promise<void> {
    this.#isStopping = true;
    const line = this.#thread;
    if (line !== null) {
      if (inOrder) await line.finish();
      this.#ended.push(line.end());
    }
    await Promise.all(this.#ended);
  }

  #line(): CoordinatorLine {
    this.#thread ??= new CoordinatorLine(this.#settings, (error) => this.#around.broke(error));
    return this.#thread;
  }

  #replace(): void {
    if (this.#thread === null) return;
    this.#ended.push(this.#thread.end());
    this.#thread = null;
    if (!this.#isStopping) this.#line();
  }
}

/** One thread and the messages to it and from it. */
class CoordinatorLine {
  readonly #worker: Worker;
  readonly #exited: Promise<void>;
  readonly ready: Promise<void>;
  readonly #finished: Promise<void>;
  hear: (answers: readonly Answer[]) => void = () => undefined;
  #outbox: Question[] = [];
  #isEnding = false;

  constructor(settings: CoordinatorSettings, broke: (error: Error) => void) {
    this.#worker = new Worker(entryFile("coordinator"), { workerData: settings });
    const exited = withResolvers();
    this.#exited = exited.promise;
    this.#worker.once("exit", exited.resolve);
    const ready = withResolvers();
    const finished = withResolvers();
    this.ready = ready.promise;
    this.#finished = finished.promise;
    this.#worker.on("message", (message: FromCoordinator) => {
      if (message.kind === "ready") ready.resolve();
      else if (message.kind === "finished") finished.resolve();
      else if (!this.#isEnding) this.hear(message.answers);
    });
    this.#worker.on("error", (error: Error) => {
      broke(new InvariantError(`the thread of ${settings.hostId} failed: ${error.stack ?? error.message}`));
    });
    // Whoever waits for a thread that has ended by itself waits no longer.
    void this.#exited.then(() => {
      ready.resolve();
      finished.resolve();
      if (!this.#isEnding) broke(new InvariantError(`the thread of ${settings.hostId} ended by itself`));
    });
  }

  /** All questions of a turn go in one message. */
  ask(question: Question): void {
    if (this.#outbox.length === 0) queueMicrotask(() => this.#send());
    this.#outbox.push(question);
  }

  #send(): void {
    const batch = this.#outbox;
    this.#outbox = [];
    if (!this.#isEnding) this.#worker.postMessage(batch);
  }

  async finish(): Promise<void> {
    this.ask({ kind: "finish" });
    await this.#finished;
  }

  async end(): Promise<void> {
    this.#isEnding = true;
    await this.#worker.terminate();
    await this.#exited;
  }
}

interface DeskEnd {
  now(): Instant;
  guard(act: () => void): void;
  hear(answer: Answer): void;
  closed(): void;
}

class ThreadDesk implements AdmissionDesk {
  readonly outlivesProcess = false;
  readonly #lineWhenUsed: () => CoordinatorLine;
  readonly #end: DeskEnd;
  readonly #shapes = new Map<RequestShape, number>();
  readonly #configs = new Map<PoolConfig, number>();
  /** When it was heard that a query waits. */
  readonly #queuedAt = new Map<string, Instant>();
  #line: CoordinatorLine | null = null;
  #isOpen = true;

  constructor(lineWhenUsed: () => CoordinatorLine, end: DeskEnd) {
    this.#lineWhenUsed = lineWhenUsed;
    this.#end = end;
  }

  setMembership({ version, backends, blacklisted, removedCoordinators }: Membership): void {
    const input = { version, backends, blacklisted: new Set(blacklisted), removedCoordinators };
    this.#ask({ kind: "membership", input });
  }

  submit(request: AdmissionRequest, config: PoolConfig, rootConfig: PoolConfig): void {
    this.#ask({
      kind: "submit",
      request: requestWithoutShape(request),
      shape: this.#numberOf(request.shape, this.#shapes, (number, shape) => ({ kind: "shape", number, shape })),
      config: this.#configNumber(config),
      rootConfig: this.#configNumber(rootConfig),
    });
  }

  #configNumber(config: PoolConfig): number {
    return this.#numberOf(config, this.#configs, (number, sent) => ({ kind: "config", number, config: sent }));
  }

  /** The first time, the thing itself goes ahead of the question that names it. */
  #numberOf<T>(thing: T, numbers: Map<T, number>, question: (number: number, thing: T) => Question): number {
    let number = numbers.get(thing);
    if (number === undefined) {
      number = numbers.size;
      numbers.set(thing, number);
      this.#ask(question(number, thing));
    }
    return number;
  }

  cancel(query: string): void {
    this.#ask({ kind: "cancel", query });
  }

  releaseBackends(query: string, positions: readonly number[]): boolean {
    this.#ask({ kind: "releaseBackends", query, positions });
    return true;
  }

  release(query: string, rest: readonly number[], peak: number): boolean {
    this.#ask({ kind: "release", query, rest, peak });
    return true;
  }

  exchange(usages: readonly PoolUsage[], update: TopicUpdate): void {
    this.#ask({ kind: "exchange", usages, update });
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#end.closed();
  }

  #ask(question: Question): void {
    if (!this.#isOpen) return;
    if (this.#line === null) {
      this.#line = this.#lineWhenUsed();
      this.#line.hear = (answers) => this.#hear(answers);
    }
    this.#line.ask(question);
  }

  #hear(answers: readonly Answer[]): void {
    this.#end.guard(() => {
      for (const answer of answers) if (this.#isOpen) this.#end.hear(this.#asHeard(answer, this.#end.now()));
    });
  }

  /**
   * An answer counts from now on, when it is heard: events of all threads stand in one order, a query that was admitted
   * runs from then, and what it waited lies between two events of this stream. What its controller was told and when,
   * by that thread's clock, is in the calls.
   */
  #asHeard(answer: Answer, at: Instant): Answer {
    switch (answer.kind) {
      case "called":
      case "exchanged":
        return answer;
      case "queued":
        this.#queuedAt.set(answer.query, at);
        return { ...answer, at };
      case "stillQueued":
        return { ...answer, at };
      case "admission":
        return { ...answer, event: { ...answer.event, at, waited: this.#waited(answer.event.query, at) } };
      default:
        return { ...answer, at, waited: this.#waited(answer.query, at) };
    }
  }

  /** Of a query that leaves. */
  #waited(query: string, at: Instant): Millis {
    const since = this.#queuedAt.get(query) ?? at;
    this.#queuedAt.delete(query);
    return (at - since) as Millis;
  }
}

/** A submission has getters; a message has none. */
const requestWithoutShape = (r: AdmissionRequest): Omit<AdmissionRequest, "shape"> => ({
  queryId: r.queryId,
  coordinator: r.coordinator,
  pool: r.pool,
  user: r.user,
  userGroups: r.userGroups,
  blacklistedExecutors: r.blacklistedExecutors,
  placementOffset: r.placementOffset,
});
