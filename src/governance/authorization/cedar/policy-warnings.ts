/** Warnings about policies that are accepted but hardly intended: conditions that are never true or false, unregistered types. */
import type { TypeDefinition } from '../../../log/entries/entry.ts';
import { kindOf } from './expressions.ts';
import type { Policy, TypeLookup } from './policies.ts';
import { type Expr, mentions } from './syntax.ts';
import { Entity, SetValue, type Value } from './values.ts';

/** Entities that are no rows. */
const others: ReadonlySet<string> = new Set(['User', 'Agent', 'Role', 'Org', 'Purpose', 'Type', 'Column', 'Branch', 'Store']);

export function warningsOf(policies: readonly Policy[], typesOf: TypeLookup): readonly string[] {
  const warnings: string[] = [];
  for (const { id, effect, condition } of policies) {
    const names = typesNamedIn(condition);
    for (const name of names) {
      if (typesOf(name).length > 0) continue;
      warnings.push(`policy ${id}: no type ${name} is registered; rows of it are matched once there is one`);
    }
    const definitions = names.size === 1 ? typesOf([...names][0]!) : [];
    const broken =
      definitions.length === 0 ? isBroken(condition, undefined) : definitions.every((each) => isBroken(condition, each));
    if (!broken) continue;
    const so = effect === 'permit' ? 'the policy permits nothing' : 'it fails, and a forbid that fails denies';
    warnings.push(`policy ${id}: its condition is neither true nor false, so ${so}; compare the value with another`);
  }
  return warnings;
}

/** True when an operand that has to be a boolean never is one. */
function isBroken(expr: Expr, definition: TypeDefinition | undefined): boolean {
  const isPartBroken = (part: Expr): boolean => isBroken(part, definition);
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
  const kind = kindOf(expr);
  return kind !== 'bool' && kind !== 'unknown';
}

function typesNamedIn(condition: Expr): ReadonlySet<string> {
  const names = new Set<string>();
  const add = (value: Value): void => {
    if (value instanceof SetValue) for (const item of value.items) add(item);
    if (!(value instanceof Entity)) return;
    if (value.type === 'Type') names.add(value.id);
    else if (value.type === 'Column') names.add(value.id.slice(0, value.id.lastIndexOf('.')));
    else if (!others.has(value.type)) names.add(value.type);
  };
  mentions(condition, (part) => {
    if (part.op === 'value') add(part.value);
    if (part.op === 'is' && !others.has(part.type)) names.add(part.type);
    return false;
  });
  return names;
}
