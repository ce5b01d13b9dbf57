/**
 * Positions to instants and back: runs of (position, time) in which both rise by one. System time is the log position
 * by this table, in both directions and exactly. Pure; both columns rise strictly.
 */
import { assert } from '../../errors.ts';

const LOW_WORD_SIZE = 4_294_967_296;

/** Positions of rows where they rest: `base + deltas[row]`, or `base + row` where there are none. */
export interface PositionColumn {
  readonly base: number;
  readonly deltas: Int32Array | null;
}

/** The runs themselves, for a checkpoint. */
export interface SavedTimeline {
  readonly end: number;
  readonly positions: Float64Array;
  readonly times: BigInt64Array;
}

export class Timeline {
  #runPositions = new Float64Array(64);
  #runTimes = new BigInt64Array(64);
  /** The bytes of `#runTimes`, low word first: arithmetic on words makes no bigint per row. */
  #runTimeWords = new Int32Array(this.#runTimes.buffer);
  #runCount = 0;
  #endPosition = 0;
  #lastRunTime = 0n;

  /** First position that no run covers. */
  get end(): number {
    return this.#endPosition;
  }

  get runs(): number {
    return this.#runCount;
  }

  /** `positionCount` positions from `firstPosition` on, at `firstInstant`, `firstInstant` + 1 … Covers what comes next, with no gap in positions. */
  append(firstPosition: number, firstInstant: bigint, positionCount: number): void {
    if (positionCount === 0) return;
    assert(
      this.#runCount === 0 || (firstPosition === this.#endPosition && firstInstant > this.#lastRunTime),
      'time rises with position',
    );
    if (this.#runCount === 0 || firstInstant !== this.#lastRunTime + 1n) this.#pushRun(firstPosition, firstInstant);
    this.#endPosition = firstPosition + positionCount;
    this.#lastRunTime = firstInstant + BigInt(positionCount - 1);
  }

  timeOf(soughtPosition: number): bigint {
    const timelineRun = this.#findLastRun((i) => this.#runPositions[i]! <= soughtPosition);
    assert(timelineRun >= 0 && soughtPosition < this.#endPosition, 'the position has a time');
    return this.#runTimes[timelineRun]! + BigInt(soughtPosition - this.#runPositions[timelineRun]!);
  }

  /** How many positions, from the first covered one on, have a time at or below `soughtInstant`: the first position after it. */
  positionAfter(soughtInstant: bigint): number {
    const timelineRun = this.#findLastRun((i) => this.#runTimes[i]! <= soughtInstant);
    if (timelineRun < 0) return this.#runCount === 0 ? 0 : this.#runPositions[0]!;
    const runEnd = timelineRun + 1 < this.#runCount ? this.#runPositions[timelineRun + 1]! : this.#endPosition;
    const reachedInRun = soughtInstant - this.#runTimes[timelineRun]! + 1n;
    const runLength = runEnd - this.#runPositions[timelineRun]!;
    return reachedInRun >= BigInt(runLength) ? runEnd : this.#runPositions[timelineRun]! + Number(reachedInRun);
  }

  /** The position with exactly this time, or -1. */
  positionAt(soughtInstant: bigint): number {
    const foundPosition = this.positionAfter(soughtInstant) - 1;
    return this.#runCount > 0 && foundPosition >= this.#runPositions[0]! && this.timeOf(foundPosition) === soughtInstant
      ? foundPosition
      : -1;
  }

  /**
   * Times of rows with ascending positions: `target[compact ? k : row]` for row k of `timeRows`, or of first .. first+count-1
   * where `timeRows` is null.
   */
  writeTimes(
    timeTarget: BigInt64Array,
    positionColumn: PositionColumn,
    timeRows: Int32Array | null,
    first: number,
    timeCount: number,
    compact: boolean,
  ): void {
    if (timeCount === 0) return;
    const { base, deltas } = positionColumn;
    const timeWords = new Int32Array(timeTarget.buffer, timeTarget.byteOffset, timeTarget.length * 2);
    const chosen: ChosenRows = { out: timeWords, deltas, rows: timeRows, first, count: timeCount, compact };
    const firstRow = timeRows ? timeRows[0]! : first;
    const firstPosition = base + (deltas ? deltas[firstRow]! : firstRow);
    let timelineRun = this.#findLastRun((i) => this.#runPositions[i]! <= firstPosition);
    for (let k = 0; k < timeCount; timelineRun++) {
      const runStart = this.#runPositions[timelineRun]!;
      const runEnd = timelineRun + 1 < this.#runCount ? this.#runPositions[timelineRun + 1]! : this.#endPosition;
      const lowWord = this.#runTimeWords[timelineRun * 2]! >>> 0;
      const highWord = this.#runTimeWords[timelineRun * 2 + 1]!;
      // Up to where the low word overflows, then from there: in between, times are 32-bit sums.
      const carryPosition = runStart + LOW_WORD_SIZE - lowWord;
      const lowWordSum = (lowWord + (base - runStart)) | 0;
      k = writeTimes(chosen, k, Math.min(runEnd, carryPosition) - base, lowWordSum, highWord);
      if (carryPosition < runEnd) k = writeTimes(chosen, k, runEnd - base, lowWordSum, highWord + 1);
    }
  }

  savedState(): SavedTimeline {
    return {
      end: this.#endPosition,
      positions: this.#runPositions.slice(0, this.#runCount),
      times: this.#runTimes.slice(0, this.#runCount),
    };
  }

  restore(savedTimeline: SavedTimeline): void {
    this.clear();
    savedTimeline.positions.forEach((position, run) => this.#pushRun(position, savedTimeline.times[run]!));
    this.#endPosition = savedTimeline.end;
    if (this.#runCount > 0)
      this.#lastRunTime = savedTimeline.times.at(-1)! + BigInt(savedTimeline.end - 1 - savedTimeline.positions.at(-1)!);
  }

  clear(): void {
    this.#runCount = 0;
    this.#endPosition = 0;
    this.#lastRunTime = 0n;
  }

  #pushRun(runPosition: number, runTime: bigint): void {
    if (this.#runCount === this.#runPositions.length) {
      const grownPositions = new Float64Array(this.#runCount * 2);
      const grownTimes = new BigInt64Array(this.#runCount * 2);
      grownPositions.set(this.#runPositions);
      grownTimes.set(this.#runTimes);
      this.#runPositions = grownPositions;
      this.#runTimes = grownTimes;
      this.#runTimeWords = new Int32Array(grownTimes.buffer);
    }
    this.#runPositions[this.#runCount] = runPosition;
    this.#runTimes[this.#runCount] = runTime;
    this.#runCount++;
  }

  /** Index of the last run that `isRunBefore`, which is true of a prefix of the runs; -1 when of none. */
  #findLastRun(isRunBefore: (run: number) => boolean): number {
    let lowRun = -1;
    let highRun = this.#runCount;
    while (highRun - lowRun > 1) {
      const middleRun = (lowRun + highRun) >> 1;
      if (isRunBefore(middleRun)) lowRun = middleRun;
      else highRun = middleRun;
    }
    return lowRun;
  }
}

/** Rows whose times are written: two words each, by row or, if compact, one after the other. */
interface ChosenRows {
  readonly out: Int32Array;
  readonly deltas: Int32Array | null;
  readonly rows: Int32Array | null;
  readonly first: number;
  readonly count: number;
  readonly compact: boolean;
}

/** Writes the times of chosen rows from `from` on whose delta is below `end`; returns the first row beyond. */
function writeTimes(chosen: ChosenRows, from: number, end: number, low: number, high: number): number {
  const { out, deltas, rows, first, count, compact } = chosen;
  let k = from;
  for (; k < count; k++) {
    const row = rows ? rows[k]! : first + k;
    const delta = deltas ? deltas[row]! : row;
    if (delta >= end) break;
    const at = (compact ? k : row) * 2;
    out[at] = (low + delta) | 0;
    out[at + 1] = high;
  }
  return k;
}
