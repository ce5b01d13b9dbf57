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
  run: traceHawala,
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

function* traceHawala(hawalaCall: DomainCall): Steps<readonly DomainRow[]> {
  const [hopsMax, feePct, windowHours] = [
    hawalaCall.number('MAX_HOPS', 5),
    hawalaCall.number('FEE_PCT', 5),
    hawalaCall.number('WINDOW_HOURS', 72),
  ];
  const hawalaTransfers = yield* transfersOf(hawalaCall);
  const transfersByAmount = yield* hawalaCall.reuse('by amount', ['transfer'], () => amountsOf(hawalaTransfers));
  const hawalaOptions = { hopsMax, feePct, window: windowOf(windowHours) };
  const hawalaLegs = yield* legsFrom(hawalaTransfers, transfersByAmount, hawalaCall.text('SEED')!, hawalaOptions, (count) =>
    hawalaCall.look(count),
  );
  hawalaCall.hold(hawalaLegs.length * 512);
  return yield* mapInSteps(
    hawalaLegs,
    ({ transfer, before: legBefore, hop: legHop, isHawala, residualPct, settlement }): DomainRow => {
      const { from, to, at, amount, currency, nodeId, type } = hawalaTransfers.row(transfer);
      const settlementTxid = settlement < 0 ? null : hawalaTransfers.row(settlement).txid;
      const paidInTransfer = legBefore < 0 ? null : hawalaTransfers.row(legBefore);
      const amountCloseness = feePct === 0 ? 1 : 1 - residualPct / feePct;
      return {
        nodeId,
        type,
        cells: [
          BigInt(legHop),
          isHawala ? 'hawala' : 'transfer',
          from,
          to,
          at,
          amount,
          residualPct,
          isHawala ? paidInTransfer!.to : null,
          settlementTxid,
        ],
        score: isHawala ? 0.3 + 0.2 * amountCloseness + (settlement < 0 ? 0 : 0.4) : 1,
        evidence: { currency, paid_in: paidInTransfer?.txid ?? null, fee_pct: feePct, window_hours: windowHours },
      };
    },
  );
}

/** Transfers of each currency by amount. */
export interface ByAmount {
  readonly order: ReadonlyMap<string, { readonly transfers: Int32Array; readonly amounts: Float64Array }>;
}

export function* amountsOf(transfers: Transfers): Steps<{ readonly value: ByAmount; readonly bytes: number }> {
  const transfersByCurrency = new Map<string, number[]>();
  for (let currencyTransfer = 0; currencyTransfer < transfers.count; currencyTransfer++) {
    const { currency } = transfers.row(currencyTransfer);
    const currencyTransfers = transfersByCurrency.get(currency);
    if (currencyTransfers === undefined) transfersByCurrency.set(currency, [currencyTransfer]);
    else currencyTransfers.push(currencyTransfer);
    if (currencyTransfer % 65_536 === 65_535) yield;
  }
  const amountOrders = new Map<string, { readonly transfers: Int32Array; readonly amounts: Float64Array }>();
  for (const [currency, all] of transfersByCurrency) {
    const transfersByAmount = yield* sortInSteps(
      Int32Array.from(all),
      (a, b) => transfers.amounts[a]! - transfers.amounts[b]! || a - b,
    );
    amountOrders.set(currency, {
      transfers: transfersByAmount,
      amounts: Float64Array.from(transfersByAmount, (transfer) => transfers.amounts[transfer]!),
    });
  }
  return { value: { order: amountOrders }, bytes: transfers.count * 12 };
}

