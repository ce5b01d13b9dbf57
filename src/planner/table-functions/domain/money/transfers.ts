/** Transfers in the order of time, and by the accounts that they leave and reach. */
import { compareText } from '../../../../log/values/value.ts';
import { forEachInSteps, numbersBelow, type Steps, sortInSteps } from '../../../graph/stepped-sort.ts';
import type { DomainCall } from '../domain-function.ts';
import { TextMap } from '../text-map.ts';

export interface TransferRow {
  readonly from: string;
  readonly to: string;
  readonly amount: number;
  readonly currency: string;
  /** Nanoseconds. */
  readonly at: bigint;
  readonly txid: string;
  readonly nodeId: string | null;
  readonly type: string;
}

/**
 * Numbers of transfers are their order: by instant, then by `txid`, then as they were read. An account holds each currency
 * apart: a holding is an account with a currency.
 */
export class Transfers {
  readonly #transferRows: readonly TransferRow[];
  readonly #transferOrder: Int32Array;
  /** By transfer: the holding that it leaves, and the one that it reaches. */
  readonly sources: Int32Array;
  readonly targets: Int32Array;
  readonly amounts: Float64Array;
  readonly #holdingsByAccount: TextMap<number[]>;
  readonly accounts: readonly string[];
  readonly #leavingTransfers: TransferLists;
  readonly #reachingTransfers: TransferLists;

  private constructor(transfersFields: SortedTransfers) {
    this.#transferRows = transfersFields.rows;
    this.#transferOrder = transfersFields.order;
    this.sources = transfersFields.sources;
    this.targets = transfersFields.targets;
    this.amounts = transfersFields.amounts;
    this.accounts = transfersFields.accounts;
    this.#holdingsByAccount = transfersFields.holdings;
    this.#leavingTransfers = transfersFields.leaving;
    this.#reachingTransfers = transfersFields.reaching;
  }

  static *fromRows(transferRows: readonly TransferRow[]): Steps<Transfers> {
    const transferOrder = yield* sortInSteps(
      numbersBelow(transferRows.length),
      (a, b) => compareTransfers(transferRows[a]!, transferRows[b]!) || a - b,
    );
    const holdingNumbers = new TextMap<number>();
    const holdingsByAccount = new TextMap<number[]>();
    const holdingAccounts: string[] = [];
    const holdingOf = (account: string, currency: string): number => {
      const holdingKey = `${currency}\u0000${account}`;
      const knownHolding = holdingNumbers.get(holdingKey);
      if (knownHolding !== undefined) return knownHolding;
      const newHolding = holdingAccounts.push(account) - 1;
      holdingNumbers.set(holdingKey, newHolding);
      const accountHoldings = holdingsByAccount.get(account);
      if (accountHoldings === undefined) holdingsByAccount.set(account, [newHolding]);
      else accountHoldings.push(newHolding);
      return newHolding;
    };
    const [sourceHoldings, targetHoldings] = [new Int32Array(transferOrder.length), new Int32Array(transferOrder.length)];
    const amounts = new Float64Array(transferOrder.length);
    const numberHoldings = (transfer: number): void => {
      const { from, to, currency, amount } = transferRows[transferOrder[transfer]!]!;
      sourceHoldings[transfer] = holdingOf(from, currency);
      targetHoldings[transfer] = holdingOf(to, currency);
      amounts[transfer] = amount;
    };
    yield* forEachInSteps(transferOrder.length, numberHoldings, numberedTransfers);
    const leavingTransfers = yield* TransferLists.fromOwners(sourceHoldings, holdingAccounts.length);
    const reachingTransfers = yield* TransferLists.fromOwners(targetHoldings, holdingAccounts.length);
    return new Transfers({
      rows: transferRows,
      order: transferOrder,
      sources: sourceHoldings,
      targets: targetHoldings,
      amounts,
      accounts: holdingAccounts,
      holdings: holdingsByAccount,
      leaving: leavingTransfers,
      reaching: reachingTransfers,
    });
  }

  get count(): number {
    return this.#transferOrder.length;
  }

  row(transfer: number): TransferRow {
    return this.#transferRows[this.#transferOrder[transfer]!]!;
  }

  holdingsOf(account: string): readonly number[] {
    return this.#holdingsByAccount.get(account) ?? [];
  }

