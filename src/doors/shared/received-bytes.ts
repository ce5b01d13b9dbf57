/** Received bytes of one connection that make no whole message yet. Each is copied a few times at most, however small the pieces are. */
import { ServiceError } from '../../errors.ts';
import { type Codec, messageBytesMax } from './codec.ts';

/** The message is long: its reading goes on after a turn of others. */
export const pause = Symbol('pause');

/** Remainders up to this size are copied out of a larger buffer, so that it can be freed. */
const keptBufferBytesMax = 64 * 1024;

export class ReceivedBytes<S, M> {
  readonly #wireCodec: Codec<S, M>;
  #codecState: S;
  /** The first `#receivedLength` bytes are pending. */
  #receivedBytes: Buffer = noBytes;
  #receivedLength = 0;
  /** The buffer belongs to this object alone: new bytes are appended in place. */
  #isOwnBuffer = false;
  /** Bytes of the buffer that `#receivedBytes` is a part of. */
  #bufferCapacity = 0;
  #neededBytes = 1;
  #takenBytes = 0;

  constructor(wireCodec: Codec<S, M>) {
    this.#wireCodec = wireCodec;
    this.#codecState = wireCodec.start;
  }

  /** Bytes that are part of no message yet. */
  get waiting(): number {
    return this.#receivedLength;
  }

  /** Memory that it takes. */
  get size(): number {
    return this.#receivedLength === 0 ? 0 : this.#bufferCapacity;
  }

  /** Length of the last message. */
  get taken(): number {
    return this.#takenBytes;
  }

  push(wirePiece: Buffer): void {
    if (wirePiece.length === 0) return;
    if (this.#receivedLength === 0) {
      this.#receivedBytes = wirePiece;
      this.#bufferCapacity = wirePiece.length;
      this.#isOwnBuffer = false;
    } else {
      const joinedLength = this.#receivedLength + wirePiece.length;
      if (!this.#isOwnBuffer || joinedLength > this.#receivedBytes.length) this.#growBuffer(joinedLength);
      wirePiece.copy(this.#receivedBytes, this.#receivedLength);
    }
    this.#receivedLength += wirePiece.length;
  }

  /** Doubles while a message grows, up to the size it needs. */
  #growBuffer(neededLength: number): void {
    const knownLength = this.#neededBytes >= neededLength ? Math.min(this.#neededBytes, 2 * neededLength) : 0;
    const largerBuffer = Buffer.allocUnsafeSlow(
      Math.max(neededLength, knownLength, this.#isOwnBuffer ? 2 * this.#receivedLength : 0),
    );
    this.#receivedBytes.copy(largerBuffer, 0, 0, this.#receivedLength);
    this.#receivedBytes = largerBuffer;
    this.#bufferCapacity = largerBuffer.length;
    this.#isOwnBuffer = true;
  }

  /** null: more bytes are needed. Throws REL_TOO_LARGE for a message that is, or will be, longer than `messageLimit`. */
  next(messageLimit = messageBytesMax): M | typeof pause | null {
    if (this.#receivedLength < this.#neededBytes) return null;
    const decodedMessage = this.#wireCodec.decode(this.#codecState, this.#receivedBytes.subarray(0, this.#receivedLength));
    if ('needs' in decodedMessage) {
      if (decodedMessage.needs > messageLimit) throw messageTooLarge(messageLimit);
      if (decodedMessage.state !== undefined) this.#codecState = decodedMessage.state;
      this.#neededBytes = Math.max(1, decodedMessage.needs);
      return this.#neededBytes <= this.#receivedLength ? pause : null;
    }
    const { message: wireMessage, taken: messageBytes, state: nextState } = decodedMessage;
    if (messageBytes > messageLimit) throw messageTooLarge(messageLimit);
    this.#neededBytes = 1;
    this.#takenBytes = messageBytes;
    this.#codecState = nextState;
    this.#receivedLength -= messageBytes;
    this.#receivedBytes = this.#receivedLength === 0 ? noBytes : this.#receivedBytes.subarray(messageBytes);
    if (this.#receivedLength > 0 && this.#receivedLength <= keptBufferBytesMax && this.#bufferCapacity > keptBufferBytesMax) {
      this.#receivedBytes = Buffer.from(this.#receivedBytes.subarray(0, this.#receivedLength));
      this.#bufferCapacity = this.#receivedLength;
      this.#isOwnBuffer = false;
    }
    return wireMessage;
  }
}

const noBytes = Buffer.alloc(0);

const messageTooLarge = (messageLimit: number): ServiceError =>
  new ServiceError('REL_TOO_LARGE', `a message has at most ${messageLimit} bytes here`);
