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
      return virtualRowCount(node);
    case 'working':
      return 1_000;
    case 'function':
      if (node.carries === 'edges') return node.graph!.edges.reduce((sum, each) => sum + rowsOf(each, statistics), 0);
      return node.input ? rowsOf(node.input, statistics) : 1_000;
    case 'filter':
      return rowsOf(node.input, statistics) * shareOf(node, statistics).share;
    case 'aggregate':
      return node.groups === 0 ? 1 : (groupCountOf(node.input, node.groups, statistics) ?? rowsOf(node.input, statistics) / 4);
    case 'distinct':
      return groupCountOf(node.input, node.columns.length, statistics) ?? rowsOf(node.input, statistics) / 2;
    case 'values':
      return node.rows.length;
    case 'apply':
      return rowsOf(node.input, statistics);
    case 'join':
      if (node.type === 'semi' || node.type === 'anti') return rowsOf(node.left, statistics) / 2;
      if (node.type === 'mark' || node.type === 'single') return rowsOf(node.left, statistics);
      return joinedRowCount(node, statistics);
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

function virtualRowCount({ among = [], expected, lookUp }: VirtualNode): number {
  const valueCounts = among.flatMap((each) => (lookUp.by.has(each.column) ? each.values.length : []));
  return Math.min(expected, ...valueCounts.map((count) => count * lookUp.rows));
}

/** Assumes that a key has as many values as the smaller table has rows; outer joins keep the rows of their side. */
function joinedRowCount(node: JoinNode, statistics: Statistics): number {
  const [left, right] = [rowsOf(node.left, statistics), rowsOf(node.right, statistics)];
  const rowsKept = Math.max(node.type === 'right' ? 0 : left, node.type === 'left' ? 0 : right);
  if (node.leftKeys.length === 0) return node.type === 'inner' ? Math.max(left, right) : rowsKept;
  const [leftKeyRows, rightKeyRows] = [node.leftKeys, node.rightKeys].map((keys, side) =>
    keys.map((key) => tableRowsOf(side === 0 ? node.left : node.right, key, statistics)),
  );
  const keyValues = leftKeyRows!.reduce((product, rows, k) => product * Math.min(rows, rightKeyRows![k]!), 1);
  const rowsMet = (left * right) / Math.max(1, Math.min(keyValues, Math.max(...leftKeyRows!), Math.max(...rightKeyRows!)));
  return node.type === 'inner' ? Math.max(1, rowsMet) : Math.max(rowsKept, rowsMet);
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
      const leftWidth = node.left.columns.length;
      if (column < leftWidth) return tableRowsOf(node.left, column, statistics);
      return node.type !== 'mark' && column - leftWidth < node.right.columns.length
        ? tableRowsOf(node.right, column - leftWidth, statistics)
        : rowsOf(node, statistics);
    }
    default:
      return Math.max(1, rowsOf(node, statistics));
  }
}

/** The share of rows that a filter passes, with conditions taken as independent; and whether a sketch was used. */
export function shareOf({ predicate, input }: FilterNode, statistics: Statistics): { share: number; isSketched: boolean } {
  const conjuncts = conjunctsOf(predicate);
  let knownShares = 1;
  let guessedShares = 1;
  let isSketched = false;
  for (const conjunct of conjuncts) {
    const conjunctShare = sketchedShare(conjunct, input, statistics);
    if (conjunctShare === null) guessedShares *= guessShare(conjunct);
    else {
      knownShares *= conjunctShare;
      isSketched = true;
    }
  }
  return { share: knownShares * Math.max(guessedLeast, guessedShares), isSketched };
}

function guessShare(bound: Bound): number {
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
        bound.operands.reduce((sum, each) => sum + guessShare(each), 0),
      );
    case 'and':
      return bound.operands.reduce((product, each) => product * guessShare(each), 1);
    case 'not':
      return Math.max(guessedShare, 1 - guessShare(bound.operand));
    default:
      return guessedShare;
  }
}

