/**
 * Reading back while the log is open: what had been written when the call was made, verified frame by frame, from the frame
 * that the index knows before the first leaf on. Others get their turn every few milliseconds.
 */
import { ServiceError } from '../../errors.ts';
import type { Clock } from '../../clock.ts';
import type { Disk, DiskFile } from '../disk/disk.ts';
import { decodeEntry, decodeLeaf, leafSpan } from '../entries/entry-codec.ts';
import type { CommittedEntry } from '../entries/entry.ts';
import type { FrameIndex, FrameStart } from './frame-index.ts';
import type { Keyring } from '../keys/keys.ts';
import { decodeFileHeader, FILE_HEADER_BYTES, type FrameEntry, FrameScanner, frameEntries, readFully } from './log-file.ts';
import { type LogFileRecord, logFileName } from './manifest.ts';

export interface ReadRange {
  readonly disk: Disk;
  readonly keyring: Keyring;
  readonly logDirectory: string;
  readonly files: readonly LogFileRecord[];
  /** Bytes of the last file that hold frames. */
  readonly openLength: number;
  /** As the list names it by now: a sealed file may have been written anew meanwhile, with the same leaves. */
  readonly current: (number: number) => LogFileRecord;
  readonly fromLeaf: number;
}

/** How long frames are read before others get their turn. */
const READER_SLICE_MS = 2;

export function readEntries(readRange: ReadRange, frames: FrameIndex, clock: Clock): AsyncGenerator<CommittedEntry> {
  // Files and places are of one moment.
  return readEntriesFrom(readRange, frames.frameBefore(readRange.fromLeaf), clock);
}

async function* readEntriesFrom(
  readRange: ReadRange,
  frameStart: FrameStart | undefined,
  clock: Clock,
): AsyncGenerator<CommittedEntry> {
  if (frameStart === undefined) return;
  const readerSlices = new ReaderSlices(clock);
  for (const fileRecord of readRange.files.slice(frameStart.file)) {
    yield* readFileEntries(
      readRange,
      fileRecord,
      fileRecord.number === frameStart.file ? frameStart.offset : FILE_HEADER_BYTES,
      readerSlices,
    );
  }
}

interface OpenedLogFile {
  readonly file: DiskFile;
  readonly path: string;
  readonly length: number;
  readonly from: number;
}

/** The file that held these leaves, or, where that was written anew meanwhile, the one that holds them now. */
async function openLogFile(
  { disk, logDirectory, openLength, current }: Omit<ReadRange, 'fromLeaf' | 'keyring' | 'files'>,
  listedRecord: LogFileRecord,
  readOffset: number,
): Promise<OpenedLogFile> {
  let knownRecord = listedRecord;
  let readStart = readOffset;
  for (;;) {
    const logFilePath = `${logDirectory}/${logFileName(knownRecord)}`;
    try {
      const logFile = await disk.open(logFilePath, 'read');
      return {
        file: logFile,
        path: logFilePath,
        length: knownRecord.state === 'sealed' ? knownRecord.length : openLength,
        from: readStart,
      };
    } catch (error) {
      const currentRecord = current(listedRecord.number);
      if (logFileName(currentRecord) === logFileName(knownRecord)) throw error;
      knownRecord = currentRecord;
      readStart = FILE_HEADER_BYTES;
    }
  }
}

class ReaderSlices {
  readonly #readerClock: Clock;
  #sliceStartMs: number;

  constructor(clock: Clock) {
    this.#readerClock = clock;
    this.#sliceStartMs = clock.monotonicMs();
  }

  /** Whether what has been done since the last turn is enough. */
  get isOver(): boolean {
    return this.#readerClock.monotonicMs() - this.#sliceStartMs >= READER_SLICE_MS;
  }

  async turn(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.#sliceStartMs = this.#readerClock.monotonicMs();
  }
}

/** Between two notes of the index lie about so many bytes. */
const LOOKUP_CHUNK_BYTES = 128 << 10;

export type EntryLocator = { readonly leaf: number } | { readonly position: number };

/**
 * One entry as it is stored, as views of what was read: the one with this leaf, or the one that covers this position; and behind
 * it those that follow it in its frame. Empty when none that was written does.
 */
