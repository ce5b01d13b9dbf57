/**
 * SHA-256 in the form that costs least here: `crypto.hash` to a binary string, written over the target. Asking for a
 * Buffer costs three times as much on inputs of a row's size.
 */
import * as crypto from 'node:crypto';
import { assert } from '../../errors.ts';

export const HASH_BYTES = 32;
const BLOCK_BYTES = 64;

/** A plain array of its own memory, never a Buffer: slicing a hash makes a copy. */
export function sha256(...parts: readonly Uint8Array[]): Uint8Array {
  const target = new Uint8Array(HASH_BYTES);
  sha256Into(parts.length === 1 ? parts[0]! : Buffer.concat(parts), target, 0);
  return target;
}

export function sha256Into(source: Uint8Array, target: Uint8Array, offset: number): void {
  const hash = crypto.hash('sha256', source, 'binary');
  for (let i = 0; i < HASH_BYTES; i++) target[offset + i] = hash.charCodeAt(i);
}

export function sha256Hex(source: Uint8Array | string): string {
  return crypto.hash('sha256', source, 'hex');
}

export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

export function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
}

/** HMAC-SHA-256 by two hashes of one call each: the streaming one of `node:crypto` makes objects that cost more than hashing. */
export class KeyedHash {
  #inner: Buffer;
  readonly #outer = Buffer.alloc(BLOCK_BYTES + HASH_BYTES);

  constructor(key: Uint8Array) {
    this.#inner = Buffer.alloc(1024);
    this.rekey(key);
  }

  /** From here on under another key, without memory of its own for each. */
  rekey(key: Uint8Array): void {
    assert(key.length <= BLOCK_BYTES, 'a key of a keyed hash is at most a block');
    for (let i = 0; i < BLOCK_BYTES; i++) {
      const byte = i < key.length ? key[i]! : 0;
      this.#inner[i] = 0x36 ^ byte;
      this.#outer[i] = 0x5c ^ byte;
    }
  }

  digest(text: string): Buffer {
    // No character takes more than three bytes.
    if (BLOCK_BYTES + text.length * 3 > this.#inner.length) {
      const inner = Buffer.alloc(BLOCK_BYTES + text.length * 4);
      this.#inner.copy(inner, 0, 0, BLOCK_BYTES);
      this.#inner = inner;
    }
    const end = BLOCK_BYTES + this.#inner.write(text, BLOCK_BYTES, 'utf8');
    sha256Into(this.#inner.subarray(0, end), this.#outer, BLOCK_BYTES);
    const hash = Buffer.alloc(HASH_BYTES);
    sha256Into(this.#outer, hash, 0);
    return hash;
  }
}
