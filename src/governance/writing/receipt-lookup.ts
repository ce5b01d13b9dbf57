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
    const outcome = readOutcome(body.outcome);
    const { ids } = outcome;
    return { ...outcome, ids: typeof ids === 'number' ? await keysOf(log, timeline, outcome, ids) : ids };
  }
  throw new ServiceError('REL_STORAGE', 'the log has no receipt of the request');
}

/** Keys of the rows themselves, as far as they are not erased. */
async function keysOf(
  log: Pick<LogStore, 'proofs'>,
  timeline: Pick<Timeline, 'positionAt'>,
  { systemFrom, systemFromLast }: Receipted,
  count: number,
): Promise<readonly string[]> {
  const keys: string[] = [];
  if (count === 0) return keys;
  const last = timeline.positionAt(systemFromLast);
  for (let position = timeline.positionAt(systemFrom); position <= last && keys.length < count; ) {
    const entry = (await log.proofs.entry({ position }))?.open().entry;
    if (entry === undefined) throw new ServiceError('REL_STORAGE', 'the log does not have the rows of the request');
    for (const body of rowBodiesOf(entry.body)) keys.push(...putKeys(body));
    position = entry.position + entry.positions;
  }
  return keys.slice(0, count);
}

function putKeys({ ops, keys, dropped = [] }: RowsBody): string[] {
  const gone = new Set(dropped);
  const { vector } = keys.columns[0]!;
  const put: string[] = [];
  for (let row = 0; row < ops.length; row++) {
    if (ops[row] === rowOp.put && !gone.has(row)) put.push(String(cellAt(vector, 'string', row)));
  }
  return put;
}
