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
  const foldOperand = (part: Expr): Expr => fold(part, question);
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
      return conjunction(foldOperand(expr.left), () => foldOperand(expr.right));
    case 'or':
      return disjunction(foldOperand(expr.left), () => foldOperand(expr.right));
    case 'if':
      return foldChoice(foldOperand(expr.test), expr, foldOperand);
    case 'not':
    case 'negate':
    case 'isEmpty':
      return foldStrictly(
        [foldOperand(expr.arg)],
        ([arg]) => unary(expr.op, arg!),
        ([arg]) => ({ op: expr.op, arg: arg! }),
      );
    case 'attribute':
      return foldAttribute(expr.left, expr.name, question, foldOperand);
    case 'has':
      return foldHasAttribute(expr.left, expr.name, question, foldOperand);
    case 'like':
      return foldStrictly(
        [foldOperand(expr.left)],
        ([left]) => like(left!, expr.pattern),
        ([left]) => ({ op: 'like', left: left!, pattern: expr.pattern }),
      );
    case 'is':
      return isOfType(expr, question, foldOperand);
    case 'set':
      return foldStrictly(
        expr.items.map(foldOperand),
        (items) => new SetValue(items),
        (items) => ({ op: 'set', items }),
      );
    case 'record':
      return foldStrictly(
        expr.fields.map(([, field]) => foldOperand(field)),
        (fields) => new RecordValue(new Map(expr.fields.map(([name], i) => [name, fields[i]!]))),
        (fields) => ({ op: 'record', fields: expr.fields.map(([name], i) => [name, fields[i]!]) }),
      );
    case 'call':
      return foldStrictly(
        expr.args.map(foldOperand),
        (args) => call(expr.name, args),
        (args) => ({ op: 'call', name: expr.name, args }),
      );
    default:
      return foldOperator(expr, question, foldOperand);
  }
}

function foldOperator(
  expr: Extract<Expr, { left: Expr; right: Expr }>,
  question: Question,
  foldOperand: (part: Expr) => Expr,
): Expr {
  const { op } = expr;
  if (op === 'and' || op === 'or') return FAILS;
  const { resource } = question;
  const left = foldOperand(expr.left);
  const right = foldOperand(expr.right);
  if (resource.kind !== 'entity') {
    if (op === '==' || op === '!=') {
      const sameResource = isResource(left) ? sameAs(resource, right) : isResource(right) ? sameAs(resource, left) : undefined;
      if (sameResource !== undefined) return op === '==' ? sameResource : negateExpr(sameResource);
    }
    if (op === 'in' && isResource(left)) return withinAny(resource, right);
  }
  const cellAncestors = resource.kind === 'entity' && op === 'in' ? resource : undefined;
  return foldStrictly(
    [left, right],
    ([a, b]) =>
      binary(op, a!, b!, (entity) =>
        cellAncestors !== undefined && entity.type === cellAncestors.entity.type && entity.id === cellAncestors.entity.id
          ? cellAncestors.above
          : question.situation.ancestors(entity),
      ),
    ([a, b]) => ({ op, left: a!, right: b! }),
  );
}

/** Operands are all evaluated, and one that errs makes the whole err. */
function foldStrictly(
  foldedOperands: readonly Expr[],
  applyValues: (operandValues: readonly Value[]) => Outcome,
  residualExpr: (parts: readonly Expr[]) => Expr,
): Expr {
  const operandValues: Value[] = [];
  for (const foldedOperand of foldedOperands) {
    if (foldedOperand.op === 'error') return FAILS;
    if (foldedOperand.op === 'value') operandValues.push(foldedOperand.value);
  }
  if (operandValues.length < foldedOperands.length) return residualExpr(foldedOperands);
  const cedarOutcome = applyValues(operandValues);
  return cedarOutcome === ERROR ? FAILS : value(cedarOutcome);
}

/** The right side is evaluated only where the left one is true, and where it is no boolean, it errs. */
function conjunction(left: Expr, right: () => Expr): Expr {
  if (left.op === 'error') return FAILS;
  if (left.op === 'value') {
    if (left.value === false) return FALSE;
    return left.value === true ? asBoolean(right(), TRUE) : FAILS;
  }
  const foldedRight = right();
  // `residual && true` is the residual; `residual && false` is not false where the residual errs.
  return isTrueExpr(foldedRight) && isBoolean(left) ? left : and(left, foldedRight);
}

function disjunction(left: Expr, right: () => Expr): Expr {
  if (left.op === 'error') return FAILS;
  if (left.op === 'value') {
    if (left.value === true) return TRUE;
    return left.value === false ? asBoolean(right(), TRUE) : FAILS;
  }
  const foldedRight = right();
  const isFalse = foldedRight.op === 'value' && foldedRight.value === false;
  return isFalse && isBoolean(left) ? left : { op: 'or', left, right: foldedRight };
}

