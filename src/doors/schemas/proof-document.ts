/**
 * A proof as files: JSON with everything that is proven, and a C2SP tlog-proof (c2sp.org/tlog-proof) of the entry alone.
 * `verify/annals-verify.mjs` reads both. Bytes and hashes are standard base64.
 */
import type { EntryProof, PrefixProof, ProofReader } from '../../governance/gate-contract.ts';

/** Media type of the tlog-proof text. */
export const tlogProofType = 'text/plain; charset=utf-8; profile=c2sp.org/tlog-proof@v1';

export function proofJson(proof: EntryProof): Record<string, unknown> {
  const { position, head, consistency, row, branch } = proof;
  return {
    origin: proof.origin,
    hash_alg: 'sha-256',
    tree_alg: 'RFC9162',
    position,
    leaf_index: proof.leafIndex,
    leaf_hash: base64(proof.leafHash),
    leaf: base64(proof.leaf),
    tree_size: head.size,
    root_hash: base64(head.root),
    inclusion_path: proof.path.map(base64),
    ...(consistency === null ? {} : { consistency: prefixJson(consistency) }),
    ...(row === null
      ? {}
      : {
          row: {
            pk: row.pk,
            row_hash: base64(row.rowHash),
            rows_root: base64(row.rowsRoot),
            path: row.path.map(base64),
            salt: base64(row.salt),
            row: base64(row.row),
          },
        }),
    ...(branch === null
      ? {}
      : {
          branch: {
            name: branch.name,
            source: branch.source,
            shares: branch.shares,
            statement: branch.statement,
            fork_position: branch.position,
            fork: prefixJson(branch.fork),
          },
        }),
    checkpoint: head.note,
    // Nothing has been pruned from this log: a proof of any leaf can be had.
    minimum_index: 0,
  };
}

export async function headJson(proofs: ProofReader): Promise<Record<string, unknown>> {
  const { size, root, note } = await proofs.head();
  return {
    origin: proofs.origin,
    hash_alg: 'sha-256',
    tree_alg: 'RFC9162',
    tree_size: size,
    root_hash: base64(root),
    checkpoint: note,
    key: proofs.key,
    minimum_index: 0,
  };
}

function prefixJson({ first, second, firstRoot, path }: PrefixProof): Record<string, unknown> {
  return { first, second, first_root_hash: base64(firstRoot), path: path.map(base64) };
}

export function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}
