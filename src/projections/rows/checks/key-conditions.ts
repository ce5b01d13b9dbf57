/** Checks the condition of a write: whether its key is in the state that the writer requires. */
import type { NextPosition } from '../../../log/log-store.ts';
import type { WriteCondition } from '../../command.ts';
import type { TenantRows } from '../tables/tenant-rows.ts';

/**
 * Why not; null: it does. `isPresent`: something holds under the key within the bounds of the write; `newest`: position of its newest
 * version, -1 where it has none; `at`: where the write begins, whose own versions are on no timeline yet.
 */
export function conflictOf(
  when: WriteCondition,
  isPresent: boolean,
  newest: number,
  { positionAfter }: Pick<TenantRows, 'positionAfter'>,
  at: NextPosition,
): string | null {
  if (when === 'absent') return isPresent ? 'the row is there already' : null;
  if (!isPresent) return 'the row is not there';
  if (when === 'present') return null;
  const { unchangedSince } = when;
  const isOwn = newest >= at.position;
  const isUnchanged = isOwn ? at.time + BigInt(newest - at.position) <= unchangedSince : newest < positionAfter(unchangedSince);
  return isUnchanged ? null : 'the row was written since: read it again';
}
