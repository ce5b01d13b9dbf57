/**
 * Queries in expressions. One that names nothing outside of itself runs once, before the plan: a set, a cell, or whether it
 * has rows. Any other becomes a column of the rows that the expression is over, by an apply node that `decorrelate.ts`
 * turns into a join.
 *
 * Comparisons with a query's rows are three-valued: true where one holds, else NULL where one is NULL, else false. Each of
 * the two questions is a mark of its own.
 */
import { type Bound, childrenOf, mapChildren } from '../expressions/bound-expression.ts';
import { jsonText } from '../expressions/bind-call.ts';
import { matchOperands } from '../expressions/bind-expression.ts';
import { expressionsOf, inputsOf, type PlanColumn, type PlanNode } from '../logical-plan.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { Expression, Location, Query, Subselect } from '../syntax/statement.ts';
import type { BoundQuery, Environment } from './environment.ts';
import { project, throughColumns } from './output-columns.ts';

export type InQuery = Extract<Expression, { kind: 'in-query' }>;
type CompareOp = '=' | '!=' | '<' | '<=' | '>' | '>=';

/** Rows that expressions are bound over; they grow by columns as subselects are met. */
export interface Level {
  readonly id: number;
  node: PlanNode;
  /** Calls that yield several rows may stand in expressions that are bound now. */
  spreads?: boolean;
  /** The node that they have made, as long as nothing stands above it. */
  spread?: PlanNode;
  /** Called for each added column that is masked, or computed from a masked one. */
  readonly noteMasked: (index: number, column: BoundQuery['columns'][number]) => void;
}

const lookingAround = 'a subquery that looks at rows around it is not implemented here: put it into WHERE or into ON';

export interface SubselectsRequest {
  readonly environment: Environment;
  /** Null where no column can be added to the rows of the expressions. */
  readonly level: Level | null;
  readonly bindQuery: (query: Query) => BoundQuery;
}

export class Subselects {
  readonly #request: SubselectsRequest;
  readonly #known = new Map<Expression, Bound>();

  constructor(request: SubselectsRequest) {
    this.#request = request;
  }

  bind(expression: Subselect | InQuery, bind: (operand: Expression) => Bound): Bound {
    const known = this.#known.get(expression);
    if (known) return known;
    const bound = this.#bind(expression, bind);
    this.#known.set(expression, bound);
    return bound;
  }

  #bind(expression: Subselect | InQuery, bind: (operand: Expression) => Bound): Bound {
    switch (expression.kind) {
      case 'exists':
        return this.#exists(expression.query);
      case 'scalar-query':
        return this.#scalar(expression.query);
      case 'in-query': {
        const member = this.#compareAny(expression, '=', bind);
        return expression.negated ? { kind: 'not', operand: member, type: 'boolean' } : member;
      }
      case 'quantified': {
        const { op, all } = expression;
        const any = this.#compareAny(expression, all ? negatedOp[op] : op, bind);
        return all ? { kind: 'not', operand: any, type: 'boolean' } : any;
      }
    }
  }

  #exists(query: Query): Bound {
    const { bindQuery, environment } = this.#request;
    const bound = bindQuery(query);
    // Its columns say nothing.
    const node = project(bound.node, []);
    if (!namesOuter(node)) {
      return { kind: 'subquery', index: environment.addSubquery({ root: node, type: 'boolean', as: 'exists' }), type: 'boolean' };
    }
    return this.#mark(node, null, query.location);
  }

  #scalar(query: Query): Bound {
    const { bindQuery, environment } = this.#request;
    const bound = bindQuery(query);
    const [only] = columnsOf(bound, 1, query.location);
    const node = firstColumns(bound, 1);
    if (!namesOuter(node)) {
      const index = environment.addSubquery({ root: node, type: node.columns[0]!.type, as: 'scalar' });
      // A vector stands as its text, which is what distances take beside one.
      const wire = only!.wire === undefined ? {} : { wire: only!.wire };
      return { kind: 'subquery', index, type: only!.type === 'vector' ? 'string' : only!.type, ...wire };
    }
    if (only!.type === 'vector')
      throw errorAt('REL_TYPE_MISMATCH', "a subquery that looks at rows around it can't yield a vector", query.location);
    const level = this.#level(query.location);
    const column: PlanColumn = { name: node.columns[0]!.name, type: node.columns[0]!.type };
    const index = level.node.columns.length;
    level.node = {
      kind: 'apply',
      type: 'single',
      input: level.node,
      query: node,
      level: level.id,
      condition: null,
      columns: [...level.node.columns, column],
    };
    if (only!.masked !== undefined) level.noteMasked(index, only!);
    return { kind: 'column', index, ...column, ...(only!.wire !== undefined && { wire: only!.wire }) };
  }

  /** Whether `operand op` holds for any row of the query. */
  #compareAny(
    { operand, query, location }: { readonly operand: Expression; readonly query: Query; readonly location: Location },
    op: CompareOp,
    bind: (operand: Expression) => Bound,
  ): Bound {
    const { bindQuery, environment } = this.#request;
    const operands = (operand.kind === 'row' ? operand.items : [operand]).map(bind);
    const bound = bindQuery(query);
    const columns = columnsOf(bound, operands.length, query.location);
    for (const { type } of columns) {
      if (type === 'vector' || type === 'interval')
        throw errorAt('REL_TYPE_MISMATCH', `IN can't compare ${type}`, query.location);
    }
    const node = firstColumns(bound, operands.length);
    if (op === '=' && operands.length === 1 && !namesOuter(node)) {
      const values: Bound = { kind: 'parameter', index: -1, type: columns[0]!.type };
      const [each, other] = matchOperands(operands[0]!, values, '=', location);
      const root = other.type === 'string' && values.type === 'json' ? asText(node) : node;
      const set = environment.addSubquery({ root, type: root.columns[0]!.type, as: 'set' });
      return { kind: 'in-set', operand: each, set, type: 'boolean' };
    }
    const width = this.#level(location).node.columns.length;
    const compareColumn = (i: number, operator: CompareOp): Bound => {
      // A column of bare NULLs has no other type.
      const type = columns[i]!.type;
      const column = { kind: 'column', index: width + i, name: columns[i]!.name, type: node.columns[i]!.type } as const;
      const other: Bound = type === 'null' ? { kind: 'constant', cell: null, type: 'null' } : column;
      const [left, right] = matchOperands(operands[i]!, other, operator, location);
      return { kind: 'compare', op: operator, left, right, type: 'boolean' };
    };
    const condition = comparedRows(operands.length, op, compareColumn);
    const holds = this.#mark(node, condition, location);
    // The condition's references to the query's rows shift by the added column.
    const moved = movedBeyond(condition, width);
    const open = this.#mark(node, { kind: 'is-null', operand: moved, type: 'boolean' }, location);
    const unknown: Bound = { kind: 'constant', cell: null, type: 'null' };
    const undecided: Bound = { kind: 'and', operands: [open, unknown], type: 'boolean' };
    return { kind: 'or', operands: [holds, undecided], type: 'boolean' };
  }

  #mark(query: PlanNode, condition: Bound | null, location: Location): Bound {
    const level = this.#level(location);
    const index = level.node.columns.length;
    const columns: PlanColumn[] = [...level.node.columns, { name: '#mark', type: 'boolean' }];
    level.node = { kind: 'apply', type: 'mark', input: level.node, query, level: level.id, condition, columns };
    return { kind: 'column', index, name: '#mark', type: 'boolean' };
  }

  #level(location: Location): Level {
    if (this.#request.level) return this.#request.level;
    throw errorAt('REL_NOT_IMPLEMENTED', lookingAround, location);
  }
}

