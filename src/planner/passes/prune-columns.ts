/** Reads only what is used: columns that nothing above asks for leave the plan, down to the scan. */
import { assert } from '../../errors.ts';
import { type Bound, columnsIn, replaceColumns } from '../expressions/bound-expression.ts';
import type { LimitNode, LogicalPlan, PlanNode } from '../logical-plan.ts';

export function pruneColumns(plan: LogicalPlan): LogicalPlan {
  const all = new Set(plan.root.columns.keys());
  return { ...plan, root: pruned(plan.root, all).node };
}

interface Pruned {
  readonly node: PlanNode;
  /** Old column number to new one, for those that are left. */
  readonly moved: ReadonlyMap<number, number>;
}

function pruned(node: PlanNode, needed: ReadonlySet<number>): Pruned {
  switch (node.kind) {
    case 'scan': {
      const kept = ascending(needed);
      return { node: { ...node, columns: kept.map((index) => node.columns[index]!) }, moved: numbered(kept) };
    }
    case 'filter': {
      const { node: input, moved } = pruned(node.input, new Set([...needed, ...columnsIn(node.predicate)]));
      return { node: { ...node, input, predicate: rebased(node.predicate, moved), columns: input.columns }, moved };
    }
    case 'project': {
      const kept = ascending(needed);
      const used = new Set<number>();
      for (const index of kept) columnsIn(node.expressions[index]!, used);
      const { node: input, moved } = pruned(node.input, used);
      const expressions = kept.map((index) => rebased(node.expressions[index]!, moved));
      return { node: { ...node, input, expressions, columns: kept.map((index) => node.columns[index]!) }, moved: numbered(kept) };
    }
    case 'aggregate':
    case 'distinct': {
      // Every key tells groups apart and every argument feeds a result, wanted above or not.
      const { node: input, moved } = pruned(node.input, new Set(node.input.columns.keys()));
      assert(moved.size === node.input.columns.length, 'keys and arguments stay');
      return { node: { ...node, input }, moved: new Map([...node.columns.keys()].map((index) => [index, index])) };
    }
    case 'sort': {
      const { node: input, moved } = pruned(node.input, new Set([...needed, ...node.keys.map(({ column }) => column)]));
      const keys = node.keys.map((key) => ({ ...key, column: moved.get(key.column)! }));
      return { node: { ...node, input, keys, columns: input.columns }, moved };
    }
    case 'limit': {
      const { node: input, moved } = pruned(node.input, needed);
      return { node: { ...node, input, counting: counting(node), columns: input.columns }, moved };
    }
  }
}

/** Rows of a type are counted without the columns that only the answer needs; what computes its rows has them anyway. */
function counting(limit: LimitNode): PlanNode | null {
  const scan = limit.input.kind === 'filter' ? limit.input.input : limit.input;
  if (scan.kind !== 'scan') return null;
  // A page that keeps to an earlier basis tells by system_from what was written after it.
  const systemFrom = scan.columns.findIndex(({ name }) => name === 'system_from');
  return pruned(limit.input, new Set(scan.after ? [systemFrom] : [])).node;
}

function ascending(columns: ReadonlySet<number>): number[] {
  return [...columns].sort((a, b) => a - b);
}

function numbered(kept: readonly number[]): ReadonlyMap<number, number> {
  return new Map(kept.map((index, position) => [index, position]));
}

function rebased(bound: Bound, moved: ReadonlyMap<number, number>): Bound {
  return replaceColumns(bound, (column) => {
    const index = moved.get(column.index);
    assert(index !== undefined, 'a column in use is kept');
    return index === column.index ? column : { ...column, index };
  });
}
