/**
 * Why an allocation file does not load: the product's message in `problem`, and a kind for those who sort.
 */
import { ConfigError } from "./config-error.ts";
import type { Place } from "./located-xml.ts";

export type FaultKind =
  /** Not well-formed, or the root is not `allocations` (pool-configuration 1.1). */
  | "notLoadable"
  /** A value element without a text as its first child (1.2). */
  | "valueMissing"
  /** A text that is not of the required type, or a forbidden policy (1.3). */
  | "badType"
  | "queueName"
  /** No number with mb, or a number beyond int32 (1.5.1). */
  | "noMemory"
  | "noVcores"
  | "quotaMalformed"
  | "quotaOrder"
  | "ruleInvalid"
  | "ruleOrder";

export class AllocationFault extends ConfigError {
  override readonly name = "AllocationFault";
  readonly kind: FaultKind;
  /** Full name of the pool it is about, when there is one. */
  readonly pool: string | null;

  constructor(
    kind: FaultKind,
    at: { readonly file: string; readonly place: Place; readonly pool?: string | null },
    problem: string,
    remedy: string,
    options?: ErrorOptions,
  ) {
    super({ file: at.file, ...at.place }, problem, remedy, options);
    this.kind = kind;
    this.pool = at.pool ?? null;
  }
}