const negatedOp: Readonly<Record<CompareOp, CompareOp>> = { '=': '!=', '!=': '=', '<': '>=', '<=': '>', '>': '<=', '>=': '<' };

/** `=` and `!=` of rows compare item by item; an order follows the first items that differ. */
function comparedRows(width: number, op: CompareOp, compare: (item: number, operator: CompareOp) => Bound): Bound {
  const last = compare(width - 1, op);
  if (width === 1) return last;
  if (op === '=' || op === '!=') {
    const operands = Array.from({ length: width }, (_, i) => compare(i, op));
    return { kind: op === '=' ? 'and' : 'or', operands, type: 'boolean' };
  }
  const strict = op.startsWith('<') ? '<' : '>';
  let whole = last;
  for (let i = width - 2; i >= 0; i--) {
    const later: Bound = { kind: 'and', operands: [compare(i, '='), whole], type: 'boolean' };
    whole = { kind: 'or', operands: [compare(i, strict), later], type: 'boolean' };
  }
  return whole;
}

function movedBeyond(bound: Bound, width: number): Bound {
  if (bound.kind === 'column') return bound.index < width ? bound : { ...bound, index: bound.index + 1 };
  return mapChildren(bound, (child) => movedBeyond(child, width));
}

function columnsOf(bound: BoundQuery, wanted: number, location: Location): BoundQuery['columns'] {
  const { columns } = bound;
  if (columns.length === wanted) return columns;
  const many = wanted === 1 ? 'one column' : `${wanted} columns`;
  throw errorAt('REL_INVALID', `a subquery of ${many} belongs here, not of ${columns.length}`, location, 'syntax');
}

/** Drops the columns that show masked ones: expressions see only cells that they may. */
function firstColumns({ node }: BoundQuery, count: number): PlanNode {
  return node.columns.length === count ? node : project(node, throughColumns(node).slice(0, count));
}

/** The one column of a node, json, as the text that it is compared by. */
function asText(node: PlanNode): PlanNode {
  return project(
    node,
    throughColumns(node).map(({ name, bound }) => ({ name, bound: jsonText(bound) })),
  );
}

/** Whether anything in a plan names a column of a query around it. */
export function namesOuter(node: PlanNode, level?: number): boolean {
  const inside = (bound: Bound): boolean =>
    bound.kind === 'outer' ? level === undefined || bound.level === level : childrenOf(bound).some(inside);
  return expressionsOf(node).some(inside) || inputsOf(node).some((input) => namesOuter(input, level));
}

/** A column of the rows around a query, as that query names it. */
export function outerColumn(bound: Bound | undefined, level: Level | null, location: Location): Bound {
  if (bound?.kind === 'outer') return bound;
  if (level === null) throw errorAt('REL_NOT_IMPLEMENTED', lookingAround, location);
  if (bound?.kind !== 'column')
    throw errorAt('REL_INVALID', 'a query inside another one names columns of it, and no expressions', location);
  const { index, name, type, wire } = bound;
  return { kind: 'outer', level: level.id, index, name, type, ...(wire !== undefined && { wire }) };
}
