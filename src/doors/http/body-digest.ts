/**
 * Passes a body on, and can tell the SHA-256 of everything up to an offset afterwards. Holds only the bytes behind the last
 * offset asked for.
 */
import { createHash } from 'node:crypto';

export class BodyDigest {
  /** Over the preface and the body up to #hashed. */
  readonly #bodyHash = createHash('sha256');
  readonly #pendingChunks: Uint8Array[] = [];
  #hashedBytes = 0;
  #receivedBytes = 0;

  /** `idempotencyPreface` is hashed first: the parts of the request beside the body. */
  constructor(idempotencyPreface: string) {
    this.#bodyHash.update(idempotencyPreface, 'utf8').update('\n');
  }

  async *pass(bodyChunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
    for await (const bodyChunk of bodyChunks) {
      this.#pendingChunks.push(bodyChunk);
      this.#receivedBytes += bodyChunk.length;
      yield bodyChunk;
    }
  }

  /** Lower-case hex. Offsets rise from call to call; one beyond the bytes received means all of them. */
  upTo(bodyOffset: number): string {
    const hashEnd = Math.min(bodyOffset, this.#receivedBytes);
    while (this.#hashedBytes < hashEnd) {
      const pendingChunk = this.#pendingChunks[0]!;
      const chunkBytesTaken = Math.min(pendingChunk.length, hashEnd - this.#hashedBytes);
      this.#bodyHash.update(pendingChunk.subarray(0, chunkBytesTaken));
      this.#hashedBytes += chunkBytesTaken;
      if (chunkBytesTaken === pendingChunk.length) this.#pendingChunks.shift();
      else this.#pendingChunks[0] = pendingChunk.subarray(chunkBytesTaken);
    }
    return this.#bodyHash.copy().digest('hex');
  }
}
