/** Keys as they are asked for: text in, UTF-8 out, in a place of its own until the next one. */
import type { Vector } from '../../../log/values/columns.ts';
import { limits } from '../../../log/values/value.ts';

const keyEncoder = new TextEncoder();
const scratchKeyBytes = new Uint8Array(limits.keyBytes * 3);

/** UTF-8 of a key until the next one is asked for; null when it can't be anybody's. */
export function keyBytes(key: string): Uint8Array | null {
  const encodedKeyBytes = encodeKey(key);
  return encodedKeyBytes < 0 ? null : scratchKeyBytes.subarray(0, encodedKeyBytes);
}

/** How long a key is in `keyScratch`, or -1 when it can't be anybody's. */
export function encodeKey(key: string): number {
  // A key has a maximum length; no row has a longer one.
  if (key.length > limits.keyBytes) return -1;
  const { written: writtenKeyBytes } = keyEncoder.encodeInto(key, scratchKeyBytes);
  // The encoder would replace half a character, and the result may be the key of another row.
  return writtenKeyBytes !== key.length && !key.isWellFormed() ? -1 : writtenKeyBytes;
}

export const keyScratch: Uint8Array = scratchKeyBytes;

/** Keys of an entry of which some rows came without: theirs are empty. */
export function withGaps(keys: Vector | undefined, length: number): Vector | undefined {
  if (keys?.kind === 'text') return { ...keys, nulls: null };
  return keys && { kind: 'text', offsets: new Uint32Array(length + 1), heap: new Uint8Array(0), nulls: null };
}
