/**
 * /audit/proof and /audit/log: the data with which an independent auditor checks an entry, a row, a branch or the log's growth.
 * Tiles are those of c2sp.org/tlog-tiles; entry bundles are not served, since a leaf names principals and paths.
 */
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import type { ProofRequest } from '../../../governance/gate-contract.ts';
import { tlogProof } from '../../../governance/erasure/tlog-proof.ts';
import { headJson, proofJson, tlogProofType } from '../../schemas/proof-document.ts';
import { reply, route, type Route } from '../route.ts';
import { headerText } from '../request-headers.ts';

const wholeNumber = z
  .string()
  .regex(/^(0|[1-9]\d{0,15})$/)
  .transform(Number)
  .refine((value) => Number.isSafeInteger(value), 'at most 2^53 - 1')
  .optional();

const proofQuery = z.object({
  position: wholeNumber.describe('a position that the entry covers: a row version or a control event'),
  system_from: z
    .string()
    .regex(/^\d{1,19}$/)
    .optional()
    .describe('instead: the instant of that position in nanoseconds, as system_from of a row has it'),
  leaf: wholeNumber.describe('the number of the entry, for those that cover no position'),
  branch: z.string().optional().describe('instead: the entry that forked this branch'),
  tree_size: wholeNumber.describe('prove it in the tree of so many leaves; the newest signed one by default'),
  from: wholeNumber.describe('prove that the tree of so many leaves is a prefix'),
  row: z.string().optional().describe('_pk of a row of the entry'),
});

const hash = z.string().describe('32 bytes, base64');
const prefix = z.object({ first: z.int(), second: z.int(), first_root_hash: hash, path: z.array(hash) });
const log = { origin: z.string(), hash_alg: z.literal('sha-256'), tree_alg: z.literal('RFC9162') };
const checkpoint = z.string().describe('C2SP signed note of tree_size and root_hash');

export const proofReply = z
  .object({
    ...log,
    position: z.int().nullable(),
    leaf_index: z.int(),
    leaf_hash: hash,
    leaf: z.string().describe('the canonical leaf, base64'),
    tree_size: z.int(),
    root_hash: hash,
    inclusion_path: z.array(hash),
    consistency: prefix.optional(),
    row: z
      .object({
        pk: z.string(),
        row_hash: hash,
        rows_root: hash,
        path: z.array(hash),
        salt: z.string().describe('16 bytes, base64'),
        row: z.string().describe('the canonical row, base64'),
      })
      .optional(),
    branch: z
      .object({
        name: z.string(),
        source: z.string(),
        shares: z.string(),
        statement: z.string(),
        fork_position: z.int(),
        fork: prefix,
      })
      .optional(),
    checkpoint,
    minimum_index: z.int(),
  })
  .meta({ id: 'Proof' });

const headReply = z
  .object({
    ...log,
    tree_size: z.int(),
    root_hash: hash,
    checkpoint,
    key: z.string().describe('the log’s key, as verifiers of signed notes take it'),
    minimum_index: z.int(),
  })
  .meta({ id: 'TreeHead' });

const config = { access: 'token', action: 'audit', bucket: 'read' } as const;
const tags = ['audit'];

