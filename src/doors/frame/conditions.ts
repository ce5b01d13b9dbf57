/** Writes on the condition that what they were worked out from still stands: read again, they may go through. */
import { ServiceError } from '../../errors.ts';

/** What conflicts is stale: `retryConflicts` of the invocation knows it by that. */
export async function onItsCondition<T>(write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'REL_CONFLICT') throw error;
    throw new ServiceError(error.code, error.message, { ...error.facts, stale: true });
  }
}
