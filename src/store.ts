/**
 * A data directory, open and under its lock: the log, the projections that replay it, keys, bodies, and derived files.
 * Opened bottom-up, closed top-down.
 */
import { join } from 'node:path';
import type { Clock, Ids, Random } from './clock.ts';
import type { Settings } from './config.ts';
import { ServiceError } from './errors.ts';
import { Blobs } from './log/blobs/blobs.ts';
import { DerivedFileError, type DerivedHome, type DerivedReader } from './log/blobs/derived-file.ts';
import { unfinishedRestore } from './log/backup/backup-restore.ts';
import type { Disk } from './log/disk/disk.ts';
import { BULK_ROWS_MIN } from './log/entries/bulk-sealer.ts';
import { OPEN_BESIDE_BYTES_MIN } from './log/files/frame-opener.ts';
import { type KeyStore, openKeyring, refuseLostKeys } from './log/keys/keys.ts';
import { LocalLog, type LocalLogOptions } from './log/log.ts';
import { type WorkerKeeper, workerKeeper } from './log/threads/worker-keeper.ts';
import { inlineWorker, spareCores, type StartWorker, threadWorker } from './log/threads/workers.ts';
import type { ColumnMemory } from './log/values/column-memory.ts';
import { masterKeys } from './master-keys.ts';
import { AuditProjection } from './projections/audit/projection.ts';
import { Checkpoint, dropCheckpoint, removeStrays } from './projections/checkpoint.ts';
import { CheckpointSchedule } from './projections/checkpoint-schedule.ts';
import type { Projection } from './projections/projection.ts';
import { Projections } from './projections/projections.ts';
import { ColumnStore } from './projections/rows/store/column-store.ts';
import { INDEX_PREFIX } from './projections/rows/store/index-files.ts';
import { INDEX_SHARE, rowBudget, rowSettings, UNBOUND_INDEX_BYTES } from './memory-budget.ts';
import type { EventLoopTurns } from './event-loop-turns.ts';

/** State kept beside the log so that a start does not read all of it, and columns need not all be in memory. */
export interface DerivedOptions {
  /** Memory of the machine: half of it is for rows where no budget is set. */
  readonly machineBytes: number;
  /** Instead of the settings, which count in MiB. */
  readonly budgetBytes?: number;
  readonly checkpointBytes?: number;
  /** Rows after which a segment is sealed. */
  readonly segmentRows?: number;
  readonly memory?: ColumnMemory;
}

export interface StoreDependencies {
  readonly settings: Settings;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly version: string;
  /** One line for the operator. */
  readonly say: (line: string) => void;
  /** Replay at open: entries applied so far, and the leaf hash of the last. */
  readonly onReplay?: (entries: number, leafHash: Uint8Array) => void;
  /** Absent: everything is in memory, and rebuilt from the log at each start. */
  readonly derived?: DerivedOptions;
  /** Seals the log after so long without writes; 0 only on close. */
  readonly sealIdleMs?: number;
  /** Opens the log's frames when it is replayed; threads of their own unless said otherwise. */
  readonly startOpener?: StartWorker;
  /** Yields to other work; one queue for all unless a simulation schedules. */
  readonly yieldTurn?: () => Promise<void>;
  /** Does long work beside the event loop; in threads of its own unless said otherwise. */
  readonly startKept?: StartWorker;
  /** Further projections, after the store's own. */
  readonly moreProjections?: readonly Projection[];
}

export class Store {
  readonly log: LocalLog;
  readonly projections: Projections;
  readonly audit: AuditProjection;
  readonly keyring: KeyStore;
  readonly blobs: Blobs;
  /** Long work of the store's own and of doors. */
  readonly workers: WorkerKeeper;
  /** Null: nothing is saved. */
  readonly checkpoints: CheckpointSchedule | null;
  readonly columns: ColumnStore | null;
  /** The saved state that the start went on from; columns may still rest on its files. */
  readonly #resumedCheckpoint: Checkpoint | null;
  /** For a store that was opened in vain. */
  readonly unlock: () => Promise<void>;

  private constructor(storeGround: StoreGround, openedStore: OpenedStore, unlock: () => Promise<void>) {
    this.log = openedStore.log;
    this.projections = openedStore.projections;
    this.audit = openedStore.audit;
    this.keyring = storeGround.keyring;
    this.blobs = storeGround.blobs;
    this.workers = storeGround.workers;
    this.checkpoints = openedStore.checkpoints;
    this.columns = openedStore.columns;
    this.#resumedCheckpoint = openedStore.resumed;
    this.unlock = unlock;
  }

