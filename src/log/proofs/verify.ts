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

export async function verifyDirectory(verifyOptions: VerifyOptions): Promise<VerifyReport> {
  return await new LogVerification(verifyOptions).run();
}

export function checkpointPath(logDirectory: string): string {
  return `${logDirectory}/checkpoint`;
}

/** Kinds that the log writes by itself, and whose bodies describe the log. */
const storeEntryKinds: ReadonlySet<string> = new Set(['genesis', 'seal']);

/** Kinds that say which rows may be missing. */
const removingEntryKinds: ReadonlySet<string> = new Set(['removal', 'erasure']);

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
interface VouchedBody {
  readonly in: WalkedFrame;
  readonly i: number;
}

class LogVerification {
  readonly #verifyOptions: VerifyOptions;
  readonly #verifiedLog: string;
  readonly #verifyFindings = new VerifyFindings();
  readonly #expectedHeads: ExpectedHeads;
  readonly #logWalk = new LogWalk(this.#verifyFindings);
  readonly #verifyCounts = { bytes: 0, frames: 0, bodiesOpened: 0, rows: 0, rowsErased: 0, seals: 0, blobs: 0, unopened: 0 };
  readonly #missingRows: MissingRows = { dropped: [], removed: new Set() };
  /** Null: opens bodies inline. */
  #bodyChecker: BodyChecker | null = null;
  #unlistedFile: UnlistedFile | null = null;
  #verifiedLogId: string | null = null;
  #logBytesTotal = 0;

  constructor(verifyOptions: VerifyOptions) {
    this.#verifyOptions = verifyOptions;
    this.#verifiedLog = `${verifyOptions.directory}/log`;
    this.#expectedHeads = new ExpectedHeads(this.#verifyFindings, verifyOptions.keyring?.publicKeys ?? verifyOptions.publicKeys);
  }

