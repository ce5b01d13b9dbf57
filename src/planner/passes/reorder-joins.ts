/**
 * The order in which inner joins are made: the one that promises the fewest rows on the way, among those that begin with any
 * table and go on with the one that is bound to what is there and adds least. Rows come out as of the order written: where
 * another one runs, the rows of each table are numbered, and what comes of them is sorted back by these numbers.
 */
import { type Bound, columnsIn, mayRaise, replaceColumns } from '../expressions/bound-expression.ts';
import {
  type JoinNode,
  type LogicalPlan,
  mapInputs,
  mapRoots,
  type PlanColumn,
  type PlanNode,
  type SortKey,
} from '../logical-plan.ts';
import { rowsOf } from './estimate-rows.ts';
import type { PassContext } from './pass.ts';
import { conjunction, conjunctsOf } from './simplify-expressions.ts';

/** Another order must promise to be so much better than the one written. */
const reorderedTimesBetter = 1.5;

interface JoinLeaf {
  readonly node: PlanNode;
  /** Number of its first column in the joined row as written. */
  readonly first: number;
  /** Rows that it promises, and rows of its table. */
  readonly rows: number;
  readonly base: number;
}

/** Two tables that a condition binds, and the values that equal columns have: the same object for all that equal each other. */
interface JoinEquality {
  readonly tables: readonly [number, number];
  readonly values: { readonly column: number; readonly rows: number };
}

export function reorderJoins(plan: LogicalPlan, context: PassContext): LogicalPlan {
  // Each node once: a cluster inspects the nodes below it, and where it stays as written, these are visited again.
  const reorderedNodes = new Map<PlanNode, PlanNode>();
  const reorderNode = (node: PlanNode): PlanNode => {
    let reordered = reorderedNodes.get(node);
    if (reordered === undefined) {
      reordered = (isInner(node) ? new JoinCluster(node, context, reorderNode).better() : null) ?? mapInputs(node, reorderNode);
      reorderedNodes.set(node, reordered);
    }
    return reordered;
  };
  return mapRoots(plan, reorderNode);
}

function isInner(node: PlanNode): node is JoinNode {
  return node.kind === 'join' && node.type === 'inner' && node.leftKeys.length === 0;
}

class JoinCluster {
  readonly #clusterRoot: JoinNode;
  readonly #passContext: PassContext;
  readonly #joinLeaves: JoinLeaf[] = [];
  readonly #joinConditions: Bound[] = [];
  readonly #joinEqualities: readonly JoinEquality[];

  constructor(root: JoinNode, context: PassContext, below: (node: PlanNode) => PlanNode) {
    this.#clusterRoot = root;
    this.#passContext = context;
    this.#collectLeaves(root, 0, below);
    this.#joinEqualities = this.#findEqualities();
  }

