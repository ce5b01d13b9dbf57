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
  const distinctOnItems = distinctOn.map((each) => distinctOnItem(each, false, request));
  const orderBy = request.orderBy.map((item) => ({ ...item, expression: distinctOnItem(item.expression, true, request) }));
  checkDistinctOnOrder(distinctOnItems, orderBy, request);
  const rowNumbering = { function: 'row_number', arguments: [], partition: distinctOnItems, orderBy, frame: null } as const;
  const rowNumber = bindExpression({ kind: 'over', ...rowNumbering, filter: null, location: select.location }, rows);
  const firstNumber: Bound = { kind: 'constant', cell: 1n, type: 'integer' };
  return { kind: 'compare', op: '=', left: rowNumber, right: firstNumber, type: 'boolean' };
}

/** The projection item that an expression names by position or by name; otherwise the expression itself. */
function distinctOnItem(expression: Expression, canBeAlias: boolean, { select, environment }: DistinctOnRequest): Expression {
  const { projection } = select;
  const position = positionOf(expression, projection.length, environment);
  if (position !== null && projection.some(({ kind }) => kind === 'star'))
    throw errorAt('REL_NOT_IMPLEMENTED', 'DISTINCT ON with * and column positions is not implemented', expression.location);
  const isNamedItem = (item: ProjectionItem): boolean =>
    canBeAlias &&
    item.kind === 'expression' &&
    expression.kind === 'column' &&
    expression.table === null &&
    item.alias === expression.name;
  const projectedItem = position === null ? projection.find(isNamedItem) : projection[position];
  return projectedItem?.kind === 'expression' ? projectedItem.expression : expression;
}

/** Checks that ORDER BY begins with the expressions of DISTINCT ON. */
function checkDistinctOnOrder(
  partition: readonly Expression[],
  orderBy: readonly OrderItem[],
  { environment: { literals, guards }, rows }: DistinctOnRequest,
): void {
  const distinctOnBounds = partition.map((each) => bindExpression(each, rows));
  for (const { expression } of orderBy) {
    if (distinctOnBounds.length === 0) return;
    const orderBound = bindExpression(expression, rows);
    const distinctOnIndex = distinctOnBounds.findIndex((each) => sameExpression(each, orderBound, literals, guards));
    if (distinctOnIndex < 0)
      throw errorAt(
        'REL_INVALID',
        'ORDER BY must begin with the expressions of DISTINCT ON',
        expression.location,
        'no-such-column-here',
      );
    distinctOnBounds.splice(distinctOnIndex, 1);
  }
}
