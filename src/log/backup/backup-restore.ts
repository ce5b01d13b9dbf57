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
import { placeOfName } from '../files/manifest.ts';
import { PACED_BYTES, pacedDisk } from '../disk/paced-disk.ts';
import { verifyDirectory, type VerifyReport } from '../verify/verify.ts';

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
 * Restores, and lets `judge` check the result while the target still counts for nothing. Throws REL_NOT_FOUND for a missing
 * backup, REL_UNPROCESSABLE for one that is not whole, REL_CONFLICT for a target that is not empty. After any error, of `judge`
 * too, the target is empty.
 */
export async function restoreBackup<T>(options: RestoreOptions, judge: (restored: Restored) => Promise<T>): Promise<T> {
  const { disk, source, target, publicKeys } = options;
  let begun = false;
  let keyring: Keyring | null = null;
  try {
    const artefact = await readBackup(disk, source, publicKeys);
    await checkTarget(disk, target);
    begun = true;
    await begin(disk, target);
    for (const file of filesOf(artefact)) await checkLength(options, file);
    keyring = await putKeys(options, artefact);
    const result = await judge(await new Restoring(options, artefact, keyring).run());
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
  if (!names) throw new ServiceError('REL_CONFLICT', `${target} is not a directory`);
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

/** The marker goes last: the next restore clears the rest of an interrupted clearing. */
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

async function checkLength({ disk, source }: RestoreOptions, { name, length }: CopiedFile): Promise<void> {
  const size = await disk.size(`${source}/${name}`);
  if (size === undefined) throw refusal(`lists ${name}, which is missing`);
  if (size !== length) throw refusal(`lists ${name} with ${length} bytes; it has ${size}`);
}

/** Keys that don't open the backup are refused before any of it is read. */
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

/** Bytes of a slice where no other work shares the thread: a reader behind the copy would wait for each smaller slice. */
const SLICE_BYTES = 4 << 20;

class Restoring {
  readonly #options: RestoreOptions;
  readonly #artefact: Artefact;
  readonly #keyring: Keyring;
  readonly #copying: CopyOptions;
  readonly #bytesTotal: number;
  #copied = 0;
  #read = 0;
  /** Keys that the log says were destroyed, or are about to be, by the receipt of their erasure. */
  readonly #erasing = new Map<string, string>();
  #rowsErased = 0;

  constructor(options: RestoreOptions, artefact: Artefact, keyring: Keyring) {
    const { disk, yieldTurn, openBeside } = options;
    this.#options = options;
    this.#artefact = artefact;
    this.#keyring = keyring;
    const onBytes = (bytes: number): void => {
      this.#copied += bytes;
      this.#progress();
    };
    this.#copying = { disk, yieldTurn, onBytes, ...(openBeside && { sliceBytes: SLICE_BYTES }) };
    this.#bytesTotal = bytesOf(artefact) + artefact.files.reduce((sum, { length }) => sum + length, 0);
  }

  async run(): Promise<Restored> {
    const { disk, clock, source: from, target: to } = this.#options;
    const files = filesOf(this.#artefact);
    const homes = [...new Set(files.map(({ name }) => `${to}/${name.slice(0, name.lastIndexOf('/'))}`))];
    for (const home of homes) await disk.makeDirectory(home);
    const startMs = clock.monotonicMs();
    // Files beside the log are read whole; log files are verified while they are copied.
    const [log, others] = [files.filter(isOfLog), files.filter((file) => !isOfLog(file))];
    const copier = new FileCopier({ ...this.#copying, from, to });
    try {
      for (const file of others) compare(file, (await copier.copy(file)).sha256);
      await copier.sync();
    } catch (error) {
      await copier.whenIdle();
      throw error;
    }
    const copyAll = async (copy: (file: CopiedFile) => Promise<CopiedFile>): Promise<number> => {
      for (const file of log) compare(file, (await copy(file)).sha256);
      return clock.monotonicMs() - startMs;
    };
    const [copyMs, report] = await copyAndRead(copier, { disk, to }, log, copyAll, (behind) => this.#readAll(behind));
    for (const home of homes) await disk.syncDirectory(home);
    return {
      artefact: this.#artefact,
      keyring: this.#keyring,
      copyMs,
      root: report.root!,
      rows: report.rows,
      blobs: report.blobs,
      rowsErased: this.#rowsErased,
      ...(await eraseAgain(this.#keyring, this.#erasing)),
    };
  }

  async #readAll(behind: Disk): Promise<VerifyReport> {
    const { target, yieldTurn, rebuild, openBeside } = this.#options;
    const artefact = this.#artefact;
    const take = rebuild(artefact, this.#keyring);
    const report = await verifyDirectory({
      disk: pacedDisk(behind, yieldTurn),
      ...(openBeside ? { openBeside } : { windowBytes: PACED_BYTES }),
      directory: target,
      keyring: this.#keyring,
      onProgress: (bytes) => {
        this.#read = bytes;
        this.#progress();
      },
      onEntry: (entry) => {
        const { body } = entry;
        if (body.kind === 'erasure') for (const id of body.keys) this.#erasing.set(id, body.id);
        for (const { dropped } of rowBodiesOf(body)) this.#rowsErased += dropped?.length ?? 0;
        return take(entry);
      },
    });
    // A verification that was aborted reports no finding: let the abort arrive first.
    await yieldTurn();
    const [finding] = report.findings;
    if (finding) throw refusal(`does not hold what it says: ${finding.place}: ${finding.what}`);
    if (report.logId !== artefact.log_id || report.leaves !== artefact.tree_size || report.root !== artefact.root) {
      throw refusal(
        `gives ${report.leaves} leaves with root ${report.root}, not ${artefact.tree_size} with root ${artefact.root}`,
      );
    }
    return report;
  }

  #progress(): void {
    this.#options.onProgress?.(this.#copied + this.#read, this.#bytesTotal);
  }
}

const filesOf = ({ files, blobs }: Artefact): readonly CopiedFile[] => [...files, ...blobs];

const isOfLog = ({ name }: CopiedFile): boolean => placeOfName(name.slice(name.lastIndexOf('/') + 1)) !== undefined;

function compare({ name, sha256 }: CopiedFile, copiedDigest: string): void {
  if (copiedDigest !== sha256) throw refusal(`lists ${name} with another checksum than it has`);
}

/** Keys kept from before an erasure bring back what it destroyed, so the records of it are followed once more. */
async function eraseAgain(
  keyring: Keyring,
  erasing: ReadonlyMap<string, string>,
): Promise<Pick<Restored, 'erased' | 'erasedAbsent'>> {
  const { subjects } = keyring;
  for (const [id, receipt] of erasing) if (opens(keyring, id)) await subjects.destroy([id], receipt);
  const erased = [...new Set([...subjects.tombstones().map(({ id }) => id), ...erasing.keys()])];
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
