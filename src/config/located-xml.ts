/**
 * A document as Java's DOM parser hands it to Impala, with the place of every element, text and attribute.
 *
 * fast-xml-parser builds the tree; it forgives much that Java refuses, so `xml-syntax.ts` has the say first and
 * nothing that it rejects gets this far. What must hold here (pool-configuration 1.1, 1.2): comments are gone and
 * the texts on both sides are one; CDATA stays a node of its own; entities are expanded where they stand, markup
 * in them included; names keep their prefix; nothing is trimmed.
 */
import { XMLParser } from "fast-xml-parser";
import { fail } from "../core/assert.ts";
import { ConfigError } from "./config-error.ts";
import { decodeXml } from "./xml-encoding.ts";
import {
  characterOf,
  checkXml,
  PREDEFINED_ENTITIES,
  type XmlDialect,
  type XmlSyntax,
  XmlSyntaxError,
} from "./xml-syntax.ts";

/** Counted from 1, in the text after the byte order mark; a tab is one column. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

export interface XmlElement {
  readonly kind: "element";
  /** With its prefix, as written. */
  readonly name: string;
  readonly attributes: ReadonlyMap<string, XmlAttribute>;
  readonly children: readonly XmlNode[];
  readonly at: Place;
}

export interface XmlAttribute {
  /** Entities expanded, line breaks and tabs turned into blanks, as XML says. */
  readonly value: string;
  readonly at: Place;
}

export interface XmlText {
  readonly kind: "text" | "cdata";
  readonly data: string;
  readonly at: Place;
}

export interface XmlInstruction {
  readonly kind: "instruction";
  readonly at: Place;
}

export type XmlNode = XmlElement | XmlText | XmlInstruction;

export interface LocatedXml {
  readonly file: string;
  readonly root: XmlElement;
}

/** Throws ConfigError with Java's message, the line and what to do. */
export function parseLocatedXml(bytes: Uint8Array, file: string, dialect: XmlDialect): LocatedXml {
  const text = decodeXml(bytes, file);
  const places = new PlaceFinder(text);
  const syntax = checked(text, file, dialect, places);
  const tree = new TreeReader(blanked(text, syntax.ignorable), syntax, (offset) => places.at(offset));
  const root = tree.topLevel().find((node) => node.kind === "element");
  if (root?.kind !== "element") return fail("a well-formed document has a root element");
  return { file, root };
}

function checked(text: string, file: string, dialect: XmlDialect, places: PlaceFinder): XmlSyntax {
  try {
    return checkXml(text, dialect);
  } catch (fault) {
    if (!(fault instanceof XmlSyntaxError)) throw fault;
    const remedy =
      fault.open === null
        ? remedyFor(fault.message)
        : `Close <${fault.open.name}>, opened in line ${places.at(fault.open.offset).line}.`;
    throw new ConfigError({ file, ...places.at(fault.offset) }, fault.message, remedy, { cause: fault });
  }
}

function remedyFor(message: string): string {
  if (/Premature end|Unexpected EOF in prolog/.test(message))
    return "The file is empty; write at least the root element.";
  if (/in prolog/.test(message))
    return "Nothing but comments may stand in front of the root element, and nothing at all in front of <?xml.";
  if (/target/.test(message)) return "Nothing may stand in front of <?xml, not even a blank line.";
  if (/following the root element|multiple roots/.test(message)) return "Put everything inside one root element.";
  if (/trailing section|epilog/.test(message)) return "Delete what follows the closing tag of the root element.";
  if (/another file/.test(message)) return "Write the text in this file.";
  if (/entity/i.test(message)) return "Write a plain & as &amp;, or declare the entity.";
  return "Mend the XML at this place.";
}

/** Same length, so that offsets stay: everything in the ranges but line feeds becomes a blank. */
function blanked(text: string, ranges: XmlSyntax["ignorable"]): string {
  let result = "";
  let done = 0;
  for (const { start, end } of ranges) {
    result += text.slice(done, start) + text.slice(start, end).replace(/[^\n]/g, " ");
    done = end;
  }
  return result + text.slice(done);
}

const TEXT = "#text";
const COMMENT = "#comment";
const CDATA = "#cdata";
/** In front of every element name, which keeps `<constructor>` and the like from being refused as unsafe keys. */
const ELEMENT = "!";

const parser = new XMLParser({
  preserveOrder: true,
  // Attributes are read from the tag itself, where their places are.
  ignoreAttributes: true,
  textNodeName: TEXT,
  commentPropName: COMMENT,
  cdataPropName: CDATA,
  trimValues: false,
  parseTagValue: false,
  processEntities: false,
  captureMetaData: true,
  transformTagName: (name) => (name.startsWith(ELEMENT) || name.startsWith("?") ? name : ELEMENT + name),
  // Else the path of every element is written out: quadratic in the nesting.
  jPath: false,
  maxNestedTags: 10_000,
});
const META: symbol = XMLParser.getMetaDataSymbol().valueOf();

/** One entry of fast-xml-parser's ordered form: a single key that says what it is, beside the offsets. */
type OrderedNode = Readonly<Record<string | symbol, unknown>>;

interface Span {
  readonly startIndex: number;
  /** Missing only for the root element of a text. */
  readonly endIndex?: number;
}

const spanOf = (node: OrderedNode): Span => node[META] as Span;
const textIn = (node: OrderedNode, key: string): string => String((node[key] as OrderedNode[])[0]?.[TEXT] ?? "");

