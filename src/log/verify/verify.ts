/**
 * Checks a log directory without trusting its writer. Shares only the codecs with it: reading, ordering, the judgement of the
 * tail and the tree's growth are done here a second time, from the drawings in `log-file.ts` and `entry-codec.ts`. Never halts at
 * a fault: it lists them all, each with its offset.
 *
 * Without keys everything is checked but the sealed bodies, and the report says so. With them a worker, where there is one, opens
 * bodies beside the walk; the walk checks those that it does not vouch for.
 */
import { checkBlob, listBlobs } from '../blobs/blobs.ts';
import { openCheckpoint } from '../tree/checkpoint-note.ts';
import type { Disk, DiskFile } from '../disk/disk.ts';
import type { CommittedEntry } from '../entries/entry.ts';
import {
  type BodyKeys,
  decodeEntryWithSecrets,
  decodeLeaf,
  entryOfChecked,
  type LeafFields,
  leafHashOf,
  noPreviousHash,
  type OpenedEntry,
} from '../entries/entry-codec.ts';
import type { BackgroundOpening } from '../files/frame-opener.ts';
import type { Keyring } from '../keys/keys.ts';
import { decodeFileHeader, FILE_HEADER_BYTES, type FrameEntry, frameEntries } from '../files/log-file.ts';
import { type LogFileRecord, logFileName, type Manifest, manifestPath, parseManifest, placeOfName } from '../files/manifest.ts';
import { Frontier } from '../tree/merkle-tree.ts';
import { equalBytes, hexOf, sha256 } from '../bytes/sha256.ts';
import { BodyChecker, FrameRun, type WalkedFrame } from './verify-bodies.ts';
import { FileWindow, nextFrame, onlyZeros, readAll } from './verify-frames.ts';

/** The part of a keyring that opens bodies and checks signatures. */
export type VerifyKeys = BodyKeys & Pick<Keyring, 'activeDataKey' | 'publicKeys'>;

export interface VerifyOptions {
  readonly disk: Disk;
  /** The data directory: `log/` lies in it. */
  readonly directory: string;
  /** Opens bodies. Without it payload digests are checked and bodies are not. */
  readonly keyring?: VerifyKeys;
  /** Bodies stay shut, though there are keys: they are for signatures, and for what the log itself wrote. */
  readonly sealed?: boolean;
  /** Opens bodies beside the calling thread, of a log that is worth it. */
  readonly openBeside?: BackgroundOpening;
  /** Keys that may have signed, where there is no keyring. */
  readonly publicKeys?: readonly Uint8Array[];
  /** Signed heads that someone kept elsewhere: the log must still contain each. */
  readonly heldCheckpoints?: readonly string[];
  /** How much is read, and looked at in one turn, where that is to be little. */
  readonly windowBytes?: number;
  readonly onProgress?: (bytes: number, bytesTotal: number) => void;
  /**
   * Every opened entry, in order: rebuilding projections beside the check. The next one waits for the promise; then the memory
   * of this one's body may be used again.
   */
  readonly onEntry?: (entry: CommittedEntry) => void | Promise<void>;
}

/** A fault in the log. */
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
  /**
   * Findings that are in order but worth knowing: a torn tail that a recovery would cut, signatures without a key to check them.
   */
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
  /** How many of them are erased: their keys are destroyed, and their hashes hold. */
  readonly rowsErased: number;
  /** How many of them were dropped from the files after an entry had removed them for good. */
  readonly rowsPruned: number;
  readonly seals: number;
  /** Large bodies whose content matches their name. */
  readonly blobs: number;
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
/** Kinds that take a leaf and no position. */
const placeless: ReadonlySet<string> = new Set(['access', 'seal', 'receipt', 'redaction']);

/** Kinds that the log writes by itself, and whose bodies describe the log. */
const ownKinds: ReadonlySet<string> = new Set(['genesis', 'seal']);

/** Kinds that say which rows may be missing. */
const removingKinds: ReadonlySet<string> = new Set(['removal', 'erasure']);

