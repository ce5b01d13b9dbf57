/**
 * TUMBLE, HOP and SESSION. Rows come out with the start and end of their window beside them, so that grouping by these is
 * grouping like any other. A tumbling window adds two columns to a block as it stands; a hopping one repeats rows, window
 * after window, in blocks of bounded size. Windows are aligned to the epoch: instants before it floor downwards.
 */
import { ServiceError } from '../../errors.ts';
import type { Vector } from '../../log/values/columns.ts';
import { I64_MAX, I64_MIN } from '../../log/values/value.ts';
import { integerOverflow } from '../expressions/evaluate.ts';
import type { WindowNode } from '../logical-plan.ts';
import type { Slot } from '../syntax/statement.ts';
import { type Fetch, Gatherer } from './column-gatherer.ts';
import { Instants } from './instant-cells.ts';
import { type Batch, emptyBatch, type Execution, type Operator } from './operator.ts';
import { SessionOperator } from './session-windows.ts';

/** The most hopping windows that one row is in. */
export const windowsPerRowMax = 10_000;
const rowsPerBlock = 4_096;

export function windowOperator(input: Operator, node: WindowNode, execution: Execution): Operator {
  const lengths = node.intervals.map((slot) => lengthOf(slot, execution));
  if (node.type === 'session') return new SessionOperator(input, node, lengths[0]!, execution);
  if (node.type === 'tumble') return new TumbleOperator(input, node.column, lengths[0]!);
  return new HopOperator(input, node, lengths[0]!, lengths[1]!);
}

/** Nanoseconds of an interval of the statement; a window of no length holds nothing. */
function lengthOf({ slot, location }: Slot, execution: Execution): bigint {
  const length = execution.kernels.constant({ kind: 'literal', slot, as: 'interval', type: 'interval', location });
  if (typeof length !== 'bigint' || length <= 0n) throw new ServiceError('REL_INVALID', 'a window needs an interval above zero');
  return length;
}

class TumbleOperator implements Operator {
  readonly #input: Operator;
  readonly #column: number;
  readonly #size: bigint;
  readonly #instants = new Instants();
  #passing = new Int32Array(0);
  #starts = new BigInt64Array(0);
  #ends = new BigInt64Array(0);

  constructor(input: Operator, column: number, size: bigint) {
    this.#input = input;
    this.#column = column;
    this.#size = size;
  }

