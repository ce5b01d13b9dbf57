import type { Cell } from '../../log/values/value.ts';

/** Columns by which a row names the rows that it was made from, that it takes the place of, that it is a part of or about. Pure. */
const namingColumnsOfAnyType = ['derived_from', 'supersedes', 'source_id'] as const;
/** Only types of the store's own mean this by these names. */
const namingColumnsOfType: Readonly<Record<string, readonly string[]>> = {
  Alert: ['matched_pk'],
  DecisionRecord: ['inputs'],
  Quarantine: ['item_id'],
  RuleAlert: ['matched_pk'],
};

/** The naming columns that the type has. */
export function namingColumns(type: string, columns: { has(name: string): boolean }): readonly string[] {
  return [...namingColumnsOfAnyType, ...(namingColumnsOfType[type] ?? [])].filter((name) => columns.has(name));
}

/** Keys that a cell of such a column names: one, or a list of them. */
export function namesIn(namingCell: Cell): readonly string[] {
  if (typeof namingCell === 'bigint' || typeof namingCell === 'number') return [String(namingCell)];
  if (typeof namingCell !== 'string') return [];
  if (!namingCell.startsWith('[') && !namingCell.startsWith('"')) return [namingCell];
  try {
    const parsedNames: unknown = JSON.parse(namingCell);
    const namedKeys = (Array.isArray(parsedNames) ? parsedNames : [parsedNames]).filter(
      (namedKey) => typeof namedKey === 'string' || typeof namedKey === 'number',
    );
    return [namingCell, ...namedKeys.map(String)];
  } catch {
    return [namingCell];
  }
}
