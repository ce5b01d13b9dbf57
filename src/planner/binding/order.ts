/** What ORDER BY, GROUP BY and OFFSET say in numbers. */
import { at } from '../places.ts';
import type { Expression, Slot } from '../statement.ts';
import type { Environment } from './environment.ts';

/**
 * The place from 0 of the column that a whole number names; null for any other expression. A plan holds for this number
 * only, which no template shows.
 */
export function positionOf(expression: Expression, columns: number, environment: Environment): number | null {
  if (expression.kind !== 'literal') return null;
  const literal = environment.literals[expression.slot];
  if (typeof literal !== 'bigint') return null;
  if (literal < 1n || literal > BigInt(columns)) {
    throw at('REL_INVALID', `there is no column ${literal}: the SELECT has ${columns}`, expression.place, 'no-such-column-here');
  }
  environment.guards.push({ slot: expression.slot, is: literal });
  return Number(literal) - 1;
}

/** For nodes that a skip stands above. */
export function skipped(offset: Slot | null): { readonly offset?: Slot } {
  return offset === null ? {} : { offset };
}