/** Legs in the order of hops, then of time. Each transfer is one leg, of the fewest hops. */
export function* legsFrom(
  transfers: Transfers,
  byAmount: ByAmount,
  seedAccount: string,
  { hopsMax, feePct, window: legWindow }: HawalaOptions,
  countLooks: (count: number) => void,
): Steps<readonly Leg[]> {
  const hawalaLegs = new Map<number, Leg>();
  let frontierTransfers: number[] = [];
  for (const holding of transfers.holdingsOf(seedAccount)) {
    for (const payOutTransfer of transfers.leaving(holding)) {
      hawalaLegs.set(payOutTransfer, {
        transfer: payOutTransfer,
        before: -1,
        hop: 1,
        isHawala: false,
        residualPct: 0,
        settlement: -1,
      });
      frontierTransfers.push(payOutTransfer);
    }
  }
  for (let legHop = 2; legHop <= hopsMax && frontierTransfers.length > 0; legHop++) {
    frontierTransfers = Array.from(yield* sortInSteps(Int32Array.from(frontierTransfers), (a, b) => a - b));
    const nextFrontier: number[] = [];
    for (const paidInTransfer of frontierTransfers) {
      yield;
      const { at, amount, to: broker, currency } = transfers.row(paidInTransfer);
      const leastAmount = amount * (1 - feePct / 100) * (1 - amountRounding);
      const sameCurrencyAmounts = byAmount.order.get(currency)!;
      for (let i = firstAmountFrom(sameCurrencyAmounts.amounts, leastAmount); i < sameCurrencyAmounts.amounts.length; i++) {
        if (sameCurrencyAmounts.amounts[i]! > amount * (1 + amountRounding)) break;
        countLooks(1);
        if (i % hawalaLegsAtOnce === 0) yield;
        const payOutTransfer = sameCurrencyAmounts.transfers[i]!;
        const payOutRow = transfers.row(payOutTransfer);
        if (payOutTransfer <= paidInTransfer || payOutRow.at > at + legWindow || hawalaLegs.has(payOutTransfer)) continue;
        if (payOutRow.from === seedAccount || payOutRow.to === seedAccount || payOutRow.to === broker) continue;
        const isHawala = payOutRow.from !== broker;
        // A payer whom the broker paid meanwhile passes on a transfer that is a leg of its own.
        if (isHawala && hasBrokerPaid(transfers, broker, payOutRow.from, currency, paidInTransfer, payOutTransfer, countLooks))
          continue;
        const legSettlement = isHawala
          ? brokerSettlement(transfers, broker, payOutRow.from, currency, payOutTransfer, countLooks)
          : -1;
        const residualPct = Math.max(0, ((amount - payOutRow.amount) / amount) * 100);
        hawalaLegs.set(payOutTransfer, {
          transfer: payOutTransfer,
          before: paidInTransfer,
          hop: legHop,
          isHawala,
          residualPct,
          settlement: legSettlement,
        });
        nextFrontier.push(payOutTransfer);
      }
    }
    frontierTransfers = nextFrontier;
  }
  return yield* sortItemsInSteps([...hawalaLegs.values()], (a, b) => a.hop - b.hop || a.transfer - b.transfer);
}

const amountRounding = 1e-12;
/** Payments between brokers are looked up for each. */
const hawalaLegsAtOnce = 256;

/** Whether one account paid another between two transfers. */
function hasBrokerPaid(
  transfers: Transfers,
  payingBroker: string,
  paidBroker: string,
  currency: string,
  afterTransfer: number,
  beforeTransfer: number,
  look: (count: number) => void,
): boolean {
  const paymentBetween = firstBrokerPayment(transfers, payingBroker, paidBroker, currency, afterTransfer, look);
  return paymentBetween >= 0 && paymentBetween < beforeTransfer;
}

/** The first payment between two brokers, either way, behind a leg. */
function brokerSettlement(
  transfers: Transfers,
  broker: string,
  otherBroker: string,
  currency: string,
  afterTransfer: number,
  look: (count: number) => void,
): number {
  const paymentThere = firstBrokerPayment(transfers, broker, otherBroker, currency, afterTransfer, look);
  const paymentBack = firstBrokerPayment(transfers, otherBroker, broker, currency, afterTransfer, look);
  if (paymentThere < 0 || paymentBack < 0) return Math.max(paymentThere, paymentBack);
  return Math.min(paymentThere, paymentBack);
}

function firstBrokerPayment(
  transfers: Transfers,
  payingBroker: string,
  paidBroker: string,
  currency: string,
  afterTransfer: number,
  look: (count: number) => void,
): number {
  for (const brokerHolding of transfers.holdingsOf(payingBroker)) {
    const leavingTransfers = transfers.leaving(brokerHolding);
    const firstLeaving = firstFrom(leavingTransfers, afterTransfer + 1);
    if (firstLeaving === leavingTransfers.length || transfers.row(leavingTransfers[firstLeaving]!).currency !== currency)
      continue;
    for (let i = firstLeaving; i < leavingTransfers.length; i++) {
      look(1);
      if (transfers.accounts[transfers.targets[leavingTransfers[i]!]!] === paidBroker) return leavingTransfers[i]!;
    }
  }
  return -1;
}

function firstAmountFrom(amounts: Float64Array, leastAmount: number): number {
  let lowAmount = 0;
  let highAmount = amounts.length;
  while (lowAmount < highAmount) {
    const middleAmount = (lowAmount + highAmount) >> 1;
    if (amounts[middleAmount]! < leastAmount) lowAmount = middleAmount + 1;
    else highAmount = middleAmount;
  }
  return lowAmount;
}
