/** A timeline that shares what another one holds below a position, and goes on from there by itself. */
import { type PositionColumn, Timeline } from './timeline.ts';

export class ForkedTimeline extends Timeline {
  readonly #sourceTimeline: Timeline;
  readonly #forkPosition: number;

  /** Positions below `forkPosition` are those of `sourceTimeline`, whatever it covers beyond. */
  constructor(sourceTimeline: Timeline, forkPosition: number) {
    super();
    this.#sourceTimeline = sourceTimeline;
    this.#forkPosition = forkPosition;
  }

  override get end(): number {
    return this.runs === 0 ? this.#forkPosition : super.end;
  }

  override timeOf(soughtPosition: number): bigint {
    return soughtPosition < this.#forkPosition ? this.#sourceTimeline.timeOf(soughtPosition) : super.timeOf(soughtPosition);
  }

  override positionAfter(soughtInstant: bigint): number {
    const ownPosition = this.runs === 0 ? 0 : super.positionAfter(soughtInstant);
    return ownPosition > this.#forkPosition
      ? ownPosition
      : Math.min(this.#sourceTimeline.positionAfter(soughtInstant), this.#forkPosition);
  }

  override positionAt(soughtInstant: bigint): number {
    const ownPosition = super.positionAt(soughtInstant);
    if (ownPosition >= this.#forkPosition) return ownPosition;
    const sourcePosition = this.#sourceTimeline.positionAt(soughtInstant);
    return sourcePosition < this.#forkPosition ? sourcePosition : -1;
  }

  /** Rows rest in one segment, and a segment lies on one side. */
  override writeTimes(
    timeTarget: BigInt64Array,
    positionColumn: PositionColumn,
    timeRows: Int32Array | null,
    first: number,
    count: number,
    compact: boolean,
  ): void {
    if (positionColumn.base < this.#forkPosition)
      this.#sourceTimeline.writeTimes(timeTarget, positionColumn, timeRows, first, count, compact);
    else super.writeTimes(timeTarget, positionColumn, timeRows, first, count, compact);
  }
}
