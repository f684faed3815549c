import { mkdtempSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type FileAccess, type LogLine, PoolService, REAL_FILES } from "../../src/config/pool-service.ts";
import { DEFAULT_SETTINGS } from "../../src/config/pool-settings.ts";
import { configError, queue, siteText } from "./fixtures.ts";

const { flags, groups, around, physicalMemory } = DEFAULT_SETTINGS;
const settings = { flags, groups, around, physicalMemory };
const FAIR = "/conf/fair-scheduler.xml";
const SITE = "/conf/llama-site.xml";
const START = 1_000_000;

/** A folder in memory; every write says when it happened. */
class Files implements FileAccess {
  readonly #files = new Map<string, { text: string; modified: number }>();

  write(path: string, text: string, modified: number): void {
    this.#files.set(path, { text, modified });
  }

  remove(path: string): void {
    this.#files.delete(path);
  }

  modified(path: string): number {
    return this.#files.get(path)?.modified ?? 0;
  }

  read(path: string): Uint8Array {
    const found = this.#files.get(path);
    if (found === undefined) throw new Error("ENOENT");
    return new TextEncoder().encode(found.text);
  }
}

const memory = (mb: number): string =>
  `<allocations>${queue(`<maxResources>${mb} mb, 0 vcores</maxResources>`)}</allocations>`;
const BROKEN = "<allocations><queue></allocations>";

function start(files: Files, llamaSite: string | null = null) {
  const log: LogLine[] = [];
  const paths = { fairScheduler: FAIR, llamaSite };
  const service = new PoolService({ paths, files, log: (line) => log.push(line), settings }, START);
  return { service, log, texts: () => log.map((line) => line.text) };
}

/** MiB of root.a, or the error of the lookup. */
const mb = (service: PoolService): number | string => {
  const found = service.lookUp("root.a");
  return found.kind === "found" ? found.config.maxMemResources / 1024 / 1024 : found.error;
};
const running = (service: PoolService): number | string => {
  const found = service.lookUp("root.a");
  return found.kind === "found" ? found.config.maxRequests : found.error;
};

describe("pool-configuration 4.1: the allocation file", () => {
  let files: Files;
  beforeEach(() => {
    files = new Files();
    files.write(FAIR, memory(1), START - 100_000);
  });

  test("a change is noticed at a check, when it has rested for more than 5 s", () => {
    const { service } = start(files);
    files.write(FAIR, memory(2), START + 5_000);
    service.check(START + 9_999);
    service.check(START + 10_000);
    expect(mb(service)).toBe(1); // exactly 5 s old
    service.check(START + 19_999);
    expect(mb(service)).toBe(1); // no check is due
    expect(service.check(START + 20_000)).toBe(true);
    expect(mb(service)).toBe(2);
  });

  test("one millisecond more than 5 s is enough", () => {
    const { service } = start(files);
    files.write(FAIR, memory(2), START + 4_999);
    service.check(START + 10_000);
    expect(mb(service)).toBe(2);
  });

  test("a file that is touched all the time is never read", () => {
    const { service } = start(files);
    for (let i = 1; i <= 20; i++) {
      files.write(FAIR, memory(2), START + i * 10_000 - 5_000);
      service.check(START + i * 10_000);
    }
    expect(mb(service)).toBe(1);
  });

  test("an older file put in its place is not noticed", () => {
    const { service } = start(files);
    files.write(FAIR, memory(2), START - 1);
    service.check(START + 10_000);
    files.write(FAIR, memory(2), START);
    service.check(START + 20_000);
    expect(mb(service)).toBe(1);
  });

  test("ten seconds pass between the end of one check and the next", () => {
    const { service } = start(files);
    service.check(START + 14_000);
    expect(service.nextCheck).toBe(START + 24_000);
  });

  test("a broken file leaves the old in force, is told once, and is tried again", () => {
    const { service, log } = start(files);
    files.write(FAIR, BROKEN, START + 1);
    for (let i = 1; i <= 3; i++) service.check(START + i * 10_000);
    expect(mb(service)).toBe(1);
    const errors = log.filter((line) => line.level === "error");
    expect(errors).toHaveLength(1);
    expect(errors[0]?.text).toContain("Failed to reload fair scheduler config file - will use existing allocations.");
    files.write(FAIR, memory(3), START + 2);
    service.check(START + 40_000);
    expect(mb(service)).toBe(3);
  });

  test("a missing file is told once", () => {
    const { service, texts } = start(files);
    files.remove(FAIR);
    service.check(START + 10_000);
    service.check(START + 20_000);
    const missing = "Failed to reload fair scheduler config file because last modified returned 0. File exists: false";
    expect(texts().filter((text) => text === missing)).toHaveLength(1);
    expect(mb(service)).toBe(1);
  });

  test("the log of a load, warnings between its two lines", () => {
    files.write(FAIR, "<allocations><odd/></allocations>", START - 1);
    expect(start(files).texts()).toEqual([
      `Loading allocation file ${FAIR}`,
      "Bad element in allocations file: odd",
      `Completed loading allocation file ${FAIR}`,
    ]);
  });

  test("at start a missing or broken file aborts, and nothing waits 5 s", () => {
    files.write(FAIR, memory(9), START);
    expect(mb(start(files).service)).toBe(9);
    files.write(FAIR, BROKEN, START);
    expect(configError(() => start(files)).line).toBe(1);
    files.remove(FAIR);
    expect(configError(() => start(files)).problem).toBe(`Unable to find allocation configuration file: ${FAIR}`);
  });
});

