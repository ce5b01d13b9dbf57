/** Checks the condition of a write: whether its key is in the state that the writer requires. */
import type { NextPosition } from '../../../log/log-store.ts';
import type { WriteCondition } from '../../command.ts';
import type { TenantRows } from '../tables/tenant-rows.ts';

/**
 * Why not; null: it does. `isPresent`: something holds under the key within the bounds of the write; `newestPosition`: position of its newest
 * version, -1 where it has none; `nextPosition`: where the write begins, whose own versions are on no timeline yet.
 */
export function conflictOf(
  writeCondition: WriteCondition,
  isPresent: boolean,
  newestPosition: number,
  { positionAfter }: Pick<TenantRows, 'positionAfter'>,
  nextPosition: NextPosition,
): string | null {
  if (writeCondition === 'absent') return isPresent ? 'the row is there already' : null;
  if (!isPresent) return 'the row is not there';
  if (writeCondition === 'present') return null;
  const { unchangedSince } = writeCondition;
  const isWrittenHere = newestPosition >= nextPosition.position;
  const isUnchanged = isWrittenHere
    ? nextPosition.time + BigInt(newestPosition - nextPosition.position) <= unchangedSince
    : newestPosition < positionAfter(unchangedSince);
  return isUnchanged ? null : 'the row was written since: read it again';
}
