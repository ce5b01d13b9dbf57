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

const encoder = new TextEncoder();
const double = new Float64Array(1);
const words = new Int32Array(double.buffer);
let hashes = new Int32Array(8192);

export function isSketched(type: ColumnType): boolean {
  return type !== 'json' && type !== 'vector';
}

export class ColumnSketch {
  #rows = 0;
  /** Cells that are not NULL. */
  #values = 0;
  readonly #registers: Uint8Array;
  /** A cell is sampled when its number, mixed, has none of these bits. */
  #mask = 0;
  #sampled = 0;
  /** Per sampled cell its mixed number, hash, and place in the order of values. */
  readonly #mixed: Int32Array;
  readonly #hashes: Int32Array;
  readonly #orders: Float64Array;
  /** Hashes of the texts of dictionaries, by code; 0 where one was not needed yet. While rows are added only. */
  #codes = new Map<object, Int32Array>();

  constructor(before: ColumnSketch | null = null) {
    this.#registers = before ? before.#registers.slice() : new Uint8Array(REGISTERS);
    this.#mixed = before ? before.#mixed.slice() : new Int32Array(SAMPLED_MAX);
    this.#hashes = before ? before.#hashes.slice() : new Int32Array(SAMPLED_MAX);
    this.#orders = before ? before.#orders.slice() : new Float64Array(SAMPLED_MAX);
    if (!before) return;
    this.#rows = before.#rows;
    this.#values = before.#values;
    this.#mask = before.#mask;
    this.#sampled = before.#sampled;
  }

  get rows(): number {
    return this.#rows;
  }

