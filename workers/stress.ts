/** Entry of a thread that hammers ledgers. */
import { workerData } from "node:worker_threads";
import { hammer } from "../src/runtime/stress-thread.ts";

hammer(workerData);
