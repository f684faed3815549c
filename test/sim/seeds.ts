/** Seeds of the sweep that found a bug once, in runs that are not widened, each with what it was. */
export const SEEDS_THAT_FOUND_SOMETHING: readonly { readonly seed: number; readonly what: string }[] = [
  { seed: 1, what: "a finished query went on sharing its hosts' cores" },
  { seed: 77, what: "a host that died and came back within one exchange left its queries hanging" },
  { seed: 98, what: "a query queued for a dead coordinator kept the run alive for ever" },
  { seed: 119, what: "a coordinator that was cut off, declared failed, died and returned kept its old queries" },
  { seed: 665, what: "an old process's query was released on the books of the new one" },
  { seed: 1653, what: "a time-out of the head woke nobody, and no exchange was pending" },
  { seed: 2229, what: "a coordinator that was cut off never noticed a dead executor" },
  { seed: 3805, what: "a coordinator that died twice was counted twice" },
  { seed: 6484, what: "a client that had gone gave up, in the past" },
  { seed: 2790, what: "buffers were counted from a moment at which trivial queries already held too much" },
  { seed: 8465, what: "a coordinator that was cut off had not heard what its own host held at its last exchange" },
  { seed: 15597, what: "the checker held a coordinators' pool against the smallest executor (6.2)" },
  { seed: 23617, what: "the checker took a trivial query for one too many, after the limit had been lowered (T-3)" },
  { seed: 44801, what: "a pass in the instant of an exchange took place twice, where the exchange had been left out" },
  { seed: 48209, what: "a controller heard that a host had failed before the exchange that tells it" },
  { seed: 70593, what: "a query cancelled under admissiond met its pass only where everything was told" },
];