  add(vector: Vector, range: RowRange): void {
    const { selection, first, count } = range;
    this.#rows += count;
    if (vector.kind === 'null' || vector.kind === 'vec') return;
    if (hashes.length < count) hashes = new Int32Array(count);
    this.#hash(vector, range, hashes);
    const { nulls } = vector;
    const registers = this.#registers;
    for (let j = 0; j < count; j++) {
      const i = selection === null ? first + j : selection[j]!;
      if (nulls !== null && nulls[i] === 1) continue;
      const hash = hashes[j]!;
      const at = hash >>> (32 - REGISTER_BITS);
      const rank = Math.clz32((hash << REGISTER_BITS) | (1 << (REGISTER_BITS - 1))) + 1;
      if (rank > registers[at]!) registers[at] = rank;
      const mixed = finishHash(this.#values++);
      if ((mixed & this.#mask) === 0) this.#sample(mixed, hash, orderOf(vector, i));
    }
  }

  /** No row follows. */
  finish(): this {
    this.#codes = new Map();
    return this;
  }

  /** About how many values differ; 1 at the least. */
  get distinct(): number {
    let sum = 0;
    let empty = 0;
    for (const rank of this.#registers) {
      sum += 2 ** -rank;
      if (rank === 0) empty++;
    }
    const raw = (0.7213 / (1 + 1.079 / REGISTERS)) * REGISTERS * (REGISTERS / sum);
    const estimate = raw <= 2.5 * REGISTERS && empty > 0 ? REGISTERS * Math.log(REGISTERS / empty) : raw;
    return Math.max(1, Math.min(Math.round(estimate), this.#values));
  }

  /** Shares are of all rows. */
  get absentShare(): number {
    return this.#rows === 0 ? 0 : (this.#rows - this.#values) / this.#rows;
  }

  /** Share of rows that have this value; without one, the share of a value as frequent as any. */
  equalShare(cell?: Cell): number {
    const some = 1 - this.absentShare;
    if (cell === null || this.#values === 0) return 0;
    if (cell === undefined) return some / this.distinct;
    const hash = hashOfCell(cell);
    let sampled = 0;
    for (let at = 0; at < this.#sampled; at++) if (this.#hashes[at] === hash) sampled++;
    // A sample that has every cell knows.
    if (this.#mask === 0 || sampled >= FREQUENT) return (some * sampled) / this.#sampled;
    return some / this.distinct;
  }

  /** Share of rows whose value compares so with another one. */
  rangeShare(op: RangeOp, cell: Cell): number {
    if (cell === null || this.#sampled === 0) return 0;
    const order = orderOfCell(cell);
    let below = 0;
    let alike = 0;
    for (let at = 0; at < this.#sampled; at++) {
      if (this.#orders[at]! < order) below++;
      else if (this.#orders[at] === order) alike++;
    }
    // The order of long texts that begin alike is unknown.
    const isCut = typeof cell === 'string' && encoder.encode(cell).length > PREFIX_BYTES;
    const equal = isCut ? alike / 2 : op === '<=' || op === '>' ? alike : 0;
    const less = (below + equal) / this.#sampled;
    return (1 - this.absentShare) * (op === '<' || op === '<=' ? less : 1 - less);
  }

  #sample(mixed: number, hash: number, order: number): void {
    while (this.#sampled === SAMPLED_MAX) this.#halve();
    if ((mixed & this.#mask) !== 0) return;
    this.#mixed[this.#sampled] = mixed;
    this.#hashes[this.#sampled] = hash;
    this.#orders[this.#sampled++] = order;
  }

  #halve(): void {
    this.#mask = this.#mask * 2 + 1;
    let writeIndex = 0;
    for (let at = 0; at < this.#sampled; at++) {
      if ((this.#mixed[at]! & this.#mask) !== 0) continue;
      this.#mixed[writeIndex] = this.#mixed[at]!;
      this.#hashes[writeIndex] = this.#hashes[at]!;
      this.#orders[writeIndex++] = this.#orders[at]!;
    }
    this.#sampled = writeIndex;
  }

  /** Hashes by place; those of NULLs mean nothing. */
  #hash(vector: Exclude<Vector, { kind: 'null' | 'vec' }>, { selection, first, count }: RowRange, into: Int32Array): void {
    switch (vector.kind) {
      case 'text':
        for (let j = 0; j < count; j++) {
          const i = selection === null ? first + j : selection[j]!;
          into[j] = hashText(vector.heap, vector.offsets[i]!, vector.offsets[i + 1]!);
        }
        return;
      case 'dict': {
        const { dictionary, values } = vector;
        let known = this.#codes.get(dictionary);
        if (!known || known.length < dictionary.size) {
          const longer = new Int32Array(dictionary.size);
          if (known) longer.set(known);
          this.#codes.set(dictionary, (known = longer));
        }
        for (let j = 0; j < count; j++) {
          const i = selection === null ? first + j : selection[j]!;
          if (vector.nulls !== null && vector.nulls[i] === 1) continue;
          const code = values[i]!;
          into[j] = known[code]! || (known[code] = hashOfCell(dictionary.text(code)));
        }
        return;
      }
      case 'i64':
        for (let j = 0; j < count; j++)
          into[j] = hashNumber(Number(vector.values[selection === null ? first + j : selection[j]!]!));
        return;
      default:
        for (let j = 0; j < count; j++) into[j] = hashNumber(vector.values[selection === null ? first + j : selection[j]!]!);
    }
  }
}

function orderOf(vector: Exclude<Vector, { kind: 'null' | 'vec' }>, i: number): number {
  if (vector.kind === 'text') return prefix(vector.heap, vector.offsets[i]!, vector.offsets[i + 1]!);
  return vector.kind === 'dict' ? orderOfCell(vector.dictionary.text(vector.values[i]!)) : Number(vector.values[i]!);
}

function orderOfCell(cell: Exclude<Cell, null>): number {
  if (typeof cell !== 'string') return Number(cell);
  const bytes = encoder.encode(cell);
  return prefix(bytes, 0, bytes.length);
}

function prefix(bytes: Uint8Array, start: number, end: number): number {
  let order = 0;
  for (let at = start; at < start + PREFIX_BYTES; at++) order = order * 256 + (at < end ? bytes[at]! : 0);
  return order;
}

function hashOfCell(cell: Exclude<Cell, null>): number {
  if (typeof cell !== 'string') return hashNumber(Number(cell));
  const bytes = encoder.encode(cell);
  return hashText(bytes, 0, bytes.length);
}

function hashText(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ bytes[at]!, 0x01000193);
  return finishHash(hash ^ (end - start));
}

/** Hashes an integer like the double that equals it, or is next to it. */
function hashNumber(value: number): number {
  // Zero has two forms.
  double[0] = value + 0;
  return finishHash(Math.imul(finishHash(words[0]!) ^ words[1]!, 0x9e3779b1));
}

function finishHash(value: number): number {
  let hash = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
