/** A proof of one entry as C2SP writes it (c2sp.org/tlog-proof): the leaf goes along as extra data, its hash is what is proven. */
import type { SignedHead } from '../../log/log-store.ts';

export interface LeafProof {
  readonly leaf: Uint8Array;
  readonly leafIndex: number;
  readonly path: readonly Uint8Array[];
  readonly head: Pick<SignedHead, 'note'>;
}

export function tlogProof({ leaf, leafIndex, path, head }: LeafProof): string {
  return ['c2sp.org/tlog-proof@v1', `extra ${base64(leaf)}`, `index ${leafIndex}`, ...path.map(base64), '', head.note].join('\n');
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}