  async run(): Promise<VerifyReport> {
    const { disk, heldCheckpoints = [] } = this.#verifyOptions;
    // In this order a server may write meanwhile: files that are read later cover those read first.
    const checkpoint = await this.#readCheckpoint();
    const logFileNames = await disk.list(this.#verifiedLog);
    const fileRecords = await this.#readManifest(logFileNames);
    heldCheckpoints.forEach((heldCheckpoint, i) => void this.#expectedHeads.expect(heldCheckpoint, `held checkpoint ${i + 1}`));
    for (const fileRecord of fileRecords)
      this.#logBytesTotal += (await disk.size(`${this.#verifiedLog}/${logFileName(fileRecord)}`)) ?? 0;
    this.#bodyChecker = this.#newChecker();
    try {
      for (const [i, record] of fileRecords.entries()) await this.#checkLogFile(record, i === fileRecords.length - 1);
    } finally {
      await this.#bodyChecker?.end();
    }
    this.#reportMissing(checkpoint === null);
    await this.#checkBlobs();
    const { unopened } = this.#verifyCounts;
    if (unopened > 0) {
      const unopenedReason = this.#verifyOptions.keyring ? 'only what is sealed was to be checked' : 'no keys were given';
      this.#verifyFindings.note(`${unopened} bodies were not opened: ${unopenedReason}`);
    }
    this.#verifyFindings.close();
    const { findings, notes } = this.#verifyFindings;
    const { bytes, frames, bodiesOpened, rows, rowsErased, seals, blobs } = this.#verifyCounts;
    const { leaf, position, tree } = this.#logWalk;
    return {
      ok: findings.length === 0,
      findings,
      notes,
      logId: this.#verifiedLogId,
      files: fileRecords.length,
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
  #reportMissing(lacksCheckpoint: boolean): void {
    const { leaf, tree } = this.#logWalk;
    this.#expectedHeads.compareRoots(leaf, tree);
    this.#expectedHeads.reportMissing(leaf);
    if (this.#unlistedFile && this.#unlistedFile.firstLeaf > leaf) {
      const { location, firstLeaf } = this.#unlistedFile;
      this.#verifyFindings.add(location, null, `begins with leaf ${firstLeaf}; the log before it has ${leaf}`);
    }
    // A crash can come between the first seal and the first checkpoint, and not later.
    if (lacksCheckpoint && this.#verifyCounts.seals > 1)
      this.#verifyFindings.add('log/checkpoint', null, 'missing from a log that was sealed');
    for (const droppedRow of this.#missingRows.dropped) {
      if (!this.#missingRows.removed.has(droppedRow.position))
        this.#verifyFindings.add(
          droppedRow.location,
          droppedRow.leaf,
          `the row at position ${droppedRow.position} is missing, and no entry removed it`,
        );
    }
  }

  #newChecker(): BodyChecker | null {
    const { openBeside, keyring, sealed = false, onEntry } = this.#verifyOptions;
    if (!openBeside || !keyring || sealed || this.#logBytesTotal < openBeside.bytesMin) return null;
    return new BodyChecker(openBeside, keyring, onEntry !== undefined);
  }

  #fileWindowOf(verifiedFile: DiskFile, fileLength: number): FileWindow {
    const windowBytes = this.#verifyOptions.windowBytes ?? this.#verifyOptions.openBeside?.windowBytes;
    return new FileWindow(verifiedFile, fileLength, {
      shared: this.#bodyChecker !== null,
      ...(windowBytes ? { windowBytes } : {}),
    });
  }

  /** The list of files that the manifest gives or, where it can't be read, that the directory suggests. */
  async #readManifest(logFileNames: readonly string[]): Promise<readonly LogFileRecord[]> {
    const presentFileNames = logFileNames.filter((presentFileName) => parseFileName(presentFileName) !== undefined);
    let parsedManifest: Manifest | undefined;
    try {
      const manifestBytes = await this.#verifyOptions.disk.readFile(manifestPath(this.#verifiedLog));
      if (!manifestBytes) return await this.#withoutManifest(presentFileNames);
      parsedManifest = parseManifest(Buffer.from(manifestBytes).toString('latin1'));
    } catch (error) {
      this.#verifyFindings.add('log/manifest', null, messageOf(error));
    }
    this.#verifiedLogId = parsedManifest?.logId ?? null;
    const fileRecords =
      parsedManifest?.files ??
      presentFileNames.map(
        (presentFileName): LogFileRecord => ({
          state: 'open',
          ...parseFileName(presentFileName)!,
          firstLeaf: -1,
          firstPosition: -1,
        }),
      );
    const listedFileNames = new Set(fileRecords.map(logFileName));
    for (const name of presentFileNames) {
      if (listedFileNames.has(name)) continue;
      const { number: fileNumber } = parseFileName(name)!;
      if (fileNumber < fileRecords.length)
        this.#verifyFindings.note(`log/${name} is not the file ${fileNumber} of the manifest; opening the log drops it`);
      // Made by a crash between the file's creation and the manifest's: the next opening begins it anew.
      else await this.#noteUnlisted(name);
    }
    return fileRecords;
  }

  /** A crash may come between the first file's creation and the manifest's; nothing has been said to be durable then. */
  async #withoutManifest(presentFileNames: readonly string[]): Promise<readonly LogFileRecord[]> {
    for (const presentFileName of presentFileNames) await this.#noteUnlisted(presentFileName);
    if (presentFileNames.length > 1) this.#verifyFindings.add('log/manifest', null, 'missing, and there are log files');
    else if (presentFileNames.length === 0) this.#verifyFindings.add('log', null, 'there is no log here');
    return [];
  }

  async #noteUnlisted(unlistedName: string): Promise<void> {
    const unlistedLogFile = await this.#verifyOptions.disk.open(`${this.#verifiedLog}/${unlistedName}`, 'read');
    const unlistedLength = await unlistedLogFile.size();
    const unlistedWindow = new FileWindow(unlistedLogFile, unlistedLength);
    const firstIntactFrame = await nextFrame(unlistedWindow, Number(unlistedName.slice(0, 8)), 0, unlistedLength);
    const unlistedHead = await unlistedWindow.view(0, Math.min(unlistedLength, FILE_HEADER_BYTES));
    await unlistedWindow.settle();
    await unlistedLogFile.close();
    if (firstIntactFrame)
      return this.#verifyFindings.add(`log/${unlistedName}`, null, 'holds entries and is not in the manifest');
    this.#verifyFindings.note(`log/${unlistedName} is not in the manifest and holds no entry`);
    try {
      // It was begun after everything before it had been synced.
      const { firstLeaf, logId } = decodeFileHeader(unlistedHead);
      if (logId === this.#verifiedLogId) this.#unlistedFile = { location: `log/${unlistedName}`, firstLeaf };
    } catch {
      // Not even its header is whole, so it says nothing.
    }
  }

  async #readCheckpoint(): Promise<VerifyReport['checkpoint']> {
    const checkpointBytes = await this.#verifyOptions.disk.readFile(checkpointPath(this.#verifiedLog));
    if (!checkpointBytes) return null;
    return this.#expectedHeads.expect(Buffer.from(checkpointBytes).toString('utf8'), 'log/checkpoint');
  }

