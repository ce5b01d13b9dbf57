/** Caller, purpose and resource in Cedar's words. Hierarchies are spelled out in names: paths by `/`, purposes by `:`. */
import type { TypeDefinition } from '../../../log/entries/entry.ts';
import type { CedarAction } from './policies.ts';
import { Entity, Instant, type Value } from './values.ts';

/** The facts about an invocation when it is decided. */
export interface Asker {
  readonly principal: string;
  readonly roles: readonly string[];
  /** Organisation path in force. */
  readonly path: string | null;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  readonly purpose: string | null;
  readonly door: string;
  readonly branch: string;
  readonly breakGlass: string | null;
  readonly accessScopeRef: string | null;
  readonly clientIp: string | null;
}

/** Equal keys, equal decisions, whatever the clock says. */
export function askerKey(asker: Asker): string {
  const { principal, roles, path, attributes, purpose, door, branch, breakGlass, accessScopeRef, clientIp } = asker;
  const sortedAttributes = Object.entries(attributes).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([principal, roles, path, sortedAttributes, purpose, door, branch, breakGlass, accessScopeRef, clientIp]);
}

/** Everything but the resource and the clock. */
export interface Situation {
  readonly principal: Entity;
  readonly attributes: ReadonlyMap<string, Value>;
  readonly context: ReadonlyMap<string, Value>;
  ancestors(entity: Entity): readonly Entity[];
}

export function situationOf(asker: Asker): Situation {
  const principalEntity = new Entity(asker.attributes['agent'] === true ? 'Agent' : 'User', asker.principal);
  const attributes = new Map<string, Value>();
  for (const [name, attributeValue] of Object.entries(asker.attributes)) {
    // Cedar has no fractions: such an attribute is absent, so what asks for it errs, and never widens anything.
    if (typeof attributeValue !== 'number') attributes.set(name, attributeValue);
    else if (Number.isSafeInteger(attributeValue)) attributes.set(name, BigInt(attributeValue));
  }
  const context = new Map<string, Value>([
    ['door', asker.door],
    ['branch', asker.branch],
  ]);
  if (asker.purpose !== null) context.set('purpose', new Entity('Purpose', asker.purpose));
  if (asker.path !== null) context.set('org', new Entity('Org', asker.path));
  if (asker.breakGlass !== null) context.set('break_glass', asker.breakGlass);
  if (asker.accessScopeRef !== null) context.set('access_scope_ref', asker.accessScopeRef);
  if (asker.clientIp !== null) context.set('client_ip', asker.clientIp);
  const principalAncestors = [
    ...asker.roles.map((role) => new Entity('Role', role)),
    ...(asker.path === null ? [] : selfAndAbove('Org', asker.path, '/')),
  ];
  return {
    principal: principalEntity,
    attributes,
    context,
    ancestors: (entity) => {
      if (entity.type === principalEntity.type && entity.id === principalEntity.id) return principalAncestors;
      if (entity.type === 'Org') return selfAndAbove('Org', entity.id, '/').slice(1);
      return entity.type === 'Purpose' ? selfAndAbove('Purpose', entity.id, ':').slice(1) : [];
    },
  };
}

/** The clock as policies see it. */
export function instantOf(nanoseconds: bigint): Instant {
  const ms = nanoseconds / 1_000_000n;
  return new Instant(nanoseconds < 0n && ms * 1_000_000n !== nanoseconds ? ms - 1n : ms);
}

export function selfAndAbove(type: string, name: string, separator: string): readonly Entity[] {
  const ancestorEntities = [new Entity(type, name)];
  for (
    let separatorAt = name.lastIndexOf(separator);
    separatorAt > 0;
    separatorAt = name.lastIndexOf(separator, separatorAt - 1)
  ) {
    ancestorEntities.push(new Entity(type, name.slice(0, separatorAt)));
  }
  return ancestorEntities;
}

/**
 * The resource of a request. A cell has the attributes of its row and is `Column::"<Type>.<column>"`, a row is `<Type>::"<_pk>"`;
 * anything else is an entity without attributes: `Type::"Person"`, `Branch::"main"`, `Store::"audit"`.
 */
export type Resource =
  | { readonly kind: 'row'; readonly type: TypeDefinition }
  | { readonly kind: 'cell'; readonly type: TypeDefinition; readonly column: string }
  | { readonly kind: 'entity'; readonly entity: Entity; readonly above: readonly Entity[] };

export interface Question {
  readonly situation: Situation;
  readonly action: CedarAction;
  readonly resource: Resource;
  /** null: not known yet, so that what folds can be kept. */
  readonly now: Instant | null;
}
