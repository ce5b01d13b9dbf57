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
const hopRowsPerBlock = 4_096;

export function windowOperator(windowInput: Operator, node: WindowNode, execution: Execution): Operator {
  const windowLengths = node.intervals.map((slot) => windowLength(slot, execution));
  if (node.type === 'session') return new SessionOperator(windowInput, node, windowLengths[0]!, execution);
  if (node.type === 'tumble') return new TumbleOperator(windowInput, node.column, windowLengths[0]!);
  return new HopOperator(windowInput, node, windowLengths[0]!, windowLengths[1]!);
}

/** Nanoseconds of an interval of the statement; a window of no length holds nothing. */
function windowLength({ slot, location }: Slot, execution: Execution): bigint {
  const intervalNs = execution.kernels.constant({ kind: 'literal', slot, as: 'interval', type: 'interval', location });
  if (typeof intervalNs !== 'bigint' || intervalNs <= 0n)
    throw new ServiceError('REL_INVALID', 'a window needs an interval above zero');
  return intervalNs;
}

class TumbleOperator implements Operator {
  readonly #tumbleInput: Operator;
  readonly #instantColumn: number;
  readonly #windowSize: bigint;
  readonly #instantReader = new Instants();
  #passing = new Int32Array(0);
  #windowStarts = new BigInt64Array(0);
  #windowEnds = new BigInt64Array(0);

  constructor(input: Operator, column: number, size: bigint) {
    this.#tumbleInput = input;
    this.#instantColumn = column;
    this.#windowSize = size;
  }

