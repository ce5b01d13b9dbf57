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

  apply(timedEntry: CommittedEntry): void {
    this.timeline.append(timedEntry.position, timedEntry.time, timedEntry.positions);
  }

  async checkpoint(timelineCheckpoint: CheckpointWriter): Promise<void> {
    timelineCheckpoint.section('runs', serialize(this.timeline.savedState()));
  }

  async restore(timelineCheckpoint: CheckpointReader): Promise<void> {
    const timelineBytes = timelineCheckpoint.section('runs');
    assert(timelineBytes, 'a checkpoint of the timeline has runs');
    this.timeline.restore(deserialize(timelineBytes) as SavedTimeline);
  }

  reset(): void {
    this.timeline.clear();
  }

  digest(): string {
    const timelineHash = new CanonicalHash();
    const { end, positions, times: runTimes } = this.timeline.savedState();
    timelineHash.number(end);
    positions.forEach((position, timelineRun) => {
      timelineHash.number(position);
      timelineHash.i64(runTimes[timelineRun]!);
    });
    return timelineHash.hex();
  }
}
