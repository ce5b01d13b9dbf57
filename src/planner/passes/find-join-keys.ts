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
  return mapRoots(plan, addJoinKeys);
}

function addJoinKeys(node: PlanNode): PlanNode {
  const keyedNode = mapInputs(node, addJoinKeys);
  return keyedNode.kind === 'join' && keyedNode.residual ? withJoinKeys(keyedNode, keyedNode.residual) : keyedNode;
}

interface KeyPair {
  readonly left: Bound;
  readonly right: Bound;
}

function withJoinKeys(node: JoinNode, condition: Bound): PlanNode {
  const width = node.left.columns.length;
  const keyPairs: KeyPair[] = [];
  const residualConjuncts: Bound[] = [];
  const conjuncts = conjunctsOf(condition);
  // A key is computed for every row of its side: an expression that can fail becomes one only where no other condition could have
  // skipped the row.
  const sparesRaising = conjuncts.some((each) => keyPairOf(each, width) === null);
  for (const conjunct of conjuncts) {
    const keyPair = sparesRaising && mayRaise(conjunct) ? null : keyPairOf(conjunct, width);
    if (keyPair) keyPairs.push(keyPair);
    // Numbers meet integers as doubles in an index, which takes neighbours beyond 2^53 for one: the comparison decides.
    if (!keyPair || keyPair.left.type !== keyPair.right.type) residualConjuncts.push(conjunct);
  }
  if (keyPairs.length === 0) return node;
  const leftWithKeys = withKeyColumns(
    node.left,
    keyPairs.map((keyPair) => keyPair.left),
  );
  const rightWithKeys = withKeyColumns(
    node.right,
    keyPairs.map((keyPair) => replaceColumns(keyPair.right, (column) => ({ ...column, index: column.index - width }))),
  );
  const keysAdded = leftWithKeys.node.columns.length - width;
  const rebaseBound = (bound: Bound): Bound =>
    keysAdded === 0
      ? bound
      : replaceColumns(bound, (column) => (column.index < width ? column : { ...column, index: column.index + keysAdded }));
  const keyedJoin: JoinNode = {
    ...node,
    left: leftWithKeys.node,
    right: rightWithKeys.node,
    leftKeys: leftWithKeys.keys,
    rightKeys: rightWithKeys.keys,
    residual: residualConjuncts.length > 0 ? rebaseBound(conjunction(residualConjuncts)) : null,
    columns: joinColumns(node.type, leftWithKeys.node, rightWithKeys.node),
  };
  if (keysAdded === 0 && (rightWithKeys.node.columns.length === node.right.columns.length || !yieldsRight(node.type)))
    return keyedJoin;
  // The columns made for keys end here.
  const expressions = node.columns.map(
    ({ name, type }, i): Bound => ({ kind: 'column', index: i < width ? i : i + keysAdded, name, type }),
  );
  return { kind: 'project', input: keyedJoin, expressions, columns: node.columns };
}

/** The two sides of an equality, where each is computed from one side of the join. */
function keyPairOf(conjunct: Bound, width: number): KeyPair | null {
  if (conjunct.kind !== 'compare' || conjunct.op !== '=') return null;
  const { left, right } = conjunct;
  if (!fitsAnIndex(left, right)) return null;
  const operandSides = [joinSideOf(left, width), joinSideOf(right, width)];
  if (operandSides[0] === 'left' && operandSides[1] === 'right') return { left, right };
  return operandSides[0] === 'right' && operandSides[1] === 'left' ? { left: right, right: left } : null;
}

/** Instants and integers are 64 bits each, text and json are text; the others meet their own kind, or each other as numbers. */
function fitsAnIndex(left: Bound, right: Bound): boolean {
  const indexKinds = [left.type, right.type].map(indexKind);
  return indexKinds[0] !== null && indexKinds[0] === indexKinds[1];
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

function joinSideOf(bound: Bound, width: number): 'left' | 'right' | null {
  const columns = [...columnsIn(bound)];
  if (columns.length === 0) return null;
  return columns.every((index) => index < width) ? 'left' : columns.every((index) => index >= width) ? 'right' : null;
}

function withKeyColumns(node: PlanNode, bounds: readonly Bound[]): { readonly node: PlanNode; readonly keys: readonly number[] } {
  const computedKeys: Bound[] = [];
  const keyColumns = bounds.map((bound) =>
    bound.kind === 'column' ? bound.index : node.columns.length + computedKeys.push(bound) - 1,
  );
  if (computedKeys.length === 0) return { node, keys: keyColumns };
  const inputColumns = node.columns.map(({ name, type }, index): Bound => ({ kind: 'column', index, name, type }));
  const keyedColumns = [
    ...node.columns,
    ...computedKeys.map((bound): PlanColumn => ({ name: '#key', type: bound.type as ColumnType })),
  ];
  return {
    node: { kind: 'project', input: node, expressions: [...inputColumns, ...computedKeys], columns: keyedColumns },
    keys: keyColumns,
  };
}
