/**
 * Dropping bytes from a log without changing its commitments. A sealed file is written anew, one generation further, with the
 * same leaves: of rows only their leaf hashes are left, of texts that repeat them nothing (`text-redaction.ts`). The list of files
 * then names the new one, and the old one is deleted: a crash at any point leaves one of the two, whole.
 *
 * Rows that are sealed by subject stay as they are: their keys are destroyed instead.
 */
import type { Random } from '../../clock.ts';
import { assert } from '../../errors.ts';
import { blankOf, isBlank } from '../entries/text-redaction.ts';
import { bytesOfParts, encodeBody, encodePart, joinParts } from '../entries/body-codec.ts';
import { NONCE_BYTES, sealPayload } from '../entries/body-sealer.ts';
import { ByteWriter, malformedError } from '../bytes/byte-stream.ts';
import { type Disk, type DiskFile, writeFully } from '../disk/disk.ts';
import { withoutRows } from '../entries/row-redaction.ts';
import { isEmbedded, withoutVectors } from '../entries/embedded-vectors.ts';
import { type Embedded, isOpen, type OpenBody } from '../entries/entry.ts';
import { checkDigest, decodeEntry, decodeLeaf, decodeOpened, type LeafFields, openPayload } from '../entries/entry-codec.ts';
import type { FrameStart } from './frame-index.ts';
import type { Keyring } from '../keys/keys.ts';
import { encodeFileHeader, encodeStored, FILE_HEADER_BYTES, type FrameEntry, FrameScanner, frameEntries } from './log-file.ts';
import type { ReplacedFile } from './log-writer.ts';
import { logFileName, type SealedFileRecord } from './manifest.ts';

export interface RedactionOptions {
  readonly disk: Disk;
  readonly random: Random;
  readonly keyring: Keyring;
  readonly logDirectory: string;
  readonly logId: string;
  /** Between frames: reading one may take a millisecond. */
  readonly yieldTurn: () => Promise<void>;
}

/** Positions in rising order. */
export type Ascending = readonly number[] | Float64Array;

/** The result of a redaction. */
export interface Redacted {
  /** Rows of which nothing but the leaf hash is left since. */
  rows: number;
  /** Entries of other kinds whose texts went. */
  texts: number;
  /** Rows that are sealed by subject. */
  kept: number;
}

/**
 * Writes what is left of a sealed file once the rows and texts at these positions of it, ascending, are dropped, and vectors of `all`. Durable under its new
 * name when it resolves; null when there is nothing to drop, and then nothing is left behind.
 */
export async function redactFile(
  options: RedactionOptions,
  record: SealedFileRecord,
  positions: Ascending,
  counts: Redacted,
  all: Ascending = positions,
): Promise<ReplacedFile | null> {
  const { disk, logDirectory } = options;
  const next: SealedFileRecord = { ...record, generation: (record.generation ?? 0) + 1 };
  const source = await disk.open(`${logDirectory}/${logFileName(record)}`, 'read');
  try {
    const path = `${logDirectory}/${logFileName(next)}`;
    // Leftovers of an earlier attempt are useless.
    if ((await disk.size(path)) !== undefined) await disk.unlink(path);
    const target = await disk.open(path, 'create');
    let replaced: ReplacedFile | null = null;
    try {
      const rewriting = new Rewriting(options, next, source, target, positions, counts, all);
      replaced = await rewriting.run(record.length);
      if (replaced) await target.sync();
    } finally {
      await target.close();
      if (!replaced) await disk.unlink(path);
    }
    if (replaced) await disk.syncDirectory(logDirectory);
    return replaced;
  } finally {
    await source.close();
  }
}

class Rewriting {
  readonly #options: RedactionOptions;
  readonly #record: SealedFileRecord;
  readonly #source: DiskFile;
  readonly #target: DiskFile;
  readonly #positions: Ascending;
  readonly #counts: Redacted;
  readonly #all: Ascending;
  readonly #frameStarts: FrameStart[] = [];
  readonly #body = new ByteWriter(1 << 16);
  #offset = 0;
  #changed = false;

  constructor(
    options: RedactionOptions,
    record: SealedFileRecord,
    source: DiskFile,
    target: DiskFile,
    positions: Ascending,
    counts: Redacted,
    all: Ascending,
  ) {
    this.#all = all;
    this.#options = options;
    this.#record = record;
    this.#source = source;
    this.#target = target;
    this.#positions = positions;
    this.#counts = counts;
  }

