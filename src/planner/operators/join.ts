/**
 * Joins the rows of two sides. One side (`build`, ideally the one with fewer rows) is held and indexed by its keys, the other
 * streams by. The answer is the same to the last row, whichever side is held: left rows in order, for each its partners in the
 * order of the right side, and at the end, for right and full joins, the right rows that have no partner.
 *
 * Held on the right: left rows go by and look their partners up. Held on the left: right rows go by, those with a partner
 * are kept and chained to it, then the left rows are gone through once more.
 */
import type { Vector } from '../../log/values/columns.ts';
import type { ColumnType } from '../../log/values/value.ts';
import { columnsIn } from '../expressions/bound-expression.ts';
import { compileFilter, type FilterKernel, KernelCache } from '../expressions/kernel-compiler.ts';
import { type JoinNode, yieldsRight } from '../logical-plan.ts';
import { RowSink } from './column-sink.ts';
import { JoinPairs, type Partners } from './join-pairs.ts';
import type { JoinNarrowing } from './key-filter.ts';
import { MarkMatches } from './semi-join.ts';
import { NumberedRows } from './composite-key-index.ts';
import { type Batch, emptyBatch, type Execution, type Operator, type Pieces, PiecesOperator } from './operator.ts';
import { Predicate } from './predicate.ts';
import { type RowIndex, rowsPerStep } from './row-index.ts';

export interface JoinSetup {
  readonly left: Operator;
  readonly right: Operator;
  readonly node: JoinNode;
  readonly residual: KernelCache<FilterKernel> | null;
  /** Key filters for the scans of the side that is read last, made from the keys of the other side. */
  readonly narrowings?: readonly JoinNarrowing[];
  readonly execution: Execution;
}

/** Kernels of the residual condition of one join node; kept with the plan. */
export function joinKernels(node: JoinNode): KernelCache<FilterKernel> | null {
  return node.residual ? new KernelCache(node.residual, compileFilter) : null;
}

const joinBlockRows = 8_192;

export class JoinOperator extends PiecesOperator {
  readonly #setup: JoinSetup;
  readonly #joinKeyTypes: readonly ColumnType[];
  readonly #residualPredicate: Predicate | null;
  #chainHeads = new Int32Array(0);
  #heldBytes = 0;

