/**
 * One admission controller in virtual time, with what its driver must remember: when it next talks to the
 * statestore, what it has seen of the topic, whether a dequeue pass is on its way.
 *
 * In distributed mode every coordinator has one; with `admissiond` there is one for all, and it is a
 * subscriber of its own.
 */
import { AdmissionController } from "../core/admission/controller.ts";
import type { ControllerOptions } from "../core/admission/controller-options.ts";
import { type EventHandle, type Micros, NO_EVENT } from "./event-queue.ts";
import type { TopicReader } from "./request-queue-topic.ts";

export class Seat implements TopicReader {
  readonly index: number;
  /** Address under which it publishes. */
  readonly address: string;
  /** Its number among the statestore's subscribers: its host's number, or beyond them all with `admissiond`. */
  readonly subscriber: number;
  readonly #options: ControllerOptions;
  controller: AdmissionController;

  isAlive = true;
  /** The statestore and it don't reach each other; it goes on deciding. */
  isCutOff = false;
  exchange: EventHandle = NO_EVENT;
  /** Woken, and not yet looked (admission 5.4). */
  isPassDue = false;
  /** Its last pass moved nothing and nothing it depends on has changed since. */
  isSettled = false;
  /** Start of its last exchange, so that the next one is a later one. */
  lastExchange: Micros = -1;
  /** When the controller last heard that its view is current. */
  heardAt: Micros = -1;
  /** Exchanges so far, for the records. */
  sequence = 0;
  seen = 0;
  needsFull = true;
  /** Queries in its queues. */
  queued = 0;
  /** What its own host reserved by pool, as the controller was told last. */
  readonly told: number[] = [];

  constructor(index: number, subscriber: number, options: ControllerOptions) {
    this.index = index;
    this.subscriber = subscriber;
    this.address = options.hostId;
    this.#options = options;
    this.controller = new AdmissionController(options);
  }

  /** A new process in the place of one that died: it knows nothing and has published nothing. */
  restart(): void {
    this.controller = new AdmissionController(this.#options);
    this.isAlive = true;
    this.isCutOff = false;
    this.queued = 0;
    this.isSettled = false;
    this.heardAt = -1;
    this.told.fill(0);
  }

  get canExchange(): boolean {
    return this.isAlive && !this.isCutOff;
  }
}
