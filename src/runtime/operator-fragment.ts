/**
 * The life of one fragment instance with real operators, on one host: they run one after the other, each claims its
 * planned minimum when it opens and returns it when it closes (R19, R20), and works on real rows in slices, so that
 * whatever else its thread carries comes in between.
 *
 *   NEW --start--> WAITING for a work space --> RUNNING --last operator done--> ENDED
 *                     |                            |---- cancel, failure ----> ENDED   gives everything back
 *                     '--- cancel ---> ENDED       |---- abandon ------------> ENDED   gives nothing back
 *                                                  '---- hold: stands still between two slices until one of the others
 */
import { mkdirSync } from "node:fs";
import type { OperatorSpec } from "../config/scenario.ts";
import { invariant } from "../core/assert.ts";
import type { ClientSnapshot } from "../core/memory/buffer-pool.ts";
import { claim, giveBackClaim } from "../core/memory/initial-reservations.ts";
import { F_RESERVATION, F_USED, get, type LedgerView, NONE } from "../core/memory/ledger-layout.ts";
import type { Failure } from "../core/memory/page-store.ts";
import { memLimitExceededText, NO_SCRATCH_LIMIT, SPILLING_DISABLED } from "../core/memory/refusal-text.ts";
import { noteScratch, openClient } from "../core/memory/tracker-records.ts";
import type { Bytes } from "../core/units.ts";
import { closeWithAll } from "./host-ledger.ts";
import type { FragmentThread, HostOperators, Instance, ThreadHost } from "./instance.ts";
import { ledgerFull, type OpenedOnHost, openOnHost, queryPeakAndClose } from "./instance-trackers.ts";
import { LedgerClient } from "./ledger-client.ts";
import type { Output } from "./operators/checksum-sink.ts";
import { type OperatorOutcome, operatorSteps, type PlannedClient, plannedClients } from "./operators/run-operator.ts";
import { CANCELLED_CODE, type FragmentError, type FragmentOrder, type QueryOrder } from "./protocol.ts";
import { FileGroup } from "./scratch/file-group.ts";
import { hostDirectory } from "./scratch-space.ts";

/** Real milliseconds of work in one turn of the thread's event loop. */
const SLICE = 3;
/** Real milliseconds between two tellings of what is reserved. */
const TELL_EVERY = 20;

const CANCELLED: FragmentError = { code: CANCELLED_CODE, text: "Cancelled" };

export class OperatorFragment implements Instance {
  readonly order: FragmentOrder;
  readonly #query: QueryOrder;
  readonly #specs: readonly OperatorSpec[];
  readonly #host: ThreadHost;
  readonly #own: HostOperators;
  readonly #thread: FragmentThread;
  #opened: OpenedOnHost | null = null;
  #place = NONE;
  #group: FileGroup | null = null;
  #next = 0;
  #steps: ReturnType<typeof operatorSteps> | null = null;
  #clients: LedgerClient[] = [];
  #isCancelled = false;
  #isHeld = false;
  /** It would work, and is held. */
  #isParked = false;
  #hasEnded = false;
  #output: Output | null = null;
  #toldAt = 0;
  #toldSpilled = 0;

  constructor(query: QueryOrder, order: FragmentOrder, host: ThreadHost, thread: FragmentThread) {
    invariant(host.operators !== null && query.operators !== null, "real operators have a host with memory for them");
    this.order = order;
    this.#query = query;
    this.#specs = query.operators;
    this.#host = host;
    this.#own = host.operators;
    this.#thread = thread;
  }