  static async open(storeDependencies: StoreDependencies, ids: Ids, turns: EventLoopTurns): Promise<Store> {
    const { settings, disk, random } = storeDependencies;
    const dataDirectory = settings.SERVICE_DATA_DIR;
    await disk.makeDirectory(dataDirectory);
    const directoryLock = await disk.lock(join(dataDirectory, 'lock'));
    try {
      const unfinishedText = await unfinishedRestore(disk, dataDirectory);
      if (unfinishedText !== undefined) throw new ServiceError('REL_STORAGE', unfinishedText);
      await refuseLostKeys(disk, dataDirectory);
      const storeMasterKeys = await masterKeys(settings, disk, random, storeDependencies.say);
      const keyring = await openKeyring({ disk, random, directory: dataDirectory, ...storeMasterKeys });
      const workers = workerKeeper(turns.yieldFor('chores'), storeDependencies.startKept);
      const blobs = await Blobs.open({ disk, random, directory: dataDirectory, keyring });
      const storeGround = { keyring, blobs, ids, turns, workers };
      const openedStore = storeDependencies.derived
        ? await openDerivedStore(storeDependencies, storeDependencies.derived, storeGround)
        : {
            ...(await openStoreLog(storeDependencies, storeGround, newStoreRooms(storeDependencies, storeGround), {})),
            checkpoints: null,
            columns: null,
            resumed: null,
          };
      return new Store(storeGround, openedStore, () => directoryLock.release());
    } catch (restoreError) {
      await directoryLock.release();
      throw restoreError;
    }
  }

  /** Takes no more entries. `isDrained`: nothing was left behind, so that what is derived may be saved. False where the log has failed. */
  async end(isDrained: boolean): Promise<boolean> {
    await this.workers.end();
    await this.projections.rows.indexes.graphs?.end();
    await this.log.close();
    const isLogHealthy = this.log.status().state !== 'failed';
    if (isDrained && isLogHealthy) await this.checkpoints?.close();
    else await this.checkpoints?.abandon();
    return isLogHealthy;
  }

  /** Lets go of all files, and of the directory. */
  async release(): Promise<void> {
    await this.columns?.close();
    await this.#resumedCheckpoint?.closeBlobs();
    await this.keyring.close();
    await this.unlock();
  }
}

/** Derived files: deleting them loses nothing. */
export const derivedDirectory = (settings: Settings): string => join(settings.SERVICE_DATA_DIR, 'projections');

/** Log and projections are opened with these. */
interface StoreGround {
  readonly keyring: KeyStore;
  readonly blobs: Blobs;
  readonly ids: Ids;
  readonly turns: EventLoopTurns;
  readonly workers: WorkerKeeper;
}

interface StoreRooms {
  readonly projections: Projections;
  readonly audit: AuditProjection;
}

interface OpenedStore extends StoreRooms {
  readonly log: LocalLog;
  readonly checkpoints: CheckpointSchedule | null;
  readonly columns: ColumnStore | null;
  readonly resumed: Checkpoint | null;
}

function newStoreRooms(
  { settings, derived, moreProjections = [], say, startKept }: StoreDependencies,
  { ids, keyring, workers, turns }: StoreGround,
  projectionOptions: Partial<ConstructorParameters<typeof Projections>[0]> = {},
): StoreRooms {
  const indexOptions = {
    workers,
    graphs: {
      startWorker: startKept ?? (spareCores() > 0 ? threadWorker : inlineWorker),
      yieldTurn: turns.yieldFor('chores'),
      say,
    },
    language: settings.SERVICE_TEXT_LANGUAGE,
    budgetBytes: derived ? Math.floor(rowBudget(settings, derived) / INDEX_SHARE) : UNBOUND_INDEX_BYTES,
    say,
  };
  const audit = new AuditProjection();
  const projections = new Projections({
    newKey: () => ids.next(),
    tokensMax: settings.SERVICE_TOKEN_REGISTRY_MAX,
    textKeys: keyring.subjects,
    more: [audit, ...moreProjections],
    ...projectionOptions,
    rows: {
      indexes: indexOptions,
      ...projectionOptions.rows,
      settings: { ...rowSettings(settings), ...projectionOptions.rows?.settings },
    },
  });
  return { projections, audit };
}

