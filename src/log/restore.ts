/**
 * A backup turned into a data directory. Everything is copied and compared with the digests that the backup's key signed, the
 * keys are put beside it, and then the log is read from its first entry: each body opened, each hash and signed head computed
 * again, each entry handed to whoever rebuilds projections. What was erased since is destroyed here too.
 *
 * - The target is empty before. While a file `.annals-restoring` lies in it, it is no data directory: whoever opens it is told so.
 * - A restore that is refused or fails empties it again; one that was cut off leaves the file, and the next one begins anew.
 */
import type { Clock } from '../clock.ts';
import { ServiceError } from '../errors.ts';
import { type Artefact, ARTEFACT_NAME, bytesOf, type CopiedFile, openArtefact, refused } from './backup-artefact.ts';
import type { Disk } from './disk.ts';
import type { CommittedEntry } from './entry.ts';
import type { OpenBeside } from './frame-opener.ts';
import { copyFile, removeTree } from './file-copy.ts';
import type { Keyring } from './keys.ts';
import { PACED_BYTES, pacedDisk } from './paced-disk.ts';
import { verifyDirectory } from './verify.ts';

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
  readonly openBeside?: OpenBeside;
}

/** What reading all of it has shown. */
export interface Restored {
  readonly artefact: Artefact;
  readonly keyring: Keyring;
  /** How long copying and comparing took. */
  readonly copyMs: number;
  /** Over all leaves that were read, in hex. */
  readonly root: string;
  readonly rows: number;
  readonly blobs: number;
  /** Rows of which a leaf hash is left: whose they were has been erased, by now or then. */
  readonly rowsErased: number;
  /** Ids of keys that are destroyed, by the keys that were put or by the log itself. */
  readonly erased: readonly string[];
  /** None of them opens anything here. */
  readonly erasedAbsent: boolean;
}

const MARKER = '.annals-restoring';

/** Undefined, or why a directory must not be opened as a store. */
export async function unfinishedRestore(disk: Disk, directory: string): Promise<string | undefined> {
  if ((await disk.size(`${directory}/${MARKER}`)) === undefined) return undefined;
  return `a restore into ${directory} did not come to its end: run it again, or empty the directory`;
}

/** A backup's document, checked. REL_NOT_FOUND where there is none. */
export async function readBackup(disk: Disk, source: string, publicKeys: readonly Uint8Array[]): Promise<Artefact> {
  const bytes = await disk.readFile(`${source}/${ARTEFACT_NAME}`);
  if (!bytes) throw new ServiceError('REL_NOT_FOUND', `there is no backup in ${source}`);
  return openArtefact(bytes, publicKeys);
}

/**
 * Restores, and has `judge` look at what came of it while the target still counts for nothing. Throws REL_NOT_FOUND for a backup
 * that is not there, REL_UNPROCESSABLE for one that is not whole, REL_CONFLICT for a target that is not empty; whatever is thrown,
 * by `judge` too, the target is empty then.
 */
export async function restoreBackup<T>(options: RestoreOptions, judge: (restored: Restored) => Promise<T>): Promise<T> {
  const { disk, clock, source, target, publicKeys } = options;
  let begun = false;
  let keyring: Keyring | null = null;
  try {
    const artefact = await readBackup(disk, source, publicKeys);
    await checkTarget(disk, target);
    begun = true;
    await begin(disk, target);
    const startMs = clock.monotonicMs();
    await copyAll(options, artefact);
    const copyMs = clock.monotonicMs() - startMs;
    keyring = await putKeys(options, artefact);
    const result = await judge({ ...(await readAll(options, artefact, keyring)), copyMs });
    await keyring.close();
    keyring = null;
    await disk.unlink(`${target}/${MARKER}`);
    await disk.syncDirectory(target);
    return result;
  } catch (cause) {
    await keyring?.close().catch(() => undefined);
    if (begun) await clear(disk, target).catch(() => undefined);
    if (cause instanceof ServiceError) throw cause;
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new ServiceError('REL_STORAGE', `the restore failed: ${why}`, { cause });
  }
}

async function checkTarget(disk: Disk, target: string): Promise<void> {
  const names = await disk.list(target).catch(() => null);
  if (!names) throw new ServiceError('REL_CONFLICT', `${target} is no directory`);
  if (names.length > 0 && !names.includes(MARKER)) throw new ServiceError('REL_CONFLICT', `${target} is not empty`);
}

async function begin(disk: Disk, target: string): Promise<void> {
  await clear(disk, target);
  await disk.makeDirectory(target);
  // In one step: a replacement's temporary file would be there before the marker is.
  const marker = await disk.open(`${target}/${MARKER}`, 'create');
  await marker.close();
  await disk.syncDirectory(target);
}

