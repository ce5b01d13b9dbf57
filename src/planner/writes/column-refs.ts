/** Columns that an expression names, wherever in it they stand: trees are plain data. */
import type { ColumnRef } from '../syntax/statement.ts';

export function columnRefsIn(tree: unknown): ColumnRef[] {
  const columnRefs: ColumnRef[] = [];
  const open: unknown[] = [tree];
  for (let node = open.pop(); open.length > 0 || node !== undefined; node = open.pop()) {
    if (typeof node !== 'object' || node === null) continue;
    if (isRef(node)) columnRefs.push(node);
    else open.push(...Object.values(node));
  }
  return columnRefs;
}

/** Copies a tree with other column references. */
export function withColumns<T>(tree: T, other: (reference: ColumnRef) => ColumnRef): T {
  if (Array.isArray(tree)) return tree.map((each: unknown) => withColumns(each, other)) as T;
  if (typeof tree !== 'object' || tree === null) return tree;
  if (isRef(tree)) return other(tree) as T;
  return Object.fromEntries(Object.entries(tree).map(([key, value]) => [key, withColumns(value as unknown, other)])) as T;
}

function isRef(node: object): node is ColumnRef {
  return (node as { kind?: unknown }).kind === 'column';
}