  async run(length: number): Promise<ReplacedFile | null> {
    const { number, firstLeaf, firstPosition } = this.#record;
    await this.#write(encodeFileHeader({ file: number, firstLeaf, firstPosition, logId: this.#options.logId }));
    const scanner = new FrameScanner(this.#source, number, length, FILE_HEADER_BYTES);
    let last = { file: number, offset: 0, end: 0 };
    for (;;) {
      const { offset } = scanner;
      const scanned = await scanner.next();
      if (scanned.result === 'end') {
        if (offset !== length) throw malformedError(`${this.#source.path} offset ${offset}: frames up to ${length} are gone`);
        break;
      }
      if (scanned.result === 'bad') throw malformedError(`${this.#source.path} offset ${offset}: ${scanned.reason}`);
      const { header, bytes } = scanned;
      const stored = frameEntries(bytes, header);
      const facts = decodeLeaf(stored[0]!.leaf);
      const entries = stored.map((entry) => this.#redact(entry));
      const frameStart = { file: number, offset: this.#offset, firstLeaf: header.firstLeaf };
      this.#frameStarts.push({ ...frameStart, firstPosition: facts.position });
      await this.#write(encodeStored({ ...frameStart, durableThrough: header.durableThrough }, entries));
      last = { file: number, offset: frameStart.offset, end: this.#offset };
      await this.#options.yieldTurn();
    }
    if (!this.#changed) return null;
    return { record: { ...this.#record, length: this.#offset }, frameStarts: this.#frameStarts, lastFrame: last };
  }

  async #write(bytes: Uint8Array): Promise<void> {
    await writeFully(this.#target, bytes, this.#offset);
    this.#offset += bytes.length;
  }

  #redact(stored: FrameEntry): FrameEntry {
    const facts = decodeLeaf(stored.leaf);
    const rows = this.#rowsWithin(facts);
    if (rows.length === 0) return stored;
    const body = facts.kind === 'rows' ? this.#withoutRows(facts, stored, rows) : this.#withoutTexts(facts, stored);
    if (!body) return stored;
    this.#changed = true;
    const { keyring, random } = this.#options;
    const keyId = keyring.activeDataKey;
    const nonce = random.fill(new Uint8Array(NONCE_BYTES));
    return { leaf: stored.leaf, payload: sealPayload(body, { keyId, key: keyring.open(keyId), nonce }), redacted: true };
  }

  #withoutRows(facts: LeafFields, stored: FrameEntry, rows: readonly number[]): Uint8Array | null {
    const { redacted, payload } = stored;
    checkDigest(facts, payload, redacted);
    const { keyring } = this.#options;
    const plain = openPayload(payload, keyring);
    const { parts } = decodeOpened(facts, plain, { redacted, rows: true }, keyring.subjects);
    assert(parts.length > 0, 'rows have parts');
    // Rows that are sealed by subject stay as they are, byte for byte.
    const bytes = [...bytesOfParts(plain)];
    let isChanged = false;
    let first = 0;
    for (const [i, { body, secrets, sealed }] of parts.entries()) {
      const end = first + body.ops.length;
      const own = rows.filter((row) => row >= first && row < end).map((row) => row - first);
      first = end;
      if (own.length === 0) continue;
      if (sealed) {
        this.#counts.kept += own.length;
        continue;
      }
      const left = withoutRows({ body, secrets }, facts.context.path, own);
      if (!left) continue;
      this.#counts.rows += left.body.dropped!.length - (body.dropped?.length ?? 0);
      bytes[i] = encodePart(left.body, left.secrets);
      isChanged = true;
    }
    if (!isChanged) return null;
    if (bytes.length === 1) return bytes[0]!;
    this.#body.reset();
    joinParts(bytes, this.#body);
    return this.#body.view();
  }

  #withoutTexts(facts: LeafFields, stored: FrameEntry): Uint8Array | null {
    const { payload, redacted } = stored;
    const { body } = decodeEntry(facts, payload, this.#options.keyring, { redacted, rows: true });
    const blank = isOpen(body) && isEmbedded(body.content) ? this.#withoutVectors(body, body.content) : blankOf(body);
    if (!blank || isBlank(body)) return null;
    this.#counts.texts++;
    this.#body.reset();
    encodeBody(blank, [], this.#body);
    return this.#body.view();
  }

  /** Vectors of the versions that are dropped go, those of others stay. */
  #withoutVectors(body: OpenBody, content: Embedded): OpenBody | null {
    const left = withoutVectors(content, (position) => {
      const at = firstFrom(this.#all, position);
      return at < this.#all.length && this.#all[at] === position;
    });
    return left && { ...body, content: left };
  }

  /** Row numbers, within the entry, of the positions that it covers. */
  #rowsWithin({ position, positions }: LeafFields): readonly number[] {
    const rows: number[] = [];
    for (let i = firstFrom(this.#positions, position); i < this.#positions.length; i++) {
      const row = this.#positions[i]! - position;
      if (row >= positions) break;
      rows.push(row);
    }
    return rows;
  }
}

/** Index of the first number that is not below a bound. */
export function firstFrom(ascending: Ascending, bound: number): number {
  let low = 0;
  let high = ascending.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ascending[middle]! < bound) low = middle + 1;
    else high = middle;
  }
  return low;
}
