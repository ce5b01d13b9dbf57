/** Values that are given beside a text, where it says `$1` or `$name`. */
import { ServiceError } from '../errors.ts';
import type { LexedStatement, MarkerValues } from './languages/sql-lexer.ts';
import type { Parameters } from './planner-contract.ts';
import type { Literal } from './statement.ts';

/** Values of `$1`, `$2` …, or by name. */
export function valuesOf(parameters: Parameters): MarkerValues {
  if (!isList(parameters)) return (marker) => parameters.get(String(marker));
  return (marker) => (typeof marker === 'number' ? parameters[marker - 1] : undefined);
}

function isList(parameters: Parameters): parameters is readonly Literal[] {
  return Array.isArray(parameters);
}

/** Refuses values that the text has no place for: one of the two is not what was meant. */
export function allUsed(lexed: LexedStatement, parameters: Parameters): LexedStatement {
  // Drivers send one map to several statements.
  if (!isList(parameters)) return lexed;
  let named = 0;
  for (const number of lexed.markers.values()) named = Math.max(named, number);
  if (parameters.length > named) {
    throw new ServiceError('REL_INVALID', `${parameters.length} values were given, the statement takes ${named}`);
  }
  return lexed;
}
