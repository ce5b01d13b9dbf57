/** Columns that leave a SELECT: their names, their types, and the projection that makes them. */
import type { ColumnType } from '../../log/value.ts';
import type { Bound, ValueType } from '../expressions/bound-expression.ts';
import type { PlanNode } from '../logical-plan.ts';
import type { Expression } from '../statement.ts';

export interface Output {
  readonly name: string;
  readonly bound: Bound;
}

/** A column that a query yields. A bare NULL keeps its own type, so that a set operation may give it another. */
export interface OutputType {
  readonly name: string;
  readonly type: ValueType;
}

export function project(input: PlanNode, outputs: readonly Output[]): PlanNode {
  return {
    kind: 'project',
    input,
    expressions: outputs.map(({ bound }) => bound),
    columns: outputs.map(({ name, bound }) => ({ name, type: columnType(bound.type) })),
  };
}

/** The columns of a node as they are, under their own names. */
export function throughColumns(node: PlanNode): Output[] {
  return node.columns.map(({ name, type }, index): Output => ({ name, bound: { kind: 'column', index, name, type } }));
}

/** A bare NULL has no type of its own: it leaves as a string column without values. */
export function columnType(type: ValueType): ColumnType {
  return type === 'null' || type === 'interval' ? 'string' : type;
}

export function nameOf(expression: Expression, position: number): string {
  switch (expression.kind) {
    case 'column':
      return expression.name;
    case 'aggregate':
      return expression.function;
    case 'case':
      return 'case';
    default:
      return `column_${position + 1}`;
  }
}

/** A reply row is an object: of two columns with one name, the later one gets `_2`. */
export function uniqueNames(outputs: readonly Output[]): Output[] {
  const taken = new Set(outputs.map(({ name }) => name));
  const counts = new Map<string, number>();
  return outputs.map(({ name, bound }) => {
    let count = (counts.get(name) ?? 0) + 1;
    let unique = name;
    if (count > 1) while (taken.has((unique = `${name}_${count}`))) count++;
    counts.set(name, count);
    return { name: unique, bound };
  });
}
