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
  const { id, definition, author, changes } = command;
  const { name } = definition;
  checkIdentifier(name, 'the name of a rule');
  checkDefinition(definition);
  const own = rules.filter(({ owner }) => owner === context.entry.path);
  const named = own.find((rule) => rule.definition.name === name);
  const asJson = (value: unknown): string => canonicalJson(value as Json);
  if (changes === undefined) {
    if (named !== undefined) {
      if (asJson(named.definition) === asJson(definition)) return decideOne('put-rule', named.id, [], next);
      throw new ServiceError('REL_CONFLICT', `the rule ${JSON.stringify(name)} exists with another definition: PUT changes it`);
    }
    if (own.length >= rulesMax) throw new ServiceError('REL_CONFLICT', `an organisation path has at most ${rulesMax} rules`);
    const body = encodeRule({ change: 'made', id, version: 1, definition, author }, sealerOf(context));
    return decideOne('put-rule', id, [{ context: context.entry, body }], next);
  }
  const before = ownRule(own, changes);
  if (named !== undefined && named.id !== before.id)
    throw new ServiceError('REL_CONFLICT', `another rule is called ${JSON.stringify(name)}`);
  if (before.definition.kind !== definition.kind)
    throw new ServiceError('REL_CONFLICT', `a rule of the kind ${before.definition.kind} stays one`);
  if (asJson(before.definition) === asJson(definition)) return decideOne('put-rule', before.id, [], next);
  const version = before.version + 1;
  const body = encodeRule({ change: 'changed', id: before.id, version, definition, author }, sealerOf(context));
  return decideOne('put-rule', before.id, [{ context: context.entry, body }], next);
}

export function decideEndRule(
  { id }: EndRule,
  rules: readonly RuleRecord[],
  context: DecideContext,
  next: NextPosition,
): Decision {
  const own = rules.filter(({ owner }) => owner === context.entry.path);
  const { version } = ownRule(own, id);
  const body = encodeRule({ change: 'ended', id, version }, sealerOf(context));
  return decideOne('end-rule', id, [{ context: context.entry, body }], next);
}

/** A rule of another path, above or below, is as none. */
function ownRule(own: readonly RuleRecord[], id: string): RuleRecord {
  const ownRule = own.find((rule) => rule.id === id);
  if (ownRule === undefined) throw new ServiceError('REL_NOT_FOUND', 'no such rule');
  return ownRule;
}
