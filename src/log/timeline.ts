/**
 * Positions to instants and back: runs of (position, time) in which both rise by one. System time is the log position
 * by this table, in both directions and exactly. Pure; both columns rise strictly.
 */
import { assert } from '../errors.ts';

export class Timeline {
  #positions = new Float64Array(64);
  #times = new BigInt64Array(64);
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

  #push(position: number, time: bigint): void {
    if (this.#runs === this.#positions.length) {
      const positions = new Float64Array(this.#runs * 2);
      const times = new BigInt64Array(this.#runs * 2);
      positions.set(this.#positions);
      times.set(this.#times);
      this.#positions = positions;
      this.#times = times;
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
