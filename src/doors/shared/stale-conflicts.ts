/** Conflicts of conditional writes: a retry with fresh rows may succeed. */
import { ServiceError } from '../../errors.ts';

/** Marks conflicts as stale, by which `retryConflicts` of the invocation recognises them. */
export async function markConflictsStale<T>(write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'REL_CONFLICT') throw error;
    throw new ServiceError(error.code, error.message, { ...error.facts, stale: true });
  }
}
