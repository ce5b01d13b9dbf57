/**
 * How long rows are kept: schedules, after whose time a row may be removed for good, and legal holds, while which it may not.
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
const stretchNanoseconds = 3_600_000_000_000n;

export class Retention implements Projection {
  readonly name = 'retention';
  readonly formatVersion = 1;
  #tree = new BranchTree();
  #rulesById = new Map<string, RetentionRule>();
  /** Ids of what is about a version, by its position. */
  #byPosition = new Map<number, Set<string>>();
  /** Ids of schedules by the hour in which they end. */
  #byHour = new Map<bigint, Set<string>>();
  /** By type. */
  #holds = new Map<string, Set<string>>();

  /** The schedule or hold in force under an id. */
  find(id: string): RetentionRule | undefined {
    return this.#rulesById.get(id);
  }

  /** Holds on rows of a type. */
  holds(type: string): readonly RetentionRule[] {
    return [...(this.#holds.get(type) ?? [])].map((id) => this.#rulesById.get(id)!);
  }

  /** Ids of the holds that were asked for on a branch. */
  heldOn(fork: number): readonly string[] {
    return this.#rulesOn(fork).flatMap(({ id, scheduled }) => (scheduled ? [] : [id]));
  }

  /** Schedules and holds on the version at a position. */
  rulesAt(position: number): readonly RetentionRule[] {
    return [...(this.#byPosition.get(position) ?? [])].map((id) => this.#rulesById.get(id)!);
  }

  /** Ids of the holds on rows of a path and of what lies below it. */
  heldUnder(path: string): readonly string[] {
    const isUnder = (of: string | null): boolean => of !== null && (of === path || of.startsWith(`${path}/`));
    const held = [...this.#holds.values()].flatMap((ids) => [...ids].map((id) => this.#rulesById.get(id)!));
    return held.filter((rule) => isUnder(rule.path)).map(({ id }) => id);
  }

  /** Schedules whose time is over, the oldest first, at most so many. Their rows may be held all the same. */
  due(now: bigint, most: number): readonly RetentionRule[] {
    const last = now / stretchNanoseconds;
    const hours = [...this.#byHour.keys()].filter((hour) => hour <= last).sort((a, b) => (a < b ? -1 : 1));
    const due: RetentionRule[] = [];
    for (const hour of hours) {
      const ended = [...this.#byHour.get(hour)!].map((id) => this.#rulesById.get(id)!).filter(({ until }) => until <= now);
      ended.sort((a, b) => (a.until === b.until ? compareText(a.id, b.id) : a.until < b.until ? -1 : 1));
      due.push(...ended.slice(0, most - due.length));
      if (due.length === most) break;
    }
    return due;
  }

  apply(entry: CommittedEntry): void {
    const { body } = entry;
    switch (body.kind) {
      case 'retention':
        return this.#change(entry, body);
      case 'removal': {
        const branch = this.#tree.branchOf(entry);
        return this.#end(body.type, body.positions, ({ fork, position }) => this.#reaches(branch, fork, position));
      }
      case 'erasure':
        for (const { type, positions } of body.versions) this.#end(type, positions, () => true);
        return;
      case 'branch': {
        const { ended } = this.#tree.apply(entry, body);
        if (ended) for (const { id } of this.#rulesOn(ended.id)) this.#drop(id);
        return;
      }
      default:
        return;
    }
  }

  async checkpoint(target: CheckpointWriter): Promise<void> {
    target.section('kept', serialize({ tree: this.#tree.savedState(), kept: [...this.#rulesById.values()] }));
  }

  async restore(source: CheckpointReader): Promise<void> {
    const bytes = source.section('kept');
    assert(bytes, 'a checkpoint of retention has what is kept');
    const state = deserialize(bytes) as { tree: SavedBranches; kept: RetentionRule[] };
    this.reset();
    this.#tree = BranchTree.fromSaved(state.tree);
    for (const rule of state.kept) this.#put(rule);
  }

  reset(): void {
    this.#tree = new BranchTree();
    this.#rulesById = new Map();
    this.#byPosition = new Map();
    this.#byHour = new Map();
    this.#holds = new Map();
  }

  digest(): string {
    const hash = new CanonicalHash();
    hash.value([...this.#rulesById.values()].sort((a, b) => compareText(a.id, b.id)));
    return hash.hex();
  }

  #rulesOn(fork: number): readonly RetentionRule[] {
    return [...this.#rulesById.values()].filter((rule) => rule.fork === fork);
  }

  #change(entry: CommittedEntry, { id, change, type, position, until }: RetentionBody): void {
    if (change === 'released') return this.#drop(id);
    const { id: fork, name: branch } = this.#tree.branchOf(entry);
    const { path } = entry.context;
    this.#put({ id, scheduled: change === 'scheduled', type, position, path, until, branch, fork });
  }

  /** Ends schedules and holds on these versions for which `concerned` is true. */
  #end(type: string, positions: Iterable<number>, concerned: (rule: RetentionRule) => boolean): void {
    if (this.#byPosition.size === 0) return;
    for (const position of positions) {
      for (const id of this.#byPosition.get(position) ?? []) {
        const rule = this.#rulesById.get(id)!;
        if (rule.type === type && concerned(rule)) this.#drop(id);
      }
    }
  }

  /** Whether a removal on `branch` takes the version at `position` from the branch with this fork. */
  #reaches(branch: Branch, fork: number, position: number): boolean {
    const at = this.#tree.byId(fork);
    assert(at, 'what is asked for on a branch ends with it');
    return lineageOf(at).some((range) => range.branch === branch && position < range.end);
  }

  #put(rule: RetentionRule): void {
    this.#rulesById.set(rule.id, rule);
    addTo(this.#byPosition, rule.position, rule.id);
    if (rule.scheduled) addTo(this.#byHour, rule.until / stretchNanoseconds, rule.id);
    else addTo(this.#holds, rule.type, rule.id);
  }

  #drop(id: string): void {
    const rule = this.#rulesById.get(id);
    assert(rule, 'what ends was in force');
    this.#rulesById.delete(id);
    takeFrom(this.#byPosition, rule.position, id);
    if (rule.scheduled) takeFrom(this.#byHour, rule.until / stretchNanoseconds, id);
    else takeFrom(this.#holds, rule.type, id);
  }
}

function addTo<K>(sets: Map<K, Set<string>>, key: K, id: string): void {
  const set = sets.get(key);
  if (set) set.add(id);
  else sets.set(key, new Set([id]));
}

function takeFrom<K>(sets: Map<K, Set<string>>, key: K, id: string): void {
  const set = sets.get(key);
  set?.delete(id);
  if (set?.size === 0) sets.delete(key);
}
