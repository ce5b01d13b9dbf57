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
  return mapRoots(plan, keepAllColumns);
}

/** Keeps all columns, at their places. */
function keepAllColumns(node: PlanNode): PlanNode {
  return keepColumns(node, [...node.columns.keys()]);
}

/** Keeps exactly these columns, in this order. */
function keepColumns(node: PlanNode, wantedColumns: readonly number[]): PlanNode {
  const { node: prunedNode, moved: movedColumns } = pruneNode(node, new Set(wantedColumns));
  if (prunedNode.columns.length === wantedColumns.length && wantedColumns.every((index, i) => movedColumns.get(index) === i))
    return prunedNode;
  const columns = wantedColumns.map((index) => node.columns[index]!);
  const expressions = columns.map(
    ({ name, type }, i): Bound => ({ kind: 'column', index: movedColumns.get(wantedColumns[i]!)!, name, type }),
  );
  return { kind: 'project', input: prunedNode, expressions, columns };
}

interface PrunedNode {
  readonly node: PlanNode;
  /** Old column number to new one, for the remaining columns. */
  readonly moved: ReadonlyMap<number, number>;
}

function pruneNode(node: PlanNode, needed: ReadonlySet<number>): PrunedNode {
  switch (node.kind) {
    case 'scan': {
      const neededColumns = ascendingColumns(needed);
      return {
        node: { ...node, columns: neededColumns.map((index) => node.columns[index]!) },
        moved: indexesOfKept(neededColumns),
      };
    }
    case 'search': {
      const inputWidth = node.input.columns.length;
      const usedColumns = [...needed].filter((index) => index < inputWidth);
      const { node: scan, moved: movedColumns } = pruneNode(
        node.input,
        new Set([...usedColumns, ...node.matches.flatMap(({ columns }) => columns)]),
      );
      const isScored = node.scored && needed.has(node.columns.length - 1);
      const prunedColumns = node.columns.slice(inputWidth, inputWidth + node.matches.length + (isScored ? 1 : 0));
      const matches = node.matches.map((match) => ({
        ...match,
        columns: match.columns.map((column) => movedColumns.get(column)!),
      }));
      const input = scan as ScanNode;
      const unreadColumns = [...movedColumns].flatMap(([column, newIndex]) => (needed.has(column) ? [] : [newIndex]));
      const markColumns = prunedColumns.map((_, i): [number, number] => [inputWidth + i, input.columns.length + i]);
      return {
        node: { ...node, input, matches, scored: isScored, unread: unreadColumns, columns: [...input.columns, ...prunedColumns] },
        moved: new Map([...movedColumns, ...markColumns]),
      };
    }
    case 'filter': {
      const { node: input, moved: movedColumns } = pruneNode(node.input, new Set([...needed, ...columnsIn(node.predicate)]));
      return {
        node: { ...node, input, predicate: rebasePruned(node.predicate, movedColumns), columns: input.columns },
        moved: movedColumns,
      };
    }
    case 'project': {
      const neededColumns = ascendingColumns(needed);
      const usedColumns = new Set<number>();
      for (const index of neededColumns) columnsIn(node.expressions[index]!, usedColumns);
      const { node: input, moved: movedColumns } = pruneNode(node.input, usedColumns);
      const expressions = neededColumns.map((index) => rebasePruned(node.expressions[index]!, movedColumns));
      return {
        node: { ...node, input, expressions, columns: neededColumns.map((index) => node.columns[index]!) },
        moved: indexesOfKept(neededColumns),
      };
    }
    case 'aggregate':
    case 'distinct':
      // Every key tells groups apart and every argument feeds a result, wanted above or not.
      return { node: { ...node, input: keepAllColumns(node.input) }, moved: identityIndexes(node) };
    case 'set-operation': {
      if (node.op !== 'union all') {
        return {
          node: { ...node, left: keepAllColumns(node.left), right: keepAllColumns(node.right) },
          moved: identityIndexes(node),
        };
      }
      const neededColumns = ascendingColumns(needed);
      const left = keepColumns(node.left, neededColumns);
      const right = keepColumns(node.right, neededColumns);
      return { node: { ...node, left, right, columns: left.columns }, moved: indexesOfKept(neededColumns) };
    }
    case 'recursive':
      return {
        node: { ...node, base: keepAllColumns(node.base), step: keepAllColumns(node.step) },
        moved: identityIndexes(node),
      };
    case 'values': {
      const neededColumns = ascendingColumns(needed);
      const rows = node.rows.map((row) => neededColumns.map((index) => row[index]!));
      return {
        node: { ...node, rows, columns: neededColumns.map((index) => node.columns[index]!) },
        moved: indexesOfKept(neededColumns),
      };
    }
    case 'apply':
      throw new AssertionError('queries that name others are joins by now');
    case 'spread':
      return { node: { ...node, input: keepAllColumns(node.input) }, moved: identityIndexes(node) };
    case 'virtual': {
      const neededColumns = ascendingColumns(needed);
      return {
        node: { ...node, columns: neededColumns.map((index) => node.columns[index]!) },
        moved: indexesOfKept(neededColumns),
      };
    }
    case 'working':
      return { node, moved: identityIndexes(node) };
    case 'function': {
      if (node.carries === 'edges') {
        const neededColumns = ascendingColumns(needed);
        const graph = { ...node.graph!, edges: node.graph!.edges.map((each) => keepColumns(each, neededColumns)) };
        const columns = neededColumns.map((index) => node.columns[index]!);
        return { node: { ...node, graph, columns, own: [...neededColumns.keys()] }, moved: indexesOfKept(neededColumns) };
      }
      if (node.carries === 'input') return pruneWalk(node, needed);
      if (node.graph) {
        const graph = { ...node.graph, edges: node.graph.edges.map(keepAllColumns) };
        return { node: { ...node, input: node.input && keepAllColumns(node.input), graph }, moved: identityIndexes(node) };
      }
      if (node.input === null) return { node, moved: identityIndexes(node) };
      const { node: input, moved: rankedColumns } = pruneNode(node.input, new Set(node.reads));
      const keptColumns = ascendingColumns(needed);
      const columns = keptColumns.map((index) => node.columns[index]!);
      const prunedColumns = keptColumns.map((index) => node.own[index]!);
      const reads = node.reads.map((index) => rankedColumns.get(index)!);
      return { node: { ...node, input, reads, columns, own: prunedColumns }, moved: indexesOfKept(keptColumns) };
    }
    case 'join':
      // The mark is not read.
      if (node.type === 'mark' && !needed.has(node.left.columns.length)) return pruneNode(node.left, needed);
      return pruneJoin(node, needed);
    case 'over': {
      const inputWidth = node.input.columns.length;
      const neededCalls = [...node.calls.keys()].filter((call) => needed.has(inputWidth + call));
      if (neededCalls.length === 0) return pruneNode(node.input, needed);
      const calls = neededCalls.map((call) => node.calls[call]!);
      const usedColumns = new Set([...needed].filter((index) => index < inputWidth));
      for (const column of [...node.partition, ...node.keys.map((key) => key.column)]) usedColumns.add(column);
      for (const { column, second, when, otherwise } of calls)
        for (const each of [column, second, when, otherwise]) if (each !== null && each !== undefined) usedColumns.add(each);
      const { node: input, moved: movedColumns } = pruneNode(node.input, usedColumns);
      const indexAt = (column: number): number => movedColumns.get(column)!;
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
          columns: [...input.columns, ...neededCalls.map((call) => node.columns[inputWidth + call]!)],
        },
        moved: new Map([
          ...movedColumns,
          ...neededCalls.map((call, i): [number, number] => [inputWidth + call, input.columns.length + i]),
        ]),
      };
    }
    case 'skip': {
      const { node: input, moved: movedColumns } = pruneNode(node.input, needed);
      return { node: { ...node, input, columns: input.columns }, moved: movedColumns };
    }
    case 'number': {
      const inputWidth = node.input.columns.length;
      const { node: input, moved: movedColumns } = pruneNode(
        node.input,
        new Set([...needed].filter((index) => index < inputWidth)),
      );
      if (!needed.has(inputWidth)) return { node: input, moved: movedColumns };
      const columns = [...input.columns, node.columns[inputWidth]!];
      return { node: { ...node, input, columns }, moved: new Map([...movedColumns, [inputWidth, input.columns.length]]) };
    }
    case 'window': {
      const inputWidth = node.input.columns.length;
      const usedColumns = new Set([...needed, node.column, ...node.partition].filter((index) => index < inputWidth));
      const { node: input, moved: movedColumns } = pruneNode(node.input, usedColumns);
      const windowBounds = [0, 1].map((i): [number, number] => [inputWidth + i, input.columns.length + i]);
      return {
        node: {
          ...node,
          input,
          column: movedColumns.get(node.column)!,
          partition: node.partition.map((index) => movedColumns.get(index)!),
          columns: [...input.columns, ...node.columns.slice(inputWidth)],
        },
        moved: new Map([...movedColumns, ...windowBounds]),
      };
    }
    case 'sort': {
      const { node: input, moved: movedColumns } = pruneNode(
        node.input,
        new Set([...needed, ...node.keys.map(({ column }) => column)]),
      );
      const keys = node.keys.map((key) => ({ ...key, column: movedColumns.get(key.column)! }));
      return { node: { ...node, input, keys, columns: input.columns }, moved: movedColumns };
    }
    case 'limit': {
      const { node: input, moved: movedColumns } = pruneNode(node.input, needed);
      return {
        node: { ...node, input, counting: node.counted ? countingInput(node) : null, columns: input.columns },
        moved: movedColumns,
      };
    }
  }
}

