/**
 * Whether a text is well-formed XML, with Java's verdict and the place of the first fault.
 *
 * A file of its own because fast-xml-parser accepts unclosed tags, two roots, text in front of `<?xml` and much
 * else that makes Impala refuse the file (pool-configuration 1.1, 2.1). Must be linear in the text, whatever is
 * in it, and must not recurse with the nesting of elements.
 *
 * Two dialects word the common faults differently: `xerces` reads the allocation file, `woodstox` the site file.
 * Woodstox also insists on declared namespace prefixes. External entities and DTDs are refused: a pool file that
 * pulls in another file over the network is nothing an emulator should follow.
 */

export type XmlDialect = "xerces" | "woodstox";

export interface XmlSyntax {
  /** Ranges whose content carries nothing for the tree and only confuses fast-xml-parser: the document type, the
   * data of processing instructions. In text order, ends exclusive. */
  readonly ignorable: readonly { readonly start: number; readonly end: number }[];
  /** General entities declared in the document, as replacement text. */
  readonly entities: ReadonlyMap<string, string>;
  /** Element -> attribute -> value that an ATTLIST gives when none is written. */
  readonly attributeDefaults: ReadonlyMap<string, ReadonlyMap<string, string>>;
}

/** The first fault; offsets count in the text that was checked. */
export class XmlSyntaxError extends Error {
  override readonly name = "XmlSyntaxError";
  readonly offset: number;
  /** The element that waits to be closed, where that is the fault. */
  readonly open: { readonly name: string; readonly offset: number } | null;

  constructor(offset: number, message: string, open: { name: string; offset: number } | null = null) {
    super(message);
    this.offset = offset;
    this.open = open;
  }
}

/** Elements inside one another; Java has no such bound, its own recursion ends somewhere above. */
export const MAX_DEPTH = 1000;
/** The JDK's own two limits against entities that blow up. */
const MAX_EXPANSIONS = 64_000;
const MAX_EXPANDED_SIZE = 50_000_000;

// Java's parser goes by the fourth edition of XML: letters, not everything that later editions let in.
const NAME = /[:_\p{L}\p{Nl}][:_\-.\p{L}\p{Nl}\p{Nd}\p{M}\u00B7]*/uy;
const SPACE = /[ \t\n]+/y;
const NOT_XML_CHARACTER = /[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/u;
const CHARACTER_REFERENCE = /&#(?:x([0-9a-fA-F]+)|([0-9]+));/y;
const XML_DECLARATION =
  /<\?xml[ \t\n]+version[ \t\n]*=[ \t\n]*(?:"([^"]*)"|'([^']*)')(?:[ \t\n]+encoding[ \t\n]*=[ \t\n]*(?:"[A-Za-z][\w.-]*"|'[A-Za-z][\w.-]*'))?(?:[ \t\n]+standalone[ \t\n]*=[ \t\n]*(?:"(?:yes|no)"|'(?:yes|no)'))?[ \t\n]*\?>/y;
