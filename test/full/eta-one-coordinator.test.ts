import { ONE_COORDINATOR } from "../../bench/eta-traffic.ts";
import { expectCalibrated } from "./eta-calibration.ts";

expectCalibrated("one coordinator", ONE_COORDINATOR, 500);
