/** Family topic-keys: the written form of topic entries (admission 7.1). */
import {
  hostsTopicKey,
  POOL_PREFIX,
  parseTopicKey,
  poolTopicKey,
  STAT_PREFIX,
} from "../../../src/core/statestore/topic.ts";
import type { FamilyRunner } from "../family.ts";
import { compare } from "./inputs.ts";

export const run: FamilyRunner = ({ input, expected }) => {
  if (input.op === "make")
    return compare(expected, {
      key: input.pool === undefined ? hostsTopicKey(input.host) : poolTopicKey(input.pool, input.host),
    });
  const parsed = parseTopicKey(input.key);
  if (parsed === null) return compare(expected, { valid: false });
  return compare(expected, { valid: true, prefix: parsed.kind === "pool" ? POOL_PREFIX : STAT_PREFIX, ...parsed });
};
