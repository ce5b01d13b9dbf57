/** Where the columns of an answer come from, as clients of a wire protocol are told it: the column of a type, or a day. */
import { shownOf } from '../projections/access-paths.ts';
import { isDate } from './expressions/dates.ts';
import type { LogicalPlan, PlanNode } from './logical-plan.ts';
import type { OutputColumn } from './planner-contract.ts';
import type { Dialect } from './statement.ts';

/** Columns of an answer; the plan is one that no pass has seen. */
export function shownColumns(
  { root, visible }: Pick<LogicalPlan, 'root' | 'visible'>,
  dialect: Dialect,
): readonly OutputColumn[] {
  const columns = root.columns.slice(0, visible);
  return dialect === 'spec' ? columns : columns.map((column, i) => ({ ...column, ...originOf(root, i) }));
}

function originOf(node: PlanNode, column: number): Pick<OutputColumn, 'origin' | 'isDate'> {
  switch (node.kind) {
    case 'scan': {
      const { name } = node.columns[column]!;
      return { origin: { type: node.type, column: shownOf(name) ?? name } };
    }
    case 'project': {
      const made = node.expressions[column]!;
      if (made.kind === 'column') return originOf(node.input, made.index);
      return isDate(made) ? { isDate: true } : {};
    }
    case 'filter':
    case 'distinct':
    case 'sort':
    case 'limit':
    case 'skip':
      return originOf(node.input, column);
    case 'join': {
      const left = node.left.columns.length;
      if (column < left) return originOf(node.left, column);
      // Behind the left columns of these stands a mark, or what a query came to.
      return node.type === 'mark' || node.type === 'single' ? {} : originOf(node.right, column - left);
    }
    case 'aggregate':
      return column < node.groups ? originOf(node.input, column) : {};
    case 'search':
    case 'number':
    case 'over':
    case 'apply':
      return column < node.input.columns.length ? originOf(node.input, column) : {};
    case 'values':
      return node.rows.every((row) => isDate(row[column]!)) ? { isDate: true } : {};
    case 'set-operation':
      return originOf(node.left, column).isDate && originOf(node.right, column).isDate ? { isDate: true } : {};
    default:
      return {};
  }
}
