/** The arrays of a segment that have an element a row: they grow together, and rest where kernels read them once no row follows. */
import type { Extents, FixedArray, FixedKind } from '../cells/column-extents.ts';
import { SEGMENT_ROWS } from './segment-column.ts';

export class RowArrays {
  readonly extents: Extents;
  /** Rows that every array has room for. */
  capacity = 0;
  sealed = false;

  constructor(extents: Extents) {
    this.extents = extents;
  }

  /** True where arrays have to grow. */
  reserve(rows: number): boolean {
    if (rows <= this.capacity) return false;
    let rowCapacity = Math.max(64, this.capacity * 2);
    while (rowCapacity < rows) rowCapacity *= 2;
    this.capacity = rowCapacity;
    return true;
  }

  /** A segment that is expected to fill up has its arrays made where they are to rest; contents may be undefined. */
  allocate<T extends FixedArray>(arrayKind: FixedKind<T>, length = this.capacity): T {
    return this.sealed || this.capacity >= SEGMENT_ROWS ? this.extents.allocate(arrayKind, length) : new arrayKind(length);
  }

  grow<T extends FixedArray>(arrayKind: FixedKind<T>, fullRowArray: T): T {
    const largerRowArray = this.allocate(arrayKind);
    (largerRowArray as Uint8Array).set(fullRowArray as Uint8Array);
    this.extents.giveBack(fullRowArray);
    return largerRowArray;
  }
}
