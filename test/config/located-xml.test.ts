import { describe, expect, test } from "vitest";
import { parseLocatedXml, type XmlElement } from "../../src/config/located-xml.ts";
import { MAX_DEPTH } from "../../src/config/xml-syntax.ts";
import { configError } from "./fixtures.ts";

const bytes = (text: string, encoding: BufferEncoding = "utf8"): Uint8Array => Buffer.from(text, encoding);
const parse = (source: Uint8Array | string, dialect: "xerces" | "woodstox" = "xerces"): XmlElement =>
  parseLocatedXml(typeof source === "string" ? bytes(source) : source, "file.xml", dialect).root;

/** `name(children)`: texts in quotes, CDATA as [text], instructions as ?. */
const shape = (e: XmlElement): string =>
  `${e.name}(${e.children
    .map((c) => {
      if (c.kind === "element") return shape(c);
      if (c.kind === "instruction") return "?";
      return c.kind === "text" ? JSON.stringify(c.data) : `[${c.data}]`;
    })
    .join(" ")})`;

describe("pool-configuration 1.1: the tree as Java's parser builds it", () => {
  test.each([
    ["comments go and the texts around them are one", "<a>1024 <!-- x -->mb</a>", 'a("1024 mb")'],
    ["a comment alone leaves nothing", "<a><!-- x --></a>", "a()"],
    ["CDATA is a node of its own", "<a>x<![CDATA[y]]>z</a>", 'a("x" [y] "z")'],
    ["an empty CDATA section is one too", "<a><![CDATA[]]></a>", "a([])"],
    ["an instruction is a node", "<a><?pi it's?>x</a>", 'a(? "x")'],
    ["nothing is trimmed", "<a> \n\tx </a>", 'a(" \\n\\tx ")'],
    ["line breaks are line feeds", "<a>1\r\n2\r3</a>", 'a("1\\n2\\n3")'],
    ["character references and the five entities", "<a>&#65;&#x42;&lt;&gt;&amp;&apos;&quot;</a>", 'a("AB<>&\'\\"")'],
    ["a reference to a carriage return stays one", "<a>&#13;</a>", 'a("\\r")'],
    ["entities are joined with what stands around", '<!DOCTYPE a [<!ENTITY e "y">]><a>x&e;z</a>', 'a("xyz")'],
    ["markup in an entity becomes nodes", '<!DOCTYPE a [<!ENTITY e "<b>y</b>">]><a>x&e;</a>', 'a("x" b("y"))'],
    ["an entity in an entity", '<!DOCTYPE a [<!ENTITY f "1"><!ENTITY e "&f;2">]><a>&e;</a>', 'a("12")'],
    ["the first declaration of an entity counts", '<!DOCTYPE a [<!ENTITY e "1"><!ENTITY e "2">]><a>&e;</a>', 'a("1")'],
    ["an empty entity leaves nothing", '<!DOCTYPE a [<!ENTITY e "">]><a>&e;</a>', "a()"],
    ["prefixes stay in names", "<y:a><y:b/></y:a>", "y:a(y:b())"],
    ["a byte order mark is accepted", "\ufeff<a/>", "a()"],
    [
      "names that are special to JavaScript",
      "<a><constructor/><prototype/><__proto__/></a>",
      "a(constructor() prototype() __proto__())",
    ],
  ])("%s", (_, source, expected) => {
    expect(shape(parse(source))).toBe(expected);
  });

  test("attribute values: written white space becomes blanks, referenced white space stays", () => {
    const { attributes } = parse('<!DOCTYPE a [<!ENTITY e "q\tr">]><a b="1\n2&#10;3&e;" __proto__="4"/>');
    expect(attributes.get("b")?.value).toBe("1 2\n3q r");
    expect(attributes.get("__proto__")?.value).toBe("4");
  });

  test("an attribute that only the document type gives", () => {
    const root = parse('<!DOCTYPE a [<!ATTLIST b c CDATA "d">]><a><b/><b c="e"/></a>');
    expect(root.children.map((c) => (c.kind === "element" ? c.attributes.get("c")?.value : null))).toEqual(["d", "e"]);
  });

  test.each([
    ["UTF-16 with its mark", Buffer.concat([Buffer.from([0xff, 0xfe]), bytes("<a>ä</a>", "utf16le")]), 'a("ä")'],
    ["Latin-1 that says so", bytes('<?xml version="1.0" encoding="ISO-8859-1"?><a>ä</a>', "latin1"), 'a("ä")'],
    ["UTF-8 by default", bytes("<a>ä€😀</a>"), 'a("ä€😀")'],
  ])("encodings: %s", (_, source, expected) => {
    expect(shape(parse(source))).toBe(expected);
  });
});

