/**
 * Checks a log directory without trusting its writer. Shares only the codecs with it: reading, ordering, the judgement of the
 * tail and the tree's growth are done here a second time, from the drawings in `log-file.ts` and `entry-codec.ts`. Never halts at
 * a fault: it lists them all, each with its offset.
 *
 * Without keys everything is checked but the sealed bodies, and the report says so. With them a worker, where there is one, opens
 * bodies beside the walk; the walk checks those that it does not vouch for.
 */
import { checkBlob, listBlobs } from '../blobs/blobs.ts';
import type { Disk, DiskFile } from '../disk/disk.ts';
import type { CommittedEntry } from '../entries/entry.ts';
import {
  type BodyKeys,
  decodeEntryWithSecrets,
  decodeLeaf,
  entryOfChecked,
  type LeafFields,
  leafHashOf,
  type OpenedEntry,
} from '../entries/entry-codec.ts';
import type { BackgroundOpening } from '../files/frame-opener.ts';
import type { Keyring } from '../keys/keys.ts';
import { decodeFileHeader, FILE_HEADER_BYTES, type FrameEntry, frameEntries } from '../files/log-file.ts';
import { type LogFileRecord, logFileName, type Manifest, manifestPath, parseManifest, parseFileName } from '../files/manifest.ts';
import { equalBytes, hexOf, sha256 } from '../bytes/sha256.ts';
import { BodyChecker, FrameRun, type WalkedFrame } from './verify-bodies.ts';
import { type Finding, messageOf, VerifyFindings } from './verify-findings.ts';
import { FileWindow, nextFrame, onlyZeros, readAll } from './verify-frames.ts';
import { type CheckedHead, ExpectedHeads } from './verify-heads.ts';
import { LogWalk } from './verify-walk.ts';

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
  readonly checkpoint: CheckedHead | null;
}

export async function verifyDirectory(options: VerifyOptions): Promise<VerifyReport> {
  return await new Verification(options).run();
}

export function checkpointPath(logDirectory: string): string {
  return `${logDirectory}/checkpoint`;
}

/** Kinds that the log writes by itself, and whose bodies describe the log. */
const ownKinds: ReadonlySet<string> = new Set(['genesis', 'seal']);

/** Kinds that say which rows may be missing. */
const removingKinds: ReadonlySet<string> = new Set(['removal', 'erasure']);

/** A log file that a crash left beside those that the manifest lists. */
interface UnlistedFile {
  readonly location: string;
  readonly firstLeaf: number;
}

/** Positions of rows that are missing from the files, and of all that entries removed for good: the former must be among the latter. */
interface MissingRows {
  readonly dropped: { readonly position: number; readonly location: string; readonly leaf: number }[];
  readonly removed: Set<number>;
}

/** An entry of a frame. */
interface Vouched {
  readonly in: WalkedFrame;
  readonly i: number;
}

class Verification {
  readonly #options: VerifyOptions;
  readonly #log: string;
  readonly #findings = new VerifyFindings();
  readonly #heads: ExpectedHeads;
  readonly #walk = new LogWalk(this.#findings);
  readonly #counts = { bytes: 0, frames: 0, bodiesOpened: 0, rows: 0, rowsErased: 0, seals: 0, blobs: 0, unopened: 0 };
  readonly #missingRows: MissingRows = { dropped: [], removed: new Set() };
  /** Null: opens bodies inline. */
  #checker: BodyChecker | null = null;
  #unlisted: UnlistedFile | null = null;
  #logId: string | null = null;
  #bytesTotal = 0;

  constructor(options: VerifyOptions) {
    this.#options = options;
    this.#log = `${options.directory}/log`;
    this.#heads = new ExpectedHeads(this.#findings, options.keyring?.publicKeys ?? options.publicKeys);
  }