export async function readStoredEntries(
  readRange: Omit<ReadRange, 'fromLeaf' | 'keyring'>,
  frames: FrameIndex,
  locator: EntryLocator,
): Promise<readonly FrameEntry[]> {
  const frameStart = 'leaf' in locator ? frames.frameBefore(locator.leaf) : frames.beforePosition(locator.position);
  if (frameStart === undefined) return [];
  let readOffset = frameStart.offset;
  for (const fileRecord of readRange.files.slice(frameStart.file)) {
    const {
      file: logFile,
      path: logFilePath,
      length: logFileLength,
      from: scanStart,
    } = await openLogFile(readRange, fileRecord, readOffset);
    try {
      await checkLogFileHeader(fileRecord, logFilePath, logFile);
      const frameScanner = new FrameScanner(logFile, fileRecord.number, logFileLength, scanStart, {
        chunkBytes: LOOKUP_CHUNK_BYTES,
      });
      for (;;) {
        const { offset } = frameScanner;
        const scannedFrame = await frameScanner.next();
        if (scannedFrame.result === 'end') {
          checkScannedEnd(logFilePath, offset, logFileLength);
          break;
        }
        if (scannedFrame.result === 'bad')
          throw new ServiceError('REL_STORAGE', `${logFilePath} offset ${offset}: ${scannedFrame.reason}`);
        const { header: frameHeader } = scannedFrame;
        if ('leaf' in locator && frameHeader.firstLeaf + frameHeader.entries <= locator.leaf) continue;
        const foundEntries = frameEntries(scannedFrame.bytes, frameHeader);
        const entryIndex = foundEntries.findIndex(({ leaf }) => {
          const entrySpan = leafSpan(leaf);
          return 'leaf' in locator
            ? entrySpan.leaf === locator.leaf
            : entrySpan.position + entrySpan.positions > locator.position;
        });
        if (entryIndex >= 0) return foundEntries.slice(entryIndex);
      }
    } finally {
      await logFile.close();
    }
    readOffset = FILE_HEADER_BYTES;
  }
  return [];
}

/** A log that was opened from a saved state has not read its old files, their headers included. */
async function checkLogFileHeader(fileRecord: LogFileRecord, logFilePath: string, file: DiskFile): Promise<void> {
  const headerBytes = new Uint8Array(FILE_HEADER_BYTES);
  await readFully(file, headerBytes, 0);
  const fileHeader = decodeFileHeader(headerBytes);
  if (
    fileHeader.file !== fileRecord.number ||
    fileHeader.firstLeaf !== fileRecord.firstLeaf ||
    fileHeader.firstPosition !== fileRecord.firstPosition
  )
    throw new ServiceError('REL_STORAGE', `${logFilePath} does not fit its place in the manifest`);
}

/** For the same reason zeros where frames were are no end of a file. */
function checkScannedEnd(path: string, scannedOffset: number, logFileLength: number): void {
  if (scannedOffset < logFileLength)
    throw new ServiceError('REL_STORAGE', `${path} offset ${scannedOffset}: frames up to ${logFileLength} are gone`);
}

async function* readFileEntries(
  readRange: ReadRange,
  fileRecord: LogFileRecord,
  readOffset: number,
  readerSlices: ReaderSlices,
): AsyncGenerator<CommittedEntry> {
  const {
    file: logFile,
    path: logFilePath,
    length: logFileLength,
    from: scanStart,
  } = await openLogFile(readRange, fileRecord, readOffset);
  try {
    await checkLogFileHeader(fileRecord, logFilePath, logFile);
    const frameScanner = new FrameScanner(logFile, fileRecord.number, logFileLength, scanStart);
    for (;;) {
      if (readerSlices.isOver) await readerSlices.turn();
      const offset = frameScanner.offset;
      const scannedFrame = await frameScanner.next();
      if (scannedFrame.result === 'end') return checkScannedEnd(logFilePath, offset, logFileLength);
      if (scannedFrame.result === 'bad')
        throw new ServiceError('REL_STORAGE', `${logFilePath} offset ${offset}: ${scannedFrame.reason}`);
      const { header: frameHeader } = scannedFrame;
      if (frameHeader.firstLeaf + frameHeader.entries <= readRange.fromLeaf) continue;
      for (const storedEntry of frameEntries(scannedFrame.bytes, frameHeader)) {
        const leafFields = decodeLeaf(storedEntry.leaf);
        if (leafFields.leaf < readRange.fromLeaf) continue;
        if (readerSlices.isOver) await readerSlices.turn();
        yield decodeEntry(leafFields, storedEntry.payload, readRange.keyring, { redacted: storedEntry.redacted, rows: false });
      }
    }
  } finally {
    await logFile.close();
  }
}
