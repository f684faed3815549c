/**
 * A recorded run through the core again (insight 7.1): every call of every controller, in its order and with
 * its moment, and the same answer to each, or the first that differs.
 *
 * Live and simulated records are the same here: neither driver takes part. What must be equal is everything a
 * call answered: decision, path, reason with its figures, group, hosts, amounts, and what was published.
 */
import { AdmissionController } from "../core/admission/controller.ts";
import type { ControllerCall, Verdict } from "../core/admission/controller-call.ts";
import { byName } from "../core/admission/controller-options.ts";
import { configOfPlain, entryOfPlain, plainEntry } from "../core/admission/plain-forms.ts";
import type { AdmissionQuery } from "../core/admission/query.ts";
import { verdictOf } from "../core/admission/recorded-controller.ts";
import type { RequestShape } from "../core/admission/request.ts";
import { type ControllerSnapshot, snapshotOf } from "../core/admission/snapshot.ts";
import { unreachable } from "../core/assert.ts";
import { membershipOf } from "../core/cluster/membership.ts";
import type { RunEvent } from "../core/events.ts";
import type { PoolConfig } from "../core/pool-config.ts";
import type { Instant } from "../core/units.ts";

export interface Difference {
  readonly at: Instant;
  readonly controller: string;
  /** Which of the records' controller calls, from 1. */
  readonly call: number;
  readonly op: ControllerCall["op"];
  /** What the records say was answered, and what is answered now. */
  readonly recorded: unknown;
  readonly replayed: unknown;
  /** The replayed controller after the call. */
  readonly state: ControllerSnapshot | null;
}

export interface ReplayCounts {
  calls: number;
  /** Submissions and what passes let out: answers with a decision in them. */
  decisions: number;
  controllers: number;
}

interface Replayed {
  readonly controller: AdmissionController;
  readonly shapes: Map<number, RequestShape>;
  readonly configs: Map<number, PoolConfig>;
  readonly queries: Map<string, AdmissionQuery>;
}

/** Recorded next to replayed; equal when their JSON is. */
interface Answers {
  readonly recorded: unknown;
  readonly replayed: unknown;
}

const NOTHING: Answers = { recorded: null, replayed: null };

export class Replay {
  readonly #controllers = new Map<string, Replayed>();
  readonly counts: ReplayCounts = { calls: 0, decisions: 0, controllers: 0 };

  /** Other kinds than controller calls pass by. Null: the same answer. */
  take(event: RunEvent): Difference | null {
    if (event.kind !== "controllerCall") return null;
    const { at, now, controller, call } = event;
    this.counts.calls++;
    if (call.op === "start") {
      this.#start(controller, call);
      return null;
    }
    const known = this.#controllers.get(controller);
    const answers = known === undefined ? notStarted() : this.#answer(known, call, now ?? at);
    if (JSON.stringify(answers.recorded) === JSON.stringify(answers.replayed)) return null;
    const state = known === undefined ? null : snapshotOf(known.controller, at);
    return { at, controller, call: this.counts.calls, op: call.op, ...answers, state };
  }

