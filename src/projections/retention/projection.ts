/**
 * How long rows are kept: after the time of a schedule a row may be removed for good; under a legal hold it may not.
 * Each is about the row of one version, named by its position, on the branch where it was asked for. It ends when it is
 * released, when that version is removed or erased there, and with its branch.
 */
import { deserialize, serialize } from 'node:v8';
import { assert } from '../../errors.ts';
import { type Branch, BranchTree, lineageOf, type SavedBranches } from '../../log/entries/branches.ts';
import type { CommittedEntry, RetentionBody } from '../../log/entries/entry.ts';
import { compareText } from '../../log/values/value.ts';
import { CanonicalHash } from '../canonical-hash.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';

export interface RetentionRule {
  readonly id: string;
  /** False for a hold. */
  readonly scheduled: boolean;
  readonly type: string;
  /** A version of the row. */
  readonly position: number;
  /** Organisation path of the row: its callers may release it. */
  readonly path: string | null;
  /** Nanoseconds; FOREVER of a hold. */
  readonly until: bigint;
  /** By name, and by its fork: 0 for main. */
  readonly branch: string;
  readonly fork: number;
}

/** Schedules that end in the same hour are looked at together. */
const intervalNanoseconds = 3_600_000_000_000n;

export class Retention implements Projection {
  readonly name = 'retention';
  readonly formatVersion = 1;
  #branchTree = new BranchTree();
  #rulesById = new Map<string, RetentionRule>();
  /** Ids of what is about a version, by its position. */
  #rulesByPosition = new Map<number, Set<string>>();
  /** Ids of schedules by the hour in which they end. */
  #schedulesByHour = new Map<bigint, Set<string>>();
  /** By type. */
  #holdsByType = new Map<string, Set<string>>();

  /** The schedule or hold in force under an id. */
  find(retentionId: string): RetentionRule | undefined {
    return this.#rulesById.get(retentionId);
  }

