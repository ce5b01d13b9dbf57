/** Blocks of several tenants as if they lay in one table: the same columns, in one order of `system_from`. */
import { assert } from '../../errors.ts';
import type { Vector } from '../../log/values/columns.ts';
import type { RowBlock } from '../../projections/access-paths.ts';
import type { GovernedBlock } from '../text-search/visible-texts.ts';

const nullVector: Vector = { kind: 'null' };

/** Blocks with the columns that were asked for: NULL where there are none. */
export class PaddedBlocks implements Iterator<GovernedBlock, void> {
  readonly #blocks: Iterator<GovernedBlock, void>;
  /** Number of each column among those of the blocks; -1 for none. */
  readonly #columns: readonly number[];

  constructor(blocks: Iterator<GovernedBlock, void>, columns: readonly number[]) {
    this.#blocks = blocks;
    this.#columns = columns;
  }

  next(): IteratorResult<GovernedBlock, void> {
    const step = this.#blocks.next();
    if (step.done === true) return step;
    const columns = this.#columns.map((number) => (number < 0 ? nullVector : step.value.columns[number]!));
    return { done: false, value: { ...step.value, columns } };
  }

  return(): IteratorResult<GovernedBlock, void> {
    this.#blocks.return?.();
    return { done: true, value: undefined };
  }
}

/** A block of one source and how many of its rows have left. */
interface Head {
  readonly block: RowBlock;
  readonly times: BigInt64Array;
  taken: number;
}

/** Blocks of several sources in one order of `system_from`, which is the last column of each. A block is cut where another's rows come between. */
export class MergedBlocks implements Iterator<RowBlock, void> {
  readonly #sources: readonly Iterator<RowBlock, void>[];
  readonly #heads: (Head | null | 'ended')[];

  constructor(sources: readonly Iterator<RowBlock, void>[]) {
    this.#sources = sources;
    this.#heads = sources.map(() => null);
  }

  next(): IteratorResult<RowBlock, void> {
    for (const [i, source] of this.#sources.entries()) {
      if (this.#heads[i] !== null) continue;
      const step = source.next();
      if (step.done === true) this.#heads[i] = 'ended';
      else if (step.value.count === 0) return { done: false, value: cut(step.value, 0, 0) };
      else this.#heads[i] = headOf(step.value);
    }
    let least: { readonly head: Head; readonly number: number; readonly time: bigint } | null = null;
    let bound: bigint | null = null;
    for (const [number, head] of this.#heads.entries()) {
      if (head === null || head === 'ended') continue;
      const time = timeAt(head, head.taken);
      if (least === null || time < least.time) {
        if (least !== null) bound = bound === null || least.time < bound ? least.time : bound;
        least = { head, number, time };
      } else bound = bound === null || time < bound ? time : bound;
    }
    if (least === null) return { done: true, value: undefined };
    const { head, number } = least;
    const from = head.taken;
    while (head.taken < head.block.count && (bound === null || timeAt(head, head.taken) < bound)) head.taken++;
    if (head.taken === head.block.count) this.#heads[number] = null;
    return { done: false, value: cut(head.block, from, head.taken) };
  }

  return(): IteratorResult<RowBlock, void> {
    for (const source of this.#sources) source.return?.();
    return { done: true, value: undefined };
  }
}

function headOf(block: RowBlock): Head {
  const times = block.columns.at(-1);
  assert(block.sift === undefined && times?.kind === 'i64', 'rows of several tenants come sifted and with their time');
  return { block, times: times.values, taken: 0 };
}

const timeAt = ({ block, times }: Head, rowIndex: number): bigint =>
  times[block.selection === null ? block.first + rowIndex : block.selection[rowIndex]!]!;

/** Rows from .. to-1 by place, without the time that they were put in order by. */
function cut({ columns, selection, first, count, scanned, path }: RowBlock, from: number, to: number): RowBlock {
  const asked = columns.slice(0, -1);
  const scannedTaken = Math.min(scanned, to - from);
  if (from === 0 && to === count) return { columns: asked, selection, first, count, scanned, path };
  if (selection === null)
    return { columns: asked, selection, first: first + from, count: to - from, scanned: scannedTaken, path };
  return { columns: asked, selection: selection.subarray(from, to), first: 0, count: to - from, scanned: scannedTaken, path };
}
