/** Texts of an entry of an open kind, in which a subject may be found. */
import { isEmbedded } from '../../log/entries/embedded-vectors.ts';
import type { OpenBody, OpenKind } from '../../log/entries/entry.ts';
import { canonicalJson, type Json } from '../../log/values/canonical-json.ts';
import { judgementOf } from '../../projections/entity-resolution/judgement-body.ts';
import type { JobDefinition, RunRecord } from '../../projections/jobs/job.ts';
import type { DetectionDefinition, EnrichDefinition } from '../../projections/rules/rule.ts';
import { definitionIn, type OpenText } from '../../projections/sealed-definitions.ts';

type Members = Readonly<Record<string, Json>>;

/**
 * The members that somebody wrote, of kinds whose content this release knows. A subject may be a number, and so are versions, attempts,
 * intervals and positions: they name nobody.
 */
const written: Partial<Readonly<Record<OpenKind, (members: Members, body: OpenBody) => Json>>> = {
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
export function textsOf(body: OpenBody, open: OpenText): string {
  const { content, kind } = body;
  // Vectors say no word, and those of a subject are found by their versions.
  if (isEmbedded(content)) return '';
  if (typeof content !== 'string') return Buffer.from(content).toString();
  const definition = definitionIn(body, open);
  if (definition === null) return textsIn(content);
  if (definition.isErased) return '';
  const membersOf = written[kind];
  return textsIn(membersOf === undefined ? content : canonicalJson(membersOf(definition.members, body)));
}

function textsIn(json: string): string {
  const texts = [json];
  const inner: Json[] = [JSON.parse(json) as Json];
  for (let value = inner.pop(); value !== undefined; value = inner.pop()) {
    if (typeof value === 'string') texts.push(value);
    else if (typeof value === 'object' && value !== null) {
      // Elements of a list have numbers, and no names.
      if (!Array.isArray(value)) texts.push(...Object.keys(value));
      inner.push(...Object.values(value));
    }
  }
  return texts.join('\n');
}
