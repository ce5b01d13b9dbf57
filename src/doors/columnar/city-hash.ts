/** CityHash128 of version 1.0.2, by the module of `kernels/city-hash.ts`, into whose memory a copy of the bytes is laid. */
import { assert } from '../../errors.ts';
import { cityHashCode } from './city-hash-code.ts';

export const HASH_BYTES = 16;
/** Bytes that are hashed at once. */
export const hashedBytesMax = 512 << 10;

interface CityHashExports {
  readonly memory: { readonly buffer: ArrayBuffer };
  resultAt(): number;
  freeFrom(): number;
  hash(at: number, length: number): void;
}

let cityHashExports: CityHashExports | null = null;

/** Puts the hash of the bytes behind its place there: bytes[at + 16 .. end]. */
export function putHash(hashedFrame: Uint8Array, hashOffset: number, frameEnd: number): void {
  hashedFrame.set(hashOf(hashedFrame.subarray(hashOffset + HASH_BYTES, frameEnd)), hashOffset);
}

/** Valid until the next call. */
export function hashOf(hashedBytes: Uint8Array): Uint8Array {
  assert(hashedBytes.length <= hashedBytesMax, 'as many bytes are hashed as there is room for');
  cityHashExports ??= new WebAssembly.Instance(new WebAssembly.Module(Buffer.from(cityHashCode, 'base64')))
    .exports as unknown as CityHashExports;
  const hashMemory = new Uint8Array(cityHashExports.memory.buffer);
  const hashInputOffset = cityHashExports.freeFrom();
  hashMemory.set(hashedBytes, hashInputOffset);
  cityHashExports.hash(hashInputOffset, hashedBytes.length);
  return hashMemory.subarray(cityHashExports.resultAt(), cityHashExports.resultAt() + HASH_BYTES);
}
