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

const lookingAroundText = 'a subquery that looks at rows around it is not implemented here: put it into WHERE or into ON';

export interface SubselectsRequest {
  readonly environment: Environment;
  /** Null where no column can be added to the rows of the expressions. */
  readonly level: Level | null;
  readonly bindQuery: (query: Query) => BoundQuery;
}

export class Subselects {
  readonly #subselectRequest: SubselectsRequest;
  readonly #boundSubselects = new Map<Expression, Bound>();

  constructor(request: SubselectsRequest) {
    this.#subselectRequest = request;
  }

  bind(expression: Subselect | InQuery, bind: (operand: Expression) => Bound): Bound {
    const knownSubselect = this.#boundSubselects.get(expression);
    if (knownSubselect) return knownSubselect;
    const boundSubselect = this.#bindSubselect(expression, bind);
    this.#boundSubselects.set(expression, boundSubselect);
    return boundSubselect;
  }

  #bindSubselect(expression: Subselect | InQuery, bind: (operand: Expression) => Bound): Bound {
    switch (expression.kind) {
      case 'exists':
        return this.#bindExists(expression.query);
      case 'scalar-query':
        return this.#bindScalar(expression.query);
      case 'in-query': {
        const isMember = this.#compareAny(expression, '=', bind);
        return expression.negated ? { kind: 'not', operand: isMember, type: 'boolean' } : isMember;
      }
      case 'quantified': {
        const { op, all } = expression;
        const comparedAny = this.#compareAny(expression, all ? negatedOp[op] : op, bind);
        return all ? { kind: 'not', operand: comparedAny, type: 'boolean' } : comparedAny;
      }
    }
  }

  #bindExists(query: Query): Bound {
    const { bindQuery, environment } = this.#subselectRequest;
    const existsQuery = bindQuery(query);
    // Its columns say nothing.
    const node = project(existsQuery.node, []);
    if (!namesOuter(node)) {
      return { kind: 'subquery', index: environment.addSubquery({ root: node, type: 'boolean', as: 'exists' }), type: 'boolean' };
    }
    return this.#markedRows(node, null, query.location);
  }

  #bindScalar(query: Query): Bound {
    const { bindQuery, environment } = this.#subselectRequest;
    const scalarQuery = bindQuery(query);
    const [scalarColumn] = subselectColumns(scalarQuery, 1, query.location);
    const scalarNode = firstColumns(scalarQuery, 1);
    if (!namesOuter(scalarNode)) {
      const index = environment.addSubquery({ root: scalarNode, type: scalarNode.columns[0]!.type, as: 'scalar' });
      // A vector stands as its text, which is what distances take beside one.
      const scalarWire = scalarColumn!.wire === undefined ? {} : { wire: scalarColumn!.wire };
      return { kind: 'subquery', index, type: scalarColumn!.type === 'vector' ? 'string' : scalarColumn!.type, ...scalarWire };
    }
    if (scalarColumn!.type === 'vector')
      throw errorAt('REL_TYPE_MISMATCH', "a subquery that looks at rows around it can't yield a vector", query.location);
    const aroundLevel = this.#requireLevel(query.location);
    const appliedColumn: PlanColumn = { name: scalarNode.columns[0]!.name, type: scalarNode.columns[0]!.type };
    const index = aroundLevel.node.columns.length;
    aroundLevel.node = {
      kind: 'apply',
      type: 'single',
      input: aroundLevel.node,
      query: scalarNode,
      level: aroundLevel.id,
      condition: null,
      columns: [...aroundLevel.node.columns, appliedColumn],
    };
    if (scalarColumn!.masked !== undefined) aroundLevel.noteMasked(index, scalarColumn!);
    return { kind: 'column', index, ...appliedColumn, ...(scalarColumn!.wire !== undefined && { wire: scalarColumn!.wire }) };
  }

  /** Whether `operand op` holds for any row of the query. */
  #compareAny(
    { operand, query, location }: { readonly operand: Expression; readonly query: Query; readonly location: Location },
    op: CompareOp,
    bind: (operand: Expression) => Bound,
  ): Bound {
    const { bindQuery, environment } = this.#subselectRequest;
    const memberOperands = (operand.kind === 'row' ? operand.items : [operand]).map(bind);
    const memberQuery = bindQuery(query);
    const columns = subselectColumns(memberQuery, memberOperands.length, query.location);
    for (const { type } of columns) {
      if (type === 'vector' || type === 'interval')
        throw errorAt('REL_TYPE_MISMATCH', `IN can't compare ${type}`, query.location);
    }
    const memberNode = firstColumns(memberQuery, memberOperands.length);
    if (op === '=' && memberOperands.length === 1 && !namesOuter(memberNode)) {
      const setValues: Bound = { kind: 'parameter', index: -1, type: columns[0]!.type };
      const [memberOperand, setValue] = matchOperands(memberOperands[0]!, setValues, '=', location);
      const setRoot = setValue.type === 'string' && setValues.type === 'json' ? asTextNode(memberNode) : memberNode;
      const setSubquery = environment.addSubquery({ root: setRoot, type: setRoot.columns[0]!.type, as: 'set' });
      return { kind: 'in-set', operand: memberOperand, set: setSubquery, type: 'boolean' };
    }
    const levelWidth = this.#requireLevel(location).node.columns.length;
    const compareColumn = (i: number, operator: CompareOp): Bound => {
      // A column of bare NULLs has no other type.
      const type = columns[i]!.type;
      const column = {
        kind: 'column',
        index: levelWidth + i,
        name: columns[i]!.name,
        type: memberNode.columns[i]!.type,
      } as const;
      const comparedColumn: Bound = type === 'null' ? { kind: 'constant', cell: null, type: 'null' } : column;
      const [left, right] = matchOperands(memberOperands[i]!, comparedColumn, operator, location);
      return { kind: 'compare', op: operator, left, right, type: 'boolean' };
    };
    const rowComparison = comparedRowsBound(memberOperands.length, op, compareColumn);
    const holdsMark = this.#markedRows(memberNode, rowComparison, location);
    // The condition's references to the query's rows shift by the added column.
    const movedComparison = movedBeyondMark(rowComparison, levelWidth);
    const openMark = this.#markedRows(memberNode, { kind: 'is-null', operand: movedComparison, type: 'boolean' }, location);
    const nullConstant: Bound = { kind: 'constant', cell: null, type: 'null' };
    const undecidedBound: Bound = { kind: 'and', operands: [openMark, nullConstant], type: 'boolean' };
    return { kind: 'or', operands: [holdsMark, undecidedBound], type: 'boolean' };
  }

  #markedRows(query: PlanNode, condition: Bound | null, location: Location): Bound {
    const level = this.#requireLevel(location);
    const index = level.node.columns.length;
    const columns: PlanColumn[] = [...level.node.columns, { name: '#mark', type: 'boolean' }];
    level.node = { kind: 'apply', type: 'mark', input: level.node, query, level: level.id, condition, columns };
    return { kind: 'column', index, name: '#mark', type: 'boolean' };
  }

  #requireLevel(location: Location): Level {
    if (this.#subselectRequest.level) return this.#subselectRequest.level;
    throw errorAt('REL_NOT_IMPLEMENTED', lookingAroundText, location);
  }
}