/** Replays into the projections what they have not applied yet. */
async function openStoreLog(
  storeDependencies: StoreDependencies,
  { keyring, turns }: StoreGround,
  storeRooms: StoreRooms,
  { resume, onEntry, breathe }: Pick<LocalLogOptions, 'resume' | 'onEntry' | 'breathe'>,
): Promise<StoreRooms & { readonly log: LocalLog }> {
  const { settings, disk, clock, random } = storeDependencies;
  const { projections } = storeRooms;
  let replayedEntries = 0;
  const storeLog = await LocalLog.open({
    disk,
    clock,
    random,
    directory: settings.SERVICE_DATA_DIR,
    keyring,
    origin: settings.SERVICE_LOG_ORIGIN,
    engineVersion: storeDependencies.version,
    walSync: settings.SERVICE_WAL_SYNC,
    sealIdleMs: storeDependencies.sealIdleMs ?? 1000,
    bulk: { startWorker: spareCores() > 0 ? threadWorker : null, rowsMin: BULK_ROWS_MIN, yieldTurn: turns.yieldFor('seals') },
    ...(spareCores() > 0 && {
      openBeside: { startWorker: storeDependencies.startOpener ?? threadWorker, bytesMin: OPEN_BESIDE_BYTES_MIN },
    }),
    ...(resume && { resume }),
    ...(breathe && { breathe }),
    replay: (entry, leafHash) => {
      onEntry?.(entry);
      projections.apply(entry);
      storeDependencies.onReplay?.(++replayedEntries, leafHash);
    },
    onEntry: (entry) => projections.apply(entry),
    say: storeDependencies.say,
  });
  return { ...storeRooms, log: storeLog };
}

/** Between two sealed segments of a stream of rows it is rarely longer; a reader of them notices nothing. */
const SEGMENT_SEAL_LULL_MS = 1000;

/** From the newest checkpoint where it is any good, otherwise from the log alone. */
async function openDerivedStore(
  storeDependencies: StoreDependencies,
  derivedOptions: DerivedOptions,
  storeGround: StoreGround,
): Promise<OpenedStore> {
  const { settings, disk, say } = storeDependencies;
  const derivedFolder = derivedDirectory(settings);
  await disk.makeDirectory(derivedFolder);
  const derivedReader: DerivedReader = { disk, keyring: storeGround.keyring, directory: derivedFolder, logId: null };
  const openFromCheckpoint = (savedCheckpoint: Checkpoint | null): Promise<OpenedStore> =>
    new DerivedOpening(storeDependencies, derivedOptions, storeGround, derivedReader).open(savedCheckpoint);
  const checkpoint = settings.SERVICE_VERIFY_ON_START ? null : await findStoreCheckpoint(derivedReader, say);
  if (!checkpoint) return await openFromCheckpoint(null);
  try {
    return await openFromCheckpoint(checkpoint);
  } catch (openError) {
    if (!isDerivedFault(openError)) throw openError;
    say(uselessState(messageOf(openError)));
    await checkpoint.closeState().catch(() => undefined);
    await checkpoint.closeBlobs();
    return await openFromCheckpoint(null);
  }
}

/** Log and projections of an attempt, and the checkpoint that it went on from. */
interface Resumed extends StoreRooms {
  readonly log: LocalLog;
  readonly resumed: Checkpoint | null;
}

/** One attempt to open a store that saves derived files. */
class DerivedOpening {
  readonly #parts: StoreDependencies;
  readonly #derived: DerivedOptions;
  readonly #ground: StoreGround;
  readonly #reader: DerivedReader;
  readonly #columns: ColumnStore;
  /** Puts short work that others wait for, such as giving memory back, into a turn of its own. */
  readonly #defer: (task: () => void) => void;
  #schedule: CheckpointSchedule | null = null;
  /** A hard delete came after the checkpoint that the start goes on from. */
  #removedBefore = false;