  /** In the order of time. */
  leaving(holding: number): Int32Array {
    return this.#leavingTransfers.listOf(holding);
  }

  reaching(holding: number): Int32Array {
    return this.#reachingTransfers.listOf(holding);
  }
}

interface SortedTransfers extends Pick<Transfers, 'sources' | 'targets' | 'amounts' | 'accounts'> {
  readonly rows: readonly TransferRow[];
  readonly order: Int32Array;
  readonly holdings: TextMap<number[]>;
  readonly leaving: TransferLists;
  readonly reaching: TransferLists;
}

/** Two look-ups of texts each. */
const numberedTransfers = 1 << 11;

/** Numbers by what they belong to, ascending. */
class TransferLists {
  readonly #listBegins: Int32Array;
  readonly #listedTransfers: Int32Array;

  private constructor(listBegins: Int32Array, listedTransfers: Int32Array) {
    this.#listBegins = listBegins;
    this.#listedTransfers = listedTransfers;
  }

  static *fromOwners(transferOwners: Int32Array, count: number): Steps<TransferLists> {
    const listBegins = new Int32Array(count + 1);
    yield* forEachInSteps(transferOwners.length, (i) => listBegins[transferOwners[i]! + 1]!++);
    yield* forEachInSteps(count, (i) => (listBegins[i + 1]! += listBegins[i]!));
    const nextInList = listBegins.slice();
    const listedTransfers = new Int32Array(transferOwners.length);
    yield* forEachInSteps(transferOwners.length, (i) => (listedTransfers[nextInList[transferOwners[i]!]!++] = i));
    return new TransferLists(listBegins, listedTransfers);
  }

  listOf(listOwner: number): Int32Array {
    return this.#listedTransfers.subarray(this.#listBegins[listOwner], this.#listBegins[listOwner + 1]);
  }
}

function compareTransfers(oneTransfer: TransferRow, otherTransfer: TransferRow): number {
  if (oneTransfer.at !== otherTransfer.at) return oneTransfer.at < otherTransfer.at ? -1 : 1;
  return oneTransfer.txid === otherTransfer.txid ? 0 : compareText(oneTransfer.txid, otherTransfer.txid);
}

/** The first place in an ascending list that holds at least `leastTransfer`. */
export function firstFrom(transferNumbers: Int32Array, leastTransfer: number): number {
  let lowTransfer = 0;
  let highTransfer = transferNumbers.length;
  while (lowTransfer < highTransfer) {
    const middleTransfer = (lowTransfer + highTransfer) >> 1;
    if (transferNumbers[middleTransfer]! < leastTransfer) lowTransfer = middleTransfer + 1;
    else highTransfer = middleTransfer;
  }
  return lowTransfer;
}

const transferBytes = 300;

/** All that may be seen; one without both ends, an amount above nothing or an instant is none. The instant is `at`, else when the row began to be true. */
export function transfersOf(call: DomainCall): Steps<Transfers> {
  return call.reuse('transfers', ['transfer'], () => readTransferRows(call));
}

function* readTransferRows(transferCall: DomainCall): Steps<{ readonly value: Transfers; readonly bytes: number }> {
  const transferRows: TransferRow[] = [];
  yield* transferCall.rows('transfer', ['from', 'to', 'amount', 'currency', 'at', 'txid'], (transferBatch) => {
    for (let transferRow = 0; transferRow < transferBatch.count; transferRow++) {
      const [from, to, amount] = [
        transferBatch.text('from', transferRow),
        transferBatch.text('to', transferRow),
        transferBatch.number('amount', transferRow),
      ];
      const transferAt = transferBatch.instant('at', transferRow) ?? transferBatch.instant('valid_from', transferRow);
      if (from === null || to === null || transferAt === null || amount === null || !(amount > 0)) continue;
      const nodeId = transferBatch.nodeId(transferRow);
      const txid = transferBatch.text('txid', transferRow) ?? nodeId ?? '';
      transferRows.push({
        from,
        to,
        amount,
        currency: transferBatch.text('currency', transferRow) ?? '',
        at: transferAt,
        txid,
        nodeId,
        type: transferBatch.type,
      });
    }
    transferCall.hold(transferRows.length * transferBytes);
  });
  const transfersRead = yield* Transfers.fromRows(transferRows);
  return { value: transfersRead, bytes: transferRows.length * transferBytes };
}
