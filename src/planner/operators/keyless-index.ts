/** The index of a join without keys: every row is a partner of every other. */
import type { Vector } from '../../log/values/columns.ts';
import type { Batch } from './operator.ts';
import { type Building, type RowIndex, rowsPerStep } from './row-index.ts';

export class EveryRow implements RowIndex {
  readonly following: Int32Array;
  readonly unique: boolean;

  private constructor(rows: number) {
    this.unique = rows <= 1;
    this.following = new Int32Array(rows);
  }

  static *build(rows: number): Building {
    const index = new EveryRow(rows);
    for (let row = 0; row + 1 < rows; row++) {
      index.following[row] = row + 2;
      if (row % rowsPerStep === rowsPerStep - 1) yield;
    }
    return index;
  }

  get bytes(): number {
    return this.following.byteLength;
  }

  find(_keys: readonly Vector[], batch: Batch, out: Int32Array): void {
    out.fill(this.following.length > 0 ? 1 : 0, 0, batch.count);
  }
}
