/**
 * The cells of one column of one segment: the arrays of its layout. Only those of the layout in use have elements; numbers, codes and
 * offsets are as long as the column's capacity, of which its length is in use.
 */
import { assert, unreachable } from '../../../errors.ts';
import type { Vector } from '../../../log/values/columns.ts';
import type { ByteDictionary } from '../cells/byte-dictionary.ts';
import { type FixedArray, no } from '../cells/column-extents.ts';

export type ColumnLayout = 'none' | 'i32' | 'f64' | 'i64' | 'bool' | 'dict' | 'text' | 'vec';

/** A vector whose dictionary, if it has one, is saved elsewhere. */
export type SavedVector =
  | Exclude<Vector, { kind: 'dict' }>
  | { readonly kind: 'dict'; readonly values: Int32Array; readonly nulls: Uint8Array | null };

export class ColumnCells {
  layout: ColumnLayout = 'none';
  /** Integers, or codes of a dictionary. */
  i32: Int32Array = no.i32;
  f64: Float64Array = no.f64;
  i64: BigInt64Array = no.i64;
  bool: Uint8Array = no.bytes;
  /** Vectors of `dims` numbers each. */
  floats: Float32Array = no.floats;
  dims = 0;
  /** Texts: where each begins in the heap, and where the last one ends. */
  offsets: Uint32Array = no.offsets;
  heap: Uint8Array = no.bytes;
  heapUsed = 0;

  /** Takes over the arrays of a saved vector. */
  adopt(vector: Exclude<SavedVector, { kind: 'null' }>): void {
    this.layout = vector.kind;
    if (vector.kind === 'i32' || vector.kind === 'dict') this.i32 = vector.values;
    else if (vector.kind === 'f64') this.f64 = vector.values;
    else if (vector.kind === 'i64') this.i64 = vector.values;
    else if (vector.kind === 'bool') this.bool = vector.values;
    else if (vector.kind === 'vec') {
      this.floats = vector.values;
      this.dims = vector.dims;
    } else {
      this.offsets = vector.offsets;
      this.heap = vector.heap;
      this.heapUsed = vector.heap.length;
    }
  }

  /** Copies the first `length` of a vector's cells; its dictionary is saved once, by the table. */
  savedCopy(vector: Vector, length: number): SavedVector {
    if (vector.kind === 'null') return vector;
    const nulls = vector.nulls ? vector.nulls.slice(0, length) : null;
    switch (vector.kind) {
      case 'dict':
        return { kind: 'dict', values: vector.values.slice(0, length), nulls };
      case 'text':
        return { kind: 'text', offsets: vector.offsets.slice(0, length + 1), heap: vector.heap.slice(0, this.heapUsed), nulls };
      case 'vec':
        return { kind: 'vec', values: vector.values.slice(0, length * vector.dims), dims: vector.dims, nulls };
      case 'i32':
        return { kind: 'i32', values: vector.values.slice(0, length), nulls };
      case 'f64':
        return { kind: 'f64', values: vector.values.slice(0, length), nulls };
      case 'i64':
        return { kind: 'i64', values: vector.values.slice(0, length), nulls };
      case 'bool':
        return { kind: 'bool', values: vector.values.slice(0, length), nulls };
      default:
        return unreachable(vector);
    }
  }

  /** The arrays as a vector, which shares them. */
  vector(nulls: Uint8Array | null, dictionary: ByteDictionary | null): Vector {
    switch (this.layout) {
      case 'none':
        return { kind: 'null' };
      case 'i32':
        return { kind: 'i32', values: this.i32, nulls };
      case 'f64':
        return { kind: 'f64', values: this.f64, nulls };
      case 'i64':
        return { kind: 'i64', values: this.i64, nulls };
      case 'bool':
        return { kind: 'bool', values: this.bool, nulls };
      case 'dict':
        assert(dictionary, 'codes have a dictionary');
        return { kind: 'dict', values: this.i32, dictionary, nulls };
      case 'text':
        return { kind: 'text', offsets: this.offsets, heap: this.heap, nulls };
      case 'vec':
        return { kind: 'vec', values: this.floats, dims: this.dims, nulls };
      default:
        return unreachable(this.layout);
    }
  }

  /** Fills the cells of NULLs: no reader takes them for values, but codes must be codes. */
  blank(from: number, to: number): void {
    switch (this.layout) {
      case 'i32':
      case 'dict':
        this.i32.fill(0, from, to);
        break;
      case 'f64':
        this.f64.fill(0, from, to);
        break;
      case 'i64':
        this.i64.fill(0n, from, to);
        break;
      case 'bool':
        this.bool.fill(0, from, to);
        break;
      case 'vec':
        this.floats.fill(0, from * this.dims, to * this.dims);
        break;
      case 'text':
        this.offsets.fill(this.heapUsed, from + 1, to + 1);
        break;
      case 'none':
        break;
      default:
        unreachable(this.layout);
    }
  }

  /** Replaces the arrays in use by what `settle` makes of them at their final lengths. */
  settle(length: number, settle: <T extends FixedArray>(array: T, length: number) => T): void {
    switch (this.layout) {
      case 'i32':
      case 'dict':
        this.i32 = settle(this.i32, length);
        break;
      case 'f64':
        this.f64 = settle(this.f64, length);
        break;
      case 'i64':
        this.i64 = settle(this.i64, length);
        break;
      case 'bool':
        this.bool = settle(this.bool, length);
        break;
      case 'vec':
        this.floats = settle(this.floats, length * this.dims);
        break;
      case 'text':
        this.offsets = settle(this.offsets, length + 1);
        this.heap = settle(this.heap, this.heapUsed);
        break;
      case 'none':
        break;
      default:
        unreachable(this.layout);
    }
  }

  arrays(): FixedArray[] {
    return [this.i32, this.f64, this.i64, this.bool, this.floats, this.offsets, this.heap];
  }

  /** Drops every array. */
  clear(): void {
    this.layout = 'none';
    this.i32 = no.i32;
    this.f64 = no.f64;
    this.i64 = no.i64;
    this.bool = no.bytes;
    this.floats = no.floats;
    this.offsets = no.offsets;
    this.heap = no.bytes;
  }

  get bytes(): number {
    return (
      this.i32.byteLength +
      this.f64.byteLength +
      this.i64.byteLength +
      this.bool.byteLength +
      this.floats.byteLength +
      this.offsets.byteLength +
      this.heap.byteLength
    );
  }
}
