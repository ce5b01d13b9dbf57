/** Scans of the edges that a graph function follows, filtered by the conditions of the statement. */
import { bindPredicate, type ExpressionContext } from '../expressions/bind-expression.ts';
import type { Bound } from '../expressions/bound-expression.ts';
import type { FunctionSource } from '../table-functions/statement-call.ts';
import { namesOf } from '../graph/edge-conditions.ts';
import type { LinkType } from '../graph/node-and-edge-types.ts';
import type { GraphInput, PlanColumn, PlanNode } from '../logical-plan.ts';
import type { BoundSource } from './environment.ts';
import { type Output, project, throughColumns } from './output-columns.ts';
import { Scope } from './scope.ts';

export function edgeScans(
  { types, weight }: Pick<GraphInput, 'types' | 'weight'>,
  source: FunctionSource,
  scan: (type: string) => BoundSource,
  contextOf: (scope: Scope) => ExpressionContext,
): readonly PlanNode[] {
  const bound = types.links.map((link) => ({ link, source: scan(link.name) }));
  const edgeTypes = source.edges === undefined ? [] : namesOf(source.edges);
  // Columns that some types of edges lack: they are NULL there.
  const elsewhere = new Map<string, PlanColumn>();
  for (const each of bound) {
    for (const column of each.source.tables[0]!.columns) {
      if (edgeTypes.includes(column.name))
        elsewhere.set(column.name, {
          name: column.name,
          type: each.source.node.columns.find(({ name }) => name === column.name)!.type,
        });
    }
  }
  return bound.map((each) => {
    const node = source.edges === undefined ? each.source.node : filterEdges(each.source, each.link);
    const { from, to } = each.link.ends;
    const columns = [from, to, 'system_from', ...(weight === null ? [] : [weight])];
    return project(
      node,
      columns.map((name): Output => ({ name, bound: columnOf(each.source.node, name) })),
    );
  });

  function filterEdges({ node, tables }: BoundSource, { name: type, ends }: LinkType): PlanNode {
    const [table] = tables;
    const has = (name: string): boolean => table!.columns.some((column) => column.name === name);
    const more: Output[] = [];
    const add = (name: string, value: Bound): void => {
      if (edgeTypes.includes(name) && !has(name)) more.push({ name, bound: value });
    };
    add('link_type', { kind: 'constant', cell: type, type: 'string' });
    add('from_id', columnOf(node, ends.from));
    add('to_id', columnOf(node, ends.to));
    for (const { name, type: of } of elsewhere.values()) {
      if (!more.some((output) => output.name === name)) add(name, { kind: 'constant', cell: null, type: of });
    }
    const input = more.length === 0 ? node : project(node, [...throughColumns(node), ...more]);
    const added = {
      name: null,
      type: null,
      columns: more.map(({ name, bound: value }) => ({ name, type: value.type })),
      first: node.columns.length,
    };
    const scope = new Scope(more.length === 0 ? tables : [...tables, added], []);
    return { kind: 'filter', input, predicate: bindPredicate(source.edges!, contextOf(scope)), columns: input.columns };
  }
}

function columnOf(node: PlanNode, name: string): Bound {
  const index = node.columns.findIndex((column) => column.name === name);
  return { kind: 'column', index, name, type: node.columns[index]!.type };
}
