/**
 * Columns that a type declares masked, as the policy that they stand for: `@mask("redact") forbid(principal, action ==
 * Action::"readCell", resource == Column::"T.c") unless { principal in Role::"unmask" }`, whatever is installed.
 */
import type { TypeDefinition } from '../../../log/entries/entry.ts';
import type { Policy } from './policies.ts';
import { and, type Expr, value } from './syntax.ts';
import { Entity } from './values.ts';

const mayUnmask: Expr = { op: 'in', left: { op: 'variable', name: 'principal' }, right: value(new Entity('Role', 'unmask')) };

export function declaredMasks(type: TypeDefinition): readonly Policy[] {
  const maskedProperties = Object.entries(type.properties).filter(([, property]) => property.masked);
  return maskedProperties.map(([column]) => {
    const cellEntityText = `Column::${JSON.stringify(`${type.name}.${column}`)}`;
    const isCell: Expr = {
      op: '==',
      left: { op: 'variable', name: 'resource' },
      right: value(new Entity('Column', `${type.name}.${column}`)),
    };
    return {
      id: `masked ${type.name}.${column}`,
      effect: 'forbid',
      mask: { kind: 'redact' },
      actions: new Set(['readCell'] as const),
      condition: and(isCell, { op: 'not', arg: mayUnmask }),
      text: `@mask("redact") forbid(principal, action == Action::"readCell", resource == ${cellEntityText}) unless { principal in Role::"unmask" };`,
    };
  });
}
