/**
 * Position <-> nanosecond, both ways exact. Positions are dense and an entry's rows are one nanosecond apart, so the
 * whole map is a list of runs: position p of a run has time `start time + (p - start position)`.
 *
 * Readers turn an instant into a position bound once, and compare positions from there on.
 */
import { deserialize, serialize } from 'node:v8';
import { assert } from '../../errors.ts';
import type { CommittedEntry } from '../../log/entry.ts';
import { CanonicalHash } from '../canonical-hash.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';

const TWO_32 = 4_294_967_296;

/** How positions of rows are spelt where they rest: `base + deltas[row]`. */
export interface PositionColumn {
  readonly base: number;
  readonly deltas: Int32Array;
}

export class Timeline implements Projection {
  readonly name = 'temporal';
  readonly formatVersion = 1;
  #runs = 0;
  /** First position of each run. */
  #starts = new Float64Array(64);
  #times = new BigInt64Array(64);
  /** The same bytes as `#times`, low word first: arithmetic on words makes no bigint per row. */
  #words = new Int32Array(this.#times.buffer);
  #next = 0;

  /** Position that the next entry starts at. */
  get next(): number {
    return this.#next;
  }

  apply(entry: CommittedEntry): void {
    if (entry.positions > 0) this.append(entry.position, entry.positions, entry.time);
  }

  append(position: number, count: number, time: bigint): void {
    assert(position === this.#next, `position ${position} follows ${this.#next}`);
    const last = this.#runs - 1;
    this.#next = position + count;
    if (last >= 0) {
      const expected = this.#times[last]! + BigInt(position - this.#starts[last]!);
      if (time === expected) return;
      assert(time > expected, 'time rises with position');
    }
    if (this.#runs === this.#starts.length) this.#grow();
    this.#starts[this.#runs] = position;
    this.#times[this.#runs] = time;
    this.#runs++;
  }

  /** How many positions have a time at or below `instant`: versions below this position were known then. */
  positionsThrough(instant: bigint): number {
    let low = 0;
    let high = this.#runs;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#times[middle]! <= instant) low = middle + 1;
      else high = middle;
    }
    if (low === 0) return 0;
    const start = this.#starts[low - 1]!;
    const end = low < this.#runs ? this.#starts[low]! : this.#next;
    const known = instant - this.#times[low - 1]! + 1n;
    return known >= BigInt(end - start) ? end : start + Number(known);
  }

  timeOf(position: number): bigint {
    assert(position >= 0 && position < this.#next, `no position ${position}`);
    const run = this.#runOf(position);
    return this.#times[run]! + BigInt(position - this.#starts[run]!);
  }

  /** The position with exactly this time, or -1. */
  positionAt(instant: bigint): number {
    const position = this.positionsThrough(instant) - 1;
    return position >= 0 && this.timeOf(position) === instant ? position : -1;
  }

  /**
   * Times of rows with ascending positions: `target[compact ? k : row]` for row k of `rows`, or of first .. first+count-1
   * where `rows` is null.
   */
  writeTimes(
    target: BigInt64Array,
    positions: PositionColumn,
    rows: Int32Array | null,
    first: number,
    count: number,
    compact: boolean,
  ): void {
    if (count === 0) return;
    const { base, deltas } = positions;
    const out = new Int32Array(target.buffer, target.byteOffset, target.length * 2);
    let run = this.#runOf(base + deltas[rows ? rows[0]! : first]!);
    for (let k = 0; k < count; run++) {
      const start = this.#starts[run]!;
      const end = run + 1 < this.#runs ? this.#starts[run + 1]! : this.#next;
      const low = this.#words[run * 2]! >>> 0;
      const high = this.#words[run * 2 + 1]!;
      // Up to where the low word overflows, then from there: in between, times are 32-bit sums.
      const carry = start + TWO_32 - low;
      k = writeStretch(
        out,
        deltas,
        rows,
        first,
        k,
        count,
        compact,
        Math.min(end, carry) - base,
        (low + (base - start)) | 0,
        high,
      );
      if (carry < end)
        k = writeStretch(out, deltas, rows, first, k, count, compact, end - base, (low + (base - start)) | 0, high + 1);
    }
  }

  async checkpoint(target: CheckpointWriter): Promise<void> {
    const runs = this.#runs;
    target.section(
      'runs',
      serialize({ next: this.#next, starts: this.#starts.slice(0, runs), words: this.#words.slice(0, runs * 2) }),
    );
  }

  async restore(source: CheckpointReader): Promise<void> {
    const bytes = source.section('runs');
    assert(bytes, 'a timeline checkpoint has runs');
    const state = deserialize(bytes) as { next: number; starts: Float64Array; words: Int32Array };
    this.reset();
    while (this.#starts.length < state.starts.length) this.#grow();
    this.#starts.set(state.starts);
    this.#words.set(state.words);
    this.#runs = state.starts.length;
    this.#next = state.next;
  }

  reset(): void {
    this.#runs = 0;
    this.#next = 0;
  }

  digest(): string {
    const hash = new CanonicalHash();
    hash.number(this.#next);
    for (let run = 0; run < this.#runs; run++) {
      hash.number(this.#starts[run]!);
      hash.i64(this.#times[run]!);
    }
    return hash.hex();
  }

  #runOf(position: number): number {
    let low = 0;
    let high = this.#runs;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#starts[middle]! <= position) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  #grow(): void {
    const starts = new Float64Array(this.#starts.length * 2);
    starts.set(this.#starts);
    this.#starts = starts;
    const times = new BigInt64Array(starts.length);
    times.set(this.#times);
    this.#times = times;
    this.#words = new Int32Array(times.buffer);
  }
}

/** Times of rows k .. count-1 whose delta is below `end`; returns the first row beyond. */
function writeStretch(
  out: Int32Array,
  deltas: Int32Array,
  rows: Int32Array | null,
  first: number,
  from: number,
  count: number,
  compact: boolean,
  end: number,
  low: number,
  high: number,
): number {
  let k = from;
  for (; k < count; k++) {
    const row = rows ? rows[k]! : first + k;
    const delta = deltas[row]!;
    if (delta >= end) break;
    const at = (compact ? k : row) * 2;
    out[at] = (low + delta) | 0;
    out[at + 1] = high;
  }
  return k;
}
