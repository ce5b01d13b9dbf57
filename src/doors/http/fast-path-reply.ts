/**
 * Replies of one piece: head and body in one stretch of bytes, which goes to the socket as it is. Invariant: bytes are reused for
 * another reply only when the socket has taken all of them.
 */
import type { Socket } from 'node:net';
import { assert } from '../../errors.ts';
import { ByteWriter } from '../../planner/formats/byte-writer.ts';

/** Room for a head before the body. */
const replyHeadBytes = 512;
/** Memory of a larger answer is not kept. */
const idleWriterBytesMax = 1 << 17;
const idleWritersMax = 64;
const replyStartBytes = 1 << 14;

const idleReplyWriters: ByteWriter[] = [];

export class ReplyBytes {
  readonly writer: ByteWriter;

  constructor() {
    this.writer = idleReplyWriters.pop() ?? new ByteWriter(replyStartBytes);
    this.writer.length = replyHeadBytes;
  }

  get bodyLength(): number {
    return this.writer.length - replyHeadBytes;
  }

  /** The bytes written so far. */
  body(): Buffer {
    return this.writer.bytes.subarray(replyHeadBytes, this.writer.length);
  }

  /** Sends head and body in one write; a head is ASCII. */
  send(replySocket: Socket, replyHead: string): void {
    assert(replyHead.length <= replyHeadBytes, 'a head fits its room');
    const { bytes: replyBytes, length: replyLength } = this.writer;
    const headStart = replyHeadBytes - replyHead.length;
    replyBytes.write(replyHead, headStart, 'latin1');
    replySocket.write(replyBytes.subarray(headStart, replyLength));
    // Most answers are in the socket's buffer by now; a pending one keeps its bytes.
    if (replySocket.writableLength === 0) this.release();
  }

  /** Returns the buffer to the pool; the bytes must not be used any more. */
  release(): void {
    if (idleReplyWriters.length < idleWritersMax && this.writer.bytes.length <= idleWriterBytesMax)
      idleReplyWriters.push(this.writer);
  }
}
