/**
 * SHA-256 in the form that costs least here: `crypto.hash` to a binary string, written over the target. Asking for a
 * Buffer costs three times as much on inputs of a row's size.
 */
import * as crypto from 'node:crypto';
import { assert } from '../../errors.ts';

export const HASH_BYTES = 32;
const SHA256_BLOCK_BYTES = 64;

/** A plain array of its own memory, never a Buffer: slicing a hash makes a copy. */
export function sha256(...hashedParts: readonly Uint8Array[]): Uint8Array {
  const hashBytes = new Uint8Array(HASH_BYTES);
  sha256Into(hashedParts.length === 1 ? hashedParts[0]! : Buffer.concat(hashedParts), hashBytes, 0);
  return hashBytes;
}

export function sha256Into(hashedBytes: Uint8Array, hashTarget: Uint8Array, hashOffset: number): void {
  const binaryHash = crypto.hash('sha256', hashedBytes, 'binary');
  for (let i = 0; i < HASH_BYTES; i++) hashTarget[hashOffset + i] = binaryHash.charCodeAt(i);
}

export function sha256Hex(hashedSource: Uint8Array | string): string {
  return crypto.hash('sha256', hashedSource, 'hex');
}

export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

export function hexOf(binaryBytes: Uint8Array): string {
  return Buffer.from(binaryBytes.buffer, binaryBytes.byteOffset, binaryBytes.byteLength).toString('hex');
}

/** HMAC-SHA-256 by two hashes of one call each: the streaming one of `node:crypto` makes objects that cost more than hashing. */
export class KeyedHash {
  #innerHmacBlock: Buffer;
  readonly #outerHmacBlock = Buffer.alloc(SHA256_BLOCK_BYTES + HASH_BYTES);

  constructor(hmacKey: Uint8Array) {
    this.#innerHmacBlock = Buffer.alloc(1024);
    this.rekey(hmacKey);
  }

  /** From here on under another key, without memory of its own for each. */
  rekey(hmacKey: Uint8Array): void {
    assert(hmacKey.length <= SHA256_BLOCK_BYTES, 'a key of a keyed hash is at most a block');
    for (let i = 0; i < SHA256_BLOCK_BYTES; i++) {
      const hmacKeyByte = i < hmacKey.length ? hmacKey[i]! : 0;
      this.#innerHmacBlock[i] = 0x36 ^ hmacKeyByte;
      this.#outerHmacBlock[i] = 0x5c ^ hmacKeyByte;
    }
  }

  digest(hashedText: string): Buffer {
    // No character takes more than three bytes.
    if (SHA256_BLOCK_BYTES + hashedText.length * 3 > this.#innerHmacBlock.length) {
      const largerInnerBlock = Buffer.alloc(SHA256_BLOCK_BYTES + hashedText.length * 4);
      this.#innerHmacBlock.copy(largerInnerBlock, 0, 0, SHA256_BLOCK_BYTES);
      this.#innerHmacBlock = largerInnerBlock;
    }
    const innerEnd = SHA256_BLOCK_BYTES + this.#innerHmacBlock.write(hashedText, SHA256_BLOCK_BYTES, 'utf8');
    sha256Into(this.#innerHmacBlock.subarray(0, innerEnd), this.#outerHmacBlock, SHA256_BLOCK_BYTES);
    const hmacDigest = Buffer.alloc(HASH_BYTES);
    sha256Into(this.#outerHmacBlock, hmacDigest, 0);
    return hmacDigest;
  }
}
