/**
 * F01 to F03, F07, R01, R02, P03, P04, Q01, Q02, S01: why a file does not load. One error for each file, since the
 * product stops at the first.
 */
import type { AllocationFault, FaultKind } from "../../config/allocation-fault.ts";
import type { ConfigError } from "../../config/config-error.ts";
import { type Finding, type FindingId, finding } from "./finding.ts";

const ID_OF: Readonly<Record<FaultKind, FindingId>> = {
  notLoadable: "F01",
  valueMissing: "F02",
  badType: "F03",
  queueName: "F07",
  noMemory: "R02",
  noVcores: "R01",
  quotaMalformed: "Q01",
  quotaOrder: "Q02",
  ruleInvalid: "P03",
  ruleOrder: "P04",
};

export const allocationFinding = (fault: AllocationFault): Finding =>
  finding(ID_OF[fault.kind], {
    at: fault,
    pool: fault.pool,
    found: fault.problem,
    effect:
      "The whole file is lost: a start aborts, and a reload keeps the old configuration with one line in the log.",
    remedy: fault.remedy,
  });

export const siteFinding = (error: ConfigError): Finding =>
  finding("S01", {
    at: error,
    found: error.problem,
    effect:
      "Nobody sees an error: the first lookup fails, and from the second on all limits of this file are at their built-in defaults, the old values are gone.",
    remedy: error.remedy,
  });
