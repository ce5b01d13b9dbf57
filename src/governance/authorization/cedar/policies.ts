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
import { partsOf, locationOf, unitsOf, type PolicyPart } from './policy-text.ts';
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
const hasPathNamesMax = 64;
const longHasPathPattern = new RegExp(String.raw`\bhas\s+\w+(?:\s*\.\s*\w+){${hasPathNamesMax}}`);

/** Throws REL_INVALID with line and column, REL_NOT_IMPLEMENTED for an annotation that asks for more than is done. */
export function readPolicies(id: string, text: string, types: TypeLookup = () => []): readonly Policy[] {
  checkText(text, 'the policy text');
  const policyParts = partsOf(text);
  if (policyParts.length === 0) throw new ServiceError('REL_INVALID', `policy ${id}: the text holds no policy`);
  const policies = policyParts.map((policyPart, i) =>
    readPolicy(id, text, policyPart, policyParts.length === 1 ? null : i + 1, types),
  );
  const policyIds = new Set<string>();
  for (const policy of policies) {
    if (policyIds.has(policy.id)) throw new ServiceError('REL_INVALID', `policy ${policy.id} is in its text twice`);
    policyIds.add(policy.id);
  }
  return policies;
}

/** SHA-256 of RFC 8785 JSON of texts by id; empty while there is none. */
export function policyDigest(texts: ReadonlyMap<string, string>): string {
  return texts.size === 0 ? '' : sha256Hex(canonicalJson(Object.fromEntries(texts)));
}

function readPolicy(
  textId: string,
  text: string,
  policyPart: PolicyPart,
  policyNumber: number | null,
  types: TypeLookup,
): Policy {
  const refuseAt = (at: number, why: string, code: 'REL_INVALID' | 'REL_NOT_IMPLEMENTED' = 'REL_INVALID'): never => {
    const location = locationOf(text, at);
    throw new ServiceError(code, `policy ${textId}, ${location.line}:${location.column}: ${why}`, { ...location });
  };
  /** At the first token that says it, else where the policy begins. */
  const refusePolicy: Refuse = (why, word) =>
    refuseAt(policyPart.tokens.find((token) => token.text === word)?.at ?? policyPart.at, why);
  const conditionTokens = policyPart.tokens.slice(
    policyPart.tokens.findIndex(({ text: word }) => word === 'when' || word === 'unless'),
  );
  const refuseBody: Refuse = (why, word) =>
    refuseAt(conditionTokens.find((token) => token.text === word)?.at ?? policyPart.at, why);

  for (const token of policyPart.tokens) {
    if (/^\d+$/.test(token.text) && BigInt(token.text) > BigInt(Number.MAX_SAFE_INTEGER)) {
      refuseAt(token.at, `the literal ${token.text} is beyond 2^53 - 1, where the engine loses digits`);
    }
  }
  const longHasPath = longHasPathPattern.exec(policyPart.text);
  if (longHasPath !== null)
    refuseAt(policyPart.at + longHasPath.index, `a path behind \`has\` may have ${hasPathNamesMax} names`);
  const cedarJson = policyToJson(policyPart.text);
  if (cedarJson === null)
    return refuseAt(policyPart.at, 'it is nested too deeply, or has too many operators: split it into several policies');
  if (cedarJson.type === 'failure') {
    const { message, sourceLocations } = cedarJson.errors[0]!;
    const errorStart = sourceLocations?.[0]?.start ?? 0;
    return refuseAt(
      policyPart.at + unitsOf(policyPart.text, errorStart),
      message.replace('failed to parse policy from string: ', ''),
    );
  }
  const { effect, principal, action, resource, conditions, annotations = {} } = cedarJson.json;
  for (const name of Object.keys(annotations)) {
    if (name === 'id' || name === 'mask') continue;
    const annotationAt =
      policyPart.tokens.find((token, i) => token.text === name && policyPart.tokens[i - 1]?.text === '@')?.at ?? policyPart.at;
    const isFutureAnnotation = name === 'budget' || name === 'valid';
    if (isFutureAnnotation)
      refuseAt(annotationAt, `@${name} is not done yet, and ignoring it would allow more than it says`, 'REL_NOT_IMPLEMENTED');
    refuseAt(annotationAt, `@${name} is no annotation that means anything here: @id and @mask are`);
  }

  const actions = actionsOfScope(action, refusePolicy);
  const isCellPolicy = actions !== null && actions.size === 1 && actions.has('readCell');
  if (effect === 'permit' && actions?.has('readCell')) {
    refusePolicy('cells are read with their row: only a forbid names Action::"readCell"', '"readCell"');
  }
  if (annotations['mask'] !== undefined && !(effect === 'forbid' && isCellPolicy)) {
    refusePolicy('@mask stands on a forbid of Action::"readCell" only', 'mask');
  }
  const resourceScope = scopeCondition('resource', resource, refusePolicy);
  const principalScope = scopeCondition('principal', principal, refusePolicy);
  checkPrincipal(principal, refusePolicy);
  if (isCellPolicy) checkCellScope(resource, refusePolicy);
  const scopedTypeName = typeNamedBy(resource);
  const scopedTypes = scopedTypeName === undefined ? [] : types(scopedTypeName);

  let condition = and(principalScope, resourceScope);
  for (const clause of conditions) {
    const clauseExpr = readExpression(clause.body, refuseBody, scopedTypes[0]);
    for (const otherType of scopedTypes.slice(1)) readExpression(clause.body, refuseBody, otherType);
    condition = and(condition, clause.kind === 'when' ? clauseExpr : { op: 'not', arg: clauseExpr });
  }
  const policyName = annotations['id'] ?? (policyNumber === null ? undefined : String(policyNumber));
  return {
    id: policyName === undefined ? textId : `${textId}/${policyName}`,
    effect,
    mask:
      annotations['mask'] !== undefined
        ? maskOfAnnotation(annotations['mask'], refusePolicy)
        : isCellPolicy
          ? { kind: 'redact' }
          : null,
    actions,
    condition,
    text: policyPart.text,
  };
}

