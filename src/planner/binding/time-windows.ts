/** TUMBLE, HOP and SESSION in GROUP BY: the rows with the windows that hold them. */
import { bindExpression, type ExpressionContext } from '../expressions/bind-expression.ts';
import type { Bound } from '../expressions/bound-expression.ts';
import type { PlanColumn, PlanNode } from '../logical-plan.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { GroupWindow } from '../syntax/statement.ts';
import { type Output, project, throughColumns } from './output-columns.ts';

export interface Windowed {
  readonly node: PlanNode;
  /** window_start and window_end, the last two columns of the node. */
  readonly bounds: readonly PlanColumn[];
  readonly keys: readonly Bound[];
}

/** `keys` are the other group keys: a session is one of rows that agree in them. */
export function bindWindow(source: PlanNode, keys: readonly Bound[], window: GroupWindow, rows: ExpressionContext): Windowed {
  const windowColumn = bindExpression(window.column, rows);
  if (windowColumn.kind !== 'column' || (windowColumn.type !== 'timestamp' && windowColumn.type !== 'integer')) {
    const windowError = `${window.type.toUpperCase()} is over a timestamp or an integer of nanoseconds, not ${windowColumn.type}`;
    throw errorAt('REL_TYPE_MISMATCH', windowError, window.column.location);
  }
  const computedKeys: Output[] = [];
  const sessionPartition =
    window.type === 'session'
      ? keys.map((bound) =>
          bound.kind === 'column' ? bound.index : source.columns.length + computedKeys.push({ name: '#key', bound }) - 1,
        )
      : [];
  const input = computedKeys.length > 0 ? project(source, [...throughColumns(source), ...computedKeys]) : source;
  const windowBounds: PlanColumn[] = [
    { name: 'window_start', type: 'timestamp' },
    { name: 'window_end', type: 'timestamp' },
  ];
  const firstBound = input.columns.length;
  return {
    node: {
      kind: 'window',
      input,
      type: window.type,
      column: windowColumn.index,
      intervals: window.intervals.map(({ slot }) => slot),
      partition: sessionPartition,
      columns: [...input.columns, ...windowBounds],
    },
    bounds: windowBounds,
    keys: windowBounds.map(({ name, type }, i) => ({ kind: 'column', index: firstBound + i, name, type })),
  };
}
