/**
 * Composition root: opens the rooms bottom-up, closes them top-down. Everything that a room needs from outside arrives here as an
 * argument.
 */
import type { BackgroundCopy, BackgroundDigest } from './upkeep/store-backups.ts';
import { Automation } from './automation.ts';
import { type Clock, Ids, type Random } from './clock.ts';
import { isLoopback, type Settings } from './config.ts';
import { builtDoors } from './doors/doors.ts';
import { ConfigError } from './errors.ts';
import { Authenticator } from './governance/authentication/authenticator.ts';
import { KeyedTextSeals } from './governance/erasure/text-seals.ts';
import { Gate } from './governance/gate.ts';
import { readLicence } from './governance/tenancy/licence-file.ts';
import { bootRefusals } from './governance/tenancy/profile-rules.ts';
import { spareCores } from './log/threads/workers.ts';
import { modelsOf } from './models/configured-models.ts';
import { plannerOptions } from './planner-settings.ts';
import { Planner } from './planner/planner.ts';
import { type LookupFiles, LookupTables } from './planner/continuous/views/lookup-tables.ts';
import { MaterializedViews } from './planner/continuous/views/materialized-views.ts';
import { StandingQueries } from './planner/continuous/watch/watch.ts';
import { Store, type StoreDependencies } from './store.ts';
import type { BackgroundRestore } from './upkeep/store-restores.ts';
import { Upkeep } from './upkeep/upkeep.ts';
import { EventLoopTurns } from './event-loop-turns.ts';

export interface ServiceDependencies extends StoreDependencies {
  /** Where lookup tables are read from; absent: registering one is refused. */
  readonly lookupFiles?: LookupFiles;
  /** Copies for backups beside the event loop, on the same disk; of a log from so many bytes on. */
  readonly copyBeside?: BackgroundCopy;
  readonly copyBesideBytesMin?: number;
  /** Restores backups beside the event loop, on the same disk. */
  readonly restoreBeside?: BackgroundRestore;
  /** Digests what a backup is compared with beside the event loop, on the same disk. */
  readonly digestBeside?: BackgroundDigest;
  /** Positions and entries up to which a backup digests in one turn, some milliseconds; a thousand unless said otherwise. */
  readonly digestedInTurnMax?: number;
}

/** Throws a ConfigError that lists every reason why these settings must not be served. */
export function checkBoot(settings: Settings): void {
  const startRefusals = bootRefusals(settings, { builtDoors });
  if (startRefusals.length > 0) throw new ConfigError(startRefusals.join('; '));
  readLicence(settings);
}

/** Statements that outlive their call, and what they left. */
interface ContinuousWork {
  readonly watch: StandingQueries;
  readonly lookups: LookupTables;
  readonly views: MaterializedViews;
}

/** A stage is never gone back to. */
interface ServiceLife {
  stage: 'ready' | 'draining' | 'closing' | 'closed';
  drained: Promise<boolean> | null;
  /** Aborts when the store drains. */
  readonly ending: AbortController;
}

export class Service {
  readonly settings: Settings;
  readonly version: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly ids: Ids;
  readonly turns: EventLoopTurns;
  readonly store: Store;
  readonly gate: Gate;
  readonly authenticator: Authenticator;
  readonly models: ReturnType<typeof modelsOf>;
  readonly planner: Planner;
  readonly standing: ContinuousWork;
  readonly automation: Automation;
  readonly upkeep: Upkeep;
  readonly #serviceLife: ServiceLife = { stage: 'ready', drained: null, ending: new AbortController() };

