/**
 * A batch under an idempotency key is decided once. Done before, it writes nothing and points to its receipt; new, its
 * receipt goes into the same append as its rows, so neither can be without the other. Pure.
 */
import { ServiceError } from '../../errors.ts';
import type { NextPosition } from '../../log/log-store.ts';
import type { BatchReceipt } from '../command.ts';
import { type DecideContext, type Decision, decideNothing, outcomeLimits } from '../decision.ts';
import { outcomeText } from './receipt-outcome.ts';
import type { Receipts } from './projection.ts';

export function decideOnce(
  receipt: BatchReceipt,
  receipts: Receipts,
  hidesKeys: boolean,
  decideRows: () => Decision,
  context: DecideContext,
  next: NextPosition,
): Decision {
  const { key: idempotencyKey, batch, request, last: isLastBatch } = receipt;
  const knownReceipt = receipts.find(idempotencyKey, next.time);
  const receiptedBatch = knownReceipt?.batches[batch];
  if (knownReceipt !== undefined && receiptedBatch !== undefined) {
    const lastOfRequest = knownReceipt.complete && batch === knownReceipt.batches.length - 1;
    if (receiptedBatch.request !== request || lastOfRequest !== isLastBatch) throw otherRequestError();
    return { ...decideNothing('put-rows', 0, []), receiptLeaf: receiptedBatch.leaf };
  }
  if ((knownReceipt?.batches.length ?? 0) !== batch || knownReceipt?.complete === true) throw otherRequestError();
  const { drafts, outcome: rowsOutcome } = decideRows();
  const streamOutcome = outcomeInStream(rowsOutcome, receipt);
  const receiptBody = {
    kind: 'receipt' as const,
    key: idempotencyKey,
    batch,
    request,
    outcome: outcomeText(streamOutcome, isLastBatch, hidesKeys),
  };
  return { drafts: [...drafts, { context: context.entry, body: receiptBody }], outcome: streamOutcome };
}

/** Rejections by index in the request, those included that were refused before the command was made. */
function outcomeInStream(batchOutcome: Decision['outcome'], { firstIndex, indexes, refused }: BatchReceipt): Decision['outcome'] {
  const batchErrors = batchOutcome.errors.map((rowError) => ({
    ...rowError,
    index: indexes?.[rowError.index] ?? firstIndex + rowError.index,
  }));
  const errors = [...refused, ...batchErrors].sort((a, b) => a.index - b.index).slice(0, outcomeLimits.errorsListed);
  return { ...batchOutcome, errors, rejected: batchOutcome.rejected + refused.length };
}

const otherRequestError = (): ServiceError =>
  new ServiceError('REL_UNPROCESSABLE', 'the Idempotency-Key was used for another request; a new request needs a new key');
