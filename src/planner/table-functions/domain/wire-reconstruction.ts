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
  run: reconstruct,
});

export interface Chain {
  readonly incoming: number;
  readonly outgoing: readonly number[];
  /** Percent of the incoming sum that did not leave; below 0 where more left. */
  readonly residualPct: number;
  readonly isExact: boolean;
}

function* reconstruct(call: DomainCall): Steps<readonly DomainRow[]> {
  const account = call.text('ACCOUNT')!;
  const tolerance = call.number('TOLERANCE_PCT', 2);
  const hours = call.number('WINDOW_HOURS', 72);
  const transfers = yield* transfersOf(call);
  const chains = yield* chainsOf(transfers, account, tolerance, windowOf(hours), (count) => call.look(count));
  const rows = yield* mapInSteps(chains, ({ incoming, outgoing, residualPct, isExact }, chain) =>
    [incoming, ...outgoing].map((transfer, step): DomainRow => {
      const { from, to, at, amount, currency, nodeId, type } = transfers.row(transfer);
      return {
        nodeId,
        type,
        cells: [BigInt(chain), BigInt(step), from, to, at, amount, residualPct],
        score: tolerance === 0 ? 1 : 1 - Math.abs(residualPct) / tolerance,
        method: isExact ? 'subsets/1' : 'subsets-greedy/1',
        evidence: { currency, tolerance_pct: tolerance, window_hours: hours },
      };
    }),
  );
  return rows.flat();
}

export function windowOf(hours: number): bigint {
  return BigInt(Math.round(Math.min(hours, 1e9) * 3_600_000)) * 1_000_000n;
}

/** Sums in the order in which they came; a transfer that left is a part of one of them at most. */
export function* chainsOf(
  transfers: Transfers,
  account: string,
  tolerancePct: number,
  window: bigint,
  look: (count: number) => void,
): Steps<readonly Chain[]> {
  const chains: Chain[] = [];
  const taken = new Set<number>();
  for (const holding of transfers.holdingsOf(account)) {
    const leaving = transfers.leaving(holding);
    for (const incoming of transfers.reaching(holding)) {
      const { at, amount } = transfers.row(incoming);
      const tolerance = (amount * tolerancePct) / 100;
      const candidates: number[] = [];
      for (let i = firstFrom(leaving, incoming + 1); i < leaving.length; i++) {
        const transfer = leaving[i]!;
        if (transfers.row(transfer).at > at + window) break;
        look(1);
        if (i % stepsAtOnce === 0) yield;
        if (!taken.has(transfer) && transfers.amounts[transfer]! <= amount + tolerance) candidates.push(transfer);
      }
      const subset = yield* subsetOf(
        candidates.map((transfer) => transfers.amounts[transfer]!),
        amount,
        tolerance + amount * rounding,
      );
      look(candidates.length <= 20 ? 2 ** candidates.length : candidates.length);
      yield;
      if (subset === null) continue;
      const outgoing = subset.chosen.map((i) => candidates[i]!);
      for (const transfer of outgoing) taken.add(transfer);
      chains.push({ incoming, outgoing, residualPct: ((amount - subset.sum) / amount) * 100, isExact: subset.isExact });
    }
  }
  return yield* sortItemsInSteps(chains, (a, b) => a.incoming - b.incoming);
}

/** Cents that are added up may miss the sum by as much as doubles round. */
const rounding = 1e-12;
