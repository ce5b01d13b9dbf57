/**
 * Policy texts: the engine's language, without the constructs that can't be compiled to exactly the engine's decision. A
 * construct that is refused here would otherwise be ignored, never match, or mean something else for rows than for the engine.
 */
import { ServiceError } from '../../../errors.ts';
import { canonicalJson } from '../../../log/values/canonical-json.ts';
import type { MaskKind, TypeDefinition } from '../../../log/entries/entry.ts';
import { sha256Hex } from '../../../log/bytes/sha256.ts';
import { checkText } from '../../../log/values/value.ts';
import { type Engine, policyToJson } from './engine.ts';
import { readExpression, type Refuse } from './expressions.ts';
import { partsOf, placeOf, unitsOf, type PolicyPart } from './policy-text.ts';
import { and, type Expr, FALSE, mentions, TRUE, value } from './syntax.ts';
import { Entity } from './values.ts';

export const cedarActions = [
  'read',
  'readCell',
  'aggregate',
  'search',
  'write',
  'delete',
  'erase',
  'fork',
  'merge',
  'replay',
  'export',
  'share',
  'administer',
] as const;
export type CedarAction = (typeof cedarActions)[number];

export interface Policy {
  /** Id of its text; with several in one text, or an @id: `<text>/<@id or number>`. */
  readonly id: string;
  readonly effect: 'permit' | 'forbid';
  /** The masked form of a forbidden cell; null for policies about anything but cells. */
  readonly mask: { readonly kind: MaskKind; readonly size?: number } | null;
  /** null: every action. */
  readonly actions: ReadonlySet<CedarAction> | null;
  /** Scope and conditions, actions left out. */
  readonly condition: Expr;
  readonly text: string;
}

/** Definitions of a name, one a tenant that has it: conditions on columns that Cedar has no type for are refused at once. */
export type TypeLookup = (name: string) => readonly TypeDefinition[];

/** The engine takes time by the square of a path, and more. */
const pathMax = 64;
const longPath = new RegExp(String.raw`\bhas\s+\w+(?:\s*\.\s*\w+){${pathMax}}`);

/** Throws REL_INVALID with line and column, REL_NOT_IMPLEMENTED for an annotation that asks for more than is done. */
export function readPolicies(id: string, text: string, types: TypeLookup = () => []): readonly Policy[] {
  checkText(text, 'the policy text');
  const parts = partsOf(text);
  if (parts.length === 0) throw new ServiceError('REL_INVALID', `policy ${id}: the text holds no policy`);
  const policies = parts.map((part, i) => readPolicy(id, text, part, parts.length === 1 ? null : i + 1, types));
  const ids = new Set<string>();
  for (const policy of policies) {
    if (ids.has(policy.id)) throw new ServiceError('REL_INVALID', `policy ${policy.id} is in its text twice`);
    ids.add(policy.id);
  }
  return policies;
}

/** SHA-256 of RFC 8785 JSON of texts by id; empty while there is none. */
export function policyDigest(texts: ReadonlyMap<string, string>): string {
  return texts.size === 0 ? '' : sha256Hex(canonicalJson(Object.fromEntries(texts)));
}