/** The marker goes last: what is left of a clearing that was cut off is cleared by the next restore. */
async function clear(disk: Disk, target: string): Promise<void> {
  const names = await disk.list(target);
  if (names.length === 0) return;
  for (const name of names) {
    if (name === MARKER) continue;
    const path = `${target}/${name}`;
    await disk.unlink(path).catch(() => removeTree(disk, path));
  }
  await disk.syncDirectory(target);
  if (!names.includes(MARKER)) return;
  await disk.unlink(`${target}/${MARKER}`);
  await disk.syncDirectory(target);
}

async function copyAll(options: RestoreOptions, artefact: Artefact): Promise<void> {
  const { disk, target, onProgress } = options;
  const files = [...artefact.files, ...artefact.blobs];
  const homes = [...new Set(files.map(({ name }) => `${target}/${name.slice(0, name.lastIndexOf('/'))}`))];
  for (const home of homes) await disk.makeDirectory(home);
  const total = totalOf(artefact);
  let done = 0;
  const onBytes = (bytes: number): void => onProgress?.((done += bytes), total);
  for (const file of files) await copyOne(options, file, onBytes);
  for (const home of homes) await disk.syncDirectory(home);
}

async function copyOne(options: RestoreOptions, file: CopiedFile, onBytes: (bytes: number) => void): Promise<void> {
  const { disk, source, target, yieldTurn } = options;
  const { name, length, sha256 } = file;
  const size = await disk.size(`${source}/${name}`);
  if (size === undefined) throw refused(`lists ${name}, which is missing`);
  if (size !== length) throw refused(`lists ${name} with ${length} bytes; it has ${size}`);
  const found = await copyFile({ disk, yieldTurn, onBytes }, `${source}/${name}`, `${target}/${name}`, length);
  if (found !== sha256) throw refused(`lists ${name} with another checksum than it has`);
}

/** Keys that don't open the backup are told before any of it is read. */
async function putKeys({ putKeys: put }: RestoreOptions, artefact: Artefact): Promise<Keyring> {
  const keyring = await put();
  try {
    for (const id of artefact.key_ids) keyring.open(id);
  } catch (cause) {
    await keyring.close();
    throw new ServiceError('REL_UNPROCESSABLE', `the keys given do not open the backup: ${(cause as Error).message}`, { cause });
  }
  return keyring;
}

async function readAll(options: RestoreOptions, artefact: Artefact, keyring: Keyring): Promise<Omit<Restored, 'copyMs'>> {
  const { disk, target, yieldTurn, onProgress, rebuild, openBeside } = options;
  const total = totalOf(artefact);
  const copied = bytesOf(artefact);
  /** Keys that the log says were destroyed, or are about to be, by the receipt of their erasure. */
  const erasing = new Map<string, string>();
  let rowsErased = 0;
  const take = rebuild(artefact, keyring);
  const report = await verifyDirectory({
    disk: pacedDisk(disk, yieldTurn),
    ...(openBeside ? { openBeside } : { windowBytes: PACED_BYTES }),
    directory: target,
    keyring,
    onProgress: (bytes) => onProgress?.(copied + bytes, total),
    onEntry: (entry) => {
      const { body } = entry;
      if (body.kind === 'erasure') for (const id of body.keys) erasing.set(id, body.id);
      if (body.kind === 'rows') rowsErased += body.dropped?.length ?? 0;
      return take(entry);
    },
  });
  // Whoever was told to end in the middle of it found nothing.
  await yieldTurn();
  const [finding] = report.findings;
  if (finding) throw refused(`does not hold what it says: ${finding.place}: ${finding.what}`);
  if (report.logId !== artefact.log_id || report.leaves !== artefact.tree_size || report.root !== artefact.root) {
    throw refused(`gives ${report.leaves} leaves with root ${report.root}, not ${artefact.tree_size} with root ${artefact.root}`);
  }
  return {
    artefact,
    keyring,
    root: report.root,
    rows: report.rows,
    blobs: report.blobs,
    rowsErased,
    ...(await eraseAgain(keyring, erasing)),
  };
}

/** Keys kept from before an erasure bring back what it destroyed, so the records of it are followed once more. */
async function eraseAgain(
  keyring: Keyring,
  erasing: ReadonlyMap<string, string>,
): Promise<Pick<Restored, 'erased' | 'erasedAbsent'>> {
  const { subjects } = keyring;
  for (const [id, receipt] of erasing) if (opens(keyring, id)) await subjects.destroy([id], receipt);
  const erased = [...new Set([...subjects.destroyed().map(({ id }) => id), ...erasing.keys()])];
  return { erased, erasedAbsent: !erased.some((id) => opens(keyring, id)) };
}

/** A key that was erased may be unknown to keys that were kept since: that is no loss. */
function opens({ subjects }: Keyring, id: string): boolean {
  try {
    return subjects.opening(id) !== null;
  } catch {
    return false;
  }
}

const totalOf = (artefact: Artefact): number => bytesOf(artefact) + artefact.files.reduce((sum, { length }) => sum + length, 0);
