/**
 * Equalities between the two sides of a join become its keys: partners are then looked up instead of tried. A side that is
 * computed gets a column of its own.
 */
import { type Bound, columnsIn, mayRaise, replaceColumns } from '../expressions/bound-expression.ts';
import type { ColumnType } from '../../log/values/value.ts';
import {
  joinColumns,
  type JoinNode,
  type LogicalPlan,
  mapInputs,
  mapRoots,
  type PlanColumn,
  type PlanNode,
  yieldsRight,
} from '../logical-plan.ts';
import { conjunction, conjunctsOf } from './simplify-expressions.ts';

export function findJoinKeys(plan: LogicalPlan): LogicalPlan {
  return mapRoots(plan, addKeys);
}

function addKeys(node: PlanNode): PlanNode {
  const own = mapInputs(node, addKeys);
  return own.kind === 'join' && own.residual ? withKeys(own, own.residual) : own;
}

interface KeyPair {
  readonly left: Bound;
  readonly right: Bound;
}

function withKeys(node: JoinNode, condition: Bound): PlanNode {
  const width = node.left.columns.length;
  const pairs: KeyPair[] = [];
  const residual: Bound[] = [];
  const conjuncts = conjunctsOf(condition);
  // A key is computed for every row of its side: an expression that can fail becomes one only where no other condition could have
  // skipped the row.
  const spares = conjuncts.some((each) => pairOf(each, width) === null);
  for (const conjunct of conjuncts) {
    const pair = spares && mayRaise(conjunct) ? null : pairOf(conjunct, width);
    if (pair) pairs.push(pair);
    // Numbers meet integers as doubles in an index, which takes neighbours beyond 2^53 for one: the comparison decides.
    if (!pair || pair.left.type !== pair.right.type) residual.push(conjunct);
  }
  if (pairs.length === 0) return node;
  const left = withColumns(
    node.left,
    pairs.map((pair) => pair.left),
  );
  const right = withColumns(
    node.right,
    pairs.map((pair) => replaceColumns(pair.right, (column) => ({ ...column, index: column.index - width }))),
  );
  const moved = left.node.columns.length - width;
  const rebase = (bound: Bound): Bound =>
    moved === 0
      ? bound
      : replaceColumns(bound, (column) => (column.index < width ? column : { ...column, index: column.index + moved }));
  const join: JoinNode = {
    ...node,
    left: left.node,
    right: right.node,
    leftKeys: left.keys,
    rightKeys: right.keys,
    residual: residual.length > 0 ? rebase(conjunction(residual)) : null,
    columns: joinColumns(node.type, left.node, right.node),
  };
  if (moved === 0 && (right.node.columns.length === node.right.columns.length || !yieldsRight(node.type))) return join;
  // The columns made for keys end here.
  const expressions = node.columns.map(
    ({ name, type }, i): Bound => ({ kind: 'column', index: i < width ? i : i + moved, name, type }),
  );
  return { kind: 'project', input: join, expressions, columns: node.columns };
}

/** The two sides of an equality, where each is computed from one side of the join. */
function pairOf(conjunct: Bound, width: number): KeyPair | null {
  if (conjunct.kind !== 'compare' || conjunct.op !== '=') return null;
  const { left, right } = conjunct;
  if (!fitsAnIndex(left, right)) return null;
  const sides = [sideOf(left, width), sideOf(right, width)];
  if (sides[0] === 'left' && sides[1] === 'right') return { left, right };
  return sides[0] === 'right' && sides[1] === 'left' ? { left: right, right: left } : null;
}

/** Instants and integers are 64 bits each, text and json are text; the others meet their own kind, or each other as numbers. */
function fitsAnIndex(left: Bound, right: Bound): boolean {
  const kinds = [left.type, right.type].map(indexKind);
  return kinds[0] !== null && kinds[0] === kinds[1];
}

function indexKind(type: Bound['type']): string | null {
  switch (type) {
    case 'integer':
    case 'number':
    case 'timestamp':
      return 'numeric';
    case 'string':
    case 'json':
      return 'text';
    case 'boolean':
      return 'boolean';
    default:
      return null;
  }
}

function sideOf(bound: Bound, width: number): 'left' | 'right' | null {
  const columns = [...columnsIn(bound)];
  if (columns.length === 0) return null;
  return columns.every((index) => index < width) ? 'left' : columns.every((index) => index >= width) ? 'right' : null;
}

function withColumns(node: PlanNode, bounds: readonly Bound[]): { readonly node: PlanNode; readonly keys: readonly number[] } {
  const computed: Bound[] = [];
  const keys = bounds.map((bound) => (bound.kind === 'column' ? bound.index : node.columns.length + computed.push(bound) - 1));
  if (computed.length === 0) return { node, keys };
  const through = node.columns.map(({ name, type }, index): Bound => ({ kind: 'column', index, name, type }));
  const columns = [...node.columns, ...computed.map((bound): PlanColumn => ({ name: '#key', type: bound.type as ColumnType }))];
  return { node: { kind: 'project', input: node, expressions: [...through, ...computed], columns }, keys };
}
