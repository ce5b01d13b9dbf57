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
  readonly #rows: readonly TransferRow[];
  readonly #order: Int32Array;
  /** By transfer: the holding that it leaves, and the one that it reaches. */
  readonly sources: Int32Array;
  readonly targets: Int32Array;
  readonly amounts: Float64Array;
  readonly #holdings: TextMap<number[]>;
  readonly accounts: readonly string[];
  readonly #leaving: Lists;
  readonly #reaching: Lists;

  private constructor(parts: SortedTransfers) {
    this.#rows = parts.rows;
    this.#order = parts.order;
    this.sources = parts.sources;
    this.targets = parts.targets;
    this.amounts = parts.amounts;
    this.accounts = parts.accounts;
    this.#holdings = parts.holdings;
    this.#leaving = parts.leaving;
    this.#reaching = parts.reaching;
  }

  static *fromRows(rows: readonly TransferRow[]): Steps<Transfers> {
    const order = yield* sortInSteps(numbersBelow(rows.length), (a, b) => compareRows(rows[a]!, rows[b]!) || a - b);
    const numbers = new TextMap<number>();
    const holdings = new TextMap<number[]>();
    const accounts: string[] = [];
    const holdingOf = (account: string, currency: string): number => {
      const key = `${currency}\u0000${account}`;
      const known = numbers.get(key);
      if (known !== undefined) return known;
      const number = accounts.push(account) - 1;
      numbers.set(key, number);
      const all = holdings.get(account);
      if (all === undefined) holdings.set(account, [number]);
      else all.push(number);
      return number;
    };
    const [sources, targets] = [new Int32Array(order.length), new Int32Array(order.length)];
    const amounts = new Float64Array(order.length);
    const number = (transfer: number): void => {
      const { from, to, currency, amount } = rows[order[transfer]!]!;
      sources[transfer] = holdingOf(from, currency);
      targets[transfer] = holdingOf(to, currency);
      amounts[transfer] = amount;
    };
    yield* forEachInSteps(order.length, number, numberedAtOnce);
    const leaving = yield* Lists.fromOwners(sources, accounts.length);
    const reaching = yield* Lists.fromOwners(targets, accounts.length);
    return new Transfers({ rows, order, sources, targets, amounts, accounts, holdings, leaving, reaching });
  }

  get count(): number {
    return this.#order.length;
  }

  row(transfer: number): TransferRow {
    return this.#rows[this.#order[transfer]!]!;
  }

  holdingsOf(account: string): readonly number[] {
    return this.#holdings.get(account) ?? [];
  }

  /** In the order of time. */
  leaving(holding: number): Int32Array {
    return this.#leaving.listOf(holding);
  }

  reaching(holding: number): Int32Array {
    return this.#reaching.listOf(holding);
  }
}

interface SortedTransfers extends Pick<Transfers, 'sources' | 'targets' | 'amounts' | 'accounts'> {
  readonly rows: readonly TransferRow[];
  readonly order: Int32Array;
  readonly holdings: TextMap<number[]>;
  readonly leaving: Lists;
  readonly reaching: Lists;
}

/** Two look-ups of texts each. */
const numberedAtOnce = 1 << 11;

/** Numbers by what they belong to, ascending. */
class Lists {
  readonly #begins: Int32Array;
  readonly #numbers: Int32Array;

  private constructor(begins: Int32Array, numbers: Int32Array) {
    this.#begins = begins;
    this.#numbers = numbers;
  }

  static *fromOwners(owners: Int32Array, count: number): Steps<Lists> {
    const begins = new Int32Array(count + 1);
    yield* forEachInSteps(owners.length, (i) => begins[owners[i]! + 1]!++);
    yield* forEachInSteps(count, (i) => (begins[i + 1]! += begins[i]!));
    const next = begins.slice();
    const numbers = new Int32Array(owners.length);
    yield* forEachInSteps(owners.length, (i) => (numbers[next[owners[i]!]!++] = i));
    return new Lists(begins, numbers);
  }

  listOf(owner: number): Int32Array {
    return this.#numbers.subarray(this.#begins[owner], this.#begins[owner + 1]);
  }
}

function compareRows(a: TransferRow, b: TransferRow): number {
  if (a.at !== b.at) return a.at < b.at ? -1 : 1;
  return a.txid === b.txid ? 0 : compareText(a.txid, b.txid);
}

/** The first place in an ascending list that holds at least `least`. */
export function firstFrom(numbers: Int32Array, least: number): number {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle]! < least) low = middle + 1;
    else high = middle;
  }
  return low;
}

const bytesPerTransfer = 300;

/** All that may be seen; one without both ends, an amount above nothing or an instant is none. The instant is `at`, else when the row began to be true. */
export function transfersOf(call: DomainCall): Steps<Transfers> {
  return call.reuse('transfers', ['transfer'], () => readTransfers(call));
}

function* readTransfers(call: DomainCall): Steps<{ readonly value: Transfers; readonly bytes: number }> {
  const rows: TransferRow[] = [];
  yield* call.rows('transfer', ['from', 'to', 'amount', 'currency', 'at', 'txid'], (batch) => {
    for (let row = 0; row < batch.count; row++) {
      const [from, to, amount] = [batch.text('from', row), batch.text('to', row), batch.number('amount', row)];
      const at = batch.instant('at', row) ?? batch.instant('valid_from', row);
      if (from === null || to === null || at === null || amount === null || !(amount > 0)) continue;
      const nodeId = batch.nodeId(row);
      const txid = batch.text('txid', row) ?? nodeId ?? '';
      rows.push({ from, to, amount, currency: batch.text('currency', row) ?? '', at, txid, nodeId, type: batch.type });
    }
    call.hold(rows.length * bytesPerTransfer);
  });
  const value = yield* Transfers.fromRows(rows);
  return { value, bytes: rows.length * bytesPerTransfer };
}
