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
  const expr = convert(json, refuse);
  check(expr, refuse, definition);
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

function convert(json: Json, refuse: Refuse): Expr {
  const [key, body] = Object.entries(json)[0] as [string, never];
  const read = (part: Json): Expr => convert(part, refuse);
  const two = body as { left: Json; right: Json };
  if (binaryOps.has(key)) return { op: key as BinaryOp, left: read(two.left), right: read(two.right) };
  if (unaryOps[key] !== undefined) return { op: unaryOps[key], arg: read((body as { arg: Json }).arg) };
  switch (key) {
    case 'Value':
      return constant(body, refuse);
    case 'Var':
      return { op: 'variable', name: body };
    case '&&':
      return and(read(two.left), read(two.right));
    case '||':
      return { op: 'or', left: read(two.left), right: read(two.right) };
    case '.': {
      const { left, attr } = body as { left: Json; attr: string };
      return { op: 'attribute', left: read(left), name: attr };
    }
    case 'has': {
      const { left, attr } = body as { left: Json; attr: string | string[] };
      return hasAll(read(left), typeof attr === 'string' ? [attr] : attr);
    }
    case 'like': {
      const { left, pattern } = body as { left: Json; pattern: ('Wildcard' | { Literal: string })[] };
      return { op: 'like', left: read(left), pattern: pattern.map((part) => (part === 'Wildcard' ? null : part.Literal)) };
    }
    case 'is': {
      const { left, entity_type, in: within } = body as { left: Json; entity_type: string; in?: Json };
      return { op: 'is', left: read(left), type: entity_type, within: within === undefined ? null : read(within) };
    }
    case 'if-then-else': {
      const { if: test, then, else: otherwise } = body as { if: Json; then: Json; else: Json };
      return { op: 'if', test: read(test), yes: read(then), no: read(otherwise) };
    }
    case 'Set':
      return { op: 'set', items: (body as Json[]).map(read) };
    case 'Record':
      return { op: 'record', fields: Object.entries(body as Record<string, Json>).map(([name, field]) => [name, read(field)]) };
    case 'hasTag':
    case 'getTag':
      return refuse('entities have no tags here', key);
    case 'Slot':
      return refuse('templates are not supported');
    default:
      if (functionNames.has(key)) return { op: 'call', name: key, args: (body as Json[]).map(read) };
      return refuse(`${key}() is not supported: no column holds what it is about`, key);
  }
}

/** `a has b.c` asks for a.b first: `a has b && a.b has c`. */
function hasAll(left: Expr, names: readonly string[]): Expr {
  const [name, ...rest] = names;
  const here: Expr = { op: 'has', left, name: name! };
  return rest.length === 0 ? here : and(here, hasAll({ op: 'attribute', left, name: name! }, rest));
}

function constant(json: unknown, refuse: Refuse): Expr {
  if (typeof json === 'boolean' || typeof json === 'string') return value(json);
  if (typeof json === 'number') return value(BigInt(json));
  if (typeof json === 'object' && json !== null && '__entity' in json) {
    const { type, id } = json.__entity as { type: string; id: string };
    if (type === 'Row') refuse('rows are named by their type: <Type>::"<_pk>"', 'Row');
    return value(new Entity(type, id));
  }
  return refuse('a literal of this kind is not supported');
}

const uncomparable: ReadonlySet<string> = new Set(['number', 'json', 'vector']);

function check(expr: Expr, refuse: Refuse, definition: TypeDefinition | undefined): void {
  const parts = operands(expr);
  for (const [i, part] of parts.entries()) {
    if (part.op !== 'variable') continue;
    if (part.name === 'context' && expr.op !== 'attribute' && expr.op !== 'has') {
      refuse('context is asked for its attributes, it is no value', 'context');
    }
    if (part.name === 'resource' && !(i === 0 && asksResource.has(expr.op)) && expr.op !== '==' && expr.op !== '!=') {
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
      if (!bareResource(expr.left) && dependsOnRow(expr.left)) refuse('what is left of `in` may not depend on the row', 'in');
      break;
    case 'is':
      if (expr.within !== null && dependsOnRow(expr.within)) refuse('what is right of `in` may not depend on the row', 'in');
      if (!bareResource(expr.left) && dependsOnRow(expr.left)) refuse('no column holds entities', 'is');
      break;
    case '==':
    case '!=': {
      const [left, right] = [kindOf(expr.left), kindOf(expr.right)];
      if (left !== 'unknown' && right !== 'unknown' && left !== right) {
        refuse(`a ${left} never equals a ${right}`, expr.op);
      }
      const other = bareResource(expr.left) ? expr.right : bareResource(expr.right) ? expr.left : undefined;
      if (other !== undefined && dependsOnRow(other) && !bareResource(other)) {
        refuse('what `resource` is compared with may not depend on the row', 'resource');
      }
      const entity = [expr.left, expr.right].find((part) => kindOf(part) === 'entity');
      const cell = [expr.left, expr.right].find((part) => part.op === 'attribute' && bareResource(part.left));
      if (entity !== undefined && cell !== undefined) refuse('no column holds entities', expr.op);
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
  for (const part of parts) if (part.op !== 'variable') check(part, refuse, definition);
}

const asksResource: ReadonlySet<Expr['op']> = new Set(['attribute', 'has', 'in', 'is']);

function checkAttribute(
  { op, left, name }: Extract<Expr, { op: 'attribute' | 'has' }>,
  refuse: Refuse,
  definition: TypeDefinition | undefined,
): void {
  if (left.op === 'variable' && left.name === 'context' && contextTypes[name] === undefined) {
    refuse(`context holds no ${name}: ${Object.keys(contextTypes).join(', ')}`, name);
  }
  if (!bareResource(left) && left.op !== 'record' && dependsOnRow(left)) refuse('no column holds entities or records', name);
  if (!bareResource(left)) return;
  if (name === 'system_to') refuse('system_to changes when a row is superseded: no condition may depend on it', name);
  const type = definition !== undefined && Object.hasOwn(definition.properties, name) ? definition.properties[name]!.type : '';
  if (op === 'attribute' && uncomparable.has(type)) {
    refuse(`${definition!.name}.${name} is a ${type} column, which Cedar has no type for`, name);
  }
}

function bareResource(expr: Expr): boolean {
  return expr.op === 'variable' && expr.name === 'resource';
}

function dependsOnRow(expr: Expr): boolean {
  return bareResource(expr) || operands(expr).some(dependsOnRow);
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
