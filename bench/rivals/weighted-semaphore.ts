/**
 * async-mutex's weighted semaphore: the nearest thing in Node to "is there room for this much?". It checks one
 * number where a decision checks a pool and every host.
 */
import { Semaphore } from "async-mutex";

/** One acquisition, the oldest of `running` released, `batch` times. */
export function semaphoreRival(batch: number, running: number): () => Promise<void> {
  const weight = 3;
  const semaphore = new Semaphore(weight * (running + 1));
  const held: (() => void)[] = [];
  return async () => {
    for (let i = 0; i < batch; i++) {
      const [, release] = await semaphore.acquire(weight);
      held.push(release);
      if (held.length > running) held.shift()!();
    }
  };
}
