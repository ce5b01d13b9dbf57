/**
 * /audit/proof and /audit/log: the data with which an independent auditor checks an entry, a row, a branch or the log's growth.
 * Tiles are those of c2sp.org/tlog-tiles; entry bundles are not served, since a leaf names principals and paths.
 */
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import type { ProofRequest } from '../../../governance/gate-contract.ts';
import { tlogProof } from '../../../governance/erasure/tlog-proof.ts';
import { headJson, proofJson, tlogProofType } from '../proof-document.ts';
import { reply, route, type Route } from '../route.ts';
import { headerText } from '../request-headers.ts';

const proofNumber = z
  .string()
  .regex(/^(0|[1-9]\d{0,15})$/)
  .transform(Number)
  .refine((proofInteger) => Number.isSafeInteger(proofInteger), 'at most 2^53 - 1')
  .optional();

const proofQuery = z.object({
  position: proofNumber.describe('a position that the entry covers: a row version or a control event'),
  system_from: z
    .string()
    .regex(/^\d{1,19}$/)
    .optional()
    .describe('instead: the instant of that position in nanoseconds, as system_from of a row has it'),
  leaf: proofNumber.describe('the number of the entry, for those that cover no position'),
  branch: z.string().optional().describe('instead: the entry that forked this branch'),
  tree_size: proofNumber.describe('prove it in the tree of so many leaves; the newest signed one by default'),
  from: proofNumber.describe('prove that the tree of so many leaves is a prefix'),
  row: z.string().optional().describe('_pk of a row of the entry'),
});

const proofHash = z.string().describe('32 bytes, base64');
const consistencyPrefix = z.object({ first: z.int(), second: z.int(), first_root_hash: proofHash, path: z.array(proofHash) });
const provenLog = { origin: z.string(), hash_alg: z.literal('sha-256'), tree_alg: z.literal('RFC9162') };
const logCheckpoint = z.string().describe('C2SP signed note of tree_size and root_hash');

export const proofReply = z
  .object({
    ...provenLog,
    position: z.int().nullable(),
    leaf_index: z.int(),
    leaf_hash: proofHash,
    leaf: z.string().describe('the canonical leaf, base64'),
    tree_size: z.int(),
    root_hash: proofHash,
    inclusion_path: z.array(proofHash),
    consistency: consistencyPrefix.optional(),
    row: z
      .object({
        pk: z.string(),
        row_hash: proofHash,
        rows_root: proofHash,
        path: z.array(proofHash),
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
        fork: consistencyPrefix,
      })
      .optional(),
    checkpoint: logCheckpoint,
    minimum_index: z.int(),
  })
  .meta({ id: 'Proof' });

const treeHeadReply = z
  .object({
    ...provenLog,
    tree_size: z.int(),
    root_hash: proofHash,
    checkpoint: logCheckpoint,
    key: z.string().describe('the log’s key, as verifiers of signed notes take it'),
    minimum_index: z.int(),
  })
  .meta({ id: 'TreeHead' });

const proofConfig = { access: 'token', action: 'audit', bucket: 'read' } as const;
const proofTags = ['audit'];

export const proofRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/audit/proof',
    ...proofConfig,
    summary: 'Prove an entry, a row of it, or a branch, offline: JSON, or a C2SP tlog-proof for Accept: text/plain',
    tags: proofTags,
    query: proofQuery,
    replies: { 200: proofReply },
    example: { query: { position: 'a position' } },
    run: async (proofInvocation, { query: proofParameters, request: proofHttpRequest }) => {
      const proofRequest = readProofRequest(proofParameters);
      const isTextProof = wantsProofText(headerText(proofHttpRequest, 'accept'));
      if (isTextProof && (proofRequest.row ?? proofRequest.branch ?? proofRequest.from) !== undefined) {
        throw new ServiceError('REL_INVALID', 'a tlog-proof covers one entry: ask for rows, branches and earlier trees as JSON');
      }
      const entryProof = await proofInvocation.proofs().entry(proofRequest);
      proofInvocation.describe({ rowCount: entryProof.row === null ? 0 : 1 });
      return isTextProof ? reply(200, tlogProof(entryProof), { 'content-type': tlogProofType }) : proofJson(entryProof);
    },
  }),

  route({
    method: 'GET',
    path: '/audit/log',
    ...proofConfig,
    summary: 'Newest signed tree head',
    tags: proofTags,
    replies: { 200: treeHeadReply },
    run: (proofInvocation) => headJson(proofInvocation.proofs()),
  }),

  route({
    method: 'GET',
    path: '/audit/log/checkpoint',
    ...proofConfig,
    summary: 'Newest signed tree head as a C2SP checkpoint',
    tags: proofTags,
    replies: { 200: z.string() },
    run: async (proofInvocation) => {
      const { note: headNote } = await proofInvocation.proofs().head();
      return reply(200, headNote, { 'content-type': 'text/plain; charset=utf-8' });
    },
  }),

  route({
    method: 'GET',
    path: '/audit/log/tile/*',
    ...proofConfig,
    summary: 'Tile <level>/<index>[.p/<width>] of node hashes',
    tags: proofTags,
    replies: { 200: z.string() },
    example: { params: { '*': '0/000.p/1' } },
    run: async (proofInvocation, { params: tileParams }) => {
      const {
        level: tileLevel,
        index: tileIndex,
        width: tileWidth,
      } = parseTilePath((tileParams as { readonly '*': string })['*']);
      const logTile = await proofInvocation.proofs().tile(tileLevel, tileIndex, tileWidth);
      return reply(200, Buffer.from(logTile), {
        // A tile never changes; access to it does, so no proxy may keep it.
        'cache-control': 'private, max-age=31536000, immutable',
        'content-type': 'application/octet-stream',
      });
    },
  }),
];

