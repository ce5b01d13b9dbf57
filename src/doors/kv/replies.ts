/** Replies of the key-value door in RESP2 or RESP3. */

const chunkBytes = 4_096;
/** To copy a longer piece takes longer than a write of its own. */
const longPieceBytes = 256 * 1024;

/** Collects all replies in one list of pieces: short ones are gathered in a buffer, long ones are pieces of their own. */
export class RespReplies {
  /** 2 or 3. */
  protocol = 2;
  #pieces: Buffer[] = [];
  #buffer = Buffer.allocUnsafe(chunkBytes);
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
    const taken: Buffer[] = [];
    let short: Buffer[] = [];
    const join = (): void => {
      if (short.length > 0) taken.push(short.length === 1 ? short[0]! : Buffer.concat(short));
      short = [];
    };
    for (const piece of this.#pieces) {
      if (piece.length < longPieceBytes) short.push(piece);
      else {
        join();
        taken.push(piece);
      }
    }
    join();
    this.#pieces = [];
    this.#length = 0;
    return taken;
  }

  append(other: RespReplies): void {
    this.#cut();
    other.#cut();
    this.#pieces.push(...other.#pieces);
    this.#length += other.#length;
  }

  /** A status as `OK`. */
  simple(text: string): void {
    this.#line(`+${text}`);
  }

  error(text: string): void {
    // A line break would end the reply.
    this.#line(`-${text.replaceAll(/[\r\n]+/g, ' ')}`);
  }

  integer(value: number | bigint): void {
    this.#line(`:${value}`);
  }

  bulk(value: Buffer | string): void {
    if (typeof value === 'string' && value.length * 3 + 24 <= chunkBytes) {
      const bytes = Buffer.byteLength(value);
      const head = `$${bytes}\r\n`;
      this.#reserve(head.length + bytes + 2);
      this.#at += this.#buffer.write(head, this.#at, 'latin1');
      this.#at += this.#buffer.write(value, this.#at);
      this.#end(head.length + bytes);
      return;
    }
    const bytes = typeof value === 'string' ? Buffer.from(value) : value;
    this.#line(`$${bytes.length}`);
    this.#raw(bytes);
    this.#raw(crlf);
  }

  nothing(): void {
    this.#line(this.protocol === 3 ? '_' : '$-1');
  }

  array(length: number): void {
    this.#line(`*${length}`);
  }

  /** Begins a map of so many pairs. */
  map(pairs: number): void {
    this.#line(this.protocol === 3 ? `%${pairs}` : `*${pairs * 2}`);
  }

  /** Out of turn: so many parts follow. */
  push(length: number): void {
    this.#line(`${this.protocol === 3 ? '>' : '*'}${length}`);
  }

  #line(text: string): void {
    const most = text.length * 3 + 2;
    if (most > chunkBytes) {
      this.#raw(Buffer.from(`${text}\r\n`));
      return;
    }
    this.#reserve(most);
    const written = this.#buffer.write(text, this.#at);
    this.#at += written;
    this.#end(written);
  }

  #end(written: number): void {
    this.#buffer[this.#at++] = 0x0d;
    this.#buffer[this.#at++] = 0x0a;
    this.#length += written + 2;
  }

  #raw(bytes: Buffer): void {
    if (bytes.length <= chunkBytes) {
      this.#reserve(bytes.length);
      bytes.copy(this.#buffer, this.#at);
      this.#at += bytes.length;
    } else {
      this.#cut();
      this.#pieces.push(bytes);
    }
    this.#length += bytes.length;
  }

  #reserve(bytes: number): void {
    if (this.#buffer.length - this.#at >= bytes) return;
    this.#cut();
    if (this.#buffer.length < bytes) this.#buffer = Buffer.allocUnsafe(chunkBytes);
  }

  /** Ends the current piece; the rest of the buffer takes more. */
  #cut(): void {
    if (this.#at === 0) return;
    this.#pieces.push(this.#buffer.subarray(0, this.#at));
    this.#buffer = this.#buffer.subarray(this.#at);
    this.#at = 0;
  }
}

const crlf = Buffer.from('\r\n');
