/**
 * Positions to instants and back: runs of (position, time) in which both rise by one. System time is the log position
 * by this table, in both directions and exactly. Pure; both columns rise strictly.
 */
import { assert } from '../../errors.ts';

const TWO_32 = 4_294_967_296;

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
  #positions = new Float64Array(64);
  #times = new BigInt64Array(64);
  /** The bytes of `#times`, low word first: arithmetic on words makes no bigint per row. */
  #words = new Int32Array(this.#times.buffer);
  #runs = 0;
  #end = 0;
  #lastTime = 0n;

  /** First position that no run covers. */
  get end(): number {
    return this.#end;
  }

  get runs(): number {
    return this.#runs;
  }

  /** `count` positions from `position` on, at `time`, `time` + 1 … Covers what comes next, with no gap in positions. */
  append(position: number, time: bigint, count: number): void {
    if (count === 0) return;
    assert(this.#runs === 0 || (position === this.#end && time > this.#lastTime), 'time rises with position');
    if (this.#runs === 0 || time !== this.#lastTime + 1n) this.#push(position, time);
    this.#end = position + count;
    this.#lastTime = time + BigInt(count - 1);
  }

  timeOf(position: number): bigint {
    const run = this.#lastRun((i) => this.#positions[i]! <= position);
    assert(run >= 0 && position < this.#end, 'the position has a time');
    return this.#times[run]! + BigInt(position - this.#positions[run]!);
  }

  /** How many positions, from the first covered one on, have a time at or below `instant`: the first position after it. */
  positionAfter(instant: bigint): number {
    const run = this.#lastRun((i) => this.#times[i]! <= instant);
    if (run < 0) return this.#runs === 0 ? 0 : this.#positions[0]!;
    const end = run + 1 < this.#runs ? this.#positions[run + 1]! : this.#end;
    const reached = instant - this.#times[run]! + 1n;
    const count = end - this.#positions[run]!;
    return reached >= BigInt(count) ? end : this.#positions[run]! + Number(reached);
  }

  /** The position with exactly this time, or -1. */
  positionAt(instant: bigint): number {
    const position = this.positionAfter(instant) - 1;
    return this.#runs > 0 && position >= this.#positions[0]! && this.timeOf(position) === instant ? position : -1;
  }

  /**
   * Times of rows with ascending positions: `target[compact ? k : row]` for row k of `rows`, or of first .. first+count-1
   * where `rows` is null.
   */
  writeTimes(
    target: BigInt64Array,
    column: PositionColumn,
    rows: Int32Array | null,
    first: number,
    count: number,
    compact: boolean,
  ): void {
    if (count === 0) return;
    const { base, deltas } = column;
    const out = new Int32Array(target.buffer, target.byteOffset, target.length * 2);
    const chosen: ChosenRows = { out, deltas, rows, first, count, compact };
    const firstRow = rows ? rows[0]! : first;
    const start = base + (deltas ? deltas[firstRow]! : firstRow);
    let run = this.#lastRun((i) => this.#positions[i]! <= start);
    for (let k = 0; k < count; run++) {
      const from = this.#positions[run]!;
      const end = run + 1 < this.#runs ? this.#positions[run + 1]! : this.#end;
      const low = this.#words[run * 2]! >>> 0;
      const high = this.#words[run * 2 + 1]!;
      // Up to where the low word overflows, then from there: in between, times are 32-bit sums.
      const carry = from + TWO_32 - low;
      const sum = (low + (base - from)) | 0;
      k = writeTimes(chosen, k, Math.min(end, carry) - base, sum, high);
      if (carry < end) k = writeTimes(chosen, k, end - base, sum, high + 1);
    }
  }

  savedState(): SavedTimeline {
    return { end: this.#end, positions: this.#positions.slice(0, this.#runs), times: this.#times.slice(0, this.#runs) };
  }

  restore(saved: SavedTimeline): void {
    this.clear();
    saved.positions.forEach((position, run) => this.#push(position, saved.times[run]!));
    this.#end = saved.end;
    if (this.#runs > 0) this.#lastTime = saved.times.at(-1)! + BigInt(saved.end - 1 - saved.positions.at(-1)!);
  }

  clear(): void {
    this.#runs = 0;
    this.#end = 0;
    this.#lastTime = 0n;
  }

  #push(position: number, time: bigint): void {
    if (this.#runs === this.#positions.length) {
      const positions = new Float64Array(this.#runs * 2);
      const times = new BigInt64Array(this.#runs * 2);
      positions.set(this.#positions);
      times.set(this.#times);
      this.#positions = positions;
      this.#times = times;
      this.#words = new Int32Array(times.buffer);
    }
    this.#positions[this.#runs] = position;
    this.#times[this.#runs] = time;
    this.#runs++;
  }

  /** Index of the last run that `holds`, which is true of a prefix of the runs; -1 when of none. */
  #lastRun(holds: (run: number) => boolean): number {
    let low = -1;
    let high = this.#runs;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (holds(middle)) low = middle;
      else high = middle;
    }
    return low;
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
