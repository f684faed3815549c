/**
 * What is kept of a log's texts. A piece that is cut out of a longer text keeps all of it in memory (V8 shares the
 * characters), so that a pool's name would hold its whole row, plan included, and a log as large as the memory could
 * not be read. It must stay true that nothing that is kept was cut out: each text is copied once, and equal ones are
 * one, of which a log has few.
 */
import type { LoggedQuery } from "./logged-query.ts";

export class KeptTexts {
  readonly #texts = new Map<string, string>();
  readonly #lists = new Map<string, readonly string[]>();

  /** The same query, holding on to nothing of the file's text. */
  query(q: LoggedQuery): LoggedQuery {
    return {
      ...q,
      // Of this query alone: not worth remembering.
      queryId: copyOf(q.queryId),
      clusterId: this.#orNull(q.clusterId),
      sessionId: this.#orNull(q.sessionId),
      user: this.#text(q.user),
      clientAddress: this.#orNull(q.clientAddress),
      coordinator: this.#orNull(q.coordinator),
      pool: this.#text(q.pool),
      statementType: this.#text(q.statementType),
      fingerprint: this.#orNull(q.fingerprint),
      tables: this.#list(q.tables),
      missingStats: q.missingStats === null ? null : this.#list(q.missingStats),
      hosts: q.hosts === null ? null : this.#list(q.hosts),
      options: { ...q.options, requestPool: this.#orNull(q.options.requestPool) },
    };
  }

  #orNull(text: string | null): string | null {
    return text === null ? null : this.#text(text);
  }

  #text(text: string): string {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    const own = copyOf(text);
    this.#texts.set(own, own);
    return own;
  }

  #list(texts: readonly string[]): readonly string[] {
    const key = texts.join("\n");
    const known = this.#lists.get(key);
    if (known !== undefined) return known;
    const own = texts.map((t) => this.#text(t));
    this.#lists.set(copyOf(key), own);
    return own;
  }
}

/** Through bytes: every other way to an equal text may share its characters. */
const copyOf = (text: string): string => (text === "" ? "" : Buffer.from(text, "utf8").toString("utf8"));
