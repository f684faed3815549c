/**
 * What the builders of a scenario have in common: where the file is, the names that one place of it gives and
 * another refers to, and what a reader is told of one that does not exist.
 */
import { isAbsolute, resolve } from "node:path";
import { nearestName } from "./nearest-name.ts";
import type { ClusterSpec, Route } from "./scenario.ts";
import { backendsOf, coordinatorsOf, findHost, hostNameOf } from "./scenario-cluster.ts";
import type { Path, ScenarioSource } from "./scenario-issues.ts";

/** `base`: folder that relative paths start from; `defaultName`: when the file gives none. */
export interface BuildContext {
  readonly source: ScenarioSource;
  readonly base: string;
  readonly defaultName: string;
}

/** Relative paths start from the scenario's folder. */
export const absolute = (base: string, path: string): string => (isAbsolute(path) ? path : resolve(base, path));

/** The names that other places of the file may refer to. */
export class Names {
  readonly classes: readonly string[];
  readonly #cluster: ClusterSpec;
  readonly #source: ScenarioSource;

  constructor(cluster: ClusterSpec, classes: readonly string[], source: ScenarioSource) {
    this.#cluster = cluster;
    this.classes = classes;
    this.#source = source;
  }

  classIndex(name: string, path: Path): number {
    const index = this.classes.indexOf(name);
    if (index >= 0) return index;
    return this.#source.fail(path, `unknown query class "${name}"`, nearestRemedy(name, this.classes));
  }

  address(name: string, path: Path): string {
    return this.#host(name, path, () => true, "host");
  }

  coordinator(name: string, path: Path): string {
    return this.#host(name, path, (isCoordinator) => isCoordinator, "coordinator");
  }

  #host(name: string, path: Path, suits: (isCoordinator: boolean) => boolean, what: string): string {
    const backends = backendsOf(this.#cluster);
    const found = findHost(backends, name);
    if (found !== null && suits(found.isCoordinator)) return found.address;
    const known = backends.filter((b) => suits(b.isCoordinator)).map((b) => hostNameOf(b.address));
    return this.#source.fail(
      path,
      `"${name}" is no ${what} of this cluster. Expected ${listed(known)}`,
      nearestRemedy(name, known),
    );
  }
}

export function buildRoute(text: string, path: Path, cluster: ClusterSpec, source: ScenarioSource): Route {
  if (text === "round-robin" || text === "random") return { kind: text };
  const backends = backendsOf(cluster);
  const found = findHost(backends, text);
  if (found?.isCoordinator) return { kind: "named", host: found.address };
  const known = coordinatorsOf(backends).map(hostNameOf);
  return source.fail(
    path,
    `${String(path.at(-1))} "${text}" is no coordinator of this cluster. Expected round-robin, random, or one of ${listed(known)}`,
    nearestRemedy(text, ["round-robin", "random", ...known]),
  );
}

const LISTED_AT_MOST = 6;

const listed = (names: readonly string[]): string =>
  names.length <= LISTED_AT_MOST
    ? names.join(", ")
    : `${names.slice(0, LISTED_AT_MOST - 1).join(", ")}, ... ${names.at(-1)}`;

export function nearestRemedy(name: string, known: readonly string[]): string {
  const near = nearestName(name, known);
  return near === null ? `Known: ${listed(known)}.` : `Did you mean "${near}"?`;
}
