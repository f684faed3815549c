/**
 * A01 to A07: who may submit, and who only seems to.
 */
import { type Acl, isNobody } from "../../config/acl.ts";
import type { AllocationFile, Located } from "../../config/allocation-file.ts";
import { withAncestors } from "../../config/pool-directory.ts";
import { ROOT_POOL } from "../../core/pool-config.ts";
import { aclOf, type CheckContext, queuePlace, type Rule } from "./check-context.ts";
import type { CheckInput } from "./check-input.ts";
import { type Finding, finding } from "./finding.ts";

export const accessFindings: Rule = (context) => {
  const { allocation, input } = context;
  if (allocation === null) return [];
  return [
    ...rootOpen(allocation),
    ...ownAcls(allocation).flatMap(({ pool, acl }) => [
      ...widerAbove(pool, acl, allocation),
      ...aclText(pool, acl, allocation.file, input),
    ]),
    ...nobody(context),
  ];
};

interface OwnAcl {
  readonly pool: string;
  readonly acl: Located<Acl>;
}

const ownAcls = ({ allocations }: AllocationFile): readonly OwnAcl[] =>
  [...allocations.submitAcls].flatMap(([pool, acl]) => (acl === null ? [] : [{ pool, acl }]));

function rootOpen(allocation: AllocationFile): readonly Finding[] {
  const { submitAcls } = allocation.allocations;
  const restricted = ownAcls(allocation).filter(({ acl }) => !acl.value.everybody);
  if ((submitAcls.get(ROOT_POOL) ?? null) !== null || restricted.length === 0) return [];
  const written = allocation.queues.findLast((queue) => queue.pool === ROOT_POOL);
  return [
    finding("A01", {
      at: { file: allocation.file, ...(written?.element.at ?? allocation.root.at) },
      pool: ROOT_POOL,
      found: written === undefined ? "no root queue" : "the root queue has no aclSubmitApps",
      effect: `Everybody may submit everywhere; the access lists of ${restricted.map((a) => a.pool).join(", ")} have no effect.`,
      remedy: 'Put all queues into <queue name="root"> and give it <aclSubmitApps> </aclSubmitApps>, one blank.',
    }),
  ];
}

/** Rights only add up on the way down, so an ancestor's list is also the pool's. */
function widerAbove(pool: string, acl: Located<Acl>, { allocations, file }: AllocationFile): readonly Finding[] {
  if (acl.value.everybody) return [];
  for (const ancestor of withAncestors(pool).slice(1)) {
    const above = allocations.submitAcls.get(ancestor)?.value;
    if (above === undefined) continue;
    const extra = above.everybody
      ? ["everybody"]
      : [...missing(above.users, acl.value.users, "user"), ...missing(above.groups, acl.value.groups, "group")];
    if (extra.length === 0) continue;
    return [
      finding("A02", {
        at: { file, ...acl.at },
        pool,
        found: `${ancestor} lets in ${extra.join(", ")}`,
        effect: "They may submit here too: a list adds to those of its ancestors and never takes away.",
        remedy: `Narrow the list of ${ancestor}.`,
      }),
    ];
  }
  return [];
}

const missing = (above: ReadonlySet<string>, own: ReadonlySet<string>, what: string): readonly string[] =>
  [...above].filter((name) => !own.has(name)).map((name) => `${what} ${name}`);

/** A03 to A06: what the text is taken for. */
function aclText(pool: string, { value, text, at }: Located<Acl>, file: string, input: CheckInput): readonly Finding[] {
  const place = { file, ...at };
  const found = `aclSubmitApps ${JSON.stringify(text)}`;
  const reading = `Users: ${list(value.users)}. Groups: ${list(value.groups)}.`;
  const findings: Finding[] = [];
  if (text[text.indexOf(" ") - 1] === ",")
    findings.push(
      finding("A03", {
        at: place,
        pool,
        found,
        effect: `The first blank ends the users, what follows are groups. ${reading}`,
        remedy: "No blank after commas.",
      }),
    );
  if (/[\n\r\t]/.test(text))
    findings.push(
      finding("A04", {
        at: place,
        pool,
        found,
        effect: `Only a blank separates users from groups and nothing is trimmed: an indented list is all groups, a tab joins two names. ${reading}`,
        remedy: "Write it on one line.",
      }),
    );
  if (!value.everybody && (value.users.has("*") || value.groups.has("*")))
    findings.push(
      finding("A05", {
        at: place,
        pool,
        found,
        effect: `* counts only alone; here it is the name of a ${value.users.has("*") ? "user" : "group"}. ${reading}`,
        remedy: "Write * alone.",
      }),
    );
  const severity = groupsAsUsers(text, value, input);
  if (severity !== null)
    findings.push(
      finding("A06", {
        at: place,
        pool,
        found,
        effect: `Without a blank in it the list is all users. ${reading}`,
        remedy: `If they are groups, begin with a blank: <aclSubmitApps> ${text}</aclSubmitApps>.`,
        severity,
      }),
    );
  return findings;
}

const list = (names: ReadonlySet<string>): string =>
  names.size === 0 ? "none" : [...names].map((name) => JSON.stringify(name)).join(" ");

/** With a table the names are known; without one only their look tells. */
function groupsAsUsers(text: string, acl: Acl, { groups }: CheckInput): "warning" | "hint" | null {
  if (acl.everybody || acl.users.size === 0 || /\s/.test(text)) return null;
  const names = [...acl.users];
  if (groups === null)
    return names.every((name) => /(s|grp|group|team)$|^(grp|group|team)/i.test(name)) ? "hint" : null;
  const known = new Set(Object.values(groups).flat());
  return names.every((name) => known.has(name) && !Object.hasOwn(groups, name)) ? "warning" : null;
}

function nobody(context: CheckContext): readonly Finding[] {
  const allocations = context.allocation?.allocations;
  if (allocations === undefined) return [];
  return context.pools
    .filter((pool) => pool.isLeaf && withAncestors(pool.name).every((name) => isNobody(aclOf(name, allocations))))
    .map((pool) =>
      finding("A07", {
        at: queuePlace(pool, context),
        pool: pool.name,
        found: "neither the pool nor an ancestor lets anybody in",
        effect: "Every request is denied; that is an error and not a rejection, so no counter of the pool moves.",
        remedy: "Name users or groups: <aclSubmitApps>ana,ben analysts</aclSubmitApps>.",
      }),
    );
}
