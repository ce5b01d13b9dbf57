/**
 * UNION, INTERSECT and EXCEPT: both arms brought to the same columns. An operation that compares rows compares masked cells as
 * NULL, so they leave as NULL; UNION ALL compares nothing, and passes on what their masks show.
 */
import { shownColumn } from '../../projections/access-paths.ts';
import type { ValueType } from '../expressions/value-type.ts';
import type { PlanNode, SetOperationNode } from '../logical-plan.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { Location } from '../syntax/statement.ts';
import type { BoundQuery } from './environment.ts';
import { columnType, type Output, type OutputType, project } from './output-columns.ts';

export function combine(op: SetOperationNode['op'], left: BoundQuery, right: BoundQuery, location: Location): BoundQuery {
  const columns = unifyColumns(op, left.columns, right.columns, location);
  const shownColumns = op === 'union all' ? columns.flatMap((_, i) => (isShownInArms(i, left, right) ? i : [])) : [];
  const setArms = { left: asColumns(left, columns, shownColumns), right: asColumns(right, columns, shownColumns) };
  return {
    node: { kind: 'set-operation', op, ...setArms, columns: setArms.left.columns },
    columns: columns.map((column, i) =>
      shownColumns.includes(i) ? { ...column, shown: columns.length + shownColumns.indexOf(i) } : column,
    ),
  };
}

function isShownInArms(column: number, ...setArms: readonly BoundQuery[]): boolean {
  return setArms.some(({ columns }) => columns[column]!.shown !== undefined);
}

/** Names of the left, types that hold the values of both. */
export function unifyColumns(
  operation: string,
  left: readonly OutputType[],
  right: readonly OutputType[],
  location: Location,
): OutputType[] {
  if (left.length !== right.length) {
    const text = `${operation.toUpperCase()} takes the same number of columns on both sides, not ${left.length} and ${right.length}`;
    throw errorAt('REL_INVALID', text, location, 'syntax');
  }
  return left.map(({ name, type, wire, masked }, i) => {
    const { type: otherType, wire: otherWire, masked: otherMasked } = right[i]!;
    const commonColumnType = commonTypeOfArms(type, otherType);
    if (commonColumnType === null) {
      const text = `column ${i + 1} of ${operation.toUpperCase()} is ${type} on one side and ${otherType} on the other`;
      throw errorAt('REL_TYPE_MISMATCH', text, location, 'types-differ');
    }
    if (commonColumnType === 'vector' && operation !== 'union all') {
      throw errorAt('REL_TYPE_MISMATCH', `${operation.toUpperCase()} can't compare vectors`, location);
    }
    return { name, type: commonColumnType, wire: wire === otherWire ? wire : undefined, masked: masked ?? otherMasked };
  });
}

/** The rows of a query under these names and types; behind them, how the columns of these numbers are shown. */
export function asColumns(query: BoundQuery, columns: readonly OutputType[], shown: readonly number[] = []): PlanNode {
  const outputAs = ({ name, type }: OutputType, given: OutputType, index: number): Output => {
    const column = { kind: 'column', index, name, type: columnType(given.type) } as const;
    if (given.type === 'integer' && type === 'number')
      return { name, bound: { kind: 'to-number', operand: column, type: 'number' } };
    // NULLs throughout are NULLs of any type.
    return { name, bound: { ...column, type: columnType(type) } };
  };
  const plainOutputs = columns.map((column, i) => outputAs(column, query.columns[i]!, i));
  const outputs = [
    ...plainOutputs,
    ...shown.map((i): Output => {
      const givenColumn = query.columns[i]!;
      return outputAs({ ...columns[i]!, name: shownColumn(columns[i]!.name) }, givenColumn, givenColumn.shown ?? i);
    }),
  ];
  const hasAllColumns = outputs.length === query.node.columns.length;
  const isUnchanged =
    hasAllColumns &&
    outputs.every(({ name, bound }, i) => {
      const ownColumn = query.node.columns[i]!;
      return bound.kind === 'column' && bound.index === i && name === ownColumn.name && bound.type === ownColumn.type;
    });
  return isUnchanged ? query.node : project(query.node, outputs);
}

function commonTypeOfArms(a: ValueType, b: ValueType): ValueType | null {
  if (a === b || b === 'null') return a;
  if (a === 'null') return b;
  return (a === 'integer' && b === 'number') || (a === 'number' && b === 'integer') ? 'number' : null;
}
