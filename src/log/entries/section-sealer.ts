/** Writes what `subject-sections.ts` draws from the schema on: tables, cells, each section sealed under its key. */
import { assert } from '../../errors.ts';
import type { ByteWriter } from '../bytes/byte-stream.ts';
import { textOfDict } from './column-codec.ts';
import type { NamedColumn } from '../values/columns.ts';
import type { RowsBody } from './entry.ts';
import { SALT_BYTES, saltsOf } from './row-leaf.ts';
import { SECRET_BYTES, SECTION_NONCE_BYTES, SectionMemory } from './section-memory.ts';
import { HASH_BYTES } from '../bytes/sha256.ts';
import { columnsOf, SEED_BYTES, type SubjectSections, shapeOf, spreadSalts, wordsOf } from './subject-sections.ts';
import { columnTypes } from '../values/value.ts';

const CHACHA_BLOCK_BYTES = 64;
/** Bytes sealed between two yields: below a millisecond. */
const SECTION_SLICE_BYTES = 256 << 10;
/** Cost of one section beside its bytes, in bytes. */
const SECTION_SEAL_COST = 2 << 10;
/** Rows of which a column is written between two yields. */
const SECTION_SLICE_ROWS = 8192;

export interface SealedSections {
  readonly bytes: Uint8Array;
  /** 16 bytes of each row. */
  readonly salts: Uint8Array;
  /** Leaf hashes of all rows, 32 bytes each, once they are known. */
  writeHashes(hashes: Uint8Array): void;
}

export function writeSchema({ keys, cells }: RowsBody, schemaWriter: ByteWriter): void {
  for (const schemaColumn of keys.columns) schemaWriter.u8(shapeOf(schemaColumn).layout);
  schemaWriter.u32(cells.columns.length);
  for (const column of cells.columns) {
    const { name, type, layout, dims } = shapeOf(column);
    schemaWriter.text(name);
    schemaWriter.u8(columnTypes.indexOf(type));
    schemaWriter.u8(layout);
    if (column.vector.kind === 'vec') schemaWriter.u32(dims);
  }
}

