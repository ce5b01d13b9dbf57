/**
 * Composition root: opens the rooms bottom-up (disk, keys, log, projections, gate, planner), closes them top-down.
 * Everything that a room needs from outside arrives here as an argument; nothing below reads a setting by itself.
 */
import { join } from 'node:path';
import { type Clock, Ids, type Random } from './clock.ts';
import { ConfigError, isLoopback, type Settings } from './config.ts';
import { Authenticator } from './governance/authentication/authenticator.ts';
import { Gate } from './governance/gate.ts';
import { licenceOf } from './governance/tenancy/licence.ts';
import { bootRefusals } from './governance/tenancy/profile.ts';
import type { Disk } from './log/disk.ts';
import { openKeyring } from './log/keys.ts';
import { LocalLog } from './log/log.ts';
import { masterKeys } from './master-keys.ts';
import { Planner } from './planner/planner.ts';
import { TurnQueue } from './planner/turn-queue.ts';
import { type LookupFiles, LookupTables } from './planner/standing/lookup-tables.ts';
import { MaterializedViews } from './planner/standing/materialized-views.ts';
import { StandingQueries } from './planner/standing/watch.ts';
import { AuditProjection } from './projections/audit/projection.ts';
import { writeCheckpoint } from './projections/checkpoint.ts';
import { Projections } from './projections/projections.ts';

export interface ServiceParts {
  readonly settings: Settings;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly version: string;
  /** One line for the operator. */
  readonly say: (line: string) => void;
  /** Replay at open: entries applied so far, and the leaf hash of the last. */
  readonly onReplay?: (entries: number, leafHash: Uint8Array) => void;
  /** Saves the projections as they stand at a clean close, for `annals replay --check` to hold against a rebuild. */
  readonly checkpointOnClose?: boolean;
  /** Seals the log after so long without writes; 0 only on close. */
  readonly sealIdleMs?: number;
  /** Where lookup tables are read from; absent: registering one is refused. */
  readonly lookupFiles?: LookupFiles;
  /** Yields to other work; one queue for all unless a simulation schedules. */
  readonly yieldTurn?: () => Promise<void>;
}

/** Throws a ConfigError that lists every reason why these settings must not be served. */
export function checkBoot(settings: Settings): void {
  const refusals = bootRefusals(settings, { builtDoors: [] });
  if (refusals.length > 0) throw new ConfigError(refusals.join('; '));
}

export class Service {
  readonly settings: Settings;
  readonly version: string;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly random: Random;
  readonly log: LocalLog;
  readonly projections: Projections;
  readonly gate: Gate;
  readonly planner: Planner;
  /** What doors wait with while they work for long. */
  readonly yieldTurn: () => Promise<void>;
  readonly watch: StandingQueries;
  readonly lookups: LookupTables;
  readonly views: MaterializedViews;
  readonly authenticator: Authenticator;
  #state: 'ready' | 'draining' | 'closed' = 'ready';
  readonly #unlock: () => Promise<void>;
  readonly #parts: ServiceParts;

  private constructor(parts: ServiceParts, opened: Opened) {
    const { settings, clock, random } = parts;
    const { log, projections, audit, ids } = opened;
    this.#parts = parts;
    this.settings = settings;
    this.version = parts.version;
    this.clock = clock;
    this.random = random;
    this.ids = ids;
    this.log = log;
    this.projections = projections;
    this.#unlock = opened.unlock;
    this.gate = new Gate({
      log,
      projections,
      audit,
      clock,
      settings,
      licence: licenceOf(settings.SERVICE_PROFILE),
      digestKey: opened.digestKey,
      warn: parts.say,
    });
    const turns = new TurnQueue();
    const yieldTurn = parts.yieldTurn ?? (() => turns.next());
    this.yieldTurn = yieldTurn;
    // What stands asks the planner, and the planner's statements ask what stands.
    const planner = { query: (...asked: Parameters<Planner['query']>) => this.planner.query(...asked) };
    this.lookups = new LookupTables({ files: parts.lookupFiles ?? null, clock });
    this.views = new MaterializedViews({
      gate: this.gate,
      planner,
      clock,
      ids,
      rowsMax: settings.SERVICE_MV_MAX_ROWS,
      renew: (caller) => this.authenticator.renewed(caller),
    });
    this.watch = new StandingQueries({
      gate: this.gate,
      planner,
      clock,
      ids,
      subscriptionsMax: settings.SERVICE_MAX_WATCH_SUBSCRIPTIONS,
      yieldTurn,
    });
    this.planner = new Planner({
      clock,
      version: parts.version,
      limits: {
        timeoutMs: settings.SERVICE_QUERY_TIMEOUT_SECS * 1000,
        resultRowsMax: settings.SERVICE_MAX_RESULT_ROWS,
        scannedRowsMax: settings.SERVICE_MAX_SCANNED_ROWS,
        memoryBytesMax: settings.SERVICE_QUERY_MEMORY_MB * 1024 * 1024,
      },
      yieldTurn,
      standing: { watch: this.watch, lookups: this.lookups, views: this.views },
      pinnedBranches: settings.SERVICE_PINNED_NAMESPACES ?? [],
    });
    this.authenticator = new Authenticator({
      directory: projections.directory,
      clock,
      settings,
      boundToLoopback: isLoopback(settings.SERVICE_HTTP_BIND),
    });
  }

