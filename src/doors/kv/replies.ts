/** Replies of the key-value door in RESP2 or RESP3. */

const replyChunkBytes = 4_096;
/** To copy a longer piece takes longer than a write of its own. */
const longReplyPieceBytes = 256 * 1024;

/** Collects all replies in one list of pieces: short ones are gathered in a buffer, long ones are pieces of their own. */
export class RespReplies {
  /** 2 or 3. */
  protocol = 2;
  #pieces: Buffer[] = [];
  #buffer = Buffer.allocUnsafe(replyChunkBytes);
  #at = 0;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  take(): Buffer {
    return Buffer.concat(this.takePieces());
  }

  /** Long pieces as they are, consecutive short ones joined. */
  takePieces(): Buffer[] {
    this.#cut();
    const takenPieces: Buffer[] = [];
    let shortPieces: Buffer[] = [];
    const joinShortPieces = (): void => {
      if (shortPieces.length > 0) takenPieces.push(shortPieces.length === 1 ? shortPieces[0]! : Buffer.concat(shortPieces));
      shortPieces = [];
    };
    for (const replyPiece of this.#pieces) {
      if (replyPiece.length < longReplyPieceBytes) shortPieces.push(replyPiece);
      else {
        joinShortPieces();
        takenPieces.push(replyPiece);
      }
    }
    joinShortPieces();
    this.#pieces = [];
    this.#length = 0;
    return takenPieces;
  }

  append(appendedReplies: RespReplies): void {
    this.#cut();
    appendedReplies.#cut();
    this.#pieces.push(...appendedReplies.#pieces);
    this.#length += appendedReplies.#length;
  }

  /** A status as `OK`. */
  simple(simpleText: string): void {
    this.#line(`+${simpleText}`);
  }

  error(respErrorText: string): void {
    // A line break would end the reply.
    this.#line(`-${respErrorText.replaceAll(/[\r\n]+/g, ' ')}`);
  }

  integer(integerReply: number | bigint): void {
    this.#line(`:${integerReply}`);
  }

  bulk(bulkValue: Buffer | string): void {
    if (typeof bulkValue === 'string' && bulkValue.length * 3 + 24 <= replyChunkBytes) {
      const bulkBytes = Buffer.byteLength(bulkValue);
      const bulkHead = `$${bulkBytes}\r\n`;
      this.#reserve(bulkHead.length + bulkBytes + 2);
      this.#at += this.#buffer.write(bulkHead, this.#at, 'latin1');
      this.#at += this.#buffer.write(bulkValue, this.#at);
      this.#end(bulkHead.length + bulkBytes);
      return;
    }
    const bytes = typeof bulkValue === 'string' ? Buffer.from(bulkValue) : bulkValue;
    this.#line(`$${bytes.length}`);
    this.#raw(bytes);
    this.#raw(replyLineEnd);
  }

  nothing(): void {
    this.#line(this.protocol === 3 ? '_' : '$-1');
  }

  array(arrayLength: number): void {
    this.#line(`*${arrayLength}`);
  }

  /** Begins a map of so many pairs. */
  map(pairCount: number): void {
    this.#line(this.protocol === 3 ? `%${pairCount}` : `*${pairCount * 2}`);
  }

  /** Out of turn: so many parts follow. */
  push(pushLength: number): void {
    this.#line(`${this.protocol === 3 ? '>' : '*'}${pushLength}`);
  }

  #line(lineText: string): void {
    const lineBytesMost = lineText.length * 3 + 2;
    if (lineBytesMost > replyChunkBytes) {
      this.#raw(Buffer.from(`${lineText}\r\n`));
      return;
    }
    this.#reserve(lineBytesMost);
    const writtenBytes = this.#buffer.write(lineText, this.#at);
    this.#at += writtenBytes;
    this.#end(writtenBytes);
  }

  #end(lineBytes: number): void {
    this.#buffer[this.#at++] = 0x0d;
    this.#buffer[this.#at++] = 0x0a;
    this.#length += lineBytes + 2;
  }

  #raw(replyBytes: Buffer): void {
    if (replyBytes.length <= replyChunkBytes) {
      this.#reserve(replyBytes.length);
      replyBytes.copy(this.#buffer, this.#at);
      this.#at += replyBytes.length;
    } else {
      this.#cut();
      this.#pieces.push(replyBytes);
    }
    this.#length += replyBytes.length;
  }

  #reserve(neededBytes: number): void {
    if (this.#buffer.length - this.#at >= neededBytes) return;
    this.#cut();
    if (this.#buffer.length < neededBytes) this.#buffer = Buffer.allocUnsafe(replyChunkBytes);
  }

  /** Ends the current piece; the rest of the buffer takes more. */
  #cut(): void {
    if (this.#at === 0) return;
    this.#pieces.push(this.#buffer.subarray(0, this.#at));
    this.#buffer = this.#buffer.subarray(this.#at);
    this.#at = 0;
  }
}

const replyLineEnd = Buffer.from('\r\n');