/** `expr`, with an error where it would be another value than a boolean. */
function asBoolean(expr: Expr, whole: Expr): Expr {
  if (expr.op === 'error' || isBoolean(expr)) return expr;
  return expr.op === 'value' ? FAILS : and(whole, expr);
}

function foldChoice(test: Expr, expr: Extract<Expr, { op: 'if' }>, foldOperand: (part: Expr) => Expr): Expr {
  if (test.op === 'error') return FAILS;
  if (test.op === 'value')
    return test.value === true ? foldOperand(expr.yes) : test.value === false ? foldOperand(expr.no) : FAILS;
  return { op: 'if', test, yes: foldOperand(expr.yes), no: foldOperand(expr.no) };
}

function negateExpr(expr: Expr): Expr {
  return expr.op === 'value' ? value(!(expr.value as boolean)) : { op: 'not', arg: expr };
}

function isTrueExpr(expr: Expr): boolean {
  return expr.op === 'value' && expr.value === true;
}

function isResource(expr: Expr): boolean {
  return expr.op === 'variable' && expr.name === 'resource';
}

type CellResource = Exclude<Resource, { kind: 'entity' }>;

/** Undefined while the other side is not known. */
function sameAs(resource: CellResource, other: Expr): Expr | undefined {
  if (other.op === 'error') return FAILS;
  if (isResource(other)) return TRUE;
  if (other.op !== 'value') return undefined;
  return other.value instanceof Entity ? isEntity(resource, other.value) : FALSE;
}

/** The row or cell is this very entity. */
function isEntity(resource: CellResource, entity: Entity): Expr {
  if (resource.kind === 'cell') {
    return value(entity.type === 'Column' && entity.id === `${resource.type.name}.${resource.column}`);
  }
  if (entity.type !== resource.type.name) return FALSE;
  return { op: '==', left: { op: 'column', name: '_pk', type: 'string' }, right: value(entity.id) };
}

function withinAny(resource: CellResource, ancestorExpr: Expr): Expr {
  if (ancestorExpr.op === 'error') return FAILS;
  if (ancestorExpr.op !== 'value') return { op: 'in', left: { op: 'variable', name: 'resource' }, right: ancestorExpr };
  if (ancestorExpr.value instanceof Entity) return isWithin(resource, ancestorExpr.value);
  if (!(ancestorExpr.value instanceof SetValue)) return FAILS;
  let containingExpr: Expr = FALSE;
  for (const ancestorEntity of ancestorExpr.value.items) {
    if (!(ancestorEntity instanceof Entity)) return FAILS;
    containingExpr = disjunction(containingExpr, () => isWithin(resource, ancestorEntity));
  }
  return containingExpr;
}

function isWithin(resource: CellResource, entity: Entity): Expr {
  if (entity.type === 'Type' && entity.id === resource.type.name) return TRUE;
  const same = isEntity(resource, entity);
  return entity.type === 'Org' ? disjunction(same, () => ({ op: 'covered', path: entity.id })) : same;
}

function isOfType(expr: Extract<Expr, { op: 'is' }>, question: Question, foldOperand: (part: Expr) => Expr): Expr {
  const { resource } = question;
  const left = foldOperand(expr.left);
  if (left.op === 'error') return FAILS;
  let isResourceType: boolean;
  if (left.op === 'value') {
    if (!(left.value instanceof Entity)) return FAILS;
    isResourceType = left.value.type === expr.type;
  } else if (isResource(left) && resource.kind !== 'entity') {
    // Every row is a Row, besides being of its type.
    isResourceType = resource.kind === 'cell' ? expr.type === 'Column' : expr.type === resource.type.name || expr.type === 'Row';
  } else {
    return { op: 'is', left, type: expr.type, within: expr.within };
  }
  if (!isResourceType) return FALSE;
  return expr.within === null ? TRUE : foldOperand({ op: 'in', left: expr.left, right: expr.within });
}

function foldAttribute(left: Expr, name: string, question: Question, foldOperand: (part: Expr) => Expr): Expr {
  if (left.op === 'variable') {
    const { situation, resource } = question;
    if (left.name === 'context') return name === 'now' ? foldOperand({ op: 'now' }) : valueOrFailure(situation.context.get(name));
    if (left.name === 'resource') return resource.kind === 'entity' ? FAILS : cellOf(resource, name);
  }
  const foldedOwner = foldOperand(left);
  if (foldedOwner.op === 'error') return FAILS;
  if (foldedOwner.op === 'value') {
    if (foldedOwner.value instanceof RecordValue) return valueOrFailure(foldedOwner.value.fields.get(name));
    return foldedOwner.value instanceof Entity ? valueOrFailure(attributesOf(foldedOwner.value, question)?.get(name)) : FAILS;
  }
  return { op: 'attribute', left: foldedOwner, name };
}

