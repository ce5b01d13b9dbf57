/** Rows by the names that callers have for them: a key, or `Type:key` where rows of several types have it. */
import type { GovernedSnapshot } from '../../governance/gate-contract.ts';
import type { TimeBounds } from '../../projections/access-paths.ts';
import { isClosed } from '../graph/node-and-edge-types.ts';

export interface NamedRow {
  readonly type: string;
  readonly key: string;
}

/** Visible rows, in the order of their types. A key comes before a name that has its type in front. */
export function rowsNamed(snapshot: GovernedSnapshot, keyText: string, time: TimeBounds, onlyType?: string): readonly NamedRow[] {
  const types = snapshot.catalog.types().flatMap(({ name: type }) => (onlyType === undefined || type === onlyType ? [type] : []));
  const typesWithRow = types.filter((type) => hasRow(snapshot, { type, key: keyText }, time));
  if (typesWithRow.length > 0) return typesWithRow.map((type) => ({ type, key: keyText }));
  return types.flatMap((type) => {
    const prefixedRow = { type, key: keyText.slice(type.length + 1) };
    return keyText.startsWith(`${type}:`) && hasRow(snapshot, prefixedRow, time) ? [prefixedRow] : [];
  });
}

/** A type that the caller may not read, and one whose keys it sees masked, have no row for it. */
export function hasRow({ rows, masksOf }: GovernedSnapshot, { type, key }: NamedRow, time: TimeBounds): boolean {
  try {
    if (masksOf(type).has('_pk')) return false;
    const keyScan = rows.scan({ type, columns: ['_pk'], time, keys: [key] });
    for (let keyStep = keyScan.next(); keyStep.done !== true; keyStep = keyScan.next()) if (keyStep.value.count > 0) return true;
    return false;
  } catch (error) {
    if (isClosed(error)) return false;
    throw error;
  }
}
