/** 32-bit hash of a byte range: FNV-1a, then a finaliser, because linear probing reads the low bits. */
export function hashBytes(hashedBytes: Uint8Array, start: number, end: number, seed: number): number {
  let bytesHash = 0x811c9dc5 ^ seed;
  for (let i = start; i < end; i++) bytesHash = Math.imul(bytesHash ^ hashedBytes[i]!, 0x01000193);
  bytesHash ^= bytesHash >>> 16;
  bytesHash = Math.imul(bytesHash, 0x85ebca6b);
  bytesHash ^= bytesHash >>> 13;
  bytesHash = Math.imul(bytesHash, 0xc2b2ae35);
  return bytesHash ^ (bytesHash >>> 16);
}

export function sameBytes(a: Uint8Array, aStart: number, b: Uint8Array, bStart: number, size: number): boolean {
  for (let i = 0; i < size; i++) if (a[aStart + i] !== b[bStart + i]) return false;
  return true;
}
