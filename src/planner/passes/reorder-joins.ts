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
const timesBetter = 1.5;

interface Leaf {
  readonly node: PlanNode;
  /** Number of its first column in the joined row as written. */
  readonly first: number;
  /** Rows that it promises, and rows of its table. */
  readonly rows: number;
  readonly base: number;
}

/** Two tables that a condition binds, and the values that equal columns have: the same object for all that equal each other. */
interface Equality {
  readonly tables: readonly [number, number];
  readonly values: { readonly column: number; readonly rows: number };
}

export function reorderJoins(plan: LogicalPlan, context: PassContext): LogicalPlan {
  // Each node once: a cluster inspects the nodes below it, and where it stays as written, these are visited again.
  const known = new Map<PlanNode, PlanNode>();
  const order = (node: PlanNode): PlanNode => {
    let reordered = known.get(node);
    if (reordered === undefined) {
      reordered = (isInner(node) ? new Cluster(node, context, order).better() : null) ?? mapInputs(node, order);
      known.set(node, reordered);
    }
    return reordered;
  };
  return mapRoots(plan, order);
}

function isInner(node: PlanNode): node is JoinNode {
  return node.kind === 'join' && node.type === 'inner' && node.leftKeys.length === 0;
}

class Cluster {
  readonly #root: JoinNode;
  readonly #context: PassContext;
  readonly #leaves: Leaf[] = [];
  readonly #conditions: Bound[] = [];
  readonly #equalities: readonly Equality[];

  constructor(root: JoinNode, context: PassContext, below: (node: PlanNode) => PlanNode) {
    this.#root = root;
    this.#context = context;
    this.#collect(root, 0, below);
    this.#equalities = this.#findEqualities();
  }

