/**
 * Erased subjects: intents that are not completed yet, for a start to continue, and the statements of completed erasures.
 * Subjects go by commitments; nothing here names one.
 */
import { deserialize, serialize } from 'node:v8';
import { assert } from '../../errors.ts';
import type { CommittedEntry, ErasedVersions, ErasureBody } from '../../log/entries/entry.ts';
import type { ErasureReader } from '../access-paths.ts';
import { CanonicalHash } from '../canonical-hash.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';

export interface Erasure extends Pick<ErasureBody, 'id' | 'commitment' | 'reason' | 'keys' | 'mentions'> {
  /** Tenant of both entries. */
  readonly tenant: string | null;
  readonly principal: string;
  readonly intended: ErasureEntry;
  /** Null while it stands. */
  readonly completed: ErasureEntry | null;
  /** RFC 8785 JSON, as the completion said; empty while it stands. */
  readonly statement: string;
  /** How many versions of each type were removed. */
  readonly counts: readonly { readonly type: string; readonly versions: number }[];
  /** While it stands; empty once it is completed. */
  readonly versions: readonly ErasedVersions[];
}

export interface ErasureEntry {
  readonly leaf: number;
  readonly position: number;
  /** Nanoseconds. */
  readonly time: bigint;
}

/** Erasures since the start alone: no reader is older. */
class ErasedPaths implements ErasureReader {
  count = 0;
  readonly #types = new Map<string, Map<string | null, number>>();

  add(versions: readonly ErasedVersions[]): void {
    this.count++;
    for (const { type, paths } of versions) {
      let last = this.#types.get(type);
      if (last === undefined) this.#types.set(type, (last = new Map()));
      for (const path of paths) last.set(path, this.count);
    }
  }

  pathsOf(type: string): Iterable<readonly [string | null, number]> {
    return this.#types.get(type) ?? [];
  }
}

export class Erasures implements Projection {
  readonly name = 'erasures';
  readonly formatVersion = 1;
  readonly #erasures = new Map<string, Erasure>();
  /** Ids by commitment, in order. */
  readonly #byCommitment = new Map<string, string[]>();
  readonly #paths = new ErasedPaths();

  find(id: string): Erasure | undefined {
    return this.#erasures.get(id);
  }

  /** Erasures of one subject, in order. */
  ofCommitment(commitment: string): readonly Erasure[] {
    return (this.#byCommitment.get(commitment) ?? []).map((id) => this.#erasures.get(id)!);
  }

  get reader(): ErasureReader {
    return this.#paths;
  }

  /** All, in order. */
  all(): readonly Erasure[] {
    return [...this.#erasures.values()];
  }

  /** Intended and not completed, in order. */
  openErasures(): readonly Erasure[] {
    return this.all().filter(({ completed }) => completed === null);
  }

  apply(entry: CommittedEntry): void {
    const { body, context, leaf, position, time } = entry;
    if (body.kind !== 'erasure') return;
    const { id, commitment, reason, keys, mentions, versions } = body;
    const entryPosition = { leaf, position, time };
    const before = this.#erasures.get(id);
    if (body.change === 'completed') {
      assert(before?.completed === null, 'an erasure that stands is completed');
      this.#erasures.set(id, { ...before, completed: entryPosition, statement: body.statement, versions: [] });
      return;
    }
    assert(before === undefined, 'an erasure is intended once');
    this.#paths.add(versions);
    const counts = versions.map(({ type, positions }) => ({ type, versions: positions.length }));
    const { tenant, principal } = context;
    const intent = { id, commitment, reason, keys, mentions, tenant, principal, intended: entryPosition, completed: null };
    this.#put({ ...intent, statement: '', counts, versions });
  }

  async checkpoint(target: CheckpointWriter): Promise<void> {
    target.section('erasures', serialize(this.all()));
  }

  async restore(source: CheckpointReader): Promise<void> {
    const bytes = source.section('erasures');
    assert(bytes, 'a checkpoint of erasures has them');
    this.reset();
    for (const erasure of deserialize(bytes) as Erasure[]) this.#put(erasure);
  }

  reset(): void {
    this.#erasures.clear();
    this.#byCommitment.clear();
  }

  digest(): string {
    const hash = new CanonicalHash();
    // Leaves are storage locations; the state is the content of the erasures.
    for (const { intended, completed, ...rest } of this.#erasures.values()) {
      hash.value({ ...rest, intended: { ...intended, leaf: null }, completed: completed && { ...completed, leaf: null } });
    }
    return hash.hex();
  }

  #put(erasure: Erasure): void {
    this.#erasures.set(erasure.id, erasure);
    const ids = this.#byCommitment.get(erasure.commitment);
    if (ids) ids.push(erasure.id);
    else this.#byCommitment.set(erasure.commitment, [erasure.id]);
  }
}
