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
const COPY_BESIDE_BYTES_MIN = 128 << 20;

/** A file is written anew at most now and then. */
const ATTEMPTS = 3;

/** Backups of a running store. */
export class StoreBackups implements BackupContract {
  readonly #parts: StoreBackupsDependencies;
  readonly #directory: string;
  #busy: string | null = null;
  #digesting: Promise<unknown> = Promise.resolve();
  /** Ends the digesting of the last backup's saved state: the next saved state replaces its files. */
  #superseded = new AbortController();

  constructor(parts: StoreBackupsDependencies) {
    this.#parts = parts;
    this.#directory = backupDirectory(parts.settings);
  }

  create(options: CreateOptions = {}): Promise<BackupView> {
    return this.#alone('a backup is being taken', async () => {
      this.#mustLast();
      const { log } = this.#parts;
      for (let attempt = 1; ; attempt++) {
        await log.seal();
        const before = await log.capture();
        const erasedKeys = this.#parts.keyring.subjects.tombstones().length;
        const saved = await this.#saveState(options);
        const capture = await log.capture();
        try {
          const artefact = await this.#capture(capture, erasedKeys, options);
          // Rows dropped from the files after the state was saved are missing in a replay up to it.
          if (saved && !artefact.projections && !differ(before, capture))
            this.#digesting = Promise.all([this.#digesting, this.#digestLater(artefact, saved, options)]);
          return viewOf(artefact);
        } catch (error) {
          // Rows were dropped from a file that was to be copied: it is another one since.
          if (attempt === ATTEMPTS || !differ(capture, await log.capture())) throw error;
        }
      }
    });
  }

  /** Nothing is under way that was begun for a backup that was acknowledged. */
  async whenIdle(): Promise<void> {
    await this.#digesting;
  }

  /** Captures the state of a store that is too large to be digested within a turn; writes nothing. */
  async #saveState({ digests }: CreateOptions): Promise<SavedState | null> {
    const { log, checkpoints } = this.#parts;
    if (digests || this.#isSmall() || !checkpoints) return null;
    this.#superseded.abort();
    this.#superseded = new AbortController();
    const saved = await checkpoints.capture();
    // The head of the backup covers it.
    if (saved) await log.durable(saved.leaves);
    return saved;
  }

  #isSmall(): boolean {
    const { positions, leaves } = this.#parts.log.status();
    return Math.max(positions, leaves) <= (this.#parts.digestedInTurnMax ?? DIGESTED_IN_TURN_MAX);
  }

  async #capture(
    capture: LogCapture,
    erasedKeys: number,
    { target, digests, onProgress, signal }: CreateOptions,
  ): Promise<Artefact> {
    const { projections, disk, keyring, version, ids, settings, clock } = this.#parts;
    // Digests of exactly the leaves that are copied, or none.
    const still = projections.projector.watermark === capture.head.size;
    const wanted = digests ?? (this.#isSmall() ? () => projections.digests() : null);
    return await captureBackup({
      disk,
      directory: settings.SERVICE_DATA_DIR,
      target: target ?? this.#directory,
      name: ids.next(),
      createdAt: formatInstant(clock.now()),
      engineVersion: version,
      origin: settings.SERVICE_LOG_ORIGIN,
      keyring,
      capture,
      projections: still && wanted ? wanted() : null,
      erasedKeys,
      copy: (request) => this.#copy(request, onProgress, signal),
    });
  }

  #copy(request: CopyRequest, onProgress: OnProgress | undefined, asked?: AbortSignal): Promise<CopiedLog> {
    const { disk, copyBeside, copyBesideBytesMin = COPY_BESIDE_BYTES_MIN } = this.#parts;
    const bytes = request.log.reduce((sum, { length }) => sum + length, 0);
    if (copyBeside && bytes >= copyBesideBytesMin) return copyBeside(request, this.#signal(asked), onProgress);
    return copyLog(request, { disk, yieldTurn: this.#pace(asked), onProgress });
  }

  /** Aborts with the store, and with the caller. */
  #signal(asked: AbortSignal | undefined): AbortSignal {
    const { signal } = this.#parts;
    return asked === undefined ? signal : AbortSignal.any([signal, asked]);
  }

  /** Never rejects: the backup stays valid, and a restore says what it was compared with. */
  async #digestLater(artefact: Artefact, saved: SavedState, { target = this.#directory }: CreateOptions): Promise<void> {
    const { disk, keyring, settings, digestBeside, signal: closing, say } = this.#parts;
    const { signal: superseded } = this.#superseded;
    try {
      const savedPosition = await saved.written;
      if (!savedPosition) throw new ServiceError('REL_STORAGE', 'the state that they are made from could not be saved');
      const request: SavedStateRequest = {
        directory: saved.directory,
        checkpointPosition: savedPosition,
        dataKeys: keyring.dataKeyIds.map((id) => [id, keyring.open(id)]),
        tokensMax: settings.SERVICE_TOKEN_REGISTRY_MAX,
      };
      const projections = digestBeside
        ? await digestBeside(request, AbortSignal.any([closing, superseded]))
        : await digestsOfSaved(request, disk);
      await recordDigests({ disk, target, keyring }, artefact, { projections, digest_tree_size: savedPosition.leaves });
    } catch (error) {
      if (closing.aborted) return;
      const why = superseded.aborted
        ? 'another backup was taken meanwhile'
        : error instanceof Error
          ? error.message
          : String(error);
      say(`backup ${artefact.id} has no digests of projections (${why}): a restore of it compares two replays`);
    }
  }

  async list(): Promise<(BackupView | DamagedBackup)[]> {
    const { disk, keyring } = this.#parts;
    return await listBackups(disk, this.#directory, keyring.publicKeys);
  }

  /** Beside this store, which goes on; to change over is a restart. */
  restore(backup: string, target: string, { signal: asked, onProgress }: UpkeepOptions = {}): Promise<RestoreReport> {
    return this.#alone('a restore is under way', async () => {
      const { keyring, settings, version, restoreBeside } = this.#parts;
      this.#mustLast();
      if (!backupIdPattern.test(backup)) throw new ServiceError('REL_NOT_FOUND', `there is no backup ${JSON.stringify(backup)}`);
      const data = settings.SERVICE_DATA_DIR;
      if (!isAbsolute(target) || target.includes('\0'))
        throw new ServiceError('REL_INVALID', 'target_dir must be an absolute path');
      for (const own of [data, this.#directory]) {
        if (isWithin(target, own)) throw new ServiceError('REL_INVALID', `target_dir lies in ${own}, which this store uses`);
      }
      const before = new Set(keyring.subjects.tombstones().map(({ id }) => id));
      const { records, ...held } = keyring.contents();
      const request: RestoreRequest = {
        settings,
        version,
        source: join(this.#directory, backup),
        target,
        keys: { ...held, records: [...records] },
      };
      const report = restoreBeside
        ? await restoreBeside(request, this.#signal(asked), onProgress)
        : await restoreStore({ ...this.#parts, ...request, yieldTurn: this.#pace(asked), ...(onProgress && { onProgress }) });
      const late = keyring.subjects.tombstones().filter(({ id }) => !before.has(id));
      if (late.length === 0) return report;
      await this.#destroyIn(target, late);
      return { ...report, erased_keys: report.erased_keys + late.length };
    });
  }

  /** Destroys the keys of erasures that happened during the restore. */
  async #destroyIn(target: string, late: readonly { readonly id: string; readonly receipt: string }[]): Promise<void> {
    const { disk, random, settings, say } = this.#parts;
    const master = await masterKeys({ ...settings, SERVICE_DATA_DIR: target }, disk, random, say);
    const keyring = await openKeyring({ disk, random, directory: target, ...master });
    for (const { id, receipt } of late) await keyring.subjects.destroy([id], receipt);
    await keyring.close();
  }

  #mustLast(): void {
    if (this.#parts.settings.SERVICE_IN_MEMORY) {
      throw new ServiceError(
        'REL_UNPROCESSABLE',
        'SERVICE_IN_MEMORY keeps backups in memory too: nothing would survive the process',
      );
    }
  }

  #pace(asked: AbortSignal | undefined): () => Promise<void> {
    const { signal, yieldTurn } = this.#parts;
    return async () => {
      if (signal.aborted) throw new ServiceError('REL_UNAVAILABLE', 'the store is draining');
      asked?.throwIfAborted();
      await yieldTurn();
    };
  }

  async #alone<T>(what: string, work: () => Promise<T>): Promise<T> {
    if (this.#busy !== null) throw new ServiceError('REL_CONFLICT', this.#busy);
    this.#busy = what;
    try {
      return await work();
    } finally {
      this.#busy = null;
    }
  }
}

/** Whether a file that the first names is another by now. */
function differ(before: LogCapture, now: LogCapture): boolean {
  const files = now.manifest.files.map(logFileName);
  return before.manifest.files.some((record, i) => logFileName(record) !== files[i]);
}

/** Whether one path is another, or lies below it. */
function isWithin(path: string, directory: string): boolean {
  const between = relative(resolve(directory), resolve(path));
  return between === '' || !(between === '..' || between.startsWith('../') || isAbsolute(between));
}

/** Whole ones, and those whose document can't be believed; of one log the oldest first. */
export async function listBackups(
  disk: Disk,
  directory: string,
  publicKeys: readonly Uint8Array[],
): Promise<(BackupView | DamagedBackup)[]> {
  const backups: (BackupView | DamagedBackup)[] = [];
  for (const name of await disk.list(directory)) {
    const source = join(directory, name);
    if (!backupIdPattern.test(name) || (await disk.size(join(source, ARTEFACT_NAME))) === undefined) continue;
    try {
      backups.push(viewOf(await readBackup(disk, source, publicKeys)));
    } catch (error) {
      backups.push({ backup: name, damaged: error instanceof Error ? error.message : String(error) });
    }
  }
  return backups;
}

function viewOf(artefact: Artefact): BackupView {
  return {
    backup: artefact.id,
    created_at: artefact.created_at,
    engine_version: artefact.engine_version,
    root: artefact.root,
    tree_size: artefact.tree_size,
    size_bytes: bytesOf(artefact),
    digest_tree_size: digestedAt(artefact),
  };
}
