/**
 * Reads the sections of `section-sealer.ts`, from the schema on. Rows whose key is destroyed come without cells: their index and
 * leaf hash are left. Malformed bytes never allocate more memory than they account for.
 */
import { type ByteReader, malformedError } from '../bytes/byte-stream.ts';
import { checkBits, checkLayout, checkOffsets, kinds } from './column-codec.ts';
import type { NamedColumn, RowBatch, Vector } from '../values/columns.ts';
import { keyColumns, SALT_BYTES, saltsOf } from './row-leaf.ts';
import { SECTION_NONCE_BYTES, SectionMemory } from './section-memory.ts';
import { HASH_BYTES, hexOf } from '../bytes/sha256.ts';
import type { SubjectKeys } from '../keys/subject-keys.ts';
import { type ColumnShape, cellBytesMin, KEY_ID_BYTES, SEED_BYTES, keyNames, spreadSalts, wordsOf } from './subject-sections.ts';
import { type ColumnType, columnTypes } from '../values/value.ts';

export interface OpenedSections {
  readonly keys: RowBatch;
  readonly cells: RowBatch;
  /** 16 bytes of each row; zeros where a row is erased. */
  readonly salts: Uint8Array;
  /** Rows that are sealed by subject, and the leaf hashes that the body states for them, in the same order. */
  readonly sealed: { readonly rows: Uint32Array; readonly hashes: Uint8Array };
  /** Leaf hashes of the rows whose key is destroyed, ascending. */
  readonly erased: ReadonlyMap<number, Uint8Array>;
}

interface SectionTables {
  readonly shapes: readonly ColumnShape[];
  readonly nonce: Uint8Array;
  readonly count: number;
  /** 16 bytes each. */
  readonly ids: Uint8Array;
}

/** Ids of the keys that open the sections of a body, 16 bytes each. */
export function readKeyIds(sectionReader: ByteReader): Uint8Array {
  const { ids: subjectKeyIds } = readSectionTables(sectionReader);
  checkDistinctKeyIds(subjectKeyIds);
  return subjectKeyIds;
}

/** Which key each row of a body lies under, as the body says. Opens nothing. */
export class RowKeys {
  readonly #subjectKeyIds: Uint8Array;
  /** By row: the number of its section, counted from 1; 0 without one. */
  readonly #sectionOfRow: Uint32Array;

  private constructor(subjectKeyIds: Uint8Array, sectionOfRow: Uint32Array) {
    this.#subjectKeyIds = subjectKeyIds;
    this.#sectionOfRow = sectionOfRow;
  }

  static read(sectionReader: ByteReader, rowCount: number): RowKeys {
    const { count: sectionCount, ids: subjectKeyIds } = readSectionTables(sectionReader);
    const rowsOfSections = readSectionNumbers(sectionReader, sectionCount);
    readSectionNumbers(sectionReader, sectionCount);
    const sealedRows = readSectionRows(sectionReader, rowsOfSections, new Uint8Array(rowCount));
    const sectionOfRow = new Uint32Array(rowCount);
    for (let sectionIndex = 0, sealedIndex = 0; sectionIndex < sectionCount; sectionIndex++)
      for (const sectionEnd = sealedIndex + rowsOfSections[sectionIndex]!; sealedIndex < sectionEnd; sealedIndex++)
        sectionOfRow[sealedRows[sealedIndex]!] = sectionIndex + 1;
    return new RowKeys(subjectKeyIds, sectionOfRow);
  }

  /** Keys of rows without a subject. */
  static none(rowCount: number): RowKeys {
    return new RowKeys(new Uint8Array(0), new Uint32Array(rowCount));
  }

