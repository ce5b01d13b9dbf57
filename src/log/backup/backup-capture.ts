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

const backupIdPrefix = (logId: string): string => `${logId.slice(0, 8)}-`;

/** Names that a backup may have in its directory. */
export const backupIdPattern = /^[0-9a-f]{8}-[0-9a-f-]{1,64}$/;

/** Throws REL_UNAVAILABLE when it can't be done; nothing is left then, as far as the disk lets it be removed. */
export async function captureBackup(backupOptions: BackupOptions): Promise<Artefact> {
  const { disk, target: backupTarget, capture: logCapture, name } = backupOptions;
  const backupId = `${backupIdPrefix(logCapture.manifest.logId)}${name}`;
  const backupHome = `${backupTarget}/${backupId}`;
  try {
    await disk.makeDirectory(backupTarget);
    await clearUnfinishedBackups(backupOptions);
    return await copyCapturedLog(backupOptions, backupId, backupHome);
  } catch (cause) {
    await removeTree(disk, backupHome).catch(() => undefined);
    const causeText = cause instanceof Error ? cause.message : String(cause);
    throw new ServiceError('REL_UNAVAILABLE', `no backup was taken: ${causeText}`, { cause });
  }
}

/** Digests that became known once the backup was taken, beside all that its document says already. */
export async function recordDigests(
  { disk, target: backupTarget, keyring }: Pick<BackupOptions, 'disk' | 'target' | 'keyring'>,
  backupArtefact: Artefact,
  { projections, digest_tree_size }: Required<Pick<Artefact, 'projections' | 'digest_tree_size'>>,
): Promise<Artefact> {
  const artefactPath = `${backupTarget}/${backupArtefact.id}/${ARTEFACT_NAME}`;
  if ((await disk.size(artefactPath)) === undefined)
    throw new ServiceError('REL_NOT_FOUND', `${artefactPath} was removed meanwhile`);
  const digestedArtefact: Artefact = { ...backupArtefact, projections, digest_tree_size };
  await disk.replaceFile(artefactPath, formatArtefact(digestedArtefact, keyring.signer));
  return digestedArtefact;
}

/** Removes the leftovers of an earlier capture of this log that did not finish. */
async function clearUnfinishedBackups({ disk, target: backupTarget, capture: logCapture }: BackupOptions): Promise<void> {
  for (const backupName of await disk.list(backupTarget)) {
    const unfinishedHome = `${backupTarget}/${backupName}`;
    if (!backupName.startsWith(backupIdPrefix(logCapture.manifest.logId)) || !backupIdPattern.test(backupName)) continue;
    if ((await disk.size(`${unfinishedHome}/${ARTEFACT_NAME}`)) === undefined) await removeTree(disk, unfinishedHome);
  }
}

async function copyCapturedLog(backupOptions: BackupOptions, backupId: string, backupHome: string): Promise<Artefact> {
  const { disk, directory, target: backupTarget, capture: logCapture, keyring } = backupOptions;
  const { manifest, openLength, head: capturedHead } = logCapture;
  const { files, blobs } = await backupOptions.copy({
    directory,
    home: backupHome,
    log: manifest.files.map((capturedFile) => ({
      name: `log/${logFileName(capturedFile)}`,
      length: capturedFile.state === 'sealed' ? capturedFile.length : openLength,
    })),
    manifest: Buffer.from(formatManifest(manifest), 'latin1'),
    head: { note: capturedHead.note, size: capturedHead.size, root: hexOf(capturedHead.root) },
    keys: handedKeys(keyring),
  });
  const artefact: Artefact = {
    schema_version: ARTEFACT_VERSION,
    id: backupId,
    created_at: backupOptions.createdAt,
    engine_version: backupOptions.engineVersion,
    log_id: manifest.logId,
    origin: backupOptions.origin,
    tree_size: capturedHead.size,
    root: hexOf(capturedHead.root),
    head: capturedHead.note,
    files,
    blobs,
    key_ids: keyring.dataKeyIds,
    erased_keys: backupOptions.erasedKeys,
    projections: backupOptions.projections,
  };
  await disk.syncDirectory(backupTarget);
  await disk.replaceFile(`${backupHome}/${ARTEFACT_NAME}`, formatArtefact(artefact, keyring.signer));
  return artefact;
}
