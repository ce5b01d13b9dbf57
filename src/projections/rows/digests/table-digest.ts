/**
 * Canonical dump of a table into a hash: versions in position order, in any layout. Column after column, because a row at a time
 * costs more than everything else that a rebuild does: each column is a stream of its own, over all segments, and the hash is
 * over the streams.
 *
 * - A stream says nothing of segments, widths, dictionaries or codes. Rows that were removed are in none, and rows are
 *   numbered without them.
 * - Fields that are mostly the same from row to row are written as runs that are as long as they can be.
 * - A column without a value in any row leaves nothing: it may not even exist in another layout.
 */
import { assert, unreachable } from '../../../errors.ts';
import type { Vector } from '../../../log/values/columns.ts';
import { FOREVER } from '../../../log/values/timestamp.ts';
import type { Timeline } from '../../../log/values/timeline.ts';
import { type ColumnType, compareText } from '../../../log/values/value.ts';
import { CanonicalHash, type Texts } from '../../canonical-hash.ts';
import { ByteDictionary } from '../cells/byte-dictionary.ts';
import type { CodeColumn } from '../cells/code-column.ts';
import type { BranchOverlay } from '../tables/branch-overlay.ts';
import type { OrganisationCodes } from '../cells/path-codes.ts';
import type { Segment } from '../segments/segment.ts';
import type { Table } from '../tables/table.ts';

const SAFE_INTEGER = 9_007_199_254_740_991n;
const DIGEST_STREAM_BYTES = 1 << 14;

/** The three hashes of a column; null where no row has a value. */
export type CellHashes = readonly string[] | null;

/** Cells of a column. Codes come with their texts, which any thread can read. */
export type Cells =
  | Exclude<Vector, { kind: 'dict' }>
  | { readonly kind: 'dict'; readonly values: Int32Array; readonly nulls: Uint8Array | null; readonly texts: Texts };

/** Streams over a table. The constructor does all reading. */
export class TableDigest {
  readonly #digestedType: string;
  readonly #rowStreams: RowStreams;
  readonly #columnHashes: readonly { readonly name: string; readonly hashes: () => CellHashes }[];

