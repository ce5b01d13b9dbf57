/** WHERE behind a function over the graph: which parts of it are asked of edges, before anything is searched. Pure. */
import type { Call } from '../calls/table-function.ts';
import type { Expression } from '../syntax/statement.ts';

/** Parts of the condition that name no column of the answer alone say which edges there are. */
export function withoutEdges(call: Call, above: ReadonlySet<string>): Call {
  if (call.where === null) return call;
  const edges: Expression[] = [];
  const rows: Expression[] = [];
  for (const part of parts(call.where)) (namesOf(part).some((name) => above.has(name)) ? rows : edges).push(part);
  return { ...call, where: conjunction(rows), edges: conjunction(edges) };
}

function parts(condition: Expression): readonly Expression[] {
  return condition.kind === 'binary' && condition.op === 'and'
    ? [...parts(condition.left), ...parts(condition.right)]
    : [condition];
}

function conjunction(conditions: readonly Expression[]): Expression | null {
  const [first, ...others] = conditions;
  if (first === undefined) return null;
  return others.reduce((left, right): Expression => ({ kind: 'binary', op: 'and', left, right, location: left.location }), first);
}

/** Names of columns anywhere in an expression. */
export function namesOf(expression: Expression): readonly string[] {
  const names: string[] = [];
  const open: unknown[] = [expression];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (typeof node !== 'object' || node === null) continue;
    if ((node as { kind?: unknown }).kind === 'column') names.push((node as { name: string }).name);
    open.push(...Object.values(node));
  }
  return names;
}
