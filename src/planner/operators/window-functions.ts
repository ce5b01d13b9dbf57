/**
 * Window functions: each row gets results of the rows around it in its partition. Rows are collected, their numbers sorted by
 * partition and order, results worked out along that order, and the rows delivered as they came, with columns more. Each step
 * is bounded. Doubles are added one by one in the order of the window, for each frame anew unless it only grows.
 */
import type { Vector } from '../../log/values/columns.ts';
import { type Cell, type ColumnType, compareText, I64_MAX, I64_MIN } from '../../log/values/value.ts';
import { cellAt, VectorBuilder } from '../../log/values/vector-builder.ts';
import { integerOverflow, numberOverflow } from '../expressions/evaluate.ts';
import { type Cost, turnMost } from '../expressions/expression-cost.ts';
import type { OverCall, OverNode } from '../logical-plan.ts';
import type { WindowFunction } from '../syntax/statement.ts';
import { ServiceError } from '../../errors.ts';
import { aggregateFunctions, type AggregateName } from '../aggregate-functions.ts';
import { foldingOf } from './cell-accumulators.ts';
import { CollectedRows } from './collected-rows.ts';
import { type Batch, emptyBatch, type Execution, type Operator } from './operator.ts';
import { type Compare, comparator } from './row-order.ts';
import { sortedRows } from './row-sort.ts';

const windowOutputRows = 4_096;
const windowStepsPerCall = 8_192;
const windowResultBytes = 16;
/** Bytes of texts that are made before the memory for them is asked for. */
const windowTextsStep = 1 << 20;

/**
 * Nanoseconds of a row of each function, and of a character where it is of texts. A frame that moves is gone through again: each of
 * its rows is a row of the function.
 */
export const overFunctions: Readonly<Record<WindowFunction, Cost>> = {
  row_number: { call: 150, character: 0 },
  rank: { call: 150, character: 0 },
  dense_rank: { call: 150, character: 0 },
  lag: { call: 150, character: 2 },
  lead: { call: 150, character: 2 },
  first_value: { call: 200, character: 2 },
  last_value: { call: 200, character: 2 },
  nth_value: { call: 200, character: 2 },
  ntile: { call: 150, character: 0 },
  percent_rank: { call: 150, character: 0 },
  cume_dist: { call: 150, character: 0 },
  ...aggregateFrameCosts(),
};

/** An aggregate over a frame costs more than over a group: its cells are read one by one. */
function aggregateFrameCosts(): Record<AggregateName, Cost> {
  const frameCosts = Object.entries(aggregateFunctions).map(([name, { cost }]) => [
    name,
    { call: cost.call + 150, character: cost.character + 1 },
  ]);
  return Object.fromEntries(frameCosts) as Record<AggregateName, Cost>;
}

/** Counts the work of a function; true: the turn is full. */
class WindowCallCost {
  readonly #callCost: Cost;
  #spentNs = 0;

  constructor({ function: name }: OverCall) {
    this.#callCost = overFunctions[name];
  }

  addCost(cell: Cell): boolean {
    this.#spentNs += this.#callCost.call + (typeof cell === 'string' ? cell.length * this.#callCost.character : 0);
    if (this.#spentNs < turnMost) return false;
    this.#spentNs = 0;
    return true;
  }
}

export class OverOperator implements Operator {
  readonly #overInput: Operator;
  readonly #overNode: OverNode;
  readonly #execution: Execution;
  readonly #collectedRows: CollectedRows;
  #heldBytes = 0;
  /** Bytes of the texts that frames yield, and of those that are accounted for. */
  #resultTextBytes = 0;
  #heldTextBytes = 0;
  #windowWork: Generator<undefined, void, void> | null = null;
  #resultColumns: readonly Vector[] | null = null;
  #deliveredRows = 0;

  constructor(input: Operator, node: OverNode, execution: Execution) {
    this.#overInput = input;
    this.#overNode = node;
    this.#execution = execution;
    this.#collectedRows = new CollectedRows(node.input.columns.map(({ type }) => type));
  }

  next(): Batch | null {
    if (this.#resultColumns) return this.#deliverResults(this.#resultColumns);
    if (this.#windowWork) {
      this.#windowWork.next();
      return emptyBatch;
    }
    const batch = this.#overInput.next();
    if (batch === null) this.#windowWork = this.#computeCalls();
    else if (batch.count > 0) {
      this.#collectedRows.append(batch);
      this.#holdWindowBytes(0);
    }
    return emptyBatch;
  }

  close(): void {
    this.#overInput.close();
  }

  #holdWindowBytes(resultBytesNow: number): void {
    this.#heldBytes = this.#execution.memory.change(this.#heldBytes, this.#collectedRows.bytes + resultBytesNow);
  }

