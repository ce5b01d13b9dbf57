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

const sessionOutputRows = 4_096;
const sessionRowsPerStep = 16_384;
const sessionRanksPerStep = 131_072;

export class SessionOperator extends PiecesOperator {
  readonly #sessionInput: Operator;
  readonly #sessionNode: WindowNode;
  readonly #sessionGap: bigint;
  readonly #execution: Execution;
  #heldBytes = 0;

  constructor(input: Operator, node: WindowNode, gap: bigint, execution: Execution) {
    super();
    this.#sessionInput = input;
    this.#sessionNode = node;
    this.#sessionGap = gap;
    this.#execution = execution;
  }

  close(): void {
    this.#sessionInput.close();
  }

  protected *pieces(): Pieces {
    const { column, partition, input } = this.#sessionNode;
    const inputTypes = input.columns.map(({ type }) => type);
    const sessionRows = new CollectedRows(inputTypes);
    const partitionGroups = new GroupTable(partition.map((each) => inputTypes[each]!));
    let rowGroups = new Int32Array(1024);
    for (let batch = this.#sessionInput.next(); batch !== null; batch = this.#sessionInput.next()) {
      const instantBatch = batch.count === 0 ? emptyBatch : rowsWithInstant(batch, batch.columns[column]!);
      if (instantBatch.count > 0) {
        const batchGroups = partitionGroups.assign({
          ...instantBatch,
          columns: partition.map((each) => instantBatch.columns[each]!),
        });
        rowGroups = appendGroups(rowGroups, sessionRows.length, batchGroups, instantBatch.count);
        sessionRows.append(instantBatch);
        this.#holdSessionBytes(sessionRows.bytes + partitionGroups.bytes + rowGroups.byteLength);
      }
      yield emptyBatch;
    }
    const count = sessionRows.length;
    if (count === 0) return;
    const joiningRows = sessionRows.vectors();
    let joinedRows = joiningRows.next();
    for (; !joinedRows.done; joinedRows = joiningRows.next()) yield emptyBatch;
    const sessionColumns = joinedRows.value;
    const sessionRowIds = new Int32Array(count);
    for (let row = 0; row < count; row++) sessionRowIds[row] = row;
    const instantConverter = new Instants();
    let rowInstants: BigInt64Array = new BigInt64Array(0);
    for (let firstSessionRow = 0; firstSessionRow < count; firstSessionRow += sessionRowsPerStep) {
      const step = sessionRowIds.subarray(firstSessionRow, firstSessionRow + sessionRowsPerStep);
      rowInstants = instantConverter.read(sessionColumns[column]!, step, step.length);
      yield emptyBatch;
    }
    const rankingRows = partitionRanks(partitionGroups, rowGroups, count);
    let rankedRows = rankingRows.next();
    for (; !rankedRows.done; rankedRows = rankingRows.next()) yield emptyBatch;
    const rowRanks = rankedRows.value;
    this.#holdSessionBytes(sessionRows.bytes + partitionGroups.bytes + rowGroups.byteLength + count * 32);
    const sessionKeys: Vector[] = [
      { kind: 'i32', values: rowRanks, nulls: null },
      { kind: 'i64', values: rowInstants, nulls: null },
    ];
    const ascendingKey = { descending: false, collate: 'codepoint' } as const;
    const compareSessionRows = comparator(
      sessionKeys,
      [0, 1].map((key) => ({ column: key, ...ascendingKey })),
      count,
    );
    const sessionSorting = mergeSorted(count, compareSessionRows);
    let step = sessionSorting.next();
    for (; !step.done; step = sessionSorting.next()) yield emptyBatch;
    const sessionOrder = step.value;
    const sessionStarts = new BigInt64Array(count);
    const sessionEnds = new BigInt64Array(count);
    for (let first = 0, sessionEnd = 1; first < count; sessionEnd++) {
      // One session may be all rows: the search for its end rests now and then, too.
      if (sessionEnd % sessionRowsPerStep === 0) yield emptyBatch;
      if (
        sessionEnd < count &&
        continuesSession(sessionOrder[sessionEnd - 1]!, sessionOrder[sessionEnd]!, rowRanks, rowInstants, this.#sessionGap)
      )
        continue;
      const sessionWindowEnd = rowInstants[sessionOrder[sessionEnd - 1]!]! + this.#sessionGap;
      if (sessionWindowEnd > I64_MAX) throw integerOverflow();
      for (const sessionStart = rowInstants[sessionOrder[first]!]!; first < sessionEnd; first++) {
        sessionStarts[sessionOrder[first]!] = sessionStart;
        sessionEnds[sessionOrder[first]!] = sessionWindowEnd;
        if (first % sessionRowsPerStep === 0) yield emptyBatch;
      }
    }
    const sessionOutput: Vector[] = [
      ...sessionColumns,
      { kind: 'i64', values: sessionStarts, nulls: null },
      { kind: 'i64', values: sessionEnds, nulls: null },
    ];
    for (let outputIndex = 0; outputIndex < count; outputIndex += sessionOutputRows) {
      const selection = sessionOrder.subarray(outputIndex, outputIndex + sessionOutputRows);
      yield { columns: sessionOutput, selection, first: 0, count: selection.length };
    }
  }

  #holdSessionBytes(bytes: number): void {
    this.#heldBytes = this.#execution.memory.change(this.#heldBytes, bytes);
  }
}

/** Whether a row is of the session of the one before it. */
function continuesSession(
  previousRow: number,
  row: number,
  ranks: Int32Array,
  instants: BigInt64Array,
  sessionGap: bigint,
): boolean {
  return ranks[row] === ranks[previousRow] && instants[row]! - instants[previousRow]! < sessionGap;
}

function rowsWithInstant(batch: Batch, instantVector: Vector): Batch {
  if (instantVector.kind === 'null') return emptyBatch;
  const { nulls } = instantVector;
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
function* partitionRanks(
  partitionGroups: GroupTable,
  rowGroups: Int32Array,
  count: number,
): Generator<undefined, Int32Array, void> {
  const groupOrder = partitionGroups.order();
  const groupRanks = new Int32Array(partitionGroups.size);
  yield;
  for (let rank = 0; rank < groupOrder.length; rank++) {
    groupRanks[groupOrder[rank]!] = rank;
    if (rank % sessionRanksPerStep === sessionRanksPerStep - 1) yield;
  }
  const rowRanks = new Int32Array(count);
  for (let row = 0; row < count; row++) {
    rowRanks[row] = groupRanks[rowGroups[row]!]!;
    if (row % sessionRanksPerStep === sessionRanksPerStep - 1) yield;
  }
  return rowRanks;
}

function appendGroups(
  rowGroups: Int32Array<ArrayBuffer>,
  length: number,
  batchGroups: Int32Array,
  count: number,
): Int32Array<ArrayBuffer> {
  let grownGroups = rowGroups;
  if (grownGroups.length < length + count) {
    grownGroups = new Int32Array(Math.max(rowGroups.length * 2, length + count));
    grownGroups.set(rowGroups);
  }
  grownGroups.set(batchGroups.subarray(0, count), length);
  return grownGroups;
}
