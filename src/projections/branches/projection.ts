/**
 * The registry of branches: which stand, what each was forked from, where and by whom. Names are store-wide, as those of
 * types are. What a branch holds is the business of the projections that fork.
 */
import { deserialize, serialize } from 'node:v8';
import { assert } from '../../errors.ts';
import { mainBranch, type BranchBody, type CommittedEntry } from '../../log/entry.ts';
import { compareText } from '../../log/value.ts';
import { CanonicalHash } from '../canonical-hash.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';

export interface BranchRecord {
  readonly name: string;
  readonly source: string;
  /** Position of the fork: the branch reads what its source held below it. */
  readonly fork: number;
  /** Leaf of the entry that forked it. */
  readonly leaf: number;
  /** Nanosecond of the fork. */
  readonly instant: bigint;
  readonly shares: BranchBody['shares'];
  /** Organisation path of the one who made it; null: somebody without one. */
  readonly owner: string | null;
}

export class Branches implements Projection {
  readonly name = 'branches';
  readonly formatVersion = 1;
  readonly #branches = new Map<string, BranchRecord>();

  /** A branch that stands; main, which nobody forked, is none of these. */
  branch(name: string): BranchRecord | undefined {
    return this.#branches.get(name);
  }

  /** Fork of the branch with this name, 0 for main; undefined when none stands. */
  idOf(name: string): number | undefined {
    return name === mainBranch ? 0 : this.#branches.get(name)?.fork;
  }

  /** By name, in codepoint order. */
  list(): readonly BranchRecord[] {
    return [...this.#branches.values()].sort((a, b) => compareText(a.name, b.name));
  }

  apply(entry: CommittedEntry): void {
    if (entry.body.kind !== 'branch') return;
    const { change, name, source, shares } = entry.body;
    if (change === 'deleted') {
      assert(this.#branches.delete(name), 'a branch that stands is deleted');
      return;
    }
    assert(this.idOf(name) === undefined && this.idOf(source) !== undefined, 'a free name is forked from a branch that stands');
    const { position: fork, leaf, time: instant } = entry;
    this.#branches.set(name, { name, source, fork, leaf, instant, shares, owner: entry.context.path });
  }

  async checkpoint(target: CheckpointWriter): Promise<void> {
    target.section('branches', serialize(this.list()));
  }

  async restore(source: CheckpointReader): Promise<void> {
    const bytes = source.section('branches');
    assert(bytes, 'a checkpoint of branches has them');
    this.reset();
    for (const branch of deserialize(bytes) as BranchRecord[]) this.#branches.set(branch.name, branch);
  }

  reset(): void {
    this.#branches.clear();
  }

  digest(): string {
    const hash = new CanonicalHash();
    // By positions: in which portions the log was appended is no state.
    for (const { name, source, fork, instant, shares, owner } of this.list()) {
      hash.value({ name, source, fork, instant, shares, owner });
    }
    return hash.hex();
  }
}
