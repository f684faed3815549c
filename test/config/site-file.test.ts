// biome-ignore-all lint/suspicious/noTemplateCurlyInString: that is how variables look in a site file.
import { describe, expect, test } from "vitest";
import {
  NO_SURROUNDINGS,
  parseSiteFile,
  readSiteFile,
  siteInt64,
  siteText as textOf,
} from "../../src/config/site-file.ts";
import { configError, property } from "./fixtures.ts";

const read = (text: string, files: Record<string, string> = {}) =>
  parseSiteFile(text, "/conf/llama-site.xml", (href) => {
    const found = files[href];
    return found === undefined ? null : { file: `/conf/${href}`, bytes: new TextEncoder().encode(found) };
  });
const values = (text: string, files?: Record<string, string>) =>
  Object.fromEntries([...read(text, files).effective].map(([key, p]) => [key, p.value]));
const conf = (...properties: string[]): string => `<configuration>${properties.join("")}</configuration>`;

describe("pool-configuration 2.1: Hadoop's property format", () => {
  test.each([
    ["a lone property is a file", property("k", "v"), { k: "v" }],
    ["the root's name does not matter", `<x>${property("k", "v")}</x>`, { k: "v" }],
    ["properties count at any depth", conf(`<a><b>${property("k", "v")}</b></a>`), { k: "v" }],
    [
      "prefixes do not matter",
      '<c xmlns:x="u"><x:property><x:name>k</x:name><x:value>v</x:value></x:property></c>',
      { k: "v" },
    ],
    ["names are trimmed, values are not", conf(property(" k\n", " v\n")), { k: " v\n" }],
    ["texts are joined across comments and elements", conf(property("k", "1<!-- x -->2<b>3</b>4")), { k: "1234" }],
    ["CDATA is joined", conf(property("k", "1<![CDATA[2]]>3")), { k: "123" }],
    ["entities are expanded", `<!DOCTYPE c [<!ENTITY e "x">]>${conf(property("k", "&e;y"))}`, { k: "xy" }],
    [
      "an empty value is none",
      conf(property("k", ""), "<property><name>l</name><value/></property><property><name>m</name></property>"),
      {},
    ],
    ["a blank value is one", conf(property("k", " ")), { k: " " }],
    [
      "the last value in a property",
      conf("<property><name>k</name><value>1</value><value>2</value></property>"),
      { k: "2" },
    ],
    [
      "but an empty one does not replace",
      conf("<property><name>k</name><value>1</value><value/></property>"),
      { k: "1" },
    ],
    ["a property without name is skipped", conf("<property><value>v</value></property>"), {}],
    ["the last of a name", conf(property("k", "1"), property("k", "2")), { k: "2" }],
    ["description has no effect", conf(property("k", "v", "<description>x</description>")), { k: "v" }],
    ["value before name", conf("<property><value>v</value><name>k</name></property>"), { k: "v" }],
    ["short form", conf('<property name=" k " value="v"/>'), { " k ": "v" }],
    ["short form, empty", conf('<property name="k" value=""/>'), { k: "" }],
  ])("%s", (_, text, expected) => {
    expect(values(text)).toEqual(expected);
  });

  test.each([
    ["final keeps the value", property("k", "1", "<final>true</final>"), "1"],
    ["only the exact text is final", property("k", "1", "<final> true </final>"), "2"],
    ["false is not final", property("k", "1", "<final>false</final>"), "2"],
    ["an absent value can be final", "<property><name>k</name><final>true</final></property>", undefined],
  ])("%s", (_, first, expected) => {
    expect(values(conf(first, property("k", "2"))).k).toBe(expected);
  });

  test("who lost to whom is kept", () => {
    const { properties } = read(conf(property("k", "1"), "\n", property("k", "2")));
    expect(properties.map((p) => [p.value, p.at.line, p.lostTo?.value ?? null])).toEqual([
      ["1", 1, "2"],
      ["2", 2, null],
    ]);
  });

  test("places of key and value", () => {
    const [p] = read(
      "<configuration>\n <property>\n  <name>k</name>\n  <value>v</value>\n </property>\n</configuration>",
    ).properties;
    expect(p).toMatchObject({ at: { line: 2 }, keyAt: { line: 3, column: 3 }, valueAt: { line: 4, column: 3 } });
  });
});

