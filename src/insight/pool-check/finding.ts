/**
 * What `check` can find in pool files: the catalogue of ids, and one finding (insight 1.1 to 1.5).
 *
 * The catalogue holds what is the same for every finding of an id; text about the particular file is made by the
 * rule that found it. Ids are stable: people filter by them.
 */
import type { SourcePlace } from "../../config/config-error.ts";

export type Severity = "error" | "warning" | "hint";

export interface Finding {
  readonly id: FindingId;
  readonly name: string;
  readonly severity: Severity;
  /** Every query of the pool, or of all pools, is stopped by it. */
  readonly stops: boolean;
  readonly file: string;
  readonly line: number | null;
  readonly column: number | null;
  /** null: it is not about one pool. */
  readonly pool: string | null;
  /** What is written there. */
  readonly found: string;
  /** What Impala does with it. */
  readonly effect: string;
  /** Where the rule stands. */
  readonly rule: string;
  readonly remedy: string;
}

interface CatalogueEntry {
  readonly name: string;
  readonly severity: Severity;
  readonly stops: boolean;
  readonly rule: string;
}

const error = (name: string, rule: string): CatalogueEntry => ({ name, severity: "error", stops: false, rule });
const warning = (name: string, rule: string): CatalogueEntry => ({ name, severity: "warning", stops: false, rule });
const hint = (name: string, rule: string): CatalogueEntry => ({ name, severity: "hint", stops: false, rule });
const stopping = (entry: CatalogueEntry): CatalogueEntry => ({ ...entry, stops: true });

