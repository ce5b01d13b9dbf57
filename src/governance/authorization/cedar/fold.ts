/**
 * Partial evaluation: the facts of an invocation are folded in, and the rest is about cells of the row. The result is true or
 * false, an error, or a residual with the value of the whole expression for every row.
 */
import { systemColumns, type ColumnType } from '../../../log/values/value.ts';
import type { Question, Resource } from './entities.ts';
import { binary, call, isIn, like, unary } from './operators.ts';
import { and, type Expr, FAILS, FALSE, isBoolean, TRUE, value } from './syntax.ts';
import { Entity, ERROR, RecordValue, SetValue, type Outcome, type Value } from './values.ts';

export function fold(expr: Expr, question: Question): Expr {
  const again = (part: Expr): Expr => fold(part, question);
  switch (expr.op) {
    case 'value':
    case 'error':
    case 'column':
    case 'present':
    case 'covered':
      return expr;
    case 'now':
      return question.now === null ? expr : value(question.now);
    case 'variable':
      if (expr.name === 'principal') return value(question.situation.principal);
      if (expr.name === 'action') return value(new Entity('Action', question.action));
      return question.resource.kind === 'entity' && expr.name === 'resource' ? value(question.resource.entity) : expr;
    case 'and':
      return conjunction(again(expr.left), () => again(expr.right));
    case 'or':
      return disjunction(again(expr.left), () => again(expr.right));
    case 'if':
      return choice(again(expr.test), expr, again);
    case 'not':
    case 'negate':
    case 'isEmpty':
      return strict(
        [again(expr.arg)],
        ([arg]) => unary(expr.op, arg!),
        ([arg]) => ({ op: expr.op, arg: arg! }),
      );
    case 'attribute':
      return attribute(expr.left, expr.name, question, again);
    case 'has':
      return hasAttribute(expr.left, expr.name, question, again);
    case 'like':
      return strict(
        [again(expr.left)],
        ([left]) => like(left!, expr.pattern),
        ([left]) => ({ op: 'like', left: left!, pattern: expr.pattern }),
      );
    case 'is':
      return isOfType(expr, question, again);
    case 'set':
      return strict(
        expr.items.map(again),
        (items) => new SetValue(items),
        (items) => ({ op: 'set', items }),
      );
    case 'record':
      return strict(
        expr.fields.map(([, field]) => again(field)),
        (fields) => new RecordValue(new Map(expr.fields.map(([name], i) => [name, fields[i]!]))),
        (fields) => ({ op: 'record', fields: expr.fields.map(([name], i) => [name, fields[i]!]) }),
      );
    case 'call':
      return strict(
        expr.args.map(again),
        (args) => call(expr.name, args),
        (args) => ({ op: 'call', name: expr.name, args }),
      );
    default:
      return operator(expr, question, again);
  }
}

function operator(expr: Extract<Expr, { left: Expr; right: Expr }>, question: Question, again: (part: Expr) => Expr): Expr {
  const { op } = expr;
  if (op === 'and' || op === 'or') return FAILS;
  const { resource } = question;
  const left = again(expr.left);
  const right = again(expr.right);
  if (resource.kind !== 'entity') {
    if (op === '==' || op === '!=') {
      const same = isResource(left) ? sameAs(resource, right) : isResource(right) ? sameAs(resource, left) : undefined;
      if (same !== undefined) return op === '==' ? same : negate(same);
    }
    if (op === 'in' && isResource(left)) return withinAny(resource, right);
  }
  const within = resource.kind === 'entity' && op === 'in' ? resource : undefined;
  return strict(
    [left, right],
    ([a, b]) =>
      binary(op, a!, b!, (entity) =>
        within !== undefined && entity.type === within.entity.type && entity.id === within.entity.id
          ? within.above
          : question.situation.ancestors(entity),
      ),
    ([a, b]) => ({ op, left: a!, right: b! }),
  );
}

/** Operands are all evaluated, and one that errs makes the whole err. */
function strict(
  parts: readonly Expr[],
  apply: (values: readonly Value[]) => Outcome,
  residual: (parts: readonly Expr[]) => Expr,
): Expr {
  const values: Value[] = [];
  for (const part of parts) {
    if (part.op === 'error') return FAILS;
    if (part.op === 'value') values.push(part.value);
  }
  if (values.length < parts.length) return residual(parts);
  const result = apply(values);
  return result === ERROR ? FAILS : value(result);
}

/** The right side is evaluated only where the left one is true, and where it is no boolean, it errs. */
function conjunction(left: Expr, right: () => Expr): Expr {
  if (left.op === 'error') return FAILS;
  if (left.op === 'value') {
    if (left.value === false) return FALSE;
    return left.value === true ? asBoolean(right(), TRUE) : FAILS;
  }
  const then = right();
  // `residual && true` is the residual; `residual && false` is not false where the residual errs.
  return isTrue(then) && isBoolean(left) ? left : and(left, then);
}