  #deliverResults(resultColumns: readonly Vector[]): Batch | null {
    const count = Math.min(windowOutputRows, this.#collectedRows.length - this.#deliveredRows);
    if (count <= 0) return null;
    const firstDelivered = this.#deliveredRows;
    this.#deliveredRows += count;
    return { columns: resultColumns, selection: null, first: firstDelivered, count };
  }

  *#computeCalls(): Generator<undefined, void, void> {
    const { partition, keys, calls } = this.#overNode;
    const rowCount = this.#collectedRows.length;
    const collectedVectors = yield* this.#collectedRows.vectors();
    this.#holdWindowBytes(rowCount * (4 + calls.length * windowResultBytes));
    const partitionKeys = partition.map((column) => ({ column, descending: false, collate: 'codepoint' }) as const);
    const windowOrder = yield* sortedRows(collectedVectors, [...partitionKeys, ...keys], rowCount);
    const growResultTexts = (textBytes: number): void => {
      this.#resultTextBytes += textBytes;
      if (this.#resultTextBytes - this.#heldTextBytes < windowTextsStep) return;
      this.#heldTextBytes = this.#resultTextBytes;
      this.#holdWindowBytes(rowCount * (4 + calls.length * windowResultBytes) + this.#resultTextBytes);
    };
    const samePartition = comparator(collectedVectors, partitionKeys, rowCount);
    const comparePeers = keys.length === 0 ? allArePeers : comparator(collectedVectors, keys, rowCount);
    const inputTypes = this.#overNode.input.columns.map(({ type }) => type);
    const callResults: Cell[][] = [];
    for (const _ of calls) {
      callResults.push(Array<Cell>(rowCount));
      yield;
    }
    for (let partitionStart = 0; partitionStart < rowCount; ) {
      let partitionEnd = partitionStart + 1;
      while (partitionEnd < rowCount && samePartition(windowOrder[partitionStart]!, windowOrder[partitionEnd]!) === 0) {
        partitionEnd++;
        if ((partitionEnd - partitionStart) % windowStepsPerCall === 0) yield;
      }
      const windowPartition: WindowPartition = {
        order: windowOrder,
        start: partitionStart,
        end: partitionEnd,
        peers: comparePeers,
        vectors: collectedVectors,
        types: inputTypes,
        execution: this.#execution,
        grow: growResultTexts,
      };
      for (const [c, overCall] of calls.entries()) yield* computeCall(windowPartition, overCall, callResults[c]!);
      partitionStart = partitionEnd;
      yield;
    }
    const computedColumns: Vector[] = [...collectedVectors];
    for (const [c, call] of calls.entries()) {
      const resultBuilder = new VectorBuilder(call.type, Math.max(1, rowCount));
      for (let resultRow = 0; resultRow < rowCount; resultRow++) {
        resultBuilder.append(callResults[c]![resultRow] ?? null);
        if (resultRow % windowStepsPerCall === 0) yield;
      }
      computedColumns.push(resultBuilder.build());
    }
    this.#resultColumns = computedColumns;
  }
}

/** Without an order all rows are peers. */
const allArePeers: Compare = () => 0;

/** Rows of a partition: order[start .. end). */
interface WindowPartition {
  readonly order: Int32Array;
  readonly start: number;
  readonly end: number;
  readonly peers: Compare;
  readonly vectors: readonly Vector[];
  readonly types: readonly ColumnType[];
  readonly execution: Execution;
  /** Accounts for the bytes of a text that a frame yields. */
  grow(bytes: number): void;
}

type WindowSteps = Generator<undefined, void, void>;

function computeCall(windowPartition: WindowPartition, overCall: OverCall, callResults: Cell[]): WindowSteps {
  switch (overCall.function) {
    case 'row_number':
    case 'rank':
    case 'dense_rank':
      return rankRows(windowPartition, overCall, callResults);
    case 'percent_rank':
    case 'cume_dist':
      return shareOfRows(windowPartition, overCall, callResults);
    case 'ntile':
      return tileRows(windowPartition, overCall, callResults);
    case 'first_value':
    case 'last_value':
    case 'nth_value':
      return pickFrameValue(windowPartition, overCall, callResults);
    case 'lag':
    case 'lead':
      return shiftRows(windowPartition, overCall, callResults);
    default:
      return aggregateFrames(windowPartition, overCall, callResults);
  }
}

function* rankRows({ order, start, end, peers }: WindowPartition, overCall: OverCall, callResults: Cell[]): WindowSteps {
  const { function: rankFunction } = overCall;
  const callCost = new WindowCallCost(overCall);
  let currentRank = 0;
  for (let rankedIndex = start; rankedIndex < end; rankedIndex++) {
    const startsPeers = rankedIndex === start || peers(order[rankedIndex - 1]!, order[rankedIndex]!) !== 0;
    if (rankFunction === 'row_number' || (rankFunction === 'rank' && startsPeers)) currentRank = rankedIndex - start + 1;
    else if (startsPeers) currentRank++;
    callResults[order[rankedIndex]!] = BigInt(currentRank);
    if (callCost.addCost(null)) yield;
  }
}

/** The share of the rows before a row's peers among all others, or of those up to its last peer among all. */
function* shareOfRows({ order, start, end, peers }: WindowPartition, overCall: OverCall, callResults: Cell[]): WindowSteps {
  const isRank = overCall.function === 'percent_rank';
  const callCost = new WindowCallCost(overCall);
  for (let peersFrom = start, peersTo = start; peersFrom < end; peersFrom = peersTo) {
    for (peersTo = peersFrom + 1; peersTo < end && peers(order[peersFrom]!, order[peersTo]!) === 0; peersTo++)
      if (callCost.addCost(null)) yield;
    const rankShare = isRank
      ? peersFrom === start
        ? 0
        : (peersFrom - start) / (end - start - 1)
      : (peersTo - start) / (end - start);
    for (let peerIndex = peersFrom; peerIndex < peersTo; peerIndex++) {
      callResults[order[peerIndex]!] = rankShare;
      if (callCost.addCost(null)) yield;
    }
  }
}

/** So many parts of a partition whose sizes differ by one at most, the larger ones first. */
function* tileRows({ order, start, end, vectors, types }: WindowPartition, overCall: OverCall, callResults: Cell[]): WindowSteps {
  const tileCount = cellAt(vectors[overCall.column!]!, types[overCall.column!]!, order[start]!);
  if (tileCount === null) return;
  if ((tileCount as bigint) <= 0n)
    throw new ServiceError('REL_INVALID', 'NTILE takes a number above zero', { reason: 'tile-count' });
  const tiles = Math.min(Number(tileCount), end - start);
  const tileSize = Math.floor((end - start) / tiles);
  const largerTiles = (end - start) % tiles;
  const callCost = new WindowCallCost(overCall);
  for (let tiledIndex = start; tiledIndex < end; tiledIndex++) {
    const rowsBehindLarger = tiledIndex - start - largerTiles * (tileSize + 1);
    const tileNumber =
      rowsBehindLarger < 0
        ? Math.floor((tiledIndex - start) / (tileSize + 1))
        : largerTiles + Math.floor(rowsBehindLarger / tileSize);
    callResults[order[tiledIndex]!] = BigInt(tileNumber + 1);
    if (callCost.addCost(null)) yield;
  }
}

function* shiftRows(windowPartition: WindowPartition, overCall: OverCall, callResults: Cell[]): WindowSteps {
  const { order, start, end, vectors, types, execution } = windowPartition;
  const offset = overCall.offset === null ? 1 : execution.rowLimit(overCall.offset);
  const shiftStep = overCall.function === 'lag' ? -offset : offset;
  const shiftedColumn = overCall.column!;
  const callCost = new WindowCallCost(overCall);
  for (let shiftedIndex = start; shiftedIndex < end; shiftedIndex++) {
    const shiftedFrom = shiftedIndex + shiftStep;
    const isInPartition = shiftedFrom >= start && shiftedFrom < end;
    const shiftedCell = isInPartition
      ? windowCell(vectors[shiftedColumn]!, types[shiftedColumn]!, order[shiftedFrom]!, overCall.type)
      : overCall.otherwise === null
        ? null
        : windowCell(vectors[overCall.otherwise]!, types[overCall.otherwise]!, order[shiftedIndex]!, overCall.type);
    callResults[order[shiftedIndex]!] = shiftedCell;
    if (callCost.addCost(shiftedCell)) yield;
  }
}

function windowCell(vector: Vector, type: ColumnType, row: number, wantedType: ColumnType): Cell {
  const rowCell = cellAt(vector, type, row);
  return wantedType === 'number' && typeof rowCell === 'bigint' ? Number(rowCell) : rowCell;
}

/** An aggregate over a moving frame: `add` extends the frame at its end, `result` reads it. */
interface RunningAggregate {
  add(cell: Cell, second: Cell): void;
  result(): Cell;
}

function* aggregateFrames(windowPartition: WindowPartition, overCall: OverCall, callResults: Cell[]): WindowSteps {
  const { order, start, end, vectors, types, execution } = windowPartition;
  const { column, second, when } = overCall;
  const aggregatedCell = (partitionIndex: number): Cell =>
    column === null ? true : cellAt(vectors[column]!, types[column]!, order[partitionIndex]!);
  const argumentCell = (index: number | undefined, partitionIndex: number): Cell =>
    index === undefined ? null : cellAt(vectors[index]!, types[index]!, order[partitionIndex]!);
  const windowFrames = new WindowFrames(windowPartition, overCall, execution);
  let frameAggregate = runningAggregate(overCall, types);
  let frameFrom = start;
  let frameTo = start;
  const callCost = new WindowCallCost(overCall);
  for (let framedIndex = start; framedIndex < end; framedIndex++) {
    while (!windowFrames.findPeers(framedIndex)) yield;
    const currentFrame = windowFrames.frameAt(framedIndex);
    if (currentFrame.from !== frameFrom || currentFrame.to < frameTo) {
      frameAggregate = runningAggregate(overCall, types);
      frameFrom = currentFrame.from;
      frameTo = currentFrame.from;
    }
    for (; frameTo < currentFrame.to; frameTo++) {
      const enteringCell = aggregatedCell(frameTo);
      if (when === undefined || argumentCell(when, frameTo) === true)
        frameAggregate.add(enteringCell, argumentCell(second, frameTo));
      if (callCost.addCost(enteringCell)) yield;
    }
    const frameResult = frameAggregate.result();
    callResults[order[framedIndex]!] = frameResult;
    if (typeof frameResult === 'string') windowPartition.grow(2 * frameResult.length);
    if (callCost.addCost(frameResult)) yield;
  }
}

/** A value of each row's frame, by its place. */
function* pickFrameValue(windowPartition: WindowPartition, overCall: OverCall, callResults: Cell[]): WindowSteps {
  const { order, start, end, vectors, types, execution } = windowPartition;
  const { function: name, column, second } = overCall;
  const windowFrames = new WindowFrames(windowPartition, overCall, execution);
  const callCost = new WindowCallCost(overCall);
  for (let pickingIndex = start; pickingIndex < end; pickingIndex++) {
    while (!windowFrames.findPeers(pickingIndex)) yield;
    const { from, to } = windowFrames.frameAt(pickingIndex);
    const nthOfFrame = name === 'nth_value' ? rowInFrame(cellAt(vectors[second!]!, types[second!]!, order[pickingIndex]!)) : 1;
    const frameRow = name === 'last_value' ? to - 1 : from + (nthOfFrame ?? end) - 1;
    const isInFrame = frameRow >= from && frameRow < to;
    const pickedCell = isInFrame ? cellAt(vectors[column!]!, types[column!]!, order[frameRow]!) : null;
    callResults[order[pickingIndex]!] = pickedCell;
    if (callCost.addCost(pickedCell)) yield;
  }
}

/** Counted from 1; null where it is NULL. */
function rowInFrame(nth: Cell): number | null {
  if (nth === null) return null;
  if ((nth as bigint) <= 0n) throw new ServiceError('REL_INVALID', 'NTH_VALUE counts from 1', { reason: 'nth-row' });
  return Number(nth);
}

/** Places from .. to-1 of each row's frame. */
class WindowFrames {
  readonly #windowPartition: WindowPartition;
  readonly #overCall: OverCall;
  readonly #rowsBefore: number;
  readonly #rowsAfter: number;
  /** Begin and end of the peers of the row asked for last. */
  #peersFrom: number;
  #peersTo: number;
  /** The row whose peers are sought, and those found. */
  #peersOfIndex = -1;
  #seenPeers = 0;

