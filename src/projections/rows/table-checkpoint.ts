/** Tables as checkpoint sections: the paths and names, then for each table its head matter and its segments. */
import { deserialize, serialize } from 'node:v8';
import { assert } from '../../errors.ts';
import type { CheckpointReader, CheckpointWriter } from '../projection.ts';
import type { Timeline } from '../../log/timeline.ts';
import { Scopes } from './scopes.ts';
import type { SegmentState } from './segment.ts';
import { Table, type TableState } from './table.ts';

interface Contents {
  readonly paths: readonly (string | null)[];
  readonly tables: number;
}

export function saveTables(target: CheckpointWriter, scopes: Scopes, tables: readonly Table[]): void {
  target.section('contents', serialize({ paths: scopes.paths(), tables: tables.length } satisfies Contents));
  tables.forEach((table, number) => {
    target.section(`table ${number}`, serialize(table.saved()));
    table.segments.forEach((segment, index) => target.section(`segment ${number}.${index}`, serialize(segment.saved())));
  });
}

export function restoreTables(source: CheckpointReader, timeline: Timeline): { scopes: Scopes; tables: Table[] } {
  const contents = read(source, 'contents') as Contents;
  const scopes = new Scopes();
  for (const path of contents.paths) scopes.encode(path);
  const tables = Array.from({ length: contents.tables }, (_, number) => {
    const state = read(source, `table ${number}`) as TableState;
    const segments = Array.from(
      { length: state.segments },
      (_, index) => read(source, `segment ${number}.${index}`) as SegmentState,
    );
    return Table.restored(state, segments, timeline);
  });
  return { scopes, tables };
}

function read(source: CheckpointReader, name: string): unknown {
  const bytes = source.section(name);
  assert(bytes, `a checkpoint of rows has a section ${name}`);
  return deserialize(bytes);
}
