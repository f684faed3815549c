/** Flags with which the product refuses to start outside a range. */
import { expect, test } from "vitest";
import { ConfigError } from "../../src/config/config-error.ts";
import { parseFlags } from "../../src/config/impala-flags.ts";

const flag = "cluster_membership_retained_removed_coords";

test.each([1, 10, 1000])(`${flag} may be %i`, (n) => expect(parseFlags({ [flag]: n })[flag]).toBe(n));

test.each([0, -1, 1001, 10_000])(`${flag} can't be %i`, (n) => {
  const attempt = () => parseFlags({ [flag]: n }, () => ({ file: "scenario.yaml", line: 7 }));
  expect(attempt).toThrow(ConfigError);
  expect(attempt).toThrow(/scenario\.yaml:7.*outside 1 to 1000.*Write a number from 1 to 1000/s);
});
