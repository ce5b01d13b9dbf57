/**
 * Backups of a running store, and restores beside it. The log captures and checks its files (`log/backup/backup-capture.ts`); `store-restores.ts`
 * rebuilds a store from them. A restore is compared with:
 *
 * - digests of all projections at the head of the backup, where they are had within a turn of some milliseconds;
 * - else those of the state that the store saved right before that head was taken. They are made beside it, from its files
 *   alone, after the backup was acknowledged, and then put into its document: until then it says that there are none.
 */
import { isAbsolute, join, relative, resolve } from 'node:path';
import type { Clock, Ids, Random } from '../clock.ts';
import type { Settings } from '../config.ts';
import type { BackupContract, BackupView, DamagedBackup, RestoreReport, UpkeepOptions } from '../doors/http/system-contract.ts';
import { ServiceError } from '../errors.ts';
import { type Artefact, ARTEFACT_NAME, bytesOf, digestedAt } from '../log/backup/backup-artefact.ts';
import { type CopiedLog, copyLog, type CopyRequest, type OnCopied } from '../log/backup/backup-copy.ts';
import { backupIdPattern, captureBackup, recordDigests } from '../log/backup/backup-capture.ts';
import type { Disk } from '../log/disk/disk.ts';
import { type KeyStore, openKeyring } from '../log/keys/keys.ts';
import type { LocalLog } from '../log/log.ts';
import type { LogCapture } from '../log/log-store.ts';
import { logFileName } from '../log/files/manifest.ts';
import { readBackup } from '../log/backup/backup-restore.ts';
import { formatInstant } from '../log/values/timestamp.ts';
import { masterKeys } from '../master-keys.ts';
import type { CheckpointSchedule, SavedState } from '../projections/checkpoint-schedule.ts';
import type { Projections } from '../projections/projections.ts';
import { type OnProgress, type BackgroundRestore, type RestoreRequest, restoreStore } from './store-restores.ts';
import { digestsOfSaved, type SavedStateRequest } from './saved-digests.ts';

/** Positions and entries up to which the projections of a store that serves are digested in one turn: some milliseconds. */
const DIGESTED_IN_TURN_MAX = 1_000;

export const backupDirectory = (settings: Settings): string =>
  settings.SERVICE_BACKUP_DIR ?? join(settings.SERVICE_DATA_DIR, 'backups');

export interface StoreBackupsDependencies {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly ids: Ids;
  readonly settings: Settings;
  readonly version: string;
  readonly log: LocalLog;
  readonly projections: Projections;
  readonly keyring: KeyStore;
  readonly say: (line: string) => void;
  readonly yieldTurn: () => Promise<void>;
  /** Restores on the same disk without taking turns of this event loop; absent: in them. */
  readonly restoreBeside?: BackgroundRestore;
  /** Copies on the same disk without taking turns of this event loop; absent: in them. */
  readonly copyBeside?: BackgroundCopy;
  /** Log from which on that is worth it, in bytes. */
  readonly copyBesideBytesMin?: number;
  /** Where projections are saved; null: nowhere. */
  readonly checkpoints: CheckpointSchedule | null;
  /** Digests what is saved on the same disk without taking turns of this event loop; absent: in one turn of it. */
  readonly digestBeside?: BackgroundDigest;
  readonly digestedInTurnMax?: number;
  /** Ends what is under way: the store closes. */
  readonly signal: AbortSignal;
}

export type BackgroundCopy = (request: CopyRequest, signal: AbortSignal, onProgress?: OnCopied) => Promise<CopiedLog>;

export type BackgroundDigest = (request: SavedStateRequest, signal: AbortSignal) => Promise<Readonly<Record<string, string>>>;

export interface CreateOptions extends UpkeepOptions {
  /** Instead of SERVICE_BACKUP_DIR. */
  readonly target?: string;
  /** Digests of all projections, within the turn; absent where other work waits for it. */
  readonly digests?: () => Readonly<Record<string, string>>;
}

/** A thread that starts costs as much as to copy 40 MiB in turns, so that what takes some tenths of a second is copied in them. */
const THREAD_COPY_BYTES_MIN = 128 << 20;