export const proofRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/audit/proof',
    ...config,
    summary: 'Prove an entry, a row of it, or a branch, offline: JSON, or a C2SP tlog-proof for Accept: text/plain',
    tags,
    query: proofQuery,
    replies: { 200: proofReply },
    example: { query: { position: 'a position' } },
    run: async (invocation, { query, request }) => {
      const wanted = toProofRequest(query);
      const asText = wantsText(headerText(request, 'accept'));
      if (asText && (wanted.row ?? wanted.branch ?? wanted.from) !== undefined) {
        throw new ServiceError('REL_INVALID', 'a tlog-proof covers one entry: ask for rows, branches and earlier trees as JSON');
      }
      const proof = await invocation.proofs().entry(wanted);
      invocation.describe({ rowCount: proof.row === null ? 0 : 1 });
      return asText ? reply(200, tlogProof(proof), { 'content-type': tlogProofType }) : proofJson(proof);
    },
  }),

  route({
    method: 'GET',
    path: '/audit/log',
    ...config,
    summary: 'Newest signed tree head',
    tags,
    replies: { 200: headReply },
    run: (invocation) => headJson(invocation.proofs()),
  }),

  route({
    method: 'GET',
    path: '/audit/log/checkpoint',
    ...config,
    summary: 'Newest signed tree head as a C2SP checkpoint',
    tags,
    replies: { 200: z.string() },
    run: async (invocation) => {
      const { note } = await invocation.proofs().head();
      return reply(200, note, { 'content-type': 'text/plain; charset=utf-8' });
    },
  }),

  route({
    method: 'GET',
    path: '/audit/log/tile/*',
    ...config,
    summary: 'Tile <level>/<index>[.p/<width>] of node hashes',
    tags,
    replies: { 200: z.string() },
    example: { params: { '*': '0/000.p/1' } },
    run: async (invocation, { params }) => {
      const { level, index, width } = parseTile((params as { readonly '*': string })['*']);
      const tile = await invocation.proofs().tile(level, index, width);
      return reply(200, Buffer.from(tile), {
        // A tile never changes; access to it does, so no proxy may keep it.
        'cache-control': 'private, max-age=31536000, immutable',
        'content-type': 'application/octet-stream',
      });
    },
  }),
];

/** The request from other sources than a URL, such as flags of a command. */
export function proofRequestOf(fields: Readonly<Record<string, string>>): ProofRequest {
  const parsed = proofQuery.safeParse(fields);
  if (parsed.success) return toProofRequest(parsed.data);
  const [issue] = parsed.error.issues;
  throw new ServiceError('REL_INVALID', `${issue?.path.join('.')}: ${issue?.message}`);
}

function toProofRequest(query: z.output<typeof proofQuery>): ProofRequest {
  const { position, leaf, branch, row, from, tree_size: treeSize, system_from: systemFrom } = query;
  if ([position, systemFrom, leaf, branch].filter((named) => named !== undefined).length !== 1) {
    throw new ServiceError('REL_INVALID', 'name one of position, system_from, leaf and branch');
  }
  return {
    ...(systemFrom === undefined ? {} : { systemFrom: BigInt(systemFrom) }),
    ...(position === undefined ? {} : { position }),
    ...(leaf === undefined ? {} : { leaf }),
    ...(branch === undefined ? {} : { branch }),
    ...(row === undefined ? {} : { row }),
    ...(from === undefined ? {} : { from }),
    ...(treeSize === undefined ? {} : { treeSize }),
  };
}

/** JSON unless text is the only one of the two that is asked for. */
function wantsText(accept: string | null): boolean {
  return accept !== null && /\btext\/plain\b/i.test(accept) && !/\bapplication\/json\b/i.test(accept);
}

const fullTile = 256;

/** `<L>/<N>[.p/<W>]`; N in groups of three digits, all but the last marked with an x. */
function parseTile(path: string): { readonly level: number; readonly index: number; readonly width: number } {
  if (path.startsWith('entries/')) {
    throw new ServiceError('REL_NOT_IMPLEMENTED', 'entry bundles are not served: leaves name principals and organisation paths');
  }
  const match = /^(0|[1-9]\d?)\/((?:x\d{3}\/){0,4}\d{3})(?:\.p\/([1-9]\d{0,2}))?$/.exec(path);
  const level = Number(match?.[1]);
  const digits = match?.[2]!.replace(/[x/]/g, '') ?? '';
  const width = match?.[3] === undefined ? fullTile : Number(match[3]);
  const padded = digits.length > 3 && digits.startsWith('000');
  if (match === null || level > 63 || padded || (match[3] !== undefined && width >= fullTile)) {
    throw new ServiceError('REL_INVALID', 'expected a tile as <level>/<index>[.p/<width>], such as 0/x001/234.p/7');
  }
  return { level, index: Number(digits), width };
}
