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

const SAFE = 9_007_199_254_740_991n;
const STREAM_BYTES = 1 << 14;

/** The three hashes of a column; null where no row has a value. */
export type CellHashes = readonly string[] | null;

/** Cells of a column. Codes come with their texts, which any thread can read. */
export type Cells =
  | Exclude<Vector, { kind: 'dict' }>
  | { readonly kind: 'dict'; readonly values: Int32Array; readonly nulls: Uint8Array | null; readonly texts: Texts };

/** Streams over a table. The constructor does all reading. */
export class TableDigest {
  readonly #type: string;
  readonly #rows: RowStreams;
  readonly #columns: readonly { readonly name: string; readonly hashes: () => CellHashes }[];

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
    this.#type = table.type;
    this.#rows = new RowStreams(table, scopes, timeline);
    const own: { readonly name: string; readonly stream: CellStream }[] = [];
    this.#columns = [...table.columnTypes().keys()].sort(compareText).map((name) => {
      const hashes = elsewhere.get(name);
      if (hashes) return { name, hashes };
      const stream = new CellStream();
      own.push({ name, stream });
      return { name, hashes: () => stream.hashes() };
    });
    for (const segment of table.segments) {
      const { remainingRows, length } = keptRows(segment);
      for (const { name, stream } of own) {
        const column = segment.column(name);
        if (column) stream.add(cellsOf(column.vector(segment.length)), column.type, remainingRows, length, this.#rows.count);
      }
      this.#rows.add(segment, remainingRows, length);
      afterSegment();
    }
  }

  end(hash: CanonicalHash): void {
    hash.text(this.#type);
    this.#rows.end(hash);
    for (const { name, hashes } of this.#columns) addHashes(hash, name, hashes());
  }
}

function addHashes(hash: CanonicalHash, name: string, hashes: CellHashes): void {
  if (!hashes) return;
  hash.text(name);
  for (const each of hashes) hash.text(each);
}

/** `texts`: of the dictionary, where the caller has them already. */
export function cellsOf(vector: Vector, texts: (dictionary: ByteDictionary) => Texts = ({ utf8 }) => utf8): Cells {
  if (vector.kind !== 'dict') return vector;
  const { kind, values, nulls, dictionary } = vector;
  assert(dictionary instanceof ByteDictionary, 'stored codes have a dictionary of bytes');
  return { kind, values, nulls, texts: texts(dictionary) };
}

/** Hashes a branch's changes to an inherited table, by position. Rows removed since leave no trace. */
export function hashOverlay(hash: CanonicalHash, table: Table, overlay: BranchOverlay): void {
  hash.text(table.type);
  for (const [row, closing] of overlay.entries()) {
    if (table.segmentOf(row).isRemoved(row & 0xffff)) continue;
    hash.number(table.positionOf(row));
    hash.number(closing);
  }
}

/** Rows of a segment that were not removed; null for all of them. */
export function keptRows(segment: Segment): { readonly remainingRows: Int32Array | null; readonly length: number } {
  const { length } = segment;
  if (segment.removedCount === 0) return { remainingRows: null, length };
  const remainingRows = new Int32Array(length);
  let count = 0;
  for (let row = 0; row < length; row++) if (!segment.isRemoved(row)) remainingRows[count++] = row;
  return { remainingRows, length: count };
}

/** Digests of the fields that every row has. */
class RowStreams {
  readonly #timeline: Timeline;
  readonly #positions = new CanonicalHash(STREAM_BYTES);
  readonly #keyCells = new CellStream();
  readonly #validFrom = new CanonicalHash(STREAM_BYTES);
  readonly #validTo = new Runs<bigint>((value, hash) => hash.i64(value));
  /** Rows that were superseded, and by which position. */
  readonly #closings = new CanonicalHash(STREAM_BYTES);
  readonly #ops = new Runs<number>((op, hash) => hash.byte(op));
  readonly #paths: Runs<string>;
  readonly #provenances: Runs<string>;
  /** Texts of the codes. */
  readonly #pathTexts: readonly string[];
  readonly #provenanceTexts: readonly string[];
  /** Rows so far. */
  count = 0;

  constructor(table: Table, scopes: OrganisationCodes, timeline: Timeline) {
    this.#timeline = timeline;
    // Each is one text, made once: rows share them.
    this.#pathTexts = scopes.paths().map((path) => JSON.stringify(path));
    this.#provenanceTexts = table
      .provenances()
      .map(({ source, method, confidence, derivedFrom }) => JSON.stringify([source, method, confidence, derivedFrom]));
    this.#paths = new Runs<string>((path, hash) => hash.text(path));
    this.#provenances = new Runs<string>((provenance, hash) => hash.text(provenance));
  }

  add(segment: Segment, remainingRows: Int32Array | null, length: number): void {
    this.#addPositions(segment, remainingRows, length);
    const { keys } = segment;
    this.#keyCells.addTexts(keys.offsets, keys.heap, remainingRows, length, this.count);
    let { validFrom } = segment;
    if (!validFrom) {
      this.#timeline.writeTimes((validFrom = new BigInt64Array(segment.length)), segment, null, 0, segment.length, false);
    }
    if (remainingRows) for (let i = 0; i < length; i++) this.#validFrom.i64(validFrom[remainingRows[i]!]!);
    else this.#validFrom.i64s(validFrom, 0, length);
    const { validTo } = segment;
    if (!validTo) this.#validTo.add(FOREVER, length);
    else for (let i = 0; i < length; i++) this.#validTo.add(validTo[remainingRows ? remainingRows[i]! : i]!, 1);
    if (segment.liveCount < length) this.#addClosings(segment, remainingRows, length);
    addCodes(this.#ops, segment.ops, (code) => code, remainingRows, length);
    addCodes(this.#paths, segment.paths, (code) => this.#pathTexts[code]!, remainingRows, length);
    addCodes(this.#provenances, segment.provenances, (code) => this.#provenanceTexts[code]!, remainingRows, length);
    this.count += length;
  }

  end(hash: CanonicalHash): void {
    hash.number(this.count);
    for (const stream of [this.#positions, this.#validFrom, this.#closings]) hash.text(stream.hex());
    for (const runs of [this.#validTo, this.#ops, this.#paths, this.#provenances]) hash.text(runs.hex());
    addHashes(hash, '', this.#keyCells.hashes());
  }

  #addPositions(segment: Segment, remainingRows: Int32Array | null, length: number): void {
    const last = length > 0 ? segment.positionOf(length - 1) : 0;
    if (remainingRows === null && last - segment.positionOf(0) === length - 1) {
      this.#positions.sequence(segment.positionOf(0), length);
    } else for (let i = 0; i < length; i++) this.#positions.number(segment.positionOf(remainingRows ? remainingRows[i]! : i));
  }

  #addClosings(segment: Segment, remainingRows: Int32Array | null, length: number): void {
    for (let i = 0; i < length; i++) {
      const closing = segment.closingOf(remainingRows ? remainingRows[i]! : i);
      if (closing === Infinity) continue;
      this.#closings.number(this.count + i);
      this.#closings.number(closing);
    }
  }
}

/** Two codes may stand for one value. */
function addCodes<T extends number | string>(
  runs: Runs<T>,
  codes: CodeColumn,
  valueOf: (code: number) => T,
  remainingRows: Int32Array | null,
  length: number,
): void {
  const { constant } = codes;
  if (constant !== null) runs.add(valueOf(constant), length);
  else for (let i = 0; i < length; i++) runs.add(valueOf(codes.codeAt(remainingRows ? remainingRows[i]! : i)), 1);
}

/** Values as runs of equal ones. */
class Runs<T extends number | bigint | string> {
  readonly #hash = new CanonicalHash(STREAM_BYTES);
  readonly #write: (value: T, hash: CanonicalHash) => void;
  #value: T | null = null;
  #count = 0;

  constructor(write: (value: T, hash: CanonicalHash) => void) {
    this.#write = write;
  }

  add(value: T, count: number): void {
    if (count === 0) return;
    if (value !== this.#value) this.#flush();
    this.#value = value;
    this.#count += count;
  }

  hex(): string {
    this.#flush();
    return this.#hash.hex();
  }

  #flush(): void {
    if (this.#value === null) return;
    this.#hash.number(this.#count);
    this.#write(this.#value, this.#hash);
    this.#count = 0;
  }
}

/** The cells of a column that hold a value, and which rows these are. */
export class CellStream {
  /** Which rows: runs of first row and count. */
  readonly #present = new CanonicalHash(STREAM_BYTES);
  /** Numbers, bits, instants; of texts and vectors how long they are. */
  readonly #values = new CanonicalHash(STREAM_BYTES);
  readonly #bytes = new CanonicalHash(STREAM_BYTES);
  #first = 0;
  #end = 0;

  add(vector: Cells, type: ColumnType, remainingRows: Int32Array | null, length: number, firstRow: number): void {
    if (vector.kind === 'null') return;
    const { nulls } = vector;
    if (nulls === null && remainingRows === null) {
      this.#mark(firstRow, length);
      return this.#addAll(vector, type, length);
    }
    for (let i = 0; i < length; i++) {
      const row = remainingRows ? remainingRows[i]! : i;
      if (nulls?.[row] === 1) continue;
      this.#mark(firstRow + i, 1);
      this.#addCell(vector, type, row);
    }
  }

  addTexts(offsets: Uint32Array, heap: Uint8Array, remainingRows: Int32Array | null, length: number, firstRow: number): void {
    this.add({ kind: 'text', offsets, heap, nulls: null }, 'string', remainingRows, length, firstRow);
  }

  /** Nothing is added afterwards. */
  hashes(): CellHashes {
    if (this.#end === 0) return null;
    this.#flush();
    return [this.#present, this.#values, this.#bytes].map((stream) => stream.hex());
  }

  #mark(first: number, count: number): void {
    if (count === 0) return;
    if (first !== this.#end || this.#end === 0) {
      this.#flush();
      this.#first = first;
    }
    this.#end = first + count;
  }

  #flush(): void {
    if (this.#end === 0) return;
    this.#present.number(this.#first);
    this.#present.number(this.#end - this.#first);
  }

  #addAll(vector: Exclude<Cells, { kind: 'null' }>, type: ColumnType, length: number): void {
    switch (vector.kind) {
      case 'text': {
        const { offsets, heap } = vector;
        this.#values.lengths(vector, null, length);
        return this.#bytes.raw(heap, offsets[0]!, offsets[length]!);
      }
      case 'dict':
        this.#values.lengths(vector.texts, vector.values, length);
        return this.#bytes.textsOfCodes(vector.texts, vector.values, length);
      case 'i32':
      case 'f64':
        return this.#values.numbers(vector.values, 0, length);
      case 'i64':
        if (type === 'timestamp') return this.#values.i64s(vector.values, 0, length);
        break;
      case 'bool':
        return this.#values.raw(vector.values, 0, length);
      case 'vec':
        break;
      default:
        unreachable(vector);
    }
    for (let row = 0; row < length; row++) this.#addCell(vector, type, row);
  }

  #addCell(vector: Exclude<Cells, { kind: 'null' }>, type: ColumnType, row: number): void {
    switch (vector.kind) {
      case 'text':
        return this.#addText(vector.heap, vector.offsets[row]!, vector.offsets[row + 1]!);
      case 'dict': {
        const { offsets, heap } = vector.texts;
        const code = vector.values[row]!;
        return this.#addText(heap, offsets[code]!, offsets[code + 1]!);
      }
      case 'bool':
        return this.#values.byte(vector.values[row]!);
      case 'vec':
        this.#values.u32(vector.dims);
        return this.#values.numbers(vector.values, row * vector.dims, (row + 1) * vector.dims);
      case 'i32':
      case 'f64':
        return this.#values.number(vector.values[row]!);
      case 'i64': {
        // An integer may rest in any of three widths: an integer that a double holds is written as a double.
        const value = vector.values[row]!;
        if (type === 'timestamp' || value > SAFE || value < -SAFE) this.#values.i64(value);
        else this.#values.number(Number(value));
        return;
      }
      default:
        unreachable(vector);
    }
  }

  #addText(heap: Uint8Array, start: number, end: number): void {
    this.#values.u32(end - start);
    this.#bytes.raw(heap, start, end);
  }
}
