/**
 * The engine's condition trees as ours. A condition is refused where a row could not be decided exactly as the engine would, or
 * where it can never be true, which no author would notice.
 */
import type { Expr as Json } from '@cedar-policy/cedar-wasm/nodejs';
import type { TypeDefinition } from '../../../log/entries/entry.ts';
import { call, functionNames } from './operators.ts';
import { and, type BinaryOp, type Expr, operands, value } from './syntax.ts';
import { Entity, ERROR, Instant, Span } from './values.ts';

/** Throws; `word` is the token at which the place is looked for. */
export type Refuse = (why: string, word?: string) => never;

/** Attributes that `context` may hold, and the type of each. */
export const contextTypes: Readonly<Record<string, 'entity' | 'string' | 'datetime'>> = {
  purpose: 'entity',
  org: 'entity',
  door: 'string',
  branch: 'string',
  break_glass: 'string',
  access_scope_ref: 'string',
  client_ip: 'string',
  now: 'datetime',
};

/** Throws through `refuse`. `definition` is the type that the policy's scope names, where it is known. */
export function readExpression(json: Json, refuse: Refuse, definition?: TypeDefinition): Expr {
  const expr = convertCedarJson(json, refuse);
  checkCedarExpr(expr, refuse, definition);
  return expr;
}

const binaryOps: ReadonlySet<string> = new Set<BinaryOp>([
  '==',
  '!=',
  '<',
  '<=',
  '>',
  '>=',
  '+',
  '-',
  '*',
  'in',
  'contains',
  'containsAll',
  'containsAny',
]);
const unaryOps: Readonly<Record<string, 'not' | 'negate' | 'isEmpty'>> = { '!': 'not', neg: 'negate', isEmpty: 'isEmpty' };

function convertCedarJson(json: Json, refuse: Refuse): Expr {
  const [cedarJsonKey, cedarJsonBody] = Object.entries(json)[0] as [string, never];
  const readOperand = (part: Json): Expr => convertCedarJson(part, refuse);
  const operandPair = cedarJsonBody as { left: Json; right: Json };
  if (binaryOps.has(cedarJsonKey))
    return { op: cedarJsonKey as BinaryOp, left: readOperand(operandPair.left), right: readOperand(operandPair.right) };
  if (unaryOps[cedarJsonKey] !== undefined)
    return { op: unaryOps[cedarJsonKey], arg: readOperand((cedarJsonBody as { arg: Json }).arg) };
  switch (cedarJsonKey) {
    case 'Value':
      return constantExpr(cedarJsonBody, refuse);
    case 'Var':
      return { op: 'variable', name: cedarJsonBody };
    case '&&':
      return and(readOperand(operandPair.left), readOperand(operandPair.right));
    case '||':
      return { op: 'or', left: readOperand(operandPair.left), right: readOperand(operandPair.right) };
    case '.': {
      const { left, attr } = cedarJsonBody as { left: Json; attr: string };
      return { op: 'attribute', left: readOperand(left), name: attr };
    }
    case 'has': {
      const { left, attr } = cedarJsonBody as { left: Json; attr: string | string[] };
      return hasAllAttributes(readOperand(left), typeof attr === 'string' ? [attr] : attr);
    }
    case 'like': {
      const { left, pattern } = cedarJsonBody as { left: Json; pattern: ('Wildcard' | { Literal: string })[] };
      return {
        op: 'like',
        left: readOperand(left),
        pattern: pattern.map((operandJson) => (operandJson === 'Wildcard' ? null : operandJson.Literal)),
      };
    }
    case 'is': {
      const { left, entity_type, in: within } = cedarJsonBody as { left: Json; entity_type: string; in?: Json };
      return { op: 'is', left: readOperand(left), type: entity_type, within: within === undefined ? null : readOperand(within) };
    }
    case 'if-then-else': {
      const { if: test, then, else: elseBranch } = cedarJsonBody as { if: Json; then: Json; else: Json };
      return { op: 'if', test: readOperand(test), yes: readOperand(then), no: readOperand(elseBranch) };
    }
    case 'Set':
      return { op: 'set', items: (cedarJsonBody as Json[]).map(readOperand) };
    case 'Record':
      return {
        op: 'record',
        fields: Object.entries(cedarJsonBody as Record<string, Json>).map(([name, field]) => [name, readOperand(field)]),
      };
    case 'hasTag':
    case 'getTag':
      return refuse('entities have no tags here', cedarJsonKey);
    case 'Slot':
      return refuse('templates are not supported');
    default:
      if (functionNames.has(cedarJsonKey))
        return { op: 'call', name: cedarJsonKey, args: (cedarJsonBody as Json[]).map(readOperand) };
      return refuse(`${cedarJsonKey}() is not supported: no column holds what it is about`, cedarJsonKey);
  }
}

/** `a has b.c` asks for a.b first: `a has b && a.b has c`. */
function hasAllAttributes(left: Expr, names: readonly string[]): Expr {
  const [name, ...remainingAttributes] = names;
  const hasAttribute: Expr = { op: 'has', left, name: name! };
  return remainingAttributes.length === 0
    ? hasAttribute
    : and(hasAttribute, hasAllAttributes({ op: 'attribute', left, name: name! }, remainingAttributes));
}

function constantExpr(json: unknown, refuse: Refuse): Expr {
  if (typeof json === 'boolean' || typeof json === 'string') return value(json);
  if (typeof json === 'number') return value(BigInt(json));
  if (typeof json === 'object' && json !== null && '__entity' in json) {
    const { type, id } = json.__entity as { type: string; id: string };
    if (type === 'Row') refuse('rows are named by their type: <Type>::"<_pk>"', 'Row');
    return value(new Entity(type, id));
  }
  return refuse('a literal of this kind is not supported');
}

