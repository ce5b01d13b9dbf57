/** UNION, INTERSECT and EXCEPT: both arms brought to the same columns. */
import type { ValueType } from '../expressions/bound-expression.ts';
import type { PlanNode, SetOperationNode } from '../logical-plan.ts';
import { at } from '../places.ts';
import type { Place } from '../statement.ts';
import type { BoundQuery } from './environment.ts';
import { columnType, type Output, type OutputType, project } from './outputs.ts';

export function combined(op: SetOperationNode['op'], left: BoundQuery, right: BoundQuery, place: Place): BoundQuery {
  const columns = unified(op, left.columns, right.columns, place);
  const arms = { left: asColumns(left, columns), right: asColumns(right, columns) };
  return { node: { kind: 'set-operation', op, ...arms, columns: arms.left.columns }, columns };
}

/** Names of the left, types that hold the values of both. */
export function unified(what: string, left: readonly OutputType[], right: readonly OutputType[], place: Place): OutputType[] {
  if (left.length !== right.length) {
    const text = `${what.toUpperCase()} takes the same number of columns on both sides, not ${left.length} and ${right.length}`;
    throw at('REL_INVALID', text, place);
  }
  return left.map(({ name, type }, i) => {
    const other = right[i]!.type;
    const common = commonType(type, other);
    if (common === null) {
      const text = `column ${i + 1} of ${what.toUpperCase()} is ${type} on one side and ${other} on the other`;
      throw at('REL_TYPE_MISMATCH', text, place);
    }
    if (common === 'vector' && what !== 'union all') {
      throw at('REL_TYPE_MISMATCH', `${what.toUpperCase()} can't compare vectors`, place);
    }
    return { name, type: common };
  });
}

/** The rows of a query under these names and types. */
export function asColumns(query: BoundQuery, columns: readonly OutputType[]): PlanNode {
  const outputs = columns.map(({ name, type }, index): Output => {
    const given = query.columns[index]!;
    const column = { kind: 'column', index, name, type: columnType(given.type) } as const;
    if (given.type === 'integer' && type === 'number')
      return { name, bound: { kind: 'to-number', operand: column, type: 'number' } };
    // NULLs throughout are NULLs of any type.
    return { name, bound: { ...column, type: columnType(type) } };
  });
  const same = outputs.every(({ name, bound }, i) => {
    const own = query.node.columns[i]!;
    return bound.kind === 'column' && name === own.name && bound.type === own.type;
  });
  return same && outputs.length === query.node.columns.length ? query.node : project(query.node, outputs);
}

function commonType(a: ValueType, b: ValueType): ValueType | null {
  if (a === b || b === 'null') return a;
  if (a === 'null') return b;
  return (a === 'integer' && b === 'number') || (a === 'number' && b === 'integer') ? 'number' : null;
}
