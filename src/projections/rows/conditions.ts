/** Whether a key stands as the writer of its row takes it to. */
import type { WriteCondition } from '../command.ts';
import type { BranchRows } from './branch-rows.ts';

/**
 * Why not; null: it does. `isPresent`: something holds under the key within the bounds of the write; `newest`: position of its newest
 * version, -1 where it has none.
 */
export function conflictOf(
  when: WriteCondition,
  isPresent: boolean,
  newest: number,
  { positionAfter }: Pick<BranchRows, 'positionAfter'>,
): string | null {
  if (when === 'absent') return isPresent ? 'the row is there already' : null;
  if (!isPresent) return 'the row is not there';
  if (when === 'present') return null;
  return newest < positionAfter(when.unchangedSince) ? null : 'the row was written since: read it again';
}