/** A file is written anew at most now and then. */
const BACKUP_ATTEMPTS = 3;

/** Backups of a running store. */
export class StoreBackups implements BackupContract {
  readonly #backupDependencies: StoreBackupsDependencies;
  readonly #backupDirectory: string;
  #busyReason: string | null = null;
  #pendingDigests: Promise<unknown> = Promise.resolve();
  /** Ends the digesting of the last backup's saved state: the next saved state replaces its files. */
  #supersededDigest = new AbortController();

  constructor(backupDependencies: StoreBackupsDependencies) {
    this.#backupDependencies = backupDependencies;
    this.#backupDirectory = backupDirectory(backupDependencies.settings);
  }

  create(backupOptions: CreateOptions = {}): Promise<BackupView> {
    return this.#runAlone('a backup is being taken', async () => {
      this.#requireDisk();
      const { log } = this.#backupDependencies;
      for (let backupAttempt = 1; ; backupAttempt++) {
        await log.seal();
        const captureBefore = await log.capture();
        const erasedKeys = this.#backupDependencies.keyring.subjects.tombstones().length;
        const savedState = await this.#saveState(backupOptions);
        const logCapture = await log.capture();
        try {
          const backupArtefact = await this.#captureBackup(logCapture, erasedKeys, backupOptions);
          // Rows dropped from the files after the state was saved are missing in a replay up to it.
          if (savedState && !backupArtefact.projections && !haveFilesChanged(captureBefore, logCapture))
            this.#pendingDigests = Promise.all([
              this.#pendingDigests,
              this.#digestLater(backupArtefact, savedState, backupOptions),
            ]);
          return backupViewOf(backupArtefact);
        } catch (captureError) {
          // Rows were dropped from a file that was to be copied: it is another one since.
          if (backupAttempt === BACKUP_ATTEMPTS || !haveFilesChanged(logCapture, await log.capture())) throw captureError;
        }
      }
    });
  }

  /** Nothing is under way that was begun for a backup that was acknowledged. */
  async whenIdle(): Promise<void> {
    await this.#pendingDigests;
  }

  /** Captures the state of a store that is too large to be digested within a turn; writes nothing. */
  async #saveState({ digests }: CreateOptions): Promise<SavedState | null> {
    const { log, checkpoints } = this.#backupDependencies;
    if (digests || this.#isSmallStore() || !checkpoints) return null;
    this.#supersededDigest.abort();
    this.#supersededDigest = new AbortController();
    const savedState = await checkpoints.capture();
    // The head of the backup covers it.
    if (savedState) await log.durable(savedState.leaves);
    return savedState;
  }

  #isSmallStore(): boolean {
    const { positions, leaves } = this.#backupDependencies.log.status();
    return Math.max(positions, leaves) <= (this.#backupDependencies.digestedInTurnMax ?? DIGESTED_IN_TURN_MAX);
  }

  async #captureBackup(
    logCapture: LogCapture,
    erasedKeys: number,
    { target: backupTarget, digests, onProgress, signal }: CreateOptions,
  ): Promise<Artefact> {
    const { projections, disk, keyring, version, ids, settings, clock } = this.#backupDependencies;
    // Digests of exactly the leaves that are copied, or none.
    const isUnchanged = projections.projector.watermark === logCapture.head.size;
    const wantedDigests = digests ?? (this.#isSmallStore() ? () => projections.digests() : null);
    return await captureBackup({
      disk,
      directory: settings.SERVICE_DATA_DIR,
      target: backupTarget ?? this.#backupDirectory,
      name: ids.next(),
      createdAt: formatInstant(clock.now()),
      engineVersion: version,
      origin: settings.SERVICE_LOG_ORIGIN,
      keyring,
      capture: logCapture,
      projections: isUnchanged && wantedDigests ? wantedDigests() : null,
      erasedKeys,
      copy: (request) => this.#copyLog(request, onProgress, signal),
    });
  }

  #copyLog(copyRequest: CopyRequest, onProgress: OnProgress | undefined, stopSignal?: AbortSignal): Promise<CopiedLog> {
    const { disk, copyBeside, copyBesideBytesMin = THREAD_COPY_BYTES_MIN } = this.#backupDependencies;
    const logBytes = copyRequest.log.reduce((sum, { length }) => sum + length, 0);
    if (copyBeside && logBytes >= copyBesideBytesMin) return copyBeside(copyRequest, this.#upkeepSignal(stopSignal), onProgress);
    return copyLog(copyRequest, { disk, yieldTurn: this.#upkeepPace(stopSignal), onProgress });
  }

  /** Aborts with the store, and with the caller. */
  #upkeepSignal(stopSignal: AbortSignal | undefined): AbortSignal {
    const { signal } = this.#backupDependencies;
    return stopSignal === undefined ? signal : AbortSignal.any([signal, stopSignal]);
  }

  /** Never rejects: the backup stays valid, and a restore says what it was compared with. */
  async #digestLater(
    backupArtefact: Artefact,
    savedState: SavedState,
    { target = this.#backupDirectory }: CreateOptions,
  ): Promise<void> {
    const { disk, keyring, settings, digestBeside, signal: closingSignal, say } = this.#backupDependencies;
    const { signal: supersededSignal } = this.#supersededDigest;
    try {
      const savedPosition = await savedState.written;
      if (!savedPosition) throw new ServiceError('REL_STORAGE', 'the state that they are made from could not be saved');
      const savedStateRequest: SavedStateRequest = {
        directory: savedState.directory,
        checkpointPosition: savedPosition,
        dataKeys: keyring.dataKeyIds.map((id) => [id, keyring.open(id)]),
        tokensMax: settings.SERVICE_TOKEN_REGISTRY_MAX,
      };
      const digestsByProjection = digestBeside
        ? await digestBeside(savedStateRequest, AbortSignal.any([closingSignal, supersededSignal]))
        : await digestsOfSaved(savedStateRequest, disk);
      await recordDigests({ disk, target, keyring }, backupArtefact, {
        projections: digestsByProjection,
        digest_tree_size: savedPosition.leaves,
      });
    } catch (digestError) {
      if (closingSignal.aborted) return;
      const failureReason = supersededSignal.aborted
        ? 'another backup was taken meanwhile'
        : digestError instanceof Error
          ? digestError.message
          : String(digestError);
      say(`backup ${backupArtefact.id} has no digests of projections (${failureReason}): a restore of it compares two replays`);
    }
  }

  async list(): Promise<(BackupView | DamagedBackup)[]> {
    const { disk, keyring } = this.#backupDependencies;
    return await listBackups(disk, this.#backupDirectory, keyring.publicKeys);
  }

  /** Beside this store, which goes on; to change over is a restart. */
  restore(
    backupId: string,
    restoreTarget: string,
    { signal: stopSignal, onProgress }: UpkeepOptions = {},
  ): Promise<RestoreReport> {
    return this.#runAlone('a restore is under way', async () => {
      const { keyring, settings, version, restoreBeside } = this.#backupDependencies;
      this.#requireDisk();
      if (!backupIdPattern.test(backupId))
        throw new ServiceError('REL_NOT_FOUND', `there is no backup ${JSON.stringify(backupId)}`);
      const dataDirectory = settings.SERVICE_DATA_DIR;
      if (!isAbsolute(restoreTarget) || restoreTarget.includes('\0'))
        throw new ServiceError('REL_INVALID', 'target_dir must be an absolute path');
      for (const ownDirectory of [dataDirectory, this.#backupDirectory]) {
        if (isWithinDirectory(restoreTarget, ownDirectory))
          throw new ServiceError('REL_INVALID', `target_dir lies in ${ownDirectory}, which this store uses`);
      }
      const tombstonesBefore = new Set(keyring.subjects.tombstones().map(({ id }) => id));
      const { records: subjectRecords, ...heldKeys } = keyring.contents();
      const restoreRequest: RestoreRequest = {
        settings,
        version,
        source: join(this.#backupDirectory, backupId),
        target: restoreTarget,
        keys: { ...heldKeys, records: [...subjectRecords] },
      };
      const restoreReport = restoreBeside
        ? await restoreBeside(restoreRequest, this.#upkeepSignal(stopSignal), onProgress)
        : await restoreStore({
            ...this.#backupDependencies,
            ...restoreRequest,
            yieldTurn: this.#upkeepPace(stopSignal),
            ...(onProgress && { onProgress }),
          });
      const lateTombstones = keyring.subjects.tombstones().filter(({ id }) => !tombstonesBefore.has(id));
      if (lateTombstones.length === 0) return restoreReport;
      await this.#destroyKeysIn(restoreTarget, lateTombstones);
      return { ...restoreReport, erased_keys: restoreReport.erased_keys + lateTombstones.length };
    });
  }

  /** Destroys the keys of erasures that happened during the restore. */
  async #destroyKeysIn(
    target: string,
    lateTombstones: readonly { readonly id: string; readonly receipt: string }[],
  ): Promise<void> {
    const { disk, random, settings, say } = this.#backupDependencies;
    const targetMasterKeys = await masterKeys({ ...settings, SERVICE_DATA_DIR: target }, disk, random, say);
    const targetKeyring = await openKeyring({ disk, random, directory: target, ...targetMasterKeys });
    for (const { id, receipt } of lateTombstones) await targetKeyring.subjects.destroy([id], receipt);
    await targetKeyring.close();
  }

  #requireDisk(): void {
    if (this.#backupDependencies.settings.SERVICE_IN_MEMORY) {
      throw new ServiceError(
        'REL_UNPROCESSABLE',
        'SERVICE_IN_MEMORY keeps backups in memory too: nothing would survive the process',
      );
    }
  }

  #upkeepPace(stopSignal: AbortSignal | undefined): () => Promise<void> {
    const { signal, yieldTurn } = this.#backupDependencies;
    return async () => {
      if (signal.aborted) throw new ServiceError('REL_UNAVAILABLE', 'the store is draining');
      stopSignal?.throwIfAborted();
      await yieldTurn();
    };
  }

  async #runAlone<T>(busyReason: string, upkeepWork: () => Promise<T>): Promise<T> {
    if (this.#busyReason !== null) throw new ServiceError('REL_CONFLICT', this.#busyReason);
    this.#busyReason = busyReason;
    try {
      return await upkeepWork();
    } finally {
      this.#busyReason = null;
    }
  }
}