  constructor(setup: JoinSetup) {
    super();
    const { node, residual, execution } = setup;
    this.#setup = setup;
    this.#joinKeyTypes = node.leftKeys.map((leftKey, k) =>
      joinKeyType(node.left.columns[leftKey]!.type, node.right.columns[node.rightKeys[k]!]!.type),
    );
    this.#residualPredicate = residual && new Predicate(residual, execution);
  }

  close(): void {
    this.#setup.left.close();
    this.#setup.right.close();
  }

  protected pieces(): Pieces {
    return this.#setup.node.build === 'right' ? this.#joinHoldingRight() : this.#joinHoldingLeft();
  }

  *#joinHoldingRight(): Pieces {
    const { left, right, node } = this.#setup;
    const { leads: leadsLeft = false } = node;
    const leftSink = this.#sideSink('left');
    let passedRows = 0;
    if (leadsLeft) {
      yield* this.#collectSide(left, leftSink, 0);
      if (leftSink.length === 0) return;
      passedRows = yield* this.#narrowOtherSide(node.leftKeys, leftSink.vectors(), leftSink.length);
    }
    const rightSink = this.#sideSink('right');
    yield* this.#collectSide(right, rightSink, leftSink.bytes + passedRows);
    if (rightSink.length === 0 && (node.type === 'inner' || node.type === 'right' || node.type === 'semi')) return;
    const rightColumns = rightSink.vectors();
    if (!leadsLeft) passedRows = yield* this.#narrowOtherSide(node.rightKeys, rightColumns, rightSink.length);
    const keyIndex = yield* this.#buildKeyIndex(node.rightKeys, rightColumns, rightSink.length);
    const { following, unique } = keyIndex;
    const joinPartners: Partners = { columns: rightColumns, rows: rightSink.length, following, unique };
    const joinMatches = yieldsRight(node.type)
      ? new JoinPairs(node, joinPartners, this.#residualPredicate)
      : new MarkMatches(node, joinPartners, this.#residualPredicate);
    this.#holdJoinBytes(leftSink.bytes + passedRows + rightSink.bytes + keyIndex.bytes + joinMatches.bytes);
    for (const leftBatch of leadsLeft ? joinBlocks(leftSink) : joinBatches(left)) {
      if (leftBatch.count === 0) yield emptyBatch;
      else yield* joinMatches.match(leftBatch, this.#findChainHeads(keyIndex, node.leftKeys, leftBatch));
    }
    yield* joinMatches.unmet();
  }

  /** Collects all rows of a side. */
  *#collectSide(joinSide: Operator, sideSink: RowSink, earlierBytes: number): Pieces {
    for (const sideBatch of joinBatches(joinSide)) {
      if (sideBatch.count > 0) sideSink.append(sideBatch);
      this.#holdJoinBytes(earlierBytes + sideSink.bytes);
      yield emptyBatch;
    }
  }

  /** Tells scans of the other side by which keys a row may have partners here; returns the bytes that it takes. */
  *#narrowOtherSide(joinKeys: readonly number[], sideColumns: readonly Vector[], rows: number): Pieces<number> {
    let narrowingBytes = 0;
    for (const { key, filter } of this.#setup.narrowings ?? []) {
      yield* yieldBetweenSteps(filter.take(sideColumns[joinKeys[key]!]!, rows));
      narrowingBytes += filter.bytes;
    }
    return narrowingBytes;
  }

  *#joinHoldingLeft(): Pieces {
    const { left, right, node } = this.#setup;
    const leftSink = this.#sideSink('left');
    yield* this.#collectSide(left, leftSink, 0);
    if (leftSink.length === 0 && (node.type === 'inner' || node.type === 'left')) return;
    const leftColumns = leftSink.vectors();
    const passedRows = yield* this.#narrowOtherSide(node.leftKeys, leftColumns, leftSink.length);
    const keyIndex = yield* this.#buildKeyIndex(node.leftKeys, leftColumns, leftSink.length);
    const heldBytes = leftSink.bytes + passedRows + keyIndex.bytes;
    const partnerSink = this.#sideSink('right');
    const chainOwners = new ChainOwners();
    const keepsAll = node.type === 'right' || node.type === 'full';
    for (let joinBatch = right.next(); joinBatch !== null; joinBatch = right.next()) {
      if (joinBatch.count > 0) {
        const chainHeads = this.#findChainHeads(keyIndex, node.rightKeys, joinBatch);
        if (keepsAll) chainOwners.append(chainHeads, joinBatch.count);
        const heldBatch = keepsAll ? joinBatch : chainOwners.appendOwned(chainHeads, joinBatch);
        if (heldBatch.count > 0) partnerSink.append(heldBatch);
        this.#holdJoinBytes(heldBytes + partnerSink.bytes + chainOwners.bytes);
      }
      yield emptyBatch;
    }
    const partnerChains = new PartnerChains(leftSink.length, chainOwners.values, partnerSink.length);
    yield* partnerChains.build();
    const { firsts, following, unique } = partnerChains;
    const partnerRows: Partners = { columns: partnerSink.vectors(), rows: partnerSink.length, following, unique };
    const joinMatches = new JoinPairs(node, partnerRows, this.#residualPredicate);
    this.#holdJoinBytes(heldBytes + partnerSink.bytes + chainOwners.bytes + partnerChains.bytes + joinMatches.bytes);
    for (const batch of joinBlocks(leftSink)) {
      const { first } = batch;
      if (keyIndex.unique) yield* joinMatches.match(batch, firsts.subarray(first));
      else {
        const chainHeads = this.#findChainHeads(keyIndex, node.leftKeys, batch);
        for (let j = 0; j < batch.count; j++) chainHeads[j] = chainHeads[j] === 0 ? 0 : firsts[chainHeads[j]! - 1]!;
        yield* joinMatches.match(batch, chainHeads);
      }
    }
    yield* joinMatches.unmet();
  }

  /** Collects the rows of one side: their keys, and the columns that the residual or an operator above reads. */
  #sideSink(joinSide: 'left' | 'right'): RowSink {
    const { node } = this.#setup;
    const sideTypes = node[joinSide].columns.map(({ type }) => type);
    if (node.read === undefined) return new RowSink(sideTypes);
    const firstSideColumn = joinSide === 'left' ? 0 : node.left.columns.length;
    const wantedColumns = new Set(joinSide === 'left' ? node.leftKeys : node.rightKeys);
    const readColumns = joinSide === 'right' && !yieldsRight(node.type) ? [] : node.read;
    const usedColumns = node.residual ? columnsIn(node.residual, new Set(readColumns)) : readColumns;
    for (const column of usedColumns) wantedColumns.add(column - firstSideColumn);
    return new RowSink(sideTypes, wantedColumns);
  }

  /** Makes the index that suits the keys of the held side. */
  *#buildKeyIndex(joinKeys: readonly number[], sideColumns: readonly Vector[], rows: number): Pieces<RowIndex> {
    const keyVectors = joinKeys.map((key) => sideColumns[key]!);
    return yield* yieldBetweenSteps(NumberedRows.build(this.#joinKeyTypes, keyVectors, rows));
  }

  #findChainHeads(keyIndex: RowIndex, joinKeys: readonly number[], batch: Batch): Int32Array {
    if (this.#chainHeads.length < batch.count) this.#chainHeads = new Int32Array(batch.count);
    const keyVectors = joinKeys.map((key) => batch.columns[key]!);
    keyIndex.find(keyVectors, batch, this.#chainHeads);
    return this.#chainHeads;
  }

  #holdJoinBytes(joinBytes: number): void {
    this.#heldBytes = this.#setup.execution.memory.change(this.#heldBytes, joinBytes);
  }
}