  /** Holds on rows of a type. */
  holds(type: string): readonly RetentionRule[] {
    return [...(this.#holdsByType.get(type) ?? [])].map((retentionId) => this.#rulesById.get(retentionId)!);
  }

  /** Ids of the holds that were asked for on a branch. */
  heldOn(fork: number): readonly string[] {
    return this.#rulesOn(fork).flatMap(({ id, scheduled }) => (scheduled ? [] : [id]));
  }

  /** Schedules and holds on the version at a position. */
  rulesAt(position: number): readonly RetentionRule[] {
    return [...(this.#rulesByPosition.get(position) ?? [])].map((retentionId) => this.#rulesById.get(retentionId)!);
  }

  /** Ids of the holds on rows of a path and of what lies below it. */
  heldUnder(path: string): readonly string[] {
    const isUnderPath = (of: string | null): boolean => of !== null && (of === path || of.startsWith(`${path}/`));
    const holdRules = [...this.#holdsByType.values()].flatMap((ids) => [...ids].map((id) => this.#rulesById.get(id)!));
    return holdRules.filter((rule) => isUnderPath(rule.path)).map(({ id }) => id);
  }

  /** Schedules whose time is over, the oldest first, at most so many. Their rows may be held all the same. */
  due(now: bigint, dueRulesMax: number): readonly RetentionRule[] {
    const lastDueHour = now / intervalNanoseconds;
    const dueHours = [...this.#schedulesByHour.keys()]
      .filter((dueHour) => dueHour <= lastDueHour)
      .sort((a, b) => (a < b ? -1 : 1));
    const dueRules: RetentionRule[] = [];
    for (const hour of dueHours) {
      const endedRules = [...this.#schedulesByHour.get(hour)!]
        .map((id) => this.#rulesById.get(id)!)
        .filter(({ until }) => until <= now);
      endedRules.sort((a, b) => (a.until === b.until ? compareText(a.id, b.id) : a.until < b.until ? -1 : 1));
      dueRules.push(...endedRules.slice(0, dueRulesMax - dueRules.length));
      if (dueRules.length === dueRulesMax) break;
    }
    return dueRules;
  }

  apply(retentionEntry: CommittedEntry): void {
    const { body } = retentionEntry;
    switch (body.kind) {
      case 'retention':
        return this.#changeRetention(retentionEntry, body);
      case 'removal': {
        const removalBranch = this.#branchTree.branchOf(retentionEntry);
        return this.#endRules(body.type, body.positions, ({ fork, position }) =>
          this.#reachesKeptRow(removalBranch, fork, position),
        );
      }
      case 'erasure':
        for (const { type, positions } of body.versions) this.#endRules(type, positions, () => true);
        return;
      case 'branch': {
        const { ended: endedBranch } = this.#branchTree.apply(retentionEntry, body);
        if (endedBranch) for (const { id } of this.#rulesOn(endedBranch.id)) this.#dropRule(id);
        return;
      }
      default:
        return;
    }
  }

  async checkpoint(retentionCheckpoint: CheckpointWriter): Promise<void> {
    retentionCheckpoint.section('kept', serialize({ tree: this.#branchTree.savedState(), kept: [...this.#rulesById.values()] }));
  }

  async restore(retentionCheckpoint: CheckpointReader): Promise<void> {
    const retentionBytes = retentionCheckpoint.section('kept');
    assert(retentionBytes, 'a checkpoint of retention has what is kept');
    const savedRetention = deserialize(retentionBytes) as { tree: SavedBranches; kept: RetentionRule[] };
    this.reset();
    this.#branchTree = BranchTree.fromSaved(savedRetention.tree);
    for (const rule of savedRetention.kept) this.#putRule(rule);
  }

  reset(): void {
    this.#branchTree = new BranchTree();
    this.#rulesById = new Map();
    this.#rulesByPosition = new Map();
    this.#schedulesByHour = new Map();
    this.#holdsByType = new Map();
  }

  digest(): string {
    const retentionHash = new CanonicalHash();
    retentionHash.value([...this.#rulesById.values()].sort((a, b) => compareText(a.id, b.id)));
    return retentionHash.hex();
  }

  #rulesOn(fork: number): readonly RetentionRule[] {
    return [...this.#rulesById.values()].filter((rule) => rule.fork === fork);
  }

  #changeRetention(retentionEntry: CommittedEntry, { id: retentionId, change, type, position, until }: RetentionBody): void {
    if (change === 'released') return this.#dropRule(retentionId);
    const { id: fork, name: branch } = this.#branchTree.branchOf(retentionEntry);
    const { path } = retentionEntry.context;
    this.#putRule({ id: retentionId, scheduled: change === 'scheduled', type, position, path, until, branch, fork });
  }

  /** Ends schedules and holds on these versions for which `concernsRule` is true. */
  #endRules(type: string, positions: Iterable<number>, concernsRule: (rule: RetentionRule) => boolean): void {
    if (this.#rulesByPosition.size === 0) return;
    for (const position of positions) {
      for (const retentionId of this.#rulesByPosition.get(position) ?? []) {
        const rule = this.#rulesById.get(retentionId)!;
        if (rule.type === type && concernsRule(rule)) this.#dropRule(retentionId);
      }
    }
  }

  /** Whether a removal on `branch` takes the version at `position` from the branch with this fork. */
  #reachesKeptRow(branch: Branch, fork: number, position: number): boolean {
    const keptBranch = this.#branchTree.byId(fork);
    assert(keptBranch, 'what is asked for on a branch ends with it');
    return lineageOf(keptBranch).some((range) => range.branch === branch && position < range.end);
  }

  #putRule(rule: RetentionRule): void {
    this.#rulesById.set(rule.id, rule);
    addRetentionId(this.#rulesByPosition, rule.position, rule.id);
    if (rule.scheduled) addRetentionId(this.#schedulesByHour, rule.until / intervalNanoseconds, rule.id);
    else addRetentionId(this.#holdsByType, rule.type, rule.id);
  }

  #dropRule(retentionId: string): void {
    const rule = this.#rulesById.get(retentionId);
    assert(rule, 'what ends was in force');
    this.#rulesById.delete(retentionId);
    removeRetentionId(this.#rulesByPosition, rule.position, retentionId);
    if (rule.scheduled) removeRetentionId(this.#schedulesByHour, rule.until / intervalNanoseconds, retentionId);
    else removeRetentionId(this.#holdsByType, rule.type, retentionId);
  }
}

function addRetentionId<K>(retentionIdsByKey: Map<K, Set<string>>, key: K, id: string): void {
  const retentionIds = retentionIdsByKey.get(key);
  if (retentionIds) retentionIds.add(id);
  else retentionIdsByKey.set(key, new Set([id]));
}

function removeRetentionId<K>(retentionIdsByKey: Map<K, Set<string>>, key: K, id: string): void {
  const retentionIds = retentionIdsByKey.get(key);
  retentionIds?.delete(id);
  if (retentionIds?.size === 0) retentionIdsByKey.delete(key);
}
