/**
 * A backup turned into a data directory. The keys are put into it, and every file is copied and compared with the digests that
 * the backup's key signed. Behind the copying the log is read from its first entry: each body is opened, each hash and signed
 * head computed again, and each entry passed on to rebuild projections. Keys of later erasures are destroyed here too.
 *
 * - The target is empty before. While a file `.annals-restoring` lies in it, it is no data directory: opening it fails and says
 *   so.
 * - A restore that is refused or fails empties it again; one that was cut off leaves the file, and the next one begins anew.
 */
import type { Clock } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import { type Artefact, ARTEFACT_NAME, bytesOf, type CopiedFile, openArtefact, refusal } from './backup-artefact.ts';
import type { Disk } from '../disk/disk.ts';
import { type CommittedEntry, rowBodiesOf } from '../entries/entry.ts';
import type { BackgroundOpening } from '../files/frame-opener.ts';
import { copyAndRead, FileCopier } from './file-copier.ts';
import { type CopyOptions, removeTree } from '../disk/file-copy.ts';
import type { Keyring } from '../keys/keys.ts';
import { parseFileName } from '../files/manifest.ts';
import { PACED_BYTES, pacedDisk } from '../disk/paced-disk.ts';
import { verifyDirectory, type VerifyReport } from '../proofs/verify.ts';

export interface RestoreOptions {
  readonly disk: Disk;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** The backup's directory. */
  readonly source: string;
  /** The data directory to be. */
  readonly target: string;
  /** Keys that may have signed the backup. */
  readonly publicKeys: readonly Uint8Array[];
  /** Puts the keys of now below the target, and opens them. */
  readonly putKeys: () => Promise<Keyring>;
  readonly yieldTurn: () => Promise<void>;
  /** Bytes are copied, and then read. */
  readonly onProgress?: (bytes: number, bytesTotal: number) => void;
  /** Begins to rebuild what is derived: gets every entry, in order, the next one when it is done with the one before. */
  readonly rebuild: (artefact: Artefact, keyring: Keyring) => (entry: CommittedEntry) => void | Promise<void>;
  /** Opens bodies beside the calling thread, which then does not share its turns. */
  readonly openBeside?: BackgroundOpening;
}

/** The findings of reading the whole backup. */
export interface Restored {
  readonly artefact: Artefact;
  readonly keyring: Keyring;
  /** How long copying and comparing took, beside the reading. */
  readonly copyMs: number;
  /** Over all leaves that were read, in hex. */
  readonly root: string;
  readonly rows: number;
  readonly blobs: number;
  /** Rows of which only a leaf hash is left: their subject has been erased, before or after the backup. */
  readonly rowsErased: number;
  /** Ids of keys that are destroyed, by the keys that were put or by the log itself. */
  readonly erased: readonly string[];
  /** None of the erased keys opens anything here. */
  readonly erasedAbsent: boolean;
}

const RESTORE_MARKER = '.annals-restoring';

/** Undefined, or why a directory must not be opened as a store. */
export async function unfinishedRestore(disk: Disk, dataDirectory: string): Promise<string | undefined> {
  if ((await disk.size(`${dataDirectory}/${RESTORE_MARKER}`)) === undefined) return undefined;
  return `a restore into ${dataDirectory} did not come to its end: run it again, or empty the directory`;
}

/** A backup's document, checked. REL_NOT_FOUND where there is none. */
export async function readBackup(disk: Disk, backupDirectory: string, publicKeys: readonly Uint8Array[]): Promise<Artefact> {
  const artefactBytes = await disk.readFile(`${backupDirectory}/${ARTEFACT_NAME}`);
  if (!artefactBytes) throw new ServiceError('REL_NOT_FOUND', `there is no backup in ${backupDirectory}`);
  return openArtefact(artefactBytes, publicKeys);
}

/**
 * Restores, and lets `judgeRestored` check the result while the target still counts for nothing. Throws REL_NOT_FOUND for a missing
 * backup, REL_UNPROCESSABLE for one that is not whole, REL_CONFLICT for a target that is not empty. After any error, of `judgeRestored`
 * too, the target is empty.
 */
export async function restoreBackup<T>(
  restoreOptions: RestoreOptions,
  judgeRestored: (restored: Restored) => Promise<T>,
): Promise<T> {
  const { disk, source: backupDirectory, target: restoreTarget, publicKeys } = restoreOptions;
  let hasBegunRestore = false;
  let restoredKeyring: Keyring | null = null;
  try {
    const backupArtefact = await readBackup(disk, backupDirectory, publicKeys);
    await checkTarget(disk, restoreTarget);
    hasBegunRestore = true;
    await beginRestore(disk, restoreTarget);
    for (const backupFile of filesOfBackup(backupArtefact)) await checkBackupLength(restoreOptions, backupFile);
    restoredKeyring = await putRestoreKeys(restoreOptions, backupArtefact);
    const judgement = await judgeRestored(await new RestoreRun(restoreOptions, backupArtefact, restoredKeyring).run());
    await restoredKeyring.close();
    restoredKeyring = null;
    await disk.unlink(`${restoreTarget}/${RESTORE_MARKER}`);
    await disk.syncDirectory(restoreTarget);
    return judgement;
  } catch (cause) {
    await restoredKeyring?.close().catch(() => undefined);
    if (hasBegunRestore) await clearTarget(disk, restoreTarget).catch(() => undefined);
    if (cause instanceof ServiceError) throw cause;
    const causeText = cause instanceof Error ? cause.message : String(cause);
    throw new ServiceError('REL_STORAGE', `the restore failed: ${causeText}`, { cause });
  }
}

