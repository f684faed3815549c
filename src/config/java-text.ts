/**
 * Java's way with the texts of the two files: what it trims and which texts it takes for numbers.
 *
 * JavaScript's trim and Number are both wider and narrower, and a pool limit that Java refuses must be refused
 * here too (pool-configuration 1.2, 1.3, 2.4).
 */

/** `String.trim`: everything up to U+0020 at both ends, and nothing else. */
export function javaTrim(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && text.charCodeAt(start) <= 0x20) start++;
  while (end > start && text.charCodeAt(end - 1) <= 0x20) end--;
  return text.slice(start, end);
}

/** `String.trim`'s Unicode sister: the White_Space property, as queue names are trimmed. */
export const trimWhiteSpace = (text: string): string => text.replace(/^\p{White_Space}+|\p{White_Space}+$/gu, "");

const INT32_MAX = 2147483647n;
const INT64_MAX = 9223372036854775807n;

/** `Integer.parseInt`; null stands for its NumberFormatException. */
export function parseInt32(text: string): number | null {
  const value = parseInteger(text, 10);
  return value === null || value > INT32_MAX || value < -INT32_MAX - 1n ? null : Number(value);
}

/** `Long.parseLong`. */
export function parseInt64(text: string, radix: 10 | 16 = 10): bigint | null {
  const value = parseInteger(text, radix);
  return value === null || value > INT64_MAX || value < -INT64_MAX - 1n ? null : value;
}

/** Digits of every script count in Java; more than 40 of them are too many for any of its types. */
function parseInteger(text: string, radix: 10 | 16): bigint | null {
  const [, sign, digits] = /^([+-]?)([\p{Nd}a-fA-F]+)$/u.exec(text) ?? [];
  if (digits === undefined) return null;
  const plain = digits.replace(/[^\x20-\x7e]/gu, digitOf).replace(/^0+(?=.)/, "");
  if (plain.length > 40 || !(radix === 16 ? /^[0-9a-fA-F]+$/ : /^[0-9]+$/).test(plain)) return null;
  const value = BigInt(radix === 16 ? `0x${plain}` : plain);
  return sign === "-" ? -value : value;
}

/** Decimal digits come in runs of ten code points; outside the basic plane Java's parser takes none. */
function digitOf(digit: string): string {
  const code = digit.codePointAt(0) ?? 0;
  if (code > 0xffff) return "?";
  let first = code;
  while (/\p{Nd}/u.test(String.fromCodePoint(first - 1))) first--;
  return String((code - first) % 10);
}

/** Whether `Float.parseFloat` and `Double.parseDouble` take the text. */
export const isJavaFloat = (text: string): boolean =>
  /^[+-]?(?:NaN|Infinity|(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?)$/.test(
    javaTrim(text),
  );

/** The message of Java's NumberFormatException. */
export const numberFormatMessage = (text: string, radix: 10 | 16 = 10): string =>
  `For input string: "${text}"${radix === 10 ? "" : ` under radix ${radix}`}`;
