/** Planned queries as the stories describe them, in the terms of the core. */
import {
  type AdmissionOptions,
  DEFAULT_ADMISSION_OPTIONS,
  type FragmentShape,
  type RequestShape,
} from "../../src/core/admission/request.ts";
import { bytes } from "../../src/core/units.ts";

export interface PlannedQuery {
  readonly stmtType: "QUERY" | "DML";
  readonly perHostEstimate: number;
  readonly coordEstimate: number;
  readonly trivial: boolean;
  readonly coordinatorOnly: boolean;
  readonly allCoordinators: boolean;
  /** How many executors of the group are used; ignored by coordinator-only queries. */
  readonly executors: "all" | number;
  readonly slotsPerHost: number;
  readonly coordSlots: number;
  readonly minReservation: number;
  readonly coordMinReservation: number;
  readonly options: Partial<AdmissionOptions>;
}

const fragment = (runsOn: FragmentShape["runsOn"], instances: number, reservation: number): FragmentShape => ({
  runsOn,
  instancesPerHost: instances,
  minReservationPerInstance: bytes(0),
  minReservationPerBackend: bytes(reservation),
  threadReservationPerInstance: 1,
  isDominant: false,
});

export function shapeOf(q: PlannedQuery): RequestShape {
  const fragments: FragmentShape[] = [];
  if (!q.coordinatorOnly) fragments.push(fragment("executors", q.slotsPerHost, q.minReservation));
  if ((q.stmtType === "QUERY" || q.coordinatorOnly) && q.coordSlots > 0)
    fragments.push(fragment("coordinator", q.coordSlots, q.coordMinReservation));
  return {
    stmtType: q.stmtType,
    perHostMemEstimate: bytes(q.perHostEstimate),
    dedicatedCoordMemEstimate: bytes(q.coordEstimate),
    isTrivial: q.trivial,
    coordinatorOnly: q.coordinatorOnly,
    includeAllCoordinators: q.allCoordinators,
    executors: q.executors,
    fragments,
    options: { ...DEFAULT_ADMISSION_OPTIONS, ...q.options },
    maxSlotsPerExecutor: null,
  };
}
