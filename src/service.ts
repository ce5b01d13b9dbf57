/**
 * Composition root: opens the rooms bottom-up, closes them top-down. Everything that a room needs from outside arrives here as an
 * argument.
 */
import { join } from 'node:path';
import { Backups, type BackgroundCopy, type BackgroundDigest } from './upkeep/backups.ts';
import { type Clock, Ids, type Random } from './clock.ts';
import { isLoopback, type Settings } from './config.ts';
import { INDEX_SHARE, rowBudget, rowSettings, UNBOUND_INDEX_BYTES } from './row-memory.ts';
import { builtDoors } from './doors/doors.ts';
import { builtinWorkflows } from './doors/workflows/builtin-workflows.ts';
import { approverOf } from './doors/workflows/approver.ts';
import type { WorkflowDependencies, Workflows } from './doors/workflows/run.ts';
import { ConfigError, ServiceError } from './errors.ts';
import { type AbsentOwner, Authenticator } from './governance/authentication/authenticator.ts';
import { BlobSweep } from './governance/erasure/blob-sweep.ts';
import { ErasureChores } from './governance/erasure/erasure-chores.ts';
import { RedactionChore } from './governance/erasure/redaction-chore.ts';
import { EmbeddingDesk } from './governance/embedding/embedding-desk.ts';
import { ErasureDesk } from './governance/erasure/erasure-desk.ts';
import { sealedCopies } from './governance/erasure/receipt.ts';
import { KeyedTextSeals } from './governance/erasure/text-seals.ts';
import { type Caller, tenantlessCaller } from './governance/caller.ts';
import { Gate } from './governance/gate.ts';
import { JobDesk } from './governance/jobs/job-desk.ts';
import { JobScheduler } from './governance/jobs/scheduler.ts';
import { WorkflowDesk } from './governance/jobs/workflow-desk.ts';
import { type BeginAgain, JobRunner, type JobWork } from './governance/jobs/job-runner.ts';
import { readLicence } from './governance/tenancy/licence-file.ts';
import { type Licence, LicenceTerm } from './governance/tenancy/licence.ts';
import { bootRefusals } from './governance/tenancy/profile.ts';
import { onceAMinute } from './governance/jobs/minute-rounds.ts';
import { TenantChores } from './governance/tenancy/tenant-chores.ts';
import { Blobs } from './log/blobs/blobs.ts';
import { noteSigner } from './log/tree/checkpoint-note.ts';
import type { Disk } from './log/disk/disk.ts';
import { DerivedFileError, type DerivedHome, type DerivedReader } from './log/blobs/derived-file.ts';
import { BULK_ROWS_MIN } from './log/entries/bulk-sealer.ts';
import { OPEN_BESIDE_BYTES_MIN } from './log/files/frame-opener.ts';
import { type KeyStore, openKeyring, refuseLostKeys } from './log/keys/keys.ts';
import { LocalLog, type LocalLogOptions } from './log/log.ts';
import { type WorkerKeeper, workerKeeper } from './log/threads/worker-keeper.ts';
import { inlineWorker, spareCores, type StartWorker, threadWorker } from './log/threads/workers.ts';
import { unfinishedRestore } from './log/backup/restore.ts';
import { erasureSeed, type MasterKeys, masterKeys } from './master-keys.ts';
import { modelsOf } from './models/http-models.ts';
import type { PlannerContract } from './planner/planner-contract.ts';
import { Planner } from './planner/planner.ts';
import type { Dialect } from './planner/statement.ts';
import { TurnQueue, type WorkKind } from './planner/run/turn-queue.ts';
import { TurnsBehind } from './planner/run/turns-behind.ts';
import { type LookupFiles, LookupTables } from './planner/standing/lookup-tables.ts';
import { MaterializedViews } from './planner/standing/materialized-views.ts';
import { alertPaused, performJobs } from './planner/standing/jobs/perform.ts';
import { performRetention } from './planner/standing/jobs/retention.ts';
import { IntervalRules } from './planner/standing/rules/interval-rules.ts';
import { RuleJudge } from './planner/standing/rules/judge.ts';
import { StandingQueries } from './planner/standing/watch.ts';
import { AuditProjection } from './projections/audit/projection.ts';
import type { Json } from './log/values/canonical-json.ts';
import type { WorkRecord } from './projections/jobs/job.ts';
import { tenantOf } from './log/values/value.ts';
import type { ColumnMemory } from './log/values/column-memory.ts';
import { Checkpoint, dropCheckpoint, removeStrays } from './projections/checkpoint.ts';
import { CheckpointKeeper } from './projections/checkpoint-keeper.ts';
import type { Projection } from './projections/projection.ts';
import { Projections } from './projections/projections.ts';
import { ColumnStore } from './projections/rows/store/column-store.ts';
import { INDEX_PREFIX } from './projections/rows/store/index-files.ts';
import type { BackgroundRestore } from './upkeep/restores.ts';
import { plannerOptions } from './planner-options.ts';

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

