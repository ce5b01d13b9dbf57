/** Position <-> nanosecond for all that was applied: readers turn an instant into a position bound once, and compare positions. */
import { deserialize, serialize } from 'node:v8';
import { assert } from '../../errors.ts';
import type { CommittedEntry } from '../../log/entries/entry.ts';
import { type SavedTimeline, Timeline } from '../../log/values/timeline.ts';
import { CanonicalHash } from '../canonical-hash.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';

export class Temporal implements Projection {
  readonly name = 'temporal';
  readonly formatVersion = 1;
  readonly timeline = new Timeline();

  apply(entry: CommittedEntry): void {
    this.timeline.append(entry.position, entry.time, entry.positions);
  }

  async checkpoint(target: CheckpointWriter): Promise<void> {
    target.section('runs', serialize(this.timeline.savedState()));
  }

  async restore(source: CheckpointReader): Promise<void> {
    const bytes = source.section('runs');
    assert(bytes, 'a checkpoint of the timeline has runs');
    this.timeline.restore(deserialize(bytes) as SavedTimeline);
  }

  reset(): void {
    this.timeline.clear();
  }

  digest(): string {
    const hash = new CanonicalHash();
    const { end, positions, times } = this.timeline.savedState();
    hash.number(end);
    positions.forEach((position, run) => {
      hash.number(position);
      hash.i64(times[run]!);
    });
    return hash.hex();
  }
}
