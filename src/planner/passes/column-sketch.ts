/**
 * A summary of a column, to estimate how many rows meet a condition: the counts of rows and NULLs, about how many values differ
 * (HyperLogLog), and a sample of at most 1,024. About 18 KiB for any column. Invariants:
 *
 * - it is a function of the cells in their order and nothing else: rows read in one go or in ten, in blocks of any size and
 *   from any layout make the same sketch, since the number of a cell alone decides whether it is sampled;
 * - no text is kept: of a sampled one its first six bytes, as a number that orders like it, and a hash.
 */
import type { Vector } from '../../log/values/columns.ts';
import type { Cell, ColumnType } from '../../log/values/value.ts';
import type { RowRange } from '../expressions/text-interner.ts';

/** Sketch of a type's column; null where it has none. */
export type FindSketch = (type: string, column: string) => ColumnSketch | null;

export type RangeOp = '<' | '<=' | '>' | '>=';

/** 2 ** 11 registers: distinct values to within 2.3 % more often than not. */
const REGISTER_BITS = 11;
const REGISTERS = 2 ** REGISTER_BITS;
/** Above this size every other cell leaves the sample, and half as many of the following cells enter it. */
const SAMPLED_MAX = 1024;
/** So often a value stands in a sample before it tells how frequent it is. */
const FREQUENT = 8;
const PREFIX_BYTES = 6;

const sketchEncoder = new TextEncoder();
const hashedDouble = new Float64Array(1);
const hashedWords = new Int32Array(hashedDouble.buffer);
let cellHashes = new Int32Array(8192);

export function isSketched(type: ColumnType): boolean {
  return type !== 'json' && type !== 'vector';
}

export class ColumnSketch {
  #sketchedRows = 0;
  /** Cells that are not NULL. */
  #sketchedValues = 0;
  readonly #distinctRegisters: Uint8Array;
  /** A cell is sampled when its number, mixed, has none of these bits. */
  #sampleMask = 0;
  #sampleCount = 0;
  /** Per sampled cell its mixed number, hash, and place in the order of values. */
  readonly #sampleMixes: Int32Array;
  readonly #sampleHashes: Int32Array;
  readonly #sampleOrders: Float64Array;
  /** Hashes of the texts of dictionaries, by code; 0 where one was not needed yet. While rows are added only. */
  #hashesByDictionary = new Map<object, Int32Array>();

  constructor(previousSketch: ColumnSketch | null = null) {
    this.#distinctRegisters = previousSketch ? previousSketch.#distinctRegisters.slice() : new Uint8Array(REGISTERS);
    this.#sampleMixes = previousSketch ? previousSketch.#sampleMixes.slice() : new Int32Array(SAMPLED_MAX);
    this.#sampleHashes = previousSketch ? previousSketch.#sampleHashes.slice() : new Int32Array(SAMPLED_MAX);
    this.#sampleOrders = previousSketch ? previousSketch.#sampleOrders.slice() : new Float64Array(SAMPLED_MAX);
    if (!previousSketch) return;
    this.#sketchedRows = previousSketch.#sketchedRows;
    this.#sketchedValues = previousSketch.#sketchedValues;
    this.#sampleMask = previousSketch.#sampleMask;
    this.#sampleCount = previousSketch.#sampleCount;
  }

  get rows(): number {
    return this.#sketchedRows;
  }

