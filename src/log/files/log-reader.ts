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
const SLICE_MS = 2;

export function readEntries(range: ReadRange, frames: FrameIndex, clock: Clock): AsyncGenerator<CommittedEntry> {
  // Files and places are of one moment.
  return readFrom(range, frames.frameBefore(range.fromLeaf), clock);
}

async function* readFrom(range: ReadRange, start: FrameStart | undefined, clock: Clock): AsyncGenerator<CommittedEntry> {
  if (start === undefined) return;
  const slices = new Slices(clock);
  for (const record of range.files.slice(start.file)) {
    yield* readFileEntries(range, record, record.number === start.file ? start.offset : FILE_HEADER_BYTES, slices);
  }
}

interface OpenedFile {
  readonly file: DiskFile;
  readonly path: string;
  readonly length: number;
  readonly from: number;
}

/** The file that held these leaves, or, where that was written anew meanwhile, the one that holds them now. */
async function openFile(
  { disk, logDirectory, openLength, current }: Omit<ReadRange, 'fromLeaf' | 'keyring' | 'files'>,
  record: LogFileRecord,
  from: number,
): Promise<OpenedFile> {
  let known = record;
  let start = from;
  for (;;) {
    const path = `${logDirectory}/${logFileName(known)}`;
    try {
      const file = await disk.open(path, 'read');
      return { file, path, length: known.state === 'sealed' ? known.length : openLength, from: start };
    } catch (error) {
      const now = current(record.number);
      if (logFileName(now) === logFileName(known)) throw error;
      known = now;
      start = FILE_HEADER_BYTES;
    }
  }
}

class Slices {
  readonly #clock: Clock;
  #start: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#start = clock.monotonicMs();
  }

  /** Whether what has been done since the last turn is enough. */
  get isOver(): boolean {
    return this.#clock.monotonicMs() - this.#start >= SLICE_MS;
  }

  async turn(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.#start = this.#clock.monotonicMs();
  }
}

/** Between two notes of the index lie about so many bytes. */
const LOOKUP_BYTES = 128 << 10;

export type EntryLocator = { readonly leaf: number } | { readonly position: number };

/**
 * One entry as it is stored, as views of what was read: the one with this leaf, or the one that covers this position; and behind
 * it those that follow it in its frame. Empty when none that was written does.
 */
export async function readStoredEntries(
  range: Omit<ReadRange, 'fromLeaf' | 'keyring'>,
  frames: FrameIndex,
  locator: EntryLocator,
): Promise<readonly FrameEntry[]> {
  const start = 'leaf' in locator ? frames.frameBefore(locator.leaf) : frames.beforePosition(locator.position);
  if (start === undefined) return [];
  let from = start.offset;
  for (const record of range.files.slice(start.file)) {
    const { file, path, length, from: begin } = await openFile(range, record, from);
    try {
      await mustBe(record, path, file);
      const scanner = new FrameScanner(file, record.number, length, begin, { chunkBytes: LOOKUP_BYTES });
      for (;;) {
        const { offset } = scanner;
        const scanned = await scanner.next();
        if (scanned.result === 'end') {
          mustEndAt(path, offset, length);
          break;
        }
        if (scanned.result === 'bad') throw new ServiceError('REL_STORAGE', `${path} offset ${offset}: ${scanned.reason}`);
        const { header } = scanned;
        if ('leaf' in locator && header.firstLeaf + header.entries <= locator.leaf) continue;
        const entries = frameEntries(scanned.bytes, header);
        const entryIndex = entries.findIndex(({ leaf }) => {
          const span = leafSpan(leaf);
          return 'leaf' in locator ? span.leaf === locator.leaf : span.position + span.positions > locator.position;
        });
        if (entryIndex >= 0) return entries.slice(entryIndex);
      }
    } finally {
      await file.close();
    }
    from = FILE_HEADER_BYTES;
  }
  return [];
}

/** A log that was opened from a saved state has not read its old files, their headers included. */
async function mustBe(record: LogFileRecord, path: string, file: DiskFile): Promise<void> {
  const bytes = new Uint8Array(FILE_HEADER_BYTES);
  await readFully(file, bytes, 0);
  const header = decodeFileHeader(bytes);
  if (header.file !== record.number || header.firstLeaf !== record.firstLeaf || header.firstPosition !== record.firstPosition)
    throw new ServiceError('REL_STORAGE', `${path} does not fit its place in the manifest`);
}

/** For the same reason zeros where frames were are no end of a file. */
function mustEndAt(path: string, offset: number, length: number): void {
  if (offset < length) throw new ServiceError('REL_STORAGE', `${path} offset ${offset}: frames up to ${length} are gone`);
}

async function* readFileEntries(
  range: ReadRange,
  record: LogFileRecord,
  from: number,
  slices: Slices,
): AsyncGenerator<CommittedEntry> {
  const { file, path, length, from: begin } = await openFile(range, record, from);
  try {
    await mustBe(record, path, file);
    const scanner = new FrameScanner(file, record.number, length, begin);
    for (;;) {
      if (slices.isOver) await slices.turn();
      const offset = scanner.offset;
      const scanned = await scanner.next();
      if (scanned.result === 'end') return mustEndAt(path, offset, length);
      if (scanned.result === 'bad') throw new ServiceError('REL_STORAGE', `${path} offset ${offset}: ${scanned.reason}`);
      const { header } = scanned;
      if (header.firstLeaf + header.entries <= range.fromLeaf) continue;
      for (const stored of frameEntries(scanned.bytes, header)) {
        const facts = decodeLeaf(stored.leaf);
        if (facts.leaf < range.fromLeaf) continue;
        if (slices.isOver) await slices.turn();
        yield decodeEntry(facts, stored.payload, range.keyring, { redacted: stored.redacted, rows: false });
      }
    }
  } finally {
    await file.close();
  }
}
