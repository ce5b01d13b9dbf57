/** What the door asks of the process that it is part of. */
import type { DoorStatus } from '../door.ts';

export interface StorageFigures {
  readonly storedBytes: number;
  readonly segmentBytes: number;
  readonly segmentCount: number;
  /** Memory that rows take, and what of it are columns that could leave it. */
  readonly rowBytes: number;
  readonly columnBytes: number;
  readonly columnsHydrated: number;
  readonly columnsEvicted: number;
  /** That scans left out, since no row of them could match, and of these what a bloom filter knew. */
  readonly segmentsPruned: number;
  readonly segmentsPrunedByBloom: number;
}

/** The process as `/health`, `/status`, `/metrics` and `/config` show it. */
export interface SystemDesk {
  readonly version: string;
  readonly profile: string;
  readonly demo: boolean;
  state(): 'starting' | 'ready' | 'draining' | 'failed';
  /** Why the log stopped accepting writes; null while it does not. */
  failure(): string | null;
  doors(): readonly DoorStatus[];
  storage(): StorageFigures;
  /** Rewrites segment files of mostly superseded rows. */
  compact(): Promise<{ readonly segments: number; readonly bytesBefore: number; readonly bytesAfter: number }>;
  walSync(): string;
  /** How safe the settings are. */
  posture(): SecurityPosture;
  /** Every setting with secrets redacted. */
  config(): Readonly<Record<string, { readonly value: unknown; readonly source: string }>>;
}

/** As the specification's license summary names it. */
export interface SecurityPosture {
  readonly kms_dev_mode: boolean;
  readonly cluster_fencing: boolean;
  readonly grpc_tls: boolean;
  readonly security_mode: 'strict' | 'open';
}
