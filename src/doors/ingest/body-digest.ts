/**
 * Passes a body on, and can tell the SHA-256 of everything up to an offset afterwards. Holds only the bytes behind the last
 * offset asked for.
 */
import { createHash } from 'node:crypto';

export class BodyDigest {
  /** Over the preface and the body up to #hashed. */
  readonly #hash = createHash('sha256');
  readonly #pending: Uint8Array[] = [];
  #hashed = 0;
  #received = 0;

  /** `preface` is hashed first: the parts of the request beside the body. */
  constructor(preface: string) {
    this.#hash.update(preface, 'utf8').update('\n');
  }

  async *pass(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
    for await (const chunk of source) {
      this.#pending.push(chunk);
      this.#received += chunk.length;
      yield chunk;
    }
  }

  /** Lower-case hex. Offsets rise from call to call; one beyond the bytes received means all of them. */
  upTo(offset: number): string {
    const end = Math.min(offset, this.#received);
    while (this.#hashed < end) {
      const chunk = this.#pending[0]!;
      const taken = Math.min(chunk.length, end - this.#hashed);
      this.#hash.update(chunk.subarray(0, taken));
      this.#hashed += taken;
      if (taken === chunk.length) this.#pending.shift();
      else this.#pending[0] = chunk.subarray(taken);
    }
    return this.#hash.copy().digest('hex');
  }
}