const ATTRIBUTE = /[ \t\n]+([^ \t\n=/>]+)[ \t\n]*=[ \t\n]*(?:"([^"]*)"|'([^']*)')/y;
const TAG_NAME = /<([^ \t\n/>]+)/y;
const REFERENCE = /&(?:#(?:x([0-9a-fA-F]+)|([0-9]+))|([^;]+));/g;

/** Turns one parsed text, the document's or that of an entity with markup, into located nodes. */
class TreeReader {
  readonly #text: string;
  readonly #syntax: XmlSyntax;
  readonly #placeOf: (offset: number) => Place;

  constructor(text: string, syntax: XmlSyntax, placeOf: (offset: number) => Place) {
    this.#text = text;
    this.#syntax = syntax;
    this.#placeOf = placeOf;
  }

  topLevel(): readonly XmlNode[] {
    return this.#nodes(parser.parse(this.#text) as OrderedNode[], 0);
  }

  /** `cursor` follows the text, because only elements and instructions come with offsets. */
  #nodes(ordered: readonly OrderedNode[], cursor: number): readonly XmlNode[] {
    const list = new NodeList();
    let at = cursor;
    for (const node of ordered) {
      const key = Object.keys(node)[0] ?? "";
      if (key === TEXT) {
        const raw = String(node[TEXT]);
        this.#addText(list, raw, at);
        at += raw.length;
      } else if (key === COMMENT) at += textIn(node, key).length + "<!---->".length;
      else if (key === CDATA) {
        const data = textIn(node, key);
        list.add({ kind: "cdata", data, at: this.#placeOf(at) });
        at += data.length + "<![CDATA[]]>".length;
      } else {
        const { startIndex, endIndex } = spanOf(node);
        const isElement = key.startsWith(ELEMENT);
        if (isElement) list.add(this.#element(node[key] as OrderedNode[], startIndex));
        else if (key !== "?xml") list.add({ kind: "instruction", at: this.#placeOf(startIndex) });
        at = endIndex ?? this.#text.length;
      }
    }
    return list.nodes;
  }

  #element(children: readonly OrderedNode[], start: number): XmlElement {
    TAG_NAME.lastIndex = start;
    const name = TAG_NAME.exec(this.#text)?.[1] ?? fail("an element begins with its name");
    const attributes = new Map<string, XmlAttribute>();
    let end = TAG_NAME.lastIndex;
    ATTRIBUTE.lastIndex = end;
    for (let found = ATTRIBUTE.exec(this.#text); found !== null; found = ATTRIBUTE.exec(this.#text)) {
      end = ATTRIBUTE.lastIndex;
      const [whole, attribute = "", double, single] = found;
      const offset = found.index + whole.search(/[^ \t\n]/);
      attributes.set(attribute, { value: this.#attributeValue(double ?? single ?? ""), at: this.#placeOf(offset) });
    }
    const at = this.#placeOf(start);
    for (const [attribute, value] of this.#syntax.attributeDefaults.get(name) ?? [])
      if (!attributes.has(attribute)) attributes.set(attribute, { value: this.#attributeValue(value), at });
    const contentStart = this.#text.indexOf(">", end) + 1;
    return { kind: "element", name, attributes, children: this.#nodes(children, contentStart), at };
  }

  /** White space that is written becomes blanks; white space that comes from `&#10;` stays (XML 3.3.3). */
  #attributeValue(raw: string): string {
    return raw.replace(/[\t\n]/g, " ").replace(REFERENCE, (whole, hex, decimal, name) => {
      if (name === undefined) return characterOf([whole, hex, decimal]) ?? "";
      return PREDEFINED_ENTITIES.get(name) ?? this.#attributeValue(this.#syntax.entities.get(name) ?? "");
    });
  }

  #addText(list: NodeList, raw: string, offset: number): void {
    let done = 0;
    for (const found of raw.matchAll(REFERENCE)) {
      list.addText(raw.slice(done, found.index), () => this.#placeOf(offset + done));
      const place = () => this.#placeOf(offset + found.index);
      const [, , , name] = found;
      const plain = name === undefined ? characterOf(found) : PREDEFINED_ENTITIES.get(name);
      if (plain !== undefined) list.addText(plain ?? "", place);
      else this.#addEntity(list, this.#syntax.entities.get(name ?? "") ?? "", place());
      done = found.index + found[0].length;
    }
    list.addText(raw.slice(done), () => this.#placeOf(offset + done));
  }

  /** Everything that an entity brings is placed where it is used. */
  #addEntity(list: NodeList, replacement: string, place: Place): void {
    const inner = new TreeReader(`<e>${replacement}</e>`, this.#syntax, () => place);
    const [wrapper] = inner.topLevel();
    if (wrapper?.kind !== "element") return;
    for (const node of wrapper.children) {
      if (node.kind === "text") list.addText(node.data, () => node.at);
      else list.add(node);
    }
  }
}

/** Joins neighbouring texts, which dropped comments and expanded entities leave behind. */
class NodeList {
  readonly nodes: XmlNode[] = [];

  add(node: XmlNode): void {
    this.nodes.push(node);
  }

  addText(data: string, place: () => Place): void {
    if (data === "") return;
    const last = this.nodes.at(-1);
    if (last?.kind === "text") this.nodes[this.nodes.length - 1] = { ...last, data: last.data + data };
    else this.nodes.push({ kind: "text", data, at: place() });
  }
}

/** Line and column of an offset, by halves over the offsets at which lines begin. */
class PlaceFinder {
  readonly #lineStarts: number[] = [0];

  constructor(text: string) {
    for (let i = text.indexOf("\n"); i >= 0; i = text.indexOf("\n", i + 1)) this.#lineStarts.push(i + 1);
  }

  at(offset: number): Place {
    let low = 0;
    let high = this.#lineStarts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#lineStarts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - (this.#lineStarts[low] ?? 0) + 1 };
  }
}
