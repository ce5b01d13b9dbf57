/**
 * Rules as entries of the kind `rule` hold them: RFC 8785 JSON. A version of a rule never changes; a later one takes its
 * place, or its end. Whoever runs a rule does so by the grants that its author has then: an entry names the credential, never a role.
 *
 *   {"v": 2, "id", "version", "change": "made" | "changed", "sealed"}   sealed: "rule": RuleDefinition, "credential", "token"
 *   {"v": 1, "id", "version", "change": "ended"}
 *   {"v": 1, "id", "version", "change": "made" | "changed", "rule", "credential", "token"}   in logs of earlier releases
 */
import type { OpenBody } from '../../log/entries/entry.ts';
import type { Json } from '../../log/values/canonical-json.ts';
import { definitionIn, type OpenText, plainContent, type SealText, sealedContent } from '../sealed-definitions.ts';
import type { RuleAuthor, RuleDefinition } from './rule.ts';

export type RuleChange =
  | {
      readonly change: 'made' | 'changed';
      readonly id: string;
      readonly version: number;
      readonly definition: RuleDefinition;
      readonly author: Omit<RuleAuthor, 'principal'>;
    }
  | { readonly change: 'ended'; readonly id: string; readonly version: number };

export function encodeRule(change: RuleChange, seal: SealText): OpenBody {
  const { id, version } = change;
  const outside = { id, version, change: change.change };
  if (change.change === 'ended') return { kind: 'rule', content: plainContent(outside) };
  const { credential, token } = change.author;
  const sealed = { rule: change.definition as unknown as Json, credential, token };
  return { kind: 'rule', content: sealedContent(outside, sealed, seal) };
}

/** Null for an entry of this kind that no rule made: earlier releases wrote none, and a later one may have others. */
export function decodeRule(body: OpenBody, open: OpenText): RuleChange | null {
  const ruleDefinition = definitionIn(body, open);
  if (ruleDefinition === null) return null;
  const read = ruleDefinition.members;
  const id = read['id'] as string;
  const version = read['version'] as number;
  // A version that is erased has ended the one before it, and nothing else is left of it.
  if (read['change'] === 'ended' || ruleDefinition.isErased) return { change: 'ended', id, version };
  return {
    change: read['change'] as 'made' | 'changed',
    id,
    version,
    definition: read['rule'] as unknown as RuleDefinition,
    author: { credential: read['credential'] as RuleAuthor['credential'], token: (read['token'] ?? null) as string | null },
  };
}
