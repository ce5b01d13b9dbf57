/** INFLUENCE_TIER: accounts by how many follow them. Source: specification, "SQL dialect", the table of operators. */
import type { Steps } from '../../graph/stepped-sort.ts';
import type { TableFunction } from '../../calls/table-function.ts';
import { type DomainCall, domainFunction, type DomainRow } from './domain-function.ts';
import type { RowsWanted } from './role-rows.ts';

/** The least followers of a tier. */
const tiers = [
  { name: 'nano', from: 0 },
  { name: 'micro', from: 1_000 },
  { name: 'mid', from: 10_000 },
  { name: 'macro', from: 100_000 },
  { name: 'mega', from: 1_000_000 },
] as const;

export const influenceTier: TableFunction = domainFunction({
  name: 'INFLUENCE_TIER',
  summary:
    'Accounts by how many follow them: nano, micro from 1,000, mid from 10,000, macro from 100,000, mega from a million on.',
  method: 'followers/1',
  arguments: [{ name: 'ACCOUNT', kind: 'key', summary: 'id of the account; every account by default' }],
  roles: [{ role: 'account' }],
  columns: [
    { name: 'tier', type: 'string' },
    { name: 'followers', type: 'integer' },
  ],
  run: tiersOf,
});

function* tiersOf(call: DomainCall): Steps<readonly DomainRow[]> {
  const account = call.text('ACCOUNT');
  const wanted: RowsWanted | undefined = account === undefined ? undefined : { column: '_pk', texts: [account] };
  const rows: DomainRow[] = [];
  yield* call.rows(
    'account',
    ['followers'],
    (batch) => {
      for (let row = 0; row < batch.count; row++) {
        const followers = batch.number('followers', row);
        const known = followers !== null && followers >= 0 ? followers : null;
        const tier = known === null ? -1 : tiers.findLastIndex(({ from }) => known >= from);
        rows.push({
          nodeId: batch.nodeId(row),
          type: batch.type,
          cells: [tiers[tier]?.name ?? null, known === null ? null : BigInt(Math.floor(known))],
          score: known === null ? null : tier / (tiers.length - 1),
          evidence: known === null ? { missing: 'followers' } : { followers: known },
          systemFrom: batch.systemFrom(row),
        });
      }
      call.hold(rows.length * 256);
    },
    wanted,
  );
  return rows;
}
