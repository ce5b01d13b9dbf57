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
  run: beneficialOwners,
});

function* beneficialOwners(ownershipCall: DomainCall): Steps<readonly DomainRow[]> {
  const ownedEntity = ownershipCall.text('ENTITY')!;
  const depthMax = ownershipCall.number('MAX_DEPTH', 5);
  const sharesByOwned = yield* ownershipCall.reuse('by owned', ['ownership'], () => readOwnershipShares(ownershipCall));
  const reachedOwners = reachedAbove(ownedEntity, sharesByOwned, depthMax);
  const ownerPaths = yield* pathsAbove(ownedEntity, reachedOwners, depthMax, (count) => ownershipCall.look(count));
  const effectivePcts = effectiveShares(ownedEntity, reachedOwners);
  const overOwnedParties = overOwned(reachedOwners);
  const ownerTypesById = yield* ownerTypes(ownershipCall, [...ownerPaths.keys()]);
  const ownerRows: DomainRow[] = [];
  for (const [beneficialOwner, ownershipWays] of ownerPaths) {
    if (ownerRows.length % ownersAtOnce === ownersAtOnce - 1) yield;
    ownershipCall.look(reachedOwners.depths.size);
    const effectivePct = effectivePcts?.get(beneficialOwner) ?? null;
    const unknownWayCount = ownershipWays.filter((ownershipWay) => ownershipWay.some(({ pct }) => pct === null)).length;
    const knownPct = unknownWayCount === ownershipWays.length ? null : effectivePct;
    const overOwnedAbove = [...new Set(ownershipWays.flat().map(({ owned }) => owned))].filter((owned) =>
      overOwnedParties.has(owned),
    );
    ownerRows.push({
      nodeId: beneficialOwner,
      type: ownerTypesById.get(beneficialOwner) ?? null,
      cells: [
        beneficialOwner,
        BigInt(reachedOwners.depths.get(beneficialOwner)!),
        JSON.stringify(ownershipWays.map(ownershipWayJson)),
        knownPct,
        isHeldByHalf(beneficialOwner, ownedEntity, reachedOwners),
      ],
      score: knownPct === null ? null : Math.min(1, knownPct / 100),
      evidence: {
        paths: ownershipWays.length,
        ...(unknownWayCount > 0 && { paths_of_unknown_share: unknownWayCount }),
        ...(effectivePcts === null && { not_convergent: true }),
        ...(overOwnedAbove.length > 0 && {
          over_100: overOwnedAbove.map((owned) => ({ owned, total_pct: overOwnedParties.get(owned)! })),
        }),
      },
    });
  }
  return ownerRows;
}

const ownersAtOnce = 16;

function ownershipWayJson(ownershipWay: readonly Share[]): Json {
  const wayPct = ownershipWay.some((share) => share.pct === null)
    ? null
    : ownershipWay.reduce((product, share) => (product * share.pct!) / 100, 100);
  const ownershipEdges = ownershipWay.map(({ owner, owned, pct: share, validFrom, validTo }) => ({
    owner,
    owned,
    pct: share,
    valid_from: validFrom === null ? null : formatInstant(validFrom),
    valid_to: validTo === null ? null : formatInstant(validTo),
  }));
  return { pct: wayPct, edges: ownershipEdges };
}

function* readOwnershipShares(
  ownershipCall: DomainCall,
): Steps<{ readonly value: ReadonlyMap<string, readonly Share[]>; readonly bytes: number }> {
  const sharesByOwned = new Map<string, Share[]>();
  let shareBytes = 0;
  yield* ownershipCall.rows('ownership', ['owner', 'owned', 'pct'], (ownershipBatch) => {
    for (let ownershipRow = 0; ownershipRow < ownershipBatch.count; ownershipRow++) {
      const [owner, owned] = [ownershipBatch.text('owner', ownershipRow), ownershipBatch.text('owned', ownershipRow)];
      if (owner === null || owned === null) continue;
      const ownedPct = ownershipBatch.number('pct', ownershipRow);
      const ownershipShare: Share = {
        owner,
        owned,
        pct: ownedPct !== null && ownedPct >= 0 ? ownedPct : null,
        validFrom: ownershipBatch.instant('valid_from', ownershipRow),
        validTo: ownershipBatch.instant('valid_to', ownershipRow),
      };
      const sharesOfOwned = sharesByOwned.get(owned);
      if (sharesOfOwned === undefined) sharesByOwned.set(owned, [ownershipShare]);
      else sharesOfOwned.push(ownershipShare);
      shareBytes += 200 + 2 * (owner.length + owned.length);
    }
    ownershipCall.hold(shareBytes);
  });
  return { value: sharesByOwned, bytes: shareBytes };
}

/** The types of parties, by id; of two that have the id, the first type by name. */
function* ownerTypes(call: DomainCall, partyIds: readonly string[]): Steps<ReadonlyMap<string, string>> {
  const partyTypes = new Map<string, string>();
  if (partyIds.length === 0) return partyTypes;
  yield* call.rows(
    'party',
    [],
    (partyBatch) => {
      for (let partyRow = 0; partyRow < partyBatch.count; partyRow++) {
        const partyId = partyBatch.nodeId(partyRow);
        if (partyId !== null && !partyTypes.has(partyId)) partyTypes.set(partyId, partyBatch.type);
      }
    },
    { column: '_pk', texts: partyIds },
  );
  return partyTypes;
}