async function checkTarget(disk: Disk, restoreTarget: string): Promise<void> {
  const targetNames = await disk.list(restoreTarget).catch(() => null);
  if (!targetNames) throw new ServiceError('REL_CONFLICT', `${restoreTarget} is not a directory`);
  if (targetNames.length > 0 && !targetNames.includes(RESTORE_MARKER))
    throw new ServiceError('REL_CONFLICT', `${restoreTarget} is not empty`);
}

async function beginRestore(disk: Disk, restoreTarget: string): Promise<void> {
  await clearTarget(disk, restoreTarget);
  await disk.makeDirectory(restoreTarget);
  // In one step: a replacement's temporary file would be there before the marker is.
  const restoreMarker = await disk.open(`${restoreTarget}/${RESTORE_MARKER}`, 'create');
  await restoreMarker.close();
  await disk.syncDirectory(restoreTarget);
}

/** The marker goes last: the next restore clears the rest of an interrupted clearing. */
async function clearTarget(disk: Disk, restoreTarget: string): Promise<void> {
  const targetNames = await disk.list(restoreTarget);
  if (targetNames.length === 0) return;
  for (const targetName of targetNames) {
    if (targetName === RESTORE_MARKER) continue;
    const leftoverPath = `${restoreTarget}/${targetName}`;
    await disk.unlink(leftoverPath).catch(() => removeTree(disk, leftoverPath));
  }
  await disk.syncDirectory(restoreTarget);
  if (!targetNames.includes(RESTORE_MARKER)) return;
  await disk.unlink(`${restoreTarget}/${RESTORE_MARKER}`);
  await disk.syncDirectory(restoreTarget);
}

async function checkBackupLength(
  { disk, source: backupDirectory }: RestoreOptions,
  { name: backupFileName, length: listedLength }: CopiedFile,
): Promise<void> {
  const backupFileSize = await disk.size(`${backupDirectory}/${backupFileName}`);
  if (backupFileSize === undefined) throw refusal(`lists ${backupFileName}, which is missing`);
  if (backupFileSize !== listedLength)
    throw refusal(`lists ${backupFileName} with ${listedLength} bytes; it has ${backupFileSize}`);
}

/** Keys that don't open the backup are refused before any of it is read. */
async function putRestoreKeys({ putKeys: putKeysOnDisk }: RestoreOptions, backupArtefact: Artefact): Promise<Keyring> {
  const restoredKeyring = await putKeysOnDisk();
  try {
    for (const dataKeyId of backupArtefact.key_ids) restoredKeyring.open(dataKeyId);
  } catch (cause) {
    await restoredKeyring.close();
    throw new ServiceError('REL_UNPROCESSABLE', `the keys given do not open the backup: ${(cause as Error).message}`, { cause });
  }
  return restoredKeyring;
}

/** Bytes of a slice where no other work shares the thread: a reader behind the copy would wait for each smaller slice. */
const RESTORE_SLICE_BYTES = 4 << 20;

class RestoreRun {
  readonly #restoreOptions: RestoreOptions;
  readonly #backupArtefact: Artefact;
  readonly #restoredKeyring: Keyring;
  readonly #copyOptions: CopyOptions;
  readonly #bytesTotal: number;
  #copiedBytes = 0;
  #readBytes = 0;
  /** Keys that the log says were destroyed, or are about to be, by the receipt of their erasure. */
  readonly #erasuresOfKeys = new Map<string, string>();
  #erasedRowCount = 0;

  constructor(restoreOptions: RestoreOptions, backupArtefact: Artefact, keyring: Keyring) {
    const { disk, yieldTurn, openBeside } = restoreOptions;
    this.#restoreOptions = restoreOptions;
    this.#backupArtefact = backupArtefact;
    this.#restoredKeyring = keyring;
    const onBytes = (bytes: number): void => {
      this.#copiedBytes += bytes;
      this.#reportRestore();
    };
    this.#copyOptions = { disk, yieldTurn, onBytes, ...(openBeside && { sliceBytes: RESTORE_SLICE_BYTES }) };
    this.#bytesTotal = bytesOf(backupArtefact) + backupArtefact.files.reduce((logBytes, { length }) => logBytes + length, 0);
  }

