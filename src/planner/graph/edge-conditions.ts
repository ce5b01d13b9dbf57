/** WHERE behind a function over the graph: which parts of it are asked of edges, before anything is searched. Pure. */
import type { Call } from '../calls/table-function.ts';
import type { Expression } from '../syntax/statement.ts';

/** Parts of the condition that name no column of the answer alone say which edges there are. */
export function withoutEdges(call: Call, nonEdgeColumns: ReadonlySet<string>): Call {
  if (call.where === null) return call;
  const edgeConditions: Expression[] = [];
  const rowConditions: Expression[] = [];
  for (const conjunct of conjunctsOf(call.where))
    (namesOf(conjunct).some((name) => nonEdgeColumns.has(name)) ? rowConditions : edgeConditions).push(conjunct);
  return { ...call, where: conjoin(rowConditions), edges: conjoin(edgeConditions) };
}

function conjunctsOf(condition: Expression): readonly Expression[] {
  return condition.kind === 'binary' && condition.op === 'and'
    ? [...conjunctsOf(condition.left), ...conjunctsOf(condition.right)]
    : [condition];
}

function conjoin(conditions: readonly Expression[]): Expression | null {
  const [firstConjunct, ...otherConjuncts] = conditions;
  if (firstConjunct === undefined) return null;
  return otherConjuncts.reduce(
    (conjoined, nextConjunct): Expression => ({
      kind: 'binary',
      op: 'and',
      left: conjoined,
      right: nextConjunct,
      location: conjoined.location,
    }),
    firstConjunct,
  );
}

/** Names of columns anywhere in an expression. */
export function namesOf(expression: Expression): readonly string[] {
  const conditionColumns: string[] = [];
  const openNodes: unknown[] = [expression];
  for (let conditionNode = openNodes.pop(); conditionNode !== undefined; conditionNode = openNodes.pop()) {
    if (typeof conditionNode !== 'object' || conditionNode === null) continue;
    if ((conditionNode as { kind?: unknown }).kind === 'column') conditionColumns.push((conditionNode as { name: string }).name);
    openNodes.push(...Object.values(conditionNode));
  }
  return conditionColumns;
}
