/**
 * From a query class and the options in force to the shape that admission looks at (admission 1.1, 1.2).
 *
 * Made once for each combination that occurs (class, pool defaults, factor on the estimate) and shared by
 * all queries that agree in it: a million queries a second cannot carry a million plans.
 */
import type { AdmissionOptions, FragmentShape, RequestShape } from "../core/admission/request.ts";
import { DEFAULT_ADMISSION_OPTIONS } from "../core/admission/request.ts";
import type { Bytes } from "../core/units.ts";
import { operatorsUnder, planOf } from "./operator-plan.ts";
import { memoryOption, type OptionTexts } from "./option-values.ts";
import type { OperatorSpec, QueryClass } from "./scenario.ts";

export interface OptionsInForce {
  /** Client's options over the pool's defaults (admission 1.2). */
  readonly options: OptionTexts;
  /** The pool's `max-mt-dop`; negative: no cap. */
  readonly maxMtDop: number;
  /** Factor on the planner's estimate: dropped statistics. */
  readonly estimateFactor: number;
}

/** The class's shape under these options; `base` is the class's own, or that of a recorded request. */
export function shapeUnder(queryClass: QueryClass, base: RequestShape, inForce: OptionsInForce): RequestShape {
  const { options, maxMtDop, estimateFactor } = inForce;
  const asked = queryClass.mtDop > 0 ? queryClass.mtDop : numberOption(options, "MT_DOP", 0);
  const mtDop = maxMtDop >= 0 ? Math.min(asked, maxMtDop) : asked;
  return freezeShape({
    ...base,
    perHostMemEstimate: scaled(base.perHostMemEstimate, estimateFactor),
    dedicatedCoordMemEstimate: base.dedicatedCoordMemEstimate,
    isTrivial: base.isTrivial && flagOption(options, "ENABLE_TRIVIAL_QUERY_FOR_ADMISSION", true),
    fragments: fragmentsUnder(queryClass, base.fragments, mtDop, options),
    options: admissionOptions(options),
  });
}

export function admissionOptions(options: OptionTexts): AdmissionOptions {
  const defaults = DEFAULT_ADMISSION_OPTIONS;
  return {
    memLimit: bytesOption(options, "MEM_LIMIT"),
    memLimitExecutors: bytesOption(options, "MEM_LIMIT_EXECUTORS"),
    memLimitCoordinators: bytesOption(options, "MEM_LIMIT_COORDINATORS"),
    maxMemEstimateForAdmission: bytesOption(options, "MAX_MEM_ESTIMATE_FOR_ADMISSION"),
    bufferPoolLimit: bytesOption(options, "BUFFER_POOL_LIMIT"),
    threadReservationLimit: numberOption(options, "THREAD_RESERVATION_LIMIT", defaults.threadReservationLimit),
    threadReservationAggregateLimit: numberOption(
      options,
      "THREAD_RESERVATION_AGGREGATE_LIMIT",
      defaults.threadReservationAggregateLimit,
    ),
    enableTrivialQueryForAdmission: flagOption(options, "ENABLE_TRIVIAL_QUERY_FOR_ADMISSION", true),
  };
}

export function freezeShape(shape: RequestShape): RequestShape {
  for (const fragment of shape.fragments) Object.freeze(fragment);
  Object.freeze(shape.fragments);
  Object.freeze(shape.options);
  return Object.freeze(shape);
}

/** What hosts look at and admission does not. */
export interface ExecutionOptions {
  /** S7, per query and host; -1: no limit, and so does a text that says nothing. 0: nothing may be spilled. */
  readonly scratchLimit: number;
  /** DISABLE_UNSAFE_SPILLS: real operators fail where they would spill. */
  readonly spillsDisabled: boolean;
  /** With the sizes of buffers and rows that they may have; null: the query has none. */
  readonly operators: readonly OperatorSpec[] | null;
}

/** Of options in force, as those of admission are. */
export const executionUnder = ({ uses }: QueryClass, options: OptionTexts): ExecutionOptions => ({
  scratchLimit: memoryOption(options.SCRATCH_LIMIT ?? "") ?? -1,
  spillsDisabled: flagOption(options, "DISABLE_UNSAFE_SPILLS", false),
  operators: uses.kind === "operators" ? operatorsUnder(uses, options) : null,
});

export const DEFAULT_EXECUTION_OPTIONS: ExecutionOptions = {
  scratchLimit: -1,
  spillsDisabled: false,
  operators: null,
};

const bytesOption = (options: OptionTexts, name: string): number => memoryOption(options[name] ?? "") ?? 0;

function numberOption(options: OptionTexts, name: string, otherwise: number): number {
  const text = options[name];
  return text !== undefined && /^\s*-?\d+\s*$/.test(text) ? Number(text) : otherwise;
}

function flagOption(options: OptionTexts, name: string, otherwise: boolean): boolean {
  const text = options[name]?.trim().toLowerCase();
  if (text === "true" || text === "1") return true;
  return text === "false" || text === "0" ? false : otherwise;
}

function fragmentsUnder(
  { uses, instancesFollowMtDop }: QueryClass,
  fragments: readonly FragmentShape[],
  mtDop: number,
  options: OptionTexts,
): readonly FragmentShape[] {
  const isPlanned = uses.kind === "operators" && uses.hasPlannedMinimum;
  if (!instancesFollowMtDop && !isPlanned) return fragments;
  const minimum = isPlanned ? (planOf(operatorsUnder(uses, options)).minReservation as Bytes) : null;
  return fragments.map((f) =>
    f.runsOn === "executors"
      ? {
          ...f,
          ...(instancesFollowMtDop ? { instancesPerHost: Math.max(1, mtDop) } : {}),
          ...(minimum === null ? {} : { minReservationPerInstance: minimum }),
        }
      : f,
  );
}

const scaled = (estimate: Bytes, factor: number): Bytes =>
  factor === 1 ? estimate : (Math.round(estimate * factor) as Bytes);
