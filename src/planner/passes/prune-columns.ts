/** Removes unused columns from the plan, down to the scan. */
import { AssertionError, assert } from '../../errors.ts';
import { type Bound, columnsIn, replaceColumns } from '../expressions/bound-expression.ts';
import {
  type FunctionNode,
  joinColumns,
  type JoinNode,
  type LimitNode,
  type LogicalPlan,
  mapRoots,
  type PlanNode,
  type ScanNode,
  yieldsRight,
} from '../logical-plan.ts';

export function pruneColumns(plan: LogicalPlan): LogicalPlan {
  return mapRoots(plan, whole);
}

/** Keeps all columns, at their places. */
function whole(node: PlanNode): PlanNode {
  return exactly(node, [...node.columns.keys()]);
}

/** Keeps exactly these columns, in this order. */
function exactly(node: PlanNode, wanted: readonly number[]): PlanNode {
  const { node: own, moved } = prune(node, new Set(wanted));
  if (own.columns.length === wanted.length && wanted.every((index, i) => moved.get(index) === i)) return own;
  const columns = wanted.map((index) => node.columns[index]!);
  const expressions = columns.map(({ name, type }, i): Bound => ({ kind: 'column', index: moved.get(wanted[i]!)!, name, type }));
  return { kind: 'project', input: own, expressions, columns };
}

interface Pruned {
  readonly node: PlanNode;
  /** Old column number to new one, for the remaining columns. */
  readonly moved: ReadonlyMap<number, number>;
}

