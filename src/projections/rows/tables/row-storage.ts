/** Resources that all tables of a store share: the timeline, the memory of columns, indexes and caches. */
import { ColumnMemory } from '../../../log/values/column-memory.ts';
import type { Timeline } from '../../../log/values/timeline.ts';
import { ClosingOrders } from './closing-order.ts';
import { ColumnSpace } from '../cells/column-extents.ts';
import { defaultIndexes, SegmentIndexes, type SegmentIndexesOptions } from '../indexes/segment-indexes.ts';
import { SEGMENT_ROWS } from '../segments/segment-column.ts';
import type { ColumnStore } from '../store/column-store.ts';
import { IndexFiles } from '../store/index-files.ts';
import type { PruningCounts } from './zone-maps.ts';

export interface RowSettings {
  /** Columns of which each sealed segment keeps a bloom filter. */
  readonly bloomColumns: readonly string[];
  /** Rows per type that orders of closings may hold; beyond it AS OF compares every closing. */
  readonly temporalIndexMax: number;
  /** Rows after which a segment is sealed: fewer than it could take where a test wants many segments of few rows. */
  readonly segmentRows: number;
}

export interface RowStorage {
  readonly timeline: Timeline;
  readonly memory: ColumnMemory;
  /** Hands out that memory to segments. */
  readonly space: ColumnSpace;
  readonly settings: RowSettings;
  /** Shared by the tables of a tenant's type on all branches. */
  closingOrders(tenant: string | null, type: string): ClosingOrders;
  /** By all scans of all types. */
  readonly pruned: PruningCounts;
  /** Bytes that others hold for rows: the budget of rows is theirs too. */
  readonly bytesBeside: () => number;
  /** Where columns rest that memory has no room for; null: all of them stay in memory. */
  readonly store: ColumnStore | null;
  /** Runs a task in a later turn of the event loop. */
  readonly defer: (task: () => void) => void;
  readonly indexes: SegmentIndexes;
}

export interface RowStorageOptions {
  readonly indexes?: SegmentIndexesOptions;
  readonly memory?: ColumnMemory;
  readonly settings?: Partial<RowSettings>;
  readonly store?: ColumnStore;
  readonly bytesBeside?: () => number;
  /** Runs a task in a later turn of the event loop; `setImmediate` unless a simulation schedules. */
  readonly defer?: (task: () => void) => void;
}

export const defaultRowSettings: RowSettings = {
  bloomColumns: ['tenant_id', 'object_type'],
  temporalIndexMax: 4_000_000,
  segmentRows: SEGMENT_ROWS,
};

export function rowStorage(timeline: Timeline, options: RowStorageOptions = {}): RowStorage {
  const memory = options.memory ?? new ColumnMemory();
  const defer = options.defer ?? ((task: () => void): void => void setImmediate(task));
  const space = new ColumnSpace(memory, defer);
  const settings = { ...defaultRowSettings, ...options.settings };
  const ordersByType = new Map<string, ClosingOrders>();
  const closingOrders = (tenant: string | null, type: string): ClosingOrders => {
    const key = `${tenant ?? ''}\0${type}`;
    let known = ordersByType.get(key);
    if (!known) ordersByType.set(key, (known = new ClosingOrders(settings.temporalIndexMax)));
    return known;
  };
  const { store = null, bytesBeside = () => 0 } = options;
  const indexFiles = store && new IndexFiles(store, options.indexes?.say ?? defaultIndexes.say);
  const indexes = new SegmentIndexes(space, options.indexes, indexFiles);
  const pruned = { segments: 0, byBloom: 0 };
  return { timeline, memory, space, settings, closingOrders, pruned, bytesBeside, store, defer, indexes };
}
