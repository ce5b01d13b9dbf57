/**
 * Judgements about which rows are one thing. They join or part rows when somebody reads: no cluster is stored, and no row is
 * rewritten. A judgement belongs to the organisation path of its maker and to its branch; a branch starts with its source's. One
 * about a row that was removed for good or erased is gone, on every branch that the removal reaches and at every instant.
 */
import { deserialize, serialize } from 'node:v8';
import { assert } from '../../errors.ts';
import { BranchTree, lineageOf, type SavedBranches } from '../../log/entries/branches.ts';
import { type CommittedEntry, isOpen } from '../../log/entries/entry.ts';
import { tenantOf } from '../../log/values/value.ts';
import type { Judgement } from '../access-paths.ts';
import { CanonicalHash } from '../canonical-hash.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';
import { judgementOf } from './judgement-body.ts';

interface Saved {
  readonly tree: SavedBranches;
  readonly branches: [number, Judgement[]][];
}

export class Judgements implements Projection {
  readonly name = 'judgements';
  readonly formatVersion = 1;
  #tree = new BranchTree();
  /** By fork of the branch, main's is 0; in order of positions. */
  #branches = new Map<number, Judgement[]>([[0, []]]);

  /** Judgements of the branch with this fork that stand below a basis and were made at or before an instant, in their order. */
  judgementsOn(branch: number, basis = Infinity, instant?: bigint): readonly Judgement[] {
    const judgements = this.#branches.get(branch) ?? [];
    return judgements.filter(({ position, time }) => position < basis && (instant === undefined || time <= instant));
  }

  apply(entry: CommittedEntry): void {
    const { body, context, position, time } = entry;
    if (isOpen(body)) {
      const content = body.kind === 'judgement' ? judgementOf(body) : null;
      if (content === null) return;
      const { a, b, judgement, reason } = content;
      const { id } = this.#tree.branchOf(entry);
      this.#branches.get(id)!.push({ a, b, judgement, reason, owner: context.path, position, time });
    } else if (body.kind === 'removal') {
      const from = this.#tree.branchOf(entry);
      this.#drop(new Set(body.positions), (branch) => this.#reads(branch, from.id));
    } else if (body.kind === 'erasure') {
      const gone = new Set(body.mentions);
      for (const { positions } of body.versions) for (const each of positions) gone.add(each);
      this.#drop(gone, () => true);
    } else if (body.kind === 'branch') {
      const { forked, ended } = this.#tree.apply(entry, body);
      if (forked) {
        const inherited = forked.shares === 'everything' ? (this.#branches.get(forked.source!.id) ?? []) : [];
        this.#branches.set(forked.id, [...inherited]);
      } else this.#branches.delete(ended.id);
    }
  }

  /** Positions of a tenant's judgements, on any branch, about versions at these positions. */
  about(positions: ReadonlySet<number>, tenant: string | null): readonly number[] {
    const judgedPositions = new Set<number>();
    for (const judgements of this.#branches.values()) {
      for (const each of judgements)
        if (tenantOf(each.owner) === tenant && isAbout(each, positions)) judgedPositions.add(each.position);
    }
    return [...judgedPositions];
  }

  async checkpoint(target: CheckpointWriter): Promise<void> {
    target.section('judgements', serialize({ tree: this.#tree.savedState(), branches: [...this.#branches] }));
  }

  async restore(source: CheckpointReader): Promise<void> {
    const bytes = source.section('judgements');
    assert(bytes, 'a checkpoint of judgements has them');
    const { tree, branches } = deserialize(bytes) as Saved;
    this.#tree = BranchTree.fromSaved(tree);
    this.#branches = new Map(branches);
  }

  reset(): void {
    this.#tree = new BranchTree();
    this.#branches = new Map([[0, []]]);
  }

  digest(): string {
    const hash = new CanonicalHash();
    for (const [branch, judgements] of [...this.#branches].sort(([a], [b]) => a - b)) {
      hash.number(branch);
      hash.value(judgements);
    }
    return hash.hex();
  }

  #reads(branch: number, source: number): boolean {
    const known = this.#tree.byId(branch);
    return known !== undefined && lineageOf(known).some((range) => range.branch.id === source);
  }

  /** `positions` are those of versions that went, and of judgements themselves. */
  #drop(positions: ReadonlySet<number>, reaches: (branch: number) => boolean): void {
    for (const [branch, judgements] of this.#branches) {
      if (judgements.length === 0 || !reaches(branch)) continue;
      const left = judgements.filter((each) => !positions.has(each.position) && !isAbout(each, positions));
      if (left.length < judgements.length) this.#branches.set(branch, left);
    }
  }
}

function isAbout({ a, b }: Judgement, positions: ReadonlySet<number>): boolean {
  return [...a.positions, ...b.positions].some((position) => positions.has(position));
}