  static async open(parts: ServiceParts): Promise<Service> {
    const { settings, disk, clock, random } = parts;
    const directory = settings.SERVICE_DATA_DIR;
    await disk.makeDirectory(directory);
    const lock = await disk.lock(join(directory, 'lock'));
    try {
      const keys = await masterKeys(settings, disk, random, parts.say);
      const keyring = await openKeyring({ disk, random, directory, ...keys });
      const ids = new Ids(clock, random);
      const audit = new AuditProjection();
      const projections = new Projections({
        newKey: () => ids.next(),
        tokensMax: settings.SERVICE_TOKEN_REGISTRY_MAX,
        more: [audit],
      });
      let replayed = 0;
      const log = await LocalLog.open({
        disk,
        clock,
        random,
        directory,
        keyring,
        origin: settings.SERVICE_LOG_ORIGIN,
        engineVersion: parts.version,
        walSync: settings.SERVICE_WAL_SYNC,
        sealIdleMs: parts.sealIdleMs ?? 1000,
        replay: (entry, leafHash) => {
          projections.apply(entry);
          parts.onReplay?.(++replayed, leafHash);
        },
        onEntry: (entry) => projections.apply(entry),
      });
      return new Service(parts, { log, projections, audit, ids, digestKey: keyring.hmacKey, unlock: () => lock.release() });
    } catch (error) {
      await lock.release();
      throw error;
    }
  }

  state(): 'ready' | 'draining' | 'failed' | 'closed' {
    return this.#state === 'ready' && this.log.status().state === 'failed' ? 'failed' : this.#state;
  }

  /**
   * Refuses new work, waits for what runs, seals and closes the log. False when acknowledged or running work was left
   * behind after `drainMs`.
   */
  async close(drainMs = this.settings.SERVICE_DRAIN_TIMEOUT_SECS * 1000): Promise<boolean> {
    if (this.#state !== 'ready') return true;
    this.#state = 'draining';
    this.watch.close();
    this.lookups.close();
    this.views.close();
    const late = new AbortController();
    const drained = await Promise.race([
      this.gate.drain().then(() => true),
      this.clock.sleep(drainMs, late.signal).then(() => false),
    ]);
    late.abort();
    const healthy = this.log.status().state !== 'failed';
    await this.log.close();
    if (drained && healthy && this.#parts.checkpointOnClose) await this.#writeCheckpoints();
    this.#state = 'closed';
    await this.#unlock();
    return drained && healthy;
  }

  async #writeCheckpoints(): Promise<void> {
    const { disk, say } = this.#parts;
    const { rows, projector } = this.projections;
    if (rows.bytes > checkpointBytesMax) {
      return say(
        `projections over ${checkpointBytesMax / 2 ** 30} GiB are not saved at close; the next start rebuilds them as always`,
      );
    }
    const directory = derivedDirectory(this.settings);
    await disk.makeDirectory(directory);
    const { logId } = this.log.status();
    const last = hex(this.log.lastLeafHash);
    // Everything placed is applied, so every projection stands at the last leaf.
    for (const name of projector.names) await writeCheckpoint(disk, directory, projector, name, { logId, leafHash: () => last });
  }
}

/** Derived files: deleting them loses nothing. */
export const derivedDirectory = (settings: Settings): string => join(settings.SERVICE_DATA_DIR, 'projections');

export const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** A saved state is held in memory once more while it is written. */
const checkpointBytesMax = 2 * 2 ** 30;

interface Opened {
  readonly log: LocalLog;
  readonly projections: Projections;
  readonly audit: AuditProjection;
  readonly ids: Ids;
  readonly digestKey: Uint8Array;
  readonly unlock: () => Promise<void>;
}