  async run(): Promise<Restored> {
    const { disk, clock, source: from, target: to } = this.#restoreOptions;
    const backupFiles = filesOfBackup(this.#backupArtefact);
    const targetDirectories = [...new Set(backupFiles.map(({ name }) => `${to}/${name.slice(0, name.lastIndexOf('/'))}`))];
    for (const targetDirectory of targetDirectories) await disk.makeDirectory(targetDirectory);
    const startMs = clock.monotonicMs();
    // Files beside the log are read whole; log files are verified while they are copied.
    const [logCopies, otherCopies] = [backupFiles.filter(isLogCopy), backupFiles.filter((backupFile) => !isLogCopy(backupFile))];
    const backupCopier = new FileCopier({ ...this.#copyOptions, from, to });
    try {
      for (const backupFile of otherCopies) compareChecksum(backupFile, (await backupCopier.copy(backupFile)).sha256);
      await backupCopier.sync();
    } catch (error) {
      await backupCopier.whenIdle();
      throw error;
    }
    const copyLogFiles = async (copy: (file: CopiedFile) => Promise<CopiedFile>): Promise<number> => {
      for (const file of logCopies) compareChecksum(file, (await copy(file)).sha256);
      return clock.monotonicMs() - startMs;
    };
    const [copyMs, restoreReport] = await copyAndRead(backupCopier, { disk, to }, logCopies, copyLogFiles, (diskBehindCopy) =>
      this.#replayRestored(diskBehindCopy),
    );
    for (const home of targetDirectories) await disk.syncDirectory(home);
    return {
      artefact: this.#backupArtefact,
      keyring: this.#restoredKeyring,
      copyMs,
      root: restoreReport.root!,
      rows: restoreReport.rows,
      blobs: restoreReport.blobs,
      rowsErased: this.#erasedRowCount,
      ...(await eraseAgain(this.#restoredKeyring, this.#erasuresOfKeys)),
    };
  }

  async #replayRestored(diskBehindCopy: Disk): Promise<VerifyReport> {
    const { target, yieldTurn, rebuild, openBeside } = this.#restoreOptions;
    const backupArtefact = this.#backupArtefact;
    const rebuildEntry = rebuild(backupArtefact, this.#restoredKeyring);
    const restoreReport = await verifyDirectory({
      disk: pacedDisk(diskBehindCopy, yieldTurn),
      ...(openBeside ? { openBeside } : { windowBytes: PACED_BYTES }),
      directory: target,
      keyring: this.#restoredKeyring,
      onProgress: (bytes) => {
        this.#readBytes = bytes;
        this.#reportRestore();
      },
      onEntry: (entry) => {
        const { body } = entry;
        if (body.kind === 'erasure') for (const id of body.keys) this.#erasuresOfKeys.set(id, body.id);
        for (const { dropped } of rowBodiesOf(body)) this.#erasedRowCount += dropped?.length ?? 0;
        return rebuildEntry(entry);
      },
    });
    // A verification that was aborted reports no finding: let the abort arrive first.
    await yieldTurn();
    const [restoreFinding] = restoreReport.findings;
    if (restoreFinding) throw refusal(`does not hold what it says: ${restoreFinding.place}: ${restoreFinding.what}`);
    if (
      restoreReport.logId !== backupArtefact.log_id ||
      restoreReport.leaves !== backupArtefact.tree_size ||
      restoreReport.root !== backupArtefact.root
    ) {
      throw refusal(
        `gives ${restoreReport.leaves} leaves with root ${restoreReport.root}, not ${backupArtefact.tree_size} with root ${backupArtefact.root}`,
      );
    }
    return restoreReport;
  }

  #reportRestore(): void {
    this.#restoreOptions.onProgress?.(this.#copiedBytes + this.#readBytes, this.#bytesTotal);
  }
}

const filesOfBackup = ({ files, blobs }: Artefact): readonly CopiedFile[] => [...files, ...blobs];

const isLogCopy = ({ name }: CopiedFile): boolean => parseFileName(name.slice(name.lastIndexOf('/') + 1)) !== undefined;

function compareChecksum({ name, sha256 }: CopiedFile, copiedDigest: string): void {
  if (copiedDigest !== sha256) throw refusal(`lists ${name} with another checksum than it has`);
}

/** Keys kept from before an erasure bring back what it destroyed, so the records of it are followed once more. */
async function eraseAgain(
  keyring: Keyring,
  erasuresOfKeys: ReadonlyMap<string, string>,
): Promise<Pick<Restored, 'erased' | 'erasedAbsent'>> {
  const { subjects } = keyring;
  for (const [subjectKeyId, erasureReceipt] of erasuresOfKeys)
    if (opensSubject(keyring, subjectKeyId)) await subjects.destroy([subjectKeyId], erasureReceipt);
  const erased = [...new Set([...subjects.tombstones().map(({ id }) => id), ...erasuresOfKeys.keys()])];
  return { erased, erasedAbsent: !erased.some((id) => opensSubject(keyring, id)) };
}

/** A key that was erased may be unknown to keys that were kept since: that is no loss. */
function opensSubject({ subjects }: Keyring, subjectKeyId: string): boolean {
  try {
    return subjects.opening(subjectKeyId) !== null;
  } catch {
    return false;
  }
}
