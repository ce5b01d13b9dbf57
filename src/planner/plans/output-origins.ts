/** The origin of an answer's columns, for clients of a wire protocol: the column of a type, or a day. */
import { systemColumns } from '../../log/values/value.ts';
import { shownOf } from '../../projections/access-paths.ts';
import type { Bound } from '../expressions/bound-expression.ts';
import { isDate } from '../expressions/date-arithmetic.ts';
import { vectorCast } from '../expressions/functions/vectors.ts';
import type { AggregateCall, AggregateNode, LogicalPlan, PlanNode } from '../logical-plan.ts';
import type { OutputColumn } from '../planner-contract.ts';
import type { Dialect } from '../syntax/statement.ts';

/** Columns of an answer, from a plan before all passes. */
export function shownColumns(
  { root, visible, entities }: Pick<LogicalPlan, 'root' | 'visible' | 'entities'>,
  dialect: Dialect,
): readonly OutputColumn[] {
  const columns = root.columns.slice(0, visible).map((column, i): OutputColumn => {
    const entity = entities?.[i] ?? null;
    return entity === null ? column : { ...column, entity };
  });
  return dialect === 'spec' ? columns : columns.map((column, i) => ({ ...column, ...originOf(root, i) }));
}

function originOf(node: PlanNode, column: number): Pick<OutputColumn, 'origin' | 'shownAs'> {
  switch (node.kind) {
    case 'scan': {
      const { name } = node.columns[column]!;
      return { origin: { type: node.type, column: shownOf(name) ?? name } };
    }
    case 'virtual':
      return { shownAs: node.columns[column]!.wire };
    case 'project': {
      const computed = node.expressions[column]!;
      if (computed.kind === 'column' && computed.wire === undefined) return originOf(node.input, computed.index);
      return boundShownAs(computed);
    }
    case 'filter':
    case 'distinct':
    case 'sort':
    case 'limit':
    case 'skip':
      return originOf(node.input, column);
    case 'join': {
      const leftWidth = node.left.columns.length;
      if (column < leftWidth) return originOf(node.left, column);
      // Behind the left columns of these stands a mark, or the value of a query.
      return node.type === 'mark' || node.type === 'single' ? {} : originOf(node.right, column - leftWidth);
    }
    case 'aggregate':
      return column < node.groups ? originOf(node.input, column) : aggregateOrigin(node, node.calls[column - node.groups]!);
    case 'search':
    case 'number':
    case 'over':
    case 'apply':
      return column < node.input.columns.length ? originOf(node.input, column) : {};
    case 'spread':
      return column < node.width ? originOf(node.input, column) : { shownAs: node.wires[column - node.width]! };
    case 'values':
      return commonOrigin(
        node.rows
          .map((row) => row[column]!)
          .filter((cell) => cell.type !== 'null')
          .map(boundShownAs),
      );
    case 'set-operation':
      return commonOrigin([originOf(node.left, column), originOf(node.right, column)]);
    default:
      return {};
  }
}

/** The least or greatest of system instants is one of them, and needs all of its digits. Sums that are texts are vectors. */
function aggregateOrigin(
  { input }: AggregateNode,
  { function: name, column, wire = '_text' }: AggregateCall,
): Pick<OutputColumn, 'shownAs'> {
  const type = column === null ? null : input.columns[column]!.type;
  if (wire === 'interval') return { shownAs: wire };
  if ((name === 'sum' || name === 'avg') && (type === 'vector' || type === 'string')) return { shownAs: 'vector' };
  if (name === 'array') return { shownAs: wire };
  if ((name !== 'min' && name !== 'max') || column === null) return {};
  const { origin, shownAs: operandShownAs } = originOf(input, column);
  if (operandShownAs !== undefined) return { shownAs: operandShownAs };
  const originColumn = origin?.column;
  return originColumn !== undefined && Object.hasOwn(systemColumns, originColumn) ? { shownAs: 'int8' } : {};
}

function boundShownAs(bound: Bound): Pick<OutputColumn, 'shownAs'> {
  if ('wire' in bound && bound.wire !== undefined) return { shownAs: bound.wire };
  if (isDate(bound)) return { shownAs: 'date' };
  return bound.kind === 'call' && bound.name === vectorCast.name ? { shownAs: 'vector' } : {};
}

function commonOrigin(armOrigins: readonly Pick<OutputColumn, 'shownAs'>[]): Pick<OutputColumn, 'shownAs'> {
  const firstShownAs = armOrigins[0]?.shownAs;
  return firstShownAs !== undefined && armOrigins.every((arm) => arm.shownAs === firstShownAs) ? { shownAs: firstShownAs } : {};
}
