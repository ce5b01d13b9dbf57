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
  readonly #resumed: Checkpoint | null;
  /** For a store that was opened in vain. */
  readonly unlock: () => Promise<void>;

  private constructor(ground: Ground, opened: Opened, unlock: () => Promise<void>) {
    this.log = opened.log;
    this.projections = opened.projections;
    this.audit = opened.audit;
    this.keyring = ground.keyring;
    this.blobs = ground.blobs;
    this.workers = ground.workers;
    this.checkpoints = opened.checkpoints;
    this.columns = opened.columns;
    this.#resumed = opened.resumed;
    this.unlock = unlock;
  }

  static async open(parts: StoreDependencies, ids: Ids, turns: EventLoopTurns): Promise<Store> {
    const { settings, disk, random } = parts;
    const directory = settings.SERVICE_DATA_DIR;
    await disk.makeDirectory(directory);
    const lock = await disk.lock(join(directory, 'lock'));
    try {
      const unfinished = await unfinishedRestore(disk, directory);
      if (unfinished !== undefined) throw new ServiceError('REL_STORAGE', unfinished);
      await refuseLostKeys(disk, directory);
      const master = await masterKeys(settings, disk, random, parts.say);
      const keyring = await openKeyring({ disk, random, directory, ...master });
      const workers = workerKeeper(turns.yieldFor('chores'), parts.startKept);
      const blobs = await Blobs.open({ disk, random, directory, keyring });
      const ground = { keyring, blobs, ids, turns, workers };
      const opened = parts.derived
        ? await openDerived(parts, parts.derived, ground)
        : { ...(await openLog(parts, ground, newRooms(parts, ground), {})), checkpoints: null, columns: null, resumed: null };
      return new Store(ground, opened, () => lock.release());
    } catch (error) {
      await lock.release();
      throw error;
    }
  }

  /** Takes no more entries. `drained`: nothing was left behind, so that what is derived may be saved. False where the log has failed. */
  async end(drained: boolean): Promise<boolean> {
    await this.workers.end();
    await this.projections.rows.indexes.graphs?.end();
    await this.log.close();
    const healthy = this.log.status().state !== 'failed';
    if (drained && healthy) await this.checkpoints?.close();
    else await this.checkpoints?.abandon();
    return healthy;
  }

  /** Lets go of all files, and of the directory. */
  async release(): Promise<void> {
    await this.columns?.close();
    await this.#resumed?.closeBlobs();
    await this.keyring.close();
    await this.unlock();
  }
}

/** Derived files: deleting them loses nothing. */
export const derivedDirectory = (settings: Settings): string => join(settings.SERVICE_DATA_DIR, 'projections');

/** Log and projections are opened with these. */
interface Ground {
  readonly keyring: KeyStore;
  readonly blobs: Blobs;
  readonly ids: Ids;
  readonly turns: EventLoopTurns;
  readonly workers: WorkerKeeper;
}

interface Rooms {
  readonly projections: Projections;
  readonly audit: AuditProjection;
}

interface Opened extends Rooms {
  readonly log: LocalLog;
  readonly checkpoints: CheckpointSchedule | null;
  readonly columns: ColumnStore | null;
  readonly resumed: Checkpoint | null;
}

function newRooms(
  { settings, derived, moreProjections = [], say, startKept }: StoreDependencies,
  { ids, keyring, workers, turns }: Ground,
  more: Partial<ConstructorParameters<typeof Projections>[0]> = {},
): Rooms {
  const indexes = {
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
    ...more,
    rows: { indexes, ...more.rows, settings: { ...rowSettings(settings), ...more.rows?.settings } },
  });
  return { projections, audit };
}

/** Replays into the projections what they have not applied yet. */
async function openLog(
  parts: StoreDependencies,
  { keyring, turns }: Ground,
  rooms: Rooms,
  { resume, onEntry, breathe }: Pick<LocalLogOptions, 'resume' | 'onEntry' | 'breathe'>,
): Promise<Rooms & { readonly log: LocalLog }> {
  const { settings, disk, clock, random } = parts;
  const { projections } = rooms;
  let replayed = 0;
  const log = await LocalLog.open({
    disk,
    clock,
    random,
    directory: settings.SERVICE_DATA_DIR,
    keyring,
    origin: settings.SERVICE_LOG_ORIGIN,
    engineVersion: parts.version,
    walSync: settings.SERVICE_WAL_SYNC,
    sealIdleMs: parts.sealIdleMs ?? 1000,
    bulk: { startWorker: spareCores() > 0 ? threadWorker : null, rowsMin: BULK_ROWS_MIN, yieldTurn: turns.yieldFor('seals') },
    ...(spareCores() > 0 && { openBeside: { startWorker: parts.startOpener ?? threadWorker, bytesMin: OPEN_BESIDE_BYTES_MIN } }),
    ...(resume && { resume }),
    ...(breathe && { breathe }),
    replay: (entry, leafHash) => {
      onEntry?.(entry);
      projections.apply(entry);
      parts.onReplay?.(++replayed, leafHash);
    },
    onEntry: (entry) => projections.apply(entry),
    say: parts.say,
  });
  return { ...rooms, log };
}