function disjunction(left: Expr, right: () => Expr): Expr {
  if (left.op === 'error') return FAILS;
  if (left.op === 'value') {
    if (left.value === true) return TRUE;
    return left.value === false ? asBoolean(right(), TRUE) : FAILS;
  }
  const otherwise = right();
  const isFalse = otherwise.op === 'value' && otherwise.value === false;
  return isFalse && isBoolean(left) ? left : { op: 'or', left, right: otherwise };
}

/** `expr`, with an error where it would be another value than a boolean. */
function asBoolean(expr: Expr, whole: Expr): Expr {
  if (expr.op === 'error' || isBoolean(expr)) return expr;
  return expr.op === 'value' ? FAILS : and(whole, expr);
}

function choice(test: Expr, expr: Extract<Expr, { op: 'if' }>, again: (part: Expr) => Expr): Expr {
  if (test.op === 'error') return FAILS;
  if (test.op === 'value') return test.value === true ? again(expr.yes) : test.value === false ? again(expr.no) : FAILS;
  return { op: 'if', test, yes: again(expr.yes), no: again(expr.no) };
}

function negate(expr: Expr): Expr {
  return expr.op === 'value' ? value(!(expr.value as boolean)) : { op: 'not', arg: expr };
}

function isTrue(expr: Expr): boolean {
  return expr.op === 'value' && expr.value === true;
}

function isResource(expr: Expr): boolean {
  return expr.op === 'variable' && expr.name === 'resource';
}

type Cells = Exclude<Resource, { kind: 'entity' }>;

/** Undefined while the other side is not known. */
function sameAs(resource: Cells, other: Expr): Expr | undefined {
  if (other.op === 'error') return FAILS;
  if (isResource(other)) return TRUE;
  if (other.op !== 'value') return undefined;
  return other.value instanceof Entity ? isEntity(resource, other.value) : FALSE;
}

/** The row or cell is this very entity. */
function isEntity(resource: Cells, entity: Entity): Expr {
  if (resource.kind === 'cell') {
    return value(entity.type === 'Column' && entity.id === `${resource.type.name}.${resource.column}`);
  }
  if (entity.type !== resource.type.name) return FALSE;
  return { op: '==', left: { op: 'column', name: '_pk', type: 'string' }, right: value(entity.id) };
}

function withinAny(resource: Cells, above: Expr): Expr {
  if (above.op === 'error') return FAILS;
  if (above.op !== 'value') return { op: 'in', left: { op: 'variable', name: 'resource' }, right: above };
  if (above.value instanceof Entity) return isWithin(resource, above.value);
  if (!(above.value instanceof SetValue)) return FAILS;
  let any: Expr = FALSE;
  for (const item of above.value.items) {
    if (!(item instanceof Entity)) return FAILS;
    any = disjunction(any, () => isWithin(resource, item));
  }
  return any;
}

function isWithin(resource: Cells, entity: Entity): Expr {
  if (entity.type === 'Type' && entity.id === resource.type.name) return TRUE;
  const same = isEntity(resource, entity);
  return entity.type === 'Org' ? disjunction(same, () => ({ op: 'covered', path: entity.id })) : same;
}

function isOfType(expr: Extract<Expr, { op: 'is' }>, question: Question, again: (part: Expr) => Expr): Expr {
  const { resource } = question;
  const left = again(expr.left);
  if (left.op === 'error') return FAILS;
  let is: boolean;
  if (left.op === 'value') {
    if (!(left.value instanceof Entity)) return FAILS;
    is = left.value.type === expr.type;
  } else if (isResource(left) && resource.kind !== 'entity') {
    // Every row is a Row, besides being of its type.
    is = resource.kind === 'cell' ? expr.type === 'Column' : expr.type === resource.type.name || expr.type === 'Row';
  } else {
    return { op: 'is', left, type: expr.type, within: expr.within };
  }
  if (!is) return FALSE;
  return expr.within === null ? TRUE : again({ op: 'in', left: expr.left, right: expr.within });
}

function attribute(left: Expr, name: string, question: Question, again: (part: Expr) => Expr): Expr {
  if (left.op === 'variable') {
    const { situation, resource } = question;
    if (left.name === 'context') return name === 'now' ? again({ op: 'now' }) : valueOrFailure(situation.context.get(name));
    if (left.name === 'resource') return resource.kind === 'entity' ? FAILS : cellOf(resource, name);
  }
  const of = again(left);
  if (of.op === 'error') return FAILS;
  if (of.op === 'value') {
    if (of.value instanceof RecordValue) return valueOrFailure(of.value.fields.get(name));
    return of.value instanceof Entity ? valueOrFailure(attributesOf(of.value, question)?.get(name)) : FAILS;
  }
  return { op: 'attribute', left: of, name };
}