type PolicyJson = Extract<ReturnType<Engine['policyToJson']>, { type: 'success' }>['json'];
type PolicyScope = PolicyJson['principal'] | PolicyJson['resource'];

function entityOfJson(json: { type: string; id: string } | { __entity: { type: string; id: string } }): Entity {
  const { type, id } = '__entity' in json ? json.__entity : json;
  return new Entity(type, id);
}

function actionsOfScope(scope: PolicyJson['action'], refuse: Refuse): ReadonlySet<CedarAction> | null {
  if (scope.op === 'All') return null;
  const namedActions = 'entities' in scope ? scope.entities : 'entity' in scope ? [scope.entity] : [];
  const actions = new Set<CedarAction>();
  for (const json of namedActions) {
    const { type, id } = entityOfJson(json);
    const action = cedarActions.find((known) => known === id);
    if (type !== 'Action' || action === undefined) {
      return refuse(`${type}::"${id}" is no action; there are ${cedarActions.join(', ')}`, `"${id}"`);
    }
    actions.add(action);
  }
  return actions;
}

function scopeEntity(scope: PolicyScope): Entity | undefined {
  if ('entity' in scope) return entityOfJson(scope.entity);
  if (scope.op === 'is' && scope.in !== undefined && 'entity' in scope.in) return entityOfJson(scope.in.entity);
  return undefined;
}

function scopeCondition(name: 'principal' | 'resource', scope: PolicyScope, refuse: Refuse): Expr {
  const scopeVariable: Expr = { op: 'variable', name };
  const scopedEntity = scopeEntity(scope);
  if (scopedEntity?.type === 'Row') refuse('rows are named by their type: <Type>::"<_pk>"', 'Row');
  if (scopedEntity?.type === 'Action') refuse('an action is neither principal nor resource', 'Action');
  switch (scope.op) {
    case 'All':
      return TRUE;
    case 'is':
      return {
        op: 'is',
        left: scopeVariable,
        type: scope.entity_type,
        within: scopedEntity === undefined ? null : value(scopedEntity),
      };
    case '==':
    case 'in':
      return scopedEntity === undefined ? FALSE : { op: scope.op, left: scopeVariable, right: value(scopedEntity) };
  }
}

const principalTypes: ReadonlySet<string> = new Set(['User', 'Agent']);
const abovePrincipals: ReadonlySet<string> = new Set(['User', 'Agent', 'Role', 'Org']);

function checkPrincipal(scope: PolicyJson['principal'], refuse: Refuse): void {
  const scopedEntity = scopeEntity(scope);
  if (scope.op === 'is' && !principalTypes.has(scope.entity_type)) {
    refuse(`no principal is a ${scope.entity_type}: they are User or Agent`, scope.entity_type);
  }
  if (scopedEntity === undefined) return;
  const possibleTypes = scope.op === '==' ? principalTypes : abovePrincipals;
  if (!possibleTypes.has(scopedEntity.type)) {
    refuse(
      `no principal is ${scope.op === '==' ? '' : 'in '}a ${scopedEntity.type}: ${[...possibleTypes].join(', ')}`,
      scopedEntity.type,
    );
  }
}

const aboveCells: ReadonlySet<string> = new Set(['Column', 'Type', 'Org']);

/** A condition `is Person` on a cell never matches: a cell is a Column. */
function checkCellScope(scope: PolicyJson['resource'], refuse: Refuse): void {
  const scopedEntity = scopeEntity(scope);
  const wrongScopeType = scope.op === 'is' && scope.entity_type !== 'Column' ? scope.entity_type : undefined;
  const possibleTypes = scope.op === '==' ? new Set(['Column']) : aboveCells;
  const foreignType =
    wrongScopeType ?? (scopedEntity !== undefined && !possibleTypes.has(scopedEntity.type) ? scopedEntity.type : undefined);
  if (foreignType !== undefined)
    refuse(`a cell is no ${foreignType}: say Column::"<Type>.<column>" or in Type::"<Type>"`, foreignType);
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

function maskOfAnnotation(text: string, refuse: Refuse): NonNullable<Policy['mask']> {
  const bucketMask = /^bucket:([1-9]\d{0,14})$/.exec(text);
  if (bucketMask !== null) return { kind: 'bucket', size: Number(bucketMask[1]) };
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
