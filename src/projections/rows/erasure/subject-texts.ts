/** Reads keys and texts of versions, on whatever branch they were written: an erasure needs them before they go. */
import { assert } from '../../../errors.ts';
import type { Vector } from '../../../log/values/columns.ts';
import { type ErasedVersions, tenantOfErased } from '../../../log/entries/entry.ts';
import { type ColumnType, holdsTexts } from '../../../log/values/value.ts';
import { cellAt } from '../../../log/values/vector-builder.ts';
import type { BranchLayer } from '../tables/branch-layer.ts';
import { NO_ROW } from '../segments/segment.ts';
import { type BytesFor, sameBytes } from '../segments/segment-state.ts';
import type { Table } from '../tables/table.ts';
import type { LettersInARow } from '../cells/text-beginnings.ts';

export interface TextSink {
  key(text: string): void;
  /** A cell of a string or JSON column. */
  cell(text: string): void;
  /** Texts that keys, and cells, must occur in: a column whose texts begin otherwise is skipped. Null: reports all keys. */
  readonly keysIn: LettersInARow | null;
  readonly cellsIn: LettersInARow;
  /** Whether a cell with this text must be reported: a column without one is not read. */
  concerns(text: string): boolean;
}

/** Texts of a dictionary that are looked at in a step. */
const LOOKED_AT = 1_024;

/** A step is one column of one segment, and the time of reading it where it rests. */
export function* textsOf(
  versions: readonly ErasedVersions[],
  layers: readonly BranchLayer[],
  textSink: TextSink,
): Generator<undefined, void> {
  const bytes = sameBytes();
  for (const { type, paths, positions } of versions) {
    for (const layer of layers) {
      const table = layer.table(tenantOfErased({ paths }), type);
      if (!table) continue;
      const dictionaries = new Dictionaries(table, textSink);
      for (const rows of bySegment(positions, table)) yield* textsOfRows(rows, table, textSink, dictionaries, bytes);
    }
  }
}

/** Every text in cells of columns of texts and JSON, with the position of its version. A step is one column of one segment. */
export function* cellsOf(
  versions: readonly ErasedVersions[],
  layers: readonly BranchLayer[],
  say: (text: string, position: number) => void,
): Generator<undefined, void> {
  const bytes = sameBytes();
  for (const { type, paths, positions } of versions) {
    for (const layer of layers) {
      const table = layer.table(tenantOfErased({ paths }), type);
      if (!table) continue;
      for (const rows of bySegment(positions, table)) {
        const { cells } = table.segmentOf(rows[0]!);
        for (const name of cells.names()) {
          const { type: column } = table.columnTypes().get(name)!;
          if (!holdsTexts(column)) continue;
          const vector = cells.glance(name, bytes);
          for (const row of vector ? rows : []) {
            const cell = cellAt(vector!, column, row & 0xffff);
            const position = table.positionOf(row);
            if (typeof cell === 'string') for (const text of column === 'json' ? textsInJson(cell) : [cell]) say(text, position);
          }
          yield;
        }
      }
    }
  }
}

function* textsOfRows(
  rows: readonly number[],
  table: Table,
  textSink: TextSink,
  dictionaries: Dictionaries,
  bytes: BytesFor,
): Generator<undefined, void> {
  const { cells } = table.segmentOf(rows[0]!);
  // A view is good until others have their turn.
  if (textSink.keysIn?.mayHold(cells.beginnings(null)) !== false) {
    tell(rows, cells.glance(null, bytes)!, 'string', (text) => textSink.key(text));
    yield;
  }
  for (const name of cells.names()) {
    const { type } = table.columnTypes().get(name)!;
    if (type !== 'string' && type !== 'json') continue;
    if (!(cells.isCoded(name) ? yield* dictionaries.concern(name) : textSink.cellsIn.mayHold(cells.beginnings(name)))) continue;
    tell(rows, cells.glance(name, bytes)!, type, (text) => textSink.cell(text));
    yield;
  }
}

/** Texts in a JSON text, however deep they lie; names of members are not among them. */
function textsInJson(json: string): readonly string[] {
  const jsonTexts: string[] = [];
  const left: unknown[] = [parseOrText(json)];
  while (left.length > 0) {
    const value = left.pop();
    if (typeof value === 'string') jsonTexts.push(value);
    else if (typeof value === 'object' && value !== null) for (const inner of Object.values(value)) left.push(inner);
  }
  return jsonTexts;
}

function parseOrText(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return json;
  }
}

function tell(rows: readonly number[], vector: Vector, type: ColumnType, say: (text: string) => void): void {
  for (const row of rows) {
    const cell = cellAt(vector, type, row & 0xffff);
    if (typeof cell === 'string') say(cell);
  }
}

/** Columns whose dictionary has a text that must be reported. */
class Dictionaries {
  readonly #table: Table;
  readonly #sink: TextSink;
  /** Texts examined that concern no erasure; Infinity once one does. */
  readonly #looked = new Map<string, number>();

  constructor(table: Table, textSink: TextSink) {
    this.#table = table;
    this.#sink = textSink;
  }

  *concern(name: string): Generator<undefined, boolean> {
    const dictionary = this.#table.dictionaryOf(name);
    assert(dictionary, 'codes have a dictionary');
    for (let code = this.#looked.get(name) ?? 0; code < dictionary.size; code++) {
      this.#looked.set(name, code + 1);
      if (this.#sink.concerns(dictionary.text(code))) this.#looked.set(name, Infinity);
      if (this.#looked.get(name) === Infinity) break;
      if (code % LOOKED_AT === LOOKED_AT - 1) yield;
    }
    return this.#looked.get(name) === Infinity;
  }
}

/** Rows of versions at these positions, ascending, that stand. */
function* bySegment(positions: readonly number[], table: Table): Generator<number[], void> {
  let rows: number[] = [];
  for (const position of positions) {
    const row = table.versionAt(position);
    if (row === NO_ROW) continue;
    if (rows.length > 0 && rows[0]! >>> 16 !== row >>> 16) {
      yield rows;
      rows = [];
    }
    rows.push(row);
  }
  if (rows.length > 0) yield rows;
}
