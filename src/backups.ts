/**
 * Backups of a whole store, and stores from backups. What is captured and how it is checked is the log's (`log/backup.ts`,
 * `log/restore.ts`); here projections are rebuilt from what was restored and held against those of the store that was backed up.
 */
import { isAbsolute, join, relative, resolve } from 'node:path';
import { type Clock, Ids, type Random } from './clock.ts';
import type { Settings } from './config.ts';
import type { BackupDesk, BackupView, DamagedBackup, RestoreReport } from './doors/http/system-desk.ts';
import { ServiceError } from './errors.ts';
import { type Artefact, ARTEFACT_NAME, bytesOf } from './log/backup-artefact.ts';
import { backupIdPattern, captureBackup } from './log/backup.ts';
import type { Disk } from './log/disk.ts';
import type { CommittedEntry } from './log/entry.ts';
import { writeKeysFrom } from './log/escrow.ts';
import { type KeyContents, type KeyStore, openKeyring } from './log/keys.ts';
import type { LocalLog } from './log/log.ts';
import type { LogCapture } from './log/log-store.ts';
import { logFileName } from './log/manifest.ts';
import { recover } from './log/recovery.ts';
import { readBackup, type Restored, restoreBackup } from './log/restore.ts';
import { formatInstant } from './log/timestamp.ts';
import type { StartWorker } from './log/workers.ts';
import { masterKeys } from './master-keys.ts';
import { AuditProjection } from './projections/audit/projection.ts';
import { Projections } from './projections/projections.ts';

export type OnProgress = (bytes: number, bytesTotal: number) => void;

/** Positions and entries up to which the projections of a store that serves are digested in one turn: some milliseconds. */
const DIGESTED_MAX = 1_000;

export const backupDirectory = (settings: Settings): string =>
  settings.SERVICE_BACKUP_DIR ?? join(settings.SERVICE_DATA_DIR, 'backups');

export interface BackupParts {
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
  readonly restoreBeside?: RestoreBeside;
  /** Ends what is under way: the store closes. */
  readonly signal: AbortSignal;
}

export interface CreateOptions {
  /** Instead of SERVICE_BACKUP_DIR. */
  readonly target?: string;
  /** Nobody else asks for the turn, so that all projections can be digested in it. */
  readonly digests?: () => Readonly<Record<string, string>>;
  readonly onProgress?: OnProgress;
}

/** A file is written anew at most now and then. */
const ATTEMPTS = 3;

/** Of a store that runs. */
export class Backups implements BackupDesk {
  readonly #parts: BackupParts;
  readonly #directory: string;
  #busy: string | null = null;

  constructor(parts: BackupParts) {
    this.#parts = parts;
    this.#directory = backupDirectory(parts.settings);
  }

