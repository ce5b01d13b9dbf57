/**
 * SESSION: rows of a partition in the order of their instant; a gap of at least so long begins the next session, which
 * ends with its last row plus the gap. Partitions come in order of first appearance, rows of one instant in that of the
 * input. Everything is collected first: a later row may lie between two earlier ones.
 */
import type { Vector } from '../../log/values/columns.ts';
import { I64_MAX } from '../../log/values/value.ts';
import { integerOverflow } from '../expressions/evaluate.ts';
import type { WindowNode } from '../logical-plan.ts';
import { CollectedRows } from './collected-rows.ts';
import { GroupTable } from './group-table.ts';
import { Instants } from './instant-cells.ts';
import { type Batch, emptyBatch, type Execution, type Operator, type Pieces, PiecesOperator } from './operator.ts';
import { comparator, mergeSorted } from './row-order.ts';

const outputRows = 4_096;
const rowsPerStep = 16_384;
const ranksPerStep = 131_072;

export class SessionOperator extends PiecesOperator {
  readonly #input: Operator;
  readonly #node: WindowNode;
  readonly #gap: bigint;
  readonly #execution: Execution;
  #heldBytes = 0;

  constructor(input: Operator, node: WindowNode, gap: bigint, execution: Execution) {
    super();
    this.#input = input;
    this.#node = node;
    this.#gap = gap;
    this.#execution = execution;
  }

  close(): void {
    this.#input.close();
  }

  protected *pieces(): Pieces {
    const { column, partition, input } = this.#node;
    const types = input.columns.map(({ type }) => type);
    const sink = new CollectedRows(types);
    const groups = new GroupTable(partition.map((each) => types[each]!));
    let groupOf = new Int32Array(1024);
    for (let batch = this.#input.next(); batch !== null; batch = this.#input.next()) {
      const instantBatch = batch.count === 0 ? emptyBatch : withInstant(batch, batch.columns[column]!);
      if (instantBatch.count > 0) {
        const own = groups.assign({ ...instantBatch, columns: partition.map((each) => instantBatch.columns[each]!) });
        groupOf = append(groupOf, sink.length, own, instantBatch.count);
        sink.append(instantBatch);
        this.#hold(sink.bytes + groups.bytes + groupOf.byteLength);
      }
      yield emptyBatch;
    }
    const count = sink.length;
    if (count === 0) return;
    const joining = sink.vectors();
    let joined = joining.next();
    for (; !joined.done; joined = joining.next()) yield emptyBatch;
    const columns = joined.value;
    const rows = new Int32Array(count);
    for (let row = 0; row < count; row++) rows[row] = row;
    const converter = new Instants();
    let instants: BigInt64Array = new BigInt64Array(0);
    for (let first = 0; first < count; first += rowsPerStep) {
      const step = rows.subarray(first, first + rowsPerStep);
      instants = converter.read(columns[column]!, step, step.length);
      yield emptyBatch;
    }
    const ranking = ranksOf(groups, groupOf, count);
    let ranked = ranking.next();
    for (; !ranked.done; ranked = ranking.next()) yield emptyBatch;
    const ranks = ranked.value;
    this.#hold(sink.bytes + groups.bytes + groupOf.byteLength + count * 32);
    const keys: Vector[] = [
      { kind: 'i32', values: ranks, nulls: null },
      { kind: 'i64', values: instants, nulls: null },
    ];
    const ascending = { descending: false, collate: 'codepoint' } as const;
    const compare = comparator(
      keys,
      [0, 1].map((key) => ({ column: key, ...ascending })),
      count,
    );
    const sorting = mergeSorted(count, compare);
    let step = sorting.next();
    for (; !step.done; step = sorting.next()) yield emptyBatch;
    const order = step.value;
    const starts = new BigInt64Array(count);
    const ends = new BigInt64Array(count);
    for (let first = 0, end = 1; first < count; end++) {
      // One session may be all rows: the search for its end rests now and then, too.
      if (end % rowsPerStep === 0) yield emptyBatch;
      if (end < count && goesOn(order[end - 1]!, order[end]!, ranks, instants, this.#gap)) continue;
      const windowEnd = instants[order[end - 1]!]! + this.#gap;
      if (windowEnd > I64_MAX) throw integerOverflow();
      for (const start = instants[order[first]!]!; first < end; first++) {
        starts[order[first]!] = start;
        ends[order[first]!] = windowEnd;
        if (first % rowsPerStep === 0) yield emptyBatch;
      }
    }
    const output: Vector[] = [
      ...columns,
      { kind: 'i64', values: starts, nulls: null },
      { kind: 'i64', values: ends, nulls: null },
    ];
    for (let at = 0; at < count; at += outputRows) {
      const selection = order.subarray(at, at + outputRows);
      yield { columns: output, selection, first: 0, count: selection.length };
    }
  }

  #hold(bytes: number): void {
    this.#heldBytes = this.#execution.memory.change(this.#heldBytes, bytes);
  }
}

/** Whether a row is of the session of the one before it. */
function goesOn(before: number, row: number, ranks: Int32Array, instants: BigInt64Array, gap: bigint): boolean {
  return ranks[row] === ranks[before] && instants[row]! - instants[before]! < gap;
}

function withInstant(batch: Batch, vector: Vector): Batch {
  if (vector.kind === 'null') return emptyBatch;
  const { nulls } = vector;
  if (nulls === null) return batch;
  const { columns, selection, first } = batch;
  const passing = new Int32Array(batch.count);
  let count = 0;
  for (let j = 0; j < batch.count; j++) {
    const row = selection === null ? first + j : selection[j]!;
    if (nulls[row] === 0) passing[count++] = row;
  }
  return { columns, selection: passing, first: 0, count };
}

/** Group numbers of rows by when the group first appeared: the NULL group of a single key is 0 whenever it came. */
function* ranksOf(groups: GroupTable, groupOf: Int32Array, count: number): Generator<undefined, Int32Array, void> {
  const order = groups.order();
  const rankOf = new Int32Array(groups.size);
  yield;
  for (let rank = 0; rank < order.length; rank++) {
    rankOf[order[rank]!] = rank;
    if (rank % ranksPerStep === ranksPerStep - 1) yield;
  }
  const ranks = new Int32Array(count);
  for (let row = 0; row < count; row++) {
    ranks[row] = rankOf[groupOf[row]!]!;
    if (row % ranksPerStep === ranksPerStep - 1) yield;
  }
  return ranks;
}

function append(held: Int32Array<ArrayBuffer>, length: number, values: Int32Array, count: number): Int32Array<ArrayBuffer> {
  let target = held;
  if (target.length < length + count) {
    target = new Int32Array(Math.max(held.length * 2, length + count));
    target.set(held);
  }
  target.set(values.subarray(0, count), length);
  return target;
}