  start(): void {
    const { ledger, address } = this.#host;
    if (ledger.epoch !== this.order.epoch) {
      this.#thread.ended(this.order.task);
      return;
    }
    const claims = this.#specs.flatMap(plannedClients).reduce((sum, c) => sum + c.minReservation, 0);
    const opened = ledger.run(openOnHost, this.#query, this.order, this.#thread.lockId, address, claims);
    if ("code" in opened) {
      this.#end(opened);
      return;
    }
    this.#opened = opened;
    this.#thread.tell({ kind: "started", task: this.order.task, at: this.#thread.now() });
    this.#tellReserved();
    this.#own.places.take((place) => {
      if (this.#hasEnded) {
        this.#own.places.give(place);
        return;
      }
      this.#place = place;
      this.#group = this.#openGroup();
      this.#thread.soon(() => this.#slice());
    });
  }

  cancel(): void {
    this.#isCancelled = true;
    // Between two slices the generator stands still and ends in order at its next step.
    if (!this.#hasEnded && this.#place === NONE) this.#end(CANCELLED);
    if (this.#isParked) this.#thread.soon(() => this.#slice());
    this.#isParked = false;
  }

  hold(): void {
    this.#isHeld = true;
  }

  abandon(): void {
    this.#hasEnded = true;
    this.#own.checks?.closed(this.order.task);
    this.#group?.close();
    if (this.#place !== NONE) this.#own.places.give(this.#place);
  }

  #slice(): void {
    this.#isParked = this.#isHeld && !this.#isCancelled && !this.#hasEnded;
    if (this.#isParked) return;
    const until = performance.now() + SLICE;
    while (!this.#hasEnded) {
      const steps = this.#steps ?? this.#nextOperator();
      if (steps === null) return;
      this.#steps = steps;
      const step = steps.next(this.#isCancelled ? "cancel" : "go on");
      if (step.done) this.#operatorEnded(step.value);
      if (performance.now() >= until) break;
    }
    if (this.#hasEnded) return;
    this.#tellProgress();
    this.#thread.soon(() => this.#slice());
  }

  /** Null when there is none, or when it has no room in the ledger; the instance has ended then. */
  #nextOperator(): ReturnType<typeof operatorSteps> | null {
    const spec = this.#specs[this.#next];
    if (spec === undefined || this.#isCancelled) {
      this.#end(this.#isCancelled ? CANCELLED : null);
      return null;
    }
    const nodeId = this.#next++;
    const clients = this.#openClients(plannedClients(spec), nodeId);
    if (clients === null) {
      this.#end(ledgerFull(this.#host.address));
      return null;
    }
    this.#clients = clients;
    return operatorSteps({
      spec,
      clients,
      arena: this.#own.arena,
      allocator: this.#own.allocator,
      thread: this.#place,
      owner: this.order.task,
      scratch: this.#group,
      seed: this.#query.seed + this.order.host * 1000 + nodeId,
      nodeId,
      spillingForbidden: this.#spillingForbidden(),
      ...(this.#own.checks !== null && { inspect: this.#inspect }),
    });
  }

  readonly #inspect = (clients: () => readonly ClientSnapshot[]): void => {
    const { scratchLimit } = this.#query;
    const { task } = this.order;
    const broken = this.#own.checks?.afterStep(task, { clients, group: this.#group, scratchLimit }) ?? [];
    if (broken.length === 0) return;
    this.#thread.tell({ kind: "broken", task, text: `${this.#host.address}: ${broken.join("\n")}` });
  };

  #openClients(planned: readonly PlannedClient[], nodeId: number): LedgerClient[] | null {
    const { ledger, address } = this.#host;
    const { unclaimed, instance } = this.#opened!;
    const owner = this.#thread.lockId;
    const clients: LedgerClient[] = [];
    for (const p of planned) {
      const tracker = ledger.run(openAndClaim, instance, unclaimed, nodeId, p.minReservation, owner);
      if (tracker === NONE) return null;
      const label = `${p.label} (id=${nodeId})`;
      const denies = (): boolean => this.#thread.denies(this.#query, this.order);
      clients.push(new LedgerClient({ ledger, tracker, label, owner, backend: address, denies }));
    }
    return clients;
  }

  #operatorEnded(outcome: OperatorOutcome): void {
    this.#steps = null;
    this.#own.checks?.closed(this.order.task);
    this.#tellProgress();
    if (outcome.kind !== "done") {
      this.#end(outcome.kind === "failed" ? outcome.failure : CANCELLED);
      return;
    }
    this.#output = outcome.output;
    for (const c of this.#clients) this.#host.ledger.run(returnAndClose, this.#opened!.unclaimed, c.tracker);
    this.#clients = [];
  }

  /** S7: without a limit above 0 there is no file group at all. */
  #openGroup(): FileGroup | null {
    if (this.#query.scratchLimit === 0) return null;
    mkdirSync(hostDirectory(this.#thread.scratch, this.#host.address), { recursive: true });
    return new FileGroup({
      books: this.#own.books,
      slot: this.#place,
      queryId: this.#query.id,
      backend: this.#host.address,
      scratchLimit: this.#query.scratchLimit,
      chance: () => 0,
    });
  }

  /** O2. */
  #spillingForbidden(): Failure | null {
    const { spillable, scratchLimit } = this.#query;
    if (spillable && scratchLimit !== 0) return null;
    const why = scratchLimit === 0 ? NO_SCRATCH_LIMIT : SPILLING_DISABLED;
    const { ledger, address } = this.#host;
    return { code: 7, text: ledger.run(memLimitExceededText, this.#opened!.instance, 0, address, why) };
  }

  #tellProgress(): void {
    const spilled = this.#group?.counters.scratchBytesWritten ?? 0;
    this.#host.ledger.run(noteScratch, this.#opened!.query, this.#group?.snapshot().charged ?? 0);
    if (spilled > this.#toldSpilled) {
      const bytes = (spilled - this.#toldSpilled) as Bytes;
      this.#toldSpilled = spilled;
      this.#thread.tell({ kind: "spilled", task: this.order.task, bytes });
    }
    if (performance.now() - this.#toldAt >= TELL_EVERY) this.#tellReserved();
  }

  #tellReserved(): void {
    this.#toldAt = performance.now();
    const { ledger } = this.#host;
    const reservation = ledger.run(get, this.#opened!.query, F_RESERVATION) as Bytes;
    const used = this.#clients.reduce((sum, c) => sum + ledger.run(get, c.tracker, F_USED), 0) as Bytes;
    this.#thread.tell({ kind: "reserved", task: this.order.task, reservation, used });
  }

  #end(error: FragmentError | null): void {
    this.#hasEnded = true;
    this.#group?.close();
    const closed = this.#opened === null ? 0 : this.#host.ledger.run(closeAll, this.#opened, this.#clients);
    const peak = closed as Bytes;
    this.#opened = null;
    if (this.#place !== NONE) this.#own.places.give(this.#place);
    const { task } = this.order;
    const spilled = (this.#group?.counters.scratchBytesWritten ?? 0) as Bytes;
    const at = this.#thread.now();
    this.#thread.tell({ kind: "finished", task, at, peak, peakOnHost: peak, spilled, output: this.#output, error });
    this.#thread.ended(task);
  }
}

/** R19. NONE when the ledger has no record left. */
function openAndClaim(
  v: LedgerView,
  instance: number,
  unclaimed: number,
  nodeId: number,
  minimum: number,
  owner: number,
): number {
  const client = openClient(v, instance, nodeId, -1, owner);
  if (client !== NONE) claim(v, unclaimed, client, minimum);
  return client;
}

/** R20. */
function returnAndClose(v: LedgerView, unclaimed: number, client: number): void {
  giveBackClaim(v, unclaimed, client);
  closeWithAll(v, client);
}

/** R22. Gives the query's peak on this host. */
function closeAll(v: LedgerView, opened: OpenedOnHost, clients: readonly LedgerClient[]): number {
  for (const c of clients) closeWithAll(v, c.tracker);
  closeWithAll(v, opened.unclaimed);
  return queryPeakAndClose(v, opened.instance);
}
