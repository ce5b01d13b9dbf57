/** Replies of the Bolt door: SUCCESS, RECORD, IGNORED and FAILURE as chunks, sent together where several are ready. */
import type { ServiceError } from '../../errors.ts';
import { chunk } from './bolt-codec.ts';
import { boltCodeOf } from './errors.ts';
import { type PackStreamValue, PackStreamWriter } from './packstream.ts';

const replyTags = { putSuccess: 0x70, record: 0x71, putIgnored: 0x7e, putFailure: 0x7f } as const;
/** Records leave together, so many bytes at a time. */
const replyFlushBytes = 64 * 1024;

export class BoltReplies {
  readonly #boltPacker = new PackStreamWriter();
  #replyChunks: Buffer[] = [];
  #replyBytes = 0;

  get isMuch(): boolean {
    return this.#replyBytes >= replyFlushBytes;
  }

  putSuccess(entries: readonly (readonly [string, PackStreamValue])[] = []): void {
    this.#boltPacker.structure(replyTags.putSuccess, 1);
    this.#boltPacker.value(new Map(entries));
    this.#putReply();
  }

  /** Begins a RECORD: the packer takes so many cells, before `endRecord`. */
  beginRecord(cellCount: number): PackStreamWriter {
    this.#boltPacker.structure(replyTags.record, 1);
    this.#boltPacker.list(cellCount);
    return this.#boltPacker;
  }

  endRecord(): void {
    this.#putReply();
  }

  putIgnored(): void {
    this.#boltPacker.structure(replyTags.putIgnored, 0);
    this.#putReply();
  }

  putFailure(error: ServiceError): void {
    this.#boltPacker.clear();
    this.#boltPacker.structure(replyTags.putFailure, 1);
    this.#boltPacker.value(
      new Map([
        ['code', boltCodeOf(error)],
        ['message', error.message],
      ]),
    );
    this.#putReply();
  }

  #putReply(): void {
    const replyMessage = chunk(this.#boltPacker.bytes);
    this.#boltPacker.clear();
    this.#replyChunks.push(replyMessage);
    this.#replyBytes += replyMessage.length;
  }

  /** All chunks so far, in one piece. */
  take(): Buffer {
    const replyChunks = this.#replyChunks;
    this.#replyChunks = [];
    this.#replyBytes = 0;
    return replyChunks.length === 1 ? replyChunks[0]! : Buffer.concat(replyChunks);
  }

  flush(boltConnection: { write(bytes: Uint8Array): void }): void {
    if (this.#replyChunks.length > 0) boltConnection.write(this.take());
  }
}
