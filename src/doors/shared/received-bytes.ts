/** Received bytes of one connection that make no whole message yet. Each is copied a few times at most, however small the pieces are. */
import { ServiceError } from '../../errors.ts';
import { type Codec, messageBytesMax } from './codec.ts';

/** The message is long: its reading goes on after a turn of others. */
export const pause = Symbol('pause');

/** Remainders up to this size are copied out of a larger buffer, so that it can be freed. */
const leftBytesMax = 64 * 1024;

export class ReceivedBytes<S, M> {
  readonly #codec: Codec<S, M>;
  #state: S;
  /** The first `#length` bytes are pending. */
  #bytes: Buffer = nothing;
  #length = 0;
  /** The buffer belongs to this object alone: new bytes are appended in place. */
  #isOwn = false;
  /** Bytes of the buffer that `#bytes` is a part of. */
  #capacity = 0;
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

  /** Memory that it takes. */
  get size(): number {
    return this.#length === 0 ? 0 : this.#capacity;
  }

  /** Length of the last message. */
  get taken(): number {
    return this.#taken;
  }

  push(piece: Buffer): void {
    if (piece.length === 0) return;
    if (this.#length === 0) {
      this.#bytes = piece;
      this.#capacity = piece.length;
      this.#isOwn = false;
    } else {
      const length = this.#length + piece.length;
      if (!this.#isOwn || length > this.#bytes.length) this.#grow(length);
      piece.copy(this.#bytes, this.#length);
    }
    this.#length += piece.length;
  }

  /** Doubles while a message grows, up to the size it needs. */
  #grow(length: number): void {
    const known = this.#needs >= length ? Math.min(this.#needs, 2 * length) : 0;
    const larger = Buffer.allocUnsafeSlow(Math.max(length, known, this.#isOwn ? 2 * this.#length : 0));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
    this.#capacity = larger.length;
    this.#isOwn = true;
  }

  /** null: more bytes are needed. Throws REL_TOO_LARGE for a message that is, or will be, longer than `bytesMax`. */
  next(bytesMax = messageBytesMax): M | typeof pause | null {
    if (this.#length < this.#needs) return null;
    const decoded = this.#codec.decode(this.#state, this.#bytes.subarray(0, this.#length));
    if ('needs' in decoded) {
      if (decoded.needs > bytesMax) throw tooLarge(bytesMax);
      if (decoded.state !== undefined) this.#state = decoded.state;
      this.#needs = Math.max(1, decoded.needs);
      return this.#needs <= this.#length ? pause : null;
    }
    const { message, taken, state } = decoded;
    if (taken > bytesMax) throw tooLarge(bytesMax);
    this.#needs = 1;
    this.#taken = taken;
    this.#state = state;
    this.#length -= taken;
    this.#bytes = this.#length === 0 ? nothing : this.#bytes.subarray(taken);
    if (this.#length > 0 && this.#length <= leftBytesMax && this.#capacity > leftBytesMax) {
      this.#bytes = Buffer.from(this.#bytes.subarray(0, this.#length));
      this.#capacity = this.#length;
      this.#isOwn = false;
    }
    return message;
  }
}

const nothing = Buffer.alloc(0);

const tooLarge = (bytesMax: number): ServiceError =>
  new ServiceError('REL_TOO_LARGE', `a message has at most ${bytesMax} bytes here`);