  async #checkLogFile(fileRecord: LogFileRecord, isLastFile: boolean): Promise<void> {
    const verifiedFileName = `log/${logFileName(fileRecord)}`;
    let verifiedFile: DiskFile;
    try {
      verifiedFile = await this.#verifyOptions.disk.open(`${this.#verifyOptions.directory}/${verifiedFileName}`, 'read');
    } catch (fileError) {
      this.#verifyFindings.add(verifiedFileName, null, `can't be opened: ${messageOf(fileError)}`);
      return this.#skipToLeaf(fileRecord.state === 'sealed' ? fileRecord.firstLeaf + fileRecord.leaves : this.#logWalk.leaf);
    }
    let fileWindow: FileWindow | null = null;
    try {
      const fileLength = await verifiedFile.size();
      fileWindow = this.#fileWindowOf(verifiedFile, fileLength);
      await this.#checkLogFileHeader(verifiedFile, verifiedFileName, fileLength, fileRecord);
      if (fileRecord.firstLeaf >= 0 && fileRecord.firstLeaf !== this.#logWalk.leaf) {
        this.#verifyFindings.add(
          verifiedFileName,
          fileRecord.firstLeaf,
          `begins with leaf ${fileRecord.firstLeaf} by the manifest, with ${this.#logWalk.leaf} by its place`,
        );
      }
      const framesEnd = await this.#checkFrames(fileWindow, verifiedFileName, fileRecord, fileLength, isLastFile);
      if (isLastFile && this.#expectedHeads.claimedLeaves() > this.#logWalk.leaf)
        this.#verifyFindings.add(
          `${verifiedFileName}@${framesEnd}`,
          this.#logWalk.leaf,
          'the log ends before what a signed head covers',
        );
      if (fileRecord.state === 'sealed') this.#checkSealed(verifiedFileName, fileRecord, framesEnd, fileLength);
    } catch (error) {
      this.#verifyFindings.add(verifiedFileName, this.#logWalk.leaf, `reading failed: ${messageOf(error)}`);
      this.#skipToLeaf(fileRecord.state === 'sealed' ? fileRecord.firstLeaf + fileRecord.leaves : this.#logWalk.leaf);
    } finally {
      await fileWindow?.settle();
      await verifiedFile.close();
    }
  }

  async #checkLogFileHeader(
    verifiedFile: DiskFile,
    verifiedFileName: string,
    fileLength: number,
    fileRecord: LogFileRecord,
  ): Promise<void> {
    const headerBytes = new Uint8Array(Math.min(fileLength, FILE_HEADER_BYTES));
    await readAll(verifiedFile, headerBytes, 0);
    this.#verifyCounts.bytes += headerBytes.length;
    try {
      const fileHeader = decodeFileHeader(headerBytes);
      if (fileHeader.file !== fileRecord.number)
        this.#verifyFindings.add(verifiedFileName, null, `says that it is file ${fileHeader.file}`);
      if (this.#verifiedLogId !== null && fileHeader.logId !== this.#verifiedLogId)
        this.#verifyFindings.add(verifiedFileName, null, `belongs to log ${fileHeader.logId}`);
      this.#verifiedLogId ??= fileHeader.logId;
      const agreesWithManifest =
        fileHeader.firstLeaf === fileRecord.firstLeaf && fileHeader.firstPosition === fileRecord.firstPosition;
      if (fileRecord.firstLeaf >= 0 && !agreesWithManifest)
        this.#verifyFindings.add(verifiedFileName, null, 'begins elsewhere than the manifest says');
    } catch (headerError) {
      this.#verifyFindings.add(verifiedFileName, null, messageOf(headerError));
    }
  }

  /** Checks frame after frame; returns where the last one ended. */
  async #checkFrames(
    fileWindow: FileWindow,
    verifiedFileName: string,
    fileRecord: LogFileRecord,
    fileLength: number,
    isLastFile: boolean,
  ): Promise<number> {
    let frameOffset = FILE_HEADER_BYTES;
    let frameRun = new FrameRun(fileWindow, fileRecord.number, frameOffset, fileLength, this.#bodyChecker);
    for (;;) {
      const walkedFrame = await frameRun.next();
      if (walkedFrame === null) return frameOffset;
      if (typeof walkedFrame !== 'string') {
        await this.#checkFrame(walkedFrame, verifiedFileName);
        frameOffset += walkedFrame.frame.bytes.length;
        this.#verifyCounts.bytes += walkedFrame.frame.bytes.length;
        this.#verifyOptions.onProgress?.(this.#verifyCounts.bytes, this.#logBytesTotal);
        continue;
      }
      const nextIntactFrame = await nextFrame(fileWindow, fileRecord.number, frameOffset + 1, fileLength);
      const mayBeTorn = fileRecord.state === 'open' && isLastFile && this.#expectedHeads.claimedLeaves() <= this.#logWalk.leaf;
      if (nextIntactFrame === null && mayBeTorn) {
        if (!(await onlyZeros(fileWindow, frameOffset, fileLength))) {
          this.#verifyFindings.note(
            `${verifiedFileName}@${frameOffset}: ${fileLength - frameOffset} bytes that nothing says were durable (${walkedFrame}); opening the log cuts them`,
          );
        }
        return frameOffset;
      }
      if (nextIntactFrame !== null && mayBeTorn && nextIntactFrame.header.durableThrough <= this.#logWalk.leaf) {
        this.#verifyFindings.note(
          `${verifiedFileName}@${frameOffset}: a torn tail of ${fileLength - frameOffset} bytes (${walkedFrame}); opening the log cuts them`,
        );
        return frameOffset;
      }
      const claimText =
        nextIntactFrame === null && this.#expectedHeads.claimedLeaves() > this.#logWalk.leaf
          ? `, and a signed head covers ${this.#expectedHeads.claimedLeaves()} leaves`
          : '';
      this.#verifyFindings.add(`${verifiedFileName}@${frameOffset}`, this.#logWalk.leaf, `${walkedFrame}${claimText}`);
      if (nextIntactFrame === null) return frameOffset;
      this.#skipToLeaf(nextIntactFrame.header.firstLeaf);
      frameOffset = nextIntactFrame.at;
      frameRun = new FrameRun(fileWindow, fileRecord.number, frameOffset, fileLength, this.#bodyChecker);
    }
  }

  #checkSealed(
    verifiedFileName: string,
    sealedRecord: Extract<LogFileRecord, { state: 'sealed' }>,
    framesEnd: number,
    fileLength: number,
  ): void {
    if (fileLength !== sealedRecord.length)
      this.#verifyFindings.add(
        `${verifiedFileName}@${Math.min(fileLength, sealedRecord.length)}`,
        null,
        `has ${fileLength} bytes; sealed with ${sealedRecord.length}`,
      );
    else if (framesEnd !== sealedRecord.length)
      this.#verifyFindings.add(
        `${verifiedFileName}@${framesEnd}`,
        null,
        `its frames end at ${framesEnd}; sealed with ${sealedRecord.length}`,
      );
    if (this.#logWalk.leaf !== sealedRecord.firstLeaf + sealedRecord.leaves) {
      this.#verifyFindings.add(
        verifiedFileName,
        null,
        `ends with ${this.#logWalk.leaf} leaves in all; sealed with ${sealedRecord.firstLeaf + sealedRecord.leaves}`,
      );
    }
    if (this.#logWalk.tree && hexOf(this.#logWalk.tree.root()) !== sealedRecord.root)
      this.#verifyFindings.add(verifiedFileName, null, 'does not give the root it was sealed with');
  }

  async #checkFrame(walkedFrame: WalkedFrame, verifiedFileName: string): Promise<void> {
    const { header: frameHeader, bytes: frameBytes, at: frameOffset } = walkedFrame.frame;
    const frameLocation = `${verifiedFileName}@${frameOffset}`;
    this.#verifyCounts.frames++;
    if (frameHeader.firstLeaf !== this.#logWalk.leaf) {
      this.#verifyFindings.add(
        frameLocation,
        this.#logWalk.leaf,
        `a frame of leaf ${frameHeader.firstLeaf} stands where leaf ${this.#logWalk.leaf} belongs`,
      );
      this.#skipToLeaf(frameHeader.firstLeaf);
    }
    this.#logWalk.checkDurability(frameHeader, frameLocation);
    let entries: readonly FrameEntry[];
    try {
      entries = frameEntries(frameBytes, frameHeader);
    } catch (frameError) {
      this.#verifyFindings.add(frameLocation, this.#logWalk.leaf, messageOf(frameError));
      return this.#skipToLeaf(frameHeader.firstLeaf + frameHeader.entries);
    }
    for (const [i, storedEntry] of entries.entries()) {
      this.#expectedHeads.compareRoots(this.#logWalk.leaf, this.#logWalk.tree);
      const checkedLeaf = this.#logWalk.leaf;
      try {
        const entryTaken = this.#checkEntry(storedEntry, frameLocation, walkedFrame.isVouched(i) ? { in: walkedFrame, i } : null);
        if (entryTaken) await entryTaken;
      } catch (error) {
        this.#verifyFindings.add(frameLocation, checkedLeaf, messageOf(error));
        this.#skipToLeaf(checkedLeaf + 1);
      }
    }
  }

  /** `vouchedBody`: its body has been opened and is what the leaf says. Returns the work of the entry's receiver. */
  #checkEntry(
    { leaf: leafBytes, payload: entryPayload, redacted: isRedacted }: FrameEntry,
    frameLocation: string,
    vouchedBody: VouchedBody | null,
  ): void | Promise<void> {
    const { onEntry } = this.#verifyOptions;
    const checkedLeafHash = leafHashOf(leafBytes);
    const leafFields = decodeLeaf(leafBytes);
    this.#logWalk.checkLink(leafFields, frameLocation);
    this.#logWalk.checkOrder(leafFields, frameLocation);
    if (leafFields.kind === 'seal') this.#verifyCounts.seals++;
    if (!vouchedBody && !isRedacted && !equalBytes(sha256(entryPayload), leafFields.payloadDigest)) {
      this.#verifyFindings.add(frameLocation, this.#logWalk.leaf, 'the payload does not match its digest');
    }
    let checkedEntry: CommittedEntry | null;
    if (vouchedBody && !isRedacted && !storeEntryKinds.has(leafFields.kind) && !removingEntryKinds.has(leafFields.kind)) {
      this.#verifyCounts.bodiesOpened++;
      if (leafFields.kind === 'rows') this.#verifyCounts.rows += leafFields.positions;
      this.#verifyCounts.rowsErased += vouchedBody.in.erasedRows(vouchedBody.i);
      checkedEntry = onEntry ? entryOfChecked(leafFields, vouchedBody.in.body(vouchedBody.i)) : null;
    } else checkedEntry = this.#openBody(leafFields, entryPayload, isRedacted, frameLocation);
    this.#logWalk.append(checkedLeafHash);
    if (checkedEntry && onEntry) return onEntry(checkedEntry);
  }

  /** Null where it stays shut, or does not open to what the leaf says. */
  #openBody(leafFields: LeafFields, entryPayload: Uint8Array, redacted: boolean, frameLocation: string): CommittedEntry | null {
    const { keyring, sealed = false } = this.#verifyOptions;
    if (!keyring || (sealed && !storeEntryKinds.has(leafFields.kind))) {
      this.#verifyCounts.unopened++;
      return null;
    }
    let openedEntry: OpenedEntry;
    try {
      openedEntry = decodeEntryWithSecrets(leafFields, entryPayload, keyring, { redacted, rows: true });
    } catch (bodyError) {
      this.#verifyFindings.add(frameLocation, this.#logWalk.leaf, messageOf(bodyError));
      return null;
    }
    const { entry, parts: decodedParts } = openedEntry;
    const { body: openedBody } = entry;
    this.#verifyCounts.bodiesOpened++;
    let { position } = leafFields;
    for (const { body: rowsBody, sealed } of decodedParts) {
      this.#verifyCounts.rows += rowsBody.ops.length;
      if (!redacted || sealed) this.#verifyCounts.rowsErased += rowsBody.dropped?.length ?? 0;
      else
        for (const droppedRow of rowsBody.dropped ?? [])
          this.#missingRows.dropped.push({ position: position + droppedRow, location: frameLocation, leaf: leafFields.leaf });
      position += rowsBody.ops.length;
    }
    if (openedBody.kind === 'removal') for (const position of openedBody.positions) this.#missingRows.removed.add(position);
    if (openedBody.kind === 'erasure')
      for (const { positions } of openedBody.versions) for (const position of positions) this.#missingRows.removed.add(position);
    if (openedBody.kind === 'genesis') this.#expectedHeads.checkOrigin(openedBody.origin);
    if (openedBody.kind === 'genesis' && this.#verifiedLogId !== null && openedBody.logId !== this.#verifiedLogId) {
      this.#verifyFindings.add(frameLocation, this.#logWalk.leaf, `begins log ${openedBody.logId}`);
    }
    if (openedBody.kind === 'seal') this.#expectedHeads.checkSeal(openedBody, keyring.publicKeys, this.#logWalk, frameLocation);
    return entry;
  }

  async #checkBlobs(): Promise<void> {
    const { disk, directory, keyring } = this.#verifyOptions;
    if (!keyring || this.#verifyOptions.sealed) {
      if ((await disk.list(`${directory}/blobs`)).length > 0)
        this.#verifyFindings.note(
          `blobs were not opened: ${keyring ? 'only what is sealed was to be checked' : 'no keys were given'}`,
        );
      return;
    }
    for (const blobAddress of await listBlobs(disk, directory)) {
      try {
        // Removed for good while the others were looked at: it need not be there.
        if (await checkBlob({ disk, directory, keyring }, blobAddress)) this.#verifyCounts.blobs++;
      } catch (error) {
        this.#verifyFindings.add(`blobs/${blobAddress.slice(0, 2)}/${blobAddress}`, null, messageOf(error));
      }
    }
  }

  /** Continues at a later leaf. */
  #skipToLeaf(leafIndex: number): void {
    this.#logWalk.skipTo(leafIndex);
    this.#expectedHeads.skipTo(leafIndex);
  }
}
