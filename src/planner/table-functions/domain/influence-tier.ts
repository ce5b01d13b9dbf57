/** INFLUENCE_TIER: accounts by how many follow them. Source: specification, "SQL dialect", the table of operators. */
import type { Steps } from '../../graph/stepped-sort.ts';
import type { TableFunction } from '../../calls/table-function.ts';
import { type DomainCall, domainFunction, type DomainRow } from './domain-function.ts';
import type { RowsWanted } from './role-rows.ts';

/** The least followers of a tier. */
const influenceTiers = [
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
  run: influenceTierRows,
});

function* influenceTierRows(influenceCall: DomainCall): Steps<readonly DomainRow[]> {
  const accountId = influenceCall.text('ACCOUNT');
  const wantedAccount: RowsWanted | undefined = accountId === undefined ? undefined : { column: '_pk', texts: [accountId] };
  const tierRows: DomainRow[] = [];
  yield* influenceCall.rows(
    'account',
    ['followers'],
    (accountBatch) => {
      for (let accountRow = 0; accountRow < accountBatch.count; accountRow++) {
        const followers = accountBatch.number('followers', accountRow);
        const knownFollowers = followers !== null && followers >= 0 ? followers : null;
        const tierOrdinal = knownFollowers === null ? -1 : influenceTiers.findLastIndex(({ from }) => knownFollowers >= from);
        tierRows.push({
          nodeId: accountBatch.nodeId(accountRow),
          type: accountBatch.type,
          cells: [influenceTiers[tierOrdinal]?.name ?? null, knownFollowers === null ? null : BigInt(Math.floor(knownFollowers))],
          score: knownFollowers === null ? null : tierOrdinal / (influenceTiers.length - 1),
          evidence: knownFollowers === null ? { missing: 'followers' } : { followers: knownFollowers },
          systemFrom: accountBatch.systemFrom(accountRow),
        });
      }
      influenceCall.hold(tierRows.length * 256);
    },
    wantedAccount,
  );
  return tierRows;
}
