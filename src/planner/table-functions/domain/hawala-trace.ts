/** HAWALA_TRACE: money that goes on without a transfer. Source: specification, "SQL dialect", the table of operators. */
import { mapInSteps, sortInSteps, sortItemsInSteps, type Steps } from '../../graph/stepped-sort.ts';
import type { TableFunction } from '../../calls/table-function.ts';
import { type DomainCall, domainFunction, type DomainRow } from './domain-function.ts';
import { firstFrom, type Transfers, transfersOf } from './money/transfers.ts';
import { windowOf } from './wire-reconstruction.ts';

export const hawalaTrace: TableFunction = domainFunction({
  name: 'HAWALA_TRACE',
  summary: 'Where money went, also where it was paid in at one broker and paid out by another without a transfer between them.',
  method: 'hawala/1',
  arguments: [
    { name: 'SEED', kind: 'key', required: true, summary: 'the account that pays in first' },
    { name: 'MAX_HOPS', kind: 'integer', least: 1, most: 10, summary: 'legs one after the other, 1 to 10; 5 by default' },
    { name: 'FEE_PCT', kind: 'number', least: 0, most: 100, summary: 'percent that a leg may cost at most; 5 by default' },
    { name: 'WINDOW_HOURS', kind: 'number', least: 0, summary: 'hours within which a leg is paid out; 72 by default' },
  ],
  roles: [{ role: 'transfer' }],
  columns: [
    { name: 'hop', type: 'integer' },
    { name: 'kind', type: 'string' },
    { name: 'from', type: 'string' },
    { name: 'to', type: 'string' },
    { name: 'at', type: 'timestamp' },
    { name: 'amount', type: 'number' },
    { name: 'residual_pct', type: 'number' },
    { name: 'broker', type: 'string' },
    { name: 'settled_by', type: 'string' },
  ],
  isOrdered: true,
  run: trace,
});

export interface Leg {
  /** The transfer that pays out. */
  readonly transfer: number;
  /** The transfer that paid in; -1: this is the seed's own. */
  readonly before: number;
  readonly hop: number;
  /** Paid out by somebody who was not paid by the one who took the money. */
  readonly isHawala: boolean;
  /** Percent of what was paid in that was not paid out. */
  readonly residualPct: number;
  /** Between the two brokers, after the leg; -1: none. */
  readonly settlement: number;
}

export interface HawalaOptions {
  readonly hopsMax: number;
  readonly feePct: number;
  readonly window: bigint;
}

function* trace(call: DomainCall): Steps<readonly DomainRow[]> {
  const [hopsMax, feePct, hours] = [call.number('MAX_HOPS', 5), call.number('FEE_PCT', 5), call.number('WINDOW_HOURS', 72)];
  const transfers = yield* transfersOf(call);
  const byAmount = yield* call.reuse('by amount', ['transfer'], () => amountsOf(transfers));
  const options = { hopsMax, feePct, window: windowOf(hours) };
  const legs = yield* legsFrom(transfers, byAmount, call.text('SEED')!, options, (count) => call.look(count));
  call.hold(legs.length * 512);
  return yield* mapInSteps(legs, ({ transfer, before, hop, isHawala, residualPct, settlement }): DomainRow => {
    const { from, to, at, amount, currency, nodeId, type } = transfers.row(transfer);
    const settled = settlement < 0 ? null : transfers.row(settlement).txid;
    const paidIn = before < 0 ? null : transfers.row(before);
    const closeness = feePct === 0 ? 1 : 1 - residualPct / feePct;
    return {
      nodeId,
      type,
      cells: [
        BigInt(hop),
        isHawala ? 'hawala' : 'transfer',
        from,
        to,
        at,
        amount,
        residualPct,
        isHawala ? paidIn!.to : null,
        settled,
      ],
      score: isHawala ? 0.3 + 0.2 * closeness + (settlement < 0 ? 0 : 0.4) : 1,
      evidence: { currency, paid_in: paidIn?.txid ?? null, fee_pct: feePct, window_hours: hours },
    };
  });
}

/** Transfers of each currency by amount. */
export interface ByAmount {
  readonly order: ReadonlyMap<string, { readonly transfers: Int32Array; readonly amounts: Float64Array }>;
}

