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
 * Writes what is left of a sealed file once the rows and texts at these positions of it, ascending, are dropped, and vectors of `allPositions`. Durable under its new
 * name when it resolves; null when there is nothing to drop, and then nothing is left behind.
 */
export async function redactFile(
  redactionOptions: RedactionOptions,
  sealedRecord: SealedFileRecord,
  redactedPositions: Ascending,
  redactedCounts: Redacted,
  allPositions: Ascending = redactedPositions,
): Promise<ReplacedFile | null> {
  const { disk, logDirectory } = redactionOptions;
  const nextFileRecord: SealedFileRecord = { ...sealedRecord, generation: (sealedRecord.generation ?? 0) + 1 };
  const sourceFile = await disk.open(`${logDirectory}/${logFileName(sealedRecord)}`, 'read');
  try {
    const redactedPath = `${logDirectory}/${logFileName(nextFileRecord)}`;
    // Leftovers of an earlier attempt are useless.
    if ((await disk.size(redactedPath)) !== undefined) await disk.unlink(redactedPath);
    const redactedFile = await disk.open(redactedPath, 'create');
    let replacedFile: ReplacedFile | null = null;
    try {
      const fileRewrite = new FileRewrite(
        redactionOptions,
        nextFileRecord,
        sourceFile,
        redactedFile,
        redactedPositions,
        redactedCounts,
        allPositions,
      );
      replacedFile = await fileRewrite.run(sealedRecord.length);
      if (replacedFile) await redactedFile.sync();
    } finally {
      await redactedFile.close();
      if (!replacedFile) await disk.unlink(redactedPath);
    }
    if (replacedFile) await disk.syncDirectory(logDirectory);
    return replacedFile;
  } finally {
    await sourceFile.close();
  }
}

class FileRewrite {
  readonly #redactionOptions: RedactionOptions;
  readonly #redactedRecord: SealedFileRecord;
  readonly #sourceLogFile: DiskFile;
  readonly #redactedFile: DiskFile;
  readonly #redactedPositions: Ascending;
  readonly #redactedCounts: Redacted;
  readonly #allPositions: Ascending;
  readonly #frameStarts: FrameStart[] = [];
  readonly #bodyWriter = new ByteWriter(1 << 16);
  #redactedOffset = 0;
  #hasRedacted = false;

  constructor(
    redactionOptions: RedactionOptions,
    redactedRecord: SealedFileRecord,
    sourceLogFile: DiskFile,
    redactedFile: DiskFile,
    redactedPositions: Ascending,
    redactedCounts: Redacted,
    allPositions: Ascending,
  ) {
    this.#allPositions = allPositions;
    this.#redactionOptions = redactionOptions;
    this.#redactedRecord = redactedRecord;
    this.#sourceLogFile = sourceLogFile;
    this.#redactedFile = redactedFile;
    this.#redactedPositions = redactedPositions;
    this.#redactedCounts = redactedCounts;
  }

