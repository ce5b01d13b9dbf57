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
  adopt(savedCells: Exclude<SavedVector, { kind: 'null' }>): void {
    this.layout = savedCells.kind;
    if (savedCells.kind === 'i32' || savedCells.kind === 'dict') this.i32 = savedCells.values;
    else if (savedCells.kind === 'f64') this.f64 = savedCells.values;
    else if (savedCells.kind === 'i64') this.i64 = savedCells.values;
    else if (savedCells.kind === 'bool') this.bool = savedCells.values;
    else if (savedCells.kind === 'vec') {
      this.floats = savedCells.values;
      this.dims = savedCells.dims;
    } else {
      this.offsets = savedCells.offsets;
      this.heap = savedCells.heap;
      this.heapUsed = savedCells.heap.length;
    }
  }

  /** Copies the first `length` of a vector's cells; its dictionary is saved once, by the table. */
  savedCopy(copiedVector: Vector, length: number): SavedVector {
    if (copiedVector.kind === 'null') return copiedVector;
    const copiedNulls = copiedVector.nulls ? copiedVector.nulls.slice(0, length) : null;
    switch (copiedVector.kind) {
      case 'dict':
        return { kind: 'dict', values: copiedVector.values.slice(0, length), nulls: copiedNulls };
      case 'text':
        return {
          kind: 'text',
          offsets: copiedVector.offsets.slice(0, length + 1),
          heap: copiedVector.heap.slice(0, this.heapUsed),
          nulls: copiedNulls,
        };
      case 'vec':
        return {
          kind: 'vec',
          values: copiedVector.values.slice(0, length * copiedVector.dims),
          dims: copiedVector.dims,
          nulls: copiedNulls,
        };
      case 'i32':
        return { kind: 'i32', values: copiedVector.values.slice(0, length), nulls: copiedNulls };
      case 'f64':
        return { kind: 'f64', values: copiedVector.values.slice(0, length), nulls: copiedNulls };
      case 'i64':
        return { kind: 'i64', values: copiedVector.values.slice(0, length), nulls: copiedNulls };
      case 'bool':
        return { kind: 'bool', values: copiedVector.values.slice(0, length), nulls: copiedNulls };
      default:
        return unreachable(copiedVector);
    }
  }

  /** The arrays as a vector, which shares them. */
  vector(columnNulls: Uint8Array | null, columnDictionary: ByteDictionary | null): Vector {
    switch (this.layout) {
      case 'none':
        return { kind: 'null' };
      case 'i32':
        return { kind: 'i32', values: this.i32, nulls: columnNulls };
      case 'f64':
        return { kind: 'f64', values: this.f64, nulls: columnNulls };
      case 'i64':
        return { kind: 'i64', values: this.i64, nulls: columnNulls };
      case 'bool':
        return { kind: 'bool', values: this.bool, nulls: columnNulls };
      case 'dict':
        assert(columnDictionary, 'codes have a dictionary');
        return { kind: 'dict', values: this.i32, dictionary: columnDictionary, nulls: columnNulls };
      case 'text':
        return { kind: 'text', offsets: this.offsets, heap: this.heap, nulls: columnNulls };
      case 'vec':
        return { kind: 'vec', values: this.floats, dims: this.dims, nulls: columnNulls };
      default:
        return unreachable(this.layout);
    }
  }

  /** Fills the cells of NULLs: no reader takes them for values, but codes must be codes. */
  blank(firstBlankCell: number, blankCellsEnd: number): void {
    switch (this.layout) {
      case 'i32':
      case 'dict':
        this.i32.fill(0, firstBlankCell, blankCellsEnd);
        break;
      case 'f64':
        this.f64.fill(0, firstBlankCell, blankCellsEnd);
        break;
      case 'i64':
        this.i64.fill(0n, firstBlankCell, blankCellsEnd);
        break;
      case 'bool':
        this.bool.fill(0, firstBlankCell, blankCellsEnd);
        break;
      case 'vec':
        this.floats.fill(0, firstBlankCell * this.dims, blankCellsEnd * this.dims);
        break;
      case 'text':
        this.offsets.fill(this.heapUsed, firstBlankCell + 1, blankCellsEnd + 1);
        break;
      case 'none':
        break;
      default:
        unreachable(this.layout);
    }
  }

  /** Replaces the arrays in use by what `settleCellArray` makes of them at their final lengths. */
  settle(settledLength: number, settleCellArray: <T extends FixedArray>(array: T, length: number) => T): void {
    switch (this.layout) {
      case 'i32':
      case 'dict':
        this.i32 = settleCellArray(this.i32, settledLength);
        break;
      case 'f64':
        this.f64 = settleCellArray(this.f64, settledLength);
        break;
      case 'i64':
        this.i64 = settleCellArray(this.i64, settledLength);
        break;
      case 'bool':
        this.bool = settleCellArray(this.bool, settledLength);
        break;
      case 'vec':
        this.floats = settleCellArray(this.floats, settledLength * this.dims);
        break;
      case 'text':
        this.offsets = settleCellArray(this.offsets, settledLength + 1);
        this.heap = settleCellArray(this.heap, this.heapUsed);
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