  constructor(windowPartition: WindowPartition, overCall: OverCall, { rowLimit }: Execution) {
    this.#windowPartition = windowPartition;
    this.#overCall = overCall;
    const { from, to } = overCall.frame;
    const boundRows = (frameBound: OverCall['frame']['from']): number =>
      frameBound.kind === 'rows' ? rowLimit(frameBound.count) * (frameBound.following ? 1 : -1) : 0;
    this.#rowsBefore = boundRows(from);
    this.#rowsAfter = boundRows(to);
    this.#peersFrom = windowPartition.start;
    this.#peersTo = windowPartition.start;
  }

  /** Asked of rising places, once their peers are found. */
  frameAt(framedIndex: number): { readonly from: number; readonly to: number } {
    const { start, end } = this.#windowPartition;
    const { unit, from, to } = this.#overCall.frame;
    const firstOfFrame = from.kind === 'unbounded' ? start : unit === 'range' ? this.#peersFrom : framedIndex + this.#rowsBefore;
    const lastOfFrame = to.kind === 'unbounded' ? end : unit === 'range' ? this.#peersTo : framedIndex + this.#rowsAfter + 1;
    const frameBegin = Math.min(end, Math.max(start, firstOfFrame));
    return { from: frameBegin, to: Math.max(frameBegin, Math.min(end, lastOfFrame)) };
  }

