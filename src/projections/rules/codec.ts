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

export function encodeRule(ruleChange: RuleChange, sealRule: SealText): OpenBody {
  const { id, version } = ruleChange;
  const unsealedRule = { id, version, change: ruleChange.change };
  if (ruleChange.change === 'ended') return { kind: 'rule', content: plainContent(unsealedRule) };
  const { credential, token } = ruleChange.author;
  const sealedRule = { rule: ruleChange.definition as unknown as Json, credential, token };
  return { kind: 'rule', content: sealedContent(unsealedRule, sealedRule, sealRule) };
}

/** Null for an entry of this kind that no rule made: earlier releases wrote none, and a later one may have others. */
export function decodeRule(ruleBody: OpenBody, openRuleText: OpenText): RuleChange | null {
  const ruleDefinition = definitionIn(ruleBody, openRuleText);
  if (ruleDefinition === null) return null;
  const ruleMembers = ruleDefinition.members;
  const ruleId = ruleMembers['id'] as string;
  const ruleVersion = ruleMembers['version'] as number;
  // A version that is erased has ended the one before it, and nothing else is left of it.
  if (ruleMembers['change'] === 'ended' || ruleDefinition.isErased) return { change: 'ended', id: ruleId, version: ruleVersion };
  return {
    change: ruleMembers['change'] as 'made' | 'changed',
    id: ruleId,
    version: ruleVersion,
    definition: ruleMembers['rule'] as unknown as RuleDefinition,
    author: {
      credential: ruleMembers['credential'] as RuleAuthor['credential'],
      token: (ruleMembers['token'] ?? null) as string | null,
    },
  };
}
