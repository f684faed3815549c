/** Entry of a thread that evaluates settings; piscina calls the default export once per job. */
import { workerData } from "node:worker_threads";
import type { Outcome } from "../src/insight/size/outcome.ts";
import { Evaluator, type Job, type SizeProblem } from "../src/insight/size/problem.ts";

const evaluator = new Evaluator(workerData as SizeProblem);

export default (job: Job): Outcome => evaluator.run(job);