  /** False: it has to be asked again, since there are more than it looks at in one turn. */
  findPeers(peerIndex: number): boolean {
    const { order, end, peers } = this.#windowPartition;
    if (this.#overCall.frame.unit !== 'range' || peerIndex < this.#peersTo) return true;
    if (this.#peersOfIndex !== peerIndex) {
      this.#peersOfIndex = peerIndex;
      this.#seenPeers = peerIndex + 1;
    }
    const peersLimit = Math.min(end, this.#seenPeers + windowStepsPerCall);
    while (this.#seenPeers < peersLimit && peers(order[peerIndex]!, order[this.#seenPeers]!) === 0) this.#seenPeers++;
    if (this.#seenPeers === peersLimit && peersLimit < end) return false;
    this.#peersFrom = peerIndex;
    this.#peersTo = this.#seenPeers;
    return true;
  }
}

function runningAggregate(overCall: OverCall, types: readonly ColumnType[]): RunningAggregate {
  const { function: name, type } = overCall;
  let enteredCount = 0;
  switch (name) {
    case 'count':
      return {
        add: (enteringCell) => {
          if (enteringCell !== null) enteredCount++;
        },
        result: () => BigInt(enteredCount),
      };
    case 'sum':
    case 'avg': {
      let exactSum = 0n;
      let doubleSum = 0;
      let isExact = true;
      return {
        add: (enteringCell) => {
          if (enteringCell === null) return;
          enteredCount++;
          if (typeof enteringCell === 'bigint') exactSum += enteringCell;
          else {
            isExact = false;
            doubleSum += Number(enteringCell);
          }
        },
        result: () => {
          if (enteredCount === 0) return null;
          if (name === 'sum' && type === 'integer') {
            if (exactSum > I64_MAX || exactSum < I64_MIN) throw integerOverflow();
            return exactSum;
          }
          const frameTotal = isExact ? Number(exactSum) : doubleSum;
          if (!Number.isFinite(frameTotal)) throw numberOverflow();
          return name === 'avg' ? frameTotal / enteredCount : frameTotal;
        },
      };
    }
    case 'min':
    case 'max': {
      const extremeSign = name === 'min' ? -1 : 1;
      let extremeCell: Cell = null;
      return {
        add: (enteringCell) => {
          if (enteringCell !== null && (extremeCell === null || compareWindowCells(enteringCell, extremeCell) * extremeSign > 0))
            extremeCell = enteringCell;
        },
        result: () => extremeCell,
      };
    }
    default: {
      const foldedCall = { function: name as AggregateName };
      const frameFolding = foldingOf(
        foldedCall,
        types[overCall.column!]!,
        overCall.second === undefined ? null : types[overCall.second]!,
      );
      let foldState: unknown;
      return {
        add: (enteringCell, secondCell) => {
          if (enteringCell !== null || frameFolding.takesNull === true)
            frameFolding.take((foldState ??= frameFolding.start()), enteringCell, secondCell);
        },
        result: () => (foldState === undefined ? (frameFolding.ofNothing ?? null) : frameFolding.finish(foldState)),
      };
    }
  }
}

function compareWindowCells(leftCell: Cell, rightCell: Cell): number {
  if (typeof leftCell === 'string' && typeof rightCell === 'string') return compareText(leftCell, rightCell);
  return leftCell! < rightCell! ? -1 : leftCell! > rightCell! ? 1 : 0;
}
