/** What all tables of a store share: where time comes from, where columns rest, and what is kept beside them. */
import { ColumnMemory } from '../../log/column-memory.ts';
import type { Timeline } from '../../log/timeline.ts';
import { ColumnSpace } from './extents.ts';

export interface RowSettings {
  /** Columns of which each sealed segment keeps a bloom filter. */
  readonly bloomColumns: readonly string[];
  /** Columns of which each sealed segment keeps sketches: how many values differ, and the most frequent ones. */
  readonly sketchColumns: readonly string[];
  /** Entries of the temporal index per type; beyond it AS OF scans. */
  readonly temporalIndexMax: number;
}

export interface RowStorage {
  readonly timeline: Timeline;
  readonly memory: ColumnMemory;
  /** Hands out that memory to segments. */
  readonly space: ColumnSpace;
  readonly settings: RowSettings;
}

export interface RowStorageOptions {
  readonly memory?: ColumnMemory;
  readonly settings?: RowSettings;
  /** Runs a task in a later turn of the event loop; `setImmediate` unless a simulation schedules. */
  readonly defer?: (task: () => void) => void;
}

export const defaultRowSettings: RowSettings = {
  bloomColumns: ['tenant_id', 'object_type'],
  sketchColumns: [],
  temporalIndexMax: 4_000_000,
};

export function rowStorage(timeline: Timeline, options: RowStorageOptions = {}): RowStorage {
  const memory = options.memory ?? new ColumnMemory();
  const space = new ColumnSpace(memory, options.defer ?? ((task) => void setImmediate(task)));
  return { timeline, memory, space, settings: options.settings ?? defaultRowSettings };
}