describe("places", () => {
  test("elements, texts and attributes know their line and column", () => {
    const root = parse('<?xml version="1.0"?>\r\n<a>\r\n  <b\r\n   c="1">x<!-- \r\n -->y</b><d/>\r\n</a>');
    const [, b, d] = root.children;
    expect(b).toMatchObject({ name: "b", at: { line: 3, column: 3 } });
    expect(b?.kind === "element" && b.attributes.get("c")?.at).toEqual({ line: 4, column: 4 });
    expect(b?.kind === "element" && b.children[0]?.at).toEqual({ line: 4, column: 10 });
    expect(d).toMatchObject({ name: "d", at: { line: 5, column: 10 } });
  });

  test("what an entity brings stands where it is used", () => {
    const root = parse('<!DOCTYPE a [\n<!ENTITY e "<b/>">\n]>\n<a>\n &e;</a>');
    expect(root.children[1]).toMatchObject({ name: "b", at: { line: 5, column: 2 } });
  });
});

describe("F01: what Java refuses is refused, with line and message", () => {
  test.each([
    ["empty", "", 1, "Premature end of file."],
    ["only blanks", " \n ", 2, "Premature end of file."],
    [
      "a newline before the declaration",
      '\n<?xml version="1.0"?><a/>',
      2,
      "The processing instruction target matching",
    ],
    ["declaration without its ?", '<?xml version="1.0"><a/>', 1, 'The XML declaration must end with "?>".'],
    ["two roots", "<a/>\n<b/>", 2, "The markup in the document following the root element must be well-formed."],
    ["text after the root", "<a/>\nx", 2, "Content is not allowed in trailing section."],
    ["text before the root", "x<a/>", 1, "Content is not allowed in prolog."],
    [
      "wrong end tag",
      "<a>\n<value>5</objectValue>\n</a>",
      2,
      'The element type "value" must be terminated by the matching end-tag "</value>".',
    ],
    ["no end tag", "<a>\n<b>\n</a>", 3, 'The element type "b" must be terminated'],
    ["end of file inside", "<a>\n<b>", 2, "XML document structures must start and end within the same entity."],
    ["attribute without quotes", "<a b=c/>", 1, 'Open quote is expected for attribute "b"'],
    ["attribute without value", "<a b/>", 1, 'Attribute name "b" associated with an element type "a" must be followed'],
    ["attribute twice", '<a b="1" b="2"/>', 1, 'Attribute "b" was already specified for element "a".'],
    ["no blank before an attribute", '<queuename="x"/>', 1, 'Element type "queuename" must be followed by'],
    ["< in an attribute", '<a b="<"/>', 1, "must not contain the '<' character."],
    ["nested comment", "<a><!-- <!-- x --> --></a>", 1, 'The string "--" is not permitted within comments.'],
    ["bare ampersand", "<a>R&D</a>", 1, "The reference to entity \"D\" must end with the ';' delimiter."],
    ["ampersand and blank", "<a>a & b</a>", 1, "The entity name must immediately follow the '&'"],
    ["unknown entity", "<a>\n&nbsp;</a>", 2, 'The entity "nbsp" was referenced, but not declared.'],
    ["recursive entity", '<!DOCTYPE a [<!ENTITY e "&e;">]><a>&e;</a>', 1, "Recursive entity reference"],
    ["]]> in text", "<a>]]></a>", 1, 'The character sequence "]]>" must not appear in content'],
    ["control character", "<a>\u0001</a>", 1, "An invalid XML character (Unicode: 0x1)"],
    ["version 2.0", '<?xml version="2.0"?><a/>', 1, 'XML version "2.0" is not supported'],
    [
      "external entity",
      '<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]><a>&e;</a>',
      1,
      "stands for another file",
    ],
    ["external document type", '<!DOCTYPE a SYSTEM "a.dtd"><a/>', 1, "stands in another file"],
  ])("%s", (_, source, line, problem) => {
    const error = configError(() => parse(source));
    expect(error.problem).toContain(problem);
    expect(error).toMatchObject({ file: "file.xml", line });
    expect(error.remedy).not.toBe("");
  });

  test("the element that waits to be closed is named in the remedy", () => {
    expect(configError(() => parse("<a>\n<b>\n<c/></a>")).remedy).toBe("Close <b>, opened in line 2.");
  });

  test.each([
    [
      "a byte that is no UTF-8",
      Buffer.concat([bytes("<a>\n"), Buffer.from([0xff]), bytes("</a>")]),
      2,
      "Invalid byte 1 of 1-byte UTF-8 sequence.",
    ],
    [
      "half a character",
      Buffer.concat([bytes("<a>"), Buffer.from([0xe2, 0x82]), bytes("</a>")]),
      1,
      "Invalid byte 3 of 3-byte UTF-8 sequence.",
    ],
    ["Latin-1 without saying so", bytes("<a>\n\nä</a>", "latin1"), 3, "Invalid byte 2 of 3-byte UTF-8 sequence."],
    ["above 127 in US-ASCII", bytes('<?xml version="1.0" encoding="US-ASCII"?>\n<a>ä</a>'), 2, "a byte above 127"],
    ["an encoding nobody knows", bytes('<?xml version="1.0" encoding="EBCDIC-17"?><a/>'), 1, "is not supported"],
    [
      "UTF-16 that says UTF-8",
      Buffer.concat([Buffer.from([0xff, 0xfe]), bytes('<?xml version="1.0" encoding="UTF-8"?><a/>', "utf16le")]),
      1,
      "UTF-16LE",
    ],
  ])("%s", (_, source, line, problem) => {
    const error = configError(() => parse(source));
    expect(error.problem).toContain(problem);
    expect(error.line).toBe(line);
  });
});