  constructor(parts: StoreDependencies, derived: DerivedOptions, ground: StoreGround, reader: DerivedReader) {
    const { settings, clock, say } = parts;
    const soon = parts.yieldTurn ?? (() => new Promise<void>((resolve) => setImmediate(resolve)));
    this.#parts = parts;
    this.#derived = derived;
    this.#ground = ground;
    this.#reader = reader;
    this.#defer = (task) => void soon().then(task);
    this.#columns = new ColumnStore({
      budgetBytes: rowBudget(settings, derived),
      hydrateMax: settings.SERVICE_HYDRATE_MAX_PARALLEL,
      compactMax: settings.SERVICE_COMPACT_MAX_PARALLEL,
      say,
      defer: this.#defer,
      lull: (signal) => clock.sleep(SEGMENT_SEAL_LULL_MS, signal),
      onDamaged: () => void dropCheckpoint(reader).catch(() => undefined),
    });
    this.#columns.readFrom(reader);
  }

  async open(checkpoint: Checkpoint | null): Promise<OpenedStore> {
    const storeRooms = this.#newRooms();
    try {
      const openedLog = await this.#resume(checkpoint, storeRooms);
      const { bytes } = openedLog.log.status();
      await this.#catchUp(openedLog);
      const checkpoints = await this.#scheduleCheckpoints(openedLog, bytes);
      await checkpoint?.closeState();
      if (!openedLog.resumed) await checkpoint?.closeBlobs();
      return { ...openedLog, checkpoints, columns: this.#columns };
    } catch (restoreError) {
      await this.#columns.close();
      throw restoreError;
    }
  }

  #newRooms(): StoreRooms {
    const { memory, segmentRows } = this.#derived;
    return newStoreRooms(this.#parts, this.#ground, {
      onRemoval: () => {
        if (this.#schedule) this.#schedule.onRemoved();
        else this.#removedBefore = true;
      },
      rows: {
        store: this.#columns,
        defer: this.#defer,
        ...(memory && { memory }),
        ...(segmentRows && { settings: { segmentRows } }),
      },
    });
  }

  /** Restores the saved state and replays what follows it; without one, or with one that the log refuses, replays everything. */
  async #resume(checkpoint: Checkpoint | null, rooms: StoreRooms): Promise<Resumed> {
    const { say } = this.#parts;
    const { projector } = rooms.projections;
    let resumed = checkpoint;
    // Before anything new is written beside them.
    const isInUse = (name: string): boolean => checkpoint?.files.has(name) || name.startsWith(INDEX_PREFIX);
    await removeStrays(this.#reader, (name) => checkpoint !== null && isInUse(name), say);
    if (resumed) {
      this.#columns.begin(this.#homeOf(resumed.position.logId));
      await resumed.restore(projector);
    }
    const { log } = await openStoreLog(this.#parts, this.#ground, rooms, {
      ...(resumed && {
        resume: {
          ...resumed.log,
          onRefused: (reason) => {
            say(uselessState(reason));
            projector.reset();
            resumed = null;
          },
        },
      }),
      onEntry: ({ body }) => {
        if (body.kind === 'genesis') this.#columns.begin(this.#homeOf(body.logId));
      },
      breathe: () => this.#columns.room(),
    });
    return { ...rooms, log, resumed };
  }

  /** Rebuilds projections that the saved state does not hold, or holds as another version does. */
  async #catchUp({ projections, log, resumed }: Resumed): Promise<void> {
    const { say } = this.#parts;
    const columns = this.#columns;
    const { behind } = projections.projector;
    if (behind.length === 0) return;
    say(`the saved state does not hold ${behind.join(', ')} as this version does: rebuilding that from the log`);
    await projections.projector.catchUp(log, () => columns.room());
    // Files of the former state are strays now.
    const saved = resumed?.files ?? new Set();
    await removeStrays(this.#reader, (name) => saved.has(name) && (!name.startsWith(columns.prefix) || columns.holds(name)), say);
  }

  /** `bytes` of the log were there when the state was resumed. */
  async #scheduleCheckpoints({ projections, log, resumed }: Resumed, bytes: number): Promise<CheckpointSchedule> {
    const { settings, clock, say } = this.#parts;
    const indexFiles = projections.rows.indexes.files!;
    await indexFiles.begin();
    const schedule = new CheckpointSchedule({
      kinds: [indexFiles],
      home: this.#homeOf(log.status().logId),
      projector: projections.projector,
      store: this.#columns,
      log,
      clock,
      bytesBetween: this.#derived.checkpointBytes ?? settings.SERVICE_CHECKPOINT_LOG_MB * 2 ** 20,
      say,
      last: resumed && { leaves: resumed.position.leaves, bytes },
    });
    this.#schedule = schedule;
    if (this.#removedBefore) schedule.onRemoved();
    log.onVisible(() => schedule.look());
    return schedule;
  }

  #homeOf(logId: string): DerivedHome {
    const { disk, random } = this.#parts;
    const { keyring, turns } = this.#ground;
    const { directory } = this.#reader;
    return { disk, random, keyring, directory, logId, yieldTurn: turns.yieldFor('files') };
  }
}

const uselessState = (reason: string): string => `the saved state is of no use (${reason}); everything is rebuilt from the log`;

async function findStoreCheckpoint(derivedReader: DerivedReader, say: (line: string) => void): Promise<Checkpoint | null> {
  try {
    return (await Checkpoint.open(derivedReader)) ?? null;
  } catch (checkpointError) {
    say(uselessState(messageOf(checkpointError)));
    return null;
  }
}

/** True when a derived file caused the error, wherever it surfaced. */
function isDerivedFault(openError: unknown): boolean {
  return openError instanceof DerivedFileError || (openError instanceof Error && isDerivedFault(openError.cause));
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
