/**
 * The order in which inner joins are made: the one that promises the fewest rows on the way, among those that begin with any
 * table and go on with the one that is bound to what is there and adds least. Rows come out as of the order written: where
 * another one ran, they are sorted back by the `system_from` of each table, which is the order of its rows.
 *
 * Only tables as they are stored, with their conditions, take part: of what a query yields no column says its order.
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
  /** Column of its `system_from`. */
  readonly order: number;
  /** Rows that it promises, and rows of its table. */
  readonly rows: number;
  readonly base: number;
}

export function reorderJoins(plan: LogicalPlan, context: PassContext): LogicalPlan {
  const ordered = (node: PlanNode): PlanNode => {
    if (!isInner(node)) return mapInputs(node, ordered);
    const cluster = new Cluster(node, context, ordered);
    return cluster.better() ?? mapInputs(node, ordered);
  };
  return mapRoots(plan, ordered);
}

function isInner(node: PlanNode): node is JoinNode {
  return node.kind === 'join' && node.type === 'inner' && node.leftKeys.length === 0;
}

class Cluster {
  readonly #root: JoinNode;
  readonly #context: PassContext;
  readonly #leaves: Leaf[] = [];
  readonly #conditions: Bound[] = [];
  #sound = true;

  constructor(root: JoinNode, context: PassContext, below: (node: PlanNode) => PlanNode) {
    this.#root = root;
    this.#context = context;
    this.#collect(root, 0, below);
  }

  /** null where the order written stays. */
  better(): PlanNode | null {
    const count = this.#leaves.length;
    if (!this.#sound || count < 3 || this.#conditions.some(mayRaise)) return null;
    const written = this.#leaves.map((_, i) => i);
    let best: { readonly order: readonly number[]; readonly cost: number } | null = null;
    for (let start = 0; start < count; start++) {
      const order = this.#greedy(start);
      const cost = this.#cost(order);
      if (best === null || cost < best.cost) best = { order, cost };
    }
    if (best === null || best.cost * timesBetter >= this.#cost(written)) return null;
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
    const own = mapInputs(node, below);
    const order = orderOf(own);
    if (order < 0) this.#sound = false;
    this.#leaves.push({
      node: own,
      first,
      order,
      rows: Math.max(1, rowsOf(own, this.#context)),
      base: baseOf(own, this.#context),
    });
  }

  #tablesOf(condition: Bound): ReadonlySet<number> {
    return new Set([...columnsIn(condition)].map((index) => this.#leaves.findLastIndex(({ first }) => first <= index)));
  }

  #greedy(start: number): readonly number[] {
    const order = [start];
    let rows = this.#leaves[start]!.rows;
    while (order.length < this.#leaves.length) {
      let next = -1;
      let least = Number.POSITIVE_INFINITY;
      for (let leaf = 0; leaf < this.#leaves.length; leaf++) {
        if (order.includes(leaf)) continue;
        const joined = this.#joined(rows, order, leaf);
        // Of two that add as much, the one that is held in less memory.
        const weight = joined + this.#leaves[leaf]!.rows * 1e-6;
        if (weight < least) {
          least = weight;
          next = leaf;
        }
      }
      rows = this.#joined(rows, order, next);
      order.push(next);
    }
    return order;
  }

  /** Rows of what is there joined with one more table: each equality finds one of so many different values. */
  #joined(rows: number, there: readonly number[], leaf: number): number {
    const { rows: more, base } = this.#leaves[leaf]!;
    let values = 1;
    for (const condition of this.#conditions) {
      if (condition.kind !== 'compare' || condition.op !== '=') continue;
      const tables = this.#tablesOf(condition);
      if (tables.size !== 2 || !tables.has(leaf)) continue;
      const other = [...tables].find((table) => table !== leaf)!;
      if (there.includes(other)) values = Math.max(values, Math.min(base, this.#leaves[other]!.base));
    }
    return Math.max(1, (rows * more) / values);
  }

  /** Rows that come out of all joins, and rows that are held for them. */
  #cost(order: readonly number[]): number {
    let rows = this.#leaves[order[0]!]!.rows;
    let cost = 0;
    for (let i = 1; i < order.length; i++) {
      const leaf = this.#leaves[order[i]!]!;
      cost += Math.min(rows, leaf.rows);
      rows = this.#joined(rows, order.slice(0, i), order[i]!);
      cost += rows;
    }
    return cost;
  }

  #build(order: readonly number[]): PlanNode {
    const places = new Map<number, number>();
    const [start, ...others] = order;
    let node = this.#leaves[start!]!.node;
    const open = new Set(this.#conditions);
    const place = (leaf: number, from: number): void => {
      const { first, node: own } = this.#leaves[leaf]!;
      own.columns.forEach((_, c) => places.set(first + c, from + c));
    };
    place(start!, 0);
    const there = new Set([start!]);
    for (const leaf of others) {
      const right = this.#leaves[leaf]!.node;
      place(leaf, node.columns.length);
      there.add(leaf);
      const due = [...open].filter((condition) => [...this.#tablesOf(condition)].every((table) => there.has(table)));
      for (const condition of due) open.delete(condition);
      const moved = due.map((condition) =>
        replaceColumns(condition, (column) => ({ ...column, index: places.get(column.index)! })),
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
    const keys = this.#leaves.map(
      ({ first, order: column }): SortKey => ({
        column: places.get(first + column)!,
        descending: false,
        collate: 'codepoint',
      }),
    );
    const sorted: PlanNode = { kind: 'sort', input: node, keys, limit: null, counted: false, columns: node.columns };
    const { columns } = this.#root;
    const expressions = columns.map(({ name, type }, i): Bound => ({ kind: 'column', index: places.get(i)!, name, type }));
    return { kind: 'project', input: sorted, expressions, columns: columns.map((column): PlanColumn => column) };
  }
}

/** Column that says in which order rows come: -1 where none does. */
function orderOf(node: PlanNode): number {
  switch (node.kind) {
    case 'scan':
      return node.masked.has('system_from') ? -1 : node.columns.findIndex(({ name }) => name === 'system_from');
    case 'filter':
      return orderOf(node.input);
    case 'join':
      // Rows of the left side in their order, each at most once.
      return node.type === 'semi' || node.type === 'anti' || node.type === 'mark' || node.type === 'single'
        ? orderOf(node.left)
        : -1;
    case 'project': {
      const below = orderOf(node.input);
      return below < 0 ? -1 : node.expressions.findIndex((each) => each.kind === 'column' && each.index === below);
    }
    default:
      return -1;
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
