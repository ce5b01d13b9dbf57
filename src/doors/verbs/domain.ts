/** Tools over the functions of the domain: money, ownership, places, lists. Source: specification, "Tool protocol (MCP)". */
import { z } from 'zod';
import type { Literal } from '../../planner/syntax/statement.ts';
import { queryReply, answerMembers } from './query.ts';
import type { VerbCall } from './verb-call.ts';
import { verb } from './verb.ts';

const domainVerb = {
  output: z.object(answerMembers) as unknown as z.ZodType,
  action: 'query',
  units: 1,
  purpose: 'required',
  bucket: 'read',
} as const;

async function askDomainFunction(verbCall: VerbCall, domainCall: string, domainArguments: readonly Literal[], rowLimit: number) {
  const toolAnswer = await verbCall.answer(`SELECT * FROM ${domainCall} LIMIT ${rowLimit}`, domainArguments, 'all');
  verbCall.note({ result: { row_count: toolAnswer.rowCount } });
  return queryReply(toolAnswer);
}

const domainRowLimit = z.int().min(1).max(1_000).default(100);
const domainRowId = z.string().min(1);

export const resolveEntityIdentity = verb({
  ...domainVerb,
  name: 'resolve_entity_identity',
  description:
    'Rows of every type that are one person, company or thing, found by an identifier, a name or an id of one of them.',
  input: z.object({
    identity: domainRowId.max(1_024).describe('an identifier, a name, or the id of a row'),
    limit: domainRowLimit,
  }),
  tool: { title: 'Who it is', readOnly: true },
  example: { identity: 'a memory' },
  run: (verbCall, { identity: soughtIdentity, limit: rowLimit }) =>
    askDomainFunction(verbCall, 'RESOLVE_IDENTITY($1)', [soughtIdentity], rowLimit),
});

export const traceCrypto = verb({
  ...domainVerb,
  name: 'trace_crypto',
  description: 'Where the money of a wallet went, hop by hop, with how much of each transfer it is.',
  input: z.object({ address: domainRowId, max_hops: z.int().min(1).max(10).default(5), limit: domainRowLimit }),
  tool: { title: 'Trace of a wallet', readOnly: true },
  example: { address: 'w1' },
  run: (verbCall, { address: walletAddress, max_hops: hopCount, limit: rowLimit }) =>
    askDomainFunction(verbCall, 'CRYPTO_TRACE($1, MAX_HOPS => $2)', [walletAddress, BigInt(hopCount)], rowLimit),
});

export const beneficialOwnership = verb({
  ...domainVerb,
  name: 'beneficial_ownership',
  description: 'Everyone who owns a part of a party, directly or through others, with how much that comes to.',
  input: z.object({ party: domainRowId, max_depth: z.int().min(1).max(10).default(5), limit: domainRowLimit }),
  tool: { title: 'Owners', readOnly: true },
  example: { party: 'p2' },
  run: (verbCall, { party: ownedParty, max_depth: ownershipDepth, limit: rowLimit }) =>
    askDomainFunction(
      verbCall,
      'BENEFICIAL_OWNERSHIP_CHAIN($1, MAX_DEPTH => $2)',
      [ownedParty, BigInt(ownershipDepth)],
      rowLimit,
    ),
});

export const reconstructWire = verb({
  ...domainVerb,
  name: 'reconstruct_wire',
  description: 'Each sum that came into an account, with the transfers by which it left again.',
  input: z.object({ account: domainRowId, tolerance_pct: z.number().min(0).max(100).default(2), limit: domainRowLimit }),
  tool: { title: 'Sums of an account', readOnly: true },
  example: { account: 'w2' },
  run: (verbCall, { account: wireAccount, tolerance_pct: tolerancePct, limit: rowLimit }) =>
    askDomainFunction(verbCall, 'WIRE_RECONSTRUCTION($1, TOLERANCE_PCT => $2)', [wireAccount, tolerancePct], rowLimit),
});

export const traceHawala = verb({
  ...domainVerb,
  name: 'trace_hawala',
  description: 'Where money went, also where one broker took it and another paid it out without a transfer between them.',
  input: z.object({ seed: domainRowId, max_hops: z.int().min(1).max(10).default(5), limit: domainRowLimit }),
  tool: { title: 'Trace through brokers', readOnly: true },
  example: { seed: 'w1' },
  run: (verbCall, { seed: hawalaSeed, max_hops: hopCount, limit: rowLimit }) =>
    askDomainFunction(verbCall, 'HAWALA_TRACE($1, MAX_HOPS => $2)', [hawalaSeed, BigInt(hopCount)], rowLimit),
});

export const geofence = verb({
  ...domainVerb,
  name: 'geofence',
  description: 'Sightings, incidents and units within a distance of a place, nearest first.',
  input: z.object({
    lat: z.number().min(-90).max(90),
    lon: z.number().min(-180).max(180),
    radius_m: z.number().min(0),
    limit: domainRowLimit,
  }),
  tool: { title: 'Within a distance', readOnly: true },
  example: { lat: 51.5, lon: -0.1, radius_m: 1_000 },
  run: (verbCall, { lat: fenceLatitude, lon: fenceLongitude, radius_m: radiusMetres, limit: rowLimit }) =>
    askDomainFunction(verbCall, 'GEOFENCE($1, $2, $3)', [fenceLatitude, fenceLongitude, radiusMetres], rowLimit),
});

export const screenSanctions = verb({
  ...domainVerb,
  name: 'screen_sanctions',
  description: 'Listings whose name, or one of whose aliases, is like a name.',
  input: z.object({
    name: z.string().min(1).max(1_000),
    threshold: z.number().min(0).max(1).default(0.75),
    limit: domainRowLimit,
  }),
  tool: { title: 'Lists that have a name', readOnly: true },
  example: { name: 'Robert Tomb' },
  run: (verbCall, { name: screenedName, threshold: screenThreshold, limit: rowLimit }) =>
    askDomainFunction(verbCall, 'SANCTIONS_SCREEN($1, THRESHOLD => $2)', [screenedName, screenThreshold], rowLimit),
});
