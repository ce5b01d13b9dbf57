/**
 * Capture of a backup, while writes go on. What is sealed is copied whole, the open file up to a signed head, and then the copy
 * is read back: its chain must lead to that head. Only then its document is written (`backup-artefact.ts`), last and whole, so
 * a directory that a crash or a failure left is never taken for a backup; the next capture of the same log clears it.
 */
import { ServiceError } from '../errors.ts';
import { type Artefact, ARTEFACT_NAME, ARTEFACT_VERSION, type CopiedFile, formatArtefact } from './backup-artefact.ts';
import type { Disk } from './disk.ts';
import { copyFile, removeTree } from './file-copy.ts';
import type { Keyring } from './keys.ts';
import type { LogCapture } from './log-store.ts';
import { formatManifest, logFileName } from './manifest.ts';
import { PACED_BYTES, pacedDisk } from './paced-disk.ts';
import { hexOf, sha256Hex } from './sha256.ts';
import { verifyDirectory } from './verify.ts';

export interface BackupOptions {
  readonly disk: Disk;
  /** The data directory. */
  readonly directory: string;
  /** Where backups lie, each in a directory of its own. */
  readonly target: string;
  /** Tells backups of one log apart; the log's own id goes before it. */
  readonly name: string;
  readonly createdAt: string;
  readonly engineVersion: string;
  readonly origin: string;
  readonly keyring: Keyring;
  readonly capture: LogCapture;
  /** Of the projections at the head of the capture, where they are known by now. */
  readonly projections: Readonly<Record<string, string>> | null;
  /** How many keys of subjects were destroyed before the projections were as they are digested. */
  readonly erasedKeys: number;
  readonly yieldTurn: () => Promise<void>;
  /** Bytes are copied, and then read back. */
  readonly onProgress?: (bytes: number, bytesTotal: number) => void;
}

const prefixOf = (logId: string): string => `${logId.slice(0, 8)}-`;

/** Of what a name in a directory of backups may be. */
export const backupIdPattern = /^[0-9a-f]{8}-[0-9a-f-]{1,64}$/;

/** Throws REL_UNAVAILABLE when it can't be done; nothing is left then, as far as the disk lets it be removed. */
export async function captureBackup(options: BackupOptions): Promise<Artefact> {
  const { disk, target, capture, name } = options;
  const id = `${prefixOf(capture.manifest.logId)}${name}`;
  const home = `${target}/${id}`;
  try {
    await disk.makeDirectory(target);
    await clearUnfinished(options);
    return await new Capture(options, id, home).run();
  } catch (cause) {
    await removeTree(disk, home).catch(() => undefined);
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new ServiceError('REL_UNAVAILABLE', `no backup was taken: ${why}`, { cause });
  }
}

/** Digests that became known once the backup was taken, beside all that its document says already. */
export async function recordDigests(
  { disk, target, keyring }: Pick<BackupOptions, 'disk' | 'target' | 'keyring'>,
  artefact: Artefact,
  { projections, digest_tree_size }: Required<Pick<Artefact, 'projections' | 'digest_tree_size'>>,
): Promise<Artefact> {
  const path = `${target}/${artefact.id}/${ARTEFACT_NAME}`;
  if ((await disk.size(path)) === undefined) throw new ServiceError('REL_NOT_FOUND', `${path} was removed meanwhile`);
  const digested: Artefact = { ...artefact, projections, digest_tree_size };
  await disk.replaceFile(path, formatArtefact(digested, keyring.signer));
  return digested;
}

/** What an earlier capture of this log left that did not come to its end. */
async function clearUnfinished({ disk, target, capture }: BackupOptions): Promise<void> {
  for (const name of await disk.list(target)) {
    const home = `${target}/${name}`;
    if (!name.startsWith(prefixOf(capture.manifest.logId)) || !backupIdPattern.test(name)) continue;
    if ((await disk.size(`${home}/${ARTEFACT_NAME}`)) === undefined) await removeTree(disk, home);
  }
}

class Capture {
  readonly #options: BackupOptions;
  readonly #id: string;
  readonly #home: string;
  #bytes = 0;
  #bytesTotal = 0;

  constructor(options: BackupOptions, id: string, home: string) {
    this.#options = options;
    this.#id = id;
    this.#home = home;
  }

