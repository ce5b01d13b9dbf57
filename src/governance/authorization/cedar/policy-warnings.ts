/** Warnings about policies that are accepted but hardly intended: conditions that are never true or false, unregistered types. */
import type { TypeDefinition } from '../../../log/entries/entry.ts';
import { kindOf } from './expressions.ts';
import type { Policy, TypeLookup } from './policies.ts';
import { type Expr, mentions } from './syntax.ts';
import { Entity, SetValue, type Value } from './values.ts';

/** Entities that are no rows. */
const builtinEntityTypes: ReadonlySet<string> = new Set([
  'User',
  'Agent',
  'Role',
  'Org',
  'Purpose',
  'Type',
  'Column',
  'Branch',
  'Store',
]);

export function warningsOf(policies: readonly Policy[], typesOf: TypeLookup): readonly string[] {
  const policyWarnings: string[] = [];
  for (const { id, effect, condition } of policies) {
    const namedTypes = typesNamedIn(condition);
    for (const name of namedTypes) {
      if (typesOf(name).length > 0) continue;
      policyWarnings.push(`policy ${id}: no type ${name} is registered; rows of it are matched once there is one`);
    }
    const definitions = namedTypes.size === 1 ? typesOf([...namedTypes][0]!) : [];
    const hasBrokenCondition =
      definitions.length === 0
        ? isConditionBroken(condition, undefined)
        : definitions.every((typeDefinition) => isConditionBroken(condition, typeDefinition));
    if (!hasBrokenCondition) continue;
    const brokenConsequence = effect === 'permit' ? 'the policy permits nothing' : 'it fails, and a forbid that fails denies';
    policyWarnings.push(
      `policy ${id}: its condition is neither true nor false, so ${brokenConsequence}; compare the value with another`,
    );
  }
  return policyWarnings;
}

/** True when an operand that has to be a boolean never is one. */
function isConditionBroken(expr: Expr, definition: TypeDefinition | undefined): boolean {
  const isPartBroken = (part: Expr): boolean => isConditionBroken(part, definition);
  switch (expr.op) {
    case 'and':
    case 'or':
      return isPartBroken(expr.left) || isPartBroken(expr.right);
    case 'not':
      return isPartBroken(expr.arg);
    case 'if':
      return isPartBroken(expr.test) || (isPartBroken(expr.yes) && isPartBroken(expr.no));
    case 'attribute': {
      if (expr.left.op !== 'variable' || expr.left.name !== 'resource') break;
      if (definition === undefined || !Object.hasOwn(definition.properties, expr.name)) return false;
      return definition.properties[expr.name]!.type !== 'boolean';
    }
    default:
      break;
  }
  const conditionKind = kindOf(expr);
  return conditionKind !== 'bool' && conditionKind !== 'unknown';
}

function typesNamedIn(condition: Expr): ReadonlySet<string> {
  const namedTypes = new Set<string>();
  const addNamedType = (value: Value): void => {
    if (value instanceof SetValue) for (const item of value.items) addNamedType(item);
    if (!(value instanceof Entity)) return;
    if (value.type === 'Type') namedTypes.add(value.id);
    else if (value.type === 'Column') namedTypes.add(value.id.slice(0, value.id.lastIndexOf('.')));
    else if (!builtinEntityTypes.has(value.type)) namedTypes.add(value.type);
  };
  mentions(condition, (part) => {
    if (part.op === 'value') addNamedType(part.value);
    if (part.op === 'is' && !builtinEntityTypes.has(part.type)) namedTypes.add(part.type);
    return false;
  });
  return namedTypes;
}
