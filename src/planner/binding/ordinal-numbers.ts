/** Numbers in ORDER BY, GROUP BY and OFFSET. */
import { errorAt } from '../syntax/error-location.ts';
import type { RowCount } from '../logical-plan.ts';
import type { Expression } from '../syntax/statement.ts';
import type { Environment } from './environment.ts';

/**
 * The index from 0 of the column that a whole number names; null for any other expression. The plan is guarded by this number,
 * because its template does not show it.
 */
export function positionOf(expression: Expression, columns: number, environment: Environment): number | null {
  if (expression.kind !== 'literal') return null;
  const ordinalLiteral = environment.literals[expression.slot];
  if (typeof ordinalLiteral !== 'bigint') return null;
  if (ordinalLiteral < 1n || ordinalLiteral > BigInt(columns)) {
    throw errorAt(
      'REL_INVALID',
      `there is no column ${ordinalLiteral}: the SELECT has ${columns}`,
      expression.location,
      'no-such-column-here',
    );
  }
  environment.guards.push({ slot: expression.slot, is: ordinalLiteral });
  return Number(ordinalLiteral) - 1;
}

/** The offset member of a node that skips rows; empty without OFFSET. */
export function offsetOption(offset: RowCount | null): { readonly offset?: RowCount } {
  return offset === null ? {} : { offset };
}
