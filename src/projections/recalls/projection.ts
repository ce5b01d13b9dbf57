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
interface Recalls {
  readonly times: bigint[];
  /** Numbers of paths. */
  readonly paths: number[];
}

interface Saved {
  readonly paths: readonly (string | null)[];
  readonly recalls: Map<string, Recalls>;
}

export class RecallCounts implements Projection {
  readonly name = 'recalls';
  readonly formatVersion = 1;
  #paths: (string | null)[] = [];
  #pathNumbers = new Map<string | null, number>();
  #recalls = new Map<string, Recalls>();

  apply({ body, time }: CommittedEntry): void {
    if (body.kind !== 'access') return;
    for (const { recalled, path } of body.records) {
      if (recalled === undefined) continue;
      const number = this.#numberOf(path);
      for (const id of recalled.ids) {
        let known = this.#recalls.get(id);
        if (known === undefined) this.#recalls.set(id, (known = { times: [], paths: [] }));
        known.times.push(time);
        known.paths.push(number);
      }
    }
  }

  /** Recalls that were on record at an instant of a snapshot. */
  reader(instant: bigint): RecallReader {
    return {
      recallsOf: (id, counts) => {
        const { times, paths } = this.#recalls.get(id) ?? none;
        let count = 0;
        let last: bigint | null = null;
        for (let i = 0; i < times.length && times[i]! <= instant; i++) {
          if (!counts(this.#paths[paths[i]!]!)) continue;
          count++;
          last = times[i]!;
        }
        return { count, last };
      },
    };
  }

  async checkpoint(target: CheckpointWriter): Promise<void> {
    const saved: Saved = { paths: this.#paths, recalls: this.#recalls };
    target.section('recalls', serialize(saved));
  }

  async restore(source: CheckpointReader): Promise<void> {
    const bytes = source.section('recalls');
    assert(bytes, 'a checkpoint of recalls has them');
    this.reset();
    const { paths, recalls } = deserialize(bytes) as Saved;
    for (const path of paths) this.#numberOf(path);
    this.#recalls = recalls;
  }

  reset(): void {
    this.#paths = [];
    this.#pathNumbers = new Map();
    this.#recalls = new Map();
  }

  digest(): string {
    const hash = new CanonicalHash();
    hash.value(this.#paths);
    for (const [id, { times, paths }] of [...this.#recalls].sort(([a], [b]) => compareText(a, b))) hash.value([id, times, paths]);
    return hash.hex();
  }

  #numberOf(path: string | null): number {
    let number = this.#pathNumbers.get(path);
    if (number === undefined) {
      number = this.#paths.push(path) - 1;
      this.#pathNumbers.set(path, number);
    }
    return number;
  }
}

const none: Recalls = { times: [], paths: [] };
