/** Values that are given beside a text, where it says `$1` or `$name`. */
import { LRUCache } from 'lru-cache';
import { ServiceError } from '../../errors.ts';
import { letterOf, type LexedStatement, lexStatement, type MarkerValues } from '../languages/sql-lexer.ts';
import type { Parameters } from '../planner-contract.ts';
import { type Literal, TypedValue } from '../syntax/statement.ts';

/** Values of `$1`, `$2` …, or by name. */
export function valuesOf(parameters: Parameters): MarkerValues {
  if (!isList(parameters)) return (marker) => parameters.get(String(marker));
  return (marker) => (typeof marker === 'number' ? parameters[marker - 1] : undefined);
}

const textMax = 4_096;

/** Texts whose values alone differ from one time to the next are lexed once: prepared statements are. */
export class MarkedTexts {
  readonly #known = new LRUCache<string, LexedStatement>({ max: 512 });

  lex(text: string, parameters: Parameters): LexedStatement {
    const key = isList(parameters) && text.length <= textMax ? keyOf(text, parameters) : null;
    const known = key === null ? undefined : this.#known.get(key);
    if (known !== undefined) return known.withValues(parameters as readonly (Literal | TypedValue)[]);
    const lexed = allUsed(lexStatement(text, valuesOf(parameters)), parameters);
    if (key !== null) this.#known.set(key, lexed);
    return lexed;
  }

  /** Clears the cache, which holds literals. */
  clear(): void {
    this.#known.clear();
  }
}

/** Null: one of the values is refused, with an error that locates it. */
function keyOf(text: string, parameters: readonly (Literal | TypedValue)[]): string | null {
  let letters = '';
  let refused = false;
  for (const value of parameters) {
    const letter = letterOf(TypedValue.rawOf(value), () => void (refused = true) as never);
    letters += `${value instanceof TypedValue ? `${value.type}:` : ''}${letter} `;
    if (refused) return null;
  }
  return `${letters}\0${text}`;
}

function isList(parameters: Parameters): parameters is readonly (Literal | TypedValue)[] {
  return Array.isArray(parameters);
}

/** Refuses values without a place in the text: one of the two must be a mistake. */
export function allUsed(lexed: LexedStatement, parameters: Parameters): LexedStatement {
  // Drivers send one map to several statements.
  if (!isList(parameters)) return lexed;
  let named = 0;
  for (const number of lexed.markers.values()) named = Math.max(named, number);
  if (parameters.length > named) {
    throw new ServiceError('REL_INVALID', `${parameters.length} values were given, the statement takes ${named}`, {
      reason: 'parameter-count',
    });
  }
  return lexed;
}
