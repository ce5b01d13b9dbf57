/**
 * How many rows a node promises: guesses that only have to rank the sides of a join, and that EXPLAIN tells. Where columns are
 * sketched they know how many values differ; a plan serves every literal, so it goes by a value as frequent as any, and only
 * EXPLAIN, which has `cells`, by the values that are asked for.
 */
import type { Cell } from '../../log/values/value.ts';
import type { ColumnSketch } from './column-sketch.ts';
import type { Bound } from '../expressions/bound-expression.ts';
import type { FilterNode, JoinNode, PlanNode, VirtualNode } from '../logical-plan.ts';
import type { PassContext } from './pass.ts';
import { conjunctsOf } from './simplify-expressions.ts';

export interface Statistics extends PassContext {
  /** The value of a parameter; absent where a plan is made for any. */
  readonly cell?: (parameter: number) => Cell;
}

/** Share of rows that pass a condition of which nothing is known. */
const guessedShare = 1 / 3;
/** The estimate for an equality with one value, and for a text within texts. */
const guessedEqual = 1 / 10;
/** However many conditions there are, they are not thought to let less through. */
const guessedLeast = 1 / 100;

export function rowsOf(node: PlanNode, statistics: Statistics): number {
  switch (node.kind) {
    case 'scan':
      return statistics.estimate(node);
    case 'virtual':
      return virtualRows(node);
    case 'working':
      return 1_000;
    case 'function':
      if (node.carries === 'edges') return node.graph!.edges.reduce((sum, each) => sum + rowsOf(each, statistics), 0);
      return node.input ? rowsOf(node.input, statistics) : 1_000;
    case 'filter':
      return rowsOf(node.input, statistics) * shareOf(node, statistics).share;
    case 'aggregate':
      return node.groups === 0 ? 1 : (groupsOf(node.input, node.groups, statistics) ?? rowsOf(node.input, statistics) / 4);
    case 'distinct':
      return groupsOf(node.input, node.columns.length, statistics) ?? rowsOf(node.input, statistics) / 2;
    case 'values':
      return node.rows.length;
    case 'apply':
      return rowsOf(node.input, statistics);
    case 'join':
      if (node.type === 'semi' || node.type === 'anti') return rowsOf(node.left, statistics) / 2;
      if (node.type === 'mark' || node.type === 'single') return rowsOf(node.left, statistics);
      return joinedRows(node, statistics);
    case 'set-operation':
      return rowsOf(node.left, statistics) + (/^(intersect|except)/.test(node.op) ? 0 : rowsOf(node.right, statistics));
    case 'spread':
      return 4 * rowsOf(node.input, statistics);
    case 'recursive':
      return 4 * rowsOf(node.base, statistics);
    case 'project':
    case 'search':
    case 'sort':
    case 'limit':
    case 'skip':
    case 'number':
    case 'over':
    case 'window':
      return rowsOf(node.input, statistics);
  }
}

function virtualRows({ among = [], expected, lookUp }: VirtualNode): number {
  const values = among.flatMap((each) => (lookUp.by.has(each.column) ? each.values.length : []));
  return Math.min(expected, ...values.map((count) => count * lookUp.rows));
}

/** Assumes that a key has as many values as the smaller table has rows; outer joins keep the rows of their side. */
function joinedRows(node: JoinNode, statistics: Statistics): number {
  const [left, right] = [rowsOf(node.left, statistics), rowsOf(node.right, statistics)];
  const rowsKept = Math.max(node.type === 'right' ? 0 : left, node.type === 'left' ? 0 : right);
  if (node.leftKeys.length === 0) return node.type === 'inner' ? Math.max(left, right) : rowsKept;
  const [lefts, rights] = [node.leftKeys, node.rightKeys].map((keys, side) =>
    keys.map((key) => tableRowsOf(side === 0 ? node.left : node.right, key, statistics)),
  );
  const values = lefts!.reduce((product, rows, k) => product * Math.min(rows, rights![k]!), 1);
  const met = (left * right) / Math.max(1, Math.min(values, Math.max(...lefts!), Math.max(...rights!)));
  return node.type === 'inner' ? Math.max(1, met) : Math.max(rowsKept, met);
}

/** Rows of the table that stores a column of a node, or of the node that computes it. */
export function tableRowsOf(node: PlanNode, column: number, statistics: Statistics): number {
  switch (node.kind) {
    case 'filter':
    case 'sort':
    case 'limit':
      return tableRowsOf(node.input, column, statistics);
    case 'number':
      return column < node.input.columns.length ? tableRowsOf(node.input, column, statistics) : rowsOf(node, statistics);
    case 'project': {
      const computed = node.expressions[column]!;
      return computed.kind === 'column' ? tableRowsOf(node.input, computed.index, statistics) : rowsOf(node, statistics);
    }
    case 'join': {
      const width = node.left.columns.length;
      if (column < width) return tableRowsOf(node.left, column, statistics);
      return node.type !== 'mark' && column - width < node.right.columns.length
        ? tableRowsOf(node.right, column - width, statistics)
        : rowsOf(node, statistics);
    }
    default:
      return Math.max(1, rowsOf(node, statistics));
  }
}

