/** A call, the rows that it has to have, and how those of the store are held against them. */
import type { Row } from '../../../harness.ts';

/** By column; columns that are not there are not compared. JSON is written as what it says. */
export type Expected = Readonly<Record<string, unknown>>;

export interface Question {
  readonly call: string;
  /** In their order where `isOrdered`; else in any, and those of the store by score, id and system_from. */
  readonly rows: readonly Expected[];
  readonly isOrdered?: boolean;
}

/** Lists whose order nobody says. */
const unordered = new Set(['paths', 'partners', 'like', 'reasons']);
const json = new Set(['paths', 'path', 'partners', 'like', 'reasons', 'members', 'fields']);

/** Null where they are the same. */
export function differenceOf({ call, rows, isOrdered = false }: Question, got: readonly Row[]): string | null {
  const columns = rows.length === 0 ? [] : Object.keys(rows[0]!);
  const cells = (row: Expected): readonly unknown[] => columns.map((column) => cellOf(column, row[column]));
  const [shown, expected] = [got.map(cells), rows.map(cells)];
  if (!isOrdered) for (const each of [shown, expected]) each.sort(byText);
  const at = Array.from({ length: Math.max(shown.length, expected.length) }, (_, i) => i).find(
    (i) => !isSame(shown[i], expected[i]),
  );
  if (at !== undefined) {
    const lengths = `row ${at} of ${shown.length}, ${expected.length}`;
    return `${call}: ${lengths}\n  is   ${textOf(shown[at])}\n  not  ${textOf(expected[at])}`;
  }
  if (!isOrdered && !areInOrder(got))
    return `${call}: rows are not by score and id: ${shown.map((row) => textOf(row)).join(', ')}`;
  const plain = got.find((row) => typeof row['method'] !== 'string' || !isObject(row['evidence']));
  return plain === undefined ? null : `${call}: a row without method and evidence`;
}

function cellOf(column: string, cell: unknown): unknown {
  const said: unknown = json.has(column) && typeof cell === 'string' ? JSON.parse(cell) : cell;
  return unordered.has(column) && Array.isArray(said) ? said.toSorted(byText) : said;
}

/** By all that is no fraction first: what differs in the last digits is beside its like. */
function byText(a: unknown, b: unknown): number {
  const [left, right] = [textOf(a, true) + textOf(a), textOf(b, true) + textOf(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}

function textOf(value: unknown, isWhole = false): string {
  return (
    JSON.stringify(value, (_, each: unknown) => {
      if (typeof each === 'bigint') return `${each}n`;
      return typeof each === 'number' && isWhole ? 0 : each;
    }) ?? 'none'
  );
}

/** Sums that run in another order differ in their last digits. */
function isSame(a: unknown, b: unknown): boolean {
  if (typeof a === 'number' && typeof b === 'number') return Math.abs(a - b) <= 1e-6 + 1e-7 * Math.max(Math.abs(a), Math.abs(b));
  if (typeof a !== 'object' || a === null || typeof b !== 'object' || b === null) return a === b;
  const [left, right] = [Object.entries(a), Object.entries(b)];
  return left.length === right.length && left.every(([key, each]) => isSame(each, (b as Readonly<Record<string, unknown>>)[key]));
}

function areInOrder(rows: readonly Row[]): boolean {
  const score = (row: Row): number => (typeof row['score'] === 'number' ? row['score'] : -Infinity);
  return rows.every((row, i) => {
    const before = rows[i - 1];
    if (before === undefined || score(before) > score(row)) return true;
    return score(before) === score(row) && String(before['nodeId'] ?? '') <= String(row['nodeId'] ?? '');
  });
}

function isObject(evidence: unknown): boolean {
  return typeof evidence === 'string' && typeof JSON.parse(evidence) === 'object';
}