/** Name, type, then a default value unless `#REQUIRED` or `#IMPLIED`. */
const ATTRIBUTE_DEFINITION =
  /([^ \t\n>"'<]+)[ \t\n]+(CDATA|IDREFS?|ID|ENTITY|ENTITIES|NMTOKENS?|(?:NOTATION[ \t\n]+)?\([^)]*\))[ \t\n]+(?:#REQUIRED|#IMPLIED|(?:#FIXED[ \t\n]+)?(?:"([^"<]*)"|'([^'<]*)'))/y;
const ELEMENT_DECLARATION = /<!ELEMENT[ \t\n]+[^ \t\n<>("']+[ \t\n]+(?:EMPTY|ANY|\([^<>"']*\)[?*+]?)[ \t\n]*>/y;
/** To the `>` that is not inside quotes. */
const DECLARATION = /(?:"[^"]*"|'[^']*'|[^"'>])*>/y;
export const PREDEFINED_ENTITIES: ReadonlyMap<string, string> = new Map([
  ["lt", "<"],
  ["gt", ">"],
  ["amp", "&"],
  ["apos", "'"],
  ["quot", '"'],
]);

/** Line breaks must be line feeds already. Throws XmlSyntaxError. */
export function checkXml(text: string, dialect: XmlDialect): XmlSyntax {
  const control = NOT_XML_CHARACTER.exec(text)?.index ?? Number.POSITIVE_INFINITY;
  try {
    const syntax = new Checker(text, dialect, emptyTables(), [], 0).document();
    if (control === Number.POSITIVE_INFINITY) return syntax;
  } catch (fault) {
    if (!(fault instanceof XmlSyntaxError) || fault.offset < control) throw fault;
  }
  const code = (text.codePointAt(control) ?? 0).toString(16);
  throw new XmlSyntaxError(
    control,
    `An invalid XML character (Unicode: 0x${code}) was found in the element content of the document.`,
  );
}

/** The character a match of `&#n;` or `&#xn;` stands for, null if XML does not allow it. */
export function characterOf(match: readonly (string | undefined)[]): string | null {
  const code = match[1] !== undefined ? Number.parseInt(match[1], 16) : Number.parseInt(match[2] ?? "", 10);
  if (!(code <= 0x10ffff)) return null;
  const character = String.fromCodePoint(code);
  return NOT_XML_CHARACTER.test(character) ? null : character;
}

interface OpenElement {
  readonly name: string;
  readonly offset: number;
  /** Namespace prefixes its start tag declares. */
  readonly declares: readonly string[];
}

/** What a document and the texts of its entities have in common. */
interface Tables {
  readonly entities: Map<string, string>;
  readonly external: Set<string>;
  readonly parameters: Map<string, string>;
  readonly attributeDefaults: Map<string, Map<string, string>>;
  /** Prefix -> how many open elements declare it. */
  readonly prefixes: Map<string, number>;
  expansions: number;
  expandedSize: number;
}

const emptyTables = (): Tables => ({
  entities: new Map(),
  external: new Set(),
  parameters: new Map(),
  attributeDefaults: new Map(),
  prefixes: new Map(),
  expansions: 0,
  expandedSize: 0,
});

class Checker {
  readonly #text: string;
  readonly #dialect: XmlDialect;
  readonly #shared: Tables;
  /** The entities whose text this is part of, outermost first; `%name` for parameter entities. */
  readonly #within: readonly string[];
  /** Elements already open around an entity's text. */
  readonly #depth: number;
  readonly #ignorable: { start: number; end: number }[] = [];
  #pos = 0;

  constructor(text: string, dialect: XmlDialect, shared: Tables, within: readonly string[], depth: number) {
    this.#text = text;
    this.#dialect = dialect;
    this.#shared = shared;
    this.#within = within;
    this.#depth = depth;
  }

  document(): XmlSyntax {
    if (this.#at("<?xml") && /[ \t\n]/.test(this.#text[this.#pos + 5] ?? "")) this.#xmlDeclaration();
    this.#misc("prolog");
    if (this.#at("<!DOCTYPE")) {
      this.#documentType();
      this.#misc("prolog");
    }
    if (this.#pos >= this.#text.length) this.#fail(this.#words("Premature end of file.", "Unexpected EOF in prolog"));
    if (!/^<[:_\p{L}\p{Nl}]/u.test(this.#text.slice(this.#pos, this.#pos + 3)))
      this.#fail("The markup in the document preceding the root element must be well-formed.");
    this.#content(null);
    this.#misc("trailing section");
    if (this.#pos < this.#text.length) this.#afterRoot();
    const { entities, attributeDefaults } = this.#shared;
    return { ignorable: this.#ignorable, entities, attributeDefaults };
  }

  #afterRoot(): never {
    if (this.#at("<!DOCTYPE") || this.#at("<![") || !this.#at("<"))
      return this.#fail(
        this.#words(
          "Content is not allowed in trailing section.",
          `Unexpected character ${this.#shown()} in epilog; expected '<'`,
        ),
      );
    return this.#fail(
      this.#words(
        "The markup in the document following the root element must be well-formed.",
        "Illegal to have multiple roots (start tag in epilog?).",
      ),
    );
  }

  #xmlDeclaration(): void {
    XML_DECLARATION.lastIndex = this.#pos;
    const found = XML_DECLARATION.exec(this.#text);
    if (found === null) this.#fail('The XML declaration must end with "?>".');
    const version = found[1] ?? found[2] ?? "";
    if (version !== "1.0" && version !== "1.1")
      this.#fail(`XML version "${version}" is not supported, only XML 1.0 is supported.`);
    this.#pos += found[0].length;
  }

  /** Blanks, comments and instructions between the parts of a document. */
  #misc(where: "prolog" | "trailing section"): void {
    for (;;) {
      this.#skipSpace();
      if (this.#at("<!--")) this.#comment();
      else if (this.#at("<?")) this.#instruction();
      else break;
    }
    if (where === "prolog" && this.#pos < this.#text.length && !this.#at("<"))
      this.#fail(
        this.#words(
          "Content is not allowed in prolog.",
          `Unexpected character ${this.#shown()} in prolog; expected '<'`,
        ),
      );
  }

  #comment(): void {
    const start = this.#pos;
    const end = this.#text.indexOf("--", start + 4);
    if (end < 0) this.#failAtEnd("XML document structures must start and end within the same entity.");
    if (this.#text[end + 2] !== ">")
      this.#failAt(
        end,
        this.#words(
          'The string "--" is not permitted within comments.',
          "String '--' not allowed in comment (missing '>'?)",
        ),
      );
    this.#pos = end + 3;
  }

  #instruction(): void {
    const start = this.#pos;
    this.#pos += 2;
    const target = this.#name("The processing instruction must begin with the name of the target.");
    if (target.toLowerCase() === "xml")
      this.#failAt(
        start,
        this.#words(
          'The processing instruction target matching "[xX][mM][lL]" is not allowed.',
          `Illegal processing instruction target ("${target}"); xml (case insensitive) is reserved by the specs.`,
        ),
      );
    if (!this.#at("?>") && !/[ \t\n]/.test(this.#text[this.#pos] ?? ""))
      this.#fail("White space is required between the processing instruction target and data.");
    const end = this.#text.indexOf("?>", this.#pos);
    if (end < 0) this.#failAtEnd("XML document structures must start and end within the same entity.");
    this.#ignorable.push({ start: this.#pos, end });
    this.#pos = end + 2;
  }

  /**
   * Elements and what is between them, until the element it began with is closed; with `entity`, to the end of
   * the replacement text of that entity, which must open and close its own elements.
   */
  #content(entity: string | null): void {
    const open: OpenElement[] = [];
    if (entity === null) {
      this.#startTag(open);
      if (open.length === 0) return;
    }
    for (;;) {
      const next = this.#nextMarkup();
      if (next < 0) {
        if (entity !== null && open.length === 0) return;
        this.#unclosed(open);
      }
      if (this.#at("&")) this.#referenceInContent(open.length);
      else if (this.#at("</")) {
        this.#endTag(open);
        if (open.length === 0 && entity === null) return;
      } else if (this.#at("<!--")) this.#comment();
      else if (this.#at("<![CDATA[")) this.#cdata();
      else if (this.#at("<?")) this.#instruction();
      else this.#startTag(open);
    }
  }

  /** Moves to the next `<` or `&`; what is skipped is text, in which `]]>` is forbidden. */
  #nextMarkup(): number {
    const start = this.#pos;
    let end = start;
    while (end < this.#text.length) {
      const c = this.#text.charCodeAt(end);
      if (c === 60 || c === 38) break;
      end++;
    }
    const closing = this.#text.slice(start, end).indexOf("]]>");
    if (closing >= 0)
      this.#failAt(
        start + closing,
        'The character sequence "]]>" must not appear in content unless used to mark the end of a CDATA section.',
      );
    this.#pos = end;
    return end < this.#text.length ? end : -1;
  }

  #unclosed(open: readonly OpenElement[]): never {
    const last = open.at(-1);
    return this.#failAtEnd(
      this.#words(
        "XML document structures must start and end within the same entity.",
        `Unexpected EOF; was expecting a close tag for element <${last?.name ?? ""}>`,
      ),
      last,
    );
  }

  #startTag(open: OpenElement[]): void {
    const offset = this.#pos;
    this.#pos++;
    const name = this.#name("The content of elements must consist of well-formed character data or markup.");
    const attributes = new Set<string>();
    for (;;) {
      const spaced = this.#skipSpace();
      if (this.#at("/>") || this.#at(">")) break;
      if (this.#pos >= this.#text.length) this.#unclosed([...open, { name, offset, declares: [] }]);
      if (!spaced || !this.#nameIsNext())
        this.#fail(`Element type "${name}" must be followed by either attribute specifications, ">" or "/>".`);
      this.#attribute(name, attributes);
    }
    const declares = this.#dialect === "woodstox" ? this.#checkPrefixes(name, attributes, offset) : [];
    if (this.#at("/>")) {
      this.#pos += 2;
      return;
    }
    this.#pos++;
    open.push({ name, offset, declares });
    for (const prefix of declares) this.#shared.prefixes.set(prefix, (this.#shared.prefixes.get(prefix) ?? 0) + 1);
    if (this.#depth + open.length > MAX_DEPTH) this.#failAt(offset, `elements are nested more than ${MAX_DEPTH} deep`);
  }

  /** Returns the prefixes that this tag declares; every prefix it uses must be one of them or declared around it. */
  #checkPrefixes(name: string, attributes: ReadonlySet<string>, offset: number): readonly string[] {
    const declares = [...attributes].filter((a) => a.startsWith("xmlns:")).map((a) => a.slice(6));
    for (const used of [name, ...attributes]) {
      const colon = used.indexOf(":");
      const prefix = used.slice(0, Math.max(colon, 0));
      if (prefix === "" || prefix === "xmlns" || prefix === "xml" || declares.includes(prefix)) continue;
      if ((this.#shared.prefixes.get(prefix) ?? 0) === 0)
        this.#failAt(offset, `Undeclared namespace prefix "${prefix}"`);
    }
    return declares;
  }

  #attribute(element: string, seen: Set<string>): void {
    const offset = this.#pos;
    const name = this.#name("");
    this.#skipSpace();
    if (!this.#at("="))
      this.#fail(
        `Attribute name "${name}" associated with an element type "${element}" must be followed by the ' = ' character.`,
      );
    this.#pos++;
    this.#skipSpace();
    const quote = this.#text[this.#pos];
    if (quote !== '"' && quote !== "'")
      this.#fail(`Open quote is expected for attribute "${name}" associated with an  element type  "${element}".`);
    const start = this.#pos + 1;
    const end = this.#text.indexOf(quote, start);
    if (end < 0) this.#failAtEnd("XML document structures must start and end within the same entity.");
    this.#attributeValue(start, end, name, element);
    if (seen.has(name)) this.#failAt(offset, `Attribute "${name}" was already specified for element "${element}".`);
    seen.add(name);
    this.#pos = end + 1;
  }

  #attributeValue(start: number, end: number, name: string, element: string): void {
    const value = this.#text.slice(start, end);
    const less = value.indexOf("<");
    if (less >= 0)
      this.#failAt(
        start + less,
        `The value of attribute "${name}" associated with an element type "${element}" must not contain the '<' character.`,
      );
    for (let amp = value.indexOf("&"); amp >= 0; amp = value.indexOf("&", amp + 1)) {
      this.#pos = start + amp;
      this.#referenceInAttribute(name, element);
      if (this.#pos > end) this.#failAt(start + amp, "The reference must end inside the attribute's value.");
    }
  }

  /** Java compares with the name it expects and then wants the `>`, so `</queuex>` is a `</queue` without one. */
  #endTag(open: OpenElement[]): void {
    const offset = this.#pos;
    this.#pos += 2;
    const last = open.pop();
    if (last === undefined) this.#failAt(offset, "XML document structures must start and end within the same entity.");
    if (!this.#at(last.name)) this.#wrongEndTag(offset, last);
    this.#pos += last.name.length;
    if (this.#dialect === "woodstox" && this.#nameContinues()) this.#wrongEndTag(offset, last);
    this.#skipSpace();
    if (!this.#at(">")) this.#fail(`The end-tag for element type "${last.name}" must end with a '>' delimiter.`);
    this.#pos++;
    for (const prefix of last.declares) this.#shared.prefixes.set(prefix, (this.#shared.prefixes.get(prefix) ?? 1) - 1);
  }

  #wrongEndTag(offset: number, expected: OpenElement): never {
    const found = /<\/([^\s<>/]*)/y;
    found.lastIndex = offset;
    const name = found.exec(this.#text)?.[1] ?? "";
    return this.#failAt(
      offset,
      this.#words(
        `The element type "${expected.name}" must be terminated by the matching end-tag "</${expected.name}>".`,
        `Unexpected close tag </${name}>; expected </${expected.name}>.`,
      ),
      expected,
    );
  }

  #cdata(): void {
    const end = this.#text.indexOf("]]>", this.#pos + 9);
    if (end < 0) this.#failAtEnd("XML document structures must start and end within the same entity.");
    this.#pos = end + 3;
  }

  // --- references ---------------------------------------------------------------------------------------

  #referenceInContent(open: number): void {
    const offset = this.#pos;
    const name = this.#reference();
    if (name === null || PREDEFINED_ENTITIES.has(name)) return;
    this.#expand(name, offset, open, (inner) => inner.#content(name));
  }

  #referenceInAttribute(attribute: string, element: string): void {
    const offset = this.#pos;
    const name = this.#reference();
    if (name === null || PREDEFINED_ENTITIES.has(name)) return;
    this.#expand(name, offset, 0, (inner) => inner.#attributeValue(0, inner.#text.length, attribute, element));
  }

  /** Passes `&name;` or `&#n;`; returns the name, or null for a character reference. */
  #reference(): string | null {
    const offset = this.#pos;
    this.#pos++;
    if (this.#at("#")) {
      this.#characterReference(offset);
      return null;
    }
    const name = this.#name("The entity name must immediately follow the '&' in the entity reference.");
    if (!this.#at(";")) this.#fail(`The reference to entity "${name}" must end with the ';' delimiter.`);
    this.#pos++;
    return name;
  }

  #characterReference(offset: number): void {
    CHARACTER_REFERENCE.lastIndex = offset;
    const found = CHARACTER_REFERENCE.exec(this.#text);
    if (found === null) this.#failAt(offset, "The character reference must end with the ';' delimiter.");
    if (characterOf(found) === null)
      this.#failAt(offset, `Character reference "${found[0].slice(0, -1)}" is an invalid XML character.`);
    this.#pos = offset + found[0].length;
  }

  /** An entity's replacement text is looked at where it is used, once for each use, as the JDK counts it. */
  #expand(name: string, offset: number, open: number, visit: (inner: Checker) => void): void {
    if (this.#shared.external.has(name))
      this.#failAt(offset, `The entity "${name}" stands for another file, which Waterhole does not read`);
    const text = this.#shared.entities.get(name);
    if (text === undefined)
      this.#failAt(
        offset,
        this.#words(`The entity "${name}" was referenced, but not declared.`, `Undeclared general entity "${name}"`),
      );
    if (this.#within.includes(name)) this.#failAt(offset, `Recursive entity reference "${name}".`);
    this.#shared.expansions++;
    this.#shared.expandedSize += text.length;
    if (this.#shared.expansions > MAX_EXPANSIONS)
      this.#failAt(
        offset,
        `The parser has encountered more than "${MAX_EXPANSIONS}" entity expansions in this document`,
      );
    if (this.#shared.expandedSize > MAX_EXPANDED_SIZE)
      this.#failAt(offset, `The accumulated size of entities is greater than "${MAX_EXPANDED_SIZE}"`);
    const inner = new Checker(text, this.#dialect, this.#shared, [...this.#within, name], this.#depth + open);
    try {
      visit(inner);
    } catch (fault) {
      if (fault instanceof XmlSyntaxError) this.#failAt(offset, fault.message);
      throw fault;
    }
  }

  // --- document type ------------------------------------------------------------------------------------

  #documentType(): void {
    const start = this.#pos;
    this.#pos += "<!DOCTYPE".length;
    this.#needSpace('White space is required after "<!DOCTYPE" in the document type declaration.');
    this.#name('The root element type must appear after "<!DOCTYPE" in the document type declaration.');
    this.#skipSpace();
    if (this.#at("SYSTEM") || this.#at("PUBLIC"))
      this.#fail("the document type stands in another file, which Waterhole does not read");
    if (this.#at("[")) {
      this.#pos++;
      this.#subset("]");
      this.#pos++;
      this.#skipSpace();
    }
    if (!this.#at(">")) this.#fail("The document type declaration for root element type must end with '>'.");
    this.#pos++;
    this.#ignorable.push({ start, end: this.#pos });
  }

  /** The declarations of the internal subset, or of a parameter entity's text, up to `end`. */
  #subset(end: "]" | ""): void {
    for (;;) {
      this.#skipSpace();
      if (this.#pos >= this.#text.length) {
        if (end === "") return;
        this.#failAtEnd("XML document structures must start and end within the same entity.");
      }
      if (end !== "" && this.#at(end)) return;
      if (this.#at("<!--")) this.#comment();
      else if (this.#at("<?")) this.#instruction();
      else if (this.#at("%")) this.#parameterReference();
      else if (this.#at("<!ENTITY")) this.#entityDeclaration();
      else if (this.#at("<!ATTLIST")) this.#attributeList();
      else if (this.#at("<!ELEMENT")) this.#skipDeclaration(ELEMENT_DECLARATION);
      else if (this.#at("<!NOTATION")) this.#skipDeclaration(DECLARATION);
      else
        this.#fail(
          "The markup declarations contained or pointed to by the document type declaration must be well-formed.",
        );
    }
  }

  #parameterReference(): void {
    const offset = this.#pos;
    this.#pos++;
    const name = this.#name("The entity name must immediately follow the '%' in the parameter entity reference.");
    if (!this.#at(";")) this.#fail(`The parameter entity reference "%${name};" must end with the ';' delimiter.`);
    this.#pos++;
    const text = this.#shared.parameters.get(name);
    if (text === undefined) return;
    const key = `%${name}`;
    if (this.#within.includes(key)) this.#failAt(offset, `Recursive entity reference "${name}".`);
    this.#shared.expansions++;
    if (this.#shared.expansions > MAX_EXPANSIONS)
      this.#failAt(
        offset,
        `The parser has encountered more than "${MAX_EXPANSIONS}" entity expansions in this document`,
      );
    const inner = new Checker(text, this.#dialect, this.#shared, [...this.#within, key], 0);
    try {
      inner.#subset("");
    } catch (fault) {
      if (fault instanceof XmlSyntaxError) this.#failAt(offset, fault.message);
      throw fault;
    }
  }

  #entityDeclaration(): void {
    this.#pos += "<!ENTITY".length;
    this.#needSpace('White space is required after "<!ENTITY" in the entity declaration.');
    const isParameter = this.#at("%");
    if (isParameter) {
      this.#pos++;
      this.#needSpace("White space is required between the '%' and the entity name in the entity declaration.");
    }
    const name = this.#name("The name of the entity is required in the entity declaration.");
    this.#needSpace(
      `White space is required between the entity name "${name}" and the definition in the entity declaration.`,
    );
    if (this.#at("SYSTEM") || this.#at("PUBLIC")) {
      if (!isParameter && !this.#shared.entities.has(name)) this.#shared.external.add(name);
      this.#skipDeclaration(DECLARATION);
      return;
    }
    const quote = this.#text[this.#pos];
    const end = quote === '"' || quote === "'" ? this.#text.indexOf(quote, this.#pos + 1) : -1;
    if (end < 0) this.#fail(`The definition of the entity "${name}" is required in the entity declaration.`);
    const value = this.#entityValue(this.#pos + 1, end);
    this.#pos = end + 1;
    this.#skipSpace();
    if (!this.#at(">")) this.#fail(`The declaration for the entity "${name}" must end with '>'.`);
    this.#pos++;
    const table = isParameter ? this.#shared.parameters : this.#shared.entities;
    // The first declaration counts (XML 4.2).
    if (!table.has(name) && !(this.#shared.external.has(name) && !isParameter)) table.set(name, value);
  }

  /** Character references are replaced when the entity is declared, entity references when it is used (XML 4.5). */
  #entityValue(start: number, end: number): string {
    const value = this.#text.slice(start, end);
    const percent = value.indexOf("%");
    if (percent >= 0)
      this.#failAt(
        start + percent,
        "The parameter entity reference cannot occur within markup in the internal subset of the DTD.",
      );
    this.#pos = start;
    for (let amp = value.indexOf("&"); amp >= 0; amp = value.indexOf("&", amp + 1)) {
      this.#pos = start + amp;
      this.#reference();
    }
    return value.replace(new RegExp(CHARACTER_REFERENCE.source, "g"), (...match) => characterOf(match) ?? "");
  }

  #attributeList(): void {
    const start = this.#pos;
    this.#pos += "<!ATTLIST".length;
    this.#needSpace('White space is required after "<!ATTLIST" in the attribute-list declaration.');
    const element = this.#name("The name of the element is required in the attribute-list declaration.");
    for (;;) {
      this.#skipSpace();
      if (this.#at(">")) break;
      ATTRIBUTE_DEFINITION.lastIndex = this.#pos;
      const found = ATTRIBUTE_DEFINITION.exec(this.#text);
      if (found === null) this.#failAt(start, "The attribute-list declaration must be well-formed.");
      this.#pos += found[0].length;
      const [, name = "", , double, single] = found;
      const value = double ?? single;
      if (value === undefined) continue;
      const defaults = this.#shared.attributeDefaults.get(element) ?? new Map<string, string>();
      if (!defaults.has(name)) defaults.set(name, value);
      this.#shared.attributeDefaults.set(element, defaults);
    }
    this.#pos++;
  }

  /** Content models are not looked into: nothing is validated against them. */
  #skipDeclaration(pattern: RegExp): void {
    pattern.lastIndex = this.#pos;
    const found = pattern.exec(this.#text);
    if (found === null)
      this.#fail(
        "The markup declarations contained or pointed to by the document type declaration must be well-formed.",
      );
    this.#pos += found[0].length;
  }

  // --- small steps --------------------------------------------------------------------------------------

  #at(what: string): boolean {
    return this.#text.startsWith(what, this.#pos);
  }

  #skipSpace(): boolean {
    SPACE.lastIndex = this.#pos;
    const found = SPACE.exec(this.#text);
    if (found === null) return false;
    this.#pos += found[0].length;
    return true;
  }

  #needSpace(otherwise: string): void {
    if (!this.#skipSpace()) this.#fail(otherwise);
  }

  #nameIsNext(): boolean {
    NAME.lastIndex = this.#pos;
    return NAME.test(this.#text);
  }

  #nameContinues(): boolean {
    return /[:_\-.\p{L}\p{Nd}]/u.test(this.#text[this.#pos] ?? "");
  }

  #name(otherwise: string): string {
    NAME.lastIndex = this.#pos;
    const found = NAME.exec(this.#text);
    if (found === null) this.#fail(otherwise);
    this.#pos += found[0].length;
    return found[0];
  }

  #shown(): string {
    const c = this.#text.codePointAt(this.#pos) ?? 0;
    return `'${String.fromCodePoint(c)}' (code ${c})`;
  }

  #words(xerces: string, woodstox: string): string {
    return this.#dialect === "xerces" ? xerces : woodstox;
  }

  #fail(message: string): never {
    return this.#failAt(this.#pos, message);
  }

  #failAtEnd(message: string, open?: OpenElement): never {
    return this.#failAt(this.#text.length, message, open);
  }

  #failAt(offset: number, message: string, open?: OpenElement): never {
    throw new XmlSyntaxError(offset, message, open === undefined ? null : { name: open.name, offset: open.offset });
  }
}
