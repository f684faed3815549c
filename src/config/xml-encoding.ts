/**
 * From bytes to text as an XML parser does it: byte order mark, then the encoding the declaration names, UTF-8
 * otherwise; a byte that is not of the encoding is an error and never a replacement character
 * (pool-configuration 1.1, 2.1).
 */
import { ConfigError } from "./config-error.ts";

/** Line breaks come out as single line feeds (XML 2.11), so offsets and lines are those of the result. */
export function decodeXml(bytes: Uint8Array, file: string): string {
  const mark = byteOrderMark(bytes);
  const body = bytes.subarray(mark.length);
  const declared = declaredEncoding(body, mark.encoding);
  const encoding = (declared ?? mark.encoding ?? "utf-8").toLowerCase();
  if (mark.encoding?.startsWith("utf-16") && !encoding.startsWith("utf-16"))
    throw badBytes(file, 1, `the file is ${mark.encoding.toUpperCase()} but says encoding="${declared}"`, encoding);
  const text = decodeStrictly(body, encoding.startsWith("utf-16") ? (mark.encoding ?? encoding) : encoding, file);
  return text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text;
}

function byteOrderMark(b: Uint8Array): { readonly encoding: string | null; readonly length: number } {
  if (b[0] === 0xef && b[1] === 0xbb && b[2] === 0xbf) return { encoding: "utf-8", length: 3 };
  if (b[0] === 0xfe && b[1] === 0xff) return { encoding: "utf-16be", length: 2 };
  if (b[0] === 0xff && b[1] === 0xfe) return { encoding: "utf-16le", length: 2 };
  if (b[0] === 0 && b[1] === 0x3c && b[2] === 0 && b[3] === 0x3f) return { encoding: "utf-16be", length: 0 };
  if (b[0] === 0x3c && b[1] === 0 && b[2] === 0x3f && b[3] === 0) return { encoding: "utf-16le", length: 0 };
  return { encoding: null, length: 0 };
}

/** What `<?xml ... encoding="..."?>` says; the declaration itself is always ASCII in the family of the mark. */
function declaredEncoding(body: Uint8Array, mark: string | null): string | null {
  const head = body.subarray(0, 400);
  const text = mark?.startsWith("utf-16") ? new TextDecoder(mark).decode(head) : latin1(head);
  return /^<\?xml(?=[ \t\r\n])[^>]*?\sencoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]*)["']/.exec(text)?.[1] ?? null;
}

function decodeStrictly(body: Uint8Array, encoding: string, file: string): string {
  if (/^(iso-?8859-1|latin-?1|iso_8859-1|l1)$/.test(encoding)) return latin1(body);
  if (/^(us-)?ascii$/.test(encoding)) {
    const at = body.findIndex((b) => b > 0x7f);
    if (at >= 0) throw badBytes(file, lineAt(body, at), "a byte above 127 in a file that says US-ASCII", encoding);
    return latin1(body);
  }
  const label = encoding === "utf-16" ? "utf-16be" : encoding;
  try {
    return new TextDecoder(label, { fatal: true, ignoreBOM: true }).decode(body);
  } catch (cause) {
    if (cause instanceof RangeError)
      throw badBytes(file, 1, `The encoding "${encoding}" is not supported.`, "utf-8", cause);
    const at = firstBadByte(body, label);
    const what = label === "utf-8" ? utf8Complaint(body, at) : `a byte that is not ${encoding.toUpperCase()}`;
    throw badBytes(file, lineAt(body, at), what, encoding, cause);
  }
}

const badBytes = (file: string, line: number, problem: string, encoding: string, cause?: unknown): ConfigError =>
  new ConfigError(
    { file, line },
    problem,
    `Save the file as ${encoding.toUpperCase()}, or say which encoding it has.`,
    {
      cause,
    },
  );

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
}

/** Longest prefix that decodes; by halves, since the decoder tells only that something is wrong. */
function firstBadByte(bytes: Uint8Array, label: string): number {
  let good = 0;
  let bad = bytes.length;
  while (bad - good > 1) {
    const middle = (good + bad) >> 1;
    if (decodesSoFar(bytes.subarray(0, middle), label)) good = middle;
    else bad = middle;
  }
  return good;
}

function decodesSoFar(bytes: Uint8Array, label: string): boolean {
  try {
    new TextDecoder(label, { fatal: true, ignoreBOM: true }).decode(bytes, { stream: true });
    return true;
  } catch {
    return false;
  }
}

/** The JDK's words, from the lead byte before the bad one. */
function utf8Complaint(bytes: Uint8Array, at: number): string {
  for (let back = 1; back <= 3; back++) {
    const lead = bytes[at - back] ?? 0;
    const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 1;
    if (length > back) return `Invalid byte ${back + 1} of ${length}-byte UTF-8 sequence.`;
    if (lead < 0x80 || lead >= 0xc0) break;
  }
  return "Invalid byte 1 of 1-byte UTF-8 sequence.";
}

function lineAt(bytes: Uint8Array, offset: number): number {
  let line = 1;
  for (let i = 0; i < offset; i++) if (bytes[i] === 0x0a) line++;
  return line;
}
