/** WIRE_RECONSTRUCTION: what came into an account and left it in parts. Source: specification, "SQL dialect", the table of operators. */
import { mapInSteps, sortItemsInSteps, type Steps, stepsAtOnce } from '../../graph/stepped-sort.ts';
import type { TableFunction } from '../../calls/table-function.ts';
import { type DomainCall, domainFunction, type DomainRow } from './domain-function.ts';
import { firstFrom, type Transfers, transfersOf } from './money/transfers.ts';
import { subsetOf } from './money/subset-sums.ts';

export const wireReconstruction: TableFunction = domainFunction({
  name: 'WIRE_RECONSTRUCTION',
  summary: 'Each sum that came into an account, with the transfers by which it left again.',
  method: 'subsets/1',
  arguments: [
    { name: 'ACCOUNT', kind: 'key', required: true, summary: 'the account that money passed through' },
    {
      name: 'TOLERANCE_PCT',
      kind: 'number',
      least: 0,
      most: 100,
      summary: 'percent of the sum that may be missing or too much; 2 by default',
    },
    { name: 'WINDOW_HOURS', kind: 'number', least: 0, summary: 'hours after which nothing of the sum leaves; 72 by default' },
  ],
  roles: [{ role: 'transfer' }],
  columns: [
    { name: 'chain', type: 'integer' },
    { name: 'step', type: 'integer' },
    { name: 'from', type: 'string' },
    { name: 'to', type: 'string' },
    { name: 'at', type: 'timestamp' },
    { name: 'amount', type: 'number' },
    { name: 'residual_pct', type: 'number' },
  ],
  isOrdered: true,
  run: reconstructChains,
});

export interface Chain {
  readonly incoming: number;
  readonly outgoing: readonly number[];
  /** Percent of the incoming sum that did not leave; below 0 where more left. */
  readonly residualPct: number;
  readonly isExact: boolean;
}

function* reconstructChains(wireCall: DomainCall): Steps<readonly DomainRow[]> {
  const wiredAccount = wireCall.text('ACCOUNT')!;
  const tolerancePct = wireCall.number('TOLERANCE_PCT', 2);
  const windowHours = wireCall.number('WINDOW_HOURS', 72);
  const wireTransfers = yield* transfersOf(wireCall);
  const wireChains = yield* chainsOf(wireTransfers, wiredAccount, tolerancePct, windowOf(windowHours), (count) =>
    wireCall.look(count),
  );
  const chainRows = yield* mapInSteps(wireChains, ({ incoming, outgoing, residualPct, isExact }, chainOrdinal) =>
    [incoming, ...outgoing].map((chainTransfer, chainStep): DomainRow => {
      const { from, to, at, amount, currency, nodeId, type } = wireTransfers.row(chainTransfer);
      return {
        nodeId,
        type,
        cells: [BigInt(chainOrdinal), BigInt(chainStep), from, to, at, amount, residualPct],
        score: tolerancePct === 0 ? 1 : 1 - Math.abs(residualPct) / tolerancePct,
        method: isExact ? 'subsets/1' : 'subsets-greedy/1',
        evidence: { currency, tolerance_pct: tolerancePct, window_hours: windowHours },
      };
    }),
  );
  return chainRows.flat();
}

export function windowOf(hours: number): bigint {
  return BigInt(Math.round(Math.min(hours, 1e9) * 3_600_000)) * 1_000_000n;
}

/** Sums in the order in which they came; a transfer that left is a part of one of them at most. */
export function* chainsOf(
  transfers: Transfers,
  wiredAccount: string,
  tolerancePct: number,
  chainWindow: bigint,
  countLooks: (count: number) => void,
): Steps<readonly Chain[]> {
  const wireChains: Chain[] = [];
  const takenTransfers = new Set<number>();
  for (const accountHolding of transfers.holdingsOf(wiredAccount)) {
    const leavingTransfers = transfers.leaving(accountHolding);
    for (const incomingTransfer of transfers.reaching(accountHolding)) {
      const { at, amount } = transfers.row(incomingTransfer);
      const toleratedAmount = (amount * tolerancePct) / 100;
      const candidateTransfers: number[] = [];
      for (let i = firstFrom(leavingTransfers, incomingTransfer + 1); i < leavingTransfers.length; i++) {
        const leavingTransfer = leavingTransfers[i]!;
        if (transfers.row(leavingTransfer).at > at + chainWindow) break;
        countLooks(1);
        if (i % stepsAtOnce === 0) yield;
        if (!takenTransfers.has(leavingTransfer) && transfers.amounts[leavingTransfer]! <= amount + toleratedAmount)
          candidateTransfers.push(leavingTransfer);
      }
      const chosenSubset = yield* subsetOf(
        candidateTransfers.map((leavingTransfer) => transfers.amounts[leavingTransfer]!),
        amount,
        toleratedAmount + amount * amountRounding,
      );
      countLooks(candidateTransfers.length <= 20 ? 2 ** candidateTransfers.length : candidateTransfers.length);
      yield;
      if (chosenSubset === null) continue;
      const outgoing = chosenSubset.chosen.map((i) => candidateTransfers[i]!);
      for (const transfer of outgoing) takenTransfers.add(transfer);
      wireChains.push({
        incoming: incomingTransfer,
        outgoing,
        residualPct: ((amount - chosenSubset.sum) / amount) * 100,
        isExact: chosenSubset.isExact,
      });
    }
  }
  return yield* sortItemsInSteps(wireChains, (a, b) => a.incoming - b.incoming);
}

/** Cents that are added up may miss the sum by as much as doubles round. */
const amountRounding = 1e-12;
