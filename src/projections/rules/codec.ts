/**
 * Rules as entries of the kind `rule` hold them: RFC 8785 JSON, version 1. A version of a rule never changes; a later one takes its
 * place, or its end. Whoever runs a rule does so by the grants that its author has then: an entry names the credential, never a role.
 *
 *   {"v": 1, "id", "version", "change": "made" | "changed", "rule": RuleDefinition, "credential", "token"}
 *   {"v": 1, "id", "version", "change": "ended"}
 */
import type { OpenBody } from '../../log/entries/entry.ts';
import { canonicalJson, type Json } from '../../log/values/canonical-json.ts';
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

export function encodeRule(change: RuleChange): OpenBody {
  const { id, version } = change;
  const rest: Json =
    change.change === 'ended'
      ? {}
      : {
          rule: change.definition as unknown as Json,
          credential: change.author.credential,
          token: change.author.token,
        };
  return { kind: 'rule', content: canonicalJson({ v: 1, id, version, change: change.change, ...(rest as object) }) };
}

/** Null for an entry of this kind that no rule made: earlier releases wrote none, and a later one may have others. */
export function decodeRule({ content }: OpenBody): RuleChange | null {
  if (typeof content !== 'string' || content === '') return null;
  const read = JSON.parse(content) as Readonly<Record<string, Json>>;
  if (read['v'] !== 1) return null;
  const id = read['id'] as string;
  const version = read['version'] as number;
  if (read['change'] === 'ended') return { change: 'ended', id, version };
  return {
    change: read['change'] as 'made' | 'changed',
    id,
    version,
    definition: read['rule'] as unknown as RuleDefinition,
    author: { credential: read['credential'] as RuleAuthor['credential'], token: (read['token'] ?? null) as string | null },
  };
}
