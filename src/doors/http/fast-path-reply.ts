/**
 * Replies of one piece: head and body in one stretch of bytes, which goes to the socket as it is. Invariant: bytes are reused for
 * another reply only when the socket has taken all of them.
 */
import type { Socket } from 'node:net';
import { assert } from '../../errors.ts';
import { ByteWriter } from '../../planner/formats/byte-writer.ts';

/** Room for a head before the body. */
const headBytes = 512;
/** Memory of a larger answer is not kept. */
const keptBytesMax = 1 << 17;
const keptMax = 64;
const startBytes = 1 << 14;

const idle: ByteWriter[] = [];

export class ReplyBytes {
  readonly writer: ByteWriter;

  constructor() {
    this.writer = idle.pop() ?? new ByteWriter(startBytes);
    this.writer.length = headBytes;
  }

  get bodyLength(): number {
    return this.writer.length - headBytes;
  }

  /** The bytes written so far. */
  body(): Buffer {
    return this.writer.bytes.subarray(headBytes, this.writer.length);
  }

  /** Sends head and body in one write; a head is ASCII. */
  send(socket: Socket, head: string): void {
    assert(head.length <= headBytes, 'a head fits its room');
    const { bytes, length } = this.writer;
    const start = headBytes - head.length;
    bytes.write(head, start, 'latin1');
    socket.write(bytes.subarray(start, length));
    // Most answers are in the socket's buffer by now; a pending one keeps its bytes.
    if (socket.writableLength === 0) this.release();
  }

  /** Returns the buffer to the pool; the bytes must not be used any more. */
  release(): void {
    if (idle.length < keptMax && this.writer.bytes.length <= keptBytesMax) idle.push(this.writer);
  }
}