  /** Joins the keys of several parts, their sections numbered on. */
  static join(keysOfParts: readonly RowKeys[]): RowKeys {
    const joinedSections: number[] = [];
    let earlierSections = 0;
    for (const partKeys of keysOfParts) {
      for (const section of partKeys.#sectionOfRow) joinedSections.push(section === 0 ? 0 : earlierSections + section);
      earlierSections += partKeys.#subjectKeyIds.length / KEY_ID_BYTES;
    }
    return new RowKeys(
      Uint8Array.from(Buffer.concat(keysOfParts.map((part) => part.#subjectKeyIds))),
      Uint32Array.from(joinedSections),
    );
  }

  /** 32 hex digits; null where the row is not sealed by subject. */
  keyIdOf(row: number): string | null {
    const sectionNumber = this.#sectionOfRow[row] ?? 0;
    return sectionNumber === 0
      ? null
      : hexOf(this.#subjectKeyIds.subarray((sectionNumber - 1) * KEY_ID_BYTES, sectionNumber * KEY_ID_BYTES));
  }
}

export function openSections(
  sectionReader: ByteReader,
  rowCount: number,
  subjectOpener: Pick<SubjectKeys, 'copyKey'>,
): OpenedSections {
  const sectionTables = readSectionTables(sectionReader);
  checkDistinctKeyIds(sectionTables.ids);
  const rowsOfSections = readSectionNumbers(sectionReader, sectionTables.count);
  const bytesOfSections = readSectionNumbers(sectionReader, sectionTables.count);
  const isRowTaken = new Uint8Array(rowCount);
  const sealedRows = readSectionRows(sectionReader, rowsOfSections, isRowTaken);
  const sealedHashes = { rows: sealedRows, hashes: sectionReader.raw(sealedRows.length * HASH_BYTES) };
  const sectionMemory = SectionMemory.acquire(sectionReader.left + sealedRows.length * SALT_BYTES);
  try {
    return new SectionOpening(sectionReader, sectionTables, sectionMemory).open(
      rowsOfSections,
      bytesOfSections,
      sealedHashes,
      isRowTaken,
      subjectOpener,
    );
  } finally {
    sectionMemory.giveBack();
  }
}

function readSectionTables(sectionReader: ByteReader): SectionTables {
  const columnShapes: ColumnShape[] = keyColumns.map(({ name: columnName, type: columnType }) => ({
    name: columnName,
    type: columnType,
    ...readColumnLayout(sectionReader, columnType),
  }));
  const columnNames = new Set<string>();
  for (let columnsLeft = sectionReader.count(6); columnsLeft > 0; columnsLeft--) {
    const columnName = sectionReader.text();
    if (columnNames.has(columnName)) throw malformedError('a column twice');
    columnNames.add(columnName);
    const columnType = columnTypes[sectionReader.u8()];
    if (columnType === undefined) throw malformedError('an unknown column type');
    columnShapes.push({ name: columnName, type: columnType, ...readColumnLayout(sectionReader, columnType) });
  }
  const sectionNonce = sectionReader.raw(SECTION_NONCE_BYTES);
  const sectionCount = sectionReader.count(KEY_ID_BYTES + 8);
  if (sectionCount === 0) throw malformedError('rows sealed by subject without a section');
  return { shapes: columnShapes, nonce: sectionNonce, count: sectionCount, ids: sectionReader.raw(sectionCount * KEY_ID_BYTES) };
}

function checkDistinctKeyIds(subjectKeyIds: Uint8Array): void {
  if (new Set(keyNames(subjectKeyIds)).size * KEY_ID_BYTES < subjectKeyIds.length)
    throw malformedError('two sections under one key');
}

function readColumnLayout(sectionReader: ByteReader, type: ColumnType): Pick<ColumnShape, 'layout' | 'dims'> {
  const columnLayout = sectionReader.u8();
  if (columnLayout !== kinds.null) checkLayout(type, columnLayout);
  const vectorDims = columnLayout === kinds.vec ? sectionReader.u32() : 0;
  if (columnLayout === kinds.vec && vectorDims === 0) throw malformedError('vectors of no dimension');
  return { layout: columnLayout, dims: vectorDims };
}

function readSectionNumbers(sectionReader: ByteReader, sectionCount: number): Uint32Array {
  const sectionNumbers = new Uint32Array(sectionCount);
  for (let i = 0; i < sectionCount; i++) sectionNumbers[i] = sectionReader.u32();
  return sectionNumbers;
}

/** Section after section: every row once, ascending within a section, sections in order of their first rows. */
function readSectionRows(sectionReader: ByteReader, rowsOfSections: Uint32Array, isRowTaken: Uint8Array): Uint32Array {
  let sealedRowCount = 0;
  for (const sectionRowCount of rowsOfSections) sealedRowCount += sectionRowCount;
  if (sealedRowCount > isRowTaken.length) throw malformedError('more rows in sections than there are');
  const sealedRows = new Uint32Array(sealedRowCount);
  let sealedIndex = 0;
  let lastSectionStart = -1;
  for (const count of rowsOfSections) {
    if (count === 0) throw malformedError('a section without a row');
    let lastSealedRow = lastSectionStart;
    for (let i = 0; i < count; i++) {
      const sealedRow = sectionReader.u32();
      if (sealedRow <= lastSealedRow) throw malformedError('rows of sections out of order');
      if (sealedRow >= isRowTaken.length || isRowTaken[sealedRow] === 1)
        throw malformedError('a row that is not there, or in two sections');
      isRowTaken[sealedRow] = 1;
      sealedRows[sealedIndex++] = lastSealedRow = sealedRow;
      if (i === 0) lastSectionStart = sealedRow;
    }
  }
  return sealedRows;
}

function rowsOfNoSection(isRowTaken: Uint8Array, count: number): Uint32Array {
  const openRows = new Uint32Array(count);
  if (count > 0) for (let row = 0, i = 0; row < isRowTaken.length; row++) if (isRowTaken[row] === 0) openRows[i++] = row;
  return openRows;
}

/** Cells of rows[first .. end], not read yet from `at` to `to`. */
class SectionPart {
  readonly rows: Uint32Array;
  readonly first: number;
  readonly end: number;
  readonly to: number;
  at: number;

  constructor(sectionRows: Uint32Array, firstRow: number, endRow: number, cellsStart: number, cellsEnd: number) {
    this.rows = sectionRows;
    this.first = firstRow;
    this.end = endRow;
    this.at = cellsStart;
    this.to = cellsEnd;
  }
}

/** The opened part of one body: the cells of all sections that have a key, one after the other in memory. */
class SectionOpening {
  readonly #sectionReader: ByteReader;
  readonly #sectionTables: SectionTables;
  readonly #sectionMemory: SectionMemory;
  readonly #sectionParts: SectionPart[] = [];
  /** Bytes that a row takes at least, and a section's flags before its rows. */
  readonly #rowBytesMin: number;
  readonly #nullFlagBytes: number;
  #memoryOffset = 0;

  constructor(sectionReader: ByteReader, sectionTables: SectionTables, sectionMemory: SectionMemory) {
    this.#sectionReader = sectionReader;
    this.#sectionTables = sectionTables;
    this.#sectionMemory = sectionMemory;
    this.#rowBytesMin = sectionTables.shapes.reduce((sum, shape) => sum + cellBytesMin(shape), 0);
    this.#nullFlagBytes = sectionTables.shapes.filter(({ layout }) => layout !== kinds.null).length;
  }

  open(
    rowsOfSections: Uint32Array,
    bytesOfSections: Uint32Array,
    sealedHashes: OpenedSections['sealed'],
    isRowTaken: Uint8Array,
    subjectOpener: Pick<SubjectKeys, 'copyKey'>,
  ): OpenedSections {
    const { count: sectionCount, nonce: sectionNonce, shapes: columnShapes } = this.#sectionTables;
    const rowCount = isRowTaken.length;
    const rowSalts = new Uint8Array(rowCount * SALT_BYTES);
    const openRows = rowsOfNoSection(isRowTaken, rowCount - sealedHashes.rows.length);
    if (openRows.length > 0) this.#addOpenSection(openRows, rowSalts);
    this.#sectionMemory.setNonce(sectionNonce);
    const erasedRows: [number, Uint8Array][] = [];
    for (let sectionIndex = 0, firstSealed = 0; sectionIndex < sectionCount; sectionIndex++) {
      const endSealed = firstSealed + rowsOfSections[sectionIndex]!;
      const sectionBytes = this.#readSectionBytes(bytesOfSections[sectionIndex]!, endSealed - firstSealed);
      if (subjectOpener.copyKey(this.#subjectKeyIdAt(sectionIndex), this.#sectionMemory.key, 0))
        this.#addSealedSection(sectionBytes, sealedHashes.rows, firstSealed, endSealed, rowSalts);
      else
        for (let i = firstSealed; i < endSealed; i++)
          erasedRows.push([sealedHashes.rows[i]!, sealedHashes.hashes.subarray(i * HASH_BYTES, (i + 1) * HASH_BYTES)]);
      firstSealed = endSealed;
    }
    erasedRows.sort(([a], [b]) => a - b);
    const erasedRowHashes = new Map(erasedRows);
    const openedColumns = columnShapes.map((columnShape): NamedColumn => {
      const openedVector: Vector =
        columnShape.layout === kinds.null ? { kind: 'null' } : this.#readColumnCells(columnShape, rowCount, erasedRowHashes);
      return { name: columnShape.name, type: columnShape.type, vector: openedVector };
    });
    if (this.#sectionParts.some(({ at, to }) => at !== to)) throw malformedError('a section with bytes after its end');
    const [keyColumnsRead, cellColumnsRead] = [openedColumns.slice(0, keyColumns.length), openedColumns.slice(keyColumns.length)];
    return {
      keys: { length: rowCount, columns: keyColumnsRead },
      cells: { length: rowCount, columns: cellColumnsRead },
      salts: rowSalts,
      sealed: sealedHashes,
      erased: erasedRowHashes,
    };
  }

  #subjectKeyIdAt(section: number): Uint8Array {
    return this.#sectionTables.ids.subarray(section * KEY_ID_BYTES, (section + 1) * KEY_ID_BYTES);
  }

  #readSectionBytes(sectionSize: number, sectionRowCount: number): Uint8Array {
    if (sectionSize < sectionRowCount * this.#rowBytesMin + this.#nullFlagBytes)
      throw malformedError('a section too short for its rows');
    return this.#sectionReader.raw(sectionSize);
  }

  #addOpenSection(openRows: Uint32Array, rowSalts: Uint8Array): void {
    spreadSalts(saltsOf(this.#sectionReader.raw(SEED_BYTES), openRows.length), 0, openRows, rowSalts);
    const openSectionBytes = this.#readSectionBytes(this.#sectionReader.u32(), openRows.length);
    this.#sectionMemory.bytes.set(openSectionBytes, 0);
    this.#sectionParts.push(new SectionPart(openRows, 0, openRows.length, 0, openSectionBytes.length));
    this.#memoryOffset = openSectionBytes.length;
  }

  /** The keystream begins with the salts: zeros in front of what is sealed show them. */
  #addSealedSection(
    sealedSection: Uint8Array,
    sealedRows: Uint32Array,
    firstSealed: number,
    endSealed: number,
    rowSalts: Uint8Array,
  ): void {
    const { bytes: sectionMemory } = this.#sectionMemory;
    const sectionStart = this.#memoryOffset;
    const cellsOffset = sectionStart + (endSealed - firstSealed) * SALT_BYTES;
    const sectionEnd = cellsOffset + sealedSection.length;
    sectionMemory.fill(0, sectionStart, cellsOffset);
    sectionMemory.set(sealedSection, cellsOffset);
    this.#sectionMemory.xor(sectionStart, sectionEnd);
    spreadSalts(sectionMemory, sectionStart, sealedRows, rowSalts, firstSealed, endSealed);
    this.#sectionParts.push(new SectionPart(sealedRows, firstSealed, endSealed, cellsOffset, sectionEnd));
    this.#memoryOffset = sectionEnd;
  }

  /** The next column of every part, as one vector over all rows. */
  #readColumnCells(columnShape: ColumnShape, rowCount: number, erasedRows: ReadonlyMap<number, unknown>): Vector {
    const { bytes: sectionMemory, view: sectionView } = this.#sectionMemory;
    const wordsPerCell = wordsOf(columnShape);
    const isText = columnShape.layout === kinds.text;
    const openedCells = new OpenedCells(rowCount, wordsPerCell, isText);
    for (const erasedRow of erasedRows.keys()) openedCells.nullAt(erasedRow);
    const cellBytesMinimum = isText ? 4 : wordsPerCell > 0 ? wordsPerCell * 4 : 1;
    for (const sectionPart of this.#sectionParts) {
      const { rows: sectionRows, first: firstInSection, end: endInSection, to: sectionEnd } = sectionPart;
      const sectionRowCount = endInSection - firstInSection;
      let { at: cellOffset } = sectionPart;
      const hasNullMap = cellOffset < sectionEnd ? sectionMemory[cellOffset++]! : 2;
      if (hasNullMap > 1) throw malformedError('a flag that is neither 0 nor 1');
      if (sectionRowCount * (hasNullMap + cellBytesMinimum) > sectionEnd - cellOffset)
        throw malformedError('a section that ends early');
      if (hasNullMap === 1) {
        if (checkBits(sectionMemory.subarray(cellOffset, cellOffset + sectionRowCount)) === 0)
          throw malformedError('a null map without a NULL');
        for (let i = firstInSection; i < endInSection; i++)
          if (sectionMemory[cellOffset++] === 1) openedCells.nullAt(sectionRows[i]!);
      }
      if (isText) {
        let textOffset = cellOffset + sectionRowCount * 4;
        for (let i = firstInSection; i < endInSection; i++, cellOffset += 4) {
          const textBytes = sectionView.getUint32(cellOffset, true);
          if (textBytes > sectionEnd - textOffset) throw malformedError('a text beyond the end of its section');
          openedCells.starts[sectionRows[i]!] = textOffset;
          openedCells.words[sectionRows[i]!] = textBytes;
          textOffset += textBytes;
        }
        cellOffset = textOffset;
      } else if (wordsPerCell > 0) {
        for (let i = firstInSection; i < endInSection; i++) {
          for (let k = sectionRows[i]! * wordsPerCell; k < (sectionRows[i]! + 1) * wordsPerCell; k++, cellOffset += 4)
            openedCells.words[k] = sectionView.getInt32(cellOffset, true);
        }
      } else for (let i = firstInSection; i < endInSection; i++) openedCells.bits[sectionRows[i]!] = sectionMemory[cellOffset++]!;
      sectionPart.at = cellOffset;
    }
    return openedCells.vector(columnShape, sectionMemory);
  }
}

class OpenedCells {
  /** Values; of texts how long they are. */
  readonly words: Int32Array;
  readonly bits: Uint8Array;
  /** Where texts begin. */
  readonly starts: Uint32Array;
  readonly #cellRows: number;
  #cellNulls: Uint8Array | null = null;

  constructor(rowCount: number, wordsPerCell: number, isText: boolean) {
    this.#cellRows = rowCount;
    this.words = new Int32Array(isText ? rowCount : rowCount * wordsPerCell);
    this.starts = new Uint32Array(isText ? rowCount : 0);
    this.bits = new Uint8Array(isText || wordsPerCell > 0 ? 0 : rowCount);
  }

  nullAt(nullRow: number): void {
    this.#cellNulls ??= new Uint8Array(this.#cellRows);
    this.#cellNulls[nullRow] = 1;
  }

  vector({ layout, dims }: ColumnShape, sectionMemory: Uint8Array): Vector {
    const { buffer } = this.words;
    const cellNulls = this.#cellNulls;
    switch (layout) {
      case kinds.i32:
        return { kind: 'i32', values: this.words, nulls: cellNulls };
      case kinds.f64:
        return { kind: 'f64', values: new Float64Array(buffer), nulls: cellNulls };
      case kinds.i64:
        return { kind: 'i64', values: new BigInt64Array(buffer), nulls: cellNulls };
      case kinds.vec:
        return { kind: 'vec', values: new Float32Array(buffer), dims, nulls: cellNulls };
      case kinds.bool:
        checkBits(this.bits);
        return { kind: 'bool', values: this.bits, nulls: cellNulls };
      default:
        return this.#textVector(sectionMemory);
    }
  }

  /** Runs of cells that lie one after the other are copied at once. */
  #textVector(sectionMemory: Uint8Array): Vector {
    const cellRows = this.#cellRows;
    const { words: textSizes, starts: textStarts } = this;
    const textOffsets = new Uint32Array(cellRows + 1);
    for (let row = 0; row < cellRows; row++) textOffsets[row + 1] = textOffsets[row]! + textSizes[row]!;
    const textHeap = new Uint8Array(textOffsets[cellRows]!);
    for (let row = 0, heapOffset = 0; row < cellRows; ) {
      const textStart = textStarts[row]!;
      let textEnd = textStart + textSizes[row]!;
      for (row++; row < cellRows && textStarts[row] === textEnd; row++) textEnd += textSizes[row]!;
      if (textEnd - textStart > 64) textHeap.set(sectionMemory.subarray(textStart, textEnd), heapOffset);
      else for (let k = textStart; k < textEnd; k++) textHeap[heapOffset + k - textStart] = sectionMemory[k]!;
      heapOffset += textEnd - textStart;
    }
    checkOffsets(textOffsets, textHeap);
    return { kind: 'text', offsets: textOffsets, heap: textHeap, nulls: this.#cellNulls };
  }
}
