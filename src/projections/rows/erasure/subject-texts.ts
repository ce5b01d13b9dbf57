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
const CODES_A_STEP = 1_024;

/** A step is one column of one segment, and the time of reading it where it rests. */
export function* textsOf(
  versions: readonly ErasedVersions[],
  layers: readonly BranchLayer[],
  textSink: TextSink,
): Generator<undefined, void> {
  const textBuffers = sameBytes();
  for (const { type, paths, positions } of versions) {
    for (const branchLayer of layers) {
      const erasedTable = branchLayer.table(tenantOfErased({ paths }), type);
      if (!erasedTable) continue;
      const dictionaries = new ConcernedDictionaries(erasedTable, textSink);
      for (const erasedRows of erasedRowsBySegment(positions, erasedTable))
        yield* textsOfErasedRows(erasedRows, erasedTable, textSink, dictionaries, textBuffers);
    }
  }
}

/** Every text in cells of columns of texts and JSON, with the position of its version. A step is one column of one segment. */
export function* cellsOf(
  versions: readonly ErasedVersions[],
  layers: readonly BranchLayer[],
  sayErasedText: (erasedText: string, position: number) => void,
): Generator<undefined, void> {
  const cellBuffers = sameBytes();
  for (const { type, paths, positions } of versions) {
    for (const branchLayer of layers) {
      const erasedTable = branchLayer.table(tenantOfErased({ paths }), type);
      if (!erasedTable) continue;
      for (const erasedRows of erasedRowsBySegment(positions, erasedTable)) {
        const { cells } = erasedTable.segmentOf(erasedRows[0]!);
        for (const name of cells.names()) {
          const { type: erasedColumnType } = erasedTable.columnTypes().get(name)!;
          if (!holdsTexts(erasedColumnType)) continue;
          const erasedVector = cells.glance(name, cellBuffers);
          for (const erasedRow of erasedVector ? erasedRows : []) {
            const erasedCell = cellAt(erasedVector!, erasedColumnType, erasedRow & 0xffff);
            const position = erasedTable.positionOf(erasedRow);
            if (typeof erasedCell === 'string')
              for (const erasedText of erasedColumnType === 'json' ? textsInJson(erasedCell) : [erasedCell])
                sayErasedText(erasedText, position);
          }
          yield;
        }
      }
    }
  }
}

function* textsOfErasedRows(
  erasedRows: readonly number[],
  table: Table,
  textSink: TextSink,
  dictionaries: ConcernedDictionaries,
  bytes: BytesFor,
): Generator<undefined, void> {
  const { cells } = table.segmentOf(erasedRows[0]!);
  // A view is good until others have their turn.
  if (textSink.keysIn?.mayHold(cells.beginnings(null)) !== false) {
    tellTextCells(erasedRows, cells.glance(null, bytes)!, 'string', (text) => textSink.key(text));
    yield;
  }
  for (const textColumn of cells.names()) {
    const { type } = table.columnTypes().get(textColumn)!;
    if (type !== 'string' && type !== 'json') continue;
    if (
      !(cells.isCoded(textColumn)
        ? yield* dictionaries.concern(textColumn)
        : textSink.cellsIn.mayHold(cells.beginnings(textColumn)))
    )
      continue;
    tellTextCells(erasedRows, cells.glance(textColumn, bytes)!, type, (text) => textSink.cell(text));
    yield;
  }
}

/** Texts in a JSON text, however deep they lie; names of members are not among them. */
function textsInJson(json: string): readonly string[] {
  const jsonTexts: string[] = [];
  const jsonNodes: unknown[] = [parseOrText(json)];
  while (jsonNodes.length > 0) {
    const jsonNode = jsonNodes.pop();
    if (typeof jsonNode === 'string') jsonTexts.push(jsonNode);
    else if (typeof jsonNode === 'object' && jsonNode !== null)
      for (const jsonMember of Object.values(jsonNode)) jsonNodes.push(jsonMember);
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

function tellTextCells(erasedRows: readonly number[], vector: Vector, type: ColumnType, sayText: (text: string) => void): void {
  for (const erasedRow of erasedRows) {
    const textCell = cellAt(vector, type, erasedRow & 0xffff);
    if (typeof textCell === 'string') sayText(textCell);
  }
}

/** Columns whose dictionary has a text that must be reported. */
class ConcernedDictionaries {
  readonly #dictionaryTable: Table;
  readonly #sink: TextSink;
  /** Texts examined that concern no erasure; Infinity once one does. */
  readonly #codesLookedAt = new Map<string, number>();

  constructor(table: Table, textSink: TextSink) {
    this.#dictionaryTable = table;
    this.#sink = textSink;
  }

  *concern(columnName: string): Generator<undefined, boolean> {
    const columnDictionary = this.#dictionaryTable.dictionaryOf(columnName);
    assert(columnDictionary, 'codes have a dictionary');
    for (let code = this.#codesLookedAt.get(columnName) ?? 0; code < columnDictionary.size; code++) {
      this.#codesLookedAt.set(columnName, code + 1);
      if (this.#sink.concerns(columnDictionary.text(code))) this.#codesLookedAt.set(columnName, Infinity);
      if (this.#codesLookedAt.get(columnName) === Infinity) break;
      if (code % CODES_A_STEP === CODES_A_STEP - 1) yield;
    }
    return this.#codesLookedAt.get(columnName) === Infinity;
  }
}

/** Rows of versions at these positions, ascending, that stand. */
function* erasedRowsBySegment(positions: readonly number[], table: Table): Generator<number[], void> {
  let segmentRows: number[] = [];
  for (const position of positions) {
    const erasedRow = table.versionAt(position);
    if (erasedRow === NO_ROW) continue;
    if (segmentRows.length > 0 && segmentRows[0]! >>> 16 !== erasedRow >>> 16) {
      yield segmentRows;
      segmentRows = [];
    }
    segmentRows.push(erasedRow);
  }
  if (segmentRows.length > 0) yield segmentRows;
}
