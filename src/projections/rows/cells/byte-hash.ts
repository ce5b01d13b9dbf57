/** 32-bit hash of a byte range: FNV-1a, then a finaliser, because linear probing reads the low bits. */
export function hashBytes(bytes: Uint8Array, start: number, end: number, seed: number): number {
  let hash = 0x811c9dc5 ^ seed;
  for (let i = start; i < end; i++) hash = Math.imul(hash ^ bytes[i]!, 0x01000193);
  hash ^= hash >>> 16;
  hash = Math.imul(hash, 0x85ebca6b);
  hash ^= hash >>> 13;
  hash = Math.imul(hash, 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}

export function sameBytes(a: Uint8Array, aStart: number, b: Uint8Array, bStart: number, size: number): boolean {
  for (let i = 0; i < size; i++) if (a[aStart + i] !== b[bStart + i]) return false;
  return true;
}
