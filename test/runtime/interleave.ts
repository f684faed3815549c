/**
 * Runs code that shares a ledger under every interleaving of its atomic steps, with a thread killed at every step.
 *
 * A virtual thread is ordinary synchronous code over proxied arrays. It is run from its start each time, fed with
 * what its earlier steps had returned, until it comes to its next step: so no generator is needed and the code under
 * test is the real one. Between two Atomics operations a thread touches shared words plainly; it must own the lock
 * then (checked at each access), so only Atomics operations need to be interleaved. A kill can come between any two
 * accesses, plain ones included.
 *
 * States that were seen before (memory and every thread's past) are not explored again.
 */
import { checkLedger } from "../../src/core/memory/ledger-checks.ts";
import { type LedgerView, LOCK, noRefusal } from "../../src/core/memory/ledger-layout.ts";
import { rollBack } from "../../src/core/memory/undo-log.ts";
import type { LockAtomics } from "../../src/runtime/host-lock.ts";

export type ThreadBody = (view: LedgerView, atomics: LockAtomics) => void;

export interface Experiment {
  /** A set-up ledger. */
  readonly ledger: LedgerView;
  /** Ids as they stand in the lock, with the code each runs. */
  readonly threads: readonly { readonly id: number; readonly body: ThreadBody }[];
  /** What the supervisor runs after `dead` was killed; it is never killed itself. */
  readonly supervisor: { readonly id: number; readonly body: (dead: number) => ThreadBody };
  /** How many threads may be killed in one run. */
  readonly kills: number;
  /** True when nothing is left in the ledger. */
  readonly atEnd: (view: LedgerView) => string[];
  /** Beyond so many states the exploration stops with an error: make the experiment smaller. */
  readonly most: number;
}

export interface Explored {
  readonly states: number;
  readonly ends: number;
  readonly killed: number;
  /** How often a thread slept on the lock, over all states. */
  readonly sleeps: number;
}

/** Past of one virtual thread. A sleeping one waits for a notify. */
interface Past {
  readonly id: number;
  readonly body: ThreadBody;
  readonly mayDie: boolean;
  readonly results: readonly number[];
  /** Where it stands: see `advance`. */
  readonly place: string;
  readonly status: Status;
}

type Kind = "plain" | "write" | "load" | "notify" | "other";
type Status = "ready" | "asleep" | "done" | "dead";

interface Advanced {
  readonly state: State;
  readonly slept: boolean;
  /** After how many accesses shared words were different from before: a kill after a mere read is no new case. */
  readonly changes: readonly number[];
}

interface State {
  readonly memory: Float64Array;
  readonly threads: readonly Past[];
  readonly kills: number;
}

const SUSPEND = new Error("the virtual thread stands before its next step");
const KILLED = new Error("the virtual thread was killed");

export function explore(e: Experiment): Explored {
  const seen = new Set<string>();
  const counts = { states: 0, ends: 0, killed: 0, sleeps: 0 };
  const start: State = {
    memory: e.ledger.f64.slice(),
    threads: e.threads.map((t) => ({ ...t, mayDie: true, results: [], place: "", status: "ready" })),
    kills: 0,
  };
  const open = [start];
  for (let s = open.pop(); s !== undefined; s = open.pop()) {
    const key = keyOf(s);
    if (seen.has(key)) continue;
    seen.add(key);
    if (++counts.states > e.most) throw new Error(`more than ${e.most} states`);
    const ready = s.threads.flatMap((t, i) => (t.status === "ready" ? [i] : []));
    if (ready.length === 0) {
      atEnd(e, s);
      counts.ends++;
      continue;
    }
    for (const i of ready) {
      const whole = advance(s, i, Number.POSITIVE_INFINITY);
      counts.sleeps += whole.slept ? 1 : 0;
      open.push(whole.state);
      if (!s.threads[i]!.mayDie || s.kills === e.kills) {
        checkInstant(whole.state);
        continue;
      }
      for (const k of [0, ...whole.changes]) {
        const cut = advance(s, i, k);
        checkInstant(cut.state);
        counts.killed++;
        open.push(kill(e, cut.state, i));
      }
    }
  }
  return counts;
}

function kill(e: Experiment, s: State, i: number): State {
  const threads = s.threads.slice();
  const dead = threads[i]!;
  threads[i] = { ...dead, status: "dead" };
  threads.push({
    id: e.supervisor.id,
    body: e.supervisor.body(dead.id),
    mayDie: false,
    results: [],
    place: "",
    status: "ready",
  });
  return { ...s, threads, kills: s.kills + 1 };
}

/**
 * Runs thread i over its next Atomics operation and the plain accesses after it, at most `most` accesses in all.
 *
 * Its place tells two pasts apart only where they can matter to its future: what it has read plainly, how often it
 * has woken others, and what the Atomics operations since its last plain access or last look at the word returned.
 * Anybody who looks again decides on what he sees then.
 */
