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
  const boundLinks = types.links.map((link) => ({ link, source: scan(link.name) }));
  const edgeTypes = source.edges === undefined ? [] : namesOf(source.edges);
  // Columns that some types of edges lack: they are NULL there.
  const columnsOfOtherLinks = new Map<string, PlanColumn>();
  for (const boundLink of boundLinks) {
    for (const column of boundLink.source.tables[0]!.columns) {
      if (edgeTypes.includes(column.name))
        columnsOfOtherLinks.set(column.name, {
          name: column.name,
          type: boundLink.source.node.columns.find(({ name }) => name === column.name)!.type,
        });
    }
  }
  return boundLinks.map((each) => {
    const node = source.edges === undefined ? each.source.node : filterEdges(each.source, each.link);
    const { from, to } = each.link.ends;
    const edgeColumns = [from, to, 'system_from', ...(weight === null ? [] : [weight])];
    return project(
      node,
      edgeColumns.map((name): Output => ({ name, bound: edgeColumnOf(each.source.node, name) })),
    );
  });

  function filterEdges({ node, tables }: BoundSource, { name: type, ends }: LinkType): PlanNode {
    const [edgeTable] = tables;
    const hasColumn = (name: string): boolean => edgeTable!.columns.some((column) => column.name === name);
    const addedOutputs: Output[] = [];
    const addColumn = (name: string, value: Bound): void => {
      if (edgeTypes.includes(name) && !hasColumn(name)) addedOutputs.push({ name, bound: value });
    };
    addColumn('link_type', { kind: 'constant', cell: type, type: 'string' });
    addColumn('from_id', edgeColumnOf(node, ends.from));
    addColumn('to_id', edgeColumnOf(node, ends.to));
    for (const { name, type: addedType } of columnsOfOtherLinks.values()) {
      if (!addedOutputs.some((output) => output.name === name))
        addColumn(name, { kind: 'constant', cell: null, type: addedType });
    }
    const filterInput = addedOutputs.length === 0 ? node : project(node, [...throughColumns(node), ...addedOutputs]);
    const addedTable = {
      name: null,
      type: null,
      columns: addedOutputs.map(({ name, bound: value }) => ({ name, type: value.type })),
      first: node.columns.length,
    };
    const scope = new Scope(addedOutputs.length === 0 ? tables : [...tables, addedTable], []);
    return {
      kind: 'filter',
      input: filterInput,
      predicate: bindPredicate(source.edges!, contextOf(scope)),
      columns: filterInput.columns,
    };
  }
}

function edgeColumnOf(node: PlanNode, name: string): Bound {
  const columnIndex = node.columns.findIndex((column) => column.name === name);
  return { kind: 'column', index: columnIndex, name, type: node.columns[columnIndex]!.type };
}
