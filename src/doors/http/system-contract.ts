/** The process behind the HTTP door, for /health, /status, /metrics, /config and the routes of upkeep. */
import type { DoorStatus } from '../door.ts';

export interface StorageFigures {
  readonly storedBytes: number;
  readonly segmentBytes: number;
  readonly segmentCount: number;
  /** Memory of rows, and the part of it in columns that could be evicted. */
  readonly rowBytes: number;
  readonly columnBytes: number;
  readonly columnsHydrated: number;
  readonly columnsEvicted: number;
  /** Segments that scans skipped, since no row of them could match, and those skipped by a bloom filter. */
  readonly segmentsPruned: number;
  readonly segmentsPrunedByBloom: number;
}

export interface BackupView {
  readonly backup: string;
  readonly created_at: string;
  readonly engine_version: string;
  readonly root: string;
  readonly tree_size: number;
  readonly size_bytes: number;
  /** Entries after which the projections were digested; null where they were not, or are being. */
  readonly digest_tree_size: number | null;
}

/** A damaged backup is listed although it can't be restored: it must not vanish. */
export interface DamagedBackup {
  readonly backup: string;
  readonly damaged: string;
}

/** The report of a restore. Every value in it was computed again, none is copied from the backup. */
export interface RestoreReport {
  readonly backup: string;
  readonly target_dir: string;
  readonly log_id: string;
  /** The log as it lies there now gives the root that was signed. */
  readonly root_match: boolean;
  readonly root: string;
  readonly tree_size: number;
  readonly rows: number;
  readonly blobs: number;
  readonly size_bytes: number;
  /** Copying, and comparing every digest. */
  readonly copy_ms: number;
  /** Opening, checking and replaying all of it behind the copying, as often as it took. */
  readonly replay_ms: number;
  /** Digests of the replayed log, held against what `compared_with` says. */
  readonly projections: { readonly name: string; readonly digest: string; readonly match: boolean }[];
  readonly compared_with: string;
  /** Rows that are left as hashes: whose they were was erased. */
  readonly rows_erased: number;
  readonly erased_keys: number;
  /** No key that was ever destroyed opens anything in the restored store. */
  readonly erased_absent: boolean;
}

/** How long work is followed, and ended before its time. */
export interface UpkeepOptions {
  readonly signal?: AbortSignal;
  readonly onProgress?: (done: number, total: number) => void;
}

export interface BackupContract {
  create(options?: UpkeepOptions): Promise<BackupView>;
  list(): Promise<(BackupView | DamagedBackup)[]>;
  /** Into an empty directory, beside the store that runs. */
  restore(backup: string, target: string, options?: UpkeepOptions): Promise<RestoreReport>;
}

/** Numbers of data keys, and how many are there. */
export interface KeyRotation {
  readonly activeKey: number;
  readonly previousKey: number;
  readonly keys: number;
  readonly rotatedAt: string;
}

/** The process as `/health`, `/status`, `/metrics` and `/config` show it. */
export interface SystemContract {
  readonly version: string;
  readonly profile: string;
  /** The id of this store. */
  readonly nodeId: string;
  readonly demo: boolean;
  state(): 'starting' | 'ready' | 'full' | 'draining' | 'failed';
  /** Why the log accepts no writes, for now or until a restart; null while it does. */
  failure(): string | null;
  doors(): readonly DoorStatus[];
  storage(): StorageFigures;
  /** Rewrites segment files of mostly superseded rows. */
  compact(
    options?: UpkeepOptions,
  ): Promise<{ readonly segments: number; readonly bytesBefore: number; readonly bytesAfter: number }>;
  /** Makes the indexes of texts of one type, or of all searched types; undefined where the type has no rows. */
  reindex(
    type: string | null,
    options?: UpkeepOptions,
  ): Promise<{ readonly indexes: number; readonly bytes: number } | undefined>;
  readonly backups: BackupContract;
  /** Makes a new data key for everything sealed from now on. */
  rotateDataKey(): Promise<KeyRotation>;
  walSync(): string;
  /** How safe the settings are. */
  posture(): SecurityPosture;
  /** Every setting with secrets redacted. */
  config(): Readonly<Record<string, { readonly value: unknown; readonly source: string }>>;
}

/** The names of the specification's license summary. */
export interface SecurityPosture {
  readonly kms_dev_mode: boolean;
  readonly cluster_fencing: boolean;
  readonly grpc_tls: boolean;
  readonly security_mode: 'strict' | 'open';
}
