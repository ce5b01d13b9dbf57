/** What the door asks of the process that it is part of. */
import type { DoorStatus } from '../door.ts';

/** The process as `/health`, `/status`, `/metrics` and `/config` show it. */
export interface SystemDesk {
  readonly version: string;
  readonly profile: string;
  readonly demo: boolean;
  state(): 'starting' | 'ready' | 'draining' | 'failed';
  /** Why the log stopped accepting writes; null while it does not. */
  failure(): string | null;
  doors(): readonly DoorStatus[];
  storage(): { readonly storedBytes: number; readonly segmentBytes: number; readonly segmentCount: number };
  walSync(): string;
  /** Every setting with secrets redacted. */
  config(): Readonly<Record<string, { readonly value: unknown; readonly source: string }>>;
}
