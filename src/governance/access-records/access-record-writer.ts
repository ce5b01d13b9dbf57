/**
 * Access records on their way into the log: those of two turns of the event loop share one entry, so that recording costs a
 * fraction of a write. Requests that arrive by sockets during the first turn are recorded with it; a lone one waits for one look
 * at idle sockets. The log, which gathers commits, writes records at once.
 * A record's promise settles when the log has handed its bytes to the operating system.
 */
import { createHash, hash } from 'node:crypto';
import { assert, ServiceError } from '../../errors.ts';
import type { AccessRecord, EntryDraft } from '../../log/entries/entry.ts';
import { sendAgain } from '../../log/append/full-disk.ts';
import type { Appended } from '../../log/log-store.ts';

const recordsPerEntryMax = 512;

export class AccessRecordWriter {
  readonly #commitRecords: (drafts: readonly EntryDraft[]) => Appended;
  readonly #defer: (task: () => void) => void;
  #accessBatch: AccessRecordBatch | undefined;

  /** `defer` runs its task once the current turn's work is done. */
  constructor(commit: (drafts: readonly EntryDraft[]) => Appended, defer: (task: () => void) => void) {
    this.#commitRecords = commit;
    this.#defer = defer;
  }

  /** Takes the records of one invocation. Rejects with REL_UNAVAILABLE when they could not be appended: then nothing may leave. */
  record(accessRecords: readonly AccessRecord[]): Promise<void> {
    if (this.#accessBatch === undefined) {
      this.#accessBatch = new AccessRecordBatch();
      this.#defer(() => this.#defer(() => this.#flushAccessRecords()));
    }
    this.#accessBatch.records.push(...accessRecords);
    return this.#accessBatch.written;
  }

  #flushAccessRecords(): void {
    const accessBatch = this.#accessBatch!;
    this.#accessBatch = undefined;
    try {
      // The group's fsync is not waited for; its failure stops the log, which the next append tells.
      const { written } = this.#commitRecords(accessDraftsOf(accessBatch.records));
      written.then(accessBatch.resolve, (cause: unknown) => accessBatch.reject(unrecordedError(cause)));
    } catch (cause) {
      accessBatch.reject(unrecordedError(cause));
    }
  }
}

const hmacBlockBytes = 64;
/** Characters that are hashed at once. */
const literalChunkLength = 64 << 10;

/**
 * Keyed digest of a statement's literals: who holds the key can test a guess, the log alone tells nothing. HMAC-SHA-256
 * written out over one-shot hashes, which cost half of an Hmac object and leave no native handle to collect.
 */
export class LiteralDigest {
  /** Key block, then the message. */
  #innerHmacBlock = Buffer.alloc(hmacBlockBytes + 4096);
  /** Key block, then the inner digest. */
  readonly #outerHmacBlock = Buffer.alloc(hmacBlockBytes + 32);

  constructor(digestKey: Uint8Array) {
    assert(digestKey.length <= hmacBlockBytes, 'a key fits one block');
    for (let i = 0; i < hmacBlockBytes; i++) {
      this.#innerHmacBlock[i] = (digestKey[i] ?? 0) ^ 0x36;
      this.#outerHmacBlock[i] = (digestKey[i] ?? 0) ^ 0x5c;
    }
  }

  /** Hex. Lengths are hashed too: ('ab', 'c') and ('a', 'bc') differ. */
  digestOf(literals: readonly string[]): string {
    let literalsLength = 0;
    for (const literal of literals) literalsLength += literal.length;
    if (literalsLength > literalChunkLength) return this.#finishLiteralHmac(this.#innerHashInChunks(literals));
    let literalsText = '';
    for (const literal of literals) literalsText += `${literal.length}:${literal}`;
    this.#reserveHmacBlock(hmacBlockBytes + literalsText.length * 3);
    const literalsEnd = hmacBlockBytes + this.#innerHmacBlock.write(literalsText, hmacBlockBytes);
    return this.#finishLiteralHmac(hash('sha256', this.#innerHmacBlock.subarray(0, literalsEnd), 'binary'));
  }