/** The share of rows that a filter passes, with conditions taken as independent; and whether a sketch was used. */
export function shareOf({ predicate, input }: FilterNode, statistics: Statistics): { share: number; isSketched: boolean } {
  const conjuncts = conjunctsOf(predicate);
  let known = 1;
  let guessed = 1;
  let isSketched = false;
  for (const conjunct of conjuncts) {
    const share = knownShare(conjunct, input, statistics);
    if (share === null) guessed *= guess(conjunct);
    else {
      known *= share;
      isSketched = true;
    }
  }
  return { share: known * Math.max(guessedLeast, guessed), isSketched };
}

function guess(bound: Bound): number {
  switch (bound.kind) {
    case 'compare':
      return bound.op === '=' ? guessedEqual : bound.op === '!=' ? 1 - guessedEqual : guessedShare;
    case 'like':
    case 'is-null':
      return guessedEqual;
    case 'in':
      return Math.min(guessedShare, bound.items.length * guessedEqual);
    case 'or':
      return Math.min(
        1 - guessedShare,
        bound.operands.reduce((sum, each) => sum + guess(each), 0),
      );
    case 'and':
      return bound.operands.reduce((product, each) => product * guess(each), 1);
    case 'not':
      return Math.max(guessedShare, 1 - guess(bound.operand));
    default:
      return guessedShare;
  }
}

/** Null where no sketch covers the condition. */
function knownShare(bound: Bound, input: PlanNode, statistics: Statistics): number | null {
  const sketchFor = (operand: Bound): ColumnSketch | null =>
    operand.kind === 'column' ? sketchAt(input, operand.index, statistics) : null;
  const equal = (sketch: ColumnSketch, value: Bound): number => sketch.equalShare(cellOf(value, statistics));
  switch (bound.kind) {
    case 'compare': {
      const isMirrored = bound.left.kind !== 'column';
      const [operand, value] = isMirrored ? [bound.right, bound.left] : [bound.left, bound.right];
      const sketch = sketchFor(operand);
      if (!sketch || value.kind !== 'parameter') return null;
      if (bound.op === '=') return equal(sketch, value);
      if (bound.op === '!=') return Math.max(0, 1 - sketch.absentShare - equal(sketch, value));
      const cell = cellOf(value, statistics);
      return cell === undefined
        ? (1 - sketch.absentShare) * guessedShare
        : sketch.rangeShare(isMirrored ? mirrored[bound.op] : bound.op, cell);
    }
    case 'between': {
      const sketch = sketchFor(bound.operand);
      const [low, high] = [cellOf(bound.low, statistics), cellOf(bound.high, statistics)];
      if (!sketch) return null;
      if (low === undefined || high === undefined) return (1 - sketch.absentShare) * guessedShare;
      const outside = 1 - sketch.absentShare - sketch.rangeShare('<=', high);
      return low === null || high === null ? 0 : Math.max(0, sketch.rangeShare('>=', low) - outside);
    }
    case 'in': {
      const sketch = sketchFor(bound.operand);
      return (
        sketch &&
        Math.min(
          1 - sketch.absentShare,
          bound.items.reduce((sum, item) => sum + equal(sketch, item) * (item.kind === 'literals' ? item.count : 1), 0),
        )
      );
    }
    case 'is-null':
      return sketchFor(bound.operand)?.absentShare ?? null;
    case 'not': {
      if (bound.operand.kind !== 'is-null') return null;
      const sketch = sketchFor(bound.operand.operand);
      return sketch && 1 - sketch.absentShare;
    }
    case 'or': {
      const shares = bound.operands.flatMap((operand) => knownShare(operand, input, statistics) ?? []);
      return shares.length < bound.operands.length
        ? null
        : Math.min(
            1,
            shares.reduce((sum, share) => sum + share, 0),
          );
    }
    default:
      return null;
  }
}

const mirrored = { '<': '>', '<=': '>=', '>': '<', '>=': '<=' } as const;

/** Undefined where it is not known yet. */
function cellOf(bound: Bound, { cell }: Statistics): Cell | undefined {
  return bound.kind === 'parameter' ? cell?.(bound.index) : undefined;
}

/** So many values of the first columns as there are at most; null where one of them is not sketched. */
function groupsOf(input: PlanNode, columns: number, statistics: Statistics): number | null {
  let groups = 1;
  for (let column = 0; column < columns; column++) {
    const sketch = sketchAt(input, column, statistics);
    if (!sketch) return null;
    groups *= sketch.distinct + (sketch.absentShare > 0 ? 1 : 0);
  }
  return Math.min(groups, rowsOf(input, statistics));
}

/** Sketch of the stored column that a column of a node is. */
function sketchAt(node: PlanNode, column: number, statistics: Statistics): ColumnSketch | null {
  switch (node.kind) {
    case 'scan':
      return statistics.sketch(node.type, node.columns[column]!.name);
    case 'search':
      return column < node.input.columns.length ? sketchAt(node.input, column, statistics) : null;
    case 'filter':
    case 'sort':
    case 'limit':
    case 'number':
      return column < node.input.columns.length ? sketchAt(node.input, column, statistics) : null;
    case 'project': {
      const computed = node.expressions[column]!;
      return computed.kind === 'column' ? sketchAt(node.input, computed.index, statistics) : null;
    }
    case 'join': {
      const width = node.left.columns.length;
      if (column < width) return sketchAt(node.left, column, statistics);
      // A mark is no column of the right side.
      return node.type === 'mark' ? null : sketchAt(node.right, column - width, statistics);
    }
    default:
      return null;
  }
}
