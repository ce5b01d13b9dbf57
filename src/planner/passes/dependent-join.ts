/**
 * Runs a query for many sets of outer cells at once: all distinct sets that the outer rows hold. The cells are joined in where
 * the query names them and passed up as further columns behind its own, so that operators on the way that group, cut or compare
 * rows do so for each set by itself.
 */
import { ServiceError } from '../../errors.ts';
import { type Bound, childrenOf, mapChildren } from '../expressions/bound-expression.ts';
import {
  type AggregateNode,
  expressionsOf,
  inputsOf,
  joinColumns,
  type JoinNode,
  type LimitNode,
  type OverNode,
  type PlanColumn,
  type PlanNode,
  type ProjectNode,
  type RowCount,
  type SpreadNode,
  type ValuesNode,
  withInput,
} from '../logical-plan.ts';

type Outer = Extract<Bound, { kind: 'outer' }>;

export interface Dependent {
  /** The query's columns, then its cells. */
  readonly node: PlanNode;
  /** The outer cells that the query reads. */
  readonly cells: readonly Outer[];
}

/** `ordered`: the rows of each set of cells come in the order that the query says. */
export function dependent(query: PlanNode, level: number, around: PlanNode, ordered: boolean): Dependent {
  const cells = cellsOf(query, level);
  for (const { name, type } of cells) {
    if (type === 'vector')
      throw new ServiceError('REL_TYPE_MISMATCH', `a subquery can't look at the vector ${JSON.stringify(name)} around it`);
  }
  const columns = cells.map(({ name, type }): PlanColumn => ({ name, type }));
  const distinct: PlanNode = {
    kind: 'distinct',
    input: {
      kind: 'project',
      input: around,
      expressions: cells.map(({ index, name, type }) => ({ kind: 'column', index, name, type })),
      columns,
    },
    columns,
  };
  return { node: new Pushing({ level, cells, distinct, ordered, working: null }).down(query), cells };
}

/** Equal cells, or NULL both. Written so that both parts are keys of a join. */
export function sameCells(a: Bound, b: Bound): Bound {
  const zero: Bound = { kind: 'constant', cell: zeroOf(a.type), type: a.type };
  const value = (of: Bound): Bound => ({ kind: 'coalesce', operands: [of, zero], type: a.type });
  const absent = (of: Bound): Bound => ({ kind: 'is-null', operand: of, type: 'boolean' });
  return {
    kind: 'and',
    operands: [
      { kind: 'compare', op: '=', left: value(a), right: value(b), type: 'boolean' },
      { kind: 'compare', op: '=', left: absent(a), right: absent(b), type: 'boolean' },
    ],
    type: 'boolean',
  };
}

function zeroOf(type: Bound['type']): bigint | number | boolean | string {
  switch (type) {
    case 'integer':
    case 'timestamp':
      return 0n;
    case 'number':
      return 0;
    case 'boolean':
      return false;
    default:
      return '';
  }
}

/** The outer cells that a query reads, each once: those of the node first, then those of its inputs from left to right. */
function cellsOf(node: PlanNode, level: number): readonly Outer[] {
  return outersOf(node).filter((outer) => outer.level === level);
}

export function names(node: PlanNode, level: number): boolean {
  return outersOf(node).some((outer) => outer.level === level);
}

/** Known nodes: without them, queries forty deep would be searched again from every one of their nodes. */
const known = new WeakMap<PlanNode, readonly Outer[]>();

/** Cells of all levels. */
function outersOf(node: PlanNode): readonly Outer[] {
  const before = known.get(node);
  if (before) return before;
  const outerCells = new Map<string, Outer>();
  const add = (outer: Outer): void => {
    const key = `${outer.level} ${outer.index}`;
    if (!outerCells.has(key)) outerCells.set(key, outer);
  };
  const meet = (bound: Bound): void => {
    if (bound.kind === 'outer') add(bound);
    childrenOf(bound).forEach(meet);
  };
  expressionsOf(node).forEach(meet);
  for (const input of inputsOf(node)) outersOf(input).forEach(add);
  const all = [...outerCells.values()];
  known.set(node, all);
  return all;
}

interface Pushed {
  readonly level: number;
  readonly cells: readonly Outer[];
  readonly distinct: PlanNode;
  readonly ordered: boolean;
  /** The recursive table whose rows have the cells beside them. */
  readonly working: string | null;
}