export interface ServiceDependencies {
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
  /** Opens the log's frames when it is replayed; threads of their own unless said otherwise. */
  readonly startOpener?: StartWorker;
  /** Yields to other work; one queue for all unless a simulation schedules. */
  readonly yieldTurn?: () => Promise<void>;
  /** Does long work beside the event loop; in threads of its own unless said otherwise. */
  readonly startKept?: StartWorker;
  /** Further projections, after the store's own. */
  readonly moreProjections?: readonly Projection[];
}

/** Throws a ConfigError that lists every reason why these settings must not be served. */
export function checkBoot(settings: Settings): void {
  const refusals = bootRefusals(settings, { builtDoors });
  if (refusals.length > 0) throw new ConfigError(refusals.join('; '));
  readLicence(settings);
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
  readonly models: ReturnType<typeof modelsOf>;
  /** Gives other work its turn while a door reads or sends a long body. */
  readonly yieldTurn: () => Promise<void>;
  readonly watch: StandingQueries;
  readonly lookups: LookupTables;
  readonly rules: RuleJudge;
  readonly intervalRules: IntervalRules;
  /** Runs scheduled jobs. */
  readonly scheduler: JobScheduler;
  readonly jobDesk: JobDesk;
  readonly workflows: WorkflowDesk;
  readonly views: MaterializedViews;
  readonly erasures: ErasureDesk;
  readonly embeddings: EmbeddingDesk;
  readonly authenticator: Authenticator;
  #state: 'ready' | 'draining' | 'closed' = 'ready';
  #drained: Promise<boolean> | null = null;
  #closed = false;
  readonly #unlock: () => Promise<void>;
  /** Whether queries wait for a turn. */
  readonly crowded: () => boolean;
  readonly #chore: () => Promise<void>;
  readonly #licence: Licence;
  readonly #say: (line: string) => void;
  readonly #closing = new AbortController();
  #callTool: WorkflowDependencies['callTool'] = () =>
    Promise.reject(new ServiceError('REL_NOT_IMPLEMENTED', 'no door serves tools here'));
  /** Null: nothing is saved. */
  readonly checkpoints: CheckpointKeeper | null;
  readonly columns: ColumnStore | null;
  readonly keyring: KeyStore;
  readonly backups: Backups;
  /** Finds bodies that no row names. */
  readonly bodies: BlobSweep;
  /** Long work that callers started. */
  readonly jobs: JobRunner;
  /** Long work of the store's own and of doors. */
  readonly workers: WorkerKeeper;
  readonly #checkpoint: Checkpoint | null;

  private constructor(parts: ServiceDependencies, opened: Opened) {
    const { settings, clock, random } = parts;
    const { log, projections, audit, ids } = opened;
    this.checkpoints = opened.checkpoints;
    this.columns = opened.columns;
    this.keyring = opened.keyring;
    this.#checkpoint = opened.checkpoint;
    this.settings = settings;
    this.version = parts.version;
    this.clock = clock;
    this.random = random;
    this.ids = ids;
    this.log = log;
    this.projections = projections;
    this.#unlock = opened.unlock;
    this.#licence = readLicence(settings);
    this.#say = parts.say;
    const textSeals = new KeyedTextSeals({ keys: opened.keyring.subjects, ids, random });
    this.gate = new Gate({
      log,
      projections,
      audit,
      clock,
      ids,
      settings,
      licence: this.#licence,
      digestKey: opened.keyring.hmacKey,
      textSeals,
      bodies: { blobs: opened.blobs, key: opened.keyring.hmacKey },
      warn: parts.say,
      onRequest: opened.onRequest,
    });
    this.backups = new Backups({
      ...parts,
      ...opened,
      yieldTurn: opened.turnsOf('files'),
      signal: this.#closing.signal,
    });
    const yieldTurn = opened.turnsOf('queries');
    this.yieldTurn = opened.turnsOf('bodies');
    this.crowded = opened.crowded;
    this.#chore = opened.turnsOf('chores');
    this.workers = opened.workers;
    const isOfTenant = ({ run, path }: WorkRecord): boolean =>
      BigInt(run.due) >= (projections.tenants.sinceOf(tenantOf(path))?.time ?? 0n);
    this.jobs = new JobRunner({
      now: () => clock.now(),
      newId: () => ids.next(),
      record: (run, at) => this.gate.recordWork(run, at),
      recorded: () => [...projections.jobs.works()].filter(isOfTenant),
      warn: parts.say,
    });
    // Standing queries call the planner, and the planner's statements read standing queries.
    const planner = { query: (...asked: Parameters<Planner['query']>) => this.planner.query(...asked) };
    // Nobody waits for the answers of jobs as callers do for theirs.
    const behindOthers: PlannerContract = {
      query: (invocation, request) => this.planner.query(invocation, { ...request, behindOthers: true }),
    };
    this.lookups = new LookupTables({ files: parts.lookupFiles ?? null, clock });
    this.views = new MaterializedViews({
      gate: this.gate,
      planner,
      clock,
      ids,
      rowsMax: settings.SERVICE_MV_MAX_ROWS,
      renew: (caller) => this.authenticator.renew(caller),
      yieldTurn: this.#chore,
    });
    this.watch = new StandingQueries({
      gate: this.gate,
      planner,
      clock,
      ids,
      subscriptionsMax: settings.SERVICE_MAX_WATCH_SUBSCRIPTIONS,
      subscriptionsAgreed: (tenant) => projections.tenants.tenant(tenant)?.record.quota.subscriptions,
      yieldTurn,
    });
    const judging = {
      gate: this.gate,
      planner,
      clock,
      ids,
      rules: projections.rules,
      judgedUpTo: (group: string) => projections.jobs.judgedUpTo(group),
      beginning: (tenant: string | null) => projections.tenants.sinceOf(tenant)?.time ?? 0n,
      absentCaller: (owner: AbsentOwner) => this.authenticator.absentCaller(owner),
      lookups: this.lookups,
      yieldTurn: this.#chore,
    };
    this.rules = new RuleJudge(judging);
    this.intervalRules = new IntervalRules(judging);
    const beginning = (path: string | null): bigint => projections.tenants.sinceOf(tenantOf(path))?.time ?? 0n;
    const workflowParts: WorkflowDependencies = {
      gate: this.gate,
      planner,
      clock,
      stepsOf: (id) => this.workflows.stepsOf(id),
      callTool: (call) => this.#callTool(call),
      erasedOf: (tenant) => projections.erasures.all().filter((erasure) => erasure.tenant === tenant).length,
    };
    // Their reader is loaded with the first run: a command on a directory has none.
    let performing: Promise<Workflows> | null = null;
    this.scheduler = new JobScheduler({
      gate: this.gate,
      clock,
      ids,
      runner: this.jobs,
      jobs: projections.jobs,
      beginning,
      absentCaller: (owner) => this.authenticator.absentCaller(owner),
      perform: performJobs({ planner: behindOthers, chores: this.#chores() }),
      performWorkflow: (job, work) => {
        performing ??= import('./doors/workflows/run.ts').then(({ performWorkflows }) => performWorkflows(workflowParts));
        return performing.then(({ perform }) => perform(job, work));
      },
      performRetention: performRetention({ gate: this.gate, planner: behindOthers, foundMax: 100_000 }),
      alertOf: alertPaused,
      workflowOf: (name, job) => this.workflows.idOf(name, job),
      warn: parts.say,
      yieldTurn: this.#chore,
      parallelMax: settings.SERVICE_JOBS_MAX_PARALLEL,
    });
    const { scheduler, jobs: runner } = this;
    this.jobDesk = new JobDesk({ jobs: projections.jobs, scheduler, runner, clock, ids, beginning });
    this.workflows = new WorkflowDesk({
      jobs: projections.jobs,
      desk: this.jobDesk,
      scheduler,
      ids,
      beginning,
      builtins: builtinWorkflows,
      approver: approverOf,
    });
    this.bodies = new BlobSweep({ blobs: opened.blobs, rows: projections.rows, yieldTurn: this.#chore });
    this.erasures = new ErasureDesk({
      gate: this.gate,
      log,
      state: projections,
      keys: opened.keyring.subjects,
      seals: textSeals,
      hmacKey: opened.keyring.hmacKey,
      signer: noteSigner(erasureSeed(settings, opened.keyring)),
      bodies: opened.blobs,
      derived: {
        renew: () => this.bodies.round().then(async () => (await this.checkpoints?.renew()) ?? true),
        stale: async () => (await this.checkpoints?.strays()) ?? [],
      },
      backupsBefore: async () => sealedCopies((await this.backups.list()).length),
      clock,
      ids,
      yieldTurn: { soon: opened.turnsOf('erasures'), awaited: opened.turnsOf('files'), later: this.#chore },
      say: parts.say,
    });
    this.models = modelsOf(settings);
    const { gate, jobs } = this;
    const { embedder } = this.models;
    this.embeddings = new EmbeddingDesk({ embedder, gate, log, state: projections, jobs, clock, ids, yieldTurn: this.#chore });
    this.planner = new Planner({
      clock,
      random,
      version: parts.version,
      yieldTurn,
      yieldBehind: opened.behindOthers,
      standing: { watch: this.watch, lookups: this.lookups, views: this.views, erasures: this.erasures },
      embedder,
      embeddings: this.embeddings,
      reranker: this.models.reranker,
      newKey: () => ids.next(),
      jobs: this.jobs,
      workers: parts.startKept || spareCores() > 0 ? this.workers : null,
      ...plannerOptions(settings),
    });
    const { indexes } = projections.rows;
    const texts = { search: () => (indexes.stale > 0 ? [{ where: 'text index', what: null, count: indexes.stale }] : []) };
    const runs = { forget: (tenant: string | null) => void performing?.then((workflows) => workflows.forget(tenant)) };
    for (const store of [this.planner, this.views, this.watch, this.lookups, texts, runs]) this.erasures.reach(store);
    this.authenticator = new Authenticator({
      directory: projections.directory,
      tenants: projections.tenants,
      clock,
      settings,
      boundToLoopback: isLoopback(settings.SERVICE_HTTP_BIND),
    });
  }

  static async open(parts: ServiceDependencies): Promise<Service> {
    const { settings, disk, clock, random } = parts;
    const directory = settings.SERVICE_DATA_DIR;
    await disk.makeDirectory(directory);
    const lock = await disk.lock(join(directory, 'lock'));
    try {
      const unfinished = await unfinishedRestore(disk, directory);
      if (unfinished !== undefined) throw new ServiceError('REL_STORAGE', unfinished);
      await refuseLostKeys(disk, directory);
      const master = await masterKeys(settings, disk, random, parts.say);
      const keyring = await openKeyring({ disk, random, directory, ...master });
      const ids = new Ids(clock, random);
      const turns = new TurnQueue();
      const turnsOf: TurnsOf = (kind) => parts.yieldTurn ?? (() => turns.next(kind));
      const workers = workerKeeper(turnsOf('chores'), parts.startKept);
      const blobs = await Blobs.open({ disk, random, directory, keyring });
      const behind = new TurnsBehind(clock, turnsOf('chores'));
      const ofJobs = { behindOthers: parts.yieldTurn ?? (() => behind.next()), onRequest: () => behind.noteRequest() };
      const ground = { keyring, blobs, master, ids, turnsOf, workers, crowded: () => turns.waits('queries'), ...ofJobs };
      const opened = parts.derived
        ? await openDerived(parts, parts.derived, ground)
        : { ...(await openLog(parts, ground, newRooms(parts, ground), {})), checkpoints: null, columns: null, checkpoint: null };
      return new Service(parts, { ...opened, ...ground, unlock: () => lock.release() });
    } catch (error) {
      await lock.release();
      throw error;
    }
  }

  /** Does the work that a start postponed, beside queries; resolves when none is left. */
  async settle(): Promise<void> {
    await this.#enterKeys();
    this.projections.rows.beginIndexes();
  }

  /** Takes the way in which steps of workflows call tools, from the door that serves them. */
  serveTools(call: WorkflowDependencies['callTool']): void {
    this.#callTool = call;
  }

  /** Work of the store's own that a job may do. */
  #chores(): Readonly<Record<string, (signal: AbortSignal) => Promise<Json>>> {
    return {
      compaction: async (signal) => {
        const done = await this.columns?.compact({ signal });
        return { segments: done?.segments ?? 0 };
      },
      reindex: async (signal) => {
        const done = await this.projections.rows.renewIndexes(null, { signal });
        return { indexes: done?.indexes ?? 0 };
      },
    };
  }

  /** Null: only its request can begin it. */
  #beginAgain({ run: { work }, path }: WorkRecord): BeginAgain | null {
    const { kind, about, principal, statement } = work;
    const credential = work.credential as Caller['credential'];
    if (statement !== undefined) {
      const { sql, purpose, token, branch } = statement;
      const asked = { sql, purpose, dialect: statement.dialect as Dialect, graph: 'scores' } as const;
      return async (as) => {
        const caller = this.authenticator.absentCaller({ principal, credential, token, path, branch });
        const request = { action: 'query', purpose, correlationId: as.id } as const;
        return this.gate.invoke(caller, request, (invocation) => this.planner.execute(invocation, { ...asked, as }));
      };
    }
    const run = async ({ signal, progress }: JobWork): Promise<Json> => {
      const followed = { signal, onProgress: progress };
      if (kind === 'reindex') return { indexes: (await this.projections.rows.renewIndexes(about, followed))?.indexes ?? 0 };
      return { segments: (await this.columns?.compact(followed))?.segments ?? 0 };
    };
    // No backup is: every store that is restored from one finds it begun.
    if (kind !== 'reindex' && kind !== 'compaction') return null;
    const unit = kind === 'reindex' ? 'indexes' : 'segments';
    const spec = { kind, unit, ...(about !== null && { about }), onDrain: 'cancel', run } as const;
    return async (as) => {
      const caller = this.authenticator.absentCaller({ principal, credential, token: null, path, branch: 'main' });
      const request = { action: 'administer', purpose: null, correlationId: as.id } as const;
      return this.gate.invoke(caller, request, (invocation) => {
        invocation.describe({ template: `${kind} again` });
        return this.jobs.start({ ...spec, ...as, resultOf: (result) => result }, caller).ended;
      });
    };
  }

  async #enterKeys(): Promise<void> {
    const { rows } = this.projections;
    const total = rows.entering;
    if (total === 0) return rows.enterKeys(this.#chore);
    const run = async ({ signal, progress }: JobWork): Promise<void> => {
      let entered = 0;
      progress(0, total);
      const turn = async (): Promise<void> => {
        signal.throwIfAborted();
        await this.#chore();
      };
      await rows.enterKeys(turn, () => progress(++entered, total));
    };
    const { ended } = this.jobs.start(
      { kind: 'rebuild', about: 'key indexes', unit: 'tables', onDrain: 'cancel', run },
      tenantlessCaller('annals', 'operator', 'start'),
    );
    await ended.catch((error: unknown) => {
      // An index that was not filled is filled on first use.
      if (!(error instanceof ServiceError) || (error.code !== 'REL_CANCELLED' && error.code !== 'REL_UNAVAILABLE')) throw error;
    });
  }

  /** Runs chores by the clock until the store closes: agreements that end, interrupted purges, an expiring licence. */
  tend(): void {
    const { gate, clock, ids } = this;
    const { signal } = this.#closing;
    const chores = new TenantChores({ gate, tenants: this.projections.tenants, clock, ids, yieldTurn: this.#chore });
    const erasing = new ErasureChores({ gate, desk: this.erasures, retention: this.projections.retention, clock, ids });
    const sayFailed = (error: unknown): void => this.#say(`background work has stopped: ${messageOf(error)}`);
    const { log, projections } = this;
    log.onVisible(() => this.rules.look());
    log.onVisible(() => {
      this.scheduler.look();
      this.intervalRules.look();
    });
    this.rules.look();
    const onRemoved = (): Promise<void> => this.bodies.round();
    const redacting = new RedactionChore({ log, redactions: projections.redactions, clock, yieldTurn: this.#chore, onRemoved });
    this.bodies.round().catch(sayFailed);
    chores.run(signal).catch(sayFailed);
    erasing.run(signal).catch(sayFailed);
    redacting.run(signal).catch(sayFailed);
    this.embeddings.run(signal).catch(sayFailed);
    this.jobs.takeUp((work) => this.#beginAgain(work)).catch(sayFailed);
    this.scheduler.run(signal).catch(sayFailed);
    this.intervalRules.run(signal).catch(sayFailed);
    onceAMinute(clock, signal, async () => gate.endIdle()).catch(sayFailed);
    new LicenceTerm(this.#licence, this.#say).watch(clock, signal).catch(sayFailed);
  }

  /** `full`: the log is whole, and takes no writes until the disk has room. */
  state(): 'ready' | 'full' | 'draining' | 'failed' | 'closed' {
    const { state } = this.log.status();
    return this.#state === 'ready' && (state === 'failed' || state === 'full') ? state : this.#state;
  }

  /** Refuses new work, and waits for what runs. False when some of it was left behind after `drainMs`. */
  drain(drainMs = this.settings.SERVICE_DRAIN_TIMEOUT_SECS * 1000): Promise<boolean> {
    this.#drained ??= this.#drain(drainMs);
    return this.#drained;
  }

  async #drain(drainMs: number): Promise<boolean> {
    this.#state = 'draining';
    this.#closing.abort();
    this.jobs.drain();
    this.erasures.close();
    this.watch.close();
    this.rules.close();
    this.lookups.close();
    this.views.close();
    const late = new AbortController();
    const drained = await Promise.race([
      this.gate.drain().then(() => true),
      this.clock.sleep(drainMs, late.signal).then(() => false),
    ]);
    late.abort();
    return drained;
  }

  /** Drains, seals and closes the log. False when acknowledged or running work was left behind after `drainMs`. */
  async close(drainMs?: number): Promise<boolean> {
    if (this.#closed) return true;
    this.#closed = true;
    const drained = await this.drain(drainMs);
    await this.workers.end();
    await this.projections.rows.indexes.graphs?.end();
    await this.log.close();
    const healthy = this.log.status().state !== 'failed';
    if (drained && healthy) await this.checkpoints?.close();
    else await this.checkpoints?.abandon();
    await this.backups.whenIdle();
    await this.columns?.close();
    await this.#checkpoint?.closeBlobs();
    await this.keyring.close();
    this.#state = 'closed';
    await this.#unlock();
    return drained && healthy;
  }
}

/** Derived files: deleting them loses nothing. */
export const derivedDirectory = (settings: Settings): string => join(settings.SERVICE_DATA_DIR, 'projections');

export const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** Chooses the yield function for a kind of work. */
type TurnsOf = (kind: WorkKind) => () => Promise<void>;

/** The resources that all rooms share. */
interface Ground {
  readonly blobs: Blobs;
  readonly keyring: KeyStore;
  readonly master: MasterKeys;
  readonly ids: Ids;
  readonly turnsOf: TurnsOf;
  readonly workers: WorkerKeeper;
  readonly crowded: () => boolean;
  /** Turns of jobs. */
  readonly behindOthers: () => Promise<void>;
  /** A caller asks for something. */
  readonly onRequest: () => void;
}

interface Rooms {
  readonly projections: Projections;
  readonly audit: AuditProjection;
}

interface Opened extends Rooms, Ground {
  readonly log: LocalLog;
  readonly unlock: () => Promise<void>;
  readonly checkpoints: CheckpointKeeper | null;
  readonly columns: ColumnStore | null;
  readonly checkpoint: Checkpoint | null;
}

function newRooms(
  { settings, derived, moreProjections = [], say, startKept }: ServiceDependencies,
  { ids, keyring, workers, turnsOf }: Pick<Ground, 'ids' | 'keyring' | 'workers' | 'turnsOf'>,
  more: Partial<ConstructorParameters<typeof Projections>[0]> = {},
): Rooms {
  const indexes = {
    workers,
    graphs: { startWorker: startKept ?? (spareCores() > 0 ? threadWorker : inlineWorker), yieldTurn: turnsOf('chores'), say },
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
  parts: ServiceDependencies,
  { keyring, turnsOf }: Ground,
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
    bulk: { startWorker: spareCores() > 0 ? threadWorker : null, rowsMin: BULK_ROWS_MIN, yieldTurn: turnsOf('seals') },
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
async function openDerived(
  parts: ServiceDependencies,
  derived: DerivedOptions,
  ground: Ground,
): Promise<Omit<Opened, keyof Ground | 'unlock'>> {
  const { settings, disk, clock, random, say } = parts;
  const { keyring } = ground;
  const directory = derivedDirectory(settings);
  const yieldTurn = ground.turnsOf('files');
  // Giving memory back is short work that others wait for.
  const soon = parts.yieldTurn ?? (() => new Promise<void>((resolve) => setImmediate(resolve)));
  const defer = (task: () => void): void => void soon().then(task);
  await disk.makeDirectory(directory);
  const reader: DerivedReader = { disk, keyring, directory, logId: null };
  const homeOf = (logId: string): DerivedHome => ({ disk, random, keyring, directory, logId, yieldTurn });
  const open = async (checkpoint: Checkpoint | null): Promise<Omit<Opened, keyof Ground | 'unlock'>> => {
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
    let keeper: CheckpointKeeper | null = null;
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
      keeper = new CheckpointKeeper({
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
      return { ...opened, checkpoints: keeper, columns, checkpoint: from };
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
