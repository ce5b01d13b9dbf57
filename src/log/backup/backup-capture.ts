/**
 * Captures a backup while writes go on. Sealed files are copied whole, the open file up to a signed head, and the copy is read
 * back (`backup-copy.ts`): its chain must lead to that head. Only then its document is written (`backup-artefact.ts`), last and
 * whole, so a directory that a crash or a failure left is never taken for a backup; the next capture of the same log clears it.
 */
import { ServiceError } from '../../errors.ts';
import { type Artefact, ARTEFACT_NAME, ARTEFACT_VERSION, formatArtefact } from './backup-artefact.ts';
import { type CopiedLog, type CopyRequest, handedKeys } from './backup-copy.ts';
import type { Disk } from '../disk/disk.ts';
import { removeTree } from '../disk/file-copy.ts';
import type { Keyring } from '../keys/keys.ts';
import type { LogCapture } from '../log-store.ts';
import { formatManifest, logFileName } from '../files/manifest.ts';
import { hexOf } from '../bytes/sha256.ts';

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
  /** Digests of the projections at the head of the capture, where they are known by now. */
  readonly projections: Readonly<Record<string, string>> | null;
  /** How many keys of subjects were destroyed before the projections were as they are digested. */
  readonly erasedKeys: number;
  /** Copies and reads back, in turns of this event loop or beside it. */
  readonly copy: (request: CopyRequest) => Promise<CopiedLog>;
}

const prefixOf = (logId: string): string => `${logId.slice(0, 8)}-`;

/** Names that a backup may have in its directory. */
export const backupIdPattern = /^[0-9a-f]{8}-[0-9a-f-]{1,64}$/;

/** Throws REL_UNAVAILABLE when it can't be done; nothing is left then, as far as the disk lets it be removed. */
export async function captureBackup(options: BackupOptions): Promise<Artefact> {
  const { disk, target, capture, name } = options;
  const id = `${prefixOf(capture.manifest.logId)}${name}`;
  const home = `${target}/${id}`;
  try {
    await disk.makeDirectory(target);
    await clearUnfinished(options);
    return await copyLog(options, id, home);
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

/** Removes the leftovers of an earlier capture of this log that did not finish. */
async function clearUnfinished({ disk, target, capture }: BackupOptions): Promise<void> {
  for (const name of await disk.list(target)) {
    const home = `${target}/${name}`;
    if (!name.startsWith(prefixOf(capture.manifest.logId)) || !backupIdPattern.test(name)) continue;
    if ((await disk.size(`${home}/${ARTEFACT_NAME}`)) === undefined) await removeTree(disk, home);
  }
}

async function copyLog(options: BackupOptions, id: string, home: string): Promise<Artefact> {
  const { disk, directory, target, capture, keyring } = options;
  const { manifest, openLength, head } = capture;
  const { files, blobs } = await options.copy({
    directory,
    home,
    log: manifest.files.map((record) => ({
      name: `log/${logFileName(record)}`,
      length: record.state === 'sealed' ? record.length : openLength,
    })),
    manifest: Buffer.from(formatManifest(manifest), 'latin1'),
    head: { note: head.note, size: head.size, root: hexOf(head.root) },
    keys: handedKeys(keyring),
  });
  const artefact: Artefact = {
    schema_version: ARTEFACT_VERSION,
    id,
    created_at: options.createdAt,
    engine_version: options.engineVersion,
    log_id: manifest.logId,
    origin: options.origin,
    tree_size: head.size,
    root: hexOf(head.root),
    head: head.note,
    files,
    blobs,
    key_ids: keyring.dataKeyIds,
    erased_keys: options.erasedKeys,
    projections: options.projections,
  };
  await disk.syncDirectory(target);
  await disk.replaceFile(`${home}/${ARTEFACT_NAME}`, formatArtefact(artefact, keyring.signer));
  return artefact;
}
