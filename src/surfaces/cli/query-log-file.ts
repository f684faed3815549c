/**
 * Writes a run as a query log with Impala's columns: `--query-log FILE` of `simulate` and `run` (surfaces 4).
 *
 * The event stream does not carry estimates and options, because they belong to the request; so the workload
 * is watched as its submissions are taken, and each is remembered until its query is over.
 */
import type { Scenario } from "../../config/scenario.ts";
import type { RunEvent } from "../../core/events.ts";
import type { Instant } from "../../core/units.ts";
import {
  csvHeader,
  csvLine,
  jsonLine,
  QueryLogExport,
  type QueryLogRow,
  type RequestFigures,
} from "../../insight/query-log-export.ts";
import type { Ending, Submission, Workload } from "../../workload/workload.ts";
import { type Output, OutputFile } from "./output-file.ts";

const FLUSH_AT = 1 << 16;

export const queryLogOutput = (path: string): Output => ({ what: "the query log", flag: "--query-log", path });

export class QueryLogFile {
  readonly path: string;
  readonly #file: OutputFile;
  readonly #line: (row: QueryLogRow) => string;
  readonly #export: QueryLogExport;
  readonly #scenario: Scenario;
  readonly #submissions = new Map<string, Submission>();
  #buffer = "";
  rows = 0;

  /** JSON lines, or CSV for a name that ends in `.csv`. Throws ConfigError when it cannot be written. */
  constructor(path: string, scenario: Scenario) {
    this.path = path;
    this.#scenario = scenario;
    this.#line = path.toLowerCase().endsWith(".csv") ? csvLine : jsonLine;
    this.#file = new OutputFile(queryLogOutput(path), false);
    if (this.#line === csvLine) this.#buffer = `${csvHeader()}\n`;
    this.#export = new QueryLogExport(
      (row) => this.#write(row),
      (submitted) => this.#figuresOf(submitted.query, submitted.queryClass),
      scenario.cluster.admission === "admissiond",
    );
  }

  /** The same workload, watched. Run the scenario with it. */
  watching(workload: Workload): Workload {
    return new WatchedWorkload(workload, (s) => this.#submissions.set(s.queryId, s));
  }

  add(event: RunEvent): void {
    this.#export.take(event);
  }

  /** Queries that were not over have no row, as in the product. */
  close(): void {
    try {
      this.#flush();
    } finally {
      this.#file.close();
    }
  }

  #write(row: QueryLogRow): void {
    this.#submissions.delete(String(row.query_id));
    this.rows++;
    this.#buffer += `${this.#line(row)}\n`;
    if (this.#buffer.length >= FLUSH_AT) this.#flush();
  }

  #flush(): void {
    const buffered = this.#buffer;
    this.#buffer = "";
    this.#file.append(buffered);
  }

  #figuresOf(query: string, className: string): RequestFigures {
    const submission = this.#submissions.get(query);
    const queryClass = this.#scenario.queries.find((c) => c.name === className);
    const shape = submission?.shape ?? queryClass?.shape;
    const slots = (runsOn: "coordinator" | "executors"): number =>
      Math.max(0, ...(shape?.fragments ?? []).filter((f) => f.runsOn === runsOn).map((f) => f.instancesPerHost));
    const pool = submission?.requestedPool ?? queryClass?.requestedPool ?? "";
    return {
      statement: queryClass?.statement ?? "",
      stmtType: shape?.stmtType ?? "QUERY",
      estimate: shape?.perHostMemEstimate ?? 0,
      coordinatorEstimate: shape?.dedicatedCoordMemEstimate ?? 0,
      options: { ...(pool === "" ? {} : { REQUEST_POOL: pool }), ...queryClass?.options },
      executorSlots: slots("executors"),
      coordinatorSlots: slots("coordinator"),
    };
  }
}

class WatchedWorkload implements Workload {
  readonly #inner: Workload;
  readonly #onTake: (submission: Submission) => void;

  constructor(inner: Workload, onTake: (submission: Submission) => void) {
    this.#inner = inner;
    this.#onTake = onTake;
  }

  nextAt(): Instant {
    return this.#inner.nextAt();
  }

  take(): Submission {
    const submission = this.#inner.take();
    this.#onTake(submission);
    return submission;
  }

  ended(submission: Submission, how: Ending, at: Instant): void {
    this.#inner.ended(submission, how, at);
  }

  isExhausted(): boolean {
    return this.#inner.isExhausted();
  }

  coordinatorGone(address: string): void {
    this.#inner.coordinatorGone(address);
  }

  coordinatorBack(address: string): void {
    this.#inner.coordinatorBack(address);
  }

  configurationChanged(): void {
    this.#inner.configurationChanged();
  }

  scaleEstimate(queryClass: number, factor: number): void {
    this.#inner.scaleEstimate(queryClass, factor);
  }
}