  async run(): Promise<VerifyReport> {
    const { disk, heldCheckpoints = [] } = this.#options;
    // In this order a server may write meanwhile: files that are read later cover those read first.
    const checkpoint = await this.#readCheckpoint();
    const names = await disk.list(this.#log);
    const records = await this.#readManifest(names);
    heldCheckpoints.forEach((note, i) => void this.#heads.expect(note, `held checkpoint ${i + 1}`));
    for (const record of records) this.#bytesTotal += (await disk.size(`${this.#log}/${logFileName(record)}`)) ?? 0;
    this.#checker = this.#newChecker();
    try {
      for (const [i, record] of records.entries()) await this.#checkFile(record, i === records.length - 1);
    } finally {
      await this.#checker?.end();
    }
    this.#reportMissing(checkpoint === null);
    await this.#checkBlobs();
    const { unopened } = this.#counts;
    if (unopened > 0) {
      const why = this.#options.keyring ? 'only what is sealed was to be checked' : 'no keys were given';
      this.#findings.note(`${unopened} bodies were not opened: ${why}`);
    }
    this.#findings.close();
    const { findings, notes } = this.#findings;
    const { bytes, frames, bodiesOpened, rows, rowsErased, seals, blobs } = this.#counts;
    const { leaf, position, tree } = this.#walk;
    return {
      ok: findings.length === 0,
      findings,
      notes,
      logId: this.#logId,
      files: records.length,
      bytes,
      frames,
      leaves: leaf,
      positions: position ?? 0,
      root: tree && hexOf(tree.root()),
      bodiesOpened,
      rows,
      rowsErased,
      rowsPruned: this.#missingRows.dropped.length,
      seals,
      blobs,
      checkpoint,
    };
  }

  /** Reports what signed heads, the files and the rows' removals promise and the log does not have. */
  #reportMissing(noCheckpoint: boolean): void {
    const { leaf, tree } = this.#walk;
    this.#heads.compareRoots(leaf, tree);
    this.#heads.reportMissing(leaf);
    if (this.#unlisted && this.#unlisted.firstLeaf > leaf) {
      const { location, firstLeaf } = this.#unlisted;
      this.#findings.add(location, null, `begins with leaf ${firstLeaf}; the log before it has ${leaf}`);
    }
    // A crash can come between the first seal and the first checkpoint, and not later.
    if (noCheckpoint && this.#counts.seals > 1) this.#findings.add('log/checkpoint', null, 'missing from a log that was sealed');
    for (const row of this.#missingRows.dropped) {
      if (!this.#missingRows.removed.has(row.position))
        this.#findings.add(row.location, row.leaf, `the row at position ${row.position} is missing, and no entry removed it`);
    }
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
    const present = names.filter((name) => parseFileName(name) !== undefined);
    let manifest: Manifest | undefined;
    try {
      const bytes = await this.#options.disk.readFile(manifestPath(this.#log));
      if (!bytes) return await this.#withoutManifest(present);
      manifest = parseManifest(Buffer.from(bytes).toString('latin1'));
    } catch (error) {
      this.#findings.add('log/manifest', null, messageOf(error));
    }
    this.#logId = manifest?.logId ?? null;
    const records =
      manifest?.files ??
      present.map((name): LogFileRecord => ({ state: 'open', ...parseFileName(name)!, firstLeaf: -1, firstPosition: -1 }));
    const listed = new Set(records.map(logFileName));
    for (const name of present) {
      if (listed.has(name)) continue;
      const { number } = parseFileName(name)!;
      if (number < records.length)
        this.#findings.note(`log/${name} is not the file ${number} of the manifest; opening the log drops it`);
      // Made by a crash between the file's creation and the manifest's: the next opening begins it anew.
      else await this.#noteUnlisted(name);
    }
    return records;
  }

  /** A crash may come between the first file's creation and the manifest's; nothing has been said to be durable then. */
  async #withoutManifest(present: readonly string[]): Promise<readonly LogFileRecord[]> {
    for (const name of present) await this.#noteUnlisted(name);
    if (present.length > 1) this.#findings.add('log/manifest', null, 'missing, and there are log files');
    else if (present.length === 0) this.#findings.add('log', null, 'there is no log here');
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
    if (frame) return this.#findings.add(`log/${name}`, null, 'holds entries and is not in the manifest');
    this.#findings.note(`log/${name} is not in the manifest and holds no entry`);
    try {
      // It was begun after everything before it had been synced.
      const { firstLeaf, logId } = decodeFileHeader(head);
      if (logId === this.#logId) this.#unlisted = { location: `log/${name}`, firstLeaf };
    } catch {
      // Not even its header is whole, so it says nothing.
    }
  }

  async #readCheckpoint(): Promise<VerifyReport['checkpoint']> {
    const bytes = await this.#options.disk.readFile(checkpointPath(this.#log));
    if (!bytes) return null;
    return this.#heads.expect(Buffer.from(bytes).toString('utf8'), 'log/checkpoint');
  }

  async #checkFile(record: LogFileRecord, last: boolean): Promise<void> {
    const name = `log/${logFileName(record)}`;
    let file: DiskFile;
    try {
      file = await this.#options.disk.open(`${this.#options.directory}/${name}`, 'read');
    } catch (error) {
      this.#findings.add(name, null, `can't be opened: ${messageOf(error)}`);
      return this.#skipTo(record.state === 'sealed' ? record.firstLeaf + record.leaves : this.#walk.leaf);
    }
    let window: FileWindow | null = null;
    try {
      const length = await file.size();
      window = this.#windowOf(file, length);
      await this.#checkHeader(file, name, length, record);
      if (record.firstLeaf >= 0 && record.firstLeaf !== this.#walk.leaf) {
        this.#findings.add(
          name,
          record.firstLeaf,
          `begins with leaf ${record.firstLeaf} by the manifest, with ${this.#walk.leaf} by its place`,
        );
      }
      const end = await this.#checkFrames(window, name, record, length, last);
      if (last && this.#heads.claimedLeaves() > this.#walk.leaf)
        this.#findings.add(`${name}@${end}`, this.#walk.leaf, 'the log ends before what a signed head covers');
      if (record.state === 'sealed') this.#checkSealed(name, record, end, length);
    } catch (error) {
      this.#findings.add(name, this.#walk.leaf, `reading failed: ${messageOf(error)}`);
      this.#skipTo(record.state === 'sealed' ? record.firstLeaf + record.leaves : this.#walk.leaf);
    } finally {
      await window?.settle();
      await file.close();
    }
  }

  async #checkHeader(file: DiskFile, name: string, length: number, record: LogFileRecord): Promise<void> {
    const bytes = new Uint8Array(Math.min(length, FILE_HEADER_BYTES));
    await readAll(file, bytes, 0);
    this.#counts.bytes += bytes.length;
    try {
      const header = decodeFileHeader(bytes);
      if (header.file !== record.number) this.#findings.add(name, null, `says that it is file ${header.file}`);
      if (this.#logId !== null && header.logId !== this.#logId) this.#findings.add(name, null, `belongs to log ${header.logId}`);
      this.#logId ??= header.logId;
      const agrees = header.firstLeaf === record.firstLeaf && header.firstPosition === record.firstPosition;
      if (record.firstLeaf >= 0 && !agrees) this.#findings.add(name, null, 'begins elsewhere than the manifest says');
    } catch (error) {
      this.#findings.add(name, null, messageOf(error));
    }
  }

  /** Checks frame after frame; returns where the last one ended. */
  async #checkFrames(window: FileWindow, name: string, record: LogFileRecord, length: number, last: boolean): Promise<number> {
    let at = FILE_HEADER_BYTES;
    let run = new FrameRun(window, record.number, at, length, this.#checker);
    for (;;) {
      const frame = await run.next();
      if (frame === null) return at;
      if (typeof frame !== 'string') {
        await this.#checkFrame(frame, name);
        at += frame.frame.bytes.length;
        this.#counts.bytes += frame.frame.bytes.length;
        this.#options.onProgress?.(this.#counts.bytes, this.#bytesTotal);
        continue;
      }
      const next = await nextFrame(window, record.number, at + 1, length);
      const open = record.state === 'open' && last && this.#heads.claimedLeaves() <= this.#walk.leaf;
      if (next === null && open) {
        if (!(await onlyZeros(window, at, length))) {
          this.#findings.note(
            `${name}@${at}: ${length - at} bytes that nothing says were durable (${frame}); opening the log cuts them`,
          );
        }
        return at;
      }
      if (next !== null && open && next.header.durableThrough <= this.#walk.leaf) {
        this.#findings.note(`${name}@${at}: a torn tail of ${length - at} bytes (${frame}); opening the log cuts them`);
        return at;
      }
      const claim =
        next === null && this.#heads.claimedLeaves() > this.#walk.leaf
          ? `, and a signed head covers ${this.#heads.claimedLeaves()} leaves`
          : '';
      this.#findings.add(`${name}@${at}`, this.#walk.leaf, `${frame}${claim}`);
      if (next === null) return at;
      this.#skipTo(next.header.firstLeaf);
      at = next.at;
      run = new FrameRun(window, record.number, at, length, this.#checker);
    }
  }

  #checkSealed(name: string, record: Extract<LogFileRecord, { state: 'sealed' }>, end: number, length: number): void {
    if (length !== record.length)
      this.#findings.add(`${name}@${Math.min(length, record.length)}`, null, `has ${length} bytes; sealed with ${record.length}`);
    else if (end !== record.length)
      this.#findings.add(`${name}@${end}`, null, `its frames end at ${end}; sealed with ${record.length}`);
    if (this.#walk.leaf !== record.firstLeaf + record.leaves) {
      this.#findings.add(
        name,
        null,
        `ends with ${this.#walk.leaf} leaves in all; sealed with ${record.firstLeaf + record.leaves}`,
      );
    }
    if (this.#walk.tree && hexOf(this.#walk.tree.root()) !== record.root)
      this.#findings.add(name, null, 'does not give the root it was sealed with');
  }

