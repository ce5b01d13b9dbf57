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
  readonly #erasedPathsByType = new Map<string, Map<string | null, number>>();

  add(erasedVersions: readonly ErasedVersions[]): void {
    this.count++;
    for (const { type, paths } of erasedVersions) {
      let lastErasureByPath = this.#erasedPathsByType.get(type);
      if (lastErasureByPath === undefined) this.#erasedPathsByType.set(type, (lastErasureByPath = new Map()));
      for (const erasedPath of paths) lastErasureByPath.set(erasedPath, this.count);
    }
  }

  pathsOf(type: string): Iterable<readonly [string | null, number]> {
    return this.#erasedPathsByType.get(type) ?? [];
  }
}

export class Erasures implements Projection {
  readonly name = 'erasures';
  readonly formatVersion = 1;
  readonly #erasuresById = new Map<string, Erasure>();
  /** Ids by commitment, in order. */
  readonly #erasuresByCommitment = new Map<string, string[]>();
  readonly #erasedPaths = new ErasedPaths();

  find(erasureId: string): Erasure | undefined {
    return this.#erasuresById.get(erasureId);
  }

  /** Erasures of one subject, in order. */
  ofCommitment(commitment: string): readonly Erasure[] {
    return (this.#erasuresByCommitment.get(commitment) ?? []).map((id) => this.#erasuresById.get(id)!);
  }

  get reader(): ErasureReader {
    return this.#erasedPaths;
  }

  /** All, in order. */
  all(): readonly Erasure[] {
    return [...this.#erasuresById.values()];
  }

  /** Intended and not completed, in order. */
  openErasures(): readonly Erasure[] {
    return this.all().filter(({ completed }) => completed === null);
  }

  apply(erasureEntry: CommittedEntry): void {
    const { body, context, leaf, position, time } = erasureEntry;
    if (body.kind !== 'erasure') return;
    const { id, commitment, reason, keys, mentions, versions } = body;
    const entryPosition = { leaf, position, time };
    const intendedErasure = this.#erasuresById.get(id);
    if (body.change === 'completed') {
      assert(intendedErasure?.completed === null, 'an erasure that stands is completed');
      this.#erasuresById.set(id, { ...intendedErasure, completed: entryPosition, statement: body.statement, versions: [] });
      return;
    }
    assert(intendedErasure === undefined, 'an erasure is intended once');
    this.#erasedPaths.add(versions);
    const erasedCounts = versions.map(({ type, positions }) => ({ type, versions: positions.length }));
    const { tenant, principal } = context;
    const erasureIntent = { id, commitment, reason, keys, mentions, tenant, principal, intended: entryPosition, completed: null };
    this.#putErasure({ ...erasureIntent, statement: '', counts: erasedCounts, versions });
  }

  async checkpoint(erasureCheckpoint: CheckpointWriter): Promise<void> {
    erasureCheckpoint.section('erasures', serialize(this.all()));
  }

  async restore(erasureCheckpoint: CheckpointReader): Promise<void> {
    const erasureBytes = erasureCheckpoint.section('erasures');
    assert(erasureBytes, 'a checkpoint of erasures has them');
    this.reset();
    for (const erasure of deserialize(erasureBytes) as Erasure[]) this.#putErasure(erasure);
  }

  reset(): void {
    this.#erasuresById.clear();
    this.#erasuresByCommitment.clear();
  }

  digest(): string {
    const erasuresHash = new CanonicalHash();
    // Leaves are storage locations; the state is the content of the erasures.
    for (const { intended, completed, ...erasureRest } of this.#erasuresById.values()) {
      erasuresHash.value({
        ...erasureRest,
        intended: { ...intended, leaf: null },
        completed: completed && { ...completed, leaf: null },
      });
    }
    return erasuresHash.hex();
  }

  #putErasure(erasure: Erasure): void {
    this.#erasuresById.set(erasure.id, erasure);
    const erasureIds = this.#erasuresByCommitment.get(erasure.commitment);
    if (erasureIds) erasureIds.push(erasure.id);
    else this.#erasuresByCommitment.set(erasure.commitment, [erasure.id]);
  }
}