/** `subjectHead` is what comes before the nonce. Neither nonce nor seed was used for another body. */
export function* sealSections(
  subjectHead: Uint8Array,
  rowsBody: RowsBody,
  subjectSections: SubjectSections,
  sectionNonce: Uint8Array,
  saltSeed: Uint8Array,
): Generator<undefined, SealedSections> {
  assert(sectionNonce.length === SECTION_NONCE_BYTES && saltSeed.length === SEED_BYTES, 'a nonce and a seed');
  const rowCount = rowsBody.ops.length;
  const { ids: subjectKeyIds, secrets: keySecrets, ends: sectionEnds, rows: sealedRows } = subjectSections;
  const sectionCount = sectionEnds.length;
  const sectionColumns: SectionCells[] = [];
  for (const sectionColumn of columnsOf(rowsBody))
    if (sectionColumn.vector.kind !== 'null') sectionColumns.push(new SectionCells(sectionColumn, rowCount));
  const fixedBytes = subjectHead.length + SECTION_NONCE_BYTES + subjectKeyIds.length + sectionCount * 8 + SEED_BYTES + 8;
  const cellBytesMax = sectionColumns.reduce((sum, { cellsBytes }) => sum + cellsBytes + rowCount + sectionCount + 1, 0);
  const sectionWriter = new SectionWriter(fixedBytes + sealedRows.length * (4 + HASH_BYTES + SALT_BYTES) + cellBytesMax);
  sectionWriter.raw(subjectHead);
  sectionWriter.raw(sectionNonce);
  sectionWriter.u32(sectionCount);
  sectionWriter.raw(subjectKeyIds);
  for (let sectionIndex = 0; sectionIndex < sectionCount; sectionIndex++)
    sectionWriter.u32(sectionEnds[sectionIndex]! - (sectionIndex > 0 ? sectionEnds[sectionIndex - 1]! : 0));
  const sectionSizesOffset = sectionWriter.skip(sectionCount * 4);
  for (let i = 0; i < sealedRows.length; i++) sectionWriter.u32(sealedRows[i]!);
  const sealedHashesOffset = sectionWriter.skip(sealedRows.length * HASH_BYTES);

  const rowSalts = new Uint8Array(rowCount * SALT_BYTES);
  const openRows = rowsWithoutSubject(rowCount, sealedRows);
  if (openRows.length > 0) {
    sectionWriter.raw(saltSeed);
    const openSizeOffset = sectionWriter.skip(4);
    for (const column of sectionColumns) {
      column.write(openRows, 0, openRows.length, sectionWriter);
      if (openRows.length > SECTION_SLICE_ROWS) yield;
    }
    sectionWriter.view.setUint32(openSizeOffset, sectionWriter.at - openSizeOffset - 4, true);
    spreadSalts(saltsOf(saltSeed, openRows.length), 0, openRows, rowSalts);
  }

  const { memory: sectionMemory } = sectionWriter;
  const { key: sectionKey } = sectionMemory;
  sectionMemory.setNonce(sectionNonce);
  let sliceCost = 0;
  for (let s = 0, firstSealed = 0; s < sectionCount; s++) {
    const endSealed = sectionEnds[s]!;
    const sectionStart = sectionWriter.at;
    // Zeros in front, which the keystream turns into the salts; the sealed cells then move to their place.
    const cellsOffset = sectionStart + (endSealed - firstSealed) * SALT_BYTES;
    sectionWriter.bytes.fill(0, sectionWriter.skip(cellsOffset - sectionStart), cellsOffset);
    for (let columnIndex = 0; columnIndex < sectionColumns.length; columnIndex++) {
      sectionColumns[columnIndex]!.write(sealedRows, firstSealed, endSealed, sectionWriter);
      if (endSealed - firstSealed > SECTION_SLICE_ROWS) yield;
    }
    for (let k = 0; k < SECRET_BYTES; k++) sectionKey[k] = keySecrets[s * SECRET_BYTES + k]!;
    for (let xorOffset = sectionStart; xorOffset < sectionWriter.at; xorOffset += SECTION_SLICE_BYTES) {
      sectionMemory.xor(
        xorOffset,
        Math.min(sectionWriter.at, xorOffset + SECTION_SLICE_BYTES),
        (xorOffset - sectionStart) / CHACHA_BLOCK_BYTES,
      );
      if (sectionWriter.at - xorOffset > SECTION_SLICE_BYTES) yield;
    }
    spreadSalts(sectionWriter.bytes, sectionStart, sealedRows, rowSalts, firstSealed, endSealed);
    sectionWriter.bytes.copyWithin(sectionStart, cellsOffset, sectionWriter.at);
    sectionWriter.view.setUint32(sectionSizesOffset + s * 4, sectionWriter.at - cellsOffset, true);
    sectionWriter.at -= cellsOffset - sectionStart;
    firstSealed = endSealed;
    sliceCost += sectionWriter.at - sectionStart + SECTION_SEAL_COST;
    if (sliceCost < SECTION_SLICE_BYTES) continue;
    sliceCost = 0;
    yield;
  }
  assert(sectionWriter.at <= sectionWriter.bytes.length, 'what a body takes was counted');
  const sealedBytes = Uint8Array.prototype.slice.call(sectionWriter.bytes, 0, sectionWriter.at);
  sectionMemory.giveBack();
  return {
    bytes: sealedBytes,
    salts: rowSalts,
    writeHashes(hashes) {
      for (let i = 0, to = sealedHashesOffset; i < sealedRows.length; i++) {
        const from = sealedRows[i]! * HASH_BYTES;
        for (let k = 0; k < HASH_BYTES; k++) sealedBytes[to++] = hashes[from + k]!;
      }
    },
  };
}

function rowsWithoutSubject(rowCount: number, sealedRows: Uint32Array): Uint32Array {
  const openRows = new Uint32Array(rowCount - sealedRows.length);
  if (openRows.length === 0) return openRows;
  const isRowSealed = new Uint8Array(rowCount);
  for (let i = 0; i < sealedRows.length; i++) isRowSealed[sealedRows[i]!] = 1;
  for (let row = 0, i = 0; row < rowCount; row++) if (isRowSealed[row] === 0) openRows[i++] = row;
  return openRows;
}

/** Memory of a size that is known to be enough: no write looks whether there is room, the end does. */
class SectionWriter {
  readonly memory: SectionMemory;
  readonly bytes: Buffer;
  readonly view: DataView;
  at = 0;

  constructor(sectionBytesMax: number) {
    this.memory = SectionMemory.acquire(sectionBytesMax);
    this.bytes = this.memory.bytes;
    this.view = this.memory.view;
  }

  u32(u32Value: number): void {
    this.view.setUint32(this.at, u32Value, true);
    this.at += 4;
  }

  raw(rawBytes: Uint8Array): void {
    this.bytes.set(rawBytes, this.at);
    this.at += rawBytes.length;
  }

  /** Where the bytes begin that are written later. */
  skip(skippedBytes: number): number {
    const { at } = this;
    this.at += skippedBytes;
    return at;
  }
}

const noCellWords = new Int32Array(0);
const noCellBytes = new Uint8Array(0);

