/** Family user-quotas: how many queries one user may have (admission 8). */
import { hasQuotas, quotaReason } from "../../../src/core/admission/quotas.ts";
import { rejectReasonText } from "../../../src/core/admission/reasons.ts";
import { shortUser } from "../../../src/core/admission/short-user.ts";
import type { FamilyRunner } from "../family.ts";
import { compare, compareDecision, type Json, poolConfigFrom } from "./inputs.ts";

export const run: FamilyRunner = ({ input, expected }) => {
  if (input.kind === "has-quota-config")
    return compare(expected, { has_quota_config: hasQuotas(poolConfigFrom(input.pool_limits)) });
  const user = shortUser(input.user, input.kerberos ?? false);
  const reason =
    user === null
      ? ({ rule: "REJ-C3", kind: "badName", user: input.user } as const)
      : quotaReason({
          pool: input.pool,
          user,
          groups: (input.groups ?? []).filter((g: Json) => g.members.includes(user)).map((g: Json) => g.group),
          config: poolConfigFrom(input.pool_limits),
          rootConfig: poolConfigFrom(input.root_limits),
          poolLoad: input.pool_load ?? 0,
          rootLoad: input.root_load ?? 0,
        });
  return compareDecision(expected, {
    decision: reason === null ? "allow" : "reject",
    reason: reason === null ? "" : rejectReasonText(reason),
  });
};