  create(options: CreateOptions = {}): Promise<BackupView> {
    return this.#alone('a backup is being taken', async () => {
      this.#mustLast();
      const { log } = this.#parts;
      for (let attempt = 1; ; attempt++) {
        await log.seal();
        const capture = await log.capture();
        try {
          return await this.#capture(capture, options);
        } catch (error) {
          // Rows were dropped from a file that was to be copied: it is another one since.
          if (attempt === ATTEMPTS || !differ(capture, await log.capture())) throw error;
        }
      }
    });
  }

  async #capture(capture: LogCapture, { target, digests, onProgress }: CreateOptions): Promise<BackupView> {
    const { log, projections, disk, keyring, version, ids, settings, clock } = this.#parts;
    // Of the very leaves that are copied, or not at all.
    const still = projections.projector.watermark === capture.head.size;
    const { positions, leaves } = log.status();
    const wanted = digests ?? (Math.max(positions, leaves) <= DIGESTED_MAX ? () => projections.digests() : null);
    const artefact = await captureBackup({
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
      erasedKeys: keyring.subjects.destroyed().length,
      yieldTurn: this.#pace,
      ...(onProgress && { onProgress }),
    });
    return viewOf(artefact);
  }

  async list(): Promise<(BackupView | DamagedBackup)[]> {
    const { disk, keyring } = this.#parts;
    return await listBackups(disk, this.#directory, keyring.publicKeys);
  }

  /** Beside this store, which goes on; to change over is a restart. */
  restore(backup: string, target: string): Promise<RestoreReport> {
    return this.#alone('a restore is under way', async () => {
      const { keyring, settings, version, restoreBeside, signal } = this.#parts;
      this.#mustLast();
      if (!backupIdPattern.test(backup)) throw new ServiceError('REL_NOT_FOUND', `there is no backup ${JSON.stringify(backup)}`);
      const data = settings.SERVICE_DATA_DIR;
      if (!isAbsolute(target) || target.includes('\0')) throw new ServiceError('REL_INVALID', 'target_dir is an absolute path');
      for (const own of [data, this.#directory]) {
        if (isWithin(target, own)) throw new ServiceError('REL_INVALID', `target_dir lies in ${own}, which this store uses`);
      }
      const before = new Set(keyring.subjects.destroyed().map(({ id }) => id));
      const { records, ...held } = keyring.contents();
      const request: RestoreRequest = {
        settings,
        version,
        source: join(this.#directory, backup),
        target,
        keys: { ...held, records: [...records] },
      };
      const report = restoreBeside
        ? await restoreBeside(request, signal)
        : await restoreStore({ ...this.#parts, ...request, yieldTurn: this.#pace });
      const late = keyring.subjects.destroyed().filter(({ id }) => !before.has(id));
      if (late.length === 0) return report;
      await this.#destroyIn(target, late);
      return { ...report, erased_keys: report.erased_keys + late.length };
    });
  }

  /** What was erased while it was restored. */
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

  readonly #pace = async (): Promise<void> => {
    const { signal, yieldTurn } = this.#parts;
    if (signal.aborted) throw new ServiceError('REL_UNAVAILABLE', 'the store is draining');
    await yieldTurn();
  };

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
  const found: (BackupView | DamagedBackup)[] = [];
  for (const name of await disk.list(directory)) {
    const source = join(directory, name);
    if (!backupIdPattern.test(name) || (await disk.size(join(source, ARTEFACT_NAME))) === undefined) continue;
    try {
      found.push(viewOf(await readBackup(disk, source, publicKeys)));
    } catch (error) {
      found.push({ backup: name, damaged: error instanceof Error ? error.message : String(error) });
    }
  }
  return found;
}

function viewOf(artefact: Artefact): BackupView {
  return {
    backup: artefact.id,
    created_at: artefact.created_at,
    engine_version: artefact.engine_version,
    root: artefact.root,
    tree_size: artefact.tree_size,
    size_bytes: bytesOf(artefact),
  };
}

/** What a restore is of and for: nothing but values. */
export interface RestoreRequest {
  readonly settings: Settings;
  readonly version: string;
  /** The backup's directory. */
  readonly source: string;
  readonly target: string;
  /** The keys of now: of a store that runs, or from their escrow. */
  readonly keys: KeyContents;
}

export type RestoreBeside = (request: RestoreRequest, signal: AbortSignal) => Promise<RestoreReport>;

export interface RestoreStoreOptions extends RestoreRequest {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly say: (line: string) => void;
  readonly yieldTurn: () => Promise<void>;
  readonly onProgress?: OnProgress;
  /** Opens bodies of a second replay beside the first thread. */
  readonly startWorker?: StartWorker;
}

/** Throws REL_UNPROCESSABLE, with the report, when what came of the replay is not what it must be. */
export async function restoreStore(options: RestoreStoreOptions): Promise<RestoreReport> {
  const { disk, random, target, keys, settings, say, yieldTurn } = options;
  const projections = freshProjections(options);
  const startMs = options.clock.monotonicMs();
  return await restoreBackup(
    {
      ...options,
      publicKeys: publicKeysOf(keys),
      putKeys: async () => {
        const master = await masterKeys({ ...settings, SERVICE_DATA_DIR: target }, disk, random, say);
        await writeKeysFrom(keys, { disk, random, directory: target, kek: master.kek, yieldTurn });
        return await openKeyring({ disk, random, directory: target, ...master });
      },
      onEntry: (entry) => projections.apply(entry),
    },
    async (restored) => {
      const report = await reportOf(options, restored, await digestsOf(projections, options), startMs);
      const same = report.projections.every(({ match }) => match);
      if (same && report.root_match && report.erased_absent) return report;
      const what = same ? 'what was erased is there' : 'its projections differ from those of the store that was backed up';
      throw new ServiceError('REL_UNPROCESSABLE', `the restored store is refused: ${what}`, { extras: { report } });
    },
  );
}

export const publicKeysOf = ({ secrets }: KeyContents): Uint8Array[] =>
  secrets.publicKeys.map((key) => new Uint8Array(Buffer.from(key, 'hex')));

async function reportOf(
  options: RestoreStoreOptions,
  restored: Restored,
  digests: Readonly<Record<string, string>>,
  startMs: number,
): Promise<RestoreReport> {
  const { artefact, root } = restored;
  const { clock } = options;
  const known = comparable(options, restored);
  const expected = typeof known === 'string' ? await digestsOfRecovery(options, restored) : known;
  return {
    backup: artefact.id,
    target_dir: options.target,
    log_id: artefact.log_id,
    root_match: root === artefact.root,
    root,
    tree_size: artefact.tree_size,
    rows: restored.rows,
    blobs: restored.blobs,
    size_bytes: bytesOf(artefact),
    copy_ms: Math.round(restored.copyMs),
    replay_ms: Math.round(clock.monotonicMs() - startMs - restored.copyMs),
    projections: Object.entries(digests).map(([name, digest]) => ({ name, digest, match: expected[name] === digest })),
    compared_with:
      typeof known === 'string' ? `a second replay, by the reader that opens stores: ${known}` : 'the store that was backed up',
    rows_erased: restored.rowsErased,
    erased_keys: restored.erased.length,
    erased_absent: restored.erasedAbsent,
  };
}

/** The digests of the store that was backed up; a reason where they say nothing about the store of now. */
function comparable({ version }: RestoreStoreOptions, { artefact, erased }: Restored): Readonly<Record<string, string>> | string {
  if (!artefact.projections) return 'the store was in use when it was backed up';
  if (artefact.engine_version !== version) return `it was backed up by version ${artefact.engine_version}`;
  if (artefact.erased_keys !== erased.length) return 'somebody was erased since it was backed up';
  return artefact.projections;
}

/** Reads the log once more, as a start would. */
async function digestsOfRecovery(
  options: RestoreStoreOptions,
  { artefact, keyring }: Restored,
): Promise<Readonly<Record<string, string>>> {
  const { disk, clock, random, target, yieldTurn, startWorker } = options;
  const projections = freshProjections(options);
  const { end } = await recover({
    disk,
    clock,
    random,
    logDirectory: `${target}/log`,
    keyring,
    origin: artefact.origin,
    breathe: yieldTurn,
    replay: (entry: CommittedEntry) => projections.apply(entry),
    ...(startWorker && { openBeside: { startWorker, bytesMin: 0 } }),
  });
  await end.file.close();
  return await digestsOf(projections, options);
}

function digestsOf(projections: Projections, { startWorker }: RestoreStoreOptions): Promise<Readonly<Record<string, string>>> {
  return startWorker ? projections.projector.digestsBeside(startWorker) : Promise.resolve(projections.digests());
}

function freshProjections({ clock, random, settings }: RestoreStoreOptions): Projections {
  const ids = new Ids(clock, random);
  return new Projections({
    newKey: () => ids.next(),
    tokensMax: settings.SERVICE_TOKEN_REGISTRY_MAX,
    more: [new AuditProjection()],
  });
}
