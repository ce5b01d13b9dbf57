/** What all tables of a store share: where time comes from, where columns rest, and what is kept beside them. */
import { ColumnMemory } from '../../log/column-memory.ts';
import type { Timeline } from '../../log/timeline.ts';

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
  readonly settings: RowSettings;
}

export const defaultRowSettings: RowSettings = {
  bloomColumns: ['tenant_id', 'object_type'],
  sketchColumns: [],
  temporalIndexMax: 4_000_000,
};

export function rowStorage(timeline: Timeline, given: Partial<Omit<RowStorage, 'timeline'>> = {}): RowStorage {
  return { timeline, memory: new ColumnMemory(), settings: defaultRowSettings, ...given };
}