describe("S01: the site file's parser wants declared prefixes", () => {
  test.each([
    ["<x:a/>", 'Undeclared namespace prefix "x"'],
    ['<a xmlns:x="u"><x:b/></a>', null],
    ['<a><b xmlns:x="u"/><x:c/></a>', 'Undeclared namespace prefix "x"'],
    ['<a x:b="1"/>', 'Undeclared namespace prefix "x"'],
    ["<a><value>5</objectValue></a>", "Unexpected close tag </objectValue>; expected </value>."],
    ["", "Unexpected EOF in prolog"],
    ["<a/><b/>", "Illegal to have multiple roots (start tag in epilog?)."],
  ])("%s", (source, problem) => {
    if (problem === null) expect(parse(source, "woodstox").name).toBe("a");
    else expect(configError(() => parse(source, "woodstox")).problem).toBe(problem);
  });
});

describe("whatever is in it, a file is refused or read quickly", () => {
  const tenMegabytes = 10 * 1024 * 1024;

  test.each([
    ["zeros", Buffer.alloc(tenMegabytes)],
    ["the same letter", Buffer.alloc(tenMegabytes, "x")],
    ["open tags", Buffer.alloc(tenMegabytes, "<a>")],
    ["ampersands in an element", Buffer.concat([bytes("<a>"), Buffer.alloc(tenMegabytes, "&")])],
    ["digits in an element", Buffer.concat([bytes("<a>"), Buffer.alloc(tenMegabytes, "1")])],
    ["bytes above 127", Buffer.alloc(tenMegabytes, 0xfe)],
  ])("10 MB of %s", (_, source) => {
    expect(configError(() => parse(source)).line).toBe(1);
  });

  test("entities that blow up stop at the JDK's limit", () => {
    const levels = Array.from({ length: 9 }, (_, i) => `<!ENTITY e${i + 1} "${`&e${i};`.repeat(10)}">`).join("");
    const source = `<!DOCTYPE a [<!ENTITY e0 "x">${levels}]><a>&e9;</a>`;
    expect(configError(() => parse(source)).problem).toContain('more than "64000" entity expansions');
  });

  test("nesting is bounded", () => {
    const nested = (depth: number) => "<a>".repeat(depth) + "</a>".repeat(depth);
    expect(parse(nested(MAX_DEPTH)).name).toBe("a");
    expect(configError(() => parse(nested(MAX_DEPTH + 1))).problem).toContain("nested more than 1000 deep");
  });
});
