import type { Cell } from '../../log/values/value.ts';

/** Columns by which a row names the rows that it was made from, that it takes the place of, that it is a part of or about. Pure. */
const ofAnyType = ['derived_from', 'supersedes', 'source_id'] as const;
/** Only types of the store's own mean this by these names. */
const ofType: Readonly<Record<string, readonly string[]>> = {
  Alert: ['matched_pk'],
  DecisionRecord: ['inputs'],
  Quarantine: ['item_id'],
  RuleAlert: ['matched_pk'],
};

/** The naming columns that the type has. */
export function namingColumns(type: string, columns: { has(name: string): boolean }): readonly string[] {
  return [...ofAnyType, ...(ofType[type] ?? [])].filter((name) => columns.has(name));
}

/** Keys that a cell of such a column names: one, or a list of them. */
export function namesIn(cell: Cell): readonly string[] {
  if (typeof cell === 'bigint' || typeof cell === 'number') return [String(cell)];
  if (typeof cell !== 'string') return [];
  if (!cell.startsWith('[') && !cell.startsWith('"')) return [cell];
  try {
    const given: unknown = JSON.parse(cell);
    const named = (Array.isArray(given) ? given : [given]).filter((each) => typeof each === 'string' || typeof each === 'number');
    return [cell, ...named.map(String)];
  } catch {
    return [cell];
  }
}
