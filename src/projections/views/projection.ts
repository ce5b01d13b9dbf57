/**
 * Materialized views by name, and their statements. A view belongs to the organisation path of its maker, so that no other path
 * finds its name and the literals of its query. A branch starts with its source's views. Cached rows of a view are no state:
 * planners hold them. A dropped view is still known to reads of an earlier instant. A view that names an erased subject is gone
 * with it, on every branch and at every instant.
 */
import { deserialize, serialize } from 'node:v8';
import { assert } from '../../errors.ts';
import { BranchTree, type SavedBranches } from '../../log/entries/branches.ts';
import type { CommittedEntry } from '../../log/entries/entry.ts';
import { sealedKeyOf } from '../../log/keys/sealed-text.ts';
import { compareText } from '../../log/values/value.ts';
import type { ViewRecord } from '../access-paths.ts';
import { CanonicalHash } from '../canonical-hash.ts';
import type { NameTest } from '../subject-names.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';
import { type OpenText, textOpener } from '../sealed-definitions.ts';

type Named = Map<string, ViewRecord>;

interface Ended {
  /** By fork. */
  readonly branch: number;
  readonly view: ViewRecord;
  /** Position of the entry that ended it. */
  readonly end: number;
}

interface Saved {
  readonly tree: SavedBranches;
  readonly branches: [number, Named][];
  /** Absent in what an earlier release saved. */
  readonly ended?: readonly Ended[];
  readonly keys?: ReadonlyMap<number, string>;
}

export class Views implements Projection {
  readonly name = 'views';
  readonly formatVersion = 1;
  #tree = new BranchTree();
  /** By fork of the branch, main's is 0; then by owner and name. */
  #branches = new Map<number, Named>([[0, new Map()]]);
  /** Views dropped on a live branch, in that order. */
  #ended: Ended[] = [];
  /** By position of a view: the id of the key that its query rests under. */
  #keys = new Map<number, string>();
  readonly #open: OpenText;

  constructor(open: OpenText = textOpener(undefined)) {
    this.#open = open;
  }

  /** Views of the branch with this fork, in the order in which they were made; without a basis the present ones. */
  viewsOn(branch: number, basis = Infinity): readonly ViewRecord[] {
    const liveViews = [...(this.#branches.get(branch)?.values() ?? [])];
    const ended: ViewRecord[] = [];
    for (let i = this.#ended.length - 1; i >= 0 && this.#ended[i]!.end >= basis; i--) {
      if (this.#ended[i]!.branch === branch) ended.push(this.#ended[i]!.view);
    }
    const views = [...liveViews, ...ended].filter(({ position }) => position < basis);
    return views.sort((a, b) => a.position - b.position);
  }

  apply(entry: CommittedEntry): void {
    const { body, context } = entry;
    if (body.kind === 'view') {
      const { name, refreshSecs, dropped } = body;
      const sql = this.#open(body.sql);
      const { id: branch } = this.#tree.branchOf(entry);
      const named = this.#branches.get(branch)!;
      const key = keyOf(context.path, name);
      // An earlier tenant of the same id may have had one of this name.
      const before = named.get(key);
      if (before) this.#ended.push({ branch, view: before, end: entry.position });
      // One that is erased has taken the place of the view before it, and nothing else is left of it.
      if (dropped === true || sql === null) named.delete(key);
      else named.set(key, { name, sql, refreshSecs, owner: context.path, position: entry.position });
      if (sql !== null) for (const id of sealedKeyOf(body.sql)) this.#keys.set(entry.position, id);
    } else if (body.kind === 'erasure') {
      const mentions = new Set(body.mentions);
      for (const named of this.#branches.values()) {
        for (const [key, { position }] of named) if (mentions.has(position)) named.delete(key);
      }
      this.#ended = this.#ended.filter(({ view }) => !mentions.has(view.position));
      for (const position of mentions) this.#keys.delete(position);
    } else if (body.kind === 'branch') {
      const { forked, ended } = this.#tree.apply(entry, body);
      if (forked) this.#branches.set(forked.id, new Map(this.#branches.get(forked.source!.id)));
      else {
        this.#branches.delete(ended.id);
        this.#ended = this.#ended.filter(({ branch }) => branch !== ended.id);
      }
    }
  }

  /** Positions of the views, on any branch and of paths that one `owns`, whose name or query has one of the names in it. */
  mentioning(names: NameTest, owns: (path: string | null) => boolean): readonly number[] {
    const liveViews = [...this.#branches.values()].flatMap((named) => [...named.values()]);
    const viewRecord = [...liveViews, ...this.#ended.map(({ view }) => view)]
      .filter(({ name, sql, owner }) => owns(owner) && (names.areIn(name) || names.areIn(sql)))
      .map(({ position }) => position);
    return [...new Set(viewRecord)];
  }

  /** Ids of the keys that the queries of these views rest under. */
  keysOf(positions: readonly number[]): readonly string[] {
    return positions.flatMap((position) => this.#keys.get(position) ?? []);
  }

  async checkpoint(target: CheckpointWriter): Promise<void> {
    const saved: Saved = {
      tree: this.#tree.savedState(),
      branches: [...this.#branches],
      ended: this.#ended,
      keys: this.#keys,
    };
    target.section('views', serialize(saved));
  }

  async restore(source: CheckpointReader): Promise<void> {
    const bytes = source.section('views');
    assert(bytes, 'a checkpoint of views has them');
    const state = deserialize(bytes) as Saved;
    this.#tree = BranchTree.fromSaved(state.tree);
    this.#branches = new Map(state.branches);
    this.#ended = [...(state.ended ?? [])];
    this.#keys = new Map(state.keys);
  }

  reset(): void {
    this.#tree = new BranchTree();
    this.#branches = new Map([[0, new Map()]]);
    this.#ended = [];
    this.#keys = new Map();
  }

  digest(): string {
    const hash = new CanonicalHash();
    for (const [branch, named] of [...this.#branches].sort(([a], [b]) => a - b)) {
      hash.number(branch);
      hash.value([...named].sort(([a], [b]) => compareText(a, b)));
    }
    if (this.#ended.length > 0) hash.value(this.#ended);
    return hash.hex();
  }
}

export const keyOf = (owner: string | null, name: string): string => `${owner ?? ''}\u0000${name}`;
