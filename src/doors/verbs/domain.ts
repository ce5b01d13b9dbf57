/** Tools over the functions of the domain: money, ownership, places, lists. Source: specification, "Tool protocol (MCP)". */
import { z } from 'zod';
import type { Literal } from '../../planner/syntax/statement.ts';
import { queryReply, answerMembers } from './query.ts';
import type { VerbCall } from './verb-call.ts';
import { verb } from './verb.ts';

const common = {
  output: z.object(answerMembers) as unknown as z.ZodType,
  action: 'query',
  units: 1,
  purpose: 'required',
  bucket: 'read',
} as const;

async function rowsOf(verbCall: VerbCall, call: string, values: readonly Literal[], limit: number) {
  const toolAnswer = await verbCall.answer(`SELECT * FROM ${call} LIMIT ${limit}`, values, 'all');
  verbCall.note({ result: { row_count: toolAnswer.rowCount } });
  return queryReply(toolAnswer);
}

const limit = z.int().min(1).max(1_000).default(100);
const id = z.string().min(1);

export const resolveEntityIdentity = verb({
  ...common,
  name: 'resolve_entity_identity',
  description:
    'Rows of every type that are one person, company or thing, found by an identifier, a name or an id of one of them.',
  input: z.object({ identity: id.max(1_024).describe('an identifier, a name, or the id of a row'), limit }),
  tool: { title: 'Who it is', readOnly: true },
  example: { identity: 'a memory' },
  run: (verbCall, { identity, limit: most }) => rowsOf(verbCall, 'RESOLVE_IDENTITY($1)', [identity], most),
});

export const traceCrypto = verb({
  ...common,
  name: 'trace_crypto',
  description: 'Where the money of a wallet went, hop by hop, with how much of each transfer it is.',
  input: z.object({ address: id, max_hops: z.int().min(1).max(10).default(5), limit }),
  tool: { title: 'Trace of a wallet', readOnly: true },
  example: { address: 'w1' },
  run: (verbCall, { address, max_hops: hops, limit: most }) =>
    rowsOf(verbCall, 'CRYPTO_TRACE($1, MAX_HOPS => $2)', [address, BigInt(hops)], most),
});

export const beneficialOwnership = verb({
  ...common,
  name: 'beneficial_ownership',
  description: 'Everyone who owns a part of a party, directly or through others, with how much that comes to.',
  input: z.object({ party: id, max_depth: z.int().min(1).max(10).default(5), limit }),
  tool: { title: 'Owners', readOnly: true },
  example: { party: 'p2' },
  run: (verbCall, { party, max_depth: depth, limit: most }) =>
    rowsOf(verbCall, 'BENEFICIAL_OWNERSHIP_CHAIN($1, MAX_DEPTH => $2)', [party, BigInt(depth)], most),
});

export const reconstructWire = verb({
  ...common,
  name: 'reconstruct_wire',
  description: 'Each sum that came into an account, with the transfers by which it left again.',
  input: z.object({ account: id, tolerance_pct: z.number().min(0).max(100).default(2), limit }),
  tool: { title: 'Sums of an account', readOnly: true },
  example: { account: 'w2' },
  run: (verbCall, { account, tolerance_pct: tolerance, limit: most }) =>
    rowsOf(verbCall, 'WIRE_RECONSTRUCTION($1, TOLERANCE_PCT => $2)', [account, tolerance], most),
});

export const traceHawala = verb({
  ...common,
  name: 'trace_hawala',
  description: 'Where money went, also where one broker took it and another paid it out without a transfer between them.',
  input: z.object({ seed: id, max_hops: z.int().min(1).max(10).default(5), limit }),
  tool: { title: 'Trace through brokers', readOnly: true },
  example: { seed: 'w1' },
  run: (verbCall, { seed, max_hops: hops, limit: most }) =>
    rowsOf(verbCall, 'HAWALA_TRACE($1, MAX_HOPS => $2)', [seed, BigInt(hops)], most),
});

export const geofence = verb({
  ...common,
  name: 'geofence',
  description: 'Sightings, incidents and units within a distance of a place, nearest first.',
  input: z.object({
    lat: z.number().min(-90).max(90),
    lon: z.number().min(-180).max(180),
    radius_m: z.number().min(0),
    limit,
  }),
  tool: { title: 'Within a distance', readOnly: true },
  example: { lat: 51.5, lon: -0.1, radius_m: 1_000 },
  run: (verbCall, { lat, lon, radius_m: radius, limit: most }) =>
    rowsOf(verbCall, 'GEOFENCE($1, $2, $3)', [lat, lon, radius], most),
});

export const screenSanctions = verb({
  ...common,
  name: 'screen_sanctions',
  description: 'Listings whose name, or one of whose aliases, is like a name.',
  input: z.object({ name: z.string().min(1).max(1_000), threshold: z.number().min(0).max(1).default(0.75), limit }),
  tool: { title: 'Lists that have a name', readOnly: true },
  example: { name: 'Robert Tomb' },
  run: (verbCall, { name, threshold, limit: most }) =>
    rowsOf(verbCall, 'SANCTIONS_SCREEN($1, THRESHOLD => $2)', [name, threshold], most),
});
