/** The outcome of a batch under an idempotency key, read from its receipt in the log. */
import { ServiceError } from '../../errors.ts';
import { rowBodiesOf, type RowsBody, rowOp } from '../../log/entries/entry.ts';
import type { LogStore } from '../../log/log-store.ts';
import type { Timeline } from '../../log/values/timeline.ts';
import { cellAt } from '../../log/values/vector-builder.ts';
import { readOutcome, type Receipted } from '../../projections/receipts/receipt-outcome.ts';

export async function outcomeInReceipt(
  log: Pick<LogStore, 'read' | 'proofs'>,
  timeline: Pick<Timeline, 'positionAt'>,
  leaf: number,
): Promise<Receipted & { readonly ids: readonly string[] }> {
  for await (const { body } of log.read(leaf)) {
    if (body.kind !== 'receipt') break;
    const receiptOutcome = readOutcome(body.outcome);
    const { ids } = receiptOutcome;
    return { ...receiptOutcome, ids: typeof ids === 'number' ? await receiptedKeysOf(log, timeline, receiptOutcome, ids) : ids };
  }
  throw new ServiceError('REL_STORAGE', 'the log has no receipt of the request');
}

/** Keys of the rows themselves, as far as they are not erased. */
async function receiptedKeysOf(
  log: Pick<LogStore, 'proofs'>,
  timeline: Pick<Timeline, 'positionAt'>,
  { systemFrom, systemFromLast }: Receipted,
  count: number,
): Promise<readonly string[]> {
  const receiptedKeys: string[] = [];
  if (count === 0) return receiptedKeys;
  const lastPosition = timeline.positionAt(systemFromLast);
  for (let position = timeline.positionAt(systemFrom); position <= lastPosition && receiptedKeys.length < count; ) {
    const entry = (await log.proofs.entry({ position }))?.open().entry;
    if (entry === undefined) throw new ServiceError('REL_STORAGE', 'the log does not have the rows of the request');
    for (const body of rowBodiesOf(entry.body)) receiptedKeys.push(...putKeysOfBody(body));
    position = entry.position + entry.positions;
  }
  return receiptedKeys.slice(0, count);
}

function putKeysOfBody({ ops, keys, dropped = [] }: RowsBody): string[] {
  const droppedRowIds = new Set(dropped);
  const { vector } = keys.columns[0]!;
  const putRowKeys: string[] = [];
  for (let row = 0; row < ops.length; row++) {
    if (ops[row] === rowOp.put && !droppedRowIds.has(row)) putRowKeys.push(String(cellAt(vector, 'string', row)));
  }
  return putRowKeys;
}
