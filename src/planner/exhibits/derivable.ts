/** Which statements can be put on an exhibit: those whose answer follows from the log alone. */
import { ServiceError } from '../../errors.ts';
import { lexStatement } from '../languages/sql-lexer.ts';
import { parseLexed } from '../languages/sql-parser.ts';

const statementBytesMax = 256 * 1024;

/**
 * Throws for a statement that can't be derived again: REL_UNPROCESSABLE for what is no query or reads lookup tables,
 * which live outside the log; REL_READ_ONLY and REL_PARSE as anywhere.
 */
export function checkDerivable(sql: string): void {
  if (Buffer.byteLength(sql) > statementBytesMax) {
    throw new ServiceError('REL_TOO_LARGE', `a statement on an exhibit has at most ${statementBytesMax} bytes`);
  }
  const { statement } = parseLexed(lexStatement(sql));
  if (statement.kind === 'control' || statement.kind === 'explain') {
    throw new ServiceError('REL_UNPROCESSABLE', 'only the answer of a query can be derived again from the log');
  }
  if (statement.kind !== 'query') return;
  for (const node of nodesOf(statement.query)) {
    if (node['kind'] !== 'call' || node['name'] !== 'LOOKUP') continue;
    throw new ServiceError(
      'REL_UNPROCESSABLE',
      'LOOKUP reads a table that is not in the log: its answer can not be derived again',
    );
  }
}

/** Names of the types, views and functions that a statement reads; empty for what is no query. */
export function sourcesOf(sql: string): ReadonlySet<string> {
  const { statement } = parseLexed(lexStatement(sql));
  const names = new Set<string>();
  if (statement.kind !== 'query') return names;
  for (const node of nodesOf(statement.query)) {
    const { kind, name } = node;
    if ((kind === 'table' || kind === 'function') && typeof name === 'string') names.add(name);
  }
  return names;
}

/** Every node of a tree, whatever holds it. */
function* nodesOf(value: unknown): Generator<Readonly<Record<string, unknown>>, void> {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) yield value as Readonly<Record<string, unknown>>;
  for (const item of Object.values(value)) yield* nodesOf(item);
}
