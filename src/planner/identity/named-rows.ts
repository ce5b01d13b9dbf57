/** Rows by the names that callers have for them: a key, or `Type:key` where rows of several types have it. */
import type { GovernedSnapshot } from '../../governance/gate-contract.ts';
import type { TimeBounds } from '../../projections/access-paths.ts';
import { isClosed } from '../graph/node-and-edge-types.ts';

export interface NamedRow {
  readonly type: string;
  readonly key: string;
}

/** Visible rows, in the order of their types. A key comes before a name that has its type in front. */
export function rowsNamed(snapshot: GovernedSnapshot, name: string, time: TimeBounds, only?: string): readonly NamedRow[] {
  const types = snapshot.catalog.types().flatMap(({ name: type }) => (only === undefined || type === only ? [type] : []));
  const typesWithRow = types.filter((type) => hasRow(snapshot, { type, key: name }, time));
  if (typesWithRow.length > 0) return typesWithRow.map((type) => ({ type, key: name }));
  return types.flatMap((type) => {
    const row = { type, key: name.slice(type.length + 1) };
    return name.startsWith(`${type}:`) && hasRow(snapshot, row, time) ? [row] : [];
  });
}

/** A type that the caller may not read, and one whose keys it sees masked, have no row for it. */
export function hasRow({ rows, masksOf }: GovernedSnapshot, { type, key }: NamedRow, time: TimeBounds): boolean {
  try {
    if (masksOf(type).has('_pk')) return false;
    const scan = rows.scan({ type, columns: ['_pk'], time, keys: [key] });
    for (let step = scan.next(); step.done !== true; step = scan.next()) if (step.value.count > 0) return true;
    return false;
  } catch (error) {
    if (isClosed(error)) return false;
    throw error;
  }
}
