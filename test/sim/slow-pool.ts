/**
 * One pool at one controller, the slow way: a page of rules with lists that are searched from end to end, and
 * no code of the product (insight 6.5 item 3). It knows nothing of queues of events or of who publishes when:
 * what the controller believes is written down as what it is, a sum over queries that ran when each host's
 * last exchange took place.
 *
 * Only for runs without ties between an exchange and something else; `run` answers null when there is one.
 */

export interface SlowSetting {
  readonly hosts: number;
  /** Whole microseconds, like all times here. */
  readonly period: number;
  readonly hostMemory: number;
  /** -1: none. */
  readonly maxMemory: number;
  readonly maxRunning: number;
  readonly maxQueued: number;
  readonly timeout: number;
}

export interface SlowQuery {
  readonly at: number;
  readonly hold: number;
  readonly perHost: number;
}

export interface SlowOutcome {
  readonly how: "atOnce" | "fromQueue" | "rejected" | "timedOut";
  readonly at: number;
}

interface Ran {
  readonly number: number;
  readonly start: number;
  readonly end: number;
  readonly perHost: number;
}

export function runSlowly(s: SlowSetting, queries: readonly SlowQuery[]): SlowOutcome[] | null {
  const outcomes: SlowOutcome[] = [];
  const ran: Ran[] = [];
  let queue: { readonly number: number; readonly since: number }[] = [];
  let next = 0;
  let now = 0;
  let tie = false;

  const phase = (host: number): number => Math.floor((host * s.period) / s.hosts);
  const lastExchange = (host: number, t: number): number =>
    phase(host) + Math.floor((t - phase(host)) / s.period) * s.period;
  const nextRound = (t: number): number => Math.floor(t / s.period + 1) * s.period;
  const running = (t: number): Ran[] => ran.filter((r) => r.start <= t && r.end > t);

  /** What a host published last, as its controller on host 0 knows it after the round that began at `round`. */
  const published = (host: number, round: number): number => {
    const at = lastExchange(host, round);
    if (at < 0) return 0;
    // A query that a round itself let in starts after that round's exchange of host 0.
    return ran
      .filter((r) => (host === 0 ? r.start < at : r.start <= at) && r.end > at)
      .reduce((sum, r) => sum + r.perHost, 0);
  };

  const fits = (q: SlowQuery, round: number): boolean => {
    const here = running(now);
    if (s.maxRunning >= 0 && here.length >= s.maxRunning) return false;
    if (s.maxMemory < 0) return true;
    const admittedOnHost = here.reduce((sum, r) => sum + r.perHost, 0);
    const onHosts = Array.from({ length: s.hosts }, (_, host) => published(host, round));
    const reserved = Math.max(
      onHosts.reduce((sum, bytes) => sum + bytes, 0),
      admittedOnHost * s.hosts,
    );
    if (reserved + q.perHost * s.hosts > s.maxMemory) return false;
    return onHosts.every((bytes) => Math.max(bytes, admittedOnHost) + q.perHost <= s.hostMemory);
  };

  const start = (number: number, how: "atOnce" | "fromQueue"): void => {
    const { hold, perHost } = queries[number]!;
    ran.push({ number, start: now, end: now + hold, perHost });
    outcomes[number] = { how, at: now };
  };

  const pass = (round: number): void => {
    const free = s.maxRunning > 0 ? s.maxRunning - running(now).length : queue.length;
    let left = free <= 0 ? 0 : Math.min(queue.length, Math.max(1, free));
    for (; left > 0 && queue.length > 0; left--) {
      const head = queue[0]!;
      if (!fits(queries[head.number]!, round)) return;
      queue = queue.slice(1);
      start(head.number, "fromQueue");
    }
  };

  const arrive = (number: number): void => {
    if (queue.length >= s.maxQueued) outcomes[number] = { how: "rejected", at: now };
    else if (queue.length === 0 && fits(queries[number]!, lastExchange(0, now))) start(number, "atOnce");
    else queue.push({ number, since: now });
  };

  const isExchange = (t: number): boolean =>
    Array.from({ length: s.hosts }, (_, host) => host).some((host) => (t - phase(host)) % s.period === 0);

  for (;;) {
    const arrival = queries[next]?.at ?? Number.POSITIVE_INFINITY;
    const ends = ran.filter((r) => r.end > now).map((r) => r.end);
    const end = Math.min(...ends, Number.POSITIVE_INFINITY);
    const deadline = Math.min(...queue.map((q) => q.since + s.timeout), Number.POSITIVE_INFINITY);
    const round = queue.length > 0 ? nextRound(now) : Number.POSITIVE_INFINITY;
    const at = Math.min(arrival, end, deadline, round);
    if (at === Number.POSITIVE_INFINITY) return tie ? null : outcomes;
    const together = [arrival, end, deadline, round].filter((t) => t === at).length;
    tie ||= together > 1 || (at !== round && isExchange(at)) || ends.filter((t) => t === at).length > 1;
    now = at;
    if (at === arrival) arrive(next++);
    else if (at === end) pass(lastExchange(0, now));
    else if (at === deadline) {
      for (const q of queue.filter((w) => w.since + s.timeout === at)) outcomes[q.number] = { how: "timedOut", at };
      queue = queue.filter((q) => q.since + s.timeout !== at);
    } else pass(round);
  }
}
