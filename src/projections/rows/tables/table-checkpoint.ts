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

interface RowsContents {
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
  rowsCheckpoint: CheckpointWriter,
  rowsContents: Pick<RowsContents, 'paths' | 'tree'> & { readonly layers: readonly BranchLayer[] },
  store: ColumnStore | null,
): void {
  const savedLayers = rowsContents.layers.map((branchLayer): SavedLayer => {
    const layerTables = branchLayer.tables();
    layerTables.forEach((savedTable, tableNumber) => {
      const sectionName = `${branchLayer.id}.${tableNumber}`;
      if (savedTable.segments.length === 1 && !savedTable.segments[0]!.sealed) {
        const wholeTable = savedTable.savedLater();
        rowsCheckpoint.section(`segment ${sectionName}.0`, () =>
          serialize({ state: wholeTable().segments[0]! } satisfies SavedSegment),
        );
        rowsCheckpoint.section(`table ${sectionName}`, () => serialize(wholeTable().table));
        return;
      }
      savedTable.segments.forEach((segment, index) =>
        saveSegmentSection(rowsCheckpoint, `segment ${sectionName}.${index}`, segment, store),
      );
      // Reading a segment back may wipe the last cell of a string.
      const savedState = savedTable.savedState();
      rowsCheckpoint.section(`table ${sectionName}`, () => serialize(savedState));
    });
    const savedOverlays = branchLayer
      .overlays()
      .map(({ layer: { id }, table: { tenant, type }, overlay }) => ({ layer: id, tenant, type, entries: overlay.savedState() }));
    return { id: branchLayer.id, tables: layerTables.length, names: branchLayer.names.savedState(), overlays: savedOverlays };
  });
  rowsCheckpoint.section(
    'contents',
    serialize({ paths: rowsContents.paths, tree: rowsContents.tree, layers: savedLayers } satisfies RowsContents),
  );
}

function saveSegmentSection(
  rowsCheckpoint: CheckpointWriter,
  sectionName: string,
  segment: Segment,
  store: ColumnStore | null,
): void {
  const segmentFileName = store?.fileOf(segment) ?? null;
  const fileToCome = segmentFileName === null && rowsCheckpoint.filesToCome ? store?.fileToCome(segment) : null;
  if (fileToCome) {
    const capturedChanges = segment.capture();
    rowsCheckpoint.section(sectionName, () => {
      segment.release(capturedChanges);
      const writtenFile = fileToCome();
      rowsCheckpoint.file(writtenFile);
      return serialize({ file: writtenFile, changes: capturedChanges } satisfies SavedSegment);
    });
    return;
  }
  if (segmentFileName === null) {
    const segmentState = segment.savedState();
    rowsCheckpoint.section(sectionName, () => serialize({ state: segmentState } satisfies SavedSegment));
    return;
  }
  rowsCheckpoint.file(segmentFileName);
  const changes = segment.capture();
  rowsCheckpoint.section(sectionName, () => {
    segment.release(changes);
    return serialize({ file: segmentFileName, changes } satisfies SavedSegment);
  });
}

/** `fill` puts tables and overlays into layers, main first, that stand empty. */
export async function restoreRows(
  rowsCheckpoint: CheckpointReader,
  rowStorage: RowStorage,
): Promise<
  Pick<RowsContents, 'paths' | 'tree'> & { names(branch: number): ScopedNames; fill(layers: readonly BranchLayer[]): void }
> {
  const { paths, tree, layers: savedLayers } = readRowsSection(rowsCheckpoint, 'contents') as RowsContents;
  const savedTables = await Promise.all(
    savedLayers.map((savedLayer) =>
      Promise.all(
        Array.from({ length: savedLayer.tables }, (_, tableNumber) =>
          readSavedTable(rowsCheckpoint, `${savedLayer.id}.${tableNumber}`, rowStorage),
        ),
      ),
    ),
  );
  return {
    paths,
    tree,
    names: (branch) => {
      return new ScopedNames(savedLayers.find(({ id }) => id === branch)?.names);
    },
    fill: (layers) => {
      savedLayers.forEach((layer, i) => {
        assert(layers[i]?.id === layer.id, 'a checkpoint has the layers of its branches');
        for (const { state, segments } of savedTables[i]!) {
          layers[i].adoptTable(Table.fromSaved(state, segments, rowStorage, layer.id));
        }
        adoptSavedOverlays(layers[i], layer);
      });
    },
  };
}

interface RestoredTable {
  readonly state: TableState;
  readonly segments: readonly (SegmentState | RestingSegment)[];
}

async function readSavedTable(
  rowsCheckpoint: CheckpointReader,
  sectionName: string,
  { store }: RowStorage,
): Promise<RestoredTable> {
  const tableState = readRowsSection(rowsCheckpoint, `table ${sectionName}`) as TableState;
  const savedSegments = await Promise.all(
    Array.from({ length: tableState.segments }, async (_, index): Promise<SegmentState | RestingSegment> => {
      const savedSegment = readRowsSection(rowsCheckpoint, `segment ${sectionName}.${index}`) as SavedSegment;
      if ('state' in savedSegment)
        return index === tableState.segments - 1 ? detachSegmentState(savedSegment.state) : savedSegment.state;
      assert(store, 'what rests on files has a store');
      const segmentFile: SegmentFile = await store.openFile(savedSegment.file);
      return { file: segmentFile, changes: savedSegment.changes };
    }),
  );
  return { state: tableState, segments: savedSegments };
}

/**
 * With arrays of its own: those that were read lie in their section, which would stay in memory beside the copies of the others.
 * A sealed segment needs none, for it copies them anyway.
 */
function detachSegmentState<T>(savedState: T): T {
  if (ArrayBuffer.isView(savedState)) return alone(savedState as ArrayBufferView as FixedArray) as ArrayBufferView as T;
  if (savedState === null || typeof savedState !== 'object') return savedState;
  const stateObject = savedState as Record<string, unknown>;
  for (const [memberName, memberState] of Object.entries(stateObject)) stateObject[memberName] = detachSegmentState(memberState);
  return savedState;
}

function adoptSavedOverlays(layer: BranchLayer, savedLayer: SavedLayer): void {
  for (const { layer: lowerId, tenant, type, entries } of savedLayer.overlays) {
    const lowerTable = layer.lower.find((lowerLayer) => lowerLayer.layer.id === lowerId)?.layer.table(tenant, type);
    assert(lowerTable, 'an overlay changes a table that was saved');
    layer.adoptOverlay(lowerTable, BranchOverlay.fromSaved(entries));
  }
}

function readRowsSection(rowsCheckpoint: CheckpointReader, sectionName: string): unknown {
  const sectionBytes = rowsCheckpoint.section(sectionName);
  assert(sectionBytes, `a checkpoint of rows has a section ${sectionName}`);
  return deserialize(sectionBytes);
}