  /** Finds a better order; null where the written one stays. */
  better(): PlanNode | null {
    const count = this.#leaves.length;
    if (count < 3 || this.#conditions.some(mayRaise)) return null;
    const writtenOrder = this.#leaves.map((_, i) => i);
    let best: { readonly order: readonly number[]; readonly cost: number } | null = null;
    for (let start = 0; start < count; start++) {
      const order = this.#greedy(start);
      const cost = this.#cost(order);
      if (best === null || cost < best.cost) best = { order, cost };
    }
    if (best === null || best.cost * timesBetter >= this.#cost(writtenOrder)) return null;
    return best.order.every((leaf, i) => leaf === i) ? null : this.#build(best.order);
  }

  /** Leaves from left to right, conditions over the joined row as written. */
  #collect(node: PlanNode, first: number, below: (node: PlanNode) => PlanNode): void {
    if (isInner(node)) {
      this.#collect(node.left, first, below);
      this.#collect(node.right, first + node.left.columns.length, below);
      if (node.residual) {
        for (const each of conjunctsOf(node.residual)) {
          this.#conditions.push(replaceColumns(each, (column) => ({ ...column, index: column.index + first })));
        }
      }
      return;
    }
    // A condition on a pair of tables that could not go below stands on its join.
    if (node.kind === 'filter' && isInner(node.input)) {
      this.#collect(node.input, first, below);
      for (const each of conjunctsOf(node.predicate)) {
        this.#conditions.push(replaceColumns(each, (column) => ({ ...column, index: column.index + first })));
      }
      return;
    }
    const own = below(node);
    this.#leaves.push({
      node: own,
      first,
      rows: Math.max(1, rowsOf(own, this.#context)),
      base: baseOf(own, this.#context),
    });
  }

  #tablesOf(condition: Bound): ReadonlySet<number> {
    return new Set([...columnsIn(condition)].map((index) => this.#tableOf(index)));
  }

  #findEqualities(): Equality[] {
    const pairs = this.#conditions.flatMap((condition) => {
      if (condition.kind !== 'compare' || condition.op !== '=') return [];
      const { left, right } = condition;
      const tables = [...this.#tablesOf(condition)];
      if (tables.length !== 2) return [];
      const columns = left.kind === 'column' && right.kind === 'column' ? [left.index, right.index] : [];
      return [{ tables: tables as [number, number], columns }];
    });
    // By column: the class of columns that equal it, under the number of one of them.
    const classes = new Map<number, { readonly column: number; rows: number }>();
    const classOf = (column: number): { readonly column: number; rows: number } =>
      classes.get(column) ?? { column, rows: this.#leaves[this.#tableOf(column)]!.base };
    for (const { columns } of pairs) {
      const [one, other] = columns.map(classOf);
      if (!one || !other || one === other) continue;
      one.rows = Math.min(one.rows, other.rows);
      for (const column of columns) classes.set(column, one);
      for (const [column, own] of classes) if (own === other) classes.set(column, one);
    }
    return pairs.map(({ tables, columns: [column] }, i) => ({
      tables,
      values:
        column === undefined
          ? { column: -1 - i, rows: Math.min(...tables.map((table) => this.#leaves[table]!.base)) }
          : classOf(column),
    }));
  }

  #tableOf(column: number): number {
    return this.#leaves.findLastIndex(({ first }) => first <= column);
  }

  #greedy(start: number): readonly number[] {
    const order = [start];
    let rows = this.#leaves[start]!.rows;
    while (order.length < this.#leaves.length) {
      let next = -1;
      let least = Number.POSITIVE_INFINITY;
      for (let leaf = 0; leaf < this.#leaves.length; leaf++) {
        if (order.includes(leaf)) continue;
        const joined = this.#joinedRows(rows, order, leaf);
        // Between two that add as many rows, the one that needs less memory is chosen.
        const weight = joined + this.#leaves[leaf]!.rows * 1e-6;
        if (weight < least) {
          least = weight;
          next = leaf;
        }
      }
      rows = this.#joinedRows(rows, order, next);
      order.push(next);
    }
    return order;
  }

  /**
   * Rows of what is there joined with one more table. Columns that equal each other have as many values as the smallest of their
   * tables has rows; several of them together tell at most the rows of either side apart.
   */
  #joinedRows(rows: number, there: readonly number[], leaf: number): number {
    const { rows: more, base } = this.#leaves[leaf]!;
    const met = new Set<number>();
    let values = 1;
    let most = 1;
    for (const { tables, values: own } of this.#equalities) {
      const other = tables[0] === leaf ? tables[1] : tables[0];
      if (!tables.includes(leaf) || !there.includes(other)) continue;
      most = Math.max(most, this.#leaves[other]!.base);
      // The same value once more, by way of another table, tells nothing new.
      if (met.has(own.column)) continue;
      met.add(own.column);
      values *= own.rows;
    }
    return Math.max(1, (rows * more) / Math.min(values, base, most));
  }

  /** Rows that come out of all joins, and rows that are held for them. */
  #cost(order: readonly number[]): number {
    let rows = this.#leaves[order[0]!]!.rows;
    let cost = 0;
    for (let i = 1; i < order.length; i++) {
      const leaf = this.#leaves[order[i]!]!;
      cost += Math.min(rows, leaf.rows);
      rows = this.#joinedRows(rows, order.slice(0, i), order[i]!);
      cost += rows;
    }
    return cost;
  }

  #build(order: readonly number[]): PlanNode {
    const rowNumbers = new Map<number, number>();
    const [start, ...others] = order;
    // Each table with its number behind its columns, at the place of the table in the order written.
    const numbers: number[] = [];
    const numbered = this.#leaves.map(({ node: leaf }): PlanNode => {
      return { kind: 'number', input: leaf, columns: [...leaf.columns, { name: '#row', type: 'integer' }] };
    });
    let node = numbered[start!]!;
    const open = new Set(this.#conditions);
    const addLeaf = (leaf: number, from: number): void => {
      const { first, node: own } = this.#leaves[leaf]!;
      own.columns.forEach((_, c) => rowNumbers.set(first + c, from + c));
      numbers[leaf] = from + own.columns.length;
    };
    addLeaf(start!, 0);
    const there = new Set([start!]);
    for (const leaf of others) {
      const right = numbered[leaf]!;
      addLeaf(leaf, node.columns.length);
      there.add(leaf);
      const due = [...open].filter((condition) => [...this.#tablesOf(condition)].every((table) => there.has(table)));
      for (const condition of due) open.delete(condition);
      const moved = due.map((condition) =>
        replaceColumns(condition, (column) => ({ ...column, index: rowNumbers.get(column.index)! })),
      );
      node = {
        kind: 'join',
        type: 'inner',
        left: node,
        right,
        leftKeys: [],
        rightKeys: [],
        residual: moved.length > 0 ? conjunction(moved) : null,
        build: 'right',
        columns: [...node.columns, ...right.columns],
      };
    }
    const keys = numbers.map((column): SortKey => ({ column, descending: false, collate: 'codepoint' }));
    const sorted: PlanNode = { kind: 'sort', input: node, keys, limit: null, counted: false, columns: node.columns };
    const { columns } = this.#root;
    const expressions = columns.map(({ name, type }, i): Bound => ({ kind: 'column', index: rowNumbers.get(i)!, name, type }));
    return { kind: 'project', input: sorted, expressions, columns: columns.map((column): PlanColumn => column) };
  }
}

function baseOf(node: PlanNode, context: PassContext): number {
  switch (node.kind) {
    case 'scan':
      return Math.max(1, rowsOf(node, context));
    case 'filter':
    case 'project':
      return baseOf(node.input, context);
    case 'join':
      return baseOf(node.left, context);
    default:
      return Math.max(1, rowsOf(node, context));
  }
}
