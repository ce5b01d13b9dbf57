/** What a batch under an idempotency key came to when it was done, as its receipt in the log says. */
import { ServiceError } from '../errors.ts';
import type { LogStore } from '../log/log-store.ts';
import { readOutcome } from '../projections/receipts/outcome.ts';

export async function receiptedOutcome(log: Pick<LogStore, 'read'>, leaf: number): Promise<ReturnType<typeof readOutcome>> {
  for await (const { body } of log.read(leaf)) {
    if (body.kind === 'receipt') return readOutcome(body.outcome);
    break;
  }
  throw new ServiceError('REL_STORAGE', 'the receipt of the request is not where it was put');
}
