/**
 * Conditions go to where rows are fewest: a conjunct of HAVING that speaks of group keys only is tested on rows, before
 * they are grouped. Neighbouring filters become one, so that one kernel tests all of it.
 */
import { type Bound, columnsIn, mayRaise, replaceColumns } from '../expressions/bound-expression.ts';
import { type AggregateNode, type FilterNode, type LogicalPlan, type PlanNode, withInput } from '../logical-plan.ts';
import { conjunction, conjunctsOf } from './simplify-expressions.ts';

export function pushDownFilters(plan: LogicalPlan): LogicalPlan {
  return { ...plan, root: pushed(plan.root) };
}

function pushed(node: PlanNode): PlanNode {
  if (node.kind === 'scan') return node;
  const input = pushed(node.input);
  if (node.kind !== 'filter') return withInput(node, input);
  if (input.kind === 'filter') return filter(input.input, [...conjunctsOf(input.predicate), ...conjunctsOf(node.predicate)]);
  if (input.kind === 'aggregate' && input.groups > 0) return belowAggregate(node, input);
  return withInput(node, input);
}

function belowAggregate(node: FilterNode, aggregate: AggregateNode): PlanNode {
  const project = aggregate.input;
  if (project.kind !== 'project') return withInput(node, aggregate);
  const below: Bound[] = [];
  const above: Bound[] = [];
  for (const conjunct of conjunctsOf(node.predicate)) {
    const columns = [...columnsIn(conjunct)];
    const keysOnly = columns.length > 0 && columns.every((index) => index < aggregate.groups);
    const onRows = keysOnly ? replaceColumns(conjunct, (column) => project.expressions[column.index]!) : conjunct;
    // What can fail is left above, where it meets groups that exist rather than every row.
    if (keysOnly && !mayRaise(onRows)) below.push(onRows);
    else above.push(conjunct);
  }
  if (below.length === 0) return withInput(node, aggregate);
  const pushedAggregate = withInput(aggregate, withInput(project, pushed(filter(project.input, below))));
  return above.length === 0 ? pushedAggregate : filter(pushedAggregate, above);
}

function filter(input: PlanNode, conjuncts: readonly Bound[]): PlanNode {
  return { kind: 'filter', input, predicate: conjunction(conjuncts), columns: input.columns };
}
