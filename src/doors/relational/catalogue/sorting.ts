/** The order of rows: NULL comes last, unless it is turned around or said otherwise. */
import type { Expression, Frame } from './scope.ts';
import { compare, type Value } from '../../../planner/virtual/types.ts';

export interface SortKey {
  readonly of: Expression;
  readonly descending: boolean;
  readonly nullsFirst: boolean;
}

export function compareKeys(keys: readonly SortKey[], a: Frame, b: Frame): number {
  for (const key of keys) {
    const order = compareValues(key, key.of.of(a), key.of.of(b));
    if (order !== 0) return order;
  }
  return 0;
}

export function compareValues({ descending, nullsFirst }: Omit<SortKey, 'of'>, a: Value, b: Value): number {
  if (a === null || b === null) return a === b ? 0 : (a === null) === nullsFirst ? -1 : 1;
  const order = compare(a, b);
  return descending ? -order : order;
}
