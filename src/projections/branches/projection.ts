/**
 * The registry of branches: which are live, what each was forked from, where and by whom. A name is a tenant's, or the store's.
 * The projections that fork hold the content of branches.
 */
import { deserialize, serialize } from 'node:v8';
import { assert } from '../../errors.ts';
import { mainBranch, type BranchBody, type CommittedEntry, scopeOfName } from '../../log/entries/entry.ts';
import { TenantNames } from '../../log/values/tenant-names.ts';
import { compareText } from '../../log/values/value.ts';
import { CanonicalHash } from '../canonical-hash.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';

export interface BranchRecord {
  readonly name: string;
  /** The tenant that owns the name; null: the store, whose names every tenant sees. */
  readonly tenant: string | null;
  readonly source: string;
  /** Position of the fork: the branch reads what its source held below it. */
  readonly fork: number;
  /** Leaf of the entry that forked it. */
  readonly leaf: number;
  /** Nanosecond of the fork. */
  readonly instant: bigint;
  readonly shares: BranchBody['shares'];
  /** Organisation path of the caller who made it; null: a caller without one. */
  readonly owner: string | null;
}

type SavedBranch = Omit<BranchRecord, 'tenant'> & Partial<Pick<BranchRecord, 'tenant'>>;

export class Branches implements Projection {
  readonly name = 'branches';
  readonly formatVersion = 1;
  readonly #branchesByName = new TenantNames<BranchRecord>();

  /** The live branch that a name means to a tenant; undefined for main, which was never forked. */
  branch(branchName: string, tenant: string | null): BranchRecord | undefined {
    return this.#branchesByName.get(branchName, tenant);
  }

  /** Fork of the branch that a name means to a tenant, 0 for main; undefined when none stands. */
  idOf(branchName: string, tenant: string | null): number | undefined {
    return branchName === mainBranch ? 0 : this.#branchesByName.get(branchName, tenant)?.fork;
  }

  /** Everybody's, by name, then tenant, in codepoint order. */
  list(): readonly BranchRecord[] {
    return [...this.#branchesByName.values()].sort(
      (a, b) => compareText(a.name, b.name) || compareText(a.tenant ?? '', b.tenant ?? ''),
    );
  }

  /** Branches that a tenant can name: its own, and the store's whose name it has not taken. */
  listFor(tenant: string | null): readonly BranchRecord[] {
    return this.list().filter((branch) => this.#branchesByName.get(branch.name, tenant) === branch);
  }

  apply(branchEntry: CommittedEntry): void {
    if (branchEntry.body.kind !== 'branch') return;
    const { change: branchChange, name, source, shares } = branchEntry.body;
    const tenant = scopeOfName(branchEntry, branchEntry.body);
    if (branchChange === 'deleted') {
      assert(this.#branchesByName.delete(name, tenant), 'a branch that stands is deleted');
      return;
    }
    const isBranchNameFree = name !== mainBranch && this.#branchesByName.own(name, tenant) === undefined;
    assert(
      isBranchNameFree && this.idOf(source, branchEntry.context.tenant) !== undefined,
      'a free name is forked from a branch that stands',
    );
    const { position: fork, leaf, time: instant } = branchEntry;
    this.#branchesByName.set(name, tenant, {
      name,
      tenant,
      source,
      fork,
      leaf,
      instant,
      shares,
      owner: branchEntry.context.path,
    });
  }

  async checkpoint(branchesCheckpoint: CheckpointWriter): Promise<void> {
    branchesCheckpoint.section('branches', serialize(this.list()));
  }

  async restore(branchesCheckpoint: CheckpointReader): Promise<void> {
    const branchesBytes = branchesCheckpoint.section('branches');
    assert(branchesBytes, 'a checkpoint of branches has them');
    this.reset();
    // An earlier release saved no tenant: all names were the store's.
    for (const { tenant = null, ...savedBranch } of deserialize(branchesBytes) as SavedBranch[]) {
      this.#branchesByName.set(savedBranch.name, tenant, { ...savedBranch, tenant });
    }
  }

  reset(): void {
    this.#branchesByName.clear();
  }

  digest(): string {
    const branchesHash = new CanonicalHash();
    // By positions: in which portions the log was appended is no state.
    for (const { name, tenant, source, fork, instant, shares, owner } of this.list()) {
      branchesHash.value({ name, ...(tenant !== null && { tenant }), source, fork, instant, shares, owner });
    }
    return branchesHash.hex();
  }
}
