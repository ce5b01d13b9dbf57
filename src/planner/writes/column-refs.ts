/** Columns that an expression names, wherever in it they stand: trees are plain data. */
import type { ColumnRef } from '../syntax/statement.ts';

export function columnRefsIn(tree: unknown): ColumnRef[] {
  const columnRefs: ColumnRef[] = [];
  const openNodes: unknown[] = [tree];
  for (let treeNode = openNodes.pop(); openNodes.length > 0 || treeNode !== undefined; treeNode = openNodes.pop()) {
    if (typeof treeNode !== 'object' || treeNode === null) continue;
    if (isColumnRef(treeNode)) columnRefs.push(treeNode);
    else openNodes.push(...Object.values(treeNode));
  }
  return columnRefs;
}

/** Copies a tree with other column references. */
export function withColumns<T>(tree: T, otherReference: (reference: ColumnRef) => ColumnRef): T {
  if (Array.isArray(tree)) return tree.map((each: unknown) => withColumns(each, otherReference)) as T;
  if (typeof tree !== 'object' || tree === null) return tree;
  if (isColumnRef(tree)) return otherReference(tree) as T;
  return Object.fromEntries(
    Object.entries(tree).map(([key, treeMember]) => [key, withColumns(treeMember as unknown, otherReference)]),
  ) as T;
}

function isColumnRef(node: object): node is ColumnRef {
  return (node as { kind?: unknown }).kind === 'column';
}