  next(): Batch | null {
    const batch = this.#tumbleInput.next();
    if (batch === null) return null;
    const instantVector = batch.columns[this.#instantColumn];
    if (batch.count === 0 || instantVector === undefined || instantVector.kind === 'null') return emptyBatch;
    if (this.#passing.length < batch.count) this.#passing = new Int32Array(batch.count);
    const passing = this.#passing;
    const count = rowsWithInstants(instantVector, batch, passing);
    const rowInstants = this.#instantReader.read(instantVector, passing, count);
    if (this.#windowStarts.length < rowInstants.length) {
      this.#windowStarts = new BigInt64Array(rowInstants.length);
      this.#windowEnds = new BigInt64Array(rowInstants.length);
    }
    tumbleRows(rowInstants, passing, count, this.#windowSize, this.#windowStarts, this.#windowEnds);
    const columns: Vector[] = [...batch.columns, windowBoundColumn(this.#windowStarts), windowBoundColumn(this.#windowEnds)];
    return { columns, selection: passing, first: 0, count };
  }

  close(): void {
    this.#tumbleInput.close();
  }
}

/** Arithmetic wrapped to 64 bits stays in registers; where it would wrap indeed, the window has no bound that can be said. */
function tumbleRows(
  rowInstants: BigInt64Array,
  rowsInTime: Int32Array,
  count: number,
  windowSize: bigint,
  windowStarts: BigInt64Array,
  windowEnds: BigInt64Array,
): void {
  const leastInstant = BigInt.asIntN(64, I64_MIN + windowSize);
  const mostInstant = BigInt.asIntN(64, I64_MAX - windowSize);
  for (let rowIndex = 0; rowIndex < count; rowIndex++) {
    const tumbledRow = rowsInTime[rowIndex]!;
    const rowInstant = rowInstants[tumbledRow]!;
    if (rowInstant < leastInstant || rowInstant > mostInstant) checkWindowBounds(rowInstant, windowSize);
    let instantInWindow = BigInt.asIntN(64, rowInstant % windowSize);
    if (instantInWindow < 0n) instantInWindow = BigInt.asIntN(64, instantInWindow + windowSize);
    const windowStart = BigInt.asIntN(64, rowInstant - instantInWindow);
    windowStarts[tumbledRow] = windowStart;
    windowEnds[tumbledRow] = BigInt.asIntN(64, windowStart + windowSize);
  }
}

function checkWindowBounds(instant: bigint, windowSize: bigint): void {
  const windowStart = floorToWindow(instant, windowSize);
  if (windowStart < I64_MIN || windowStart + windowSize > I64_MAX) throw integerOverflow();
}

/** The last multiple of `windowStep` that is not after the instant. */
function floorToWindow(instant: bigint, windowStep: bigint): bigint {
  const stepRemainder = instant % windowStep;
  return instant - (stepRemainder < 0n ? stepRemainder + windowStep : stepRemainder);
}

class HopOperator implements Operator {
  readonly #hopInput: Operator;
  readonly #instantColumn: number;
  readonly #hopSlide: bigint;
  readonly #hopSize: bigint;
  readonly #instantReader = new Instants();
  readonly #hopGatherers: readonly Gatherer[];
  readonly #hopRows = new Int32Array(hopRowsPerBlock);
  readonly #hopStarts = new BigInt64Array(hopRowsPerBlock);
  readonly #hopEnds = new BigInt64Array(hopRowsPerBlock);
  #presentRows = new Int32Array(0);
  #presentCount = 0;
  #presentInstants: BigInt64Array = new BigInt64Array(0);
  #hopBatch: Batch | null = null;
  #windowIndex = 0;
  /** Next window of the row at work, or null where it has none begun. */
  #nextHopStart: bigint | null = null;

  constructor(input: Operator, node: WindowNode, hopSlide: bigint, hopSize: bigint) {
    if ((hopSize + hopSlide - 1n) / hopSlide > BigInt(windowsPerRowMax)) {
      throw new ServiceError('REL_INVALID', `HOP puts a row into more than ${windowsPerRowMax} windows: take a longer slide`);
    }
    this.#hopInput = input;
    this.#instantColumn = node.column;
    this.#hopSlide = hopSlide;
    this.#hopSize = hopSize;
    this.#hopGatherers = node.input.columns.map(() => new Gatherer());
  }

  next(): Batch | null {
    if (this.#hopBatch !== null) return this.#deliverHops(this.#hopBatch);
    const batch = this.#hopInput.next();
    if (batch === null) return null;
    const instantVector = batch.columns[this.#instantColumn];
    if (batch.count === 0 || instantVector === undefined || instantVector.kind === 'null') return emptyBatch;
    if (this.#presentRows.length < batch.count) this.#presentRows = new Int32Array(batch.count);
    this.#presentCount = rowsWithInstants(instantVector, batch, this.#presentRows);
    this.#presentInstants = this.#instantReader.read(instantVector, this.#presentRows, this.#presentCount);
    this.#windowIndex = 0;
    this.#nextHopStart = null;
    this.#hopBatch = batch;
    return this.#deliverHops(batch);
  }

  close(): void {
    this.#hopInput.close();
  }

  #deliverHops(batch: Batch): Batch {
    const hopRows = this.#hopRows;
    let hopCount = 0;
    while (hopCount < hopRowsPerBlock && this.#windowIndex < this.#presentCount) {
      const presentRow = this.#presentRows[this.#windowIndex]!;
      const presentInstant = this.#presentInstants[presentRow]!;
      let hopStart = this.#nextHopStart ?? floorToWindow(presentInstant - this.#hopSize, this.#hopSlide) + this.#hopSlide;
      for (; hopStart <= presentInstant && hopCount < hopRowsPerBlock; hopStart += this.#hopSlide) {
        if (hopStart < I64_MIN || hopStart + this.#hopSize > I64_MAX) throw integerOverflow();
        hopRows[hopCount] = presentRow;
        this.#hopStarts[hopCount] = hopStart;
        this.#hopEnds[hopCount++] = hopStart + this.#hopSize;
      }
      this.#nextHopStart = hopStart <= presentInstant ? hopStart : null;
      if (this.#nextHopStart === null) this.#windowIndex++;
    }
    if (this.#windowIndex >= this.#presentCount) this.#hopBatch = null;
    if (hopCount === 0) return emptyBatch;
    const hopFetch: Fetch = { rows: hopRows, count: hopCount, targetRows: null, length: hopCount, absent: false };
    const columns: Vector[] = this.#hopGatherers.map((gatherer, c) => gatherer.fetch(batch.columns[c]!, hopFetch));
    columns.push(windowBoundColumn(this.#hopStarts), windowBoundColumn(this.#hopEnds));
    return { columns, selection: null, first: 0, count: hopCount };
  }
}

/** Numbers of the rows whose cell is not NULL. */
function rowsWithInstants(
  vector: Exclude<Vector, { kind: 'null' }>,
  { selection, first, count }: Batch,
  rowsInTime: Int32Array,
): number {
  const { nulls } = vector;
  let presentCount = 0;
  for (let j = 0; j < count; j++) {
    const batchRow = selection === null ? first + j : selection[j]!;
    if (nulls === null || nulls[batchRow] === 0) rowsInTime[presentCount++] = batchRow;
  }
  return presentCount;
}

function windowBoundColumn(values: BigInt64Array): Vector {
  return { kind: 'i64', values, nulls: null };
}