const negatedOp: Readonly<Record<CompareOp, CompareOp>> = { '=': '!=', '!=': '=', '<': '>=', '<=': '>', '>': '<=', '>=': '<' };

/** `=` and `!=` of rows compare item by item; an order follows the first items that differ. */
function comparedRowsBound(width: number, op: CompareOp, compareItem: (item: number, operator: CompareOp) => Bound): Bound {
  const lastComparison = compareItem(width - 1, op);
  if (width === 1) return lastComparison;
  if (op === '=' || op === '!=') {
    const operands = Array.from({ length: width }, (_, i) => compareItem(i, op));
    return { kind: op === '=' ? 'and' : 'or', operands, type: 'boolean' };
  }
  const strictOp = op.startsWith('<') ? '<' : '>';
  let wholeComparison = lastComparison;
  for (let i = width - 2; i >= 0; i--) {
    const laterItems: Bound = { kind: 'and', operands: [compareItem(i, '='), wholeComparison], type: 'boolean' };
    wholeComparison = { kind: 'or', operands: [compareItem(i, strictOp), laterItems], type: 'boolean' };
  }
  return wholeComparison;
}

function movedBeyondMark(bound: Bound, width: number): Bound {
  if (bound.kind === 'column') return bound.index < width ? bound : { ...bound, index: bound.index + 1 };
  return mapChildren(bound, (child) => movedBeyondMark(child, width));
}

function subselectColumns(bound: BoundQuery, wantedCount: number, location: Location): BoundQuery['columns'] {
  const { columns } = bound;
  if (columns.length === wantedCount) return columns;
  const columnCountText = wantedCount === 1 ? 'one column' : `${wantedCount} columns`;
  throw errorAt('REL_INVALID', `a subquery of ${columnCountText} belongs here, not of ${columns.length}`, location, 'syntax');
}

/** Drops the columns that show masked ones: expressions see only cells that they may. */
function firstColumns({ node }: BoundQuery, count: number): PlanNode {
  return node.columns.length === count ? node : project(node, throughColumns(node).slice(0, count));
}

/** The one column of a node, json, as the text that it is compared by. */
function asTextNode(node: PlanNode): PlanNode {
  return project(
    node,
    throughColumns(node).map(({ name, bound }) => ({ name, bound: jsonText(bound) })),
  );
}

/** Whether anything in a plan names a column of a query around it. */
export function namesOuter(node: PlanNode, level?: number): boolean {
  const namesOuterColumn = (bound: Bound): boolean =>
    bound.kind === 'outer' ? level === undefined || bound.level === level : childrenOf(bound).some(namesOuterColumn);
  return expressionsOf(node).some(namesOuterColumn) || inputsOf(node).some((input) => namesOuter(input, level));
}

/** A column of the rows around a query, as that query names it. */
export function outerColumn(bound: Bound | undefined, level: Level | null, location: Location): Bound {
  if (bound?.kind === 'outer') return bound;
  if (level === null) throw errorAt('REL_NOT_IMPLEMENTED', lookingAroundText, location);
  if (bound?.kind !== 'column')
    throw errorAt('REL_INVALID', 'a query inside another one names columns of it, and no expressions', location);
  const { index, name, type, wire } = bound;
  return { kind: 'outer', level: level.id, index, name, type, ...(wire !== undefined && { wire }) };
}
