/**
 * When each thing was recalled, and under which path: what access records say of it, by salted ids that lead to nothing
 * without their salt. Records have no position, so a reader's bound is an instant: an entry is of the recalls below an instant
 * if it was appended by then, which no later entry ever changes.
 */
import { deserialize, serialize } from 'node:v8';
import { assert } from '../../errors.ts';
import type { CommittedEntry } from '../../log/entries/entry.ts';
import { compareText } from '../../log/values/value.ts';
import type { RecallReader } from '../access-paths.ts';
import { CanonicalHash } from '../canonical-hash.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';

/** Recalls of one thing, in the order of the log: two arrays for all of them, as a thing may be recalled a million times. */
interface RecallTimes {
  readonly times: bigint[];
  /** Numbers of paths. */
  readonly paths: number[];
}

interface SavedRecalls {
  readonly paths: readonly (string | null)[];
  readonly recalls: Map<string, RecallTimes>;
}

export class RecallCounts implements Projection {
  readonly name = 'recalls';
  readonly formatVersion = 1;
  #recallPaths: (string | null)[] = [];
  #recallPathNumbers = new Map<string | null, number>();
  #recallsById = new Map<string, RecallTimes>();

  apply({ body, time }: CommittedEntry): void {
    if (body.kind !== 'access') return;
    for (const { recalled, path } of body.records) {
      if (recalled === undefined) continue;
      const pathNumber = this.#recallPathNumber(path);
      for (const recalledId of recalled.ids) {
        let recallsOfId = this.#recallsById.get(recalledId);
        if (recallsOfId === undefined) this.#recallsById.set(recalledId, (recallsOfId = { times: [], paths: [] }));
        recallsOfId.times.push(time);
        recallsOfId.paths.push(pathNumber);
      }
    }
  }

  /** Recalls that were on record at an instant of a snapshot. */
  reader(instant: bigint): RecallReader {
    return {
      recallsOf: (id, counts) => {
        const { times, paths } = this.#recallsById.get(id) ?? noRecalls;
        let count = 0;
        let last: bigint | null = null;
        for (let i = 0; i < times.length && times[i]! <= instant; i++) {
          if (!counts(this.#recallPaths[paths[i]!]!)) continue;
          count++;
          last = times[i]!;
        }
        return { count, last };
      },
    };
  }

  async checkpoint(recallCheckpoint: CheckpointWriter): Promise<void> {
    const savedRecalls: SavedRecalls = { paths: this.#recallPaths, recalls: this.#recallsById };
    recallCheckpoint.section('recalls', serialize(savedRecalls));
  }

  async restore(recallCheckpoint: CheckpointReader): Promise<void> {
    const recallBytes = recallCheckpoint.section('recalls');
    assert(recallBytes, 'a checkpoint of recalls has them');
    this.reset();
    const { paths, recalls } = deserialize(recallBytes) as SavedRecalls;
    for (const path of paths) this.#recallPathNumber(path);
    this.#recallsById = recalls;
  }

  reset(): void {
    this.#recallPaths = [];
    this.#recallPathNumbers = new Map();
    this.#recallsById = new Map();
  }

  digest(): string {
    const recallsHash = new CanonicalHash();
    recallsHash.value(this.#recallPaths);
    for (const [id, { times, paths }] of [...this.#recallsById].sort(([a], [b]) => compareText(a, b)))
      recallsHash.value([id, times, paths]);
    return recallsHash.hex();
  }

  #recallPathNumber(path: string | null): number {
    let pathNumber = this.#recallPathNumbers.get(path);
    if (pathNumber === undefined) {
      pathNumber = this.#recallPaths.push(path) - 1;
      this.#recallPathNumbers.set(path, pathNumber);
    }
    return pathNumber;
  }
}

const noRecalls: RecallTimes = { times: [], paths: [] };