function readPolicy(textId: string, text: string, part: PolicyPart, number: number | null, types: TypeLookup): Policy {
  const refuseAt = (at: number, why: string, code: 'REL_INVALID' | 'REL_NOT_IMPLEMENTED' = 'REL_INVALID'): never => {
    const location = placeOf(text, at);
    throw new ServiceError(code, `policy ${textId}, ${location.line}:${location.column}: ${why}`, { ...location });
  };
  /** At the first token that says it, else where the policy begins. */
  const refuse: Refuse = (why, word) => refuseAt(part.tokens.find((token) => token.text === word)?.at ?? part.at, why);
  const body = part.tokens.slice(part.tokens.findIndex(({ text: word }) => word === 'when' || word === 'unless'));
  const refuseBody: Refuse = (why, word) => refuseAt(body.find((token) => token.text === word)?.at ?? part.at, why);

  for (const token of part.tokens) {
    if (/^\d+$/.test(token.text) && BigInt(token.text) > BigInt(Number.MAX_SAFE_INTEGER)) {
      refuseAt(token.at, `the literal ${token.text} is beyond 2^53 - 1, where the engine loses digits`);
    }
  }
  const long = longPath.exec(part.text);
  if (long !== null) refuseAt(part.at + long.index, `a path behind \`has\` may have ${pathMax} names`);
  const answer = policyToJson(part.text);
  if (answer === null)
    return refuseAt(part.at, 'it is nested too deeply, or has too many operators: split it into several policies');
  if (answer.type === 'failure') {
    const { message, sourceLocations } = answer.errors[0]!;
    const start = sourceLocations?.[0]?.start ?? 0;
    return refuseAt(part.at + unitsOf(part.text, start), message.replace('failed to parse policy from string: ', ''));
  }
  const { effect, principal, action, resource, conditions, annotations = {} } = answer.json;
  for (const name of Object.keys(annotations)) {
    if (name === 'id' || name === 'mask') continue;
    const at = part.tokens.find((token, i) => token.text === name && part.tokens[i - 1]?.text === '@')?.at ?? part.at;
    const known = name === 'budget' || name === 'valid';
    if (known) refuseAt(at, `@${name} is not done yet, and ignoring it would allow more than it says`, 'REL_NOT_IMPLEMENTED');
    refuseAt(at, `@${name} is no annotation that means anything here: @id and @mask are`);
  }

  const actions = actionsOf(action, refuse);
  const onlyCells = actions !== null && actions.size === 1 && actions.has('readCell');
  if (effect === 'permit' && actions?.has('readCell')) {
    refuse('cells are read with their row: only a forbid names Action::"readCell"', '"readCell"');
  }
  if (annotations['mask'] !== undefined && !(effect === 'forbid' && onlyCells)) {
    refuse('@mask stands on a forbid of Action::"readCell" only', 'mask');
  }
  const about = scopeOf('resource', resource, refuse);
  const who = scopeOf('principal', principal, refuse);
  checkPrincipal(principal, refuse);
  if (onlyCells) checkCellScope(resource, refuse);
  const type = typeNamedBy(resource);
  const definitions = type === undefined ? [] : types(type);

  let condition = and(who, about);
  for (const clause of conditions) {
    const expr = readExpression(clause.body, refuseBody, definitions[0]);
    for (const other of definitions.slice(1)) readExpression(clause.body, refuseBody, other);
    condition = and(condition, clause.kind === 'when' ? expr : { op: 'not', arg: expr });
  }
  const named = annotations['id'] ?? (number === null ? undefined : String(number));
  return {
    id: named === undefined ? textId : `${textId}/${named}`,
    effect,
    mask: annotations['mask'] !== undefined ? maskOf(annotations['mask'], refuse) : onlyCells ? { kind: 'redact' } : null,
    actions,
    condition,
    text: part.text,
  };
}

type PolicyJson = Extract<ReturnType<Engine['policyToJson']>, { type: 'success' }>['json'];
type Scope = PolicyJson['principal'] | PolicyJson['resource'];

function entityOf(json: { type: string; id: string } | { __entity: { type: string; id: string } }): Entity {
  const { type, id } = '__entity' in json ? json.__entity : json;
  return new Entity(type, id);
}

function actionsOf(scope: PolicyJson['action'], refuse: Refuse): ReadonlySet<CedarAction> | null {
  if (scope.op === 'All') return null;
  const named = 'entities' in scope ? scope.entities : 'entity' in scope ? [scope.entity] : [];
  const actions = new Set<CedarAction>();
  for (const json of named) {
    const { type, id } = entityOf(json);
    const action = cedarActions.find((known) => known === id);
    if (type !== 'Action' || action === undefined) {
      return refuse(`${type}::"${id}" is no action; there are ${cedarActions.join(', ')}`, `"${id}"`);
    }
    actions.add(action);
  }
  return actions;
}

