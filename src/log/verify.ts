/**
 * Checks a log directory without trusting what wrote it. Shares only the codecs with the writer: reading, ordering,
 * the judgement of the tail and the tree's growth are done here a second time, from the drawings in `log-file.ts` and
 * `entry-codec.ts`. Never halts at a mistake: it lists them all, each with its place.
 *
 * Without keys everything holds but what is sealed: bodies stay shut, and the report says so.
 */
import { ServiceError } from '../errors.ts';
import { openCheckpoint } from './checkpoint-note.ts';
import type { Disk, DiskFile } from './disk.ts';
import type { CommittedEntry } from './entry.ts';
import { decodeEntry, decodeLeaf, type LeafFacts, leafHashOf, noPreviousHash } from './entry-codec.ts';
import type { Keyring } from './keys.ts';
import {
  decodeFileHeader,
  decodeFrameHeader,
  FILE_HEADER_BYTES,
  FRAME_HEADER_BYTES,
  type FrameEntry,
  type FrameHeader,
  frameEntries,
  frameIsWhole,
} from './log-file.ts';
import { type LogFileRecord, logFileName, type Manifest, manifestPath, parseManifest } from './manifest.ts';
import { Frontier } from './merkle-tree.ts';
import { equalBytes, hexOf, sha256 } from './sha256.ts';

export interface VerifyOptions {
  readonly disk: Disk;
  /** The data directory: `log/` lies in it. */
  readonly directory: string;
  /** Opens bodies. Without it payload digests are checked and bodies are not. */
  readonly keyring?: Keyring;
  /** Keys that may have signed, where there is no keyring. */
  readonly publicKeys?: readonly Uint8Array[];
  /** Signed heads that someone kept elsewhere: the log must still contain each. */
  readonly heldCheckpoints?: readonly string[];
  readonly onProgress?: (bytes: number, bytesTotal: number) => void;
  /** Every opened entry, in order: rebuilding projections beside the check. */
  readonly onEntry?: (entry: CommittedEntry) => void;
}

/** Something that must not be. */
export interface Finding {
  /** Path below the data directory, with `@` and a byte offset where there is one. */
  readonly place: string;
  /** Number of the leaf concerned, where known. */
  readonly leaf: number | null;
  readonly what: string;
}

export interface VerifyReport {
  readonly ok: boolean;
  readonly findings: readonly Finding[];
  /** What is in order and worth knowing: a torn tail that a recovery would cut, signatures that nobody could check. */
  readonly notes: readonly string[];
  readonly logId: string | null;
  readonly files: number;
  readonly bytes: number;
  readonly frames: number;
  readonly leaves: number;
  readonly positions: number;
  /** Hex root over all leaves; null where a gap leaves none to compute. */
  readonly root: string | null;
  /** How many bodies were opened and checked row by row. */
  readonly bodiesOpened: number;
  readonly rows: number;
  readonly seals: number;
  /** The stored signed head, if there is one. */
  readonly checkpoint: { readonly size: number; readonly signature: 'verified' | 'not checked' | 'bad' } | null;
}

export async function verifyDirectory(options: VerifyOptions): Promise<VerifyReport> {
  return await new Verification(options).run();
}

export function checkpointPath(logDirectory: string): string {
  return `${logDirectory}/checkpoint`;
}

const findingsMax = 1000;
const windowBytes = 4 << 20;
const magic = Buffer.from('ANLF', 'latin1');

interface ExpectedRoot {
  readonly size: number;
  readonly root: Uint8Array;
  readonly place: string;
}

class Verification {
  readonly #options: VerifyOptions;
  readonly #log: string;
  readonly #findings: Finding[] = [];
  readonly #notes: string[] = [];
  readonly #expected: ExpectedRoot[] = [];
  #findingsLeftOut = 0;

  // Where the walk stands. A null means that a gap before it leaves nothing to compare with.
  #leaf = 0;
  #position: number | null = 0;
  #lastInstant: bigint | null = null;
  #previousHash: Uint8Array | null = noPreviousHash;
  #tree: Frontier | null = new Frontier();
  #durableThrough = 0;

  #logId: string | null = null;
  #bytes = 0;
  #bytesTotal = 0;
  #frames = 0;
  #bodiesOpened = 0;
  #rows = 0;
  #seals = 0;
  #unopened = 0;

  constructor(options: VerifyOptions) {
    this.#options = options;
    this.#log = `${options.directory}/log`;
  }

