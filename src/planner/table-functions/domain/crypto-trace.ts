/** CRYPTO_TRACE: where money of a wallet went, or came from. Source: specification, "SQL dialect", the table of operators. */
import { sortItemsInSteps, type Steps } from '../../graph/stepped-sort.ts';
import type { TableFunction } from '../../calls/table-function.ts';
import { type DomainCall, domainFunction, type DomainRow } from './domain-function.ts';
import { type TaintedTransfer, taintFrom, type TaintMethod } from './money/taint.ts';
import { type Transfers, transfersOf } from './money/transfers.ts';

export const cryptoTrace: TableFunction = domainFunction({
  name: 'CRYPTO_TRACE',
  summary: 'Transfers that money of a wallet went through, hop by hop, with how much of each it is.',
  method: 'taint/1',
  arguments: [
    { name: 'WALLET', kind: 'key', required: true, summary: 'the wallet or account that is traced' },
    { name: 'MAX_HOPS', kind: 'integer', least: 1, most: 10, summary: 'transfers one after the other, 1 to 10; 5 by default' },
    { name: 'MIN_AMOUNT', kind: 'number', least: 0, summary: 'smaller transfers are not followed; 0 by default' },
    {
      name: 'METHOD',
      kind: 'word',
      choices: ['HAIRCUT', 'POISON', 'FIFO'],
      summary: "how tainted and clean money mix: 'haircut' (the default), 'poison' or 'fifo'",
    },
    {
      name: 'DIRECTION',
      kind: 'word',
      choices: ['OUT', 'IN'],
      summary: "'out' (the default): where it went; 'in': where it came from",
    },
  ],
  roles: [{ role: 'transfer' }],
  columns: [
    { name: 'hop', type: 'integer' },
    { name: 'from', type: 'string' },
    { name: 'to', type: 'string' },
    { name: 'txid', type: 'string' },
    { name: 'at', type: 'timestamp' },
    { name: 'amount', type: 'number' },
    { name: 'tainted', type: 'number' },
    { name: 'path', type: 'json' },
  ],
  isOrdered: true,
  run: trace,
});

function* trace(call: DomainCall): Steps<readonly DomainRow[]> {
  const wallet = call.text('WALLET')!;
  const method = (call.word('METHOD') ?? 'HAIRCUT').toLowerCase() as TaintMethod;
  const isBackward = call.word('DIRECTION') === 'IN';
  const options = { method, isBackward, hopsMax: call.number('MAX_HOPS', 5), amountMin: call.number('MIN_AMOUNT', 0) };
  const transfers = yield* transfersOf(call);
  const taintedTransfers = yield* taintFrom(transfers, wallet, options, (count) => call.look(count));
  call.hold(taintedTransfers.size * 512);
  // A number of a transfer is its place in time, then by `txid`.
  const inOrder = yield* sortItemsInSteps([...taintedTransfers.values()], (a, b) => a.hop - b.hop || a.transfer - b.transfer);
  yield;
  const rows: DomainRow[] = [];
  for (const { transfer, hop, tainted, before } of inOrder) {
    const { from, to, amount, currency, at, txid, type } = transfers.row(transfer);
    const reached = isBackward ? from : to;
    const path = [...pathTo(transfers, taintedTransfers, before, isBackward), isBackward ? to : from, reached];
    rows.push({
      nodeId: reached,
      type,
      cells: [BigInt(hop), from, to, txid, at, amount, tainted, JSON.stringify(path)],
      score: tainted / amount,
      method: `${method}/1`,
      evidence: { currency, transfer: transfers.row(transfer).nodeId },
    });
    if (rows.length % rowsAtOnce === 0) yield;
  }
  return rows;
}

const rowsAtOnce = 128;

/** The accounts before the one that a transfer leaves, the seed first. */
function pathTo(
  transfers: Transfers,
  tainted: ReadonlyMap<number, TaintedTransfer>,
  last: number,
  isBackward: boolean,
): readonly string[] {
  const path: string[] = [];
  for (let transfer = last; transfer >= 0; transfer = tainted.get(transfer)!.before) {
    const { from, to } = transfers.row(transfer);
    path.push(isBackward ? to : from);
  }
  return path.reverse();
}
