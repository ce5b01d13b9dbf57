/** Bytes of one connection on their way to being messages. Pieces are joined once, when all of a message is there. */
import type { Codec } from './codec.ts';

export class Inbox<S, M> {
  readonly #codec: Codec<S, M>;
  #state: S;
  #pieces: Buffer[] = [];
  #length = 0;
  #needs = 1;
  #taken = 0;

  constructor(codec: Codec<S, M>) {
    this.#codec = codec;
    this.#state = codec.start;
  }

  /** Bytes that are part of no message yet. */
  get waiting(): number {
    return this.#length;
  }

  /** Length of the last message. */
  get taken(): number {
    return this.#taken;
  }

  push(piece: Buffer): void {
    if (piece.length === 0) return;
    this.#pieces.push(piece);
    this.#length += piece.length;
  }

  /** null: more bytes are needed. */
  next(): M | null {
    if (this.#length < this.#needs) return null;
    const bytes = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces, this.#length);
    const decoded = this.#codec.decode(this.#state, bytes);
    if ('needs' in decoded) {
      this.#needs = decoded.needs;
      this.#pieces = [bytes];
      return null;
    }
    this.#needs = 1;
    this.#taken = decoded.taken;
    this.#state = decoded.state;
    this.#length = bytes.length - decoded.taken;
    this.#pieces = this.#length === 0 ? [] : [bytes.subarray(decoded.taken)];
    return decoded.message;
  }
}