function foldHasAttribute(left: Expr, name: string, question: Question, foldOperand: (part: Expr) => Expr): Expr {
  if (left.op === 'variable') {
    const { situation, resource } = question;
    if (left.name === 'context') return value(name === 'now' || situation.context.has(name));
    if (left.name === 'resource') {
      if (resource.kind === 'entity') return FALSE;
      if (name === 'type') return TRUE;
      return columnType(resource, name) === undefined ? FALSE : { op: 'present', name };
    }
  }
  const foldedOwner = foldOperand(left);
  if (foldedOwner.op === 'error') return FAILS;
  if (foldedOwner.op === 'value') {
    if (foldedOwner.value instanceof RecordValue) return value(foldedOwner.value.fields.has(name));
    return foldedOwner.value instanceof Entity ? value(attributesOf(foldedOwner.value, question)?.has(name) === true) : FAILS;
  }
  return { op: 'has', left: foldedOwner, name };
}

function attributesOf(entity: Entity, { situation }: Question): ReadonlyMap<string, Value> | undefined {
  const { principal } = situation;
  return entity.type === principal.type && entity.id === principal.id ? situation.attributes : undefined;
}

function valueOrFailure(of: Value | undefined): Expr {
  return of === undefined ? FAILS : value(of);
}

/** `resource.type` is the type's name, whatever columns it has. */
function cellOf(resource: CellResource, name: string): Expr {
  if (name === 'type') return value(resource.type.name);
  const type = columnType(resource, name);
  // A value that Cedar has no type for errs like a missing one: a forbid then denies, a permit is ignored.
  if (type === undefined || type === 'number' || type === 'json' || type === 'vector') return FAILS;
  return { op: 'column', name, type };
}

function columnType({ type }: CellResource, name: string): ColumnType | undefined {
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
      const leftOutcome = evaluate(expr.left, cell);
      if (typeof leftOutcome !== 'boolean') return ERROR;
      if (leftOutcome === (expr.op === 'or')) return leftOutcome;
      const rightOutcome = evaluate(expr.right, cell);
      return typeof rightOutcome === 'boolean' ? rightOutcome : ERROR;
    }
    case 'if': {
      const testOutcome = evaluate(expr.test, cell);
      return typeof testOutcome === 'boolean' ? evaluate(testOutcome ? expr.yes : expr.no, cell) : ERROR;
    }
    case 'not':
    case 'negate':
    case 'isEmpty': {
      const argumentOutcome = evaluate(expr.arg, cell);
      return argumentOutcome === ERROR ? ERROR : unary(expr.op, argumentOutcome);
    }
    case 'like': {
      const leftOutcome = evaluate(expr.left, cell);
      return leftOutcome === ERROR ? ERROR : like(leftOutcome, expr.pattern);
    }
    case 'attribute':
    case 'has': {
      const leftOutcome = evaluate(expr.left, cell);
      if (!(leftOutcome instanceof RecordValue)) return ERROR;
      return expr.op === 'has' ? leftOutcome.fields.has(expr.name) : (leftOutcome.fields.get(expr.name) ?? ERROR);
    }
    case 'set':
    case 'call': {
      const argumentValues = evaluateOperands(expr.op === 'set' ? expr.items : expr.args, cell);
      if (argumentValues === ERROR) return ERROR;
      return expr.op === 'set' ? new SetValue(argumentValues) : call(expr.name, argumentValues);
    }
    case 'record': {
      const recordFields = evaluateOperands(
        expr.fields.map(([, field]) => field),
        cell,
      );
      return recordFields === ERROR ? ERROR : new RecordValue(new Map(expr.fields.map(([name], i) => [name, recordFields[i]!])));
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
      const leftOutcome = evaluate(expr.left, cell);
      const rightOutcome = evaluate(expr.right, cell);
      return leftOutcome === ERROR || rightOutcome === ERROR ? ERROR : binary(expr.op, leftOutcome, rightOutcome, () => []);
    }
  }
}

function evaluateOperands(
  operandExprs: readonly Expr[],
  cell: (name: string) => Value | undefined,
): readonly Value[] | typeof ERROR {
  const operandValues: Value[] = [];
  for (const operandExpr of operandExprs) {
    const partResult = evaluate(operandExpr, cell);
    if (partResult === ERROR) return ERROR;
    operandValues.push(partResult);
  }
  return operandValues;
}

function orgsAbove(entity: Entity): readonly Entity[] {
  const organisationsAbove: Entity[] = [];
  for (let slashAt = entity.id.lastIndexOf('/'); slashAt > 0; slashAt = entity.id.lastIndexOf('/', slashAt - 1)) {
    organisationsAbove.push(new Entity('Org', entity.id.slice(0, slashAt)));
  }
  return organisationsAbove;
}
