/** Blocks of several tenants as if they lay in one table: the same columns, in one order of `system_from`. */
import { assert } from '../../errors.ts';
import type { Vector } from '../../log/values/columns.ts';
import type { RowBlock } from '../../projections/access-paths.ts';
import type { GovernedBlock } from '../text-search/visible-texts.ts';

const nullVector: Vector = { kind: 'null' };

/** Blocks with the columns that were asked for: NULL where there are none. */
export class PaddedBlocks implements Iterator<GovernedBlock, void> {
  readonly #laneBlocks: Iterator<GovernedBlock, void>;
  /** Number of each column among those of the blocks; -1 for none. */
  readonly #columnOrdinals: readonly number[];

  constructor(blocks: Iterator<GovernedBlock, void>, columns: readonly number[]) {
    this.#laneBlocks = blocks;
    this.#columnOrdinals = columns;
  }

  next(): IteratorResult<GovernedBlock, void> {
    const laneStep = this.#laneBlocks.next();
    if (laneStep.done === true) return laneStep;
    const columns = this.#columnOrdinals.map((number) => (number < 0 ? nullVector : laneStep.value.columns[number]!));
    return { done: false, value: { ...laneStep.value, columns } };
  }

  return(): IteratorResult<GovernedBlock, void> {
    this.#laneBlocks.return?.();
    return { done: true, value: undefined };
  }
}

/** A block of one source and how many of its rows have left. */
interface SourceHead {
  readonly block: RowBlock;
  readonly times: BigInt64Array;
  taken: number;
}

/** Blocks of several sources in one order of `system_from`, which is the last column of each. A block is cut where another's rows come between. */
export class MergedBlocks implements Iterator<RowBlock, void> {
  readonly #sourceBlocks: readonly Iterator<RowBlock, void>[];
  readonly #sourceHeads: (SourceHead | null | 'ended')[];

  constructor(sources: readonly Iterator<RowBlock, void>[]) {
    this.#sourceBlocks = sources;
    this.#sourceHeads = sources.map(() => null);
  }

  next(): IteratorResult<RowBlock, void> {
    for (const [i, source] of this.#sourceBlocks.entries()) {
      if (this.#sourceHeads[i] !== null) continue;
      const sourceStep = source.next();
      if (sourceStep.done === true) this.#sourceHeads[i] = 'ended';
      else if (sourceStep.value.count === 0) return { done: false, value: cutBlock(sourceStep.value, 0, 0) };
      else this.#sourceHeads[i] = headOf(sourceStep.value);
    }
    let earliestHead: { readonly head: SourceHead; readonly number: number; readonly time: bigint } | null = null;
    let nextHeadTime: bigint | null = null;
    for (const [sourceOrdinal, head] of this.#sourceHeads.entries()) {
      if (head === null || head === 'ended') continue;
      const headTime = headTimeAt(head, head.taken);
      if (earliestHead === null || headTime < earliestHead.time) {
        if (earliestHead !== null)
          nextHeadTime = nextHeadTime === null || earliestHead.time < nextHeadTime ? earliestHead.time : nextHeadTime;
        earliestHead = { head, number: sourceOrdinal, time: headTime };
      } else nextHeadTime = nextHeadTime === null || headTime < nextHeadTime ? headTime : nextHeadTime;
    }
    if (earliestHead === null) return { done: true, value: undefined };
    const { head, number } = earliestHead;
    const takenFrom = head.taken;
    while (head.taken < head.block.count && (nextHeadTime === null || headTimeAt(head, head.taken) < nextHeadTime)) head.taken++;
    if (head.taken === head.block.count) this.#sourceHeads[number] = null;
    return { done: false, value: cutBlock(head.block, takenFrom, head.taken) };
  }

  return(): IteratorResult<RowBlock, void> {
    for (const source of this.#sourceBlocks) source.return?.();
    return { done: true, value: undefined };
  }
}

function headOf(block: RowBlock): SourceHead {
  const systemTimes = block.columns.at(-1);
  assert(block.sift === undefined && systemTimes?.kind === 'i64', 'rows of several tenants come sifted and with their time');
  return { block, times: systemTimes.values, taken: 0 };
}

const headTimeAt = ({ block, times }: SourceHead, rowIndex: number): bigint =>
  times[block.selection === null ? block.first + rowIndex : block.selection[rowIndex]!]!;

/** Rows from .. to-1 by place, without the time that they were put in order by. */
function cutBlock({ columns, selection, first, count, scanned, path }: RowBlock, cutFrom: number, cutTo: number): RowBlock {
  const sourceColumns = columns.slice(0, -1);
  const scannedTaken = Math.min(scanned, cutTo - cutFrom);
  if (cutFrom === 0 && cutTo === count) return { columns: sourceColumns, selection, first, count, scanned, path };
  if (selection === null)
    return { columns: sourceColumns, selection, first: first + cutFrom, count: cutTo - cutFrom, scanned: scannedTaken, path };
  return {
    columns: sourceColumns,
    selection: selection.subarray(cutFrom, cutTo),
    first: 0,
    count: cutTo - cutFrom,
    scanned: scannedTaken,
    path,
  };
}
