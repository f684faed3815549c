/**
 * llama-site.xml as Hadoop's property reader reads it (pool-configuration 2.1 to 2.4).
 *
 * The reader streams over the elements and looks only at local names, so it has habits of its own: a property
 * counts wherever it stands, an empty value is no value, the last one wins unless an earlier one was final. All
 * properties are kept, with their places, also those that lost.
 */
import { existsSync, readFileSync } from "node:fs";
import { dirname, isAbsolute, resolve } from "node:path";
import { ConfigError, fileMissing } from "./config-error.ts";
import { javaTrim, numberFormatMessage, parseInt64 } from "./java-text.ts";
import { type Place, parseLocatedXml, type XmlElement } from "./located-xml.ts";

export interface SiteFile {
  readonly file: string;
  /** All of them in reading order, included files in their place. */
  readonly properties: readonly SiteProperty[];
  /** Key -> the property that counts. */
  readonly effective: ReadonlyMap<string, SiteProperty>;
}

export interface SiteProperty {
  readonly key: string;
  /** null when the product takes the property for absent: no `value`, or an empty one. */
  readonly value: string | null;
  readonly isFinal: boolean;
  /** The property element. */
  readonly at: Place;
  readonly keyAt: Place;
  readonly valueAt: Place;
  /** The file it stands in: an included one, or the site file. */
  readonly file: string;
  /** Why it does not count. */
  readonly lostTo: SiteProperty | null;
}

/** What `${...}` in a value may reach besides other properties. */
export interface Surroundings {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly systemProperties: Readonly<Record<string, string | undefined>>;
}

export const NO_SURROUNDINGS: Surroundings = { environment: {}, systemProperties: {} };

export const EMPTY_SITE: SiteFile = { file: "", properties: [], effective: new Map() };

/** Throws ConfigError when the file cannot be read or is not well-formed. */
export function readSiteFile(path: string): SiteFile {
  let bytes: Uint8Array;
  try {
    bytes = readFileSync(path);
  } catch (cause) {
    throw fileMissing(path, "site file", cause);
  }
  return parseSiteFile(bytes, path);
}

/** Opens an included file; null when there is none. The path is absolute or relative to the including file. */
export type OpenIncluded = (href: string, from: string) => { readonly file: string; readonly bytes: Uint8Array } | null;

export function parseSiteFile(
  source: Uint8Array | string,
  file: string,
  openIncluded: OpenIncluded = openBeside,
): SiteFile {
  const reader = new PropertyReader(openIncluded);
  reader.read(typeof source === "string" ? new TextEncoder().encode(source) : source, file);
  return settled(file, reader.properties);
}

function openBeside(href: string, from: string): { file: string; bytes: Uint8Array } | null {
  const path = href.startsWith("file:") ? decodeURIComponent(href.replace(/^file:(\/\/)?/, "")) : href;
  const file = isAbsolute(path) ? path : resolve(dirname(from), path);
  return existsSync(file) ? { file, bytes: readFileSync(file) } : null;
}

type SeenProperty = Omit<SiteProperty, "lostTo">;

/** Deeper chains of included files are a circle. */
const MAX_INCLUDES = 50;

/** Walks the elements in reading order and keeps the product's little state machine. */
class PropertyReader {
  readonly properties: SeenProperty[] = [];
  readonly #openIncluded: OpenIncluded;
  #file = "";
  #depth = 0;
  #draft: Draft = newDraft({ line: 1, column: 1 });
  #token = "";
  #collects = false;
  #fallbackAllowed = false;
  #fallbackEntered = false;

  constructor(openIncluded: OpenIncluded) {
    this.#openIncluded = openIncluded;
  }

  read(bytes: Uint8Array, file: string): void {
    const outer = this.#file;
    this.#file = file;
    this.#depth++;
    this.#walk(parseLocatedXml(bytes, file, "woodstox").root);
    this.#depth--;
    this.#file = outer;
  }