/** The last columns of a walk's input are the nodes where it begins and those that it avoids. */
function pruneWalk(node: FunctionNode, neededColumns: ReadonlySet<number>): PrunedNode {
  const { input, graph } = node;
  const inputWidth = input!.columns.length;
  const beginningCount = Number(graph!.choices.get('BEGINS'));
  const usedColumns = [...neededColumns].filter((index) => index < inputWidth);
  const { node: prunedInput, moved: movedColumns } = pruneNode(
    input!,
    new Set([...usedColumns, ...Array.from({ length: beginningCount }, (_, i) => inputWidth - 1 - i)]),
  );
  const walkColumns = node.columns.slice(inputWidth);
  return {
    node: {
      ...node,
      input: prunedInput,
      graph: { ...graph!, edges: graph!.edges.map(keepAllColumns) },
      reads: [...prunedInput.columns.keys()],
      columns: [...prunedInput.columns, ...walkColumns],
      own: [...prunedInput.columns.map(() => -1), ...walkColumns.keys()],
    },
    moved: new Map([
      ...movedColumns,
      ...walkColumns.map((_, i): [number, number] => [inputWidth + i, prunedInput.columns.length + i]),
    ]),
  };
}

function pruneJoin(node: JoinNode, neededColumns: ReadonlySet<number>): PrunedNode {
  const width = node.left.columns.length;
  const yieldsBoth = yieldsRight(node.type);
  const leftNeeded = yieldsBoth ? neededColumns : new Set([...neededColumns].filter((index) => index < width));
  const usedColumns = node.residual ? columnsIn(node.residual, new Set(leftNeeded)) : leftNeeded;
  const neededOfLeft = new Set(node.leftKeys);
  const neededOfRight = new Set(node.rightKeys);
  for (const index of usedColumns) {
    if (index < width) neededOfLeft.add(index);
    else neededOfRight.add(index - width);
  }
  const prunedLeft = pruneNode(node.left, neededOfLeft);
  const prunedRight = pruneNode(node.right, neededOfRight);
  const newWidth = prunedLeft.node.columns.length;
  const movedColumns = new Map([
    ...prunedLeft.moved,
    ...[...prunedRight.moved].map(([from, to]): [number, number] => [from + width, to + newWidth]),
  ]);
  const prunedJoinNode: JoinNode = {
    ...node,
    left: prunedLeft.node,
    right: prunedRight.node,
    leftKeys: node.leftKeys.map((index) => prunedLeft.moved.get(index)!),
    rightKeys: node.rightKeys.map((index) => prunedRight.moved.get(index)!),
    residual: node.residual && rebasePruned(node.residual, movedColumns),
    read: ascendingColumns(leftNeeded).map((index) => movedColumns.get(index)!),
    columns: joinColumns(node.type, prunedLeft.node, prunedRight.node),
  };
  if (yieldsBoth) return { node: prunedJoinNode, moved: movedColumns };
  return {
    node: prunedJoinNode,
    moved: node.type === 'mark' ? new Map([...prunedLeft.moved, [width, newWidth]]) : prunedLeft.moved,
  };
}

function identityIndexes(node: PlanNode): ReadonlyMap<number, number> {
  return new Map([...node.columns.keys()].map((index) => [index, index]));
}

/** Rows of a type are counted without the columns that only the answer needs; what computes its rows has them anyway. */
function countingInput(limit: LimitNode): PlanNode | null {
  const countedScan = limit.input.kind === 'filter' ? limit.input.input : limit.input;
  if (countedScan.kind !== 'scan') return null;
  // A page of an earlier basis recognises newer rows by system_from.
  const systemFrom = countedScan.columns.findIndex(({ name }) => name === 'system_from');
  return pruneNode(limit.input, new Set(countedScan.after ? [systemFrom] : [])).node;
}

function ascendingColumns(columns: ReadonlySet<number>): number[] {
  return [...columns].sort((a, b) => a - b);
}

function indexesOfKept(indexes: readonly number[]): ReadonlyMap<number, number> {
  return new Map(indexes.map((index, position) => [index, position]));
}

function rebasePruned(bound: Bound, movedColumns: ReadonlyMap<number, number>): Bound {
  return replaceColumns(bound, (column) => {
    const index = movedColumns.get(column.index);
    assert(index !== undefined, 'a column in use is kept');
    return index === column.index ? column : { ...column, index };
  });
}