function advance(s: State, i: number, most: number): Advanced {
  const memory = s.memory.slice();
  const words = new Int32Array(memory.buffer);
  const threads = s.threads.slice();
  const self = threads[i]!;
  const results = self.results.slice();
  let replayed = 0;
  let steps = 0;
  const changes: number[] = [];
  let atomicsDone = 0;
  const end: { status: Status } = { status: "done" };
  const plain = newHash();
  let wakings = 0;
  let sinceLook: number[] = [];

  const step = (kind: Kind, act: () => number): number => {
    if (kind === "plain" || kind === "write" || kind === "load") sinceLook = [];
    const result = replayed < self.results.length ? self.results[replayed++]! : live(kind, act);
    if (kind === "plain" || kind === "write") mix(plain, result);
    else sinceLook.push(result);
    if (kind === "notify") wakings++;
    return result;
  };
  const live = (kind: Kind, act: () => number): number => {
    const isAtomic = kind !== "plain" && kind !== "write";
    if (steps >= most) throw KILLED;
    if (isAtomic && atomicsDone > 0) throw SUSPEND;
    if (isAtomic) atomicsDone++;
    else if (Math.abs(words[LOCK]!) !== self.id)
      throw new Error(`thread ${self.id} touches shared words while the lock is at ${words[LOCK]}`);
    steps++;
    if (kind !== "plain" && kind !== "load") changes.push(steps);
    const result = act();
    results.push(result);
    replayed = results.length;
    return result;
  };

  const f64 = new Proxy(memory, {
    get: (target, key) => (isIndex(key) ? step("plain", () => target[Number(key)]!) : Reflect.get(target, key, target)),
    set: (target, key, value: number) => {
      step("write", () => {
        target[Number(key)] = value;
        return 0;
      });
      return true;
    },
  });
  const atomics: LockAtomics = {
    load: (_, at) => step("load", () => words[at]!),
    exchange: (_, at, value) => step("other", () => swap(words, at, value)),
    compareExchange: (_, at, expected, value) =>
      step("other", () => (words[at] === expected ? swap(words, at, value) : words[at]!)),
    notify: (_, at, count = Number.POSITIVE_INFINITY) =>
      step("notify", () => {
        let woken = 0;
        for (let t = 0; t < threads.length && woken < count && at === LOCK; t++)
          if (threads[t]!.status === "asleep") {
            threads[t] = { ...threads[t]!, status: "ready" };
            woken++;
          }
        return woken;
      }),
    wait: (_, at, value) => {
      step("other", () => {
        if (words[at] === value) end.status = "asleep";
        return 0;
      });
      if (end.status === "asleep") throw SUSPEND;
    },
  };

  try {
    self.body({ i32: words, f64, refusal: noRefusal() }, atomics);
  } catch (stop) {
    if (stop !== SUSPEND && stop !== KILLED) throw stop;
    if (end.status !== "asleep") end.status = "ready";
  }
  const place = `${text(plain)}/${wakings}/${sinceLook.join(",")}`;
  threads[i] = { ...self, results, place, status: end.status };
  return { state: { memory, threads, kills: s.kills }, changes, slept: end.status === "asleep" };
}

const isIndex = (key: string | symbol): boolean => typeof key === "string" && /^\d+$/.test(key);

function swap(words: Int32Array, at: number, value: number): number {
  const was = words[at]!;
  words[at] = value;
  return was;
}

const viewOf = (memory: Float64Array): LedgerView => ({
  i32: new Int32Array(memory.buffer),
  f64: memory,
  refusal: noRefusal(),
});

/** Whatever step a thread is in, taking it back gives books that balance. */
function checkInstant(s: State): void {
  const copy = viewOf(s.memory.slice());
  rollBack(copy);
  const broken = checkLedger(copy);
  if (broken.length > 0) throw new Error(broken.join("\n"));
}

function atEnd(e: Experiment, s: State): void {
  const asleep = s.threads.filter((t) => t.status === "asleep").map((t) => t.id);
  if (asleep.length > 0)
    throw new Error(`threads ${asleep.join(", ")} sleep for ever; lock ${viewOf(s.memory).i32[LOCK]}`);
  const broken = e.atEnd(viewOf(s.memory));
  if (broken.length > 0) throw new Error(broken.join("\n"));
}

function keyOf(s: State): string {
  const words = new Int32Array(s.memory.buffer);
  const h = newHash();
  for (let i = 0; i < words.length; i++) mixWord(h, words[i]!);
  const threads = s.threads.map((t) => {
    const over = t.status === "done" || t.status === "dead";
    return `${t.id}${t.status}${over ? "" : t.place}`;
  });
  return `${text(h)} ${s.kills} ${threads.join(" ")}`;
}

interface Hash {
  a: number;
  b: number;
}

const newHash = (): Hash => ({ a: 0x9747b28c, b: 0x3c6ef372 });
const text = (h: Hash): string => `${h.a >>> 0}.${h.b >>> 0}`;

const parts = new Float64Array(1);
const halves = new Int32Array(parts.buffer);

function mix(h: Hash, n: number): void {
  parts[0] = n;
  mixWord(h, halves[0]!);
  mixWord(h, halves[1]!);
}

/** Two independent 32-bit hashes with full mixing: a state is dropped wrongly once in 2^64 pairs. */
function mixWord(h: Hash, n: number): void {
  h.a = scramble(h.a ^ n, 0xcc9e2d51, 0x1b873593);
  h.b = scramble(h.b + n, 0x85ebca6b, 0xc2b2ae35);
}

function scramble(n: number, p: number, q: number): number {
  let k = Math.imul(n, p);
  k = (k << 15) | (k >>> 17);
  k = Math.imul(k, q);
  k ^= k >>> 13;
  return (Math.imul(k, 5) + 0x6546b64) | 0;
}
