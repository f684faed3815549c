/** Entry of a coordinator's thread. */
import { parentPort, workerData } from "node:worker_threads";
import { CoordinatorThread } from "../src/runtime/coordinator-thread.ts";

new CoordinatorThread(workerData, parentPort!);
