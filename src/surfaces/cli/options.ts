/**
 * Options that several commands share, with their checks.
 */
import { InvalidArgumentError, Option } from "commander";

/** NaN for what is no number, also for an empty text, as from a variable that is not set. */
export const numberIn = (text: string): number => (text.trim() === "" ? Number.NaN : Number(text));

export const seedOption = (): Option =>
  new Option("--seed <number>", "everything random follows from it").argParser((text) => {
    const seed = numberIn(text);
    if (!Number.isInteger(seed) || seed < 0 || seed > 0xffffffff)
      throw new InvalidArgumentError("Expected a whole number from 0 to 4294967295.");
    return seed;
  });