  async run(sourceLength: number): Promise<ReplacedFile | null> {
    const { number, firstLeaf, firstPosition } = this.#redactedRecord;
    await this.#writeRedacted(encodeFileHeader({ file: number, firstLeaf, firstPosition, logId: this.#redactionOptions.logId }));
    const frameScanner = new FrameScanner(this.#sourceLogFile, number, sourceLength, FILE_HEADER_BYTES);
    let lastRedactedFrame = { file: number, offset: 0, end: 0 };
    for (;;) {
      const { offset } = frameScanner;
      const scannedFrame = await frameScanner.next();
      if (scannedFrame.result === 'end') {
        if (offset !== sourceLength)
          throw malformedError(`${this.#sourceLogFile.path} offset ${offset}: frames up to ${sourceLength} are gone`);
        break;
      }
      if (scannedFrame.result === 'bad')
        throw malformedError(`${this.#sourceLogFile.path} offset ${offset}: ${scannedFrame.reason}`);
      const { header: frameHeader, bytes: sourceFrameBytes } = scannedFrame;
      const frameEntriesRead = frameEntries(sourceFrameBytes, frameHeader);
      const leafFields = decodeLeaf(frameEntriesRead[0]!.leaf);
      const redactedEntries = frameEntriesRead.map((sourceEntry) => this.#redactEntry(sourceEntry));
      const frameStart = { file: number, offset: this.#redactedOffset, firstLeaf: frameHeader.firstLeaf };
      this.#frameStarts.push({ ...frameStart, firstPosition: leafFields.position });
      await this.#writeRedacted(encodeStored({ ...frameStart, durableThrough: frameHeader.durableThrough }, redactedEntries));
      lastRedactedFrame = { file: number, offset: frameStart.offset, end: this.#redactedOffset };
      await this.#redactionOptions.yieldTurn();
    }
    if (!this.#hasRedacted) return null;
    return {
      record: { ...this.#redactedRecord, length: this.#redactedOffset },
      frameStarts: this.#frameStarts,
      lastFrame: lastRedactedFrame,
    };
  }

  async #writeRedacted(frameBytes: Uint8Array): Promise<void> {
    await writeFully(this.#redactedFile, frameBytes, this.#redactedOffset);
    this.#redactedOffset += frameBytes.length;
  }

  #redactEntry(storedEntry: FrameEntry): FrameEntry {
    const leafFields = decodeLeaf(storedEntry.leaf);
    const redactedRows = this.#rowsWithin(leafFields);
    if (redactedRows.length === 0) return storedEntry;
    const redactedBody =
      leafFields.kind === 'rows'
        ? this.#dropRows(leafFields, storedEntry, redactedRows)
        : this.#blankTexts(leafFields, storedEntry);
    if (!redactedBody) return storedEntry;
    this.#hasRedacted = true;
    const { keyring, random } = this.#redactionOptions;
    const dataKeyId = keyring.activeDataKey;
    const payloadNonce = random.fill(new Uint8Array(NONCE_BYTES));
    return {
      leaf: storedEntry.leaf,
      payload: sealPayload(redactedBody, { keyId: dataKeyId, key: keyring.open(dataKeyId), nonce: payloadNonce }),
      redacted: true,
    };
  }

  #dropRows(leafFields: LeafFields, storedEntry: FrameEntry, redactedRows: readonly number[]): Uint8Array | null {
    const { redacted, payload } = storedEntry;
    checkDigest(leafFields, payload, redacted);
    const { keyring } = this.#redactionOptions;
    const plainBody = openPayload(payload, keyring);
    const { parts: decodedParts } = decodeOpened(leafFields, plainBody, { redacted, rows: true }, keyring.subjects);
    assert(decodedParts.length > 0, 'rows have parts');
    // Rows that are sealed by subject stay as they are, byte for byte.
    const partBytes = [...bytesOfParts(plainBody)];
    let isChanged = false;
    let partStart = 0;
    for (const [i, { body, secrets, sealed }] of decodedParts.entries()) {
      const partEnd = partStart + body.ops.length;
      const partRows = redactedRows.filter((row) => row >= partStart && row < partEnd).map((row) => row - partStart);
      partStart = partEnd;
      if (partRows.length === 0) continue;
      if (sealed) {
        this.#redactedCounts.kept += partRows.length;
        continue;
      }
      const redactedPart = withoutRows({ body, secrets }, leafFields.context.path, partRows);
      if (!redactedPart) continue;
      this.#redactedCounts.rows += redactedPart.body.dropped!.length - (body.dropped?.length ?? 0);
      partBytes[i] = encodePart(redactedPart.body, redactedPart.secrets);
      isChanged = true;
    }
    if (!isChanged) return null;
    if (partBytes.length === 1) return partBytes[0]!;
    this.#bodyWriter.reset();
    joinParts(partBytes, this.#bodyWriter);
    return this.#bodyWriter.view();
  }

  #blankTexts(leafFields: LeafFields, storedEntry: FrameEntry): Uint8Array | null {
    const { payload, redacted } = storedEntry;
    const { body } = decodeEntry(leafFields, payload, this.#redactionOptions.keyring, { redacted, rows: true });
    const blankBody = isOpen(body) && isEmbedded(body.content) ? this.#dropVectors(body, body.content) : blankOf(body);
    if (!blankBody || isBlank(body)) return null;
    this.#redactedCounts.texts++;
    this.#bodyWriter.reset();
    encodeBody(blankBody, [], this.#bodyWriter);
    return this.#bodyWriter.view();
  }

  /** Vectors of the versions that are dropped go, those of others stay. */
  #dropVectors(body: OpenBody, content: Embedded): OpenBody | null {
    const redactedContent = withoutVectors(content, (position) => {
      const positionIndex = firstFrom(this.#allPositions, position);
      return positionIndex < this.#allPositions.length && this.#allPositions[positionIndex] === position;
    });
    return redactedContent && { ...body, content: redactedContent };
  }

  /** Row numbers, within the entry, of the positions that it covers. */
  #rowsWithin({ position, positions }: LeafFields): readonly number[] {
    const rows: number[] = [];
    for (let i = firstFrom(this.#redactedPositions, position); i < this.#redactedPositions.length; i++) {
      const row = this.#redactedPositions[i]! - position;
      if (row >= positions) break;
      rows.push(row);
    }
    return rows;
  }
}

/** Index of the first number that is not below a bound. */
export function firstFrom(ascendingPositions: Ascending, positionBound: number): number {
  let lowIndex = 0;
  let highIndex = ascendingPositions.length;
  while (lowIndex < highIndex) {
    const middleIndex = (lowIndex + highIndex) >> 1;
    if (ascendingPositions[middleIndex]! < positionBound) lowIndex = middleIndex + 1;
    else highIndex = middleIndex;
  }
  return lowIndex;
}
