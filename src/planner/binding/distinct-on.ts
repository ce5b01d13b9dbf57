/** DISTINCT ON: of rows that agree in its expressions the first one stays, in the order of the query. */
import { bindExpression, type ExpressionContext } from '../expressions/bind-expression.ts';
import { type Bound, sameExpression } from '../expressions/bound-expression.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { Expression, OrderItem, ProjectionItem, Select } from '../syntax/statement.ts';
import type { Environment } from './environment.ts';
import { positionOf } from './ordinal-numbers.ts';

export interface DistinctOnRequest {
  readonly environment: Environment;
  readonly select: Select;
  readonly orderBy: readonly OrderItem[];
  readonly rows: ExpressionContext;
}

/** The condition that is true of the first row of each group of equal ones. */
export function bindDistinctOn(distinctOn: readonly Expression[], request: DistinctOnRequest): Bound {
  const { select, rows } = request;
  const partition = distinctOn.map((each) => itemOf(each, false, request));
  const orderBy = request.orderBy.map((item) => ({ ...item, expression: itemOf(item.expression, true, request) }));
  checkOrder(partition, orderBy, request);
  const numbered = { function: 'row_number', arguments: [], partition, orderBy, frame: null } as const;
  const left = bindExpression({ kind: 'over', ...numbered, filter: null, location: select.location }, rows);
  const right: Bound = { kind: 'constant', cell: 1n, type: 'integer' };
  return { kind: 'compare', op: '=', left, right, type: 'boolean' };
}

/** The projection item that an expression names by position or by name; otherwise the expression itself. */
function itemOf(expression: Expression, byName: boolean, { select, environment }: DistinctOnRequest): Expression {
  const { projection } = select;
  const position = positionOf(expression, projection.length, environment);
  if (position !== null && projection.some(({ kind }) => kind === 'star'))
    throw errorAt('REL_NOT_IMPLEMENTED', 'DISTINCT ON with * and column positions is not implemented', expression.location);
  const isNamed = (item: ProjectionItem): boolean =>
    byName &&
    item.kind === 'expression' &&
    expression.kind === 'column' &&
    expression.table === null &&
    item.alias === expression.name;
  const item = position === null ? projection.find(isNamed) : projection[position];
  return item?.kind === 'expression' ? item.expression : expression;
}

/** Checks that ORDER BY begins with the expressions of DISTINCT ON. */
function checkOrder(
  partition: readonly Expression[],
  orderBy: readonly OrderItem[],
  { environment: { literals, guards }, rows }: DistinctOnRequest,
): void {
  const left = partition.map((each) => bindExpression(each, rows));
  for (const { expression } of orderBy) {
    if (left.length === 0) return;
    const bound = bindExpression(expression, rows);
    const index = left.findIndex((each) => sameExpression(each, bound, literals, guards));
    if (index < 0)
      throw errorAt(
        'REL_INVALID',
        'ORDER BY must begin with the expressions of DISTINCT ON',
        expression.location,
        'no-such-column-here',
      );
    left.splice(index, 1);
  }
}