/** Null where no sketch covers the condition. */
function sketchedShare(bound: Bound, input: PlanNode, statistics: Statistics): number | null {
  const sketchOfOperand = (operand: Bound): ColumnSketch | null =>
    operand.kind === 'column' ? sketchAt(input, operand.index, statistics) : null;
  const equalShareOf = (sketch: ColumnSketch, value: Bound): number => sketch.equalShare(parameterCell(value, statistics));
  switch (bound.kind) {
    case 'compare': {
      const isMirrored = bound.left.kind !== 'column';
      const [operand, value] = isMirrored ? [bound.right, bound.left] : [bound.left, bound.right];
      const operandSketch = sketchOfOperand(operand);
      if (!operandSketch || value.kind !== 'parameter') return null;
      if (bound.op === '=') return equalShareOf(operandSketch, value);
      if (bound.op === '!=') return Math.max(0, 1 - operandSketch.absentShare - equalShareOf(operandSketch, value));
      const comparedCell = parameterCell(value, statistics);
      return comparedCell === undefined
        ? (1 - operandSketch.absentShare) * guessedShare
        : operandSketch.rangeShare(isMirrored ? mirroredRangeOp[bound.op] : bound.op, comparedCell);
    }
    case 'between': {
      const operandSketch = sketchOfOperand(bound.operand);
      const [low, high] = [parameterCell(bound.low, statistics), parameterCell(bound.high, statistics)];
      if (!operandSketch) return null;
      if (low === undefined || high === undefined) return (1 - operandSketch.absentShare) * guessedShare;
      const shareAbove = 1 - operandSketch.absentShare - operandSketch.rangeShare('<=', high);
      return low === null || high === null ? 0 : Math.max(0, operandSketch.rangeShare('>=', low) - shareAbove);
    }
    case 'in': {
      const operandSketch = sketchOfOperand(bound.operand);
      return (
        operandSketch &&
        Math.min(
          1 - operandSketch.absentShare,
          bound.items.reduce(
            (sum, item) => sum + equalShareOf(operandSketch, item) * (item.kind === 'literals' ? item.count : 1),
            0,
          ),
        )
      );
    }
    case 'is-null':
      return sketchOfOperand(bound.operand)?.absentShare ?? null;
    case 'not': {
      if (bound.operand.kind !== 'is-null') return null;
      const operandSketch = sketchOfOperand(bound.operand.operand);
      return operandSketch && 1 - operandSketch.absentShare;
    }
    case 'or': {
      const armShares = bound.operands.flatMap((operand) => sketchedShare(operand, input, statistics) ?? []);
      return armShares.length < bound.operands.length
        ? null
        : Math.min(
            1,
            armShares.reduce((sum, share) => sum + share, 0),
          );
    }
    default:
      return null;
  }
}

const mirroredRangeOp = { '<': '>', '<=': '>=', '>': '<', '>=': '<=' } as const;

/** Undefined where it is not known yet. */
function parameterCell(bound: Bound, { cell }: Statistics): Cell | undefined {
  return bound.kind === 'parameter' ? cell?.(bound.index) : undefined;
}

/** So many values of the first columns as there are at most; null where one of them is not sketched. */
function groupCountOf(input: PlanNode, columns: number, statistics: Statistics): number | null {
  let groupCount = 1;
  for (let column = 0; column < columns; column++) {
    const groupSketch = sketchAt(input, column, statistics);
    if (!groupSketch) return null;
    groupCount *= groupSketch.distinct + (groupSketch.absentShare > 0 ? 1 : 0);
  }
  return Math.min(groupCount, rowsOf(input, statistics));
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
      const leftWidth = node.left.columns.length;
      if (column < leftWidth) return sketchAt(node.left, column, statistics);
      // A mark is no column of the right side.
      return node.type === 'mark' ? null : sketchAt(node.right, column - leftWidth, statistics);
    }
    default:
      return null;
  }
}