  private constructor(serviceDependencies: ServiceDependencies, ids: Ids, turns: EventLoopTurns, store: Store) {
    const { settings, clock, random, version, say } = serviceDependencies;
    const { log, projections, keyring, blobs, audit } = store;
    const licence = readLicence(settings);
    this.settings = settings;
    this.version = version;
    this.clock = clock;
    this.random = random;
    this.ids = ids;
    this.turns = turns;
    this.store = store;
    this.authenticator = new Authenticator({
      directory: projections.directory,
      tenants: projections.tenants,
      clock,
      settings,
      boundToLoopback: isLoopback(settings.SERVICE_HTTP_BIND),
    });
    const textSeals = new KeyedTextSeals({ keys: keyring.subjects, ids, random });
    const gate = new Gate({
      log,
      projections,
      audit,
      clock,
      ids,
      settings,
      licence,
      digestKey: keyring.hmacKey,
      textSeals,
      bodies: { blobs, key: keyring.hmacKey },
      warn: say,
      onRequest: () => turns.noteRequest(),
    });
    this.gate = gate;
    // Standing queries and rules call the planner, and the planner's statements read standing queries.
    const planner: Pick<Planner, 'query' | 'execute'> = {
      query: (...asked) => this.planner.query(...asked),
      execute: (...asked) => this.planner.execute(...asked),
    };
    const yieldTurn = turns.yieldFor('queries');
    this.standing = {
      lookups: new LookupTables({ files: serviceDependencies.lookupFiles ?? null, clock }),
      views: new MaterializedViews({
        gate,
        planner,
        clock,
        ids,
        rowsMax: settings.SERVICE_MV_MAX_ROWS,
        renew: (caller) => this.authenticator.renew(caller),
        yieldTurn: turns.yieldFor('chores'),
      }),
      watch: new StandingQueries({
        gate,
        planner,
        clock,
        ids,
        subscriptionsMax: settings.SERVICE_MAX_WATCH_SUBSCRIPTIONS,
        subscriptionsAgreed: (tenant) => projections.tenants.tenant(tenant)?.record.quota.subscriptions,
        yieldTurn,
      }),
    };
    const { watch, lookups, views } = this.standing;
    const onFailed = (error: unknown): void =>
      say(`background work has stopped: ${error instanceof Error ? error.message : String(error)}`);
    const { authenticator } = this;
    this.automation = new Automation({
      settings,
      clock,
      ids,
      store,
      turns,
      gate,
      authenticator,
      planner,
      lookups,
      say,
      onFailed,
    });
    const { jobs } = this.automation;
    this.models = modelsOf(settings);
    const { embedder, reranker } = this.models;
    const { signal } = this.#serviceLife.ending;
    this.upkeep = new Upkeep({
      ...serviceDependencies,
      ids,
      store,
      turns,
      gate,
      textSeals,
      licence,
      embedder,
      jobs,
      onFailed,
      signal,
    });
    const { erasures, embeddings } = this.upkeep;
    this.planner = new Planner({
      clock,
      random,
      version,
      yieldTurn,
      yieldBackground: turns.yieldBehind,
      continuous: { watch, lookups, views, erasures },
      embedder,
      embeddings,
      reranker,
      newKey: () => ids.next(),
      jobs,
      workers: serviceDependencies.startKept || spareCores() > 0 ? store.workers : null,
      ...plannerOptions(settings),
    });
    const { indexes } = projections.rows;
    const staleTextIndexes = {
      search: () => (indexes.stale > 0 ? [{ where: 'text index', what: null, count: indexes.stale }] : []),
    };
    for (const erasureTarget of [this.planner, views, watch, lookups, staleTextIndexes, this.automation])
      erasures.reach(erasureTarget);
  }

  static async open(serviceDependencies: ServiceDependencies): Promise<Service> {
    const ids = new Ids(serviceDependencies.clock, serviceDependencies.random);
    const turns = new EventLoopTurns(serviceDependencies.clock, serviceDependencies.yieldTurn ?? null);
    const store = await Store.open(serviceDependencies, ids, turns);
    try {
      return new Service(serviceDependencies, ids, turns, store);
    } catch (error) {
      await store.unlock();
      throw error;
    }
  }

  /** Does the work that a start postponed, beside queries; resolves when none is left. */
  async settle(): Promise<void> {
    await this.automation.enterKeys();
    this.store.projections.rows.beginIndexes();
  }

  /** Runs what goes by the clock until the store closes. */
  tend(): void {
    const { signal } = this.#serviceLife.ending;
    this.automation.follow();
    this.upkeep.run(signal);
    this.automation.run(signal);
  }

  /** `full`: the log is whole, and takes no writes until the disk has room. */
  state(): 'ready' | 'full' | 'draining' | 'failed' | 'closed' {
    const { state: logStage } = this.store.log.status();
    const { stage: serviceStage } = this.#serviceLife;
    if (serviceStage === 'ready') return logStage === 'failed' || logStage === 'full' ? logStage : serviceStage;
    return serviceStage === 'closing' ? 'draining' : serviceStage;
  }

  /** Refuses new work, and waits for what runs. False when some of it was left behind after `drainMs`. */
  drain(drainMs = this.settings.SERVICE_DRAIN_TIMEOUT_SECS * 1000): Promise<boolean> {
    this.#serviceLife.drained ??= this.#drainService(drainMs);
    return this.#serviceLife.drained;
  }

  async #drainService(drainMs: number): Promise<boolean> {
    const { watch, lookups, views } = this.standing;
    if (this.#serviceLife.stage === 'ready') this.#serviceLife.stage = 'draining';
    this.#serviceLife.ending.abort();
    this.automation.jobs.drain();
    this.upkeep.erasures.close();
    watch.close();
    this.automation.rules.close();
    lookups.close();
    views.close();
    const drainTimeout = new AbortController();
    const isDrained = await Promise.race([
      this.gate.drain().then(() => true),
      this.clock.sleep(drainMs, drainTimeout.signal).then(() => false),
    ]);
    drainTimeout.abort();
    return isDrained;
  }

  /** Drains, seals and closes the log. False when acknowledged or running work was left behind after `drainMs`. */
  async close(drainMs?: number): Promise<boolean> {
    const serviceLife = this.#serviceLife;
    if (serviceLife.stage === 'closing' || serviceLife.stage === 'closed') return true;
    serviceLife.stage = 'closing';
    const isDrained = await this.drain(drainMs);
    const isLogHealthy = await this.store.end(isDrained);
    await this.upkeep.backups.whenIdle();
    await this.store.release();
    serviceLife.stage = 'closed';
    return isDrained && isLogHealthy;
  }
}