function hasAttribute(left: Expr, name: string, question: Question, again: (part: Expr) => Expr): Expr {
  if (left.op === 'variable') {
    const { situation, resource } = question;
    if (left.name === 'context') return value(name === 'now' || situation.context.has(name));
    if (left.name === 'resource') {
      if (resource.kind === 'entity') return FALSE;
      if (name === 'type') return TRUE;
      return columnType(resource, name) === undefined ? FALSE : { op: 'present', name };
    }
  }
  const of = again(left);
  if (of.op === 'error') return FAILS;
  if (of.op === 'value') {
    if (of.value instanceof RecordValue) return value(of.value.fields.has(name));
    return of.value instanceof Entity ? value(attributesOf(of.value, question)?.has(name) === true) : FAILS;
  }
  return { op: 'has', left: of, name };
}

function attributesOf(entity: Entity, { situation }: Question): ReadonlyMap<string, Value> | undefined {
  const { principal } = situation;
  return entity.type === principal.type && entity.id === principal.id ? situation.attributes : undefined;
}

function valueOrFailure(of: Value | undefined): Expr {
  return of === undefined ? FAILS : value(of);
}

/** `resource.type` is the type's name, whatever columns it has. */
function cellOf(resource: Cells, name: string): Expr {
  if (name === 'type') return value(resource.type.name);
  const type = columnType(resource, name);
  // A value that Cedar has no type for errs like a missing one: a forbid then denies, a permit is ignored.
  if (type === undefined || type === 'number' || type === 'json' || type === 'vector') return FAILS;
  return { op: 'column', name, type };
}

function columnType({ type }: Cells, name: string): ColumnType | undefined {
  if (Object.hasOwn(type.properties, name)) return type.properties[name]!.type;
  return Object.hasOwn(systemColumns, name) ? systemColumns[name as keyof typeof systemColumns] : undefined;
}

/** Evaluates what folding left, for one row. `cell` gives undefined for NULL. */
export function evaluate(expr: Expr, cell: (name: string) => Value | undefined): Outcome {
  switch (expr.op) {
    case 'value':
      return expr.value;
    case 'column':
      return cell(expr.name) ?? ERROR;
    case 'present':
      return cell(expr.name) !== undefined;
    case 'and':
    case 'or': {
      const left = evaluate(expr.left, cell);
      if (typeof left !== 'boolean') return ERROR;
      if (left === (expr.op === 'or')) return left;
      const right = evaluate(expr.right, cell);
      return typeof right === 'boolean' ? right : ERROR;
    }
    case 'if': {
      const test = evaluate(expr.test, cell);
      return typeof test === 'boolean' ? evaluate(test ? expr.yes : expr.no, cell) : ERROR;
    }
    case 'not':
    case 'negate':
    case 'isEmpty': {
      const arg = evaluate(expr.arg, cell);
      return arg === ERROR ? ERROR : unary(expr.op, arg);
    }
    case 'like': {
      const left = evaluate(expr.left, cell);
      return left === ERROR ? ERROR : like(left, expr.pattern);
    }
    case 'attribute':
    case 'has': {
      const left = evaluate(expr.left, cell);
      if (!(left instanceof RecordValue)) return ERROR;
      return expr.op === 'has' ? left.fields.has(expr.name) : (left.fields.get(expr.name) ?? ERROR);
    }
    case 'set':
    case 'call': {
      const args = all(expr.op === 'set' ? expr.items : expr.args, cell);
      if (args === ERROR) return ERROR;
      return expr.op === 'set' ? new SetValue(args) : call(expr.name, args);
    }
    case 'record': {
      const fields = all(
        expr.fields.map(([, field]) => field),
        cell,
      );
      return fields === ERROR ? ERROR : new RecordValue(new Map(expr.fields.map(([name], i) => [name, fields[i]!])));
    }
    case 'covered': {
      const path = cell('namespace_path');
      return typeof path === 'string' && isIn(new Entity('Org', path), new Entity('Org', expr.path), orgsAbove) === true;
    }
    // None of these is left once an expression is folded with its clock.
    case 'error':
    case 'variable':
    case 'is':
    case 'now':
      return ERROR;
    default: {
      const left = evaluate(expr.left, cell);
      const right = evaluate(expr.right, cell);
      return left === ERROR || right === ERROR ? ERROR : binary(expr.op, left, right, () => []);
    }
  }
}

function all(parts: readonly Expr[], cell: (name: string) => Value | undefined): readonly Value[] | typeof ERROR {
  const values: Value[] = [];
  for (const part of parts) {
    const partResult = evaluate(part, cell);
    if (partResult === ERROR) return ERROR;
    values.push(partResult);
  }
  return values;
}

function orgsAbove(entity: Entity): readonly Entity[] {
  const above: Entity[] = [];
  for (let at = entity.id.lastIndexOf('/'); at > 0; at = entity.id.lastIndexOf('/', at - 1)) {
    above.push(new Entity('Org', entity.id.slice(0, at)));
  }
  return above;
}
