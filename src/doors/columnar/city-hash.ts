/** CityHash128 of version 1.0.2, by the module of `kernels/city-hash.ts`, into whose memory a copy of the bytes is laid. */
import { assert } from '../../errors.ts';
import { cityHashCode } from './city-hash-code.ts';

export const HASH_BYTES = 16;
/** Bytes that are hashed at once. */
export const hashedBytesMax = 512 << 10;

interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer };
  resultAt(): number;
  freeFrom(): number;
  hash(at: number, length: number): void;
}

let exports: Exports | null = null;

/** Puts the hash of the bytes behind its place there: bytes[at + 16 .. end]. */
export function putHash(bytes: Uint8Array, at: number, end: number): void {
  bytes.set(hashOf(bytes.subarray(at + HASH_BYTES, end)), at);
}

/** Valid until the next call. */
export function hashOf(bytes: Uint8Array): Uint8Array {
  assert(bytes.length <= hashedBytesMax, 'as many bytes are hashed as there is room for');
  exports ??= new WebAssembly.Instance(new WebAssembly.Module(Buffer.from(cityHashCode, 'base64'))).exports as unknown as Exports;
  const memory = new Uint8Array(exports.memory.buffer);
  const at = exports.freeFrom();
  memory.set(bytes, at);
  exports.hash(at, bytes.length);
  return memory.subarray(exports.resultAt(), exports.resultAt() + HASH_BYTES);
}
