/**
 * The statestore of the conformance stepper: one topic of keyed entries, and what each subscriber has seen of it.
 * Entries are transient: they go with their publisher (admission 7.1). A new or restarted statestore sends full
 * updates first (7.6).
 */
import type { TopicItem } from "../model/port.ts";

interface Kept {
  readonly publisher: string;
  /** null once its publisher has been declared failed; kept as a deletion for those who still have to hear of it. */
  value: unknown;
  version: number;
}

export class Statestore {
  private readonly topic = new Map<string, Kept>();
  private readonly seen = new Map<string, number>();
  private version = 0;

  publish(publisher: string, items: readonly TopicItem[]): void {
    for (const { key, value } of items) this.topic.set(key, { publisher, value, version: ++this.version });
  }

  declareFailed(publisher: string): void {
    this.seen.delete(publisher);
    for (const kept of this.topic.values())
      if (kept.publisher === publisher && kept.value !== null) {
        kept.value = null;
        kept.version = ++this.version;
      }
  }

  /** What the subscriber hasn't had yet; full on its first time. */
  updateFor(subscriber: string): { readonly full: boolean; readonly items: readonly TopicItem[] } {
    const seen = this.seen.get(subscriber);
    this.seen.set(subscriber, this.version);
    const items = [...this.topic]
      .filter(([, kept]) => (seen === undefined ? kept.value !== null : kept.version > seen))
      .map(([key, kept]) => ({ key, value: kept.value }));
    return { full: seen === undefined, items };
  }

  /** The process is new: nothing in its topics, nobody known to it. */
  restart(): void {
    this.topic.clear();
    this.seen.clear();
  }
}