function prune(node: PlanNode, needed: ReadonlySet<number>): Pruned {
  switch (node.kind) {
    case 'scan': {
      const neededColumns = ascending(needed);
      return { node: { ...node, columns: neededColumns.map((index) => node.columns[index]!) }, moved: indexesOf(neededColumns) };
    }
    case 'search': {
      const width = node.input.columns.length;
      const used = [...needed].filter((index) => index < width);
      const { node: scan, moved } = prune(node.input, new Set([...used, ...node.matches.flatMap(({ columns }) => columns)]));
      const scored = node.scored && needed.has(node.columns.length - 1);
      const own = node.columns.slice(width, width + node.matches.length + (scored ? 1 : 0));
      const matches = node.matches.map((match) => ({ ...match, columns: match.columns.map((column) => moved.get(column)!) }));
      const input = scan as ScanNode;
      const unread = [...moved].flatMap(([column, newIndex]) => (needed.has(column) ? [] : [newIndex]));
      const markColumns = own.map((_, i): [number, number] => [width + i, input.columns.length + i]);
      return {
        node: { ...node, input, matches, scored, unread, columns: [...input.columns, ...own] },
        moved: new Map([...moved, ...markColumns]),
      };
    }
    case 'filter': {
      const { node: input, moved } = prune(node.input, new Set([...needed, ...columnsIn(node.predicate)]));
      return { node: { ...node, input, predicate: rebase(node.predicate, moved), columns: input.columns }, moved };
    }
    case 'project': {
      const neededColumns = ascending(needed);
      const used = new Set<number>();
      for (const index of neededColumns) columnsIn(node.expressions[index]!, used);
      const { node: input, moved } = prune(node.input, used);
      const expressions = neededColumns.map((index) => rebase(node.expressions[index]!, moved));
      return {
        node: { ...node, input, expressions, columns: neededColumns.map((index) => node.columns[index]!) },
        moved: indexesOf(neededColumns),
      };
    }
    case 'aggregate':
    case 'distinct':
      // Every key tells groups apart and every argument feeds a result, wanted above or not.
      return { node: { ...node, input: whole(node.input) }, moved: identityIndexes(node) };
    case 'set-operation': {
      if (node.op !== 'union all') {
        return { node: { ...node, left: whole(node.left), right: whole(node.right) }, moved: identityIndexes(node) };
      }
      const neededColumns = ascending(needed);
      const left = exactly(node.left, neededColumns);
      const right = exactly(node.right, neededColumns);
      return { node: { ...node, left, right, columns: left.columns }, moved: indexesOf(neededColumns) };
    }
    case 'recursive':
      return { node: { ...node, base: whole(node.base), step: whole(node.step) }, moved: identityIndexes(node) };
    case 'values': {
      const neededColumns = ascending(needed);
      const rows = node.rows.map((row) => neededColumns.map((index) => row[index]!));
      return {
        node: { ...node, rows, columns: neededColumns.map((index) => node.columns[index]!) },
        moved: indexesOf(neededColumns),
      };
    }
    case 'apply':
      throw new AssertionError('queries that name others are joins by now');
    case 'spread':
      return { node: { ...node, input: whole(node.input) }, moved: identityIndexes(node) };
    case 'virtual': {
      const neededColumns = ascending(needed);
      return { node: { ...node, columns: neededColumns.map((index) => node.columns[index]!) }, moved: indexesOf(neededColumns) };
    }
    case 'working':
      return { node, moved: identityIndexes(node) };
    case 'function': {
      if (node.carries === 'edges') {
        const neededColumns = ascending(needed);
        const graph = { ...node.graph!, edges: node.graph!.edges.map((each) => exactly(each, neededColumns)) };
        const columns = neededColumns.map((index) => node.columns[index]!);
        return { node: { ...node, graph, columns, own: [...neededColumns.keys()] }, moved: indexesOf(neededColumns) };
      }
      if (node.carries === 'input') return prunedWalk(node, needed);
      if (node.graph) {
        const graph = { ...node.graph, edges: node.graph.edges.map(whole) };
        return { node: { ...node, input: node.input && whole(node.input), graph }, moved: identityIndexes(node) };
      }
      if (node.input === null) return { node, moved: identityIndexes(node) };
      const { node: input, moved: ranked } = prune(node.input, new Set(node.reads));
      const kept = ascending(needed);
      const columns = kept.map((index) => node.columns[index]!);
      const own = kept.map((index) => node.own[index]!);
      const reads = node.reads.map((index) => ranked.get(index)!);
      return { node: { ...node, input, reads, columns, own }, moved: indexesOf(kept) };
    }
    case 'join':
      // The mark is not read.
      if (node.type === 'mark' && !needed.has(node.left.columns.length)) return prune(node.left, needed);
      return prunedJoin(node, needed);
    case 'over': {
      const width = node.input.columns.length;
      const neededCalls = [...node.calls.keys()].filter((call) => needed.has(width + call));
      if (neededCalls.length === 0) return prune(node.input, needed);
      const calls = neededCalls.map((call) => node.calls[call]!);
      const used = new Set([...needed].filter((index) => index < width));
      for (const column of [...node.partition, ...node.keys.map((key) => key.column)]) used.add(column);
      for (const { column, second, when, otherwise } of calls)
        for (const each of [column, second, when, otherwise]) if (each !== null && each !== undefined) used.add(each);
      const { node: input, moved } = prune(node.input, used);
      const indexAt = (column: number): number => moved.get(column)!;
      return {
        node: {
          ...node,
          input,
          partition: node.partition.map(indexAt),
          keys: node.keys.map((key) => ({ ...key, column: indexAt(key.column) })),
          calls: calls.map((call) => ({
            ...call,
            column: call.column === null ? null : indexAt(call.column),
            ...(call.second !== undefined && { second: indexAt(call.second) }),
            ...(call.when !== undefined && { when: indexAt(call.when) }),
            otherwise: call.otherwise === null ? null : indexAt(call.otherwise),
          })),
          columns: [...input.columns, ...neededCalls.map((call) => node.columns[width + call]!)],
        },
        moved: new Map([...moved, ...neededCalls.map((call, i): [number, number] => [width + call, input.columns.length + i])]),
      };
    }
    case 'skip': {
      const { node: input, moved } = prune(node.input, needed);
      return { node: { ...node, input, columns: input.columns }, moved };
    }
    case 'number': {
      const width = node.input.columns.length;
      const { node: input, moved } = prune(node.input, new Set([...needed].filter((index) => index < width)));
      if (!needed.has(width)) return { node: input, moved };
      const columns = [...input.columns, node.columns[width]!];
      return { node: { ...node, input, columns }, moved: new Map([...moved, [width, input.columns.length]]) };
    }
    case 'window': {
      const width = node.input.columns.length;
      const used = new Set([...needed, node.column, ...node.partition].filter((index) => index < width));
      const { node: input, moved } = prune(node.input, used);
      const bounds = [0, 1].map((i): [number, number] => [width + i, input.columns.length + i]);
      return {
        node: {
          ...node,
          input,
          column: moved.get(node.column)!,
          partition: node.partition.map((index) => moved.get(index)!),
          columns: [...input.columns, ...node.columns.slice(width)],
        },
        moved: new Map([...moved, ...bounds]),
      };
    }
    case 'sort': {
      const { node: input, moved } = prune(node.input, new Set([...needed, ...node.keys.map(({ column }) => column)]));
      const keys = node.keys.map((key) => ({ ...key, column: moved.get(key.column)! }));
      return { node: { ...node, input, keys, columns: input.columns }, moved };
    }
    case 'limit': {
      const { node: input, moved } = prune(node.input, needed);
      return { node: { ...node, input, counting: node.counted ? counting(node) : null, columns: input.columns }, moved };
    }
  }
}