/** Whether a file that the first names is another by now. */
function haveFilesChanged(captureBefore: LogCapture, captureNow: LogCapture): boolean {
  const fileNamesNow = captureNow.manifest.files.map(logFileName);
  return captureBefore.manifest.files.some((fileRecord, i) => logFileName(fileRecord) !== fileNamesNow[i]);
}

/** Whether one path is another, or lies below it. */
function isWithinDirectory(checkedPath: string, parentDirectory: string): boolean {
  const relativePath = relative(resolve(parentDirectory), resolve(checkedPath));
  return relativePath === '' || !(relativePath === '..' || relativePath.startsWith('../') || isAbsolute(relativePath));
}

/** Whole ones, and those whose document can't be believed; of one log the oldest first. */
export async function listBackups(
  disk: Disk,
  backupsDirectory: string,
  publicKeys: readonly Uint8Array[],
): Promise<(BackupView | DamagedBackup)[]> {
  const backups: (BackupView | DamagedBackup)[] = [];
  for (const backupName of await disk.list(backupsDirectory)) {
    const backupSource = join(backupsDirectory, backupName);
    if (!backupIdPattern.test(backupName) || (await disk.size(join(backupSource, ARTEFACT_NAME))) === undefined) continue;
    try {
      backups.push(backupViewOf(await readBackup(disk, backupSource, publicKeys)));
    } catch (backupError) {
      backups.push({ backup: backupName, damaged: backupError instanceof Error ? backupError.message : String(backupError) });
    }
  }
  return backups;
}

function backupViewOf(backupArtefact: Artefact): BackupView {
  return {
    backup: backupArtefact.id,
    created_at: backupArtefact.created_at,
    engine_version: backupArtefact.engine_version,
    root: backupArtefact.root,
    tree_size: backupArtefact.tree_size,
    size_bytes: bytesOf(backupArtefact),
    digest_tree_size: digestedAt(backupArtefact),
  };
}
