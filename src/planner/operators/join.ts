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

const blockRows = 8_192;

export class JoinOperator extends PiecesOperator {
  readonly #setup: JoinSetup;
  readonly #types: readonly ColumnType[];
  readonly #residual: Predicate | null;
  #heads = new Int32Array(0);
  #heldBytes = 0;

  constructor(setup: JoinSetup) {
    super();
    const { node, residual, execution } = setup;
    this.#setup = setup;
    this.#types = node.leftKeys.map((left, k) =>
      commonType(node.left.columns[left]!.type, node.right.columns[node.rightKeys[k]!]!.type),
    );
    this.#residual = residual && new Predicate(residual, execution);
  }

  close(): void {
    this.#setup.left.close();
    this.#setup.right.close();
  }

  protected pieces(): Pieces {
    return this.#setup.node.build === 'right' ? this.#holdRight() : this.#holdLeft();
  }

  *#holdRight(): Pieces {
    const { left, right, node } = this.#setup;
    const { leads = false } = node;
    const first = this.#sink('left');
    let passedRows = 0;
    if (leads) {
      yield* this.#collect(left, first, 0);
      if (first.length === 0) return;
      passedRows = yield* this.#tell(node.leftKeys, first.vectors(), first.length);
    }
    const sink = this.#sink('right');
    yield* this.#collect(right, sink, first.bytes + passedRows);
    if (sink.length === 0 && (node.type === 'inner' || node.type === 'right' || node.type === 'semi')) return;
    const columns = sink.vectors();
    if (!leads) passedRows = yield* this.#tell(node.rightKeys, columns, sink.length);
    const index = yield* this.#index(node.rightKeys, columns, sink.length);
    const { following, unique } = index;
    const partners: Partners = { columns, rows: sink.length, following, unique };
    const matches = yieldsRight(node.type)
      ? new JoinPairs(node, partners, this.#residual)
      : new MarkMatches(node, partners, this.#residual);
    this.#hold(first.bytes + passedRows + sink.bytes + index.bytes + matches.bytes);
    for (const batch of leads ? blocksOf(first) : batchesOf(left)) {
      if (batch.count === 0) yield emptyBatch;
      else yield* matches.match(batch, this.#find(index, node.leftKeys, batch));
    }
    yield* matches.unmet();
  }

  /** Collects all rows of a side. */
  *#collect(side: Operator, sink: RowSink, bytes: number): Pieces {
    for (const batch of batchesOf(side)) {
      if (batch.count > 0) sink.append(batch);
      this.#hold(bytes + sink.bytes);
      yield emptyBatch;
    }
  }

  /** Tells scans of the other side by which keys a row may have partners here; returns the bytes that it takes. */
  *#tell(keys: readonly number[], columns: readonly Vector[], rows: number): Pieces<number> {
    let bytes = 0;
    for (const { key, filter } of this.#setup.narrowings ?? []) {
      yield* pace(filter.take(columns[keys[key]!]!, rows));
      bytes += filter.bytes;
    }
    return bytes;
  }

  *#holdLeft(): Pieces {
    const { left, right, node } = this.#setup;
    const sink = this.#sink('left');
    yield* this.#collect(left, sink, 0);
    if (sink.length === 0 && (node.type === 'inner' || node.type === 'left')) return;
    const columns = sink.vectors();
    const passedRows = yield* this.#tell(node.leftKeys, columns, sink.length);
    const index = yield* this.#index(node.leftKeys, columns, sink.length);
    const heldBytes = sink.bytes + passedRows + index.bytes;
    const partners = this.#sink('right');
    const owners = new Owners();
    const keepsAll = node.type === 'right' || node.type === 'full';
    for (let batch = right.next(); batch !== null; batch = right.next()) {
      if (batch.count > 0) {
        const heads = this.#find(index, node.rightKeys, batch);
        if (keepsAll) owners.append(heads, batch.count);
        const heldBatch = keepsAll ? batch : owners.appendOwned(heads, batch);
        if (heldBatch.count > 0) partners.append(heldBatch);
        this.#hold(heldBytes + partners.bytes + owners.bytes);
      }
      yield emptyBatch;
    }
    const chains = new Chains(sink.length, owners.values, partners.length);
    yield* chains.build();
    const { firsts, following, unique } = chains;
    const partnerRows: Partners = { columns: partners.vectors(), rows: partners.length, following, unique };
    const matches = new JoinPairs(node, partnerRows, this.#residual);
    this.#hold(heldBytes + partners.bytes + owners.bytes + chains.bytes + matches.bytes);
    for (const batch of blocksOf(sink)) {
      const { first } = batch;
      if (index.unique) yield* matches.match(batch, firsts.subarray(first));
      else {
        const heads = this.#find(index, node.leftKeys, batch);
        for (let j = 0; j < batch.count; j++) heads[j] = heads[j] === 0 ? 0 : firsts[heads[j]! - 1]!;
        yield* matches.match(batch, heads);
      }
    }
    yield* matches.unmet();
  }

  /** Collects the rows of one side: their keys, and the columns that the residual or an operator above reads. */
  #sink(side: 'left' | 'right'): RowSink {
    const { node } = this.#setup;
    const types = node[side].columns.map(({ type }) => type);
    if (node.read === undefined) return new RowSink(types);
    const before = side === 'left' ? 0 : node.left.columns.length;
    const wanted = new Set(side === 'left' ? node.leftKeys : node.rightKeys);
    const read = side === 'right' && !yieldsRight(node.type) ? [] : node.read;
    const used = node.residual ? columnsIn(node.residual, new Set(read)) : read;
    for (const column of used) wanted.add(column - before);
    return new RowSink(types, wanted);
  }

  /** Makes the index that suits the keys of the held side. */
  *#index(keys: readonly number[], columns: readonly Vector[], rows: number): Pieces<RowIndex> {
    const vectors = keys.map((key) => columns[key]!);
    return yield* pace(NumberedRows.build(this.#types, vectors, rows));
  }

  #find(index: RowIndex, keys: readonly number[], batch: Batch): Int32Array {
    if (this.#heads.length < batch.count) this.#heads = new Int32Array(batch.count);
    const vectors = keys.map((key) => batch.columns[key]!);
    index.find(vectors, batch, this.#heads);
    return this.#heads;
  }

  #hold(bytes: number): void {
    this.#heldBytes = this.#setup.execution.memory.change(this.#heldBytes, bytes);
  }
}

