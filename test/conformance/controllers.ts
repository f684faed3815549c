/** Which controller the stories run on: the core; the slow model in its own tests. */
import type { ModelSettings } from "../model/controller.ts";
import { type ControllerPort, ModelPort } from "../model/port.ts";

export type MakeController = (settings: ModelSettings) => ControllerPort;

export const makeModel: MakeController = (settings) => new ModelPort(settings);

export const DEFAULT_SETTINGS: Omit<ModelSettings, "host" | "admissiond"> = {
  queueWaitTimeoutMs: 60_000,
  clampToHosts: true,
  dedicatedCoordinatorEstimates: true,
  balanceGroups: false,
  staleThresholdMs: 5000,
  repaired: false,
  poolOrder: [],
  dropsSchedulesWhenQueued: false,
};