/** Between two sealed segments of a stream of rows it is rarely longer; a reader of them notices nothing. */
const SEGMENT_LULL_MS = 1000;

/** From the newest checkpoint where it is any good, otherwise from the log alone. */
async function openDerived(parts: StoreDependencies, derived: DerivedOptions, ground: Ground): Promise<Opened> {
  const { settings, disk, clock, random, say } = parts;
  const { keyring } = ground;
  const directory = derivedDirectory(settings);
  const yieldTurn = ground.turns.yieldFor('files');
  // Giving memory back is short work that others wait for.
  const soon = parts.yieldTurn ?? (() => new Promise<void>((resolve) => setImmediate(resolve)));
  const defer = (task: () => void): void => void soon().then(task);
  await disk.makeDirectory(directory);
  const reader: DerivedReader = { disk, keyring, directory, logId: null };
  const homeOf = (logId: string): DerivedHome => ({ disk, random, keyring, directory, logId, yieldTurn });
  const open = async (checkpoint: Checkpoint | null): Promise<Opened> => {
    const columns = new ColumnStore({
      budgetBytes: rowBudget(settings, derived),
      hydrateMax: settings.SERVICE_HYDRATE_MAX_PARALLEL,
      compactMax: settings.SERVICE_COMPACT_MAX_PARALLEL,
      say,
      defer,
      lull: (signal) => clock.sleep(SEGMENT_LULL_MS, signal),
      onDamaged: () => void dropCheckpoint(reader).catch(() => undefined),
    });
    columns.readFrom(reader);
    let keeper: CheckpointSchedule | null = null;
    /** A hard delete came after the checkpoint that the start goes on from. */
    let removedBefore = false;
    const rooms = newRooms(parts, ground, {
      onRemoval: () => {
        if (keeper) keeper.onRemoved();
        else removedBefore = true;
      },
      rows: {
        store: columns,
        defer,
        ...(derived.memory && { memory: derived.memory }),
        ...(derived.segmentRows && { settings: { segmentRows: derived.segmentRows } }),
      },
    });
    const { projector } = rooms.projections;
    let from = checkpoint;
    try {
      // Before anything new is written beside them.
      const isKept = (name: string): boolean => checkpoint?.files.has(name) || name.startsWith(INDEX_PREFIX);
      await removeStrays(reader, (name) => checkpoint !== null && isKept(name), say);
      if (from) {
        columns.begin(homeOf(from.place.logId));
        await from.restore(projector);
      }
      const opened = await openLog(parts, ground, rooms, {
        ...(from && {
          resume: {
            ...from.log,
            onRefused: (reason) => {
              say(`the saved state is of no use (${reason}); everything is rebuilt from the log`);
              projector.reset();
              from = null;
            },
          },
        }),
        onEntry: ({ body }) => {
          if (body.kind === 'genesis') columns.begin(homeOf(body.logId));
        },
        breathe: () => columns.room(),
      });
      const { logId, bytes } = opened.log.status();
      const { behind } = projector;
      if (behind.length > 0) {
        say(`the saved state does not hold ${behind.join(', ')} as this version does: rebuilding that from the log`);
        await projector.catchUp(opened.log, () => columns.room());
        // Files of the former state are strays now.
        const kept = from?.files ?? new Set();
        await removeStrays(reader, (name) => kept.has(name) && (!name.startsWith(columns.prefix) || columns.holds(name)), say);
      }
      const indexFiles = rooms.projections.rows.indexes.files!;
      await indexFiles.begin();
      keeper = new CheckpointSchedule({
        kinds: [indexFiles],
        home: homeOf(logId),
        projector,
        store: columns,
        log: opened.log,
        clock,
        bytesBetween: derived.checkpointBytes ?? settings.SERVICE_CHECKPOINT_LOG_MB * 2 ** 20,
        say,
        last: from && { leaves: from.place.leaves, bytes },
      });
      if (removedBefore) keeper.onRemoved();
      opened.log.onVisible(() => keeper?.look());
      await checkpoint?.closeState();
      if (!from) await checkpoint?.closeBlobs();
      return { ...opened, checkpoints: keeper, columns, resumed: from };
    } catch (error) {
      await columns.close();
      throw error;
    }
  };

  const found = settings.SERVICE_VERIFY_ON_START ? null : await findCheckpoint(reader, say);
  if (!found) return open(null);
  try {
    return await open(found);
  } catch (error) {
    if (!isDerivedFault(error)) throw error;
    say(`the saved state is of no use (${messageOf(error)}); everything is rebuilt from the log`);
    await found.closeState().catch(() => undefined);
    await found.closeBlobs();
    return open(null);
  }
}

async function findCheckpoint(reader: DerivedReader, say: (line: string) => void): Promise<Checkpoint | null> {
  try {
    return (await Checkpoint.open(reader)) ?? null;
  } catch (error) {
    say(`the saved state is of no use (${messageOf(error)}); everything is rebuilt from the log`);
    return null;
  }
}

/** True when a derived file caused the error, wherever it surfaced. */
function isDerivedFault(error: unknown): boolean {
  return error instanceof DerivedFileError || (error instanceof Error && isDerivedFault(error.cause));
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