class Pushing {
  readonly #pushed: Pushed;
  readonly #level: number;
  readonly #cells: readonly Outer[];
  readonly #distinct: PlanNode;

  constructor(pushed: Pushed) {
    this.#pushed = pushed;
    this.#level = pushed.level;
    this.#cells = pushed.cells;
    this.#distinct = pushed.distinct;
  }

  /** The node's columns, then the cells. */
  down(node: PlanNode): PlanNode {
    if (!this.#asks(node)) return this.#crossDistinct(node);
    switch (node.kind) {
      case 'working':
        return { ...node, columns: [...node.columns, ...this.#distinct.columns] };
      case 'recursive': {
        const inside = new Pushing({ ...this.#pushed, working: node.table });
        const columns = [...node.columns, ...this.#distinct.columns];
        return { ...node, base: this.down(node.base), step: inside.down(node.step), columns };
      }
      case 'filter': {
        const input = this.down(node.input);
        return { kind: 'filter', input, predicate: this.#onCells(node.predicate, node.input), columns: input.columns };
      }
      case 'project':
        return this.#project(node);
      case 'sort': {
        const input = this.down(node.input);
        // The rows of each set of cells are counted above: here, all of them are wanted.
        return { ...node, input, limit: null, columns: input.columns };
      }
      case 'spread':
        return this.#spread(node);
      case 'distinct': {
        const input = this.down(node.input);
        return { ...withInput(node, input), columns: input.columns };
      }
      case 'aggregate':
        return this.#aggregate(node);
      case 'over':
        return this.#windowNode(node);
      case 'join':
        return this.#join(node);
      case 'set-operation': {
        const left = this.down(node.left);
        return { ...node, left, right: this.down(node.right), columns: left.columns };
      }
      case 'limit':
        return this.#someRows(node.input, node, node.offset ?? null, null);
      case 'skip':
        return node.input.kind === 'limit'
          ? this.#someRows(node.input.input, node.input, node.offset, node.offset)
          : this.#someRows(node.input, null, null, node.offset);
      case 'values':
        return this.#values(node);
      default:
        return this.#refuse(node.kind.toUpperCase());
    }
  }

  /** Whether it names cells, or reads rows that have them. */
  #asks(node: PlanNode): boolean {
    if (cellsOf(node, this.#level).length > 0) return true;
    const { working } = this.#pushed;
    return node.kind === 'working' ? node.table === working : working !== null && inputsOf(node).some((each) => this.#asks(each));
  }

  #refuse(clause: string): never {
    throw new ServiceError(
      'REL_NOT_IMPLEMENTED',
      `${clause} in a subquery that names columns of the query around it is not implemented`,
    );
  }

  /** Windows reach over the rows of one set of cells. */
  #windowNode(node: OverNode): PlanNode {
    const input = this.down(node.input);
    const width = node.input.columns.length;
    const cells = range(width, width + this.#cells.length);
    const results = node.columns.slice(width);
    const columns = [...input.columns, ...results];
    const over: PlanNode = { ...node, input, partition: [...node.partition, ...cells], columns };
    return reorderColumns(over, [...range(0, width), ...range(input.columns.length, columns.length), ...cells]);
  }

  /** So many rows of each set of cells, by their numbers within it, without the first ones: `last` is how far it goes behind those. */
  #someRows(rows: PlanNode, last: LimitNode | null, before: RowCount | null, skipped: RowCount | null): PlanNode {
    const sort = rows.kind === 'sort' ? rows : null;
    const input = this.down(sort ? sort.input : rows);
    const width = rows.columns.length;
    const count = input.columns.length;
    const over: PlanNode = {
      kind: 'over',
      input,
      partition: range(width, width + this.#cells.length),
      keys: sort ? sort.keys : [],
      calls: [
        {
          function: 'row_number',
          column: null,
          offset: null,
          otherwise: null,
          type: 'integer',
          frame: { unit: 'range', from: { kind: 'unbounded' }, to: { kind: 'current' } },
        },
      ],
      columns: [...input.columns, { name: '#number', type: 'integer' }],
    };
    const number: Bound = { kind: 'column', index: count, name: '#number', type: 'integer' };
    const literal = (count: RowCount): Bound =>
      'value' in count
        ? count.value
        : { kind: 'literal', slot: count.slot, as: 'value', type: 'integer', location: count.location };
    const compare = (op: '<=' | '>', left: Bound, right: RowCount): Bound[] => [
      { kind: 'compare', op, left, right: literal(right), type: 'boolean' },
    ];
    // Subtracted, not added: the sum of two large numbers is none.
    const behind: Bound = before
      ? { kind: 'arithmetic', op: '-', left: number, right: literal(before), type: 'integer' }
      : number;
    const operands = [...(last ? compare('<=', behind, last.limit) : []), ...(skipped ? compare('>', number, skipped) : [])];
    const predicate: Bound = operands.length === 1 ? operands[0]! : { kind: 'and', operands, type: 'boolean' };
    const filtered: PlanNode = { kind: 'filter', input: over, predicate, columns: over.columns };
    const ordered: PlanNode =
      sort && this.#pushed.ordered ? { ...sort, input: filtered, limit: null, columns: filtered.columns } : filtered;
    return reorderColumns(ordered, range(0, count));
  }

  /** Each row for every set of cells. */
  #values(node: ValuesNode): PlanNode {
    const cells = this.#cells.map(({ name, type }, index): Bound => ({ kind: 'column', index, name, type }));
    const columns = [...node.columns, ...this.#distinct.columns];
    const own = (bound: Bound): Bound => {
      if (bound.kind !== 'outer' || bound.level !== this.#level) return mapChildren(bound, own);
      return cells[this.#cells.findIndex(({ index }) => index === bound.index)]!;
    };
    const parts = node.rows.map(
      (row): PlanNode => ({ kind: 'project', input: this.#distinct, expressions: [...row.map(own), ...cells], columns }),
    );
    // Halves of halves: a chain of thousands would be too deep.
    const all = (from: number, to: number): PlanNode => {
      if (to - from === 1) return parts[from]!;
      const middle = (from + to) >>> 1;
      return { kind: 'set-operation', op: 'union all', left: all(from, middle), right: all(middle, to), columns };
    };
    return all(0, parts.length);
  }

  /** Every row beside every set of cells. */
  #crossDistinct(node: PlanNode): PlanNode {
    const join = this.#cross(this.#distinct, node);
    const width = this.#cells.length;
    return reorderColumns(join, [...range(width, join.columns.length), ...range(0, width)]);
  }

  #cross(left: PlanNode, right: PlanNode): JoinNode {
    const columns = [...left.columns, ...right.columns];
    return { kind: 'join', type: 'inner', left, right, leftKeys: [], rightKeys: [], residual: null, build: 'right', columns };
  }

  /** The cells stand behind the columns of the input. */
  #onCells(bound: Bound, input: PlanNode): Bound {
    if (bound.kind !== 'outer' || bound.level !== this.#level) return mapChildren(bound, (child) => this.#onCells(child, input));
    const cellIndex = this.#cells.findIndex(({ index }) => index === bound.index);
    return { kind: 'column', index: input.columns.length + cellIndex, name: bound.name, type: bound.type };
  }

  /** The cells stand before the arrays, and come up behind their elements. */
  #spread(node: SpreadNode): PlanNode {
    const input = this.down(node.input);
    const { width } = node;
    const all = node.input.columns.length;
    const count = this.#cells.length;
    const ordered = reorderColumns(input, [...range(0, width), ...range(all, all + count), ...range(width, all)]);
    const own = [...ordered.columns.slice(0, width + count), ...node.columns.slice(width)];
    const spread: PlanNode = { ...node, input: ordered, width: width + count, columns: own };
    return reorderColumns(spread, [...range(0, width), ...range(width + count, own.length), ...range(width, width + count)]);
  }

  #project(node: ProjectNode): PlanNode {
    const input = this.down(node.input);
    const width = node.input.columns.length;
    const cells = this.#cells.map(({ name, type }, i): Bound => ({ kind: 'column', index: width + i, name, type }));
    return {
      kind: 'project',
      input,
      expressions: [...node.expressions.map((each) => this.#onCells(each, node.input)), ...cells],
      columns: [...node.columns, ...this.#distinct.columns],
    };
  }

  #aggregate(node: AggregateNode): PlanNode {
    const input = this.down(node.input);
    const { groups } = node;
    const width = node.input.columns.length;
    const count = this.#cells.length;
    const ordered = reorderColumns(input, [...range(0, groups), ...range(width, width + count), ...range(groups, width)]);
    const behindCells = (column: number): number => (column < groups ? column : column + count);
    const aggregate: AggregateNode = {
      ...node,
      input: ordered,
      groups: groups + count,
      calls: node.calls.map((call) => ({
        ...call,
        column: call.column === null ? null : behindCells(call.column),
        ...(call.second === undefined ? {} : { second: behindCells(call.second) }),
        ...(call.when === undefined ? {} : { when: behindCells(call.when) }),
      })),
      columns: [...node.columns.slice(0, groups), ...this.#distinct.columns, ...node.columns.slice(groups)],
    };
    const results = node.columns.length;
    if (groups > 0) {
      return reorderColumns(aggregate, [
        ...range(0, groups),
        ...range(groups + count, results + count),
        ...range(groups, groups + count),
      ]);
    }
    // Without keys each set of cells has a row, even if there is nothing to aggregate.
    const conditions = this.#cells.map(({ name, type }, i) =>
      sameCells({ kind: 'column', index: i, name, type }, { kind: 'column', index: count + i, name, type }),
    );
    const join: JoinNode = {
      ...this.#cross(this.#distinct, aggregate),
      type: 'left',
      residual: {
        kind: 'and',
        operands: conditions.flatMap((each) => (each.kind === 'and' ? each.operands : [each])),
        type: 'boolean',
      },
    };
    const columns = node.columns.map(({ name, type }, i): Bound => {
      return ofNothing({ kind: 'column', index: 2 * count + i, name, type }, node, i);
    });
    const cells = this.#cells.map(({ name, type }, index): Bound => ({ kind: 'column', index, name, type }));
    return {
      kind: 'project',
      input: join,
      expressions: [...columns, ...cells],
      columns: [...node.columns, ...this.#distinct.columns],
    };
  }

  /** Where one side alone names cells, they come up by that side; where both do, rows of the same cells belong together. */
  #join(node: JoinNode): PlanNode {
    if (node.leftKeys.length > 0 || node.type === 'right' || node.type === 'full') this.#refuse('RIGHT or FULL JOIN');
    const count = this.#cells.length;
    const left = this.down(node.left);
    const leftWidth = node.left.columns.length;
    const rightWidth = node.right.columns.length;
    const besides = this.#asks(node.right);
    const right = besides ? this.down(node.right) : node.right;
    // left columns, cells, right columns, cells of the right
    const onBoth = (bound: Bound): Bound => {
      if (bound.kind === 'column') return bound.index < leftWidth ? bound : { ...bound, index: bound.index + count };
      if (bound.kind === 'outer' && bound.level === this.#level) {
        const cellIndex = this.#cells.findIndex(({ index }) => index === bound.index);
        return { kind: 'column', index: leftWidth + cellIndex, name: bound.name, type: bound.type };
      }
      return mapChildren(bound, onBoth);
    };
    const same = besides
      ? this.#cells.flatMap(({ name, type }, i) => {
          const each = sameCells(
            { kind: 'column', index: leftWidth + i, name, type },
            { kind: 'column', index: leftWidth + count + rightWidth + i, name, type },
          );
          return each.kind === 'and' ? each.operands : [each];
        })
      : [];
    const conditions = [...(node.residual ? [onBoth(node.residual)] : []), ...same];
    const join: JoinNode = {
      ...node,
      left,
      right,
      residual:
        conditions.length === 0
          ? null
          : conditions.length === 1
            ? conditions[0]!
            : { kind: 'and', operands: conditions, type: 'boolean' },
      columns: joinColumns(node.type, left, right),
    };
    const cells = range(leftWidth, leftWidth + count);
    const behind =
      node.type === 'mark'
        ? [leftWidth + count]
        : join.columns.length > left.columns.length
          ? range(leftWidth + count, leftWidth + count + rightWidth)
          : [];
    return reorderColumns(join, [...range(0, leftWidth), ...behind, ...cells]);
  }
}

/**
 * The result of an aggregate over no rows, where an outer join made its row: 0 for a count, an empty list for a list, else NULL.
 */
export function ofNothing(bound: Bound, { calls }: AggregateNode, call: number): Bound {
  const { function: name } = calls[call]!;
  if (name !== 'count' && name !== 'collect') return bound;
  const cell = name === 'count' ? 0n : '[]';
  return { kind: 'coalesce', operands: [bound, { kind: 'constant', cell, type: bound.type }], type: bound.type };
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}

function reorderColumns(input: PlanNode, order: readonly number[]): PlanNode {
  const columns = order.map((index) => input.columns[index]!);
  const expressions = order.map((index, i): Bound => ({ kind: 'column', index, name: columns[i]!.name, type: columns[i]!.type }));
  return { kind: 'project', input, expressions, columns };
}