  #start(name: string, { options }: Extract<ControllerCall, { op: "start" }>): void {
    if (!this.#controllers.has(name)) this.counts.controllers++;
    this.#controllers.set(name, {
      controller: new AdmissionController({ ...options, poolOrder: byName }),
      shapes: new Map(),
      configs: new Map(),
      queries: new Map(),
    });
  }

  #answer(known: Replayed, call: Exclude<ControllerCall, { op: "start" }>, at: Instant): Answers {
    const { controller, shapes, configs } = known;
    switch (call.op) {
      case "shape":
        shapes.set(call.number, call.shape);
        return NOTHING;
      case "config":
        configs.set(call.number, configOfPlain(call.config));
        return NOTHING;
      case "membership":
        return this.#membership(known, call);
      case "submit":
      case "submitCancelled":
        return this.#submit(known, call, at);
      case "pass":
        return this.#pass(controller, call, at);
      case "usage":
        controller.setBackendUsage(call.pool, call.usage);
        return NOTHING;
      case "refresh":
        controller.refreshBackendUsage();
        return NOTHING;
      case "collect":
        return { recorded: call.entries, replayed: controller.collectUpdate().map(plainEntry) };
      case "apply":
        controller.applyUpdate({ isDelta: call.isDelta, entries: call.entries.map(entryOfPlain) }, at);
        return NOTHING;
      case "processMemory":
        controller.setProcessMemory(call.use, call.limit ?? Number.POSITIVE_INFINITY);
        return NOTHING;
      default:
        return this.#onQuery(known, call, at);
    }
  }

  #membership({ controller, queries }: Replayed, call: Extract<ControllerCall, { op: "membership" }>): Answers {
    const released = controller.setMembership(
      membershipOf({
        version: call.version,
        backends: call.backends,
        blacklisted: new Set(call.groupless),
        removedCoordinators: new Set(call.removedCoordinators),
      }),
    );
    for (const q of released) queries.delete(q.id);
    return { recorded: call.released, replayed: released.map((q) => q.id) };
  }

  #submit(known: Replayed, call: Extract<ControllerCall, { op: "submit" | "submitCancelled" }>, at: Instant): Answers {
    const { controller, shapes, configs, queries } = known;
    this.counts.decisions++;
    const request = { ...call.request, shape: shapes.get(call.shape)! };
    const [config, rootConfig] = [configs.get(call.config)!, configs.get(call.rootConfig)!];
    const q =
      call.op === "submit"
        ? controller.submit(request, config, rootConfig, at)
        : controller.submitCancelled(request, config, rootConfig, at);
    queries.set(q.id, q);
    return this.#verdict(known, q, call.verdict);
  }

  #pass(controller: AdmissionController, call: Extract<ControllerCall, { op: "pass" }>, at: Instant): Answers {
    const left: Verdict[] = [];
    const waiting: Verdict[] = [];
    const leaves = (q: AdmissionQuery): void => {
      left.push(verdictOf(q));
    };
    controller.dequeuePass(at, {
      admitted: leaves,
      rejected: leaves,
      cancelled: leaves,
      stillQueued: (q) => {
        waiting.push(verdictOf(q));
        q.failures = 0;
      },
    });
    this.counts.decisions += call.left.length;
    return {
      recorded: { left: call.left, waiting: call.waiting },
      replayed: { left, waiting },
    };
  }

  #onQuery(
    known: Replayed,
    call: Exclude<
      ControllerCall,
      {
        op:
          | "start"
          | "shape"
          | "config"
          | "membership"
          | "submit"
          | "submitCancelled"
          | "pass"
          | "usage"
          | "refresh"
          | "collect"
          | "apply"
          | "processMemory";
      }
    >,
    at: Instant,
  ): Answers {
    const { controller, queries } = known;
    const q = queries.get("verdict" in call ? call.verdict.query : call.query);
    if (q === undefined) return { recorded: "a known query", replayed: "an unknown query" };
    switch (call.op) {
      case "timeOut":
        controller.timeOut(q, at);
        return this.#verdict(known, q, call.verdict);
      case "cancel":
        controller.cancel(q, at);
        return this.#verdict(known, q, call.verdict);
      case "markCancelled":
        controller.markCancelled(q);
        return this.#verdict(known, q, call.verdict);
      case "settle":
        controller.settle(q, at);
        return this.#verdict(known, q, call.verdict);
      case "poll":
        controller.poll(q, at);
        return this.#verdict(known, q, call.verdict);
      case "spoil":
        controller.spoil(q, call.reason);
        return NOTHING;
      case "releaseBackends":
        return { recorded: call.bytes, replayed: controller.releaseBackends(q, call.positions) };
      case "releaseRest":
        return { recorded: call.bytes, replayed: controller.releaseRest(q) };
      case "releaseQuery": {
        const done = controller.releaseQuery(q, call.peak);
        if (done) queries.delete(q.id);
        return { recorded: call.done, replayed: done };
      }
      default:
        return unreachable(call);
    }
  }

  #verdict({ queries }: Replayed, q: AdmissionQuery, recorded: Verdict): Answers {
    const replayed = verdictOf(q);
    // With `admissiond` the waiter still settles a query that is decided; it is forgotten after that.
    if (q.state !== "running" && q.state !== "queued" && q.isSettled) queries.delete(q.id);
    return { recorded, replayed };
  }
}

const notStarted = (): Answers => ({ recorded: "a controller", replayed: "no controller of this name was started" });