describe("pool-configuration 2.1: included files", () => {
  const include = (href: string, inner = "") => `<xi:include xmlns:xi="x" href="${href}">${inner}</xi:include>`;

  test("stand in the place of the include, and keep their own place", () => {
    const files = { "more.xml": conf(`\n${property("k", "2")}`) };
    expect(values(conf(property("k", "1"), include("more.xml")), files)).toEqual({ k: "2" });
    expect(
      read(conf(include("more.xml"), property("l", "3")), files).properties.map((p) => [p.key, p.file, p.at.line]),
    ).toEqual([
      ["k", "/conf/more.xml", 2],
      ["l", "/conf/llama-site.xml", 1],
    ]);
  });

  test("a missing file without fallback is an error, with one it is none", () => {
    const error = configError(() => read(conf(include("none.xml"))));
    expect(error.problem).toContain("Fetch fail on include for 'none.xml' with no fallback");
    expect(values(conf(include("none.xml", `<fallback>${property("k", "f")}</fallback>`)))).toEqual({ k: "f" });
  });

  test("a fallback that is not needed is dropped", () => {
    const text = conf(include("more.xml", `<fallback>${property("k", "f")}</fallback>`), property("l", "3"));
    expect(values(text, { "more.xml": conf(property("m", "1")) })).toEqual({ m: "1", l: "3" });
  });

  test("a circle is an error and not an endless loop", () => {
    const self = conf(include("self.xml"));
    expect(configError(() => read(self, { "self.xml": self })).problem).toContain("more than 50 deep");
  });
});

describe("pool-configuration 2.1: variables in values", () => {
  const around = { environment: { HOME: "/h", EMPTY: "" }, systemProperties: { "user.name": "impala" } };
  const expanded = (value: string, ...others: string[]) =>
    textOf(read(conf(property("k", value), ...others)), "k", around);

  test.each([
    ["${env.HOME}/x", "/h/x"],
    ["${user.name}", "impala"],
    ["${other}", "o"],
    ["${env.NONE:-d}", "d"],
    ["${env.EMPTY:-d}", "d"],
    ["${env.EMPTY-d}", ""],
    ["${env.NONE-d}", "d"],
    ["${env.NONE}", "${env.NONE}"],
    ["${none} ${other}", "${none} ${other}"],
    ["${other} ${none}", "o ${none}"],
    ["${a b} $x ${}", "${a b} $x ${}"],
    ["${twice}", "o!"],
  ])("%s reads %j", (value, expected) => {
    expect(expanded(value, property("other", "o"), property("twice", "${other}!"))).toBe(expected);
  });

  test("a variable that leads back to itself leaves the text as written", () => {
    expect(expanded("x${l}", property("l", "${m}"), property("m", "${l}"))).toBe("x${l}");
  });

  test("too many of them are an error", () => {
    const chain = Array.from({ length: 25 }, (_, i) => property(`v${i}`, `\${v${i + 1}}`));
    expect(configError(() => expanded("${v0}", ...chain, property("v25", "x"))).problem).toContain(
      "Variable substitution depth too large: 20",
    );
  });
});

describe("pool-configuration 2.4: int64", () => {
  const int = (text: string) => siteInt64(read(conf(property("k", text))), "k", NO_SURROUNDINGS);

  test.each([
    ["\n 7 \n", 7n],
    ["+5", 5n],
    ["-7", -7n],
    ["0x10", 16n],
    ["-0X1f", -31n],
    ["0x-5", -5n],
    ["007", 7n],
    ["9223372036854775807", 9223372036854775807n],
    ["-9223372036854775808", -9223372036854775808n],
    ["٣", 3n],
  ])("%j is %s", (text, value) => {
    expect(int(text)).toBe(value);
  });

  test.each([
    ["9223372036854775808", '"9223372036854775808"'],
    ["8gb", '"8gb"'],
    ["10.5", '"10.5"'],
    ["1,000", '"1,000"'],
    ["1_000", '"1_000"'],
    [" ", '""'],
    ["unlimited", '"unlimited"'],
    ["+0x10", '"+0x10"'],
    ["--5", '"--5"'],
  ])("%j is a number-format error", (text, shown) => {
    expect(int(text)).toMatchObject({ kind: "badNumber", message: `For input string: ${shown}` });
  });

  test("hexadecimal digits that are none", () => {
    expect(int("0xzz")).toMatchObject({ message: 'For input string: "zz" under radix 16' });
  });

  test("an empty short form is a bad number, an empty value element none at all", () => {
    const empty = conf('<property name="k" value=""/>');
    expect(siteInt64(read(empty), "k", NO_SURROUNDINGS)).toMatchObject({ message: 'For input string: ""' });
    expect(int("")).toBe(null);
  });
});

test("a site file that is not there", () => {
  expect(configError(() => readSiteFile("/nowhere/llama-site.xml")).message).toContain("there is no such file");
});
