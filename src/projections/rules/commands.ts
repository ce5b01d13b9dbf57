/** Registering, changing and ending rules: a command and the rules of the branch to a `rule` entry. Pure. */
import { ServiceError } from '../../errors.ts';
import type { NextPosition } from '../../log/log-store.ts';
import { canonicalJson, type Json } from '../../log/values/canonical-json.ts';
import { checkIdentifier } from '../../log/values/value.ts';
import type { EndRule, PutRule } from '../command.ts';
import { type DecideContext, type Decision, decideOne, sealerOf } from '../decision.ts';
import { encodeRule } from './codec.ts';
import { checkDefinition, type RuleRecord } from './rule.ts';

const rulesMax = 10_000;

/**
 * `rules` are those of the branch that stand. The same definition under a name is a no-op, whatever its id; another one is
 * REL_CONFLICT, unless the command names the rule that it changes.
 */
export function decidePutRule(
  command: PutRule,
  rules: readonly RuleRecord[],
  context: DecideContext,
  next: NextPosition,
): Decision {
  const { id, definition: ruleDefinition, author, changes: changedRuleId } = command;
  const { name: ruleName } = ruleDefinition;
  checkIdentifier(ruleName, 'the name of a rule');
  checkDefinition(ruleDefinition);
  const ownRules = rules.filter(({ owner }) => owner === context.entry.path);
  const namedRule = ownRules.find((rule) => rule.definition.name === ruleName);
  const ruleJson = (value: unknown): string => canonicalJson(value as Json);
  if (changedRuleId === undefined) {
    if (namedRule !== undefined) {
      if (ruleJson(namedRule.definition) === ruleJson(ruleDefinition)) return decideOne('put-rule', namedRule.id, [], next);
      throw new ServiceError(
        'REL_CONFLICT',
        `the rule ${JSON.stringify(ruleName)} exists with another definition: PUT changes it`,
      );
    }
    if (ownRules.length >= rulesMax) throw new ServiceError('REL_CONFLICT', `an organisation path has at most ${rulesMax} rules`);
    const ruleBody = encodeRule({ change: 'made', id, version: 1, definition: ruleDefinition, author }, sealerOf(context));
    return decideOne('put-rule', id, [{ context: context.entry, body: ruleBody }], next);
  }
  const ruleBefore = requireOwnRule(ownRules, changedRuleId);
  if (namedRule !== undefined && namedRule.id !== ruleBefore.id)
    throw new ServiceError('REL_CONFLICT', `another rule is called ${JSON.stringify(ruleName)}`);
  if (ruleBefore.definition.kind !== ruleDefinition.kind)
    throw new ServiceError('REL_CONFLICT', `a rule of the kind ${ruleBefore.definition.kind} stays one`);
  if (ruleJson(ruleBefore.definition) === ruleJson(ruleDefinition)) return decideOne('put-rule', ruleBefore.id, [], next);
  const ruleVersion = ruleBefore.version + 1;
  const body = encodeRule(
    { change: 'changed', id: ruleBefore.id, version: ruleVersion, definition: ruleDefinition, author },
    sealerOf(context),
  );
  return decideOne('put-rule', ruleBefore.id, [{ context: context.entry, body }], next);
}

export function decideEndRule(
  { id }: EndRule,
  rules: readonly RuleRecord[],
  context: DecideContext,
  next: NextPosition,
): Decision {
  const ownRules = rules.filter(({ owner }) => owner === context.entry.path);
  const { version } = requireOwnRule(ownRules, id);
  const endedRuleBody = encodeRule({ change: 'ended', id, version }, sealerOf(context));
  return decideOne('end-rule', id, [{ context: context.entry, body: endedRuleBody }], next);
}

/** A rule of another path, above or below, is as none. */
function requireOwnRule(ownRules: readonly RuleRecord[], id: string): RuleRecord {
  const ownRule = ownRules.find((rule) => rule.id === id);
  if (ownRule === undefined) throw new ServiceError('REL_NOT_FOUND', 'no such rule');
  return ownRule;
}
