/**
 * The lines of a log, plain or gzipped, without ever holding the file: logs of a month are larger than a
 * string may be. Records that span lines are put together here too, because only here the first line's
 * number is known.
 */
import { closeSync, createReadStream, openSync, readSync } from "node:fs";
import { StringDecoder } from "node:string_decoder";
import { createGunzip } from "node:zlib";

export type OnLine = (text: string, line: number) => void;

/** The file's first bytes, for recognising it. */
export function headOf(file: string, length: number): Buffer {
  const fd = openSync(file, "r");
  try {
    const buffer = Buffer.alloc(length);
    return buffer.subarray(0, readSync(fd, buffer, 0, length, 0));
  } finally {
    closeSync(fd);
  }
}

export const isGzip = (head: Buffer): boolean => head[0] === 0x1f && head[1] === 0x8b;

/** Stops reading when `onLine` throws. Carriage returns at line ends and a byte-order mark are dropped. */
export async function eachLine(file: string, gzip: boolean, onLine: OnLine): Promise<void> {
  const bytes = createReadStream(file, { highWaterMark: 1 << 20 });
  const stream = gzip ? bytes.pipe(createGunzip()) : bytes;
  // pipe() does not hand an error on; without this an unreadable file would end as an unhandled one.
  bytes.on("error", (e) => stream.destroy(e));
  const decoder = new StringDecoder("utf8");
  let rest = "";
  let line = 0;
  const take = (text: string): void => {
    line++;
    const clean = line === 1 && text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
    onLine(clean.endsWith("\r") ? clean.slice(0, -1) : clean, line);
  };
  for await (const chunk of stream) {
    const text = decoder.write(chunk as Buffer);
    let from = 0;
    let end = text.indexOf("\n");
    while (end >= 0) {
      take(rest + text.slice(from, end));
      rest = "";
      from = end + 1;
      end = text.indexOf("\n", from);
    }
    rest += text.slice(from);
  }
  rest += decoder.end();
  if (rest !== "") take(rest);
}

/** Commas, tabs, semicolons or bars: whichever splits the header into the most columns. */
export function delimiterOf(header: string): string {
  const counts = [",", "\t", ";", "|"].map((d) => [d, splitFields(header, d)?.length ?? 0] as const);
  return counts.reduce((best, c) => (c[1] > best[1] ? c : best))[0];
}

/** Fields of one record; null while a quoted field is still open at the end of the text. */
export function splitFields(record: string, delimiter: string): string[] | null {
  if (!record.includes('"')) return record.split(delimiter);
  const fields: string[] = [];
  let i = 0;
  for (;;) {
    if (record[i] === '"') {
      let value = "";
      let from = i + 1;
      for (;;) {
        const quote = record.indexOf('"', from);
        if (quote < 0) return null;
        if (record[quote + 1] !== '"') {
          value += record.slice(from, quote);
          i = quote + 1;
          break;
        }
        value += record.slice(from, quote + 1);
        from = quote + 2;
      }
      const end = record.indexOf(delimiter, i);
      fields.push(value + record.slice(i, end < 0 ? record.length : end));
      if (end < 0) return fields;
      i = end + 1;
    } else {
      const end = record.indexOf(delimiter, i);
      fields.push(record.slice(i, end < 0 ? record.length : end));
      if (end < 0) return fields;
      i = end + 1;
    }
  }
}

/** Puts records together whose quoted fields hold line feeds. A lost quote must not swallow the file. */
export class RecordJoiner {
  private open: string[] = [];
  private firstLine = 0;
  private length = 0;
  private quotes = 0;
  private readonly delimiter: string;
  private readonly onRecord: (fields: string[], line: number) => void;
  private readonly onUnclosed: (line: number) => void;
  constructor(
    delimiter: string,
    onRecord: (fields: string[], line: number) => void,
    onUnclosed: (line: number) => void,
  ) {
    this.delimiter = delimiter;
    this.onRecord = onRecord;
    this.onUnclosed = onUnclosed;
  }

  push(text: string, line: number): void {
    if (this.open.length === 0) {
      if (text === "") return;
      const fields = splitFields(text, this.delimiter);
      if (fields !== null) {
        this.onRecord(fields, line);
        return;
      }
      this.firstLine = line;
      this.length = 0;
      this.quotes = 0;
    }
    this.open.push(text);
    this.length += text.length;
    this.quotes += text.split('"').length - 1;
    // Every quoted field opens and closes: an odd count is still open, whatever the line looks like.
    if (this.quotes % 2 === 0) {
      const fields = splitFields(this.open.join("\n"), this.delimiter);
      if (fields !== null) {
        this.open = [];
        this.onRecord(fields, this.firstLine);
        return;
      }
    }
    // sql and plan are cut at 16 MiB each by the product.
    if (this.length > 64 * 1024 * 1024) this.onUnclosed(this.firstLine);
  }

  end(): void {
    if (this.open.length > 0) this.onUnclosed(this.firstLine);
  }
}
