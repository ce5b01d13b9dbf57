/** Replies of the Bolt door: SUCCESS, RECORD, IGNORED and FAILURE as chunks, sent together where several are ready. */
import type { ServiceError } from '../../errors.ts';
import { chunk } from './bolt-codec.ts';
import { boltCodeOf } from './errors.ts';
import { type PackStreamValue, PackStreamWriter } from './packstream.ts';

const tags = { putSuccess: 0x70, record: 0x71, putIgnored: 0x7e, putFailure: 0x7f } as const;
/** Records leave together, so many bytes at a time. */
const flushBytes = 64 * 1024;

export class BoltReplies {
  readonly #packer = new PackStreamWriter();
  #chunks: Buffer[] = [];
  #bytes = 0;

  get isMuch(): boolean {
    return this.#bytes >= flushBytes;
  }

  putSuccess(entries: readonly (readonly [string, PackStreamValue])[] = []): void {
    this.#packer.structure(tags.putSuccess, 1);
    this.#packer.value(new Map(entries));
    this.#put();
  }

  /** Begins a RECORD: the packer takes so many cells, before `endRecord`. */
  beginRecord(cellCount: number): PackStreamWriter {
    this.#packer.structure(tags.record, 1);
    this.#packer.list(cellCount);
    return this.#packer;
  }

  endRecord(): void {
    this.#put();
  }

  putIgnored(): void {
    this.#packer.structure(tags.putIgnored, 0);
    this.#put();
  }

  putFailure(error: ServiceError): void {
    this.#packer.clear();
    this.#packer.structure(tags.putFailure, 1);
    this.#packer.value(
      new Map([
        ['code', boltCodeOf(error)],
        ['message', error.message],
      ]),
    );
    this.#put();
  }

  #put(): void {
    const message = chunk(this.#packer.bytes);
    this.#packer.clear();
    this.#chunks.push(message);
    this.#bytes += message.length;
  }

  /** All chunks so far, in one piece. */
  take(): Buffer {
    const chunks = this.#chunks;
    this.#chunks = [];
    this.#bytes = 0;
    return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
  }

  flush(connection: { write(bytes: Uint8Array): void }): void {
    if (this.#chunks.length > 0) connection.write(this.take());
  }
}
