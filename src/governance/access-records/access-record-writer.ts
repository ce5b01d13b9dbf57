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
  readonly #commit: (drafts: readonly EntryDraft[]) => Appended;
  readonly #defer: (task: () => void) => void;
  #batch: Batch | undefined;

  /** `defer` runs its task once the current turn's work is done. */
  constructor(commit: (drafts: readonly EntryDraft[]) => Appended, defer: (task: () => void) => void) {
    this.#commit = commit;
    this.#defer = defer;
  }

  /** Takes the records of one invocation. Rejects with REL_UNAVAILABLE when they could not be appended: then nothing may leave. */
  record(records: readonly AccessRecord[]): Promise<void> {
    if (this.#batch === undefined) {
      this.#batch = new Batch();
      this.#defer(() => this.#defer(() => this.#flush()));
    }
    this.#batch.records.push(...records);
    return this.#batch.written;
  }

  #flush(): void {
    const batch = this.#batch!;
    this.#batch = undefined;
    try {
      // The group's fsync is not waited for; its failure stops the log, which the next append tells.
      const { written } = this.#commit(draftsOf(batch.records));
      written.then(batch.resolve, (cause: unknown) => batch.reject(notRecorded(cause)));
    } catch (cause) {
      batch.reject(notRecorded(cause));
    }
  }
}

const blockBytes = 64;
/** Characters that are hashed at once. */
const piece = 64 << 10;

/**
 * Keyed digest of a statement's literals: who holds the key can test a guess, the log alone tells nothing. HMAC-SHA-256
 * written out over one-shot hashes, which cost half of an Hmac object and leave no native handle to collect.
 */
export class LiteralDigest {
  /** Key block, then the message. */
  #inner = Buffer.alloc(blockBytes + 4096);
  /** Key block, then the inner digest. */
  readonly #outer = Buffer.alloc(blockBytes + 32);

  constructor(key: Uint8Array) {
    assert(key.length <= blockBytes, 'a key fits one block');
    for (let i = 0; i < blockBytes; i++) {
      this.#inner[i] = (key[i] ?? 0) ^ 0x36;
      this.#outer[i] = (key[i] ?? 0) ^ 0x5c;
    }
  }

  /** Hex. Lengths are hashed too: ('ab', 'c') and ('a', 'bc') differ. */
  digestOf(literals: readonly string[]): string {
    let length = 0;
    for (const literal of literals) length += literal.length;
    if (length > piece) return this.#finish(this.#innerInPieces(literals));
    let text = '';
    for (const literal of literals) text += `${literal.length}:${literal}`;
    this.#reserve(blockBytes + text.length * 3);
    const end = blockBytes + this.#inner.write(text, blockBytes);
    return this.#finish(hash('sha256', this.#inner.subarray(0, end), 'binary'));
  }

  #finish(inner: string): string {
    this.#outer.write(inner, blockBytes, 'binary');
    return hash('sha256', this.#outer, 'hex');
  }

  /** The same over long literals, without a copy of all of them. */
  #innerInPieces(literals: readonly string[]): string {
    const inner = createHash('sha256').update(this.#inner.subarray(0, blockBytes));
    let text = '';
    for (const literal of literals) {
      text += `${literal.length}:`;
      for (let at = 0, end: number; at < literal.length; at = end) {
        end = Math.min(at + piece, literal.length);
        // Both halves of a character stay together, or each would be hashed as U+FFFD.
        while (end < literal.length && (literal.charCodeAt(end - 1) & 0xfc00) === 0xd800) end++;
        text += literal.slice(at, end);
        if (text.length < piece) continue;
        inner.update(text, 'utf8');
        text = '';
      }
    }
    return inner.update(text, 'utf8').digest('binary');
  }

  #reserve(bytes: number): void {
    if (bytes <= this.#inner.length) return;
    const larger = Buffer.alloc(bytes);
    this.#inner.copy(larger, 0, 0, blockBytes);
    this.#inner = larger;
  }
}

class Batch {
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

function draftsOf(records: readonly AccessRecord[]): EntryDraft[] {
  const drafts: EntryDraft[] = [];
  for (let at = 0; at < records.length; at += recordsPerEntryMax) {
    const chunk = records.slice(at, at + recordsPerEntryMax);
    drafts.push({
      context: {
        branch: 'main',
        tenant: null,
        path: null,
        principal: 'annals',
        door: 'gate',
        purpose: null,
        // The leaf may be shown to callers in the scope of any one of its records: it names a request only if all share it.
        correlationId: chunk.every((each) => each.correlationId === chunk[0]!.correlationId) ? chunk[0]!.correlationId : '',
        policyDigest: '',
      },
      body: { kind: 'access', records: chunk },
    });
  }
  return drafts;
}

const withheld = 'the invocation could not be recorded, so its answer is withheld';

/** The log's own words say what can be done about it. */
function notRecorded(cause: unknown): ServiceError {
  if (!(cause instanceof ServiceError)) return new ServiceError('REL_UNAVAILABLE', withheld, { cause });
  return new ServiceError('REL_UNAVAILABLE', `${withheld}: ${cause.message}`, { ...cause.facts, cause });
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
