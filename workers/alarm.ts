/** Entry of the thread that wakes the main thread's event loop for its appointments. */
import { parentPort, workerData } from "node:worker_threads";
import { sleepAndRing } from "../src/runtime/alarm-thread.ts";

sleepAndRing(workerData, parentPort!);
