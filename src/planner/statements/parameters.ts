/** Values that are given beside a text, where it says `$1` or `$name`. */
import { LRUCache } from 'lru-cache';
import { ServiceError } from '../../errors.ts';
import { letterOf, type LexedStatement, lexStatement, type MarkerValues } from '../languages/sql-lexer.ts';
import type { Parameters } from '../planner-contract.ts';
import { type Literal, TypedValue } from '../syntax/statement.ts';

/** Values of `$1`, `$2` …, or by name. */
export function valuesOf(parameters: Parameters): MarkerValues {
  if (!isPositionalList(parameters)) return (marker) => parameters.get(String(marker));
  return (marker) => (typeof marker === 'number' ? parameters[marker - 1] : undefined);
}

const markedTextMax = 4_096;

/** Texts whose values alone differ from one time to the next are lexed once: prepared statements are. */
export class MarkedTexts {
  readonly #lexedByKey = new LRUCache<string, LexedStatement>({ max: 512 });

  lex(text: string, parameters: Parameters): LexedStatement {
    const markedKey = isPositionalList(parameters) && text.length <= markedTextMax ? markedTextKey(text, parameters) : null;
    const lexedBefore = markedKey === null ? undefined : this.#lexedByKey.get(markedKey);
    if (lexedBefore !== undefined) return lexedBefore.withValues(parameters as readonly (Literal | TypedValue)[]);
    const lexedStatement = allUsed(lexStatement(text, valuesOf(parameters)), parameters);
    if (markedKey !== null) this.#lexedByKey.set(markedKey, lexedStatement);
    return lexedStatement;
  }

  /** Clears the cache, which holds literals. */
  clear(): void {
    this.#lexedByKey.clear();
  }
}

/** Null: one of the values is refused, with an error that locates it. */
function markedTextKey(text: string, parameters: readonly (Literal | TypedValue)[]): string | null {
  let parameterLetters = '';
  let isRefused = false;
  for (const value of parameters) {
    const parameterLetter = letterOf(TypedValue.rawOf(value), () => void (isRefused = true) as never);
    parameterLetters += `${value instanceof TypedValue ? `${value.type}:` : ''}${parameterLetter} `;
    if (isRefused) return null;
  }
  return `${parameterLetters}\0${text}`;
}

function isPositionalList(parameters: Parameters): parameters is readonly (Literal | TypedValue)[] {
  return Array.isArray(parameters);
}

/** Refuses values without a place in the text: one of the two must be a mistake. */
export function allUsed(lexed: LexedStatement, parameters: Parameters): LexedStatement {
  // Drivers send one map to several statements.
  if (!isPositionalList(parameters)) return lexed;
  let markerCount = 0;
  for (const number of lexed.markers.values()) markerCount = Math.max(markerCount, number);
  if (parameters.length > markerCount) {
    throw new ServiceError('REL_INVALID', `${parameters.length} values were given, the statement takes ${markerCount}`, {
      reason: 'parameter-count',
    });
  }
  return lexed;
}