  async run(): Promise<Artefact> {
    const { disk, capture, target, keyring } = this.#options;
    const { files, logId } = capture.manifest;
    const log = files.map((record) => ({
      name: `log/${logFileName(record)}`,
      length: record.state === 'sealed' ? record.length : capture.openLength,
    }));
    // A blob is there before the entry that names it, so all that these entries name are there by now.
    const blobs = await this.#listBlobs();
    this.#bytesTotal = 2 * log.reduce((sum, { length }) => sum + length, 0) + blobs.reduce((sum, { length }) => sum + length, 0);
    const copied: CopiedFile[] = [];
    await disk.makeDirectory(`${this.#home}/log`);
    for (const { name, length } of log) copied.push(await this.#copy(name, length));
    copied.push(await this.#put('log/manifest', Buffer.from(formatManifest(capture.manifest), 'latin1')));
    copied.push(await this.#put('log/checkpoint', Buffer.from(capture.head.note)));
    await disk.syncDirectory(`${this.#home}/log`);
    const copiedBlobs = await this.#copyBlobs(blobs);
    await this.#readBack();
    const artefact: Artefact = {
      schema_version: ARTEFACT_VERSION,
      id: this.#id,
      created_at: this.#options.createdAt,
      engine_version: this.#options.engineVersion,
      log_id: logId,
      origin: this.#options.origin,
      tree_size: capture.head.size,
      root: hexOf(capture.head.root),
      head: capture.head.note,
      files: copied,
      blobs: copiedBlobs,
      key_ids: keyring.dataKeyIds,
      erased_keys: this.#options.erasedKeys,
      projections: this.#options.projections,
    };
    await disk.syncDirectory(target);
    await disk.replaceFile(`${this.#home}/${ARTEFACT_NAME}`, formatArtefact(artefact, keyring.signer));
    return artefact;
  }

  async #listBlobs(): Promise<{ readonly name: string; readonly length: number }[]> {
    const { disk, directory } = this.#options;
    const blobs: { name: string; length: number }[] = [];
    for (const prefix of await disk.list(`${directory}/blobs`)) {
      for (const hash of await disk.list(`${directory}/blobs/${prefix}`)) {
        if (!/^[0-9a-f]{64}$/.test(hash)) continue;
        const name = `blobs/${prefix}/${hash}`;
        const length = await disk.size(`${directory}/${name}`);
        if (length !== undefined) blobs.push({ name, length });
      }
    }
    return blobs;
  }

  async #copyBlobs(blobs: readonly { readonly name: string; readonly length: number }[]): Promise<CopiedFile[]> {
    const { disk, directory } = this.#options;
    const copied: CopiedFile[] = [];
    const homes = new Set<string>();
    for (const { name, length } of blobs) {
      const home = `${this.#home}/${name.slice(0, 'blobs/00'.length)}`;
      if (!homes.has(home)) await disk.makeDirectory(home);
      homes.add(home);
      try {
        copied.push(await this.#copy(name, length));
      } catch (error) {
        // Removed for good while the backup was taken: it is in no backup from then on.
        if ((await disk.size(`${directory}/${name}`)) !== undefined) throw error;
        await disk.unlink(`${this.#home}/${name}`).catch(() => undefined);
      }
    }
    for (const home of homes) await disk.syncDirectory(home);
    return copied;
  }

  async #copy(name: string, length: number): Promise<CopiedFile> {
    const { disk, directory, yieldTurn } = this.#options;
    const onBytes = (bytes: number): void => this.#advance(bytes);
    const sha256 = await copyFile({ disk, yieldTurn, onBytes }, `${directory}/${name}`, `${this.#home}/${name}`, length);
    return { name, length, sha256 };
  }

  async #put(name: string, content: Uint8Array): Promise<CopiedFile> {
    await this.#options.disk.replaceFile(`${this.#home}/${name}`, content);
    return { name, length: content.length, sha256: sha256Hex(content) };
  }

  /** A copy of what has rotted since it was written is a true copy, and no backup. */
  async #readBack(): Promise<void> {
    const { disk, yieldTurn, capture, keyring } = this.#options;
    const copied = this.#bytes;
    const report = await verifyDirectory({
      disk: pacedDisk(disk, yieldTurn),
      windowBytes: PACED_BYTES,
      directory: this.#home,
      keyring,
      sealed: true,
      onProgress: (bytes) => this.#advance(copied + bytes - this.#bytes),
    });
    const [finding] = report.findings;
    if (finding) throw new ServiceError('REL_STORAGE', `${finding.place}: ${finding.what}`);
    if (report.root !== hexOf(capture.head.root) || report.leaves !== capture.head.size) {
      throw new ServiceError('REL_STORAGE', `the copy holds ${report.leaves} leaves of another root than the signed head`);
    }
  }

  #advance(bytes: number): void {
    this.#bytes += bytes;
    this.#options.onProgress?.(this.#bytes, this.#bytesTotal);
  }
}
