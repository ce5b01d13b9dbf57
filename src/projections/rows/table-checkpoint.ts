/**
 * Layers as checkpoint sections: paths and branches, then for each layer its tables, each with its head matter and its
 * segments, and what the layer changed about the tables below it.
 */
import { deserialize, serialize } from 'node:v8';
import { assert } from '../../errors.ts';
import type { SavedBranches } from '../../log/branches.ts';
import type { CheckpointReader, CheckpointWriter } from '../projection.ts';
import type { Layer } from './layer.ts';
import { Overlay } from './overlay.ts';
import type { RowStorage } from './row-storage.ts';
import type { SegmentState } from './segment.ts';
import { Table, type TableState } from './table.ts';

interface Contents {
  readonly paths: readonly (string | null)[];
  readonly tree: SavedBranches;
  readonly layers: readonly SavedLayer[];
}

interface SavedLayer {
  readonly id: number;
  readonly tables: number;
  readonly overlays: readonly { readonly layer: number; readonly type: string; readonly entries: Float64Array }[];
}

export function saveRows(
  target: CheckpointWriter,
  state: Pick<Contents, 'paths' | 'tree'> & { readonly layers: readonly Layer[] },
): void {
  const layers = state.layers.map((layer): SavedLayer => {
    const tables = layer.tables();
    tables.forEach((table, number) => {
      target.section(`table ${layer.id}.${number}`, serialize(table.saved()));
      table.segments.forEach((segment, index) =>
        target.section(`segment ${layer.id}.${number}.${index}`, serialize(segment.saved())),
      );
    });
    const overlays = layer
      .overlays()
      .map((each) => ({ layer: each.layer.id, type: each.table.type, entries: each.overlay.saved() }));
    return { id: layer.id, tables: tables.length, overlays };
  });
  target.section('contents', serialize({ paths: state.paths, tree: state.tree, layers } satisfies Contents));
}

/** `fill` puts tables and overlays into layers, main first, that stand empty. */
export function restoreRows(source: CheckpointReader): Pick<Contents, 'paths' | 'tree'> & {
  fill(layers: readonly Layer[], storage: RowStorage): void;
} {
  const { paths, tree, layers: saved } = read(source, 'contents') as Contents;
  return {
    paths,
    tree,
    fill: (layers, storage) => {
      saved.forEach((layer, i) => {
        assert(layers[i]?.id === layer.id, 'a checkpoint has the layers of its branches');
        fillLayer(layers[i], layer, source, storage);
      });
    },
  };
}

function fillLayer(layer: Layer, saved: SavedLayer, source: CheckpointReader, storage: RowStorage): void {
  for (let number = 0; number < saved.tables; number++) {
    const state = read(source, `table ${layer.id}.${number}`) as TableState;
    const segments = Array.from(
      { length: state.segments },
      (_, index) => read(source, `segment ${layer.id}.${number}.${index}`) as SegmentState,
    );
    layer.adoptTable(Table.restored(state, segments, storage, layer.id));
  }
  for (const { layer: lowerId, type, entries } of saved.overlays) {
    const table = layer.lower.find((lower) => lower.layer.id === lowerId)?.layer.table(type);
    assert(table, 'an overlay changes a table that was saved');
    layer.adoptOverlay(table, Overlay.restored(entries));
  }
}

function read(source: CheckpointReader, name: string): unknown {
  const bytes = source.section(name);
  assert(bytes, `a checkpoint of rows has a section ${name}`);
  return deserialize(bytes);
}
