/**
 * The values a cell may hold, their limits and their canonical bytes. Pure; every room may name it.
 * Canonical bytes are hashed into row leaves: changing them needs a new `ROW_FORMAT` and a fixture.
 */
import { ServiceError } from '../../errors.ts';

/** `integer` is an exact i64, `timestamp` i64 nanoseconds UTC, `json` text as given. */
export type ColumnType = 'string' | 'integer' | 'number' | 'boolean' | 'timestamp' | 'json' | 'vector';

/** Types whose columns may become text: each of their values has one text. */
export function becomesText(type: ColumnType): boolean {
  return type === 'integer' || type === 'number' || type === 'boolean';
}

/** The words of its cells are searched: those of a text, or of the strings of JSON. */
export function holdsTexts(type: ColumnType): boolean {
  return type === 'string' || type === 'json';
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
export function checkText(text: string, what: string): void {
  if (!text.isWellFormed()) throw new ServiceError('REL_INVALID', `${what} holds a lone surrogate`);
}

/** Throws REL_INVALID unless `name` can name a type, column, branch or token: 1 to 128 characters, no NUL or control. */
export function checkIdentifier(name: string, what: string): void {
  checkText(name, what);
  if (name.length === 0 || name.length > limits.identifierLength) {
    throw new ServiceError('REL_INVALID', `${what} must have 1 to ${limits.identifierLength} characters`);
  }
  for (let i = 0; i < name.length; i++) {
    if (name.charCodeAt(i) < 0x20) throw new ServiceError('REL_INVALID', `${what} holds a control character`);
  }
}

/** Codepoint order of two strings, the specification's default: UTF-16 order differs above U+FFFF. */
export function compareText(a: string, b: string): number {
  const n = Math.min(a.length, b.length);
  for (let i = 0; i < n; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x !== y) {
      // A surrogate stands for a codepoint above every other 16-bit unit.
      const xHigh = x >= 0xd800 && x <= 0xdfff;
      const yHigh = y >= 0xd800 && y <= 0xdfff;
      return xHigh === yHigh ? x - y : xHigh ? 1 : -1;
    }
  }
  return a.length - b.length;
}

/** The tenant that an organisation path belongs to: its first segment. null: no tenant. */
export function tenantOf(path: string | null): string | null {
  if (path === null) return null;
  const slash = path.indexOf('/');
  return slash === -1 ? path : path.slice(0, slash);
}
