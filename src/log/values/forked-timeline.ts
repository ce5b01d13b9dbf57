/** A timeline that shares what another one holds below a position, and goes on from there by itself. */
import { type PositionColumn, Timeline } from './timeline.ts';

export class ForkedTimeline extends Timeline {
  readonly #below: Timeline;
  readonly #from: number;

  /** Positions below `from` are those of `below`, whatever it covers beyond. */
  constructor(below: Timeline, from: number) {
    super();
    this.#below = below;
    this.#from = from;
  }

  override get end(): number {
    return this.runs === 0 ? this.#from : super.end;
  }

  override timeOf(position: number): bigint {
    return position < this.#from ? this.#below.timeOf(position) : super.timeOf(position);
  }

  override positionAfter(instant: bigint): number {
    const position = this.runs === 0 ? 0 : super.positionAfter(instant);
    return position > this.#from ? position : Math.min(this.#below.positionAfter(instant), this.#from);
  }

  override positionAt(instant: bigint): number {
    const own = super.positionAt(instant);
    if (own >= this.#from) return own;
    const position = this.#below.positionAt(instant);
    return position < this.#from ? position : -1;
  }

  /** Rows rest in one segment, and a segment lies on one side. */
  override writeTimes(
    target: BigInt64Array,
    column: PositionColumn,
    rows: Int32Array | null,
    first: number,
    count: number,
    compact: boolean,
  ): void {
    if (column.base < this.#from) this.#below.writeTimes(target, column, rows, first, count, compact);
    else super.writeTimes(target, column, rows, first, count, compact);
  }
}