/** A column as words, bytes or texts, whatever its type: one shape, because a loop over many shapes is several times slower. */
class SectionCells {
  readonly cellsBytes: number;
  readonly #sectionNulls: Uint8Array | null;
  /** Words of a cell; 0 where cells are bits or texts. */
  readonly #wordsPerCell: number;
  readonly #cellWords: Int32Array = noCellWords;
  /** Bits, or what texts are made of. */
  readonly #cellBytes: Uint8Array = noCellBytes;
  readonly #textOffsets: Uint32Array | null = null;

  constructor(namedColumn: NamedColumn, rowCount: number) {
    const columnVector = namedColumn.vector;
    const sectionVector =
      columnVector.kind === 'dict'
        ? textOfDict(columnVector.values, columnVector.dictionary, columnVector.nulls, rowCount)
        : columnVector;
    assert(sectionVector.kind !== 'null' && sectionVector.kind !== 'dict', 'a column with cells');
    this.#sectionNulls = sectionVector.nulls;
    this.#wordsPerCell = wordsOf(shapeOf(namedColumn));
    this.cellsBytes = rowCount * this.#wordsPerCell * 4;
    if (sectionVector.kind === 'text') {
      this.#cellBytes = sectionVector.heap;
      this.#textOffsets = sectionVector.offsets;
      this.cellsBytes = rowCount * 4 + sectionVector.offsets[rowCount]! - sectionVector.offsets[0]!;
    } else if (sectionVector.kind === 'bool') {
      this.#cellBytes = sectionVector.values;
      this.cellsBytes = rowCount;
    } else
      this.#cellWords = new Int32Array(
        sectionVector.values.buffer,
        sectionVector.values.byteOffset,
        rowCount * this.#wordsPerCell,
      );
  }

  /** Cells of rows[first .. end]. */
  write(sectionRows: Uint32Array, firstInSection: number, endInSection: number, sectionWriter: SectionWriter): void {
    const { bytes: sectionBytes, view: sectionView } = sectionWriter;
    let sectionOffset = sectionWriter.at;
    const sectionNulls = this.#sectionNulls;
    sectionBytes[sectionOffset++] = 0;
    if (sectionNulls !== null) {
      let hasNull = 0;
      for (let i = firstInSection; i < endInSection; i++) hasNull |= sectionNulls[sectionRows[i]!]!;
      if (hasNull === 1) {
        sectionBytes[sectionOffset - 1] = 1;
        for (let i = firstInSection; i < endInSection; i++) sectionBytes[sectionOffset++] = sectionNulls[sectionRows[i]!]!;
      }
    }
    const textOffsets = this.#textOffsets;
    const cellBytes = this.#cellBytes;
    const cellWords = this.#cellWords;
    const wordsPerCell = this.#wordsPerCell;
    if (textOffsets !== null) {
      for (let i = firstInSection; i < endInSection; i++, sectionOffset += 4)
        sectionView.setUint32(sectionOffset, textOffsets[sectionRows[i]! + 1]! - textOffsets[sectionRows[i]!]!, true);
      for (let i = firstInSection; i < endInSection; i++) {
        const cellStart = textOffsets[sectionRows[i]!]!;
        const textEnd = textOffsets[sectionRows[i]! + 1]!;
        if (textEnd - cellStart > 64) {
          sectionBytes.set(cellBytes.subarray(cellStart, textEnd), sectionOffset);
          sectionOffset += textEnd - cellStart;
        } else for (let k = cellStart; k < textEnd; k++) sectionBytes[sectionOffset++] = cellBytes[k]!;
      }
    } else if (wordsPerCell === 1) {
      for (let i = firstInSection; i < endInSection; i++, sectionOffset += 4)
        sectionView.setInt32(sectionOffset, cellWords[sectionRows[i]!]!, true);
    } else if (wordsPerCell === 2) {
      for (let i = firstInSection; i < endInSection; i++, sectionOffset += 8) {
        sectionView.setInt32(sectionOffset, cellWords[sectionRows[i]! * 2]!, true);
        sectionView.setInt32(sectionOffset + 4, cellWords[sectionRows[i]! * 2 + 1]!, true);
      }
    } else if (wordsPerCell > 0) {
      for (let i = firstInSection; i < endInSection; i++) {
        const cellStart = sectionRows[i]! * wordsPerCell;
        for (let k = cellStart; k < cellStart + wordsPerCell; k++, sectionOffset += 4)
          sectionView.setInt32(sectionOffset, cellWords[k]!, true);
      }
    } else for (let i = firstInSection; i < endInSection; i++) sectionBytes[sectionOffset++] = cellBytes[sectionRows[i]!]!;
    sectionWriter.at = sectionOffset;
  }
}