  add(vector: Vector, range: RowRange): void {
    const { selection, first, count } = range;
    this.#sketchedRows += count;
    if (vector.kind === 'null' || vector.kind === 'vec') return;
    if (cellHashes.length < count) cellHashes = new Int32Array(count);
    this.#hashVector(vector, range, cellHashes);
    const { nulls } = vector;
    const distinctRegisters = this.#distinctRegisters;
    for (let j = 0; j < count; j++) {
      const i = selection === null ? first + j : selection[j]!;
      if (nulls !== null && nulls[i] === 1) continue;
      const cellHash = cellHashes[j]!;
      const registerIndex = cellHash >>> (32 - REGISTER_BITS);
      const registerRank = Math.clz32((cellHash << REGISTER_BITS) | (1 << (REGISTER_BITS - 1))) + 1;
      if (registerRank > distinctRegisters[registerIndex]!) distinctRegisters[registerIndex] = registerRank;
      const mixedOrdinal = finishHash(this.#sketchedValues++);
      if ((mixedOrdinal & this.#sampleMask) === 0) this.#addSample(mixedOrdinal, cellHash, vectorOrderOf(vector, i));
    }
  }

  /** No row follows. */
  finish(): this {
    this.#hashesByDictionary = new Map();
    return this;
  }

  /** About how many values differ; 1 at the least. */
  get distinct(): number {
    let registerSum = 0;
    let emptyRegisters = 0;
    for (const registerRank of this.#distinctRegisters) {
      registerSum += 2 ** -registerRank;
      if (registerRank === 0) emptyRegisters++;
    }
    const rawEstimate = (0.7213 / (1 + 1.079 / REGISTERS)) * REGISTERS * (REGISTERS / registerSum);
    const estimate =
      rawEstimate <= 2.5 * REGISTERS && emptyRegisters > 0 ? REGISTERS * Math.log(REGISTERS / emptyRegisters) : rawEstimate;
    return Math.max(1, Math.min(Math.round(estimate), this.#sketchedValues));
  }

  /** Shares are of all rows. */
  get absentShare(): number {
    return this.#sketchedRows === 0 ? 0 : (this.#sketchedRows - this.#sketchedValues) / this.#sketchedRows;
  }

  /** Share of rows that have this value; without one, the share of a value as frequent as any. */
  equalShare(cell?: Cell): number {
    const presentShare = 1 - this.absentShare;
    if (cell === null || this.#sketchedValues === 0) return 0;
    if (cell === undefined) return presentShare / this.distinct;
    const cellHash = hashOfCell(cell);
    let sampled = 0;
    for (let sampleIndex = 0; sampleIndex < this.#sampleCount; sampleIndex++)
      if (this.#sampleHashes[sampleIndex] === cellHash) sampled++;
    // A sample that has every cell knows.
    if (this.#sampleMask === 0 || sampled >= FREQUENT) return (presentShare * sampled) / this.#sampleCount;
    return presentShare / this.distinct;
  }

  /** Share of rows whose value compares so with another one. */
  rangeShare(op: RangeOp, cell: Cell): number {
    if (cell === null || this.#sampleCount === 0) return 0;
    const cellOrder = orderOfCell(cell);
    let samplesBelow = 0;
    let samplesAlike = 0;
    for (let sampleIndex = 0; sampleIndex < this.#sampleCount; sampleIndex++) {
      if (this.#sampleOrders[sampleIndex]! < cellOrder) samplesBelow++;
      else if (this.#sampleOrders[sampleIndex] === cellOrder) samplesAlike++;
    }
    // The order of long texts that begin alike is unknown.
    const isCut = typeof cell === 'string' && sketchEncoder.encode(cell).length > PREFIX_BYTES;
    const equalSamples = isCut ? samplesAlike / 2 : op === '<=' || op === '>' ? samplesAlike : 0;
    const shareBelow = (samplesBelow + equalSamples) / this.#sampleCount;
    return (1 - this.absentShare) * (op === '<' || op === '<=' ? shareBelow : 1 - shareBelow);
  }

  #addSample(mixed: number, hash: number, order: number): void {
    while (this.#sampleCount === SAMPLED_MAX) this.#halveSample();
    if ((mixed & this.#sampleMask) !== 0) return;
    this.#sampleMixes[this.#sampleCount] = mixed;
    this.#sampleHashes[this.#sampleCount] = hash;
    this.#sampleOrders[this.#sampleCount++] = order;
  }

  #halveSample(): void {
    this.#sampleMask = this.#sampleMask * 2 + 1;
    let writeIndex = 0;
    for (let sampleIndex = 0; sampleIndex < this.#sampleCount; sampleIndex++) {
      if ((this.#sampleMixes[sampleIndex]! & this.#sampleMask) !== 0) continue;
      this.#sampleMixes[writeIndex] = this.#sampleMixes[sampleIndex]!;
      this.#sampleHashes[writeIndex] = this.#sampleHashes[sampleIndex]!;
      this.#sampleOrders[writeIndex++] = this.#sampleOrders[sampleIndex]!;
    }
    this.#sampleCount = writeIndex;
  }

  /** Hashes by place; those of NULLs mean nothing. */
  #hashVector(
    vector: Exclude<Vector, { kind: 'null' | 'vec' }>,
    { selection, first, count }: RowRange,
    hashesInto: Int32Array,
  ): void {
    switch (vector.kind) {
      case 'text':
        for (let j = 0; j < count; j++) {
          const i = selection === null ? first + j : selection[j]!;
          hashesInto[j] = hashText(vector.heap, vector.offsets[i]!, vector.offsets[i + 1]!);
        }
        return;
      case 'dict': {
        const { dictionary, values } = vector;
        let dictionaryHashes = this.#hashesByDictionary.get(dictionary);
        if (!dictionaryHashes || dictionaryHashes.length < dictionary.size) {
          const longerHashes = new Int32Array(dictionary.size);
          if (dictionaryHashes) longerHashes.set(dictionaryHashes);
          this.#hashesByDictionary.set(dictionary, (dictionaryHashes = longerHashes));
        }
        for (let j = 0; j < count; j++) {
          const i = selection === null ? first + j : selection[j]!;
          if (vector.nulls !== null && vector.nulls[i] === 1) continue;
          const code = values[i]!;
          hashesInto[j] = dictionaryHashes[code]! || (dictionaryHashes[code] = hashOfCell(dictionary.text(code)));
        }
        return;
      }
      case 'i64':
        for (let j = 0; j < count; j++)
          hashesInto[j] = hashNumber(Number(vector.values[selection === null ? first + j : selection[j]!]!));
        return;
      default:
        for (let j = 0; j < count; j++)
          hashesInto[j] = hashNumber(vector.values[selection === null ? first + j : selection[j]!]!);
    }
  }
}

function vectorOrderOf(vector: Exclude<Vector, { kind: 'null' | 'vec' }>, i: number): number {
  if (vector.kind === 'text') return prefixOrderOf(vector.heap, vector.offsets[i]!, vector.offsets[i + 1]!);
  return vector.kind === 'dict' ? orderOfCell(vector.dictionary.text(vector.values[i]!)) : Number(vector.values[i]!);
}

function orderOfCell(cell: Exclude<Cell, null>): number {
  if (typeof cell !== 'string') return Number(cell);
  const bytes = sketchEncoder.encode(cell);
  return prefixOrderOf(bytes, 0, bytes.length);
}

function prefixOrderOf(bytes: Uint8Array, start: number, end: number): number {
  let prefixOrder = 0;
  for (let byteIndex = start; byteIndex < start + PREFIX_BYTES; byteIndex++)
    prefixOrder = prefixOrder * 256 + (byteIndex < end ? bytes[byteIndex]! : 0);
  return prefixOrder;
}

function hashOfCell(cell: Exclude<Cell, null>): number {
  if (typeof cell !== 'string') return hashNumber(Number(cell));
  const bytes = sketchEncoder.encode(cell);
  return hashText(bytes, 0, bytes.length);
}

function hashText(bytes: Uint8Array, start: number, end: number): number {
  let textHash = 0x811c9dc5;
  for (let byteIndex = start; byteIndex < end; byteIndex++) textHash = Math.imul(textHash ^ bytes[byteIndex]!, 0x01000193);
  return finishHash(textHash ^ (end - start));
}

/** Hashes an integer like the double that equals it, or is next to it. */
function hashNumber(value: number): number {
  // Zero has two forms.
  hashedDouble[0] = value + 0;
  return finishHash(Math.imul(finishHash(hashedWords[0]!) ^ hashedWords[1]!, 0x9e3779b1));
}

function finishHash(value: number): number {
  let finishedHash = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  finishedHash = Math.imul(finishedHash ^ (finishedHash >>> 13), 0xc2b2ae35);
  return finishedHash ^ (finishedHash >>> 16);
}