  #finishLiteralHmac(innerDigest: string): string {
    this.#outerHmacBlock.write(innerDigest, hmacBlockBytes, 'binary');
    return hash('sha256', this.#outerHmacBlock, 'hex');
  }

  /** The same over long literals, without a copy of all of them. */
  #innerHashInChunks(literals: readonly string[]): string {
    const literalHash = createHash('sha256').update(this.#innerHmacBlock.subarray(0, hmacBlockBytes));
    let literalsText = '';
    for (const literal of literals) {
      literalsText += `${literal.length}:`;
      for (let chunkStart = 0, chunkEnd: number; chunkStart < literal.length; chunkStart = chunkEnd) {
        chunkEnd = Math.min(chunkStart + literalChunkLength, literal.length);
        // Both halves of a character stay together, or each would be hashed as U+FFFD.
        while (chunkEnd < literal.length && (literal.charCodeAt(chunkEnd - 1) & 0xfc00) === 0xd800) chunkEnd++;
        literalsText += literal.slice(chunkStart, chunkEnd);
        if (literalsText.length < literalChunkLength) continue;
        literalHash.update(literalsText, 'utf8');
        literalsText = '';
      }
    }
    return literalHash.update(literalsText, 'utf8').digest('binary');
  }

  #reserveHmacBlock(neededBlockBytes: number): void {
    if (neededBlockBytes <= this.#innerHmacBlock.length) return;
    const largerHmacBlock = Buffer.alloc(neededBlockBytes);
    this.#innerHmacBlock.copy(largerHmacBlock, 0, 0, hmacBlockBytes);
    this.#innerHmacBlock = largerHmacBlock;
  }
}

class AccessRecordBatch {
  readonly records: AccessRecord[] = [];
  readonly written: Promise<void>;
  resolve!: () => void;
  reject!: (cause: unknown) => void;

  constructor() {
    this.written = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }
}

function accessDraftsOf(accessRecords: readonly AccessRecord[]): EntryDraft[] {
  const accessDrafts: EntryDraft[] = [];
  for (let recordIndex = 0; recordIndex < accessRecords.length; recordIndex += recordsPerEntryMax) {
    const entryRecords = accessRecords.slice(recordIndex, recordIndex + recordsPerEntryMax);
    accessDrafts.push({
      context: {
        branch: 'main',
        tenant: null,
        path: null,
        principal: 'annals',
        door: 'gate',
        purpose: null,
        // The leaf may be shown to callers in the scope of any one of its records: it names a request only if all share it.
        correlationId: entryRecords.every((each) => each.correlationId === entryRecords[0]!.correlationId)
          ? entryRecords[0]!.correlationId
          : '',
        policyDigest: '',
      },
      body: { kind: 'access', records: entryRecords },
    });
  }
  return accessDrafts;
}

const withheldAnswerText = 'the invocation could not be recorded, so its answer is withheld';

/** The log's own words say what can be done about it. */
function unrecordedError(cause: unknown): ServiceError {
  if (!(cause instanceof ServiceError)) return new ServiceError('REL_UNAVAILABLE', withheldAnswerText, { cause });
  return new ServiceError('REL_UNAVAILABLE', `${withheldAnswerText}: ${cause.message}`, { ...cause.facts, cause });
}

/** The error of an invocation that wrote but whose record failed: its rows are written, or may be. */
export function mayBeWritten(unrecorded: unknown): unknown {
  if (!(unrecorded instanceof ServiceError) || unrecorded.message.includes(sendAgain)) return unrecorded;
  return new ServiceError(
    unrecorded.code,
    `${unrecorded.message}; what it wrote is there or may be: ${sendAgain}`,
    unrecorded.facts,
  );
}
