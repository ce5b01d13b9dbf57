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
  run: traceWallet,
});

function* traceWallet(walletCall: DomainCall): Steps<readonly DomainRow[]> {
  const tracedWallet = walletCall.text('WALLET')!;
  const taintMethod = (walletCall.word('METHOD') ?? 'HAIRCUT').toLowerCase() as TaintMethod;
  const isBackward = walletCall.word('DIRECTION') === 'IN';
  const taintOptions = {
    method: taintMethod,
    isBackward,
    hopsMax: walletCall.number('MAX_HOPS', 5),
    amountMin: walletCall.number('MIN_AMOUNT', 0),
  };
  const walletTransfers = yield* transfersOf(walletCall);
  const taintedTransfers = yield* taintFrom(walletTransfers, tracedWallet, taintOptions, (count) => walletCall.look(count));
  walletCall.hold(taintedTransfers.size * 512);
  // A number of a transfer is its place in time, then by `txid`.
  const orderedTransfers = yield* sortItemsInSteps(
    [...taintedTransfers.values()],
    (a, b) => a.hop - b.hop || a.transfer - b.transfer,
  );
  yield;
  const taintRows: DomainRow[] = [];
  for (const { transfer, hop: taintHop, tainted, before: previousTransfer } of orderedTransfers) {
    const { from, to, amount, currency, at, txid, type } = walletTransfers.row(transfer);
    const reachedWallet = isBackward ? from : to;
    const walletPath = [
      ...taintPath(walletTransfers, taintedTransfers, previousTransfer, isBackward),
      isBackward ? to : from,
      reachedWallet,
    ];
    taintRows.push({
      nodeId: reachedWallet,
      type,
      cells: [BigInt(taintHop), from, to, txid, at, amount, tainted, JSON.stringify(walletPath)],
      score: tainted / amount,
      method: `${taintMethod}/1`,
      evidence: { currency, transfer: walletTransfers.row(transfer).nodeId },
    });
    if (taintRows.length % taintRowsAtOnce === 0) yield;
  }
  return taintRows;
}

const taintRowsAtOnce = 128;

/** The accounts before the one that a transfer leaves, the seed first. */
function taintPath(
  transfers: Transfers,
  tainted: ReadonlyMap<number, TaintedTransfer>,
  lastTransfer: number,
  isBackward: boolean,
): readonly string[] {
  const walletPath: string[] = [];
  for (let taintedTransfer = lastTransfer; taintedTransfer >= 0; taintedTransfer = tainted.get(taintedTransfer)!.before) {
    const { from, to } = transfers.row(taintedTransfer);
    walletPath.push(isBackward ? to : from);
  }
  return walletPath.reverse();
}