/** The last columns of a walk's input are the nodes where it begins and those that it avoids. */
function prunedWalk(node: FunctionNode, needed: ReadonlySet<number>): Pruned {
  const { input, graph } = node;
  const width = input!.columns.length;
  const begins = Number(graph!.choices.get('BEGINS'));
  const used = [...needed].filter((index) => index < width);
  const { node: own, moved } = prune(input!, new Set([...used, ...Array.from({ length: begins }, (_, i) => width - 1 - i)]));
  const walked = node.columns.slice(width);
  return {
    node: {
      ...node,
      input: own,
      graph: { ...graph!, edges: graph!.edges.map(whole) },
      reads: [...own.columns.keys()],
      columns: [...own.columns, ...walked],
      own: [...own.columns.map(() => -1), ...walked.keys()],
    },
    moved: new Map([...moved, ...walked.map((_, i): [number, number] => [width + i, own.columns.length + i])]),
  };
}

function prunedJoin(node: JoinNode, needed: ReadonlySet<number>): Pruned {
  const width = node.left.columns.length;
  const both = yieldsRight(node.type);
  const leftNeeded = both ? needed : new Set([...needed].filter((index) => index < width));
  const used = node.residual ? columnsIn(node.residual, new Set(leftNeeded)) : leftNeeded;
  const onLeft = new Set(node.leftKeys);
  const onRight = new Set(node.rightKeys);
  for (const index of used) {
    if (index < width) onLeft.add(index);
    else onRight.add(index - width);
  }
  const left = prune(node.left, onLeft);
  const right = prune(node.right, onRight);
  const newWidth = left.node.columns.length;
  const moved = new Map([
    ...left.moved,
    ...[...right.moved].map(([from, to]): [number, number] => [from + width, to + newWidth]),
  ]);
  const join: JoinNode = {
    ...node,
    left: left.node,
    right: right.node,
    leftKeys: node.leftKeys.map((index) => left.moved.get(index)!),
    rightKeys: node.rightKeys.map((index) => right.moved.get(index)!),
    residual: node.residual && rebase(node.residual, moved),
    read: ascending(leftNeeded).map((index) => moved.get(index)!),
    columns: joinColumns(node.type, left.node, right.node),
  };
  if (both) return { node: join, moved };
  return { node: join, moved: node.type === 'mark' ? new Map([...left.moved, [width, newWidth]]) : left.moved };
}

function identityIndexes(node: PlanNode): ReadonlyMap<number, number> {
  return new Map([...node.columns.keys()].map((index) => [index, index]));
}

/** Rows of a type are counted without the columns that only the answer needs; what computes its rows has them anyway. */
function counting(limit: LimitNode): PlanNode | null {
  const scan = limit.input.kind === 'filter' ? limit.input.input : limit.input;
  if (scan.kind !== 'scan') return null;
  // A page of an earlier basis recognises newer rows by system_from.
  const systemFrom = scan.columns.findIndex(({ name }) => name === 'system_from');
  return prune(limit.input, new Set(scan.after ? [systemFrom] : [])).node;
}

function ascending(columns: ReadonlySet<number>): number[] {
  return [...columns].sort((a, b) => a - b);
}

function indexesOf(indexes: readonly number[]): ReadonlyMap<number, number> {
  return new Map(indexes.map((index, position) => [index, position]));
}

function rebase(bound: Bound, moved: ReadonlyMap<number, number>): Bound {
  return replaceColumns(bound, (column) => {
    const index = moved.get(column.index);
    assert(index !== undefined, 'a column in use is kept');
    return index === column.index ? column : { ...column, index };
  });
}