function* batchesOf(operator: Operator): Generator<Batch, void, void> {
  for (let batch = operator.next(); batch !== null; batch = operator.next()) yield batch;
}

/** Collected rows, a block at a time. */
function* blocksOf(sink: RowSink): Generator<Batch, void, void> {
  const columns = sink.vectors();
  for (let first = 0; first < sink.length; first += blockRows) {
    yield { columns, selection: null, first, count: Math.min(blockRows, sink.length - first) };
  }
}

/** Integers and numbers meet as numbers, text and json as text, instants and integers by their 64 bits. */
function commonType(left: ColumnType, right: ColumnType): ColumnType {
  return right === 'number' ? right : left;
}

function* pace<T>(work: Generator<undefined, T, void>): Pieces<T> {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
    yield emptyBatch;
  }
}

/** For each right row that was kept, the first left row + 1 of its key. */
class Owners {
  values = new Int32Array(1024);
  #length = 0;
  #passing = new Int32Array(0);

  get bytes(): number {
    return this.values.byteLength;
  }

  append(heads: Int32Array, count: number): void {
    this.#reserve(count);
    this.values.set(heads.subarray(0, count), this.#length);
    this.#length += count;
  }

  /** Keeps the rows that have a left row. */
  appendOwned(heads: Int32Array, batch: Batch): Batch {
    const { columns, selection, first, count } = batch;
    this.#reserve(count);
    if (this.#passing.length < count) this.#passing = new Int32Array(count);
    let n = 0;
    const owners = this.values.subarray(this.#length, this.#length + count);
    const passing = this.#passing;
    // Each row is written, and the next one over it where it has no owner: nothing to guess for the processor.
    for (let j = 0; j < count; j++) {
      const head = heads[j]!;
      owners[n] = head;
      passing[n] = selection === null ? first + j : selection[j]!;
      n = (n + (head === 0 ? 0 : 1)) | 0;
    }
    this.#length += n;
    return { columns, selection: this.#passing, first: 0, count: n };
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.values.length) return;
    const values = new Int32Array(Math.max(this.values.length * 2, this.#length + count));
    values.set(this.values);
    this.values = values;
  }
}

/** Right rows chained to the left row that owns them, made from the last to the first. */
class Chains {
  /** First right row + 1 by left row. */
  readonly firsts: Int32Array;
  readonly following: Int32Array;
  readonly #owners: Int32Array;
  unique = true;

  constructor(leftRows: number, owners: Int32Array, rightRows: number) {
    this.firsts = new Int32Array(leftRows);
    this.following = new Int32Array(rightRows);
    this.#owners = owners;
  }

  get bytes(): number {
    return this.firsts.byteLength + this.following.byteLength;
  }

  *build(): Pieces {
    const { firsts, following } = this;
    const owners = this.#owners;
    let shared = 0;
    for (let row = following.length - 1; row >= 0; row--) {
      const owner = owners[row]!;
      if (owner !== 0) {
        const next = firsts[owner - 1]!;
        shared |= next;
        following[row] = next;
        firsts[owner - 1] = row + 1;
      }
      if (row % rowsPerStep === 0) yield emptyBatch;
    }
    this.unique = shared === 0;
  }
}