const uncomparableTypes: ReadonlySet<string> = new Set(['number', 'json', 'vector']);

function checkCedarExpr(expr: Expr, refuse: Refuse, definition: TypeDefinition | undefined): void {
  const exprOperands = operands(expr);
  for (const [i, exprOperand] of exprOperands.entries()) {
    if (exprOperand.op !== 'variable') continue;
    if (exprOperand.name === 'context' && expr.op !== 'attribute' && expr.op !== 'has') {
      refuse('context is asked for its attributes, it is no value', 'context');
    }
    if (
      exprOperand.name === 'resource' &&
      !(i === 0 && resourceOperations.has(expr.op)) &&
      expr.op !== '==' &&
      expr.op !== '!='
    ) {
      refuse('resource is compared, tested with `is` and `in` or asked for attributes; a row is no other value', 'resource');
    }
  }
  switch (expr.op) {
    case 'variable':
      if (expr.name === 'context') refuse('context is asked for its attributes, it is no value', 'context');
      break;
    case 'attribute':
    case 'has':
      checkAttribute(expr, refuse, definition);
      break;
    case 'in':
      if (dependsOnRow(expr.right)) refuse('what is right of `in` may not depend on the row', 'in');
      if (!isBareResource(expr.left) && dependsOnRow(expr.left)) refuse('what is left of `in` may not depend on the row', 'in');
      break;
    case 'is':
      if (expr.within !== null && dependsOnRow(expr.within)) refuse('what is right of `in` may not depend on the row', 'in');
      if (!isBareResource(expr.left) && dependsOnRow(expr.left)) refuse('no column holds entities', 'is');
      break;
    case '==':
    case '!=': {
      const [left, right] = [kindOf(expr.left), kindOf(expr.right)];
      if (left !== 'unknown' && right !== 'unknown' && left !== right) {
        refuse(`a ${left} never equals a ${right}`, expr.op);
      }
      const resourceOperand = isBareResource(expr.left) ? expr.right : isBareResource(expr.right) ? expr.left : undefined;
      if (resourceOperand !== undefined && dependsOnRow(resourceOperand) && !isBareResource(resourceOperand)) {
        refuse('what `resource` is compared with may not depend on the row', 'resource');
      }
      const entityOperand = [expr.left, expr.right].find((part) => kindOf(part) === 'entity');
      const resourceCell = [expr.left, expr.right].find((part) => part.op === 'attribute' && isBareResource(part.left));
      if (entityOperand !== undefined && resourceCell !== undefined) refuse('no column holds entities', expr.op);
      break;
    }
    case 'call':
      if (expr.name === 'datetime' || expr.name === 'duration') {
        const [arg] = expr.args;
        if (arg?.op === 'value' && call(expr.name, [arg.value]) === ERROR) {
          refuse(`${expr.name}(${JSON.stringify(arg.value)}) is none`, JSON.stringify(arg.value));
        }
      }
      break;
    default:
      break;
  }
  for (const part of exprOperands) if (part.op !== 'variable') checkCedarExpr(part, refuse, definition);
}

const resourceOperations: ReadonlySet<Expr['op']> = new Set(['attribute', 'has', 'in', 'is']);

function checkAttribute(
  { op, left, name }: Extract<Expr, { op: 'attribute' | 'has' }>,
  refuse: Refuse,
  definition: TypeDefinition | undefined,
): void {
  if (left.op === 'variable' && left.name === 'context' && contextTypes[name] === undefined) {
    refuse(`context holds no ${name}: ${Object.keys(contextTypes).join(', ')}`, name);
  }
  if (!isBareResource(left) && left.op !== 'record' && dependsOnRow(left)) refuse('no column holds entities or records', name);
  if (!isBareResource(left)) return;
  if (name === 'system_to') refuse('system_to changes when a row is superseded: no condition may depend on it', name);
  const attributeType =
    definition !== undefined && Object.hasOwn(definition.properties, name) ? definition.properties[name]!.type : '';
  if (op === 'attribute' && uncomparableTypes.has(attributeType)) {
    refuse(`${definition!.name}.${name} is a ${attributeType} column, which Cedar has no type for`, name);
  }
}

function isBareResource(expr: Expr): boolean {
  return expr.op === 'variable' && expr.name === 'resource';
}

function dependsOnRow(expr: Expr): boolean {
  return isBareResource(expr) || operands(expr).some(dependsOnRow);
}

/** The type of what it evaluates to, where every evaluation that is no error has the same. */
export function kindOf(expr: Expr): string {
  switch (expr.op) {
    case 'value':
      if (typeof expr.value === 'boolean') return 'bool';
      if (typeof expr.value === 'bigint') return 'long';
      if (typeof expr.value === 'string') return 'string';
      if (expr.value instanceof Entity) return 'entity';
      return expr.value instanceof Instant ? 'datetime' : expr.value instanceof Span ? 'duration' : 'unknown';
    case 'variable':
      return 'entity';
    case 'attribute':
      return (expr.left.op === 'variable' && expr.left.name === 'context' && contextTypes[expr.name]) || 'unknown';
    case '+':
    case '-':
    case '*':
    case 'negate':
      return 'long';
    case 'set':
      return 'set';
    case 'record':
      return 'record';
    case 'call':
      if (expr.name === 'datetime' || expr.name === 'offset' || expr.name === 'toDate') return 'datetime';
      return expr.name === 'duration' || expr.name === 'durationSince' || expr.name === 'toTime' ? 'duration' : 'long';
    case 'if':
      return 'unknown';
    case 'column':
    case 'now':
      return 'unknown';
    default:
      return 'bool';
  }
}
