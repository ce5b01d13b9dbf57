/** Texts of an entry of an open kind, in which a subject may be found. */
import { isEmbedded } from '../../log/entries/embedded-vectors.ts';
import type { OpenBody, OpenKind } from '../../log/entries/entry.ts';
import { canonicalJson, type Json } from '../../log/values/canonical-json.ts';
import { judgementOf } from '../../projections/entity-resolution/judgement-body.ts';
import type { JobDefinition, RunRecord } from '../../projections/jobs/job.ts';
import type { DetectionDefinition, EnrichDefinition } from '../../projections/rules/rule.ts';
import { definitionIn, type OpenText } from '../../projections/sealed-definitions.ts';

type OpenMembers = Readonly<Record<string, Json>>;

/**
 * The members that somebody wrote, of kinds whose content this release knows. A subject may be a number, and so are versions, attempts,
 * intervals and positions: they name nobody.
 */
const openTextsByKind: Partial<Readonly<Record<OpenKind, (members: OpenMembers, body: OpenBody) => Json>>> = {
  rule: ({ rule }) => {
    const { name, condition, object_type, dedupe_by, field, keep } = (rule ?? {}) as Partial<
      DetectionDefinition & EnrichDefinition
    >;
    return [name, condition, object_type, field, keep, ...(dedupe_by ?? [])].map((text) => text ?? null);
  },
  job: ({ job }) => {
    const { name, run } = (job ?? {}) as Partial<JobDefinition>;
    return [name ?? null, (run ?? null) as unknown as Json];
  },
  run: ({ run }) => (run as unknown as RunRecord | undefined)?.work?.statement?.sql ?? null,
  judgement: (members, body) => {
    const judged = judgementOf(body);
    return judged === null ? members : [judged.a.key, judged.b.key, judged.reason];
  },
};

/** JSON as it stands, and its texts without their escapes; bytes as if they were text. */
export function textsOf(body: OpenBody, openText: OpenText): string {
  const { content: openContent, kind } = body;
  // Vectors say no word, and those of a subject are found by their versions.
  if (isEmbedded(openContent)) return '';
  if (typeof openContent !== 'string') return Buffer.from(openContent).toString();
  const openDefinition = definitionIn(body, openText);
  if (openDefinition === null) return textsInMembers(openContent);
  if (openDefinition.isErased) return '';
  const writtenTextsOf = openTextsByKind[kind];
  return textsInMembers(writtenTextsOf === undefined ? openContent : canonicalJson(writtenTextsOf(openDefinition.members, body)));
}

function textsInMembers(membersJson: string): string {
  const memberTexts = [membersJson];
  const nestedJson: Json[] = [JSON.parse(membersJson) as Json];
  for (let memberValue = nestedJson.pop(); memberValue !== undefined; memberValue = nestedJson.pop()) {
    if (typeof memberValue === 'string') memberTexts.push(memberValue);
    else if (typeof memberValue === 'object' && memberValue !== null) {
      // Elements of a list have numbers, and no names.
      if (!Array.isArray(memberValue)) memberTexts.push(...Object.keys(memberValue));
      nestedJson.push(...Object.values(memberValue));
    }
  }
  return memberTexts.join('\n');
}