  /** Finds a better order; null where the written one stays. */
  better(): PlanNode | null {
    const leafCount = this.#joinLeaves.length;
    if (leafCount < 3 || this.#joinConditions.some(mayRaise)) return null;
    const writtenOrder = this.#joinLeaves.map((_, i) => i);
    let bestOrder: { readonly order: readonly number[]; readonly cost: number } | null = null;
    for (let start = 0; start < leafCount; start++) {
      const greedyOrder = this.#greedyOrder(start);
      const greedyCost = this.#orderCost(greedyOrder);
      if (bestOrder === null || greedyCost < bestOrder.cost) bestOrder = { order: greedyOrder, cost: greedyCost };
    }
    if (bestOrder === null || bestOrder.cost * reorderedTimesBetter >= this.#orderCost(writtenOrder)) return null;
    return bestOrder.order.every((leaf, i) => leaf === i) ? null : this.#buildOrder(bestOrder.order);
  }

  /** Leaves from left to right, conditions over the joined row as written. */
  #collectLeaves(node: PlanNode, first: number, reorderBelow: (node: PlanNode) => PlanNode): void {
    if (isInner(node)) {
      this.#collectLeaves(node.left, first, reorderBelow);
      this.#collectLeaves(node.right, first + node.left.columns.length, reorderBelow);
      if (node.residual) {
        for (const each of conjunctsOf(node.residual)) {
          this.#joinConditions.push(replaceColumns(each, (column) => ({ ...column, index: column.index + first })));
        }
      }
      return;
    }
    // A condition on a pair of tables that could not go below stands on its join.
    if (node.kind === 'filter' && isInner(node.input)) {
      this.#collectLeaves(node.input, first, reorderBelow);
      for (const each of conjunctsOf(node.predicate)) {
        this.#joinConditions.push(replaceColumns(each, (column) => ({ ...column, index: column.index + first })));
      }
      return;
    }
    const reorderedLeaf = reorderBelow(node);
    this.#joinLeaves.push({
      node: reorderedLeaf,
      first,
      rows: Math.max(1, rowsOf(reorderedLeaf, this.#passContext)),
      base: baseRowsOf(reorderedLeaf, this.#passContext),
    });
  }

  #leavesOfCondition(condition: Bound): ReadonlySet<number> {
    return new Set([...columnsIn(condition)].map((index) => this.#leafOfColumn(index)));
  }

  #findEqualities(): JoinEquality[] {
    const equalPairs = this.#joinConditions.flatMap((condition) => {
      if (condition.kind !== 'compare' || condition.op !== '=') return [];
      const { left, right } = condition;
      const tables = [...this.#leavesOfCondition(condition)];
      if (tables.length !== 2) return [];
      const columns = left.kind === 'column' && right.kind === 'column' ? [left.index, right.index] : [];
      return [{ tables: tables as [number, number], columns }];
    });
    // By column: the class of columns that equal it, under the number of one of them.
    const columnClasses = new Map<number, { readonly column: number; rows: number }>();
    const classOf = (column: number): { readonly column: number; rows: number } =>
      columnClasses.get(column) ?? { column, rows: this.#joinLeaves[this.#leafOfColumn(column)]!.base };
    for (const { columns } of equalPairs) {
      const [mergedClass, otherClass] = columns.map(classOf);
      if (!mergedClass || !otherClass || mergedClass === otherClass) continue;
      mergedClass.rows = Math.min(mergedClass.rows, otherClass.rows);
      for (const column of columns) columnClasses.set(column, mergedClass);
      for (const [column, columnClass] of columnClasses) if (columnClass === otherClass) columnClasses.set(column, mergedClass);
    }
    return equalPairs.map(({ tables, columns: [column] }, i) => ({
      tables,
      values:
        column === undefined
          ? { column: -1 - i, rows: Math.min(...tables.map((table) => this.#joinLeaves[table]!.base)) }
          : classOf(column),
    }));
  }

  #leafOfColumn(column: number): number {
    return this.#joinLeaves.findLastIndex(({ first }) => first <= column);
  }

  #greedyOrder(start: number): readonly number[] {
    const leafOrder = [start];
    let rows = this.#joinLeaves[start]!.rows;
    while (leafOrder.length < this.#joinLeaves.length) {
      let nextLeaf = -1;
      let leastWeight = Number.POSITIVE_INFINITY;
      for (let leaf = 0; leaf < this.#joinLeaves.length; leaf++) {
        if (leafOrder.includes(leaf)) continue;
        const joinedRows = this.#joinedRows(rows, leafOrder, leaf);
        // Between two that add as many rows, the one that needs less memory is chosen.
        const leafWeight = joinedRows + this.#joinLeaves[leaf]!.rows * 1e-6;
        if (leafWeight < leastWeight) {
          leastWeight = leafWeight;
          nextLeaf = leaf;
        }
      }
      rows = this.#joinedRows(rows, leafOrder, nextLeaf);
      leafOrder.push(nextLeaf);
    }
    return leafOrder;
  }

  /**
   * Rows of what is there joined with one more table. Columns that equal each other have as many values as the smallest of their
   * tables has rows; several of them together tell at most the rows of either side apart.
   */
  #joinedRows(rows: number, leavesJoined: readonly number[], leaf: number): number {
    const { rows: leafRows, base } = this.#joinLeaves[leaf]!;
    const classesMet = new Set<number>();
    let joinedValues = 1;
    let largestBase = 1;
    for (const { tables, values: equalityClass } of this.#joinEqualities) {
      const otherLeaf = tables[0] === leaf ? tables[1] : tables[0];
      if (!tables.includes(leaf) || !leavesJoined.includes(otherLeaf)) continue;
      largestBase = Math.max(largestBase, this.#joinLeaves[otherLeaf]!.base);
      // The same value once more, by way of another table, tells nothing new.
      if (classesMet.has(equalityClass.column)) continue;
      classesMet.add(equalityClass.column);
      joinedValues *= equalityClass.rows;
    }
    return Math.max(1, (rows * leafRows) / Math.min(joinedValues, base, largestBase));
  }

  /** Rows that come out of all joins, and rows that are held for them. */
  #orderCost(order: readonly number[]): number {
    let rows = this.#joinLeaves[order[0]!]!.rows;
    let orderCost = 0;
    for (let i = 1; i < order.length; i++) {
      const nextLeaf = this.#joinLeaves[order[i]!]!;
      orderCost += Math.min(rows, nextLeaf.rows);
      rows = this.#joinedRows(rows, order.slice(0, i), order[i]!);
      orderCost += rows;
    }
    return orderCost;
  }

  #buildOrder(order: readonly number[]): PlanNode {
    const rowNumbers = new Map<number, number>();
    const [start, ...others] = order;
    // Each table with its number behind its columns, at the place of the table in the order written.
    const rowNumberColumns: number[] = [];
    const numberedLeaves = this.#joinLeaves.map(({ node: leaf }): PlanNode => {
      return { kind: 'number', input: leaf, columns: [...leaf.columns, { name: '#row', type: 'integer' }] };
    });
    let node = numberedLeaves[start!]!;
    const openConditions = new Set(this.#joinConditions);
    const addLeaf = (leaf: number, from: number): void => {
      const { first, node: own } = this.#joinLeaves[leaf]!;
      own.columns.forEach((_, c) => rowNumbers.set(first + c, from + c));
      rowNumberColumns[leaf] = from + own.columns.length;
    };
    addLeaf(start!, 0);
    const leavesJoined = new Set([start!]);
    for (const leaf of others) {
      const right = numberedLeaves[leaf]!;
      addLeaf(leaf, node.columns.length);
      leavesJoined.add(leaf);
      const dueConditions = [...openConditions].filter((condition) =>
        [...this.#leavesOfCondition(condition)].every((table) => leavesJoined.has(table)),
      );
      for (const condition of dueConditions) openConditions.delete(condition);
      const movedConditions = dueConditions.map((condition) =>
        replaceColumns(condition, (column) => ({ ...column, index: rowNumbers.get(column.index)! })),
      );
      node = {
        kind: 'join',
        type: 'inner',
        left: node,
        right,
        leftKeys: [],
        rightKeys: [],
        residual: movedConditions.length > 0 ? conjunction(movedConditions) : null,
        build: 'right',
        columns: [...node.columns, ...right.columns],
      };
    }
    const numberKeys = rowNumberColumns.map((column): SortKey => ({ column, descending: false, collate: 'codepoint' }));
    const sortedRows: PlanNode = {
      kind: 'sort',
      input: node,
      keys: numberKeys,
      limit: null,
      counted: false,
      columns: node.columns,
    };
    const { columns } = this.#clusterRoot;
    const expressions = columns.map(({ name, type }, i): Bound => ({ kind: 'column', index: rowNumbers.get(i)!, name, type }));
    return { kind: 'project', input: sortedRows, expressions, columns: columns.map((column): PlanColumn => column) };
  }
}

function baseRowsOf(node: PlanNode, context: PassContext): number {
  switch (node.kind) {
    case 'scan':
      return Math.max(1, rowsOf(node, context));
    case 'filter':
    case 'project':
      return baseRowsOf(node.input, context);
    case 'join':
      return baseRowsOf(node.left, context);
    default:
      return Math.max(1, rowsOf(node, context));
  }
}