  #walk(element: XmlElement): void {
    const name = localName(element.name);
    this.#start(name, element);
    for (const child of element.children) {
      if (child.kind === "element") this.#walk(child);
      else if (child.kind !== "instruction" && this.#collects) this.#token += child.data;
    }
    this.#end(name, element);
  }

  #start(name: string, element: XmlElement): void {
    if (name === "property") this.#draft = shortForm(element);
    else if (name === "name" || name === "value" || name === "final" || name === "source" || name === "tag") {
      this.#collects = true;
      this.#token = "";
    } else if (name === "include") this.#include(element);
    else if (name === "fallback") this.#fallbackEntered = true;
  }

  #end(name: string, element: XmlElement): void {
    const token = this.#token;
    if (name === "name" && token !== "") {
      this.#draft.key = javaTrim(token);
      this.#draft.keyAt = element.at;
    } else if (name === "value" && token !== "") {
      this.#draft.value = token;
      this.#draft.valueAt = element.at;
    } else if (name === "value" && this.#draft.value === null) this.#draft.valueAt = element.at;
    else if (name === "final") this.#draft.isFinal = token === "true";
    else if (name === "include") this.#endInclude(element);
    else if (name === "property") this.#endProperty();
  }

  #endProperty(): void {
    const { key, value, isFinal, at, keyAt, valueAt } = this.#draft;
    // A fallback that was not needed is read all the same, and its properties are dropped here.
    if (key === null || (this.#fallbackEntered && !this.#fallbackAllowed)) return;
    this.properties.push({ key, value, isFinal, at, keyAt, valueAt, file: this.#file });
  }

  #include(element: XmlElement): void {
    const href = attributeOf(element, "href");
    if (href === null) return;
    if (this.#depth > MAX_INCLUDES)
      throw new ConfigError(
        { file: this.#file, ...element.at },
        `files include one another more than ${MAX_INCLUDES} deep`,
        "Break the circle.",
      );
    const included = this.#openIncluded(href, this.#file);
    if (included === null) this.#fallbackAllowed = true;
    else {
      // The product reads an included file with a parser of its own: nothing of this one's state enters it.
      const inner = new PropertyReader(this.#openIncluded);
      inner.#depth = this.#depth;
      inner.read(included.bytes, included.file);
      this.properties.push(...inner.properties);
    }
  }

  #endInclude(element: XmlElement): void {
    if (this.#fallbackAllowed && !this.#fallbackEntered)
      throw new ConfigError(
        { file: this.#file, ...element.at },
        `Fetch fail on include for '${attributeOf(element, "href") ?? ""}' with no fallback while loading '${this.#file}'`,
        "Correct the href, or put a <fallback/> inside the include.",
      );
    this.#fallbackAllowed = false;
    this.#fallbackEntered = false;
  }
}

interface Draft {
  key: string | null;
  value: string | null;
  isFinal: boolean;
  at: Place;
  keyAt: Place;
  valueAt: Place;
}

const newDraft = (at: Place): Draft => ({ key: null, value: null, isFinal: false, at, keyAt: at, valueAt: at });

/** `<property name="k" value="v"/>`: here nothing is trimmed and an empty value is a value. */
function shortForm(element: XmlElement): Draft {
  return {
    ...newDraft(element.at),
    key: attributeOf(element, "name"),
    value: attributeOf(element, "value"),
    isFinal: attributeOf(element, "final") === "true",
  };
}

const localName = (name: string): string => name.slice(name.indexOf(":") + 1);

function attributeOf(element: XmlElement, name: string): string | null {
  for (const [key, { value }] of element.attributes) if (localName(key) === name) return value;
  return null;
}

/** Last wins, unless a final property of that key came before. */
function settled(file: string, seen: readonly SeenProperty[]): SiteFile {
  const finals = new Map<string, SeenProperty>();
  const winners = new Map<string, SeenProperty>();
  const beaten = new Map<SeenProperty, SeenProperty>();
  for (const property of seen) {
    const final = finals.get(property.key);
    const before = winners.get(property.key);
    if (property.value !== null && final !== undefined) beaten.set(property, final);
    else if (property.value !== null) {
      if (before !== undefined) beaten.set(before, property);
      winners.set(property.key, property);
    }
    if (property.isFinal && final === undefined) finals.set(property.key, property);
  }
  const done = new Map<SeenProperty, SiteProperty>();
  for (const property of seen.toReversed()) {
    const lostTo = beaten.get(property);
    const later = lostTo === undefined ? null : (done.get(lostTo) ?? { ...lostTo, lostTo: null });
    done.set(property, { ...property, lostTo: later });
  }
  const properties = seen.map((property) => done.get(property) ?? { ...property, lostTo: null });
  return {
    file,
    properties,
    effective: new Map([...winners].map(([key, p]) => [key, done.get(p) ?? { ...p, lostTo: null }])),
  };
}

// --- lookup ---------------------------------------------------------------------------------------------

/** The value with its variables expanded; null when there is none. Throws ConfigError on endless expansion. */
export function siteText(site: SiteFile, key: string, around: Surroundings): string | null {
  const property = site.effective.get(key);
  return property?.value == null ? null : expand(property.value, site, around, property);
}

const MAX_SUBSTITUTIONS = 20;

function expand(text: string, site: SiteFile, around: Surroundings, property: SiteProperty): string {
  let result = text;
  const seen = new Set<string>();
  for (let round = 0; round < MAX_SUBSTITUTIONS; round++) {
    const found = /\$\{([^}$ ]+)\}/.exec(result);
    if (found === null) return result;
    const [reference, name = ""] = found;
    const value = variable(name, around) ?? site.effective.get(name)?.value ?? null;
    // The first unknown one ends it: what follows stays literal too.
    if (value === null) return result;
    if (seen.has(reference)) return text;
    seen.add(reference);
    result = result.slice(0, found.index) + value + result.slice(found.index + reference.length);
  }
  throw new ConfigError(
    { file: property.file, ...property.valueAt },
    `Variable substitution depth too large: ${MAX_SUBSTITUTIONS} ${text}`,
    "Write the value without variables.",
  );
}

function variable(name: string, around: Surroundings): string | null {
  if (!name.startsWith("env.") || name.length === 4) return around.systemProperties[name] ?? null;
  const [, variableName = "", operator, fallback = ""] = /^env\.(.*?)(?:(:-|-)(.*))?$/s.exec(name) ?? [];
  const value = around.environment[variableName] ?? null;
  if (operator === ":-") return value === null || value === "" ? fallback : value;
  return operator === "-" ? (value ?? fallback) : value;
}

/** A number-format error: the text Java names, and where it stands. */
export interface BadNumber {
  readonly kind: "badNumber";
  readonly message: string;
  readonly property: SiteProperty | null;
}

/** int64 of a key, or null when it has no value. */
export function siteInt64(site: SiteFile, key: string, around: Surroundings): bigint | BadNumber | null {
  const text = siteText(site, key, around);
  if (text === null) return null;
  const trimmed = javaTrim(text);
  const [, sign, hex] = /^(-?)0[xX](.*)$/s.exec(trimmed) ?? [];
  const digits = hex === undefined ? trimmed : `${sign ?? ""}${hex}`;
  const value = parseInt64(digits, hex === undefined ? 10 : 16);
  if (value !== null) return value;
  const message = numberFormatMessage(digits, hex === undefined ? 10 : 16);
  return { kind: "badNumber", message, property: site.effective.get(key) ?? null };
}

/** `true` or `false` in any case; null for anything else, which is as good as nothing. */
export function siteBoolean(site: SiteFile, key: string, around: Surroundings): boolean | null {
  const text = siteText(site, key, around);
  if (text === null) return null;
  const word = javaTrim(text).toLowerCase();
  return word === "true" ? true : word === "false" ? false : null;
}
