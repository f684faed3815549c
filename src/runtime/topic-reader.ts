/** A process with a controller, as the statestore knows it: it reads the topic, and publishes what it has decided. */
import type { TopicEntry, TopicUpdate } from "../core/statestore/topic.ts";
import type { Instant } from "../core/units.ts";
import type { PoolUsage } from "./admission-desk.ts";

/** What goes out at an exchange with the statestore. */
export type Exchanged = (entries: readonly TopicEntry[], at: Instant) => void;

export interface TopicReader {
  readonly address: string;
  readonly isAlive: boolean;
  /** The statestore and it don't reach each other. */
  disconnected(): void;
  /** It has registered anew, or (`rejoined`) was back before anybody missed it. */
  reconnected(now: Instant): void;
  rejoined(): void;
  /** One exchange; `then` comes when the process has got to it, from one that dies meanwhile never. */
  exchange(usages: readonly PoolUsage[], update: TopicUpdate, now: Instant, then: Exchanged): void;
}