export function* amountsOf(transfers: Transfers): Steps<{ readonly value: ByAmount; readonly bytes: number }> {
  const byCurrency = new Map<string, number[]>();
  for (let transfer = 0; transfer < transfers.count; transfer++) {
    const { currency } = transfers.row(transfer);
    const all = byCurrency.get(currency);
    if (all === undefined) byCurrency.set(currency, [transfer]);
    else all.push(transfer);
    if (transfer % 65_536 === 65_535) yield;
  }
  const order = new Map<string, { readonly transfers: Int32Array; readonly amounts: Float64Array }>();
  for (const [currency, all] of byCurrency) {
    const numbers = yield* sortInSteps(Int32Array.from(all), (a, b) => transfers.amounts[a]! - transfers.amounts[b]! || a - b);
    order.set(currency, { transfers: numbers, amounts: Float64Array.from(numbers, (transfer) => transfers.amounts[transfer]!) });
  }
  return { value: { order }, bytes: transfers.count * 12 };
}

/** Legs in the order of hops, then of time. Each transfer is one leg, of the fewest hops. */
export function* legsFrom(
  transfers: Transfers,
  byAmount: ByAmount,
  seed: string,
  { hopsMax, feePct, window }: HawalaOptions,
  look: (count: number) => void,
): Steps<readonly Leg[]> {
  const legs = new Map<number, Leg>();
  let frontier: number[] = [];
  for (const holding of transfers.holdingsOf(seed)) {
    for (const transfer of transfers.leaving(holding)) {
      legs.set(transfer, { transfer, before: -1, hop: 1, isHawala: false, residualPct: 0, settlement: -1 });
      frontier.push(transfer);
    }
  }
  for (let hop = 2; hop <= hopsMax && frontier.length > 0; hop++) {
    frontier = Array.from(yield* sortInSteps(Int32Array.from(frontier), (a, b) => a - b));
    const next: number[] = [];
    for (const paidIn of frontier) {
      yield;
      const { at, amount, to: broker, currency } = transfers.row(paidIn);
      const least = amount * (1 - feePct / 100) * (1 - rounding);
      const sameCurrency = byAmount.order.get(currency)!;
      for (let i = firstAmount(sameCurrency.amounts, least); i < sameCurrency.amounts.length; i++) {
        if (sameCurrency.amounts[i]! > amount * (1 + rounding)) break;
        look(1);
        if (i % legsAtOnce === 0) yield;
        const transfer = sameCurrency.transfers[i]!;
        const payOut = transfers.row(transfer);
        if (transfer <= paidIn || payOut.at > at + window || legs.has(transfer)) continue;
        if (payOut.from === seed || payOut.to === seed || payOut.to === broker) continue;
        const isHawala = payOut.from !== broker;
        // A payer whom the broker paid meanwhile passes on a transfer that is a leg of its own.
        if (isHawala && hasPaid(transfers, broker, payOut.from, currency, paidIn, transfer, look)) continue;
        const settlement = isHawala ? settlementOf(transfers, broker, payOut.from, currency, transfer, look) : -1;
        const residualPct = Math.max(0, ((amount - payOut.amount) / amount) * 100);
        legs.set(transfer, { transfer, before: paidIn, hop, isHawala, residualPct, settlement });
        next.push(transfer);
      }
    }
    frontier = next;
  }
  return yield* sortItemsInSteps([...legs.values()], (a, b) => a.hop - b.hop || a.transfer - b.transfer);
}

const rounding = 1e-12;
/** Payments between brokers are looked up for each. */
const legsAtOnce = 256;

/** Whether one account paid another between two transfers. */
function hasPaid(
  transfers: Transfers,
  from: string,
  to: string,
  currency: string,
  after: number,
  before: number,
  look: (count: number) => void,
): boolean {
  const between = firstPayment(transfers, from, to, currency, after, look);
  return between >= 0 && between < before;
}

/** The first payment between two brokers, either way, behind a leg. */
function settlementOf(
  transfers: Transfers,
  broker: string,
  other: string,
  currency: string,
  after: number,
  look: (count: number) => void,
): number {
  const there = firstPayment(transfers, broker, other, currency, after, look);
  const back = firstPayment(transfers, other, broker, currency, after, look);
  if (there < 0 || back < 0) return Math.max(there, back);
  return Math.min(there, back);
}

function firstPayment(
  transfers: Transfers,
  from: string,
  to: string,
  currency: string,
  after: number,
  look: (count: number) => void,
): number {
  for (const holding of transfers.holdingsOf(from)) {
    const leaving = transfers.leaving(holding);
    const first = firstFrom(leaving, after + 1);
    if (first === leaving.length || transfers.row(leaving[first]!).currency !== currency) continue;
    for (let i = first; i < leaving.length; i++) {
      look(1);
      if (transfers.accounts[transfers.targets[leaving[i]!]!] === to) return leaving[i]!;
    }
  }
  return -1;
}

function firstAmount(amounts: Float64Array, least: number): number {
  let low = 0;
  let high = amounts.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (amounts[middle]! < least) low = middle + 1;
    else high = middle;
  }
  return low;
}