describe("pool-configuration 4.2: the site file", () => {
  const placed = (n: string) => siteText({ "placed.root.a": n });
  const BAD_SITE = "<configuration><property><name>x</name><value>1</objectValue></property></configuration>";
  let files: Files;
  beforeEach(() => {
    files = new Files();
    files.write(FAIR, `<allocations>${queue("<onlyCoordinators>true</onlyCoordinators>")}</allocations>`, START - 1);
    files.write(SITE, placed("1"), START - 1);
  });

  test("a change needs no rest and is in force at the next check", () => {
    const { service } = start(files, SITE);
    expect(running(service)).toBe(1);
    files.write(SITE, placed("2"), START + 9_999);
    service.check(START + 9_999);
    expect(running(service)).toBe(1);
    service.check(START + 10_000);
    expect(running(service)).toBe(2);
  });

  test("checks come at a fixed rate", () => {
    const { service } = start(files, SITE);
    service.check(START + 14_000);
    expect(service.nextCheck).toBe(START + 20_000);
  });

  test("an older file is not noticed, a newer one with old content is", () => {
    const { service } = start(files, SITE);
    expect(running(service)).toBe(1);
    files.write(SITE, placed("2"), START - 1);
    service.check(START + 10_000);
    expect(running(service)).toBe(1);
    files.write(SITE, placed("2"), START);
    service.check(START + 20_000);
    expect(running(service)).toBe(2);
  });

  test("it is read at the first lookup after the change, not at the check", () => {
    const { service } = start(files, SITE);
    files.write(SITE, placed("2"), START + 1);
    service.check(START + 10_000);
    files.write(SITE, placed("3"), START + 1);
    expect(running(service)).toBe(3);
  });

  test("broken: one lookup fails, then every key is built in until the file changes again", () => {
    const { service } = start(files, SITE);
    expect(running(service)).toBe(1);
    files.write(SITE, BAD_SITE, START + 1);
    service.check(START + 10_000);
    expect(running(service)).toMatch(
      /^RuntimeException: com\.ctc\.wstx\.exc\.WstxParsingException: Unexpected close tag <\/objectValue>; expected <\/value>\.\n at \[row,col,system-id\]: \[1,/,
    );
    expect(running(service)).toBe(-1);
    service.check(START + 20_000);
    expect(running(service)).toBe(-1);
    files.write(SITE, placed("4"), START + 2);
    service.check(START + 30_000);
    expect(running(service)).toBe(4);
  });

  test("a broken file does not keep the daemon from starting, and onlyCoordinators counts all the same", () => {
    files.write(SITE, BAD_SITE, START - 1);
    const { service } = start(files, SITE);
    expect(service.lookUp("root.a").kind).toBe("failed");
    expect(service.lookUp("root.a")).toMatchObject({ kind: "found", config: { onlyCoordinators: true } });
  });

  test("a file that goes away keeps its values and is told once", () => {
    const { service, texts } = start(files, SITE);
    expect(running(service)).toBe(1);
    files.remove(SITE);
    service.check(START + 10_000);
    service.check(START + 20_000);
    expect(running(service)).toBe(1);
    expect(texts().filter((text) => text === `File does not exist: ${SITE}`)).toHaveLength(1);
  });

  test("a file that vanishes between check and lookup counts as broken", () => {
    const { service } = start(files, SITE);
    running(service);
    files.write(SITE, placed("2"), START + 1);
    service.check(START + 10_000);
    files.remove(SITE);
    expect(running(service)).toContain("RuntimeException: java.io.FileNotFoundException");
    expect(running(service)).toBe(-1);
  });

  test("at start a missing file aborts", () => {
    files.remove(SITE);
    expect(configError(() => start(files, SITE)).problem).toBe(`Unable to find configuration file: ${SITE}`);
  });

  test("a reload of the allocation file leaves the site's values alone", () => {
    const { service } = start(files, SITE);
    running(service);
    files.write(FAIR, memory(7), START + 1);
    service.check(START + 10_000);
    expect([mb(service), running(service)]).toEqual([7, 1]);
  });
});

describe("without an allocation file", () => {
  test("there is nothing to watch and one pool", () => {
    const service = new PoolService(
      { paths: { fairScheduler: null, llamaSite: SITE }, files: new Files(), log: () => undefined, settings },
      START,
    );
    expect(service.nextCheck).toBe(Number.POSITIVE_INFINITY);
    expect(service.check(START + 10_000)).toBe(false);
    expect(service.resolve("x", "u")).toMatchObject({ pool: "default-pool" });
  });
});

describe("on real files, the clock driven by hand", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "waterhole-pools-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** `at` in whole seconds, so that every file system keeps it. */
  const write = (name: string, text: string, at: number): string => {
    const path = join(folder, name);
    writeFileSync(path, text);
    utimesSync(path, at / 1000, at / 1000);
    return path;
  };

  test("both files are reloaded, a broken one keeps what was, a file moved into place counts by its own time", () => {
    const t0 = 1_700_000_000_000;
    const fairScheduler = write("fair-scheduler.xml", memory(1), t0 - 60_000);
    const llamaSite = write("llama-site.xml", siteText({ "placed.root.a": "1" }), t0 - 60_000);
    const paths = { fairScheduler, llamaSite };
    const service = new PoolService({ paths, files: REAL_FILES, log: () => undefined, settings }, t0);
    const now = () => [mb(service), running(service)];
    expect(now()).toEqual([1, 1]);

    write("fair-scheduler.xml", memory(2), t0 + 4_000);
    write("llama-site.xml", siteText({ "placed.root.a": "2" }), t0 + 9_000);
    service.check(t0 + 10_000);
    expect(now()).toEqual([2, 2]);

    write("fair-scheduler.xml", BROKEN, t0 + 11_000);
    service.check(t0 + 20_000);
    expect(now()).toEqual([2, 2]);

    renameSync(write("prepared.xml", memory(3), t0 + 5_000), fairScheduler);
    service.check(t0 + 30_000);
    expect(now()).toEqual([2, 2]);

    renameSync(write("prepared.xml", memory(4), t0 + 31_000), fairScheduler);
    service.check(t0 + 40_000);
    expect(now()).toEqual([4, 2]);
  });
});