  /**
   * Columns in `elsewhere` are hashed by another thread, whose digests are fetched at the end. `afterSegment` is called while no
   * view of a column is held.
   */
  constructor(
    table: Table,
    scopes: OrganisationCodes,
    timeline: Timeline,
    {
      elsewhere = new Map<string, () => CellHashes>(),
      afterSegment = () => undefined,
    }: { readonly elsewhere?: ReadonlyMap<string, () => CellHashes>; readonly afterSegment?: () => void } = {},
  ) {
    this.#digestedType = table.type;
    this.#rowStreams = new RowStreams(table, scopes, timeline);
    const ownStreams: { readonly name: string; readonly stream: CellStream }[] = [];
    this.#columnHashes = [...table.columnTypes().keys()].sort(compareText).map((name) => {
      const cellHashes = elsewhere.get(name);
      if (cellHashes) return { name, hashes: cellHashes };
      const cellStream = new CellStream();
      ownStreams.push({ name, stream: cellStream });
      return { name, hashes: () => cellStream.hashes() };
    });
    for (const segment of table.segments) {
      const { remainingRows, length } = remainingRowsOf(segment);
      for (const { name, stream: cellStream } of ownStreams) {
        const segmentColumn = segment.column(name);
        if (segmentColumn)
          cellStream.add(
            cellsOf(segmentColumn.vector(segment.length)),
            segmentColumn.type,
            remainingRows,
            length,
            this.#rowStreams.count,
          );
      }
      this.#rowStreams.add(segment, remainingRows, length);
      afterSegment();
    }
  }

  end(tableHash: CanonicalHash): void {
    tableHash.text(this.#digestedType);
    this.#rowStreams.end(tableHash);
    for (const { name, hashes } of this.#columnHashes) addCellHashes(tableHash, name, hashes());
  }
}

function addCellHashes(tableHash: CanonicalHash, name: string, cellHashes: CellHashes): void {
  if (!cellHashes) return;
  tableHash.text(name);
  for (const cellHash of cellHashes) tableHash.text(cellHash);
}

/** `texts`: of the dictionary, where the caller has them already. */
export function cellsOf(cellVector: Vector, texts: (dictionary: ByteDictionary) => Texts = ({ utf8 }) => utf8): Cells {
  if (cellVector.kind !== 'dict') return cellVector;
  const { kind, values, nulls, dictionary } = cellVector;
  assert(dictionary instanceof ByteDictionary, 'stored codes have a dictionary of bytes');
  return { kind, values, nulls, texts: texts(dictionary) };
}

/** Hashes a branch's changes to an inherited table, by position. Rows removed since leave no trace. */
export function hashOverlay(overlayHash: CanonicalHash, table: Table, overlay: BranchOverlay): void {
  overlayHash.text(table.type);
  for (const [row, overlayClosing] of overlay.entries()) {
    if (table.segmentOf(row).isRemoved(row & 0xffff)) continue;
    overlayHash.number(table.positionOf(row));
    overlayHash.number(overlayClosing);
  }
}

/** Rows of a segment that were not removed; null for all of them. */
export function remainingRowsOf(segment: Segment): { readonly remainingRows: Int32Array | null; readonly length: number } {
  const { length } = segment;
  if (segment.removedCount === 0) return { remainingRows: null, length };
  const remainingRows = new Int32Array(length);
  let count = 0;
  for (let row = 0; row < length; row++) if (!segment.isRemoved(row)) remainingRows[count++] = row;
  return { remainingRows, length: count };
}

/** Digests of the fields that every row has. */
class RowStreams {
  readonly #digestTimeline: Timeline;
  readonly #positionsHash = new CanonicalHash(DIGEST_STREAM_BYTES);
  readonly #keyCellStream = new CellStream();
  readonly #validFromHash = new CanonicalHash(DIGEST_STREAM_BYTES);
  readonly #validToRuns = new CodeRuns<bigint>((value, hash) => hash.i64(value));
  /** Rows that were superseded, and by which position. */
  readonly #closingsHash = new CanonicalHash(DIGEST_STREAM_BYTES);
  readonly #opRuns = new CodeRuns<number>((op, hash) => hash.byte(op));
  readonly #pathRuns: CodeRuns<string>;
  readonly #provenanceRuns: CodeRuns<string>;
  /** Texts of the codes. */
  readonly #pathTexts: readonly string[];
  readonly #provenanceTexts: readonly string[];
  /** Rows so far. */
  count = 0;

  constructor(table: Table, scopes: OrganisationCodes, timeline: Timeline) {
    this.#digestTimeline = timeline;
    // Each is one text, made once: rows share them.
    this.#pathTexts = scopes.paths().map((path) => JSON.stringify(path));
    this.#provenanceTexts = table
      .provenances()
      .map(({ source, method, confidence, derivedFrom }) => JSON.stringify([source, method, confidence, derivedFrom]));
    this.#pathRuns = new CodeRuns<string>((path, hash) => hash.text(path));
    this.#provenanceRuns = new CodeRuns<string>((provenance, hash) => hash.text(provenance));
  }

  add(segment: Segment, remainingRows: Int32Array | null, length: number): void {
    this.#addPositions(segment, remainingRows, length);
    const { keys } = segment;
    this.#keyCellStream.addTexts(keys.offsets, keys.heap, remainingRows, length, this.count);
    let { validFrom } = segment;
    if (!validFrom) {
      this.#digestTimeline.writeTimes((validFrom = new BigInt64Array(segment.length)), segment, null, 0, segment.length, false);
    }
    if (remainingRows) for (let i = 0; i < length; i++) this.#validFromHash.i64(validFrom[remainingRows[i]!]!);
    else this.#validFromHash.i64s(validFrom, 0, length);
    const { validTo } = segment;
    if (!validTo) this.#validToRuns.add(FOREVER, length);
    else for (let i = 0; i < length; i++) this.#validToRuns.add(validTo[remainingRows ? remainingRows[i]! : i]!, 1);
    if (segment.liveCount < length) this.#addClosings(segment, remainingRows, length);
    addCodeRuns(this.#opRuns, segment.ops, (streamedCode) => streamedCode, remainingRows, length);
    addCodeRuns(this.#pathRuns, segment.paths, (streamedCode) => this.#pathTexts[streamedCode]!, remainingRows, length);
    addCodeRuns(
      this.#provenanceRuns,
      segment.provenances,
      (streamedCode) => this.#provenanceTexts[streamedCode]!,
      remainingRows,
      length,
    );
    this.count += length;
  }

  end(tableHash: CanonicalHash): void {
    tableHash.number(this.count);
    for (const rowStream of [this.#positionsHash, this.#validFromHash, this.#closingsHash]) tableHash.text(rowStream.hex());
    for (const codeRuns of [this.#validToRuns, this.#opRuns, this.#pathRuns, this.#provenanceRuns])
      tableHash.text(codeRuns.hex());
    addCellHashes(tableHash, '', this.#keyCellStream.hashes());
  }

  #addPositions(segment: Segment, remainingRows: Int32Array | null, length: number): void {
    const lastPosition = length > 0 ? segment.positionOf(length - 1) : 0;
    if (remainingRows === null && lastPosition - segment.positionOf(0) === length - 1) {
      this.#positionsHash.sequence(segment.positionOf(0), length);
    } else for (let i = 0; i < length; i++) this.#positionsHash.number(segment.positionOf(remainingRows ? remainingRows[i]! : i));
  }

  #addClosings(segment: Segment, remainingRows: Int32Array | null, length: number): void {
    for (let i = 0; i < length; i++) {
      const rowClosing = segment.closingOf(remainingRows ? remainingRows[i]! : i);
      if (rowClosing === Infinity) continue;
      this.#closingsHash.number(this.count + i);
      this.#closingsHash.number(rowClosing);
    }
  }
}

/** Two codes may stand for one value. */
function addCodeRuns<T extends number | string>(
  codeRuns: CodeRuns<T>,
  rowCodes: CodeColumn,
  valueOf: (code: number) => T,
  remainingRows: Int32Array | null,
  length: number,
): void {
  const { constant } = rowCodes;
  if (constant !== null) codeRuns.add(valueOf(constant), length);
  else for (let i = 0; i < length; i++) codeRuns.add(valueOf(rowCodes.codeAt(remainingRows ? remainingRows[i]! : i)), 1);
}

/** Values as runs of equal ones. */
class CodeRuns<T extends number | bigint | string> {
  readonly #runsHash = new CanonicalHash(DIGEST_STREAM_BYTES);
  readonly #writeRunValue: (value: T, hash: CanonicalHash) => void;
  #runValue: T | null = null;
  #runCount = 0;

  constructor(writeRunValue: (value: T, hash: CanonicalHash) => void) {
    this.#writeRunValue = writeRunValue;
  }

  add(runValue: T, runCount: number): void {
    if (runCount === 0) return;
    if (runValue !== this.#runValue) this.#flushRun();
    this.#runValue = runValue;
    this.#runCount += runCount;
  }

  hex(): string {
    this.#flushRun();
    return this.#runsHash.hex();
  }

  #flushRun(): void {
    if (this.#runValue === null) return;
    this.#runsHash.number(this.#runCount);
    this.#writeRunValue(this.#runValue, this.#runsHash);
    this.#runCount = 0;
  }
}

/** The cells of a column that hold a value, and which rows these are. */
export class CellStream {
  /** Which rows: runs of first row and count. */
  readonly #presentHash = new CanonicalHash(DIGEST_STREAM_BYTES);
  /** Numbers, bits, instants; of texts and vectors how long they are. */
  readonly #cellValuesHash = new CanonicalHash(DIGEST_STREAM_BYTES);
  readonly #cellTextsHash = new CanonicalHash(DIGEST_STREAM_BYTES);
  #firstPresentRow = 0;
  #presentEnd = 0;

  add(streamedCells: Cells, type: ColumnType, remainingRows: Int32Array | null, length: number, firstRow: number): void {
    if (streamedCells.kind === 'null') return;
    const { nulls } = streamedCells;
    if (nulls === null && remainingRows === null) {
      this.#markPresent(firstRow, length);
      return this.#addAllCells(streamedCells, type, length);
    }
    for (let i = 0; i < length; i++) {
      const row = remainingRows ? remainingRows[i]! : i;
      if (nulls?.[row] === 1) continue;
      this.#markPresent(firstRow + i, 1);
      this.#addCell(streamedCells, type, row);
    }
  }

  addTexts(offsets: Uint32Array, heap: Uint8Array, remainingRows: Int32Array | null, length: number, firstRow: number): void {
    this.add({ kind: 'text', offsets, heap, nulls: null }, 'string', remainingRows, length, firstRow);
  }

  /** Nothing is added afterwards. */
  hashes(): CellHashes {
    if (this.#presentEnd === 0) return null;
    this.#flushPresentRun();
    return [this.#presentHash, this.#cellValuesHash, this.#cellTextsHash].map((cellHash) => cellHash.hex());
  }

  #markPresent(firstPresent: number, presentCount: number): void {
    if (presentCount === 0) return;
    if (firstPresent !== this.#presentEnd || this.#presentEnd === 0) {
      this.#flushPresentRun();
      this.#firstPresentRow = firstPresent;
    }
    this.#presentEnd = firstPresent + presentCount;
  }

  #flushPresentRun(): void {
    if (this.#presentEnd === 0) return;
    this.#presentHash.number(this.#firstPresentRow);
    this.#presentHash.number(this.#presentEnd - this.#firstPresentRow);
  }

  #addAllCells(streamedCells: Exclude<Cells, { kind: 'null' }>, type: ColumnType, length: number): void {
    switch (streamedCells.kind) {
      case 'text': {
        const { offsets, heap } = streamedCells;
        this.#cellValuesHash.lengths(streamedCells, null, length);
        return this.#cellTextsHash.raw(heap, offsets[0]!, offsets[length]!);
      }
      case 'dict':
        this.#cellValuesHash.lengths(streamedCells.texts, streamedCells.values, length);
        return this.#cellTextsHash.textsOfCodes(streamedCells.texts, streamedCells.values, length);
      case 'i32':
      case 'f64':
        return this.#cellValuesHash.numbers(streamedCells.values, 0, length);
      case 'i64':
        if (type === 'timestamp') return this.#cellValuesHash.i64s(streamedCells.values, 0, length);
        break;
      case 'bool':
        return this.#cellValuesHash.raw(streamedCells.values, 0, length);
      case 'vec':
        break;
      default:
        unreachable(streamedCells);
    }
    for (let row = 0; row < length; row++) this.#addCell(streamedCells, type, row);
  }

  #addCell(streamedCells: Exclude<Cells, { kind: 'null' }>, type: ColumnType, row: number): void {
    switch (streamedCells.kind) {
      case 'text':
        return this.#addText(streamedCells.heap, streamedCells.offsets[row]!, streamedCells.offsets[row + 1]!);
      case 'dict': {
        const { offsets, heap } = streamedCells.texts;
        const textCode = streamedCells.values[row]!;
        return this.#addText(heap, offsets[textCode]!, offsets[textCode + 1]!);
      }
      case 'bool':
        return this.#cellValuesHash.byte(streamedCells.values[row]!);
      case 'vec':
        this.#cellValuesHash.u32(streamedCells.dims);
        return this.#cellValuesHash.numbers(streamedCells.values, row * streamedCells.dims, (row + 1) * streamedCells.dims);
      case 'i32':
      case 'f64':
        return this.#cellValuesHash.number(streamedCells.values[row]!);
      case 'i64': {
        // An integer may rest in any of three widths: an integer that a double holds is written as a double.
        const i64Cell = streamedCells.values[row]!;
        if (type === 'timestamp' || i64Cell > SAFE_INTEGER || i64Cell < -SAFE_INTEGER) this.#cellValuesHash.i64(i64Cell);
        else this.#cellValuesHash.number(Number(i64Cell));
        return;
      }
      default:
        unreachable(streamedCells);
    }
  }

  #addText(heap: Uint8Array, start: number, end: number): void {
    this.#cellValuesHash.u32(end - start);
    this.#cellTextsHash.raw(heap, start, end);
  }
}
