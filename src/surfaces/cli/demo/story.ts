/**
 * What a told story consists of (page-and-demos 4.0): set-up, guess, acts with captions tied to events, the numbers with
 * their tolerance, question and answer, and three commands that change one thing.
 */
import { prettyBytes } from "../../../core/pretty.ts";
import type { Teller } from "./teller.ts";

/** A number of the story and where it has to lie; the check of `demo --check` and the line people read. */
export interface Finding {
  readonly what: string;
  /** Of the three numbers; with `yesNo` 1 is yes. */
  readonly unit: "count" | "bytes" | "errorCode" | "yesNo";
  readonly value: number;
  readonly least: number;
  readonly most: number;
  /** As it is printed. */
  readonly text: string;
}

export interface Story {
  readonly name: string;
  /** One sentence: what it shows. */
  readonly title: string;
  /** Rules that can be watched in it. */
  readonly rules: string;
  readonly setUp: string;
  readonly guess: string;
  /** Runs it, real rows and files, and says what came out. */
  play(teller: Teller, seed: number): Promise<readonly Finding[]>;
  readonly question: string;
  readonly answer: string;
  /** Commands, each with what it changes. */
  readonly next: readonly string[];
}

export const holds = (f: Finding): boolean => f.value >= f.least && f.value <= f.most;

/** A number that can be only this. */
export const exactly = (
  what: string,
  value: number,
  expected: number,
  text = String(value),
  unit: Finding["unit"] = "count",
): Finding => ({ what, unit, value, least: expected, most: expected, text });

export const exactBytes = (what: string, value: number, expected: number, text = prettyBytes(value)): Finding =>
  exactly(what, value, expected, text, "bytes");

/** What must be so. */
export const isSo = (what: string, is: boolean, text = is ? "yes" : "NO"): Finding =>
  exactly(what, is ? 1 : 0, 1, text, "yesNo");
