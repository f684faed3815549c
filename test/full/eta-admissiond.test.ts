import { ADMISSIOND } from "../../bench/eta-traffic.ts";
import { expectCalibrated } from "./eta-calibration.ts";

expectCalibrated("admissiond", ADMISSIOND, 300);
