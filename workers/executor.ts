/** Entry of an executor thread; piscina calls the default export once per task. */
import { workerData } from "node:worker_threads";
import { ExecutorThread } from "../src/runtime/executor-thread.ts";

const thread = new ExecutorThread(workerData);

export default (task: Parameters<ExecutorThread["perform"]>[0]): Promise<void> => thread.perform(task);
