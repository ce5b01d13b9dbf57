/**
 * Layers as checkpoint sections: paths and branches, then for each layer its tables, each with its head matter and its
 * segments, and what the layer changed about the tables below it. A segment that rests on a file is named, and only what goes
 * on changing about it is written.
 */
import { deserialize, serialize } from 'node:v8';
import { assert } from '../../../errors.ts';
import type { SavedBranches } from '../../../log/entries/branches.ts';
import type { CheckpointReader, CheckpointWriter } from '../../projection.ts';
import { alone, type FixedArray } from '../cells/column-extents.ts';
import { type BranchLayer, type SavedNames, ScopedNames } from './branch-layer.ts';
import { BranchOverlay } from './branch-overlay.ts';
import type { RowStorage } from './row-storage.ts';
import type { Segment } from '../segments/segment.ts';
import type { SegmentChanges, SegmentState } from '../segments/segment-state.ts';
import type { ColumnStore } from '../store/column-store.ts';
import type { SegmentFile } from '../store/segment-file.ts';
import { Table } from './table.ts';
import type { RestingSegment, TableState } from './table-state.ts';

interface Contents {
  readonly paths: readonly (string | null)[];
  readonly tree: SavedBranches;
  readonly layers: readonly SavedLayer[];
}

interface SavedLayer {
  readonly id: number;
  readonly tables: number;
  readonly names: SavedNames;
  readonly overlays: readonly SavedOverlay[];
}

interface SavedOverlay {
  readonly layer: number;
  readonly tenant: string | null;
  readonly type: string;
  readonly entries: Float64Array;
}

/** A segment as a section. */
type SavedSegment = { readonly state: SegmentState } | { readonly file: string; readonly changes: SegmentChanges };

export function saveRows(
  target: CheckpointWriter,
  state: Pick<Contents, 'paths' | 'tree'> & { readonly layers: readonly BranchLayer[] },
  store: ColumnStore | null,
): void {
  const layers = state.layers.map((layer): SavedLayer => {
    const tables = layer.tables();
    tables.forEach((table, number) => {
      const sectionName = `${layer.id}.${number}`;
      if (table.segments.length === 1 && !table.segments[0]!.sealed) {
        const whole = table.savedLater();
        target.section(`segment ${sectionName}.0`, () => serialize({ state: whole().segments[0]! } satisfies SavedSegment));
        target.section(`table ${sectionName}`, () => serialize(whole().table));
        return;
      }
      table.segments.forEach((segment, index) => saveSegment(target, `segment ${sectionName}.${index}`, segment, store));
      // Reading a segment back may wipe the last cell of a string.
      const saved = table.savedState();
      target.section(`table ${sectionName}`, () => serialize(saved));
    });
    const overlays = layer
      .overlays()
      .map(({ layer: { id }, table: { tenant, type }, overlay }) => ({ layer: id, tenant, type, entries: overlay.savedState() }));
    return { id: layer.id, tables: tables.length, names: layer.names.savedState(), overlays };
  });
  target.section('contents', serialize({ paths: state.paths, tree: state.tree, layers } satisfies Contents));
}

function saveSegment(target: CheckpointWriter, name: string, segment: Segment, store: ColumnStore | null): void {
  const file = store?.fileOf(segment) ?? null;
  const toCome = file === null && target.filesToCome ? store?.fileToCome(segment) : null;
  if (toCome) {
    const changes = segment.capture();
    target.section(name, () => {
      segment.release(changes);
      const written = toCome();
      target.file(written);
      return serialize({ file: written, changes } satisfies SavedSegment);
    });
    return;
  }
  if (file === null) {
    const state = segment.savedState();
    target.section(name, () => serialize({ state } satisfies SavedSegment));
    return;
  }
  target.file(file);
  const changes = segment.capture();
  target.section(name, () => {
    segment.release(changes);
    return serialize({ file, changes } satisfies SavedSegment);
  });
}

/** `fill` puts tables and overlays into layers, main first, that stand empty. */
export async function restoreRows(
  source: CheckpointReader,
  storage: RowStorage,
): Promise<
  Pick<Contents, 'paths' | 'tree'> & { names(branch: number): ScopedNames; fill(layers: readonly BranchLayer[]): void }
> {
  const { paths, tree, layers: saved } = read(source, 'contents') as Contents;
  const tables = await Promise.all(
    saved.map((layer) =>
      Promise.all(Array.from({ length: layer.tables }, (_, number) => readTable(source, `${layer.id}.${number}`, storage))),
    ),
  );
  return {
    paths,
    tree,
    names: (branch) => {
      return new ScopedNames(saved.find(({ id }) => id === branch)?.names);
    },
    fill: (layers) => {
      saved.forEach((layer, i) => {
        assert(layers[i]?.id === layer.id, 'a checkpoint has the layers of its branches');
        for (const { state, segments } of tables[i]!) {
          layers[i].adoptTable(Table.fromSaved(state, segments, storage, layer.id));
        }
        adoptOverlays(layers[i], layer);
      });
    },
  };
}

interface ReadTable {
  readonly state: TableState;
  readonly segments: readonly (SegmentState | RestingSegment)[];
}

async function readTable(source: CheckpointReader, sectionName: string, { store }: RowStorage): Promise<ReadTable> {
  const state = read(source, `table ${sectionName}`) as TableState;
  const segments = await Promise.all(
    Array.from({ length: state.segments }, async (_, index): Promise<SegmentState | RestingSegment> => {
      const saved = read(source, `segment ${sectionName}.${index}`) as SavedSegment;
      if ('state' in saved) return index === state.segments - 1 ? detach(saved.state) : saved.state;
      assert(store, 'what rests on files has a store');
      const file: SegmentFile = await store.openFile(saved.file);
      return { file, changes: saved.changes };
    }),
  );
  return { state, segments };
}

/**
 * With arrays of its own: those that were read lie in their section, which would stay in memory beside the copies of the others.
 * A sealed segment needs none, for it copies them anyway.
 */
function detach<T>(state: T): T {
  if (ArrayBuffer.isView(state)) return alone(state as ArrayBufferView as FixedArray) as ArrayBufferView as T;
  if (state === null || typeof state !== 'object') return state;
  const object = state as Record<string, unknown>;
  for (const [name, value] of Object.entries(object)) object[name] = detach(value);
  return state;
}

function adoptOverlays(layer: BranchLayer, saved: SavedLayer): void {
  for (const { layer: lowerId, tenant, type, entries } of saved.overlays) {
    const table = layer.lower.find((lower) => lower.layer.id === lowerId)?.layer.table(tenant, type);
    assert(table, 'an overlay changes a table that was saved');
    layer.adoptOverlay(table, BranchOverlay.fromSaved(entries));
  }
}

function read(source: CheckpointReader, name: string): unknown {
  const bytes = source.section(name);
  assert(bytes, `a checkpoint of rows has a section ${name}`);
  return deserialize(bytes);
}