  async run(): Promise<VerifyReport> {
    const { disk, heldCheckpoints = [] } = this.#options;
    const names = await disk.list(this.#log);
    const records = await this.#readManifest(names);
    const checkpoint = await this.#readCheckpoint();
    heldCheckpoints.forEach((note, i) => void this.#expectHead(note, `held checkpoint ${i + 1}`));
    for (const { number } of records) this.#bytesTotal += (await disk.size(`${this.#log}/${logFileName(number)}`)) ?? 0;
    for (const [i, record] of records.entries()) await this.#checkFile(record, i === records.length - 1);
    this.#compareRoots();
    for (const { size, place } of this.#expected) {
      this.#find(place, null, `commits to ${size} leaves; the log has ${this.#leaf}`);
    }
    if (this.#unopened > 0) this.#notes.push(`${this.#unopened} bodies were not opened: no keys were given`);
    if (this.#findingsLeftOut > 0) this.#notes.push(`${this.#findingsLeftOut} more findings are left out`);
    return {
      ok: this.#findings.length === 0,
      findings: this.#findings,
      notes: this.#notes,
      logId: this.#logId,
      files: records.length,
      bytes: this.#bytes,
      frames: this.#frames,
      leaves: this.#leaf,
      positions: this.#position ?? 0,
      root: this.#tree && hexOf(this.#tree.root()),
      bodiesOpened: this.#bodiesOpened,
      rows: this.#rows,
      seals: this.#seals,
      checkpoint,
    };
  }

  /** The list of files that the manifest gives or, where it can't be read, that the directory suggests. */
  async #readManifest(names: readonly string[]): Promise<readonly LogFileRecord[]> {
    const present = names.filter((name) => /^\d{8}\.log$/.test(name));
    let manifest: Manifest | undefined;
    try {
      const bytes = await this.#options.disk.readFile(manifestPath(this.#log));
      if (bytes) manifest = parseManifest(Buffer.from(bytes).toString('latin1'));
      else if (present.length > 0) this.#find('log/manifest', null, 'missing, and there are log files');
      else this.#find('log', null, 'there is no log here');
    } catch (error) {
      this.#find('log/manifest', null, messageOf(error));
    }
    this.#logId = manifest?.logId ?? null;
    const records =
      manifest?.files ??
      present.map(
        (name): LogFileRecord => ({ state: 'open', number: Number(name.slice(0, 8)), firstLeaf: -1, firstPosition: -1 }),
      );
    const listed = new Set(records.map(({ number }) => logFileName(number)));
    for (const name of present) {
      // Made by a crash between the file's creation and the manifest's: the next opening begins it anew.
      if (!listed.has(name)) await this.#noteUnlisted(name);
    }
    return records;
  }

  async #noteUnlisted(name: string): Promise<void> {
    const size = (await this.#options.disk.size(`${this.#log}/${name}`)) ?? 0;
    const content = size > FILE_HEADER_BYTES ? await this.#options.disk.readFile(`${this.#log}/${name}`) : undefined;
    const holdsFrames = content !== undefined && Buffer.from(content).indexOf(magic, FILE_HEADER_BYTES) >= 0;
    if (holdsFrames) this.#find(`log/${name}`, null, 'holds entries and is not in the manifest');
    else this.#notes.push(`log/${name} is not in the manifest and holds no entry`);
  }

  async #readCheckpoint(): Promise<VerifyReport['checkpoint']> {
    const bytes = await this.#options.disk.readFile(checkpointPath(this.#log));
    if (!bytes) return null;
    return this.#expectHead(Buffer.from(bytes).toString('utf8'), 'log/checkpoint');
  }

  /** Reads a signed head and remembers the root that the log must have at its size. */
  #expectHead(note: string, place: string): VerifyReport['checkpoint'] {
    const match = /^([^\n]+)\n(0|[1-9]\d{0,15})\n([A-Za-z0-9+/]{43}=)\n\n— /.exec(note);
    if (!match) {
      this.#find(place, null, 'not a signed tree head');
      return null;
    }
    const size = Number(match[2]);
    this.#expected.push({ size, root: Buffer.from(match[3]!, 'base64'), place });
    const publicKeys = this.#options.keyring?.publicKeys ?? this.#options.publicKeys;
    if (!publicKeys) {
      this.#notes.push(`${place}: the signature was not checked: no public key was given`);
      return { size, signature: 'not checked' };
    }
    try {
      openCheckpoint(note, match[1]!, publicKeys);
      return { size, signature: 'verified' };
    } catch (error) {
      this.#find(place, null, messageOf(error));
      return { size, signature: 'bad' };
    }
  }

  async #checkFile(record: LogFileRecord, last: boolean): Promise<void> {
    const name = `log/${logFileName(record.number)}`;
    let file: DiskFile;
    try {
      file = await this.#options.disk.open(`${this.#options.directory}/${name}`, 'read');
    } catch (error) {
      this.#find(name, null, `can't be opened: ${messageOf(error)}`);
      return this.#skipTo(record.state === 'sealed' ? record.firstLeaf + record.leaves : this.#leaf);
    }
    try {
      const length = await file.size();
      await this.#checkHeader(file, name, length, record);
      if (record.firstLeaf >= 0 && record.firstLeaf !== this.#leaf) {
        this.#find(
          name,
          record.firstLeaf,
          `begins with leaf ${record.firstLeaf} by the manifest, with ${this.#leaf} by its place`,
        );
      }
      const end = await this.#walk(new Window(file, length), name, record, length, last);
      if (record.state === 'sealed') this.#checkSealed(name, record, end, length);
    } catch (error) {
      this.#find(name, this.#leaf, `reading failed: ${messageOf(error)}`);
      this.#skipTo(record.state === 'sealed' ? record.firstLeaf + record.leaves : this.#leaf);
    } finally {
      await file.close();
    }
  }

  async #checkHeader(file: DiskFile, name: string, length: number, record: LogFileRecord): Promise<void> {
    const bytes = new Uint8Array(Math.min(length, FILE_HEADER_BYTES));
    await readAll(file, bytes, 0);
    this.#bytes += bytes.length;
    try {
      const header = decodeFileHeader(bytes);
      if (header.file !== record.number) this.#find(name, null, `says that it is file ${header.file}`);
      if (this.#logId !== null && header.logId !== this.#logId) this.#find(name, null, `belongs to log ${header.logId}`);
      this.#logId ??= header.logId;
      const agrees = header.firstLeaf === record.firstLeaf && header.firstPosition === record.firstPosition;
      if (record.firstLeaf >= 0 && !agrees) this.#find(name, null, 'begins elsewhere than the manifest says');
    } catch (error) {
      this.#find(name, null, messageOf(error));
    }
  }

  /** Checks frame after frame; returns where the last one ended. */
  async #walk(window: Window, name: string, record: LogFileRecord, length: number, last: boolean): Promise<number> {
    let at = FILE_HEADER_BYTES;
    while (at < length) {
      const frame = await frameAt(window, record.number, at, length);
      if (typeof frame !== 'string') {
        this.#checkFrame(frame, name);
        at += frame.bytes.length;
        this.#bytes += frame.bytes.length;
        this.#options.onProgress?.(this.#bytes, this.#bytesTotal);
        continue;
      }
      const next = await nextFrame(window, record.number, at + 1, length);
      const open = record.state === 'open' && last;
      if (next === null && open) {
        if (!(await onlyZeros(window, at, length))) {
          this.#notes.push(
            `${name}@${at}: ${length - at} bytes that nothing says were durable (${frame}); opening the log cuts them`,
          );
        }
        return at;
      }
      if (next !== null && open && next.header.durableThrough <= this.#leaf) {
        this.#notes.push(`${name}@${at}: a torn tail of ${length - at} bytes (${frame}); opening the log cuts them`);
        return at;
      }
      this.#find(`${name}@${at}`, this.#leaf, frame);
      if (next === null) return at;
      this.#skipTo(next.header.firstLeaf);
      at = next.at;
    }
    return at;
  }

  #checkSealed(name: string, record: Extract<LogFileRecord, { state: 'sealed' }>, end: number, length: number): void {
    if (length !== record.length)
      this.#find(`${name}@${Math.min(length, record.length)}`, null, `has ${length} bytes; sealed with ${record.length}`);
    else if (end !== record.length) this.#find(`${name}@${end}`, null, `its frames end at ${end}; sealed with ${record.length}`);
    if (this.#leaf !== record.firstLeaf + record.leaves) {
      this.#find(name, null, `ends with ${this.#leaf} leaves in all; sealed with ${record.firstLeaf + record.leaves}`);
    }
    if (this.#tree && hexOf(this.#tree.root()) !== record.root)
      this.#find(name, null, 'does not give the root it was sealed with');
  }

  #checkFrame({ header, bytes, at }: FoundFrame, name: string): void {
    const place = `${name}@${at}`;
    this.#frames++;
    if (header.firstLeaf !== this.#leaf) {
      this.#find(place, this.#leaf, `a frame of leaf ${header.firstLeaf} stands where leaf ${this.#leaf} belongs`);
      this.#skipTo(header.firstLeaf);
    }
    if (header.durableThrough > header.firstLeaf)
      this.#find(place, header.firstLeaf, 'claims leaves durable that were not written');
    if (header.durableThrough < this.#durableThrough)
      this.#find(place, header.firstLeaf, 'knows less to be durable than a frame before it');
    this.#durableThrough = Math.max(this.#durableThrough, header.durableThrough);
    let entries: readonly FrameEntry[];
    try {
      entries = frameEntries(bytes, header);
    } catch (error) {
      this.#find(place, this.#leaf, messageOf(error));
      return this.#skipTo(header.firstLeaf + header.entries);
    }
    for (const entry of entries) {
      this.#compareRoots();
      try {
        this.#checkEntry(entry, place);
      } catch (error) {
        this.#find(place, this.#leaf, messageOf(error));
        this.#skipTo(this.#leaf + 1);
      }
    }
  }

  #checkEntry({ leaf: bytes, payload, redacted }: FrameEntry, place: string): void {
    const hash = leafHashOf(bytes);
    const linked = this.#previousHash;
    const facts = decodeLeaf(bytes);
    if (linked && !equalBytes(facts.previousHash, linked)) this.#find(place, this.#leaf, 'does not link to the leaf before it');
    if (facts.leaf !== this.#leaf) this.#find(place, this.#leaf, `says that it is leaf ${facts.leaf}`);
    this.#checkOrder(facts, place);
    if (!redacted && !equalBytes(sha256(payload), facts.payloadDigest)) {
      this.#find(place, this.#leaf, 'the payload does not match its digest');
    }
    this.#checkBody(facts, payload, redacted, place);
    this.#previousHash = hash;
    this.#tree?.append(hash);
    this.#leaf++;
  }

  /** Positions are dense, times rise, and each kind covers as many positions as it may. */
  #checkOrder(facts: LeafFacts, place: string): void {
    const { kind, position, positions, time } = facts;
    if (this.#position !== null && position !== this.#position) {
      this.#find(place, this.#leaf, `covers position ${position} where ${this.#position} comes next`);
    }
    if (this.#lastInstant !== null && time <= this.#lastInstant) this.#find(place, this.#leaf, 'its time does not rise');
    const fits = kind === 'rows' ? positions > 0 : positions === (kind === 'access' || kind === 'seal' ? 0 : 1);
    if (!fits) this.#find(place, this.#leaf, `a ${kind} entry that covers ${positions} positions`);
    if ((kind === 'genesis') !== (this.#leaf === 0))
      this.#find(place, this.#leaf, 'the first entry, and no other, is the genesis');
    this.#position = position + positions;
    this.#lastInstant = time + BigInt(Math.max(0, positions - 1));
    if (kind === 'seal') this.#seals++;
  }

  #checkBody(facts: LeafFacts, payload: Uint8Array, redacted: boolean, place: string): void {
    const { keyring, onEntry } = this.#options;
    if (!keyring) {
      this.#unopened++;
      return;
    }
    let entry: CommittedEntry;
    try {
      entry = decodeEntry(facts, payload, keyring, { redacted, rows: true });
    } catch (error) {
      return this.#find(place, this.#leaf, messageOf(error));
    }
    const { body } = entry;
    this.#bodiesOpened++;
    if (body.kind === 'rows') this.#rows += body.ops.length;
    if (body.kind === 'genesis' && this.#logId !== null && body.logId !== this.#logId) {
      this.#find(place, this.#leaf, `begins log ${body.logId}`);
    }
    if (body.kind === 'seal') this.#checkSeal(body.treeSize, body.checkpoint, keyring, place);
    onEntry?.(entry);
  }

  /** A seal signs the tree of all leaves before it. */
  #checkSeal(treeSize: number, note: string, keyring: Keyring, place: string): void {
    const head = openCheckpointOf(note, keyring.publicKeys);
    if (typeof head === 'string') return this.#find(place, this.#leaf, head);
    if (treeSize !== this.#leaf || head.size !== this.#leaf) {
      this.#find(place, this.#leaf, `seals ${head.size} leaves where ${this.#leaf} come before it`);
    } else if (this.#tree && !equalBytes(head.root, this.#tree.root())) {
      this.#find(place, this.#leaf, 'seals another root than its leaves give');
    }
  }

  /** Compares the tree as it stands with every head that commits to this size. */
  #compareRoots(): void {
    for (let i = this.#expected.length - 1; i >= 0; i--) {
      const { size, root, place } = this.#expected[i]!;
      if (size !== this.#leaf) continue;
      this.#expected.splice(i, 1);
      if (!this.#tree) this.#find(place, null, `can't be compared: leaves before ${size} are missing`);
      else if (!equalBytes(root, this.#tree.root())) this.#find(place, null, `commits to another root over ${size} leaves`);
    }
  }

  /** Goes on at a later leaf. What lay between is unknown, so nothing can be compared across it. */
  #skipTo(leaf: number): void {
    this.#leaf = leaf;
    this.#position = null;
    this.#lastInstant = null;
    this.#previousHash = null;
    this.#tree = null;
    const passed = this.#expected.filter(({ size }) => size < leaf);
    for (const expected of passed) this.#expected.splice(this.#expected.indexOf(expected), 1);
  }

  #find(place: string, leaf: number | null, what: string): void {
    if (this.#findings.length < findingsMax) this.#findings.push({ place, leaf, what });
    else this.#findingsLeftOut++;
  }
}

interface FoundFrame {
  readonly at: number;
  readonly header: FrameHeader;
  readonly bytes: Uint8Array;
}

/** The whole frame at an offset, or why there is none. */
async function frameAt(window: Window, file: number, at: number, length: number): Promise<FoundFrame | string> {
  const header = decodeFrameHeader(await window.view(at, Math.min(FRAME_HEADER_BYTES, length - at)), file, at);
  if (!header) return 'no frame header';
  const size = FRAME_HEADER_BYTES + header.size;
  if (at + size > length) return 'a frame longer than the file';
  const bytes = await window.view(at, size);
  return frameIsWhole(bytes) ? { at, header, bytes } : 'a frame that fails its checksum';
}

/** The first whole frame at or after an offset. */
async function nextFrame(window: Window, file: number, from: number, length: number): Promise<FoundFrame | null> {
  for (let at = from; at + FRAME_HEADER_BYTES <= length; ) {
    const view = await window.view(at, Math.min(windowBytes, length - at));
    const hit = Buffer.from(view.buffer, view.byteOffset, view.length).indexOf(magic);
    if (hit < 0) {
      at += Math.max(1, view.length - magic.length + 1);
      continue;
    }
    const frame = await frameAt(window, file, at + hit, length);
    if (typeof frame !== 'string') return frame;
    at += hit + 1;
  }
  return null;
}

async function onlyZeros(window: Window, from: number, length: number): Promise<boolean> {
  for (let at = from; at < length; at += windowBytes) {
    const view = await window.view(at, Math.min(windowBytes, length - at));
    for (let i = 0; i < view.length; i++) if (view[i] !== 0) return false;
  }
  return true;
}

/** A part of a file in memory, refilled when a view lies outside of it. */
class Window {
  readonly #file: DiskFile;
  readonly #length: number;
  #bytes = new Uint8Array(0);
  #at = 0;

  constructor(file: DiskFile, length: number) {
    this.#file = file;
    this.#length = length;
  }

  /** `size` bytes at `offset`, all inside the file. Later views leave this one as it is. */
  async view(offset: number, size: number): Promise<Uint8Array> {
    if (offset < this.#at || offset + size > this.#at + this.#bytes.length) {
      const bytes = new Uint8Array(Math.min(Math.max(size, windowBytes), this.#length - offset));
      await readAll(this.#file, bytes, offset);
      this.#bytes = bytes;
      this.#at = offset;
    }
    return this.#bytes.subarray(offset - this.#at, offset - this.#at + size);
  }
}

async function readAll(file: DiskFile, target: Uint8Array, offset: number): Promise<void> {
  for (let at = 0; at < target.length; ) {
    const count = await file.read(target.subarray(at), offset + at);
    if (count === 0) throw new ServiceError('REL_STORAGE', `${file.path} ended early`);
    at += count;
  }
}

function openCheckpointOf(note: string, publicKeys: readonly Uint8Array[]): { size: number; root: Uint8Array } | string {
  try {
    return openCheckpoint(note, note.slice(0, note.indexOf('\n')), publicKeys);
  } catch (error) {
    return messageOf(error);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
