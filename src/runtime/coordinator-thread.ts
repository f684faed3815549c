/**
 * A coordinator's own thread: its admission control, asked and answering in messages.
 *
 * The controller begins with the first question, not with the thread, which is there before emulated time begins. What
 * goes wrong here is a bug of ours and ends the thread; the main thread hears of it and ends the run.
 */
import type { MessagePort } from "node:worker_threads";
import { controllerOptions } from "../core/admission/controller-options.ts";
import type { RequestShape } from "../core/admission/request.ts";
import { unreachable } from "../core/assert.ts";
import { membershipOf } from "../core/cluster/membership.ts";
import type { PoolConfig } from "../core/pool-config.ts";
import type { Answer } from "./admission-desk.ts";
import { EmulatedClock } from "./emulated-clock.ts";
import { LocalDesk } from "./local-desk.ts";
import type { CoordinatorSettings, FromCoordinator, Question } from "./protocol.ts";
import { Timers } from "./timers.ts";

export class CoordinatorThread {
  readonly #settings: CoordinatorSettings;
  readonly #port: MessagePort;
  readonly #clock: EmulatedClock;
  readonly #shapes: RequestShape[] = [];
  readonly #configs: PoolConfig[] = [];
  #desk: LocalDesk | null = null;
  /** Of this turn. */
  #answers: Answer[] = [];

  constructor(settings: CoordinatorSettings, port: MessagePort) {
    this.#settings = settings;
    this.#port = port;
    this.#clock = new EmulatedClock(settings.clock);
    port.on("message", (batch: readonly Question[]) => {
      for (const question of batch) this.#take(question);
    });
    this.#send({ kind: "ready" });
  }

  #take(question: Question): void {
    this.#desk ??= this.#openDesk();
    const desk = this.#desk;
    switch (question.kind) {
      case "membership":
        desk.setMembership(membershipOf(question.input));
        break;
      case "shape":
        this.#shapes[question.number] = question.shape;
        break;
      case "config":
        this.#configs[question.number] = question.config;
        break;
      case "submit": {
        const request = { ...question.request, shape: this.#shapes[question.shape]! };
        desk.submit(request, this.#configs[question.config]!, this.#configs[question.rootConfig]!);
        break;
      }
      case "cancel":
        desk.cancel(question.query);
        break;
      case "releaseBackends":
        desk.releaseBackends(question.query, question.positions);
        break;
      case "release":
        desk.release(question.query, question.rest, question.peak);
        break;
      case "exchange":
        desk.exchange(question.usages, question.update);
        break;
      case "finish":
        desk.close();
        this.#sendAnswers();
        this.#send({ kind: "finished" });
        break;
      default:
        unreachable(question);
    }
  }

  #openDesk(): LocalDesk {
    const { hostId, flags } = this.#settings;
    return new LocalDesk(controllerOptions({ hostId, flags }), {
      timers: new Timers(this.#clock),
      now: () => this.#clock.now(),
      soon: (act) => void setImmediate(act),
      tell: (answer) => this.#tell(answer),
    });
  }

  #tell(answer: Answer): void {
    if (this.#answers.length === 0) queueMicrotask(() => this.#sendAnswers());
    this.#answers.push(answer);
  }

  #sendAnswers(): void {
    const answers = this.#answers;
    if (answers.length === 0) return;
    this.#answers = [];
    this.#send({ kind: "answers", answers });
  }

  #send(message: FromCoordinator): void {
    this.#port.postMessage(message);
  }
}
