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
interface RuleInForce {
  readonly record: RuleRecord;
  readonly end: number;
  /** Nanosecond of that entry. */
  readonly until: bigint | null;
}

/** Versions by id, in their order. */
type RulesOnBranch = Map<string, readonly RuleInForce[]>;

interface SavedRules {
  readonly tree: SavedBranches;
  readonly branches: [number, [string, readonly RuleInForce[]][]][];
  readonly last: number;
}

export class Rules implements Projection {
  readonly name = 'rules';
  readonly formatVersion = 1;
  #branchTree = new BranchTree();
  /** By fork of the branch; main's is 0. */
  #rulesByBranch = new Map<number, RulesOnBranch>([[0, new Map()]]);
  #lastRulePosition = -1;
  readonly #openRuleText: OpenText;

  constructor(openRuleText: OpenText = textOpener(undefined)) {
    this.#openRuleText = openRuleText;
  }

  /** Rises with every change of any rule. */
  get epoch(): number {
    return this.#lastRulePosition;
  }

  /** Rules of the branch that stand below a basis, in the order of registration; without one, now. */
  rulesOn(branch: number, basis = Infinity): readonly RuleRecord[] {
    const liveRules: RuleRecord[] = [];
    for (const versions of this.#rulesByBranch.get(branch)?.values() ?? []) {
      const version = versions.findLast(({ record }) => record.position < basis);
      if (version !== undefined && version.end >= basis) liveRules.push(version.record);
    }
    return liveRules.sort((a, b) => a.registered - b.registered);
  }

  /** Every version of a rule, ended ones included. */
  versions(branch: number, ruleId: string): readonly RuleRecord[] {
    return (this.#rulesByBranch.get(branch)?.get(ruleId) ?? []).map(({ record }) => record);
  }

  /** Every version of every rule on the branch where it was made: a fork knows the rules of its source, which judge that alone. */
  *listJudged(): Iterable<RuleVersion> {
    for (const [fork, rulesOnBranch] of this.#rulesByBranch) {
      const branch = this.#branchTree.byId(fork)?.name;
      for (const ruleVersions of rulesOnBranch.values())
        for (const { record, until } of ruleVersions) if (record.branch === branch) yield { record, until };
    }
  }

  apply(ruleEntry: CommittedEntry): void {
    const { body } = ruleEntry;
    if (isOpen(body)) {
      if (body.kind === 'rule') this.#applyRule(ruleEntry);
    } else if (body.kind === 'erasure') {
      const mentionedPositions = new Set(body.mentions);
      for (const rulesOnBranch of this.#rulesByBranch.values()) {
        for (const [id, ruleVersions] of rulesOnBranch) {
          const remainingVersions = ruleVersions.filter(({ record }) => !mentionedPositions.has(record.position));
          if (remainingVersions.length === ruleVersions.length) continue;
          this.#lastRulePosition = ruleEntry.position;
          if (remainingVersions.length === 0) rulesOnBranch.delete(id);
          else rulesOnBranch.set(id, registeredFromFirst(remainingVersions));
        }
      }
    } else if (body.kind === 'branch') {
      const { forked: forkedBranch, ended: endedBranch } = this.#branchTree.apply(ruleEntry, body);
      if (forkedBranch) this.#rulesByBranch.set(forkedBranch.id, new Map(this.#rulesByBranch.get(forkedBranch.source!.id)));
      else this.#rulesByBranch.delete(endedBranch.id);
      this.#lastRulePosition = ruleEntry.position;
    }
  }

  #applyRule(ruleEntry: CommittedEntry): void {
    const { body, context, position, time } = ruleEntry;
    const ruleChange = isOpen(body) ? decodeRule(body, this.#openRuleText) : null;
    if (ruleChange === null) return;
    const rulesOnBranch = this.#rulesByBranch.get(this.#branchTree.branchOf(ruleEntry).id)!;
    const versionsBefore = (rulesOnBranch.get(ruleChange.id) ?? []).map((ruleVersion) =>
      ruleVersion.end === Infinity ? { record: ruleVersion.record, end: position, until: time } : ruleVersion,
    );
    this.#lastRulePosition = position;
    if (ruleChange.change === 'ended') {
      if (versionsBefore.length > 0) rulesOnBranch.set(ruleChange.id, versionsBefore);
      return;
    }
    const { id, version, definition, author } = ruleChange;
    const { path: owner, branch, principal } = context;
    const registeredAt = versionsBefore[0]?.record.registered ?? position;
    const ruleRecord: RuleRecord = {
      id,
      version,
      definition,
      author: { principal, credential: author.credential, token: author.token },
      owner,
      branch,
      position,
      registered: registeredAt,
      time,
    };
    rulesOnBranch.set(id, [...versionsBefore, { record: ruleRecord, end: Infinity, until: null }]);
  }

  async checkpoint(ruleCheckpoint: CheckpointWriter): Promise<void> {
    const savedBranches = [...this.#rulesByBranch].map(
      ([branch, rulesOnBranch]): [number, [string, readonly RuleInForce[]][]] => [branch, [...rulesOnBranch]],
    );
    const savedRules: SavedRules = { tree: this.#branchTree.savedState(), branches: savedBranches, last: this.#lastRulePosition };
    ruleCheckpoint.section('rules', serialize(savedRules));
  }

  async restore(ruleCheckpoint: CheckpointReader): Promise<void> {
    const ruleBytes = ruleCheckpoint.section('rules');
    assert(ruleBytes, 'a checkpoint of rules has them');
    const { tree, branches, last: lastRulePosition } = deserialize(ruleBytes) as SavedRules;
    this.#branchTree = BranchTree.fromSaved(tree);
    this.#rulesByBranch = new Map(branches.map(([branch, rulesOnBranch]) => [branch, new Map(rulesOnBranch)]));
    this.#lastRulePosition = lastRulePosition;
  }

  reset(): void {
    this.#branchTree = new BranchTree();
    this.#rulesByBranch = new Map([[0, new Map()]]);
    this.#lastRulePosition = -1;
  }

  digest(): string {
    const rulesHash = new CanonicalHash();
    for (const [branch, rulesOnBranch] of [...this.#rulesByBranch].sort(([a], [b]) => a - b)) {
      rulesHash.number(branch);
      rulesHash.value([...rulesOnBranch].sort(([a], [b]) => compareText(a, b)));
    }
    return rulesHash.hex();
  }
}

/** The rule counts from the first version that is left, as for a reader of a log in which no other was ever readable. */
function registeredFromFirst(ruleVersions: readonly RuleInForce[]): readonly RuleInForce[] {
  const registeredAt = ruleVersions[0]!.record.position;
  return ruleVersions.map((ruleVersion) => ({ ...ruleVersion, record: { ...ruleVersion.record, registered: registeredAt } }));
}