/** The request from other sources than a URL, such as flags of a command. */
export function proofRequestOf(proofFields: Readonly<Record<string, string>>): ProofRequest {
  const parsedProof = proofQuery.safeParse(proofFields);
  if (parsedProof.success) return readProofRequest(parsedProof.data);
  const [proofIssue] = parsedProof.error.issues;
  throw new ServiceError('REL_INVALID', `${proofIssue?.path.join('.')}: ${proofIssue?.message}`);
}

function readProofRequest(proofParameters: z.output<typeof proofQuery>): ProofRequest {
  const {
    position: provenPosition,
    leaf: provenLeaf,
    branch: provenBranch,
    row: provenRow,
    from: prefixLeaves,
    tree_size: provenTreeSize,
    system_from: provenSystemFrom,
  } = proofParameters;
  if (
    [provenPosition, provenSystemFrom, provenLeaf, provenBranch].filter((namedEntry) => namedEntry !== undefined).length !== 1
  ) {
    throw new ServiceError('REL_INVALID', 'name one of position, system_from, leaf and branch');
  }
  return {
    ...(provenSystemFrom === undefined ? {} : { systemFrom: BigInt(provenSystemFrom) }),
    ...(provenPosition === undefined ? {} : { position: provenPosition }),
    ...(provenLeaf === undefined ? {} : { leaf: provenLeaf }),
    ...(provenBranch === undefined ? {} : { branch: provenBranch }),
    ...(provenRow === undefined ? {} : { row: provenRow }),
    ...(prefixLeaves === undefined ? {} : { from: prefixLeaves }),
    ...(provenTreeSize === undefined ? {} : { treeSize: provenTreeSize }),
  };
}

/** JSON unless text is the only one of the two that is asked for. */
function wantsProofText(acceptHeader: string | null): boolean {
  return acceptHeader !== null && /\btext\/plain\b/i.test(acceptHeader) && !/\bapplication\/json\b/i.test(acceptHeader);
}

const fullTileWidth = 256;

/** `<L>/<N>[.p/<W>]`; N in groups of three digits, all but the last marked with an x. */
function parseTilePath(tilePath: string): { readonly level: number; readonly index: number; readonly width: number } {
  if (tilePath.startsWith('entries/')) {
    throw new ServiceError('REL_NOT_IMPLEMENTED', 'entry bundles are not served: leaves name principals and organisation paths');
  }
  const tileMatch = /^(0|[1-9]\d?)\/((?:x\d{3}\/){0,4}\d{3})(?:\.p\/([1-9]\d{0,2}))?$/.exec(tilePath);
  const tileLevel = Number(tileMatch?.[1]);
  const tileDigits = tileMatch?.[2]!.replace(/[x/]/g, '') ?? '';
  const tileWidth = tileMatch?.[3] === undefined ? fullTileWidth : Number(tileMatch[3]);
  const isPaddedTile = tileDigits.length > 3 && tileDigits.startsWith('000');
  if (tileMatch === null || tileLevel > 63 || isPaddedTile || (tileMatch[3] !== undefined && tileWidth >= fullTileWidth)) {
    throw new ServiceError('REL_INVALID', 'expected a tile as <level>/<index>[.p/<width>], such as 0/x001/234.p/7');
  }
  return { level: tileLevel, index: Number(tileDigits), width: tileWidth };
}