  async #checkFrame(walked: WalkedFrame, name: string): Promise<void> {
    const { header, bytes, at } = walked.frame;
    const location = `${name}@${at}`;
    this.#counts.frames++;
    if (header.firstLeaf !== this.#walk.leaf) {
      this.#findings.add(
        location,
        this.#walk.leaf,
        `a frame of leaf ${header.firstLeaf} stands where leaf ${this.#walk.leaf} belongs`,
      );
      this.#skipTo(header.firstLeaf);
    }
    this.#walk.checkDurability(header, location);
    let entries: readonly FrameEntry[];
    try {
      entries = frameEntries(bytes, header);
    } catch (error) {
      this.#findings.add(location, this.#walk.leaf, messageOf(error));
      return this.#skipTo(header.firstLeaf + header.entries);
    }
    for (const [i, entry] of entries.entries()) {
      this.#heads.compareRoots(this.#walk.leaf, this.#walk.tree);
      const leaf = this.#walk.leaf;
      try {
        const taken = this.#checkEntry(entry, location, walked.isVouched(i) ? { in: walked, i } : null);
        if (taken) await taken;
      } catch (error) {
        this.#findings.add(location, leaf, messageOf(error));
        this.#skipTo(leaf + 1);
      }
    }
  }

  /** `vouched`: its body has been opened and is what the leaf says. Returns the work of the entry's receiver. */
  #checkEntry({ leaf: bytes, payload, redacted }: FrameEntry, location: string, vouched: Vouched | null): void | Promise<void> {
    const { onEntry } = this.#options;
    const hash = leafHashOf(bytes);
    const facts = decodeLeaf(bytes);
    this.#walk.checkLink(facts, location);
    this.#walk.checkOrder(facts, location);
    if (facts.kind === 'seal') this.#counts.seals++;
    if (!vouched && !redacted && !equalBytes(sha256(payload), facts.payloadDigest)) {
      this.#findings.add(location, this.#walk.leaf, 'the payload does not match its digest');
    }
    let entry: CommittedEntry | null;
    if (vouched && !redacted && !ownKinds.has(facts.kind) && !removingKinds.has(facts.kind)) {
      this.#counts.bodiesOpened++;
      if (facts.kind === 'rows') this.#counts.rows += facts.positions;
      this.#counts.rowsErased += vouched.in.erasedRows(vouched.i);
      entry = onEntry ? entryOfChecked(facts, vouched.in.body(vouched.i)) : null;
    } else entry = this.#openBody(facts, payload, redacted, location);
    this.#walk.append(hash);
    if (entry && onEntry) return onEntry(entry);
  }

  /** Null where it stays shut, or does not open to what the leaf says. */
  #openBody(facts: LeafFields, payload: Uint8Array, redacted: boolean, location: string): CommittedEntry | null {
    const { keyring, sealed = false } = this.#options;
    if (!keyring || (sealed && !ownKinds.has(facts.kind))) {
      this.#counts.unopened++;
      return null;
    }
    let opened: OpenedEntry;
    try {
      opened = decodeEntryWithSecrets(facts, payload, keyring, { redacted, rows: true });
    } catch (error) {
      this.#findings.add(location, this.#walk.leaf, messageOf(error));
      return null;
    }
    const { entry, parts } = opened;
    const { body } = entry;
    this.#counts.bodiesOpened++;
    let { position } = facts;
    for (const { body: rows, sealed } of parts) {
      this.#counts.rows += rows.ops.length;
      if (!redacted || sealed) this.#counts.rowsErased += rows.dropped?.length ?? 0;
      else
        for (const row of rows.dropped ?? [])
          this.#missingRows.dropped.push({ position: position + row, location, leaf: facts.leaf });
      position += rows.ops.length;
    }
    if (body.kind === 'removal') for (const position of body.positions) this.#missingRows.removed.add(position);
    if (body.kind === 'erasure')
      for (const { positions } of body.versions) for (const position of positions) this.#missingRows.removed.add(position);
    if (body.kind === 'genesis') this.#heads.checkOrigin(body.origin);
    if (body.kind === 'genesis' && this.#logId !== null && body.logId !== this.#logId) {
      this.#findings.add(location, this.#walk.leaf, `begins log ${body.logId}`);
    }
    if (body.kind === 'seal') this.#heads.checkSeal(body, keyring.publicKeys, this.#walk, location);
    return entry;
  }

  async #checkBlobs(): Promise<void> {
    const { disk, directory, keyring } = this.#options;
    if (!keyring || this.#options.sealed) {
      if ((await disk.list(`${directory}/blobs`)).length > 0)
        this.#findings.note(`blobs were not opened: ${keyring ? 'only what is sealed was to be checked' : 'no keys were given'}`);
      return;
    }
    for (const address of await listBlobs(disk, directory)) {
      try {
        // Removed for good while the others were looked at: it need not be there.
        if (await checkBlob({ disk, directory, keyring }, address)) this.#counts.blobs++;
      } catch (error) {
        this.#findings.add(`blobs/${address.slice(0, 2)}/${address}`, null, messageOf(error));
      }
    }
  }

  /** Continues at a later leaf. */
  #skipTo(leaf: number): void {
    this.#walk.skipTo(leaf);
    this.#heads.skipTo(leaf);
  }
}
