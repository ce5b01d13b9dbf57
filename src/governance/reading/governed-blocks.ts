/**
 * Blocks of rows that one organisation path may see, whole and as they are. Storage was given the paths; every block is checked
 * again here, where rows leave: a reader that ignored the scope would still let nothing out.
 */
import { assert } from '../../errors.ts';
import type { Vector } from '../../log/values/columns.ts';
import type { StoredBlock } from '../../projections/stored-block.ts';
import { type GovernedBlock, type Showing, VisibleTexts } from '../search/visible-texts.ts';

export class GovernedBlocks implements Iterator<GovernedBlock, void> {
  readonly #blocks: Iterator<StoredBlock, void>;
  /** Columns that the reader asked for; the path column stands behind them. */
  readonly #width: number;
  readonly #allowed: Uint8Array;

  constructor(blocks: Iterator<StoredBlock, void>, width: number, allowed: Uint8Array) {
    this.#blocks = blocks;
    this.#width = width;
    this.#allowed = allowed;
  }

  next(): IteratorResult<GovernedBlock, void> {
    for (;;) {
      const step = this.#blocks.next();
      if (step.done === true) return step;
      const block = step.value;
      assert(block.columns.length === this.#width + 1, 'a block carries the path column');
      const columns = block.columns.slice(0, this.#width);
      if (block.path >= 0) {
        if (this.#allowed[block.path] === 1) return { done: false, value: leave(block, columns) };
        continue;
      }
      const visible = this.#filter(block);
      if (visible !== undefined) return { done: false, value: leave(visible, columns) };
    }
  }

  return(): IteratorResult<GovernedBlock, void> {
    this.#blocks.return?.();
    return { done: true, value: undefined };
  }

  /** The rows of a mixed block that may be seen; the block itself when all may, undefined when none. */
  #filter(block: StoredBlock): StoredBlock | undefined {
    assert(block.sift === undefined, 'rows of several paths leave sifted');
    const codes = codesOf(block.columns[this.#width]!);
    const allowed = this.#allowed;
    const { selection, first, count } = block;
    let seen = 0;
    if (selection === null) for (let i = first; i < first + count; i++) seen += allowed[codes[i]!] ?? 0;
    else for (let i = 0; i < count; i++) seen += allowed[codes[selection[i]!]!] ?? 0;
    if (seen === count) return block;
    if (seen === 0) return undefined;
    const kept = new Int32Array(seen);
    let at = 0;
    for (let i = 0; i < count; i++) {
      const row = selection === null ? first + i : selection[i]!;
      if (allowed[codes[row]!] === 1) kept[at++] = row;
    }
    // How many versions storage looked at would tell how much others wrote.
    return { ...block, selection: kept, first: 0, count: seen, scanned: Math.min(block.scanned, seen) };
  }
}

const everyCell: Showing = { bits: null, maskedCells: () => undefined };

function leave(block: StoredBlock, columns: readonly Vector[]): GovernedBlock {
  if (block.indexes === undefined) return { ...block, columns };
  const { indexes, ...rest } = block;
  return rest.placed === undefined
    ? { ...rest, columns }
    : { ...rest, columns, texts: new VisibleTexts(rest, rest.placed, indexes, everyCell) };
}

function codesOf(vector: Vector): Int32Array {
  assert(vector.kind === 'i32' && vector.nulls === null, 'the path column is i32 without nulls');
  return vector.values;
}