function* joinBatches(joinSide: Operator): Generator<Batch, void, void> {
  for (let joinBatch = joinSide.next(); joinBatch !== null; joinBatch = joinSide.next()) yield joinBatch;
}

/** Collected rows, a block at a time. */
function* joinBlocks(joinSink: RowSink): Generator<Batch, void, void> {
  const sinkColumns = joinSink.vectors();
  for (let first = 0; first < joinSink.length; first += joinBlockRows) {
    yield { columns: sinkColumns, selection: null, first, count: Math.min(joinBlockRows, joinSink.length - first) };
  }
}

/** Integers and numbers meet as numbers, text and json as text, instants and integers by their 64 bits. */
function joinKeyType(left: ColumnType, right: ColumnType): ColumnType {
  return right === 'number' ? right : left;
}

function* yieldBetweenSteps<T>(joinWork: Generator<undefined, T, void>): Pieces<T> {
  for (;;) {
    const workStep = joinWork.next();
    if (workStep.done) return workStep.value;
    yield emptyBatch;
  }
}

/** For each right row that was kept, the first left row + 1 of its key. */
class ChainOwners {
  values = new Int32Array(1024);
  #ownerCount = 0;
  #passing = new Int32Array(0);

  get bytes(): number {
    return this.values.byteLength;
  }

  append(chainHeads: Int32Array, count: number): void {
    this.#reserveOwners(count);
    this.values.set(chainHeads.subarray(0, count), this.#ownerCount);
    this.#ownerCount += count;
  }

  /** Keeps the rows that have a left row. */
  appendOwned(chainHeads: Int32Array, batch: Batch): Batch {
    const { columns, selection, first, count } = batch;
    this.#reserveOwners(count);
    if (this.#passing.length < count) this.#passing = new Int32Array(count);
    let ownedCount = 0;
    const chainOwners = this.values.subarray(this.#ownerCount, this.#ownerCount + count);
    const passing = this.#passing;
    // Each row is written, and the next one over it where it has no owner: nothing to guess for the processor.
    for (let j = 0; j < count; j++) {
      const chainHead = chainHeads[j]!;
      chainOwners[ownedCount] = chainHead;
      passing[ownedCount] = selection === null ? first + j : selection[j]!;
      ownedCount = (ownedCount + (chainHead === 0 ? 0 : 1)) | 0;
    }
    this.#ownerCount += ownedCount;
    return { columns, selection: this.#passing, first: 0, count: ownedCount };
  }

  #reserveOwners(count: number): void {
    if (this.#ownerCount + count <= this.values.length) return;
    const largerOwners = new Int32Array(Math.max(this.values.length * 2, this.#ownerCount + count));
    largerOwners.set(this.values);
    this.values = largerOwners;
  }
}

/** Right rows chained to the left row that owns them, made from the last to the first. */
class PartnerChains {
  /** First right row + 1 by left row. */
  readonly firsts: Int32Array;
  readonly following: Int32Array;
  readonly #chainOwners: Int32Array;
  unique = true;

  constructor(leftRows: number, owners: Int32Array, rightRows: number) {
    this.firsts = new Int32Array(leftRows);
    this.following = new Int32Array(rightRows);
    this.#chainOwners = owners;
  }

  get bytes(): number {
    return this.firsts.byteLength + this.following.byteLength;
  }

  *build(): Pieces {
    const { firsts, following } = this;
    const chainOwners = this.#chainOwners;
    let sharedRows = 0;
    for (let partnerRow = following.length - 1; partnerRow >= 0; partnerRow--) {
      const chainOwner = chainOwners[partnerRow]!;
      if (chainOwner !== 0) {
        const nextPartner = firsts[chainOwner - 1]!;
        sharedRows |= nextPartner;
        following[partnerRow] = nextPartner;
        firsts[chainOwner - 1] = partnerRow + 1;
      }
      if (partnerRow % rowsPerStep === 0) yield emptyBatch;
    }
    this.unique = sharedRows === 0;
  }
}
