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

type OuterColumn = Extract<Bound, { kind: 'outer' }>;

export interface Dependent {
  /** The query's columns, then its cells. */
  readonly node: PlanNode;
  /** The outer cells that the query reads. */
  readonly cells: readonly OuterColumn[];
}

/** `ordered`: the rows of each set of cells come in the order that the query says. */
export function dependent(query: PlanNode, level: number, around: PlanNode, ordered: boolean): Dependent {
  const outerCells = outerCellsOf(query, level);
  for (const { name, type } of outerCells) {
    if (type === 'vector')
      throw new ServiceError('REL_TYPE_MISMATCH', `a subquery can't look at the vector ${JSON.stringify(name)} around it`);
  }
  const cellColumns = outerCells.map(({ name, type }): PlanColumn => ({ name, type }));
  const distinctOuter: PlanNode = {
    kind: 'distinct',
    input: {
      kind: 'project',
      input: around,
      expressions: outerCells.map(({ index, name, type }) => ({ kind: 'column', index, name, type })),
      columns: cellColumns,
    },
    columns: cellColumns,
  };
  return {
    node: new CellPushing({ level, cells: outerCells, distinct: distinctOuter, ordered, working: null }).down(query),
    cells: outerCells,
  };
}

/** Equal cells, or NULL both. Written so that both parts are keys of a join. */
export function sameCells(a: Bound, b: Bound): Bound {
  const zeroCell: Bound = { kind: 'constant', cell: zeroCellOf(a.type), type: a.type };
  const cellOrZero = (comparedCell: Bound): Bound => ({ kind: 'coalesce', operands: [comparedCell, zeroCell], type: a.type });
  const isAbsentCell = (comparedCell: Bound): Bound => ({ kind: 'is-null', operand: comparedCell, type: 'boolean' });
  return {
    kind: 'and',
    operands: [
      { kind: 'compare', op: '=', left: cellOrZero(a), right: cellOrZero(b), type: 'boolean' },
      { kind: 'compare', op: '=', left: isAbsentCell(a), right: isAbsentCell(b), type: 'boolean' },
    ],
    type: 'boolean',
  };
}

