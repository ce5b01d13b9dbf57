/**
 * Infers the types of values that a query gets later, from the comparison, function or clause in which they stand. The query is
 * bound with NULL in their places, and the types are read off the bound tree; a value without any hint is text.
 */
import { type Bound, childrenOf } from '../expressions/bound-expression.ts';
import { isDate } from '../expressions/date-arithmetic.ts';
import type { ValueType } from '../expressions/value-type.ts';
import { type LexedStatement, lexStatement, untyped } from '../languages/sql-lexer.ts';
import { expressionsOf, type LogicalPlan, nodesOf, type PlanNode } from '../logical-plan.ts';
import { type Literal, type ParameterType, TypedValue } from '../syntax/statement.ts';

/** A text whose `$n` have the stated types, or none yet. */
export function lexWithoutValues(text: string, types: readonly (ParameterType | null)[]): LexedStatement {
  return lexStatement(text, (number) => {
    if (typeof number === 'string') return undefined;
    const type = types[number - 1] ?? null;
    return type === null ? untyped : exampleLiteralOf(type);
  });
}

/** Slots of a text that have no type before it is bound. */
export function openSlots({ markers }: LexedStatement, types: readonly (ParameterType | null)[]): ReadonlySet<number> {
  return new Set([...markers].flatMap(([slot, number]) => ((types[number - 1] ?? null) === null ? [slot] : [])));
}

/** Values to bind with: where the grammar takes one type, one of that type. */
export function exampleValues(lexed: LexedStatement): readonly Literal[] {
  return lexed.parameters.map((value, slot) => {
    const settledType = lexed.settledAs(slot);
    return settledType === undefined ? value : settledType === 'i' ? 0n : '';
  });
}

/** Types of `$1`, `$2` … */
export function markerTypes(
  lexed: LexedStatement,
  stated: readonly (ParameterType | null)[],
  inferred: ReadonlyMap<number, ParameterType>,
): readonly ParameterType[] {
  const markerTypesByNumber: (ParameterType | undefined)[] = stated.map((type) => type ?? undefined);
  for (const [slot, number] of lexed.markers) {
    const settledType = lexed.settledAs(slot);
    markerTypesByNumber[number - 1] ??=
      settledType === undefined ? inferred.get(slot) : settledType === 'i' ? 'integer' : 'string';
  }
  return Array.from(markerTypesByNumber, (type) => type ?? 'string');
}

/** Types of a statement's slots, by slot: a slot with a value has the value's type. */
export function slotTypes(
  parameters: readonly Literal[],
  inferred: ReadonlyMap<number, ParameterType>,
): readonly ParameterType[] {
  return parameters.map((value, slot) => {
    if (value === null) return inferred.get(slot) ?? 'string';
    if (typeof value === 'bigint') return 'integer';
    return typeof value as 'string' | 'number' | 'boolean';
  });
}

/** Infers types of slots that were bound as NULL from the bound tree. The first inference counts. */
export function inferredTypes(plan: LogicalPlan, open: ReadonlySet<number>): ReadonlyMap<number, ParameterType> {
  const types = new Map<number, ParameterType>();
  const noteType = (bound: Bound | null, type: ValueType | 'date'): void => {
    if (bound?.kind !== 'literal' || !open.has(bound.slot) || types.has(bound.slot)) return;
    if (type !== 'null' && type !== 'interval') types.set(bound.slot, type);
  };
  const visitBound = (bound: Bound): void => {
    switch (bound.kind) {
      case 'compare':
        noteType(bound.left, boundValueType(bound.right));
        noteType(bound.right, boundValueType(bound.left));
        break;
      case 'between':
        for (const bounded of [bound.low, bound.high]) {
          noteType(bounded, bound.operand.type);
          noteType(bound.operand, bounded.type);
        }
        break;
      case 'in':
        for (const item of bound.items) {
          noteType(item, bound.operand.type);
          noteType(bound.operand, item.type);
        }
        break;
      case 'in-set':
        noteType(bound.operand, plan.subqueries[bound.set]!.type);
        break;
      case 'like':
        noteType(bound.operand, 'string');
        noteType(bound.pattern, 'string');
        break;
      case 'same-folded':
        noteType(bound.operand, 'string');
        noteType(bound.text, 'string');
        break;
      case 'lookup':
      case 'phonetic':
        noteType(bound.operand, 'string');
        break;
      case 'function':
        for (const operand of bound.operands) noteType(operand, 'number');
        break;
      case 'call':
        bound.operands.forEach((operand, i) => {
          if (isDate(bound)) return noteType(operand, 'date');
          const taken = bound.function.takes[Math.min(i, bound.function.takes.length - 1)]!;
          noteType(operand, taken === 'same' ? bound.type : taken === 'any' ? 'string' : taken);
        });
        break;
      case 'coalesce':
        for (const operand of bound.operands) noteType(operand, bound.type);
        break;
      case 'and':
      case 'or':
        for (const operand of bound.operands) noteType(operand, 'boolean');
        break;
      case 'not':
        noteType(bound.operand, 'boolean');
        break;
      case 'arithmetic':
        noteType(bound.left, boundValueType(bound.right));
        noteType(bound.right, boundValueType(bound.left));
        break;
      case 'case':
        for (const { when, result } of bound.branches) {
          noteType(when, bound.operand?.type ?? 'boolean');
          noteType(bound.operand, when.type);
          noteType(result, bound.type);
        }
        noteType(bound.otherwise, bound.type);
        break;
    }
    for (const child of childrenOf(bound)) visitBound(child);
  };
  for (const node of nodesOf(plan)) {
    for (const bound of expressionsOf(node)) visitBound(bound);
    if (node.kind === 'filter') noteType(node.predicate, 'boolean');
    if (node.kind === 'set-operation' || node.kind === 'values')
      node.columns.forEach(({ type }, i) => literalsOfColumn(node, i).forEach((literal) => noteType(literal, type)));
  }
  return types;
}

function boundValueType(bound: Bound): ValueType | 'date' {
  return isDate(bound) ? 'date' : bound.type;
}

/** Literals that a column of a node is made of, where it is made of nothing else. */
function literalsOfColumn(node: PlanNode, column: number): readonly Bound[] {
  switch (node.kind) {
    case 'project': {
      const computed = node.expressions[column]!;
      return computed.kind === 'column' ? literalsOfColumn(node.input, computed.index) : [computed];
    }
    case 'values':
      return node.rows.map((row) => row[column]!);
    case 'set-operation':
      return [...literalsOfColumn(node.left, column), ...literalsOfColumn(node.right, column)];
    case 'distinct':
    case 'sort':
    case 'limit':
      return literalsOfColumn(node.input, column);
    default:
      return [];
  }
}

/** A value of the type, for a binder that has to know no more. */
function exampleLiteralOf(type: ParameterType): Literal | TypedValue {
  switch (type) {
    case 'string':
      return '';
    case 'integer':
      return 0n;
    case 'number':
      return 0.5;
    case 'boolean':
      return true;
    case 'timestamp':
    case 'date':
      return new TypedValue(type, 0n);
    case 'json':
    case 'vector':
      return new TypedValue(type, '');
  }
}
