/**
 * Which keys were removed for good, when and in which organisation path: of a hard delete no version is left to tell, and
 * whoever follows a type has to learn of it. Memory grows with the keys removed; their rows are gone.
 */
import { deserialize, serialize } from 'node:v8';
import { assert } from '../../errors.ts';
import type { CommittedEntry } from '../../log/entry.ts';
import { compareText } from '../../log/value.ts';
import type { Removal, RemovalReader } from '../access-paths.ts';
import { CanonicalHash } from '../canonical-hash.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';

interface KnownRemoval extends Removal {
  readonly branch: string;
  readonly position: number;
}

export class RemovedKeys implements Projection {
  readonly name = 'removed-keys';
  readonly formatVersion = 1;
  /** By type, in order of time. */
  #removals = new Map<string, KnownRemoval[]>();

  /** What a snapshot of the branch with this basis knows of. */
  reader(branch: string, basis: number): RemovalReader {
    return {
      removedAfter: (type, instant) => {
        const known = this.#removals.get(type) ?? [];
        let first = known.length;
        while (first > 0 && known[first - 1]!.instant > instant) first--;
        return known.slice(first).filter((removal) => removal.branch === branch && removal.position < basis);
      },
    };
  }

  apply({ body, context, position, time }: CommittedEntry): void {
    if (body.kind !== 'removal') return;
    const removal = { branch: context.branch, path: context.path, position, instant: time, keys: body.keys };
    const known = this.#removals.get(body.type);
    if (known === undefined) this.#removals.set(body.type, [removal]);
    else known.push(removal);
  }

  async checkpoint(target: CheckpointWriter): Promise<void> {
    target.section('removals', serialize([...this.#removals]));
  }

  async restore(source: CheckpointReader): Promise<void> {
    const bytes = source.section('removals');
    assert(bytes, 'a checkpoint of removed keys has removals');
    this.#removals = new Map(deserialize(bytes) as [string, KnownRemoval[]][]);
  }

  reset(): void {
    this.#removals = new Map();
  }

  digest(): string {
    const hash = new CanonicalHash();
    hash.value([...this.#removals].sort(([a], [b]) => compareText(a, b)));
    return hash.hex();
  }
}
