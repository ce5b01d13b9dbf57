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
  const { key, batch, request, last } = receipt;
  const known = receipts.find(key, next.time);
  const done = known?.batches[batch];
  if (known !== undefined && done !== undefined) {
    const lastOfRequest = known.complete && batch === known.batches.length - 1;
    if (done.request !== request || lastOfRequest !== last) throw otherRequest();
    return { ...decideNothing('put-rows', 0, []), receiptLeaf: done.leaf };
  }
  if ((known?.batches.length ?? 0) !== batch || known?.complete === true) throw otherRequest();
  const { drafts, outcome: ofRows } = decideRows();
  const outcome = inStream(ofRows, receipt);
  const body = { kind: 'receipt' as const, key, batch, request, outcome: outcomeText(outcome, last, hidesKeys) };
  return { drafts: [...drafts, { context: context.entry, body }], outcome };
}

/** Rejections by index in the request, those included that were refused before the command was made. */
function inStream(outcome: Decision['outcome'], { firstIndex, indexes, refused }: BatchReceipt): Decision['outcome'] {
  const own = outcome.errors.map((error) => ({ ...error, index: indexes?.[error.index] ?? firstIndex + error.index }));
  const errors = [...refused, ...own].sort((a, b) => a.index - b.index).slice(0, outcomeLimits.errorsListed);
  return { ...outcome, errors, rejected: outcome.rejected + refused.length };
}

const otherRequest = (): ServiceError =>
  new ServiceError('REL_UNPROCESSABLE', 'the Idempotency-Key was used for another request; a new request needs a new key');