  next(): Batch | null {
    const batch = this.#input.next();
    if (batch === null) return null;
    const vector = batch.columns[this.#column];
    if (batch.count === 0 || vector === undefined || vector.kind === 'null') return emptyBatch;
    if (this.#passing.length < batch.count) this.#passing = new Int32Array(batch.count);
    const passing = this.#passing;
    const count = presentRows(vector, batch, passing);
    const instants = this.#instants.read(vector, passing, count);
    if (this.#starts.length < instants.length) {
      this.#starts = new BigInt64Array(instants.length);
      this.#ends = new BigInt64Array(instants.length);
    }
    tumble(instants, passing, count, this.#size, this.#starts, this.#ends);
    const columns: Vector[] = [...batch.columns, instantColumn(this.#starts), instantColumn(this.#ends)];
    return { columns, selection: passing, first: 0, count };
  }

  close(): void {
    this.#input.close();
  }
}

/** Arithmetic wrapped to 64 bits stays in registers; where it would wrap indeed, the window has no bound that can be said. */
function tumble(
  instants: BigInt64Array,
  rows: Int32Array,
  count: number,
  size: bigint,
  starts: BigInt64Array,
  ends: BigInt64Array,
): void {
  const least = BigInt.asIntN(64, I64_MIN + size);
  const most = BigInt.asIntN(64, I64_MAX - size);
  for (let n = 0; n < count; n++) {
    const row = rows[n]!;
    const instant = instants[row]!;
    if (instant < least || instant > most) checkBounds(instant, size);
    let rest = BigInt.asIntN(64, instant % size);
    if (rest < 0n) rest = BigInt.asIntN(64, rest + size);
    const start = BigInt.asIntN(64, instant - rest);
    starts[row] = start;
    ends[row] = BigInt.asIntN(64, start + size);
  }
}

function checkBounds(instant: bigint, size: bigint): void {
  const start = floorTo(instant, size);
  if (start < I64_MIN || start + size > I64_MAX) throw integerOverflow();
}

/** The last multiple of `step` that is not after the instant. */
function floorTo(instant: bigint, step: bigint): bigint {
  const rest = instant % step;
  return instant - (rest < 0n ? rest + step : rest);
}

class HopOperator implements Operator {
  readonly #input: Operator;
  readonly #column: number;
  readonly #slide: bigint;
  readonly #size: bigint;
  readonly #instants = new Instants();
  readonly #gatherers: readonly Gatherer[];
  readonly #rows = new Int32Array(rowsPerBlock);
  readonly #starts = new BigInt64Array(rowsPerBlock);
  readonly #ends = new BigInt64Array(rowsPerBlock);
  #present = new Int32Array(0);
  #count = 0;
  #values: BigInt64Array = new BigInt64Array(0);
  #batch: Batch | null = null;
  #windowIndex = 0;
  /** Next window of the row at work, or null where it has none begun. */
  #next: bigint | null = null;

  constructor(input: Operator, node: WindowNode, slide: bigint, size: bigint) {
    if ((size + slide - 1n) / slide > BigInt(windowsPerRowMax)) {
      throw new ServiceError('REL_INVALID', `HOP puts a row into more than ${windowsPerRowMax} windows: take a longer slide`);
    }
    this.#input = input;
    this.#column = node.column;
    this.#slide = slide;
    this.#size = size;
    this.#gatherers = node.input.columns.map(() => new Gatherer());
  }

  next(): Batch | null {
    if (this.#batch !== null) return this.#deliver(this.#batch);
    const batch = this.#input.next();
    if (batch === null) return null;
    const vector = batch.columns[this.#column];
    if (batch.count === 0 || vector === undefined || vector.kind === 'null') return emptyBatch;
    if (this.#present.length < batch.count) this.#present = new Int32Array(batch.count);
    this.#count = presentRows(vector, batch, this.#present);
    this.#values = this.#instants.read(vector, this.#present, this.#count);
    this.#windowIndex = 0;
    this.#next = null;
    this.#batch = batch;
    return this.#deliver(batch);
  }

  close(): void {
    this.#input.close();
  }

  #deliver(batch: Batch): Batch {
    const rows = this.#rows;
    let count = 0;
    while (count < rowsPerBlock && this.#windowIndex < this.#count) {
      const row = this.#present[this.#windowIndex]!;
      const instant = this.#values[row]!;
      let start = this.#next ?? floorTo(instant - this.#size, this.#slide) + this.#slide;
      for (; start <= instant && count < rowsPerBlock; start += this.#slide) {
        if (start < I64_MIN || start + this.#size > I64_MAX) throw integerOverflow();
        rows[count] = row;
        this.#starts[count] = start;
        this.#ends[count++] = start + this.#size;
      }
      this.#next = start <= instant ? start : null;
      if (this.#next === null) this.#windowIndex++;
    }
    if (this.#windowIndex >= this.#count) this.#batch = null;
    if (count === 0) return emptyBatch;
    const wanted: Fetch = { rows, count, targetRows: null, length: count, absent: false };
    const columns: Vector[] = this.#gatherers.map((gatherer, c) => gatherer.fetch(batch.columns[c]!, wanted));
    columns.push(instantColumn(this.#starts), instantColumn(this.#ends));
    return { columns, selection: null, first: 0, count };
  }
}

/** Numbers of the rows whose cell is not NULL. */
function presentRows(vector: Exclude<Vector, { kind: 'null' }>, { selection, first, count }: Batch, out: Int32Array): number {
  const { nulls } = vector;
  let n = 0;
  for (let j = 0; j < count; j++) {
    const row = selection === null ? first + j : selection[j]!;
    if (nulls === null || nulls[row] === 0) out[n++] = row;
  }
  return n;
}

function instantColumn(values: BigInt64Array): Vector {
  return { kind: 'i64', values, nulls: null };
}
