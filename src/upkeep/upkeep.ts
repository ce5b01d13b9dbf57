/** Keeps a store in order while it serves: backups, erasures, bodies that no row names, and embeddings of rows that came. */
import { type BackgroundCopy, type BackgroundDigest, StoreBackups } from './store-backups.ts';
import type { BackgroundRestore } from './store-restores.ts';
import type { Clock, Ids, Random } from '../clock.ts';
import type { Settings } from '../config.ts';
import type { Embedder } from '../governance/embedding/embedder.ts';
import { RowEmbedding } from '../governance/embedding/row-embedding.ts';
import { BlobSweep } from '../governance/erasure/blob-sweep.ts';
import { ErasureChores } from '../governance/erasure/erasure-chores.ts';
import { SubjectErasure } from '../governance/erasure/subject-erasure.ts';
import { sealedCopies } from '../governance/erasure/erasure-receipt.ts';
import type { KeyedTextSeals } from '../governance/erasure/text-seals.ts';
import { RedactionChore } from '../governance/erasure/redaction-chore.ts';
import type { Gate } from '../governance/gate.ts';
import type { JobRunner } from '../governance/jobs/job-runner.ts';
import { onceAMinute } from '../governance/jobs/minute-rounds.ts';
import { type Licence, LicenceTerm } from '../governance/tenancy/licence.ts';
import { TenantChores } from '../governance/tenancy/tenant-chores.ts';
import type { Disk } from '../log/disk/disk.ts';
import { noteSigner } from '../log/tree/checkpoint-note.ts';
import { erasureSeed } from '../master-keys.ts';
import type { Store } from '../store.ts';
import type { EventLoopTurns } from '../event-loop-turns.ts';

export interface UpkeepDependencies {
  readonly settings: Settings;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly ids: Ids;
  readonly version: string;
  readonly store: Store;
  readonly turns: EventLoopTurns;
  readonly gate: Gate;
  readonly textSeals: KeyedTextSeals;
  readonly licence: Licence;
  readonly embedder: Embedder | null;
  /** The listing of long work. */
  readonly jobs: JobRunner;
  readonly say: (line: string) => void;
  /** Copies for backups beside the event loop, on the same disk; of a log from so many bytes on. */
  readonly copyBeside?: BackgroundCopy;
  readonly copyBesideBytesMin?: number;
  /** Restores backups beside the event loop, on the same disk. */
  readonly restoreBeside?: BackgroundRestore;
  /** Digests what a backup is compared with beside the event loop, on the same disk. */
  readonly digestBeside?: BackgroundDigest;
  /** Positions and entries up to which a backup digests in one turn, some milliseconds; a thousand unless said otherwise. */
  readonly digestedInTurnMax?: number;
  /** Work by the clock has stopped. */
  readonly onFailed: (error: unknown) => void;
  /** Ends backups that are under way: the store closes. */
  readonly signal: AbortSignal;
}

export class Upkeep {
  readonly #upkeepDependencies: UpkeepDependencies;
  readonly backups: StoreBackups;
  /** Finds bodies that no row names. */
  readonly bodies: BlobSweep;
  readonly erasures: SubjectErasure;
  readonly embeddings: RowEmbedding;

  constructor(upkeepDependencies: UpkeepDependencies) {
    this.#upkeepDependencies = upkeepDependencies;
    const { settings, clock, ids, store, turns, gate, textSeals, embedder, jobs, say } = upkeepDependencies;
    const { log, projections, keyring, blobs, checkpoints } = store;
    const yieldToChores = turns.yieldFor('chores');
    const yieldToFiles = turns.yieldFor('files');
    this.backups = new StoreBackups({ ...upkeepDependencies, log, projections, keyring, checkpoints, yieldTurn: yieldToFiles });
    this.bodies = new BlobSweep({ blobs, rows: projections.rows, yieldTurn: yieldToChores });
    this.erasures = new SubjectErasure({
      gate,
      log,
      state: projections,
      keys: keyring.subjects,
      seals: textSeals,
      hmacKey: keyring.hmacKey,
      signer: noteSigner(erasureSeed(settings, keyring)),
      bodies: blobs,
      derived: {
        renew: () => this.bodies.round().then(async () => (await checkpoints?.renew()) ?? true),
        stale: async () => (await checkpoints?.strays()) ?? [],
      },
      backupsBefore: async () => sealedCopies((await this.backups.list()).length),
      clock,
      ids,
      yieldTurn: { soon: turns.yieldFor('erasures'), forCaller: yieldToFiles, later: yieldToChores },
      say,
    });
    this.embeddings = new RowEmbedding({ embedder, gate, log, state: projections, jobs, clock, ids, yieldTurn: yieldToChores });
  }

  /** Goes by the clock until the signal aborts: agreements that end, interrupted purges and redactions, an expiring licence. */
  run(signal: AbortSignal): void {
    const { gate, clock, ids, turns, licence, say, onFailed } = this.#upkeepDependencies;
    const { log, projections } = this.#upkeepDependencies.store;
    const yieldTurn = turns.yieldFor('chores');
    const tenantChores = new TenantChores({ gate, tenants: projections.tenants, clock, ids, yieldTurn });
    const erasureChores = new ErasureChores({ gate, desk: this.erasures, retention: projections.retention, clock, ids });
    const sweepBlobs = (): Promise<void> => this.bodies.round();
    const redactionChore = new RedactionChore({
      log,
      redactions: projections.redactions,
      clock,
      yieldTurn,
      onRemoved: sweepBlobs,
    });
    this.bodies.round().catch(onFailed);
    tenantChores.run(signal).catch(onFailed);
    erasureChores.run(signal).catch(onFailed);
    redactionChore.run(signal).catch(onFailed);
    this.embeddings.run(signal).catch(onFailed);
    onceAMinute(clock, signal, async () => gate.endIdle()).catch(onFailed);
    new LicenceTerm(licence, say).watch(clock, signal).catch(onFailed);
  }
}
