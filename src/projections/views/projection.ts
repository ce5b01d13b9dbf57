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

type ViewsByKey = Map<string, ViewRecord>;

interface EndedView {
  /** By fork. */
  readonly branch: number;
  readonly view: ViewRecord;
  /** Position of the entry that ended it. */
  readonly end: number;
}

interface SavedViews {
  readonly tree: SavedBranches;
  readonly branches: [number, ViewsByKey][];
  /** Absent in what an earlier release saved. */
  readonly ended?: readonly EndedView[];
  readonly keys?: ReadonlyMap<number, string>;
}

export class Views implements Projection {
  readonly name = 'views';
  readonly formatVersion = 1;
  #branchTree = new BranchTree();
  /** By fork of the branch, main's is 0; then by owner and name. */
  #viewsByBranch = new Map<number, ViewsByKey>([[0, new Map()]]);
  /** Views dropped on a live branch, in that order. */
  #endedViews: EndedView[] = [];
  /** By position of a view: the id of the key that its query rests under. */
  #sqlKeysByPosition = new Map<number, string>();
  readonly #openViewSql: OpenText;

  constructor(openViewSql: OpenText = textOpener(undefined)) {
    this.#openViewSql = openViewSql;
  }

  /** Views of the branch with this fork, in the order in which they were made; without a basis the present ones. */
  viewsOn(branch: number, basis = Infinity): readonly ViewRecord[] {
    const liveViews = [...(this.#viewsByBranch.get(branch)?.values() ?? [])];
    const ended: ViewRecord[] = [];
    for (let i = this.#endedViews.length - 1; i >= 0 && this.#endedViews[i]!.end >= basis; i--) {
      if (this.#endedViews[i]!.branch === branch) ended.push(this.#endedViews[i]!.view);
    }
    const views = [...liveViews, ...ended].filter(({ position }) => position < basis);
    return views.sort((a, b) => a.position - b.position);
  }

  apply(viewEntry: CommittedEntry): void {
    const { body, context } = viewEntry;
    if (body.kind === 'view') {
      const { name, refreshSecs, dropped: isDropped } = body;
      const viewSql = this.#openViewSql(body.sql);
      const { id: branch } = this.#branchTree.branchOf(viewEntry);
      const viewsOnBranch = this.#viewsByBranch.get(branch)!;
      const viewKey = keyOf(context.path, name);
      // An earlier tenant of the same id may have had one of this name.
      const viewBefore = viewsOnBranch.get(viewKey);
      if (viewBefore) this.#endedViews.push({ branch, view: viewBefore, end: viewEntry.position });
      // One that is erased has taken the place of the view before it, and nothing else is left of it.
      if (isDropped === true || viewSql === null) viewsOnBranch.delete(viewKey);
      else viewsOnBranch.set(viewKey, { name, sql: viewSql, refreshSecs, owner: context.path, position: viewEntry.position });
      if (viewSql !== null)
        for (const sqlKeyId of sealedKeyOf(body.sql)) this.#sqlKeysByPosition.set(viewEntry.position, sqlKeyId);
    } else if (body.kind === 'erasure') {
      const mentionedPositions = new Set(body.mentions);
      for (const viewsOnBranch of this.#viewsByBranch.values()) {
        for (const [viewKey, { position }] of viewsOnBranch) if (mentionedPositions.has(position)) viewsOnBranch.delete(viewKey);
      }
      this.#endedViews = this.#endedViews.filter(({ view }) => !mentionedPositions.has(view.position));
      for (const position of mentionedPositions) this.#sqlKeysByPosition.delete(position);
    } else if (body.kind === 'branch') {
      const { forked: forkedBranch, ended: endedBranch } = this.#branchTree.apply(viewEntry, body);
      if (forkedBranch) this.#viewsByBranch.set(forkedBranch.id, new Map(this.#viewsByBranch.get(forkedBranch.source!.id)));
      else {
        this.#viewsByBranch.delete(endedBranch.id);
        this.#endedViews = this.#endedViews.filter(({ branch }) => branch !== endedBranch.id);
      }
    }
  }

  /** Positions of the views, on any branch and of paths that one `ownsPath`, whose name or query has one of the names in it. */
  mentioning(subjectNames: NameTest, ownsPath: (path: string | null) => boolean): readonly number[] {
    const liveViews = [...this.#viewsByBranch.values()].flatMap((viewsOnBranch) => [...viewsOnBranch.values()]);
    const viewRecord = [...liveViews, ...this.#endedViews.map(({ view }) => view)]
      .filter(({ name, sql, owner }) => ownsPath(owner) && (subjectNames.areIn(name) || subjectNames.areIn(sql)))
      .map(({ position }) => position);
    return [...new Set(viewRecord)];
  }

  /** Ids of the keys that the queries of these views rest under. */
  keysOf(viewPositions: readonly number[]): readonly string[] {
    return viewPositions.flatMap((position) => this.#sqlKeysByPosition.get(position) ?? []);
  }

  async checkpoint(viewCheckpoint: CheckpointWriter): Promise<void> {
    const savedViews: SavedViews = {
      tree: this.#branchTree.savedState(),
      branches: [...this.#viewsByBranch],
      ended: this.#endedViews,
      keys: this.#sqlKeysByPosition,
    };
    viewCheckpoint.section('views', serialize(savedViews));
  }

  async restore(viewCheckpoint: CheckpointReader): Promise<void> {
    const viewBytes = viewCheckpoint.section('views');
    assert(viewBytes, 'a checkpoint of views has them');
    const savedViews = deserialize(viewBytes) as SavedViews;
    this.#branchTree = BranchTree.fromSaved(savedViews.tree);
    this.#viewsByBranch = new Map(savedViews.branches);
    this.#endedViews = [...(savedViews.ended ?? [])];
    this.#sqlKeysByPosition = new Map(savedViews.keys);
  }

  reset(): void {
    this.#branchTree = new BranchTree();
    this.#viewsByBranch = new Map([[0, new Map()]]);
    this.#endedViews = [];
    this.#sqlKeysByPosition = new Map();
  }

  digest(): string {
    const viewsHash = new CanonicalHash();
    for (const [branch, viewsOnBranch] of [...this.#viewsByBranch].sort(([a], [b]) => a - b)) {
      viewsHash.number(branch);
      viewsHash.value([...viewsOnBranch].sort(([a], [b]) => compareText(a, b)));
    }
    if (this.#endedViews.length > 0) viewsHash.value(this.#endedViews);
    return viewsHash.hex();
  }
}

export const keyOf = (owner: string | null, name: string): string => `${owner ?? ''}\u0000${name}`;
