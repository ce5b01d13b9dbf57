/**
 * Rules by id: their versions, and their end. A rule belongs to the organisation path of whoever registered it, and to a branch; a branch
 * starts with its source's rules. A version that names an erased subject is gone with it, at every basis.
 */
import { deserialize, serialize } from 'node:v8';
import { assert } from '../../errors.ts';
import { BranchTree, type SavedBranches } from '../../log/entries/branches.ts';
import { type CommittedEntry, isOpen } from '../../log/entries/entry.ts';
import { compareText } from '../../log/values/value.ts';
import { CanonicalHash } from '../canonical-hash.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';
import { type OpenText, textOpener } from '../sealed-definitions.ts';
import { decodeRule } from './codec.ts';
import type { RuleRecord, RuleVersion } from './rule.ts';

/** A version, and the position of the entry that took its place or ended it; Infinity while it stands. */
interface Version {
  readonly record: RuleRecord;
  readonly end: number;
  /** Nanosecond of that entry. */
  readonly until: bigint | null;
}

/** Versions by id, in their order. */
type Ruled = Map<string, readonly Version[]>;

interface Saved {
  readonly tree: SavedBranches;
  readonly branches: [number, [string, readonly Version[]][]][];
  readonly last: number;
}

export class Rules implements Projection {
  readonly name = 'rules';
  readonly formatVersion = 1;
  #tree = new BranchTree();
  /** By fork of the branch; main's is 0. */
  #branches = new Map<number, Ruled>([[0, new Map()]]);
  #last = -1;
  readonly #open: OpenText;

  constructor(open: OpenText = textOpener(undefined)) {
    this.#open = open;
  }

  /** Rises with every change of any rule. */
  get epoch(): number {
    return this.#last;
  }

  /** Rules of the branch that stand below a basis, in the order of registration; without one, now. */
  rulesOn(branch: number, basis = Infinity): readonly RuleRecord[] {
    const liveRules: RuleRecord[] = [];
    for (const versions of this.#branches.get(branch)?.values() ?? []) {
      const version = versions.findLast(({ record }) => record.position < basis);
      if (version !== undefined && version.end >= basis) liveRules.push(version.record);
    }
    return liveRules.sort((a, b) => a.registered - b.registered);
  }

  /** Every version of a rule, ended ones included. */
  versions(branch: number, id: string): readonly RuleRecord[] {
    return (this.#branches.get(branch)?.get(id) ?? []).map(({ record }) => record);
  }

  /** Every version of every rule on the branch where it was made: a fork knows the rules of its source, which judge that alone. */
  *listJudged(): Iterable<RuleVersion> {
    for (const [fork, ruled] of this.#branches) {
      const branch = this.#tree.byId(fork)?.name;
      for (const versions of ruled.values())
        for (const { record, until } of versions) if (record.branch === branch) yield { record, until };
    }
  }

  apply(entry: CommittedEntry): void {
    const { body } = entry;
    if (isOpen(body)) {
      if (body.kind === 'rule') this.#applyRule(entry);
    } else if (body.kind === 'erasure') {
      const mentions = new Set(body.mentions);
      for (const ruled of this.#branches.values()) {
        for (const [id, versions] of ruled) {
          const left = versions.filter(({ record }) => !mentions.has(record.position));
          if (left.length === versions.length) continue;
          this.#last = entry.position;
          if (left.length === 0) ruled.delete(id);
          else ruled.set(id, registeredFrom(left));
        }
      }
    } else if (body.kind === 'branch') {
      const { forked, ended } = this.#tree.apply(entry, body);
      if (forked) this.#branches.set(forked.id, new Map(this.#branches.get(forked.source!.id)));
      else this.#branches.delete(ended.id);
      this.#last = entry.position;
    }
  }

  #applyRule(entry: CommittedEntry): void {
    const { body, context, position, time } = entry;
    const change = isOpen(body) ? decodeRule(body, this.#open) : null;
    if (change === null) return;
    const ruled = this.#branches.get(this.#tree.branchOf(entry).id)!;
    const before = (ruled.get(change.id) ?? []).map((version) =>
      version.end === Infinity ? { record: version.record, end: position, until: time } : version,
    );
    this.#last = position;
    if (change.change === 'ended') {
      if (before.length > 0) ruled.set(change.id, before);
      return;
    }
    const { id, version, definition, author } = change;
    const { path: owner, branch, principal } = context;
    const registered = before[0]?.record.registered ?? position;
    const record: RuleRecord = {
      id,
      version,
      definition,
      author: { principal, credential: author.credential, token: author.token },
      owner,
      branch,
      position,
      registered,
      time,
    };
    ruled.set(id, [...before, { record, end: Infinity, until: null }]);
  }

  async checkpoint(target: CheckpointWriter): Promise<void> {
    const branches = [...this.#branches].map(([branch, ruled]): [number, [string, readonly Version[]][]] => [branch, [...ruled]]);
    const saved: Saved = { tree: this.#tree.savedState(), branches, last: this.#last };
    target.section('rules', serialize(saved));
  }

  async restore(source: CheckpointReader): Promise<void> {
    const bytes = source.section('rules');
    assert(bytes, 'a checkpoint of rules has them');
    const { tree, branches, last } = deserialize(bytes) as Saved;
    this.#tree = BranchTree.fromSaved(tree);
    this.#branches = new Map(branches.map(([branch, ruled]) => [branch, new Map(ruled)]));
    this.#last = last;
  }

  reset(): void {
    this.#tree = new BranchTree();
    this.#branches = new Map([[0, new Map()]]);
    this.#last = -1;
  }

  digest(): string {
    const hash = new CanonicalHash();
    for (const [branch, ruled] of [...this.#branches].sort(([a], [b]) => a - b)) {
      hash.number(branch);
      hash.value([...ruled].sort(([a], [b]) => compareText(a, b)));
    }
    return hash.hex();
  }
}

/** The rule counts from the first version that is left, as for a reader of a log in which no other was ever readable. */
function registeredFrom(versions: readonly Version[]): readonly Version[] {
  const registered = versions[0]!.record.position;
  return versions.map((version) => ({ ...version, record: { ...version.record, registered } }));
}
