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

interface SavedJudgements {
  readonly tree: SavedBranches;
  readonly branches: [number, Judgement[]][];
}

export class Judgements implements Projection {
  readonly name = 'judgements';
  readonly formatVersion = 1;
  #branchTree = new BranchTree();
  /** By fork of the branch, main's is 0; in order of positions. */
  #judgementsByBranch = new Map<number, Judgement[]>([[0, []]]);

  /** Judgements of the branch with this fork that stand below a basis and were made at or before an instant, in their order. */
  judgementsOn(branch: number, basis = Infinity, instant?: bigint): readonly Judgement[] {
    const judgements = this.#judgementsByBranch.get(branch) ?? [];
    return judgements.filter(({ position, time }) => position < basis && (instant === undefined || time <= instant));
  }

  apply(judgementEntry: CommittedEntry): void {
    const { body, context, position, time } = judgementEntry;
    if (isOpen(body)) {
      const judgementContent = body.kind === 'judgement' ? judgementOf(body) : null;
      if (judgementContent === null) return;
      const { a, b, judgement, reason } = judgementContent;
      const { id } = this.#branchTree.branchOf(judgementEntry);
      this.#judgementsByBranch.get(id)!.push({ a, b, judgement, reason, owner: context.path, position, time });
    } else if (body.kind === 'removal') {
      const removalBranch = this.#branchTree.branchOf(judgementEntry);
      this.#dropJudgements(new Set(body.positions), (branch) => this.#readsBranch(branch, removalBranch.id));
    } else if (body.kind === 'erasure') {
      const gonePositions = new Set(body.mentions);
      for (const { positions } of body.versions) for (const erasedPosition of positions) gonePositions.add(erasedPosition);
      this.#dropJudgements(gonePositions, () => true);
    } else if (body.kind === 'branch') {
      const { forked: forkedBranch, ended: endedBranch } = this.#branchTree.apply(judgementEntry, body);
      if (forkedBranch) {
        const inheritedJudgements =
          forkedBranch.shares === 'everything' ? (this.#judgementsByBranch.get(forkedBranch.source!.id) ?? []) : [];
        this.#judgementsByBranch.set(forkedBranch.id, [...inheritedJudgements]);
      } else this.#judgementsByBranch.delete(endedBranch.id);
    }
  }

  /** Positions of a tenant's judgements, on any branch, about versions at these positions. */
  about(positions: ReadonlySet<number>, tenant: string | null): readonly number[] {
    const judgedPositions = new Set<number>();
    for (const judgements of this.#judgementsByBranch.values()) {
      for (const knownJudgement of judgements)
        if (tenantOf(knownJudgement.owner) === tenant && isJudgementAbout(knownJudgement, positions))
          judgedPositions.add(knownJudgement.position);
    }
    return [...judgedPositions];
  }

  async checkpoint(judgementCheckpoint: CheckpointWriter): Promise<void> {
    judgementCheckpoint.section(
      'judgements',
      serialize({ tree: this.#branchTree.savedState(), branches: [...this.#judgementsByBranch] }),
    );
  }

  async restore(judgementCheckpoint: CheckpointReader): Promise<void> {
    const judgementBytes = judgementCheckpoint.section('judgements');
    assert(judgementBytes, 'a checkpoint of judgements has them');
    const { tree, branches } = deserialize(judgementBytes) as SavedJudgements;
    this.#branchTree = BranchTree.fromSaved(tree);
    this.#judgementsByBranch = new Map(branches);
  }

  reset(): void {
    this.#branchTree = new BranchTree();
    this.#judgementsByBranch = new Map([[0, []]]);
  }

  digest(): string {
    const judgementsHash = new CanonicalHash();
    for (const [branch, judgements] of [...this.#judgementsByBranch].sort(([a], [b]) => a - b)) {
      judgementsHash.number(branch);
      judgementsHash.value(judgements);
    }
    return judgementsHash.hex();
  }

  #readsBranch(branch: number, source: number): boolean {
    const readingBranch = this.#branchTree.byId(branch);
    return readingBranch !== undefined && lineageOf(readingBranch).some((range) => range.branch.id === source);
  }

  /** `positions` are those of versions that went, and of judgements themselves. */
  #dropJudgements(positions: ReadonlySet<number>, reachesBranch: (branch: number) => boolean): void {
    for (const [branch, judgements] of this.#judgementsByBranch) {
      if (judgements.length === 0 || !reachesBranch(branch)) continue;
      const remainingJudgements = judgements.filter(
        (knownJudgement) => !positions.has(knownJudgement.position) && !isJudgementAbout(knownJudgement, positions),
      );
      if (remainingJudgements.length < judgements.length) this.#judgementsByBranch.set(branch, remainingJudgements);
    }
  }
}

function isJudgementAbout({ a, b }: Judgement, positions: ReadonlySet<number>): boolean {
  return [...a.positions, ...b.positions].some((position) => positions.has(position));
}
