/**
 * A proof as files: JSON with everything that is proven, and a C2SP tlog-proof (c2sp.org/tlog-proof) of the entry alone.
 * `verify/annals-verify.mjs` reads both. Bytes and hashes are standard base64.
 */
import type { EntryProof, PrefixProof, ProofReader } from '../../governance/gate-contract.ts';

/** Media type of the tlog-proof text. */
export const tlogProofType = 'text/plain; charset=utf-8; profile=c2sp.org/tlog-proof@v1';

export function proofJson(entryProof: EntryProof): Record<string, unknown> {
  const {
    position: provenPosition,
    head: signedHead,
    consistency: consistencyProof,
    row: rowProof,
    branch: branchProof,
  } = entryProof;
  return {
    origin: entryProof.origin,
    hash_alg: 'sha-256',
    tree_alg: 'RFC9162',
    position: provenPosition,
    leaf_index: entryProof.leafIndex,
    leaf_hash: base64(entryProof.leafHash),
    leaf: base64(entryProof.leaf),
    tree_size: signedHead.size,
    root_hash: base64(signedHead.root),
    inclusion_path: entryProof.path.map(base64),
    ...(consistencyProof === null ? {} : { consistency: prefixProofJson(consistencyProof) }),
    ...(rowProof === null
      ? {}
      : {
          row: {
            pk: rowProof.pk,
            row_hash: base64(rowProof.rowHash),
            rows_root: base64(rowProof.rowsRoot),
            path: rowProof.path.map(base64),
            salt: base64(rowProof.salt),
            row: base64(rowProof.row),
          },
        }),
    ...(branchProof === null
      ? {}
      : {
          branch: {
            name: branchProof.name,
            source: branchProof.source,
            shares: branchProof.shares,
            statement: branchProof.statement,
            fork_position: branchProof.position,
            fork: prefixProofJson(branchProof.fork),
          },
        }),
    checkpoint: signedHead.note,
    // Nothing has been pruned from this log: a proof of any leaf can be had.
    minimum_index: 0,
  };
}

export async function headJson(proofReader: ProofReader): Promise<Record<string, unknown>> {
  const { size: treeSize, root: rootHash, note: checkpointNote } = await proofReader.head();
  return {
    origin: proofReader.origin,
    hash_alg: 'sha-256',
    tree_alg: 'RFC9162',
    tree_size: treeSize,
    root_hash: base64(rootHash),
    checkpoint: checkpointNote,
    key: proofReader.key,
    minimum_index: 0,
  };
}

function prefixProofJson({
  first: firstTreeSize,
  second: secondTreeSize,
  firstRoot: firstRootHash,
  path: consistencyPath,
}: PrefixProof): Record<string, unknown> {
  return {
    first: firstTreeSize,
    second: secondTreeSize,
    first_root_hash: base64(firstRootHash),
    path: consistencyPath.map(base64),
  };
}

export function base64(hashBytes: Uint8Array): string {
  return Buffer.from(hashBytes.buffer, hashBytes.byteOffset, hashBytes.byteLength).toString('base64');
}