function scopeEntity(scope: Scope): Entity | undefined {
  if ('entity' in scope) return entityOf(scope.entity);
  if (scope.op === 'is' && scope.in !== undefined && 'entity' in scope.in) return entityOf(scope.in.entity);
  return undefined;
}

function scopeOf(name: 'principal' | 'resource', scope: Scope, refuse: Refuse): Expr {
  const left: Expr = { op: 'variable', name };
  const entity = scopeEntity(scope);
  if (entity?.type === 'Row') refuse('rows are named by their type: <Type>::"<_pk>"', 'Row');
  if (entity?.type === 'Action') refuse('an action is neither principal nor resource', 'Action');
  switch (scope.op) {
    case 'All':
      return TRUE;
    case 'is':
      return { op: 'is', left, type: scope.entity_type, within: entity === undefined ? null : value(entity) };
    case '==':
    case 'in':
      return entity === undefined ? FALSE : { op: scope.op, left, right: value(entity) };
  }
}

const principalTypes: ReadonlySet<string> = new Set(['User', 'Agent']);
const abovePrincipals: ReadonlySet<string> = new Set(['User', 'Agent', 'Role', 'Org']);

function checkPrincipal(scope: PolicyJson['principal'], refuse: Refuse): void {
  const entity = scopeEntity(scope);
  if (scope.op === 'is' && !principalTypes.has(scope.entity_type)) {
    refuse(`no principal is a ${scope.entity_type}: they are User or Agent`, scope.entity_type);
  }
  if (entity === undefined) return;
  const possible = scope.op === '==' ? principalTypes : abovePrincipals;
  if (!possible.has(entity.type)) {
    refuse(`no principal is ${scope.op === '==' ? '' : 'in '}a ${entity.type}: ${[...possible].join(', ')}`, entity.type);
  }
}

const aboveCells: ReadonlySet<string> = new Set(['Column', 'Type', 'Org']);

/** A condition `is Person` on a cell never matches: a cell is a Column. */
function checkCellScope(scope: PolicyJson['resource'], refuse: Refuse): void {
  const entity = scopeEntity(scope);
  const wrong = scope.op === 'is' && scope.entity_type !== 'Column' ? scope.entity_type : undefined;
  const possible = scope.op === '==' ? new Set(['Column']) : aboveCells;
  const outside = wrong ?? (entity !== undefined && !possible.has(entity.type) ? entity.type : undefined);
  if (outside !== undefined) refuse(`a cell is no ${outside}: say Column::"<Type>.<column>" or in Type::"<Type>"`, outside);
}

/** The type whose rows the scope is about, where it says. */
function typeNamedBy(scope: PolicyJson['resource']): string | undefined {
  const entity = scopeEntity(scope);
  if (entity?.type === 'Type') return entity.id;
  if (entity?.type === 'Column') return entity.id.slice(0, entity.id.lastIndexOf('.'));
  if (scope.op === 'is' && scope.entity_type !== 'Row' && scope.entity_type !== 'Column') return scope.entity_type;
  return scope.op === '==' ? entity?.type : undefined;
}

const maskKinds: ReadonlySet<string> = new Set(['redact', 'null', 'hash', 'last4', 'year'] satisfies MaskKind[]);

function maskOf(text: string, refuse: Refuse): NonNullable<Policy['mask']> {
  const bucket = /^bucket:([1-9]\d{0,14})$/.exec(text);
  if (bucket !== null) return { kind: 'bucket', size: Number(bucket[1]) };
  if (!maskKinds.has(text)) refuse(`@mask(${JSON.stringify(text)}) is none of ${[...maskKinds].join(', ')}, bucket:<n>`, 'mask');
  return { kind: text as MaskKind };
}

/** True when the policy can say different things of a cell than of its row. */
export function namesColumns(policy: Policy): boolean {
  return mentions(
    policy.condition,
    (part) => part.op === 'value' && part.value instanceof Entity && part.value.type === 'Column',
  );
}