export const CATALOGUE = {
  F01: error("not-loadable-xml", "pool-configuration 1.1"),
  F02: error("value-missing", "pool-configuration 1.2"),
  F03: error("bad-type", "pool-configuration 1.3, 1.5"),
  F04: warning("unknown-element", "pool-configuration 1.3, 1.5"),
  F05: hint("no-effect", "pool-configuration 1.3, 1.5"),
  F06: warning("maxrunningapps", "pool-configuration 1.5"),
  F07: error("bad-queue-name", "pool-configuration 1.4"),
  F08: warning("root-variant", "pool-configuration 1.4"),
  F09: warning("queue-twice", "pool-configuration 1.4"),
  F10: warning("queue-tag-suffix", "pool-configuration 1.4"),
  F11: warning("limit-not-inherited", "pool-configuration 1.5, T-51"),
  R01: error("no-vcores", "pool-configuration 1.5.1, T-46"),
  R02: error("no-mb", "pool-configuration 1.5.1"),
  R03: warning("glued-number", "pool-configuration 1.5.1"),
  R04: warning("fraction-dropped", "pool-configuration 1.5.1"),
  R05: stopping(warning("memory-zero", "REJ-A2")),
  R06: warning("memory-unlimited", "ADM-4, ADM-5, T-15"),
  R07: warning("min-becomes-max", "pool-configuration 1.5.2"),
  R08: stopping(warning("memory-below-floor", "MEM-3, REJ-B7")),
  A01: warning("root-open", "pool-configuration 1.6, T-48"),
  A02: warning("acl-wider-above", "pool-configuration 1.6"),
  A03: warning("acl-comma-blank", "pool-configuration 1.6"),
  A04: warning("acl-line-break", "pool-configuration 1.6"),
  A05: warning("acl-star-in-list", "pool-configuration 1.6"),
  A06: warning("acl-groups-as-users", "pool-configuration 1.6"),
  A07: stopping(warning("acl-nobody", "admission 1.5")),
  P01: warning("no-policy", "pool-configuration 1.8"),
  P02: warning("policy-misplaced", "pool-configuration 1.3, 1.5"),
  P03: error("rule-invalid", "pool-configuration 1.8"),
  P04: error("rule-order", "pool-configuration 1.8"),
  P05: warning("rule-creates", "pool-configuration 1.8"),
  P06: warning("create-text", "pool-configuration 1.8"),
  P07: warning("default-undeclared", "pool-configuration 1.8"),
  P08: hint("no-rights-fallback", "T-47"),
  Q01: error("quota-malformed", "pool-configuration 1.7"),
  Q02: error("quota-order", "pool-configuration 1.7, T-33"),
  Q03: warning("quota-level", "pool-configuration 1.7"),
  Q04: warning("quota-no-effect", "pool-configuration 1.7"),
  Q05: warning("quota-bars", "pool-configuration 1.7"),
  Q06: hint("quota-group-meaning", "admission 8.2, T-32"),
  Q07: warning("quota-not-returned", "T-28, T-29"),
  S01: error("site-malformed", "pool-configuration 4.2"),
  S02: stopping(error("site-number", "pool-configuration 2.4")),
  S03: warning("site-value-dropped", "pool-configuration 2.1, 2.4"),
  S04: warning("key-without-root", "pool-configuration 2.2"),
  S05: warning("key-undeclared-pool", "pool-configuration 2.2"),
  S06: warning("key-unknown", "pool-configuration 2.1, 6"),
  S07: warning("key-not-inherited", "pool-configuration 2.2"),
  S08: warning("option-string", "pool-configuration 2.5"),
  S09: warning("site-alone", "pool-configuration 3.1, 5"),
  L01: stopping(warning("queued-zero", "REJ-A5, T-1")),
  L02: stopping(warning("placed-zero", "REJ-A1")),
  L03: warning("timeout-zero", "T-5"),
  L04: warning("timeout-seconds", "pool-configuration 2.2"),
  L05: stopping(warning("min-above-max", "REJ-A4")),
  L06: stopping(warning("min-above-pool", "REJ-A3")),
  L07: warning("max-above-pool", "REJ-B7"),
  L08: warning("bytes-expected", "pool-configuration 2.2, REJ-B2"),
  L09: warning("no-query-limit", "admission 2.4, T-22"),
  L10: warning("estimate-is-limit", "MEM-9"),
  L11: hint("clamp-off", "MEM-4, T-21"),
  L12: warning("nothing-limits", "ADM-2, ADM-4"),
  G01: warning("flag-overridden", "pool-configuration 3.1"),
  G02: stopping(warning("wait-flag-zero", "admission 5.6")),
  G03: warning("group-prefix", "T-40, T-41"),
  C01: warning("max-above-host", "MEM-7"),
  C02: warning("min-above-half-host", "MEM-7"),
  C03: warning("pools-above-cluster", "ADM-5"),
  C04: hint("sized-by-process-limit", "T-24"),
  C05: warning("unlimited-neighbour", "ADM-5"),
  C06: stopping(warning("below-one-query", "REJ-B7")),
  C07: hint("running-never-binds", "ADM-2, ADM-4"),
  C08: hint("coordinator-share", "MEM-10"),
  C09: hint("coordinators-overshoot", "admission 7.5, T-12"),
  C10: warning("slots-bind", "ADM-3, T-39"),
  W01: warning("hopeless-queue", "insight 3.3"),
  W02: warning("burst-rejected", "REJ-A5"),
  W03: warning("overload", "insight 3.3"),
  W04: warning("mixed-sizes", "T-14"),
  W05: warning("estimates-inflated", "insight 2.6"),
  W06: warning("limit-below-peak", "MEM-9"),
  W07: stopping(warning("limit-below-reservation", "admission 2.1, REJ-B2")),
  W08: warning("wrong-pool", "admission 1.5"),
} as const satisfies Readonly<Record<string, CatalogueEntry>>;

export type FindingId = keyof typeof CATALOGUE;

export interface FindingText {
  readonly at: SourcePlace;
  readonly pool?: string | null;
  readonly found: string;
  readonly effect: string;
  readonly remedy: string;
  /** Where a case of an id weighs less than the id. */
  readonly severity?: Severity;
}

export function finding(id: FindingId, text: FindingText): Finding {
  const { name, severity, stops, rule } = CATALOGUE[id];
  return {
    id,
    name,
    severity: text.severity ?? severity,
    stops,
    file: text.at.file,
    line: text.at.line,
    column: text.at.column ?? null,
    pool: text.pool ?? null,
    found: text.found,
    effect: text.effect,
    rule,
    remedy: text.remedy,
  };
}

const WEIGHT: Readonly<Record<Severity, number>> = { error: 0, warning: 1, hint: 2 };

/** What stops queries first, then by severity, file, line, id. */
export function inOrder(findings: readonly Finding[]): readonly Finding[] {
  return findings.toSorted(
    (a, b) =>
      Number(b.stops) - Number(a.stops) ||
      WEIGHT[a.severity] - WEIGHT[b.severity] ||
      compare(a.file, b.file) ||
      (a.line ?? 0) - (b.line ?? 0) ||
      compare(a.id, b.id),
  );
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