function zeroCellOf(type: Bound['type']): bigint | number | boolean | string {
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
function outerCellsOf(node: PlanNode, level: number): readonly OuterColumn[] {
  return outerColumnsOf(node).filter((outer) => outer.level === level);
}

export function names(node: PlanNode, level: number): boolean {
  return outerColumnsOf(node).some((outer) => outer.level === level);
}

/** Known nodes: without them, queries forty deep would be searched again from every one of their nodes. */
const outersByNode = new WeakMap<PlanNode, readonly OuterColumn[]>();

/** Cells of all levels. */
function outerColumnsOf(node: PlanNode): readonly OuterColumn[] {
  const knownOuters = outersByNode.get(node);
  if (knownOuters) return knownOuters;
  const outerCells = new Map<string, OuterColumn>();
  const addOuter = (outer: OuterColumn): void => {
    const key = `${outer.level} ${outer.index}`;
    if (!outerCells.has(key)) outerCells.set(key, outer);
  };
  const collectOuters = (bound: Bound): void => {
    if (bound.kind === 'outer') addOuter(bound);
    childrenOf(bound).forEach(collectOuters);
  };
  expressionsOf(node).forEach(collectOuters);
  for (const input of inputsOf(node)) outerColumnsOf(input).forEach(addOuter);
  const allOuters = [...outerCells.values()];
  outersByNode.set(node, allOuters);
  return allOuters;
}

interface PushedCells {
  readonly level: number;
  readonly cells: readonly OuterColumn[];
  readonly distinct: PlanNode;
  readonly ordered: boolean;
  /** The recursive table whose rows have the cells beside them. */
  readonly working: string | null;
}

class CellPushing {
  readonly #pushedCells: PushedCells;
  readonly #outerLevel: number;
  readonly #outerCells: readonly OuterColumn[];
  readonly #distinctOuter: PlanNode;

  constructor(pushed: PushedCells) {
    this.#pushedCells = pushed;
    this.#outerLevel = pushed.level;
    this.#outerCells = pushed.cells;
    this.#distinctOuter = pushed.distinct;
  }

  /** The node's columns, then the cells. */
  down(node: PlanNode): PlanNode {
    if (!this.#needsCells(node)) return this.#crossDistinct(node);
    switch (node.kind) {
      case 'working':
        return { ...node, columns: [...node.columns, ...this.#distinctOuter.columns] };
      case 'recursive': {
        const recursivePushing = new CellPushing({ ...this.#pushedCells, working: node.table });
        const columns = [...node.columns, ...this.#distinctOuter.columns];
        return { ...node, base: this.down(node.base), step: recursivePushing.down(node.step), columns };
      }
      case 'filter': {
        const input = this.down(node.input);
        return { kind: 'filter', input, predicate: this.#boundOnCells(node.predicate, node.input), columns: input.columns };
      }
      case 'project':
        return this.#pushBelowProject(node);
      case 'sort': {
        const input = this.down(node.input);
        // The rows of each set of cells are counted above: here, all of them are wanted.
        return { ...node, input, limit: null, columns: input.columns };
      }
      case 'spread':
        return this.#pushBelowSpread(node);
      case 'distinct': {
        const input = this.down(node.input);
        return { ...withInput(node, input), columns: input.columns };
      }
      case 'aggregate':
        return this.#pushBelowAggregate(node);
      case 'over':
        return this.#pushBelowOver(node);
      case 'join':
        return this.#pushBelowJoin(node);
      case 'set-operation': {
        const left = this.down(node.left);
        return { ...node, left, right: this.down(node.right), columns: left.columns };
      }
      case 'limit':
        return this.#pushBelowLimit(node.input, node, node.offset ?? null, null);
      case 'skip':
        return node.input.kind === 'limit'
          ? this.#pushBelowLimit(node.input.input, node.input, node.offset, node.offset)
          : this.#pushBelowLimit(node.input, null, null, node.offset);
      case 'values':
        return this.#pushBelowValues(node);
      default:
        return this.#refuseDependent(node.kind.toUpperCase());
    }
  }

  /** Whether it names cells, or reads rows that have them. */
  #needsCells(node: PlanNode): boolean {
    if (outerCellsOf(node, this.#outerLevel).length > 0) return true;
    const { working } = this.#pushedCells;
    return node.kind === 'working'
      ? node.table === working
      : working !== null && inputsOf(node).some((each) => this.#needsCells(each));
  }

  #refuseDependent(clause: string): never {
    throw new ServiceError(
      'REL_NOT_IMPLEMENTED',
      `${clause} in a subquery that names columns of the query around it is not implemented`,
    );
  }

  /** Windows reach over the rows of one set of cells. */
  #pushBelowOver(node: OverNode): PlanNode {
    const pushedInput = this.down(node.input);
    const width = node.input.columns.length;
    const cellPartition = indexRange(width, width + this.#outerCells.length);
    const overResults = node.columns.slice(width);
    const columns = [...pushedInput.columns, ...overResults];
    const cellwiseOver: PlanNode = { ...node, input: pushedInput, partition: [...node.partition, ...cellPartition], columns };
    return reorderColumns(cellwiseOver, [
      ...indexRange(0, width),
      ...indexRange(pushedInput.columns.length, columns.length),
      ...cellPartition,
    ]);
  }

  /** So many rows of each set of cells, by their numbers within it, without the first ones: `lastLimit` is how far it goes behind those. */
  #pushBelowLimit(
    rows: PlanNode,
    lastLimit: LimitNode | null,
    rowsBefore: RowCount | null,
    rowsSkipped: RowCount | null,
  ): PlanNode {
    const sortBelow = rows.kind === 'sort' ? rows : null;
    const pushedInput = this.down(sortBelow ? sortBelow.input : rows);
    const width = rows.columns.length;
    const pushedWidth = pushedInput.columns.length;
    const numberedRows: PlanNode = {
      kind: 'over',
      input: pushedInput,
      partition: indexRange(width, width + this.#outerCells.length),
      keys: sortBelow ? sortBelow.keys : [],
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
      columns: [...pushedInput.columns, { name: '#number', type: 'integer' }],
    };
    const rowNumber: Bound = { kind: 'column', index: pushedWidth, name: '#number', type: 'integer' };
    const countLiteral = (count: RowCount): Bound =>
      'value' in count
        ? count.value
        : { kind: 'literal', slot: count.slot, as: 'value', type: 'integer', location: count.location };
    const compareNumber = (op: '<=' | '>', left: Bound, right: RowCount): Bound[] => [
      { kind: 'compare', op, left, right: countLiteral(right), type: 'boolean' },
    ];
    // Subtracted, not added: the sum of two large numbers is none.
    const numberBehind: Bound = rowsBefore
      ? { kind: 'arithmetic', op: '-', left: rowNumber, right: countLiteral(rowsBefore), type: 'integer' }
      : rowNumber;
    const limitConditions = [
      ...(lastLimit ? compareNumber('<=', numberBehind, lastLimit.limit) : []),
      ...(rowsSkipped ? compareNumber('>', rowNumber, rowsSkipped) : []),
    ];
    const predicate: Bound =
      limitConditions.length === 1 ? limitConditions[0]! : { kind: 'and', operands: limitConditions, type: 'boolean' };
    const filtered: PlanNode = { kind: 'filter', input: numberedRows, predicate, columns: numberedRows.columns };
    const orderedRows: PlanNode =
      sortBelow && this.#pushedCells.ordered
        ? { ...sortBelow, input: filtered, limit: null, columns: filtered.columns }
        : filtered;
    return reorderColumns(orderedRows, indexRange(0, pushedWidth));
  }

  /** Each row for every set of cells. */
  #pushBelowValues(node: ValuesNode): PlanNode {
    const cellColumns = this.#outerCells.map(({ name, type }, index): Bound => ({ kind: 'column', index, name, type }));
    const columns = [...node.columns, ...this.#distinctOuter.columns];
    const boundOnDistinct = (bound: Bound): Bound => {
      if (bound.kind !== 'outer' || bound.level !== this.#outerLevel) return mapChildren(bound, boundOnDistinct);
      return cellColumns[this.#outerCells.findIndex(({ index }) => index === bound.index)]!;
    };
    const rowProjects = node.rows.map(
      (row): PlanNode => ({
        kind: 'project',
        input: this.#distinctOuter,
        expressions: [...row.map(boundOnDistinct), ...cellColumns],
        columns,
      }),
    );
    // Halves of halves: a chain of thousands would be too deep.
    const unionOf = (firstRow: number, endRow: number): PlanNode => {
      if (endRow - firstRow === 1) return rowProjects[firstRow]!;
      const middleRow = (firstRow + endRow) >>> 1;
      return {
        kind: 'set-operation',
        op: 'union all',
        left: unionOf(firstRow, middleRow),
        right: unionOf(middleRow, endRow),
        columns,
      };
    };
    return unionOf(0, rowProjects.length);
  }

  /** Every row beside every set of cells. */
  #crossDistinct(node: PlanNode): PlanNode {
    const crossJoin = this.#crossJoin(this.#distinctOuter, node);
    const cellCount = this.#outerCells.length;
    return reorderColumns(crossJoin, [...indexRange(cellCount, crossJoin.columns.length), ...indexRange(0, cellCount)]);
  }

  #crossJoin(left: PlanNode, right: PlanNode): JoinNode {
    const columns = [...left.columns, ...right.columns];
    return { kind: 'join', type: 'inner', left, right, leftKeys: [], rightKeys: [], residual: null, build: 'right', columns };
  }

  /** The cells stand behind the columns of the input. */
  #boundOnCells(bound: Bound, input: PlanNode): Bound {
    if (bound.kind !== 'outer' || bound.level !== this.#outerLevel)
      return mapChildren(bound, (child) => this.#boundOnCells(child, input));
    const cellIndex = this.#outerCells.findIndex(({ index }) => index === bound.index);
    return { kind: 'column', index: input.columns.length + cellIndex, name: bound.name, type: bound.type };
  }

  /** The cells stand before the arrays, and come up behind their elements. */
  #pushBelowSpread(node: SpreadNode): PlanNode {
    const input = this.down(node.input);
    const { width } = node;
    const inputWidth = node.input.columns.length;
    const cellCount = this.#outerCells.length;
    const cellsFirst = reorderColumns(input, [
      ...indexRange(0, width),
      ...indexRange(inputWidth, inputWidth + cellCount),
      ...indexRange(width, inputWidth),
    ]);
    const spreadColumns = [...cellsFirst.columns.slice(0, width + cellCount), ...node.columns.slice(width)];
    const cellwiseSpread: PlanNode = { ...node, input: cellsFirst, width: width + cellCount, columns: spreadColumns };
    return reorderColumns(cellwiseSpread, [
      ...indexRange(0, width),
      ...indexRange(width + cellCount, spreadColumns.length),
      ...indexRange(width, width + cellCount),
    ]);
  }

  #pushBelowProject(node: ProjectNode): PlanNode {
    const pushedInput = this.down(node.input);
    const width = node.input.columns.length;
    const cellColumns = this.#outerCells.map(({ name, type }, i): Bound => ({ kind: 'column', index: width + i, name, type }));
    return {
      kind: 'project',
      input: pushedInput,
      expressions: [...node.expressions.map((each) => this.#boundOnCells(each, node.input)), ...cellColumns],
      columns: [...node.columns, ...this.#distinctOuter.columns],
    };
  }

  #pushBelowAggregate(node: AggregateNode): PlanNode {
    const input = this.down(node.input);
    const { groups } = node;
    const width = node.input.columns.length;
    const cellCount = this.#outerCells.length;
    const cellsBehindGroups = reorderColumns(input, [
      ...indexRange(0, groups),
      ...indexRange(width, width + cellCount),
      ...indexRange(groups, width),
    ]);
    const behindCells = (column: number): number => (column < groups ? column : column + cellCount);
    const cellwiseAggregate: AggregateNode = {
      ...node,
      input: cellsBehindGroups,
      groups: groups + cellCount,
      calls: node.calls.map((call) => ({
        ...call,
        column: call.column === null ? null : behindCells(call.column),
        ...(call.second === undefined ? {} : { second: behindCells(call.second) }),
        ...(call.when === undefined ? {} : { when: behindCells(call.when) }),
      })),
      columns: [...node.columns.slice(0, groups), ...this.#distinctOuter.columns, ...node.columns.slice(groups)],
    };
    const resultCount = node.columns.length;
    if (groups > 0) {
      return reorderColumns(cellwiseAggregate, [
        ...indexRange(0, groups),
        ...indexRange(groups + cellCount, resultCount + cellCount),
        ...indexRange(groups, groups + cellCount),
      ]);
    }
    // Without keys each set of cells has a row, even if there is nothing to aggregate.
    const cellConditions = this.#outerCells.map(({ name, type }, i) =>
      sameCells({ kind: 'column', index: i, name, type }, { kind: 'column', index: cellCount + i, name, type }),
    );
    const cellJoin: JoinNode = {
      ...this.#crossJoin(this.#distinctOuter, cellwiseAggregate),
      type: 'left',
      residual: {
        kind: 'and',
        operands: cellConditions.flatMap((each) => (each.kind === 'and' ? each.operands : [each])),
        type: 'boolean',
      },
    };
    const aggregateResults = node.columns.map(({ name, type }, i): Bound => {
      return ofNothing({ kind: 'column', index: 2 * cellCount + i, name, type }, node, i);
    });
    const cellColumns = this.#outerCells.map(({ name, type }, index): Bound => ({ kind: 'column', index, name, type }));
    return {
      kind: 'project',
      input: cellJoin,
      expressions: [...aggregateResults, ...cellColumns],
      columns: [...node.columns, ...this.#distinctOuter.columns],
    };
  }

  /** Where one side alone names cells, they come up by that side; where both do, rows of the same cells belong together. */
  #pushBelowJoin(node: JoinNode): PlanNode {
    if (node.leftKeys.length > 0 || node.type === 'right' || node.type === 'full') this.#refuseDependent('RIGHT or FULL JOIN');
    const cellCount = this.#outerCells.length;
    const left = this.down(node.left);
    const leftWidth = node.left.columns.length;
    const rightWidth = node.right.columns.length;
    const isRightDependent = this.#needsCells(node.right);
    const right = isRightDependent ? this.down(node.right) : node.right;
    // left columns, cells, right columns, cells of the right
    const boundOnJoin = (bound: Bound): Bound => {
      if (bound.kind === 'column') return bound.index < leftWidth ? bound : { ...bound, index: bound.index + cellCount };
      if (bound.kind === 'outer' && bound.level === this.#outerLevel) {
        const cellIndex = this.#outerCells.findIndex(({ index }) => index === bound.index);
        return { kind: 'column', index: leftWidth + cellIndex, name: bound.name, type: bound.type };
      }
      return mapChildren(bound, boundOnJoin);
    };
    const sameCellConditions = isRightDependent
      ? this.#outerCells.flatMap(({ name, type }, i) => {
          const each = sameCells(
            { kind: 'column', index: leftWidth + i, name, type },
            { kind: 'column', index: leftWidth + cellCount + rightWidth + i, name, type },
          );
          return each.kind === 'and' ? each.operands : [each];
        })
      : [];
    const joinConditions = [...(node.residual ? [boundOnJoin(node.residual)] : []), ...sameCellConditions];
    const pushedJoin: JoinNode = {
      ...node,
      left,
      right,
      residual:
        joinConditions.length === 0
          ? null
          : joinConditions.length === 1
            ? joinConditions[0]!
            : { kind: 'and', operands: joinConditions, type: 'boolean' },
      columns: joinColumns(node.type, left, right),
    };
    const leftCells = indexRange(leftWidth, leftWidth + cellCount);
    const rightColumns =
      node.type === 'mark'
        ? [leftWidth + cellCount]
        : pushedJoin.columns.length > left.columns.length
          ? indexRange(leftWidth + cellCount, leftWidth + cellCount + rightWidth)
          : [];
    return reorderColumns(pushedJoin, [...indexRange(0, leftWidth), ...rightColumns, ...leftCells]);
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

function indexRange(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}

function reorderColumns(input: PlanNode, order: readonly number[]): PlanNode {
  const columns = order.map((index) => input.columns[index]!);
  const expressions = order.map((index, i): Bound => ({ kind: 'column', index, name: columns[i]!.name, type: columns[i]!.type }));
  return { kind: 'project', input, expressions, columns };
}