interface ExpectedRoot {
  readonly size: number;
  readonly root: Uint8Array;
  readonly place: string;
}

/** An entry of a frame. */
interface Vouched {
  readonly in: WalkedFrame;
  readonly i: number;
}

class Verification {
  readonly #options: VerifyOptions;
  readonly #log: string;
  /** Null: opens bodies inline. */
  #checker: BodyChecker | null = null;
  readonly #findings: Finding[] = [];
  readonly #notes: string[] = [];
  readonly #expected: ExpectedRoot[] = [];
  readonly #heads: { readonly origin: string; readonly place: string }[] = [];
  #origin: string | null = null;
  /** A next file that a crash left unlisted. */
  #begun: { readonly place: string; readonly firstLeaf: number } | null = null;
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
  #rowsErased = 0;
  /** Positions of rows that were dropped from the files, and of all that entries removed for good. */
  readonly #dropped: { readonly position: number; readonly place: string; readonly leaf: number }[] = [];
  readonly #removed = new Set<number>();
  #seals = 0;
  #blobs = 0;
  #unopened = 0;

  constructor(options: VerifyOptions) {
    this.#options = options;
    this.#log = `${options.directory}/log`;
  }

  async run(): Promise<VerifyReport> {
    const { disk, heldCheckpoints = [] } = this.#options;
    // In this order a server may write meanwhile: files that are read later cover those read first.
    const checkpoint = await this.#readCheckpoint();
    const names = await disk.list(this.#log);
    const records = await this.#readManifest(names);
    heldCheckpoints.forEach((note, i) => void this.#expectHead(note, `held checkpoint ${i + 1}`));
    for (const record of records) this.#bytesTotal += (await disk.size(`${this.#log}/${logFileName(record)}`)) ?? 0;
    this.#checker = this.#newChecker();
    try {
      for (const [i, record] of records.entries()) await this.#checkFile(record, i === records.length - 1);
    } finally {
      await this.#checker?.end();
    }
    this.#compareRoots();
    for (const { size, place } of this.#expected) this.#find(place, null, `commits to ${size} leaves; the log has ${this.#leaf}`);
    if (this.#begun && this.#begun.firstLeaf > this.#leaf) {
      this.#find(this.#begun.place, null, `begins with leaf ${this.#begun.firstLeaf}; the log before it has ${this.#leaf}`);
    }
    // A crash can come between the first seal and the first checkpoint, and not later.
    if (checkpoint === null && this.#seals > 1) this.#find('log/checkpoint', null, 'missing from a log that was sealed');
    for (const { position, place, leaf } of this.#dropped) {
      if (!this.#removed.has(position))
        this.#find(place, leaf, `the row at position ${position} is missing, and no entry removed it`);
    }
    await this.#checkBlobs();
    if (this.#unopened > 0) {
      const why = this.#options.keyring ? 'only what is sealed was to be checked' : 'no keys were given';
      this.#notes.push(`${this.#unopened} bodies were not opened: ${why}`);
    }
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
      rowsErased: this.#rowsErased,
      rowsPruned: this.#dropped.length,
      seals: this.#seals,
      blobs: this.#blobs,
      checkpoint,
    };
  }

  #newChecker(): BodyChecker | null {
    const { openBeside, keyring, sealed = false, onEntry } = this.#options;
    if (!openBeside || !keyring || sealed || this.#bytesTotal < openBeside.bytesMin) return null;
    return new BodyChecker(openBeside, keyring, onEntry !== undefined);
  }

  #windowOf(file: DiskFile, length: number): FileWindow {
    const windowBytes = this.#options.windowBytes ?? this.#options.openBeside?.windowBytes;
    return new FileWindow(file, length, { shared: this.#checker !== null, ...(windowBytes ? { windowBytes } : {}) });
  }

  /** The list of files that the manifest gives or, where it can't be read, that the directory suggests. */
  async #readManifest(names: readonly string[]): Promise<readonly LogFileRecord[]> {
    const present = names.filter((name) => placeOfName(name) !== undefined);
    let manifest: Manifest | undefined;
    try {
      const bytes = await this.#options.disk.readFile(manifestPath(this.#log));
      if (!bytes) return await this.#withoutManifest(present);
      manifest = parseManifest(Buffer.from(bytes).toString('latin1'));
    } catch (error) {
      this.#find('log/manifest', null, messageOf(error));
    }
    this.#logId = manifest?.logId ?? null;
    const records =
      manifest?.files ??
      present.map((name): LogFileRecord => ({ state: 'open', ...placeOfName(name)!, firstLeaf: -1, firstPosition: -1 }));
    const listed = new Set(records.map(logFileName));
    for (const name of present) {
      if (listed.has(name)) continue;
      const { number } = placeOfName(name)!;
      if (number < records.length)
        this.#notes.push(`log/${name} is not the file ${number} of the manifest; opening the log drops it`);
      // Made by a crash between the file's creation and the manifest's: the next opening begins it anew.
      else await this.#noteUnlisted(name);
    }
    return records;
  }

  /** A crash may come between the first file's creation and the manifest's; nothing has been said to be durable then. */
  async #withoutManifest(present: readonly string[]): Promise<readonly LogFileRecord[]> {
    for (const name of present) await this.#noteUnlisted(name);
    if (present.length > 1) this.#find('log/manifest', null, 'missing, and there are log files');
    else if (present.length === 0) this.#find('log', null, 'there is no log here');
    return [];
  }

  async #noteUnlisted(name: string): Promise<void> {
    const file = await this.#options.disk.open(`${this.#log}/${name}`, 'read');
    const length = await file.size();
    const window = new FileWindow(file, length);
    const frame = await nextFrame(window, Number(name.slice(0, 8)), 0, length);
    const head = await window.view(0, Math.min(length, FILE_HEADER_BYTES));
    await window.settle();
    await file.close();
    if (frame) return this.#find(`log/${name}`, null, 'holds entries and is not in the manifest');
    this.#notes.push(`log/${name} is not in the manifest and holds no entry`);
    try {
      // It was begun after everything before it had been synced.
      const { firstLeaf, logId } = decodeFileHeader(head);
      if (logId === this.#logId) this.#begun = { place: `log/${name}`, firstLeaf };
    } catch {
      // Not even its header is whole, so it says nothing.
    }
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
    this.#heads.push({ origin: match[1]!, place });
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
    const name = `log/${logFileName(record)}`;
    let file: DiskFile;
    try {
      file = await this.#options.disk.open(`${this.#options.directory}/${name}`, 'read');
    } catch (error) {
      this.#find(name, null, `can't be opened: ${messageOf(error)}`);
      return this.#skipTo(record.state === 'sealed' ? record.firstLeaf + record.leaves : this.#leaf);
    }
    let window: FileWindow | null = null;
    try {
      const length = await file.size();
      window = this.#windowOf(file, length);
      await this.#checkHeader(file, name, length, record);
      if (record.firstLeaf >= 0 && record.firstLeaf !== this.#leaf) {
        this.#find(
          name,
          record.firstLeaf,
          `begins with leaf ${record.firstLeaf} by the manifest, with ${this.#leaf} by its place`,
        );
      }
      const end = await this.#walk(window, name, record, length, last);
      if (last && this.#claimedLeaves() > this.#leaf)
        this.#find(`${name}@${end}`, this.#leaf, 'the log ends before what a signed head covers');
      if (record.state === 'sealed') this.#checkSealed(name, record, end, length);
    } catch (error) {
      this.#find(name, this.#leaf, `reading failed: ${messageOf(error)}`);
      this.#skipTo(record.state === 'sealed' ? record.firstLeaf + record.leaves : this.#leaf);
    } finally {
      await window?.settle();
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
  async #walk(window: FileWindow, name: string, record: LogFileRecord, length: number, last: boolean): Promise<number> {
    let at = FILE_HEADER_BYTES;
    let run = new FrameRun(window, record.number, at, length, this.#checker);
    for (;;) {
      const frame = await run.next();
      if (frame === null) return at;
      if (typeof frame !== 'string') {
        await this.#checkFrame(frame, name);
        at += frame.frame.bytes.length;
        this.#bytes += frame.frame.bytes.length;
        this.#options.onProgress?.(this.#bytes, this.#bytesTotal);
        continue;
      }
      const next = await nextFrame(window, record.number, at + 1, length);
      const open = record.state === 'open' && last && this.#claimedLeaves() <= this.#leaf;
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
      const claim =
        next === null && this.#claimedLeaves() > this.#leaf ? `, and a signed head covers ${this.#claimedLeaves()} leaves` : '';
      this.#find(`${name}@${at}`, this.#leaf, `${frame}${claim}`);
      if (next === null) return at;
      this.#skipTo(next.header.firstLeaf);
      at = next.at;
      run = new FrameRun(window, record.number, at, length, this.#checker);
    }
  }

  /** Most leaves that any signed head says were there. */
  #claimedLeaves(): number {
    return this.#expected.reduce((most, { size }) => Math.max(most, size), 0);
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

  async #checkFrame(walked: WalkedFrame, name: string): Promise<void> {
    const { header, bytes, at } = walked.frame;
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
    for (const [i, entry] of entries.entries()) {
      this.#compareRoots();
      const leaf = this.#leaf;
      try {
        const taken = this.#checkEntry(entry, place, walked.isVouched(i) ? { in: walked, i } : null);
        if (taken) await taken;
      } catch (error) {
        this.#find(place, leaf, messageOf(error));
        this.#skipTo(leaf + 1);
      }
    }
  }

  /** `vouched`: its body has been opened and is what the leaf says. Returns the work of the entry's receiver. */
  #checkEntry({ leaf: bytes, payload, redacted }: FrameEntry, place: string, vouched: Vouched | null): void | Promise<void> {
    const { onEntry } = this.#options;
    const hash = leafHashOf(bytes);
    const linked = this.#previousHash;
    const facts = decodeLeaf(bytes);
    if (linked && !equalBytes(facts.previousHash, linked)) this.#find(place, this.#leaf, 'does not link to the leaf before it');
    if (facts.leaf !== this.#leaf) this.#find(place, this.#leaf, `says that it is leaf ${facts.leaf}`);
    this.#checkOrder(facts, place);
    if (!vouched && !redacted && !equalBytes(sha256(payload), facts.payloadDigest)) {
      this.#find(place, this.#leaf, 'the payload does not match its digest');
    }
    let entry: CommittedEntry | null;
    if (vouched && !redacted && !ownKinds.has(facts.kind) && !removingKinds.has(facts.kind)) {
      this.#bodiesOpened++;
      if (facts.kind === 'rows') this.#rows += facts.positions;
      this.#rowsErased += vouched.in.erasedRows(vouched.i);
      entry = onEntry ? entryOfChecked(facts, vouched.in.body(vouched.i)) : null;
    } else entry = this.#openBody(facts, payload, redacted, place);
    this.#previousHash = hash;
    this.#tree?.append(hash);
    this.#leaf++;
    if (entry && onEntry) return onEntry(entry);
  }

  /** Positions are dense, times rise, and each kind covers as many positions as it may. */
  #checkOrder(facts: LeafFields, place: string): void {
    const { kind, position, positions, time } = facts;
    if (this.#position !== null && position !== this.#position) {
      this.#find(place, this.#leaf, `covers position ${position} where ${this.#position} comes next`);
    }
    if (this.#lastInstant !== null && time <= this.#lastInstant) this.#find(place, this.#leaf, 'its time does not rise');
    const fits = kind === 'rows' ? positions > 0 : positions === (placeless.has(kind) ? 0 : 1);
    if (!fits) this.#find(place, this.#leaf, `a ${kind} entry that covers ${positions} positions`);
    if ((kind === 'genesis') !== (this.#leaf === 0))
      this.#find(place, this.#leaf, 'the first entry, and no other, is the genesis');
    this.#position = position + positions;
    this.#lastInstant = time + BigInt(Math.max(0, positions - 1));
    if (kind === 'seal') this.#seals++;
  }

  /** Null where it stays shut, or does not open to what the leaf says. */
  #openBody(facts: LeafFields, payload: Uint8Array, redacted: boolean, place: string): CommittedEntry | null {
    const { keyring, sealed = false } = this.#options;
    if (!keyring || (sealed && !ownKinds.has(facts.kind))) {
      this.#unopened++;
      return null;
    }
    let opened: OpenedEntry;
    try {
      opened = decodeEntryWithSecrets(facts, payload, keyring, { redacted, rows: true });
    } catch (error) {
      this.#find(place, this.#leaf, messageOf(error));
      return null;
    }
    const { entry, parts } = opened;
    const { body } = entry;
    this.#bodiesOpened++;
    let { position } = facts;
    for (const { body: rows, sealed } of parts) {
      this.#rows += rows.ops.length;
      if (!redacted || sealed) this.#rowsErased += rows.dropped?.length ?? 0;
      else for (const row of rows.dropped ?? []) this.#dropped.push({ position: position + row, place, leaf: facts.leaf });
      position += rows.ops.length;
    }
    if (body.kind === 'removal') for (const position of body.positions) this.#removed.add(position);
    if (body.kind === 'erasure')
      for (const { positions } of body.versions) for (const position of positions) this.#removed.add(position);
    if (body.kind === 'genesis') this.#checkOrigin(body.origin);
    if (body.kind === 'genesis' && this.#logId !== null && body.logId !== this.#logId) {
      this.#find(place, this.#leaf, `begins log ${body.logId}`);
    }
    if (body.kind === 'seal') this.#checkSeal(body.treeSize, body.checkpoint, keyring, place);
    return entry;
  }

  /** Every head of this log is signed in the name that its first entry gave it. */
  #checkOrigin(origin: string): void {
    this.#origin = origin;
    for (const head of this.#heads) {
      if (head.origin !== origin) this.#find(head.place, null, `is a head of ${head.origin}; this log is ${origin}`);
    }
  }

  /** A seal signs the tree of all leaves before it. */
  #checkSeal(treeSize: number, note: string, keyring: VerifyKeys, place: string): void {
    const head = openCheckpointOf(note, this.#origin ?? note.slice(0, note.indexOf('\n')), keyring.publicKeys);
    if (typeof head === 'string') return this.#find(place, this.#leaf, head);
    if (treeSize !== this.#leaf || head.size !== this.#leaf) {
      this.#find(place, this.#leaf, `seals ${head.size} leaves where ${this.#leaf} come before it`);
    } else if (this.#tree && !equalBytes(head.root, this.#tree.root())) {
      this.#find(place, this.#leaf, 'seals another root than its leaves give');
    }
  }

  async #checkBlobs(): Promise<void> {
    const { disk, directory, keyring } = this.#options;
    if (!keyring || this.#options.sealed) {
      if ((await disk.list(`${directory}/blobs`)).length > 0)
        this.#notes.push(`blobs were not opened: ${keyring ? 'only what is sealed was to be checked' : 'no keys were given'}`);
      return;
    }
    for (const address of await listBlobs(disk, directory)) {
      try {
        // Removed for good while the others were looked at: it need not be there.
        if (await checkBlob({ disk, directory, keyring }, address)) this.#blobs++;
      } catch (error) {
        this.#find(`blobs/${address.slice(0, 2)}/${address}`, null, messageOf(error));
      }
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

  /** Continues at a later leaf. The leaves between are unknown, so nothing can be compared across them. */
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

function openCheckpointOf(
  note: string,
  origin: string,
  publicKeys: readonly Uint8Array[],
): { size: number; root: Uint8Array } | string {
  try {
    return openCheckpoint(note, origin, publicKeys);
  } catch (error) {
    return messageOf(error);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
