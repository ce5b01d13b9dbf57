/** BENEFICIAL_OWNERSHIP_CHAIN: who owns a party in the end. Source: specification, "SQL dialect", the table of operators. */
import type { Json } from '../../../log/values/canonical-json.ts';
import { formatInstant } from '../../../log/values/timestamp.ts';
import type { Steps } from '../../graph/stepped-sort.ts';
import type { TableFunction } from '../../calls/table-function.ts';
import { type DomainCall, domainFunction, type DomainRow } from './domain-function.ts';
import { effectiveShares, isHeldByHalf, overOwned, pathsAbove, reachedAbove, type Share } from './ownership-graph.ts';

export const beneficialOwnership: TableFunction = domainFunction({
  name: 'BENEFICIAL_OWNERSHIP_CHAIN',
  summary: 'Everyone who owns a part of a party, directly or through others, with how much that comes to.',
  method: 'ownership/1',
  arguments: [
    { name: 'ENTITY', kind: 'key', required: true, summary: 'id of the party that is owned' },
    { name: 'MAX_DEPTH', kind: 'integer', least: 1, most: 10, summary: 'steps from the party up, 1 to 10; 5 by default' },
  ],
  roles: [{ role: 'ownership' }, { role: 'party', optional: true }],
  columns: [
    { name: 'owner', type: 'string' },
    { name: 'depth', type: 'integer' },
    { name: 'paths', type: 'json' },
    { name: 'effective_pct', type: 'number' },
    { name: 'cascade_50', type: 'boolean' },
  ],
  run: ownersOf,
});

function* ownersOf(call: DomainCall): Steps<readonly DomainRow[]> {
  const entity = call.text('ENTITY')!;
  const depthMax = call.number('MAX_DEPTH', 5);
  const byOwned = yield* call.reuse('by owned', ['ownership'], () => readShares(call));
  const reached = reachedAbove(entity, byOwned, depthMax);
  const paths = yield* pathsAbove(entity, reached, depthMax, (count) => call.look(count));
  const effective = effectiveShares(entity, reached);
  const over = overOwned(reached);
  const types = yield* typesOf(call, [...paths.keys()]);
  const rows: DomainRow[] = [];
  for (const [owner, ways] of paths) {
    if (rows.length % rowsAtOnce === rowsAtOnce - 1) yield;
    call.look(reached.depths.size);
    const share = effective?.get(owner) ?? null;
    const unknown = ways.filter((way) => way.some(({ pct }) => pct === null)).length;
    const known = unknown === ways.length ? null : share;
    const above = [...new Set(ways.flat().map(({ owned }) => owned))].filter((owned) => over.has(owned));
    rows.push({
      nodeId: owner,
      type: types.get(owner) ?? null,
      cells: [
        owner,
        BigInt(reached.depths.get(owner)!),
        JSON.stringify(ways.map(wayOf)),
        known,
        isHeldByHalf(owner, entity, reached),
      ],
      score: known === null ? null : Math.min(1, known / 100),
      evidence: {
        paths: ways.length,
        ...(unknown > 0 && { paths_of_unknown_share: unknown }),
        ...(effective === null && { not_convergent: true }),
        ...(above.length > 0 && { over_100: above.map((owned) => ({ owned, total_pct: over.get(owned)! })) }),
      },
    });
  }
  return rows;
}

const rowsAtOnce = 16;

function wayOf(way: readonly Share[]): Json {
  const pct = way.some((share) => share.pct === null) ? null : way.reduce((product, share) => (product * share.pct!) / 100, 100);
  const edges = way.map(({ owner, owned, pct: share, validFrom, validTo }) => ({
    owner,
    owned,
    pct: share,
    valid_from: validFrom === null ? null : formatInstant(validFrom),
    valid_to: validTo === null ? null : formatInstant(validTo),
  }));
  return { pct, edges };
}

function* readShares(call: DomainCall): Steps<{ readonly value: ReadonlyMap<string, readonly Share[]>; readonly bytes: number }> {
  const byOwned = new Map<string, Share[]>();
  let bytes = 0;
  yield* call.rows('ownership', ['owner', 'owned', 'pct'], (batch) => {
    for (let row = 0; row < batch.count; row++) {
      const [owner, owned] = [batch.text('owner', row), batch.text('owned', row)];
      if (owner === null || owned === null) continue;
      const pct = batch.number('pct', row);
      const share: Share = {
        owner,
        owned,
        pct: pct !== null && pct >= 0 ? pct : null,
        validFrom: batch.instant('valid_from', row),
        validTo: batch.instant('valid_to', row),
      };
      const all = byOwned.get(owned);
      if (all === undefined) byOwned.set(owned, [share]);
      else all.push(share);
      bytes += 200 + 2 * (owner.length + owned.length);
    }
    call.hold(bytes);
  });
  return { value: byOwned, bytes };
}

/** The types of parties, by id; of two that have the id, the first type by name. */
function* typesOf(call: DomainCall, ids: readonly string[]): Steps<ReadonlyMap<string, string>> {
  const types = new Map<string, string>();
  if (ids.length === 0) return types;
  yield* call.rows(
    'party',
    [],
    (batch) => {
      for (let row = 0; row < batch.count; row++) {
        const id = batch.nodeId(row);
        if (id !== null && !types.has(id)) types.set(id, batch.type);
      }
    },
    { column: '_pk', texts: ids },
  );
  return types;
}
