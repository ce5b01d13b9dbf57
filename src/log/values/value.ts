/**
 * The values a cell may hold, their limits and their canonical bytes. Pure; every room may name it.
 * Canonical bytes are hashed into row leaves: changing them needs a new `ROW_FORMAT` and a fixture.
 */
import { ServiceError } from '../../errors.ts';

/** `integer` is an exact i64, `timestamp` i64 nanoseconds UTC, `json` text as given. */
export type ColumnType = 'string' | 'integer' | 'number' | 'boolean' | 'timestamp' | 'json' | 'vector';

/** Types whose columns may become text: each of their values has one text. */
export function becomesText(columnType: ColumnType): boolean {
  return columnType === 'integer' || columnType === 'number' || columnType === 'boolean';
}

/** The words of its cells are searched: those of a text, or of the strings of JSON. */
export function holdsTexts(columnType: ColumnType): boolean {
  return columnType === 'string' || columnType === 'json';
}

export const columnTypes: readonly ColumnType[] = ['string', 'integer', 'number', 'boolean', 'timestamp', 'json', 'vector'];

/** A single cell where one is handled alone (a literal, a key, a reply in a test). Integers and timestamps are bigint. */
export type Cell = null | string | bigint | number | boolean | Float32Array;

export const I64_MAX = 9_223_372_036_854_775_807n;
export const I64_MIN = -9_223_372_036_854_775_808n;

/** Limits of input: larger input is refused, never cut. */
export const limits = {
  jsonDepth: 64,
  sqlDepth: 40,
  identifierLength: 128,
  keyBytes: 1024,
  columnsPerType: 1024,
  vectorDims: 4096,
} as const;

/** Row fields of the specification: kept by the store, never declared by a user as properties of a type. */
export const systemColumns = {
  _pk: 'string',
  id: 'string',
  tenant_id: 'string',
  namespace_path: 'string',
  valid_from: 'timestamp',
  valid_to: 'timestamp',
  system_from: 'timestamp',
  system_to: 'timestamp',
} as const satisfies Record<string, ColumnType>;

/** Embeddings are columns of every type: `_emb_<slot>`. */
export const embeddingPrefix = '_emb_';

/** Throws REL_INVALID for text that UTF-8 cannot carry: two different keys would become one. */
export function checkText(checkedText: string, textTitle: string): void {
  if (!checkedText.isWellFormed()) throw new ServiceError('REL_INVALID', `${textTitle} holds a lone surrogate`);
}

/** Throws REL_INVALID unless `identifierName` can name a type, column, branch or token: 1 to 128 characters, no NUL or control. */
export function checkIdentifier(identifierName: string, identifierTitle: string): void {
  checkText(identifierName, identifierTitle);
  if (identifierName.length === 0 || identifierName.length > limits.identifierLength) {
    throw new ServiceError('REL_INVALID', `${identifierTitle} must have 1 to ${limits.identifierLength} characters`);
  }
  for (let i = 0; i < identifierName.length; i++) {
    if (identifierName.charCodeAt(i) < 0x20)
      throw new ServiceError('REL_INVALID', `${identifierTitle} holds a control character`);
  }
}

/** Codepoint order of two strings, the specification's default: UTF-16 order differs above U+FFFF. */
export function compareText(a: string, b: string): number {
  const sharedLength = Math.min(a.length, b.length);
  for (let i = 0; i < sharedLength; i++) {
    const codeOfA = a.charCodeAt(i);
    const codeOfB = b.charCodeAt(i);
    if (codeOfA !== codeOfB) {
      // A surrogate stands for a codepoint above every other 16-bit unit.
      const isSurrogateA = codeOfA >= 0xd800 && codeOfA <= 0xdfff;
      const isSurrogateB = codeOfB >= 0xd800 && codeOfB <= 0xdfff;
      return isSurrogateA === isSurrogateB ? codeOfA - codeOfB : isSurrogateA ? 1 : -1;
    }
  }
  return a.length - b.length;
}

/** The tenant that an organisation path belongs to: its first segment. null: no tenant. */
export function tenantOf(organisationPath: string | null): string | null {
  if (organisationPath === null) return null;
  const slashIndex = organisationPath.indexOf('/');
  return slashIndex === -1 ? organisationPath : organisationPath.slice(0, slashIndex);
}
