/**
 * Row versions by type, key and organisation path, each with its bounds on both axes and its provenance. Nothing is
 * overwritten: an update closes a version and appends another, so any earlier basis still reads what it saw. Each branch
 * has a layer of its own over those that it descends from.
 */
import { assert } from '../../errors.ts';
import { type Branch, BranchTree, lineageOf } from '../../log/branches.ts';
import type { CommittedEntry, ErasedVersions } from '../../log/entry.ts';
import type { CatalogReader, PathCodes, RowBlock, RowProvenance, RowReader, ScanEstimate, ScanRequest } from '../access-paths.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';
import type { Timeline } from '../../log/timeline.ts';
import type { StartWorker } from '../../log/workers.ts';
import { BranchRows } from './branch-rows.ts';
import type { ColumnSpace } from './extents.ts';
import { declaredTypes, Layer } from './layer.ts';
import { provenanceOf } from './lineage.ts';
import { subjectProperty } from '../catalog/subject.ts';
import { estimateRows, scanRows, type ScanSource } from './scan.ts';
import { Scopes } from './scopes.ts';
import { StandingVersions } from './standing-versions.ts';
import { type StoredTexts, storedTexts } from './stored-texts.ts';
import { textsOf, type ToldTexts } from './subject-texts.ts';
import { findVersions, type SubjectVersions } from './subject-versions.ts';
import type { Table } from './table.ts';
import { CanonicalHash } from '../canonical-hash.ts';
import { columnDigestJob, DigestShares, stretchesOf } from './column-digests.ts';
import { type CellHashes, hashOverlay, TableDigest } from './table-digest.ts';
import { type RowStorage, type RowStorageOptions, rowStorage } from './row-storage.ts';
import { restoreRows, saveRows } from './table-checkpoint.ts';
import type { PruningCounts } from './zones.ts';

export class Rows implements Projection {
  readonly name = 'rows';
  readonly formatVersion = 4;
  readonly timeline: Timeline;
  readonly #storage: RowStorage;
  #scopes = new Scopes();
  #tree = new BranchTree();
  /** By fork; main's is 0. */
  #layers: Map<number, Layer>;
  /** Restored tables may lack keys in their indexes. */
  #entering = false;
  /** By type: its indexes are being filled for those who write. */
  readonly #filling = new Map<string, Promise<void>>();

  /** The timeline must have applied an entry before this projection does. */
  constructor(timeline: Timeline, options: RowStorageOptions = {}) {
    this.timeline = timeline;
    this.#storage = rowStorage(timeline, options);
    const { store } = this.#storage;
    store?.measureBy(() => this.bytes - store.residentBytes);
    this.#layers = new Map([[0, new Layer(0, [], this.#storage)]]);
  }

  get scopes(): Scopes {
    return this.#scopes;
  }

  /** The memory of its columns, for who reads blocks of them. */
  get space(): ColumnSpace {
    return this.#storage.space;
  }

  /** A table of main. */
  table(type: string): Table | undefined {
    return this.#layer(0).table(type);
  }

  /** What a snapshot of main with this basis reads. */
  reader(basis: number): RowReader {
    return new RowsAt(this, this.#layer(0), basis, null);
  }

  /** What a snapshot of a branch with this basis reads, under the branch's own catalog. */
  branchReader(branch: number, basis: number, catalog: CatalogReader): RowReader {
    return branch === 0 ? this.reader(basis) : new RowsAt(this, this.#layer(branch), basis, catalog);
  }

  /** What deciding on a branch goes by. */
  on(branch: number, catalog: CatalogReader): BranchRows {
    return new BranchRows(this.#layer(branch), this.#scopes, catalog, (basis) => this.branchReader(branch, basis, catalog));
  }

  /**
   * All versions of a subject at positions from `from` on, of every type, on every branch that somebody reads, at every basis.
   * A slice a step; what comes meanwhile is for the next call, from the `end` that this one returns.
   */
  versionsOf(tenant: string | null, subject: string, from = 0): Generator<undefined, SubjectVersions> {
    return findVersions(tenant, subject, from, this.timeline.end, this.#ordered(), this.#scopes);
  }

  /** Keys and texts of these versions are told, a column of a segment a step. */
  textsOf(versions: readonly ErasedVersions[], told: ToldTexts): Generator<undefined, void> {
    return textsOf(versions, this.#ordered(), told);
  }

  /**
   * What applying an erasure of these versions needs is brought within reach: it is one turn, whatever there is of the subject. A
   * slice a step; what comes meanwhile is for the turn itself.
   */
  *expectErasure(versions: readonly ErasedVersions[]): Generator<undefined, void> {
    for (const { type, positions } of versions) {
      for (const layer of this.#ordered()) yield* layer.table(type)?.expectRemoval(positions) ?? [];
    }
  }

  /** The erasure that was expected is given up: nothing of it stays in memory. */
  expectNoErasure(): void {
    for (const layer of this.#layers.values()) for (const table of layer.tables()) table.expectNoRemoval();
  }

  /** For the digests of an erasure that is about to be intended. */
  standing(): StandingVersions {
    return new StandingVersions(() => this.#ordered());
  }

  /** Texts that are stored under these paths, on every branch that somebody reads; none of them comes into memory for that. */
  texts(paths: ReadonlySet<number>): Generator<StoredTexts, void> {
    return storedTexts(paths, this.#ordered(), this.timeline);
  }

  /** What erasures left in memory is wiped, a slice a step. */
  *wipe(): Generator<undefined, void> {
    for (const layer of this.#ordered()) for (const table of layer.tables()) yield* table.wipe();
  }

  /** Indexes that a start left for later are filled, one after the other, a slice a `turn`. */
  async enterKeys(turn: () => Promise<void>): Promise<void> {
    for (const layer of this.#layers.values()) for (const table of layer.tables()) await table.enterKeys(turn);
    this.#entering = false;
  }

  /**
   * Null where any key of the type is found at once, on every branch. Else its indexes are filled first, a slice a `turn`, once for
   * all who wait for it; they go on in the order in which they came.
   */
  keysWithin(type: string, turn: () => Promise<void>): Promise<void> | null {
    if (!this.#entering) return null;
    const running = this.#filling.get(type);
    if (running) return running;
    const tables = [...this.#layers.values()].flatMap((layer) => layer.table(type) ?? []).filter(({ isEntering }) => isEntering);
    if (tables.length === 0) return null;
    const fill = async (): Promise<void> => {
      for (const table of tables) await table.enterKeys(turn);
    };
    const filled = fill();
    this.#filling.set(type, filled);
    // The first of those who go on: whoever comes after that goes on behind them.
    const forget = (): void => void this.#filling.delete(type);
    filled.then(forget, forget);
    return filled;
  }

  /** What scans did not have to read. */
  get pruned(): Readonly<PruningCounts> {
    return this.#storage.pruned;
  }

  /** Heap that segments, indexes, dictionaries and overlays take. */
  get bytes(): number {
    let total = 0;
    for (const layer of this.#layers.values()) total += layer.bytes;
    return total;
  }

  apply(entry: CommittedEntry): void {
    const { body } = entry;
    switch (body.kind) {
      case 'rows':
        this.#layerOf(entry).append(entry, body, this.#scopes.encode(entry.context.path));
        return;
      case 'removal':
        this.#layerOf(entry).remove(body);
        return;
      case 'erasure':
        // Positions are of one layer each, and what a branch reads of another's it reads there.
        for (const { type, positions } of body.versions) {
          for (const layer of this.#layers.values()) layer.table(type)?.remove(positions, 'later');
        }
        return;
      case 'type': {
        const { name, properties } = body.definition;
        const branch = this.#tree.of(entry);
        const layer = this.#layer(branch.id);
        const subject = subjectProperty(body.definition);
        if (subject !== null) layer.subjects.set(name, subject);
        const table = layer.tableFor(name);
        const shared = this.#tree.isShared(branch);
        for (const [column, { type }] of Object.entries(properties)) table.setColumnType(column, type, shared);
        return;
      }
      case 'branch': {
        const { forked, released } = this.#tree.apply(entry, body);
        if (forked) this.#layers.set(forked.id, this.#newLayer(forked, this.#layer(forked.source!.id).subjects));
        for (const { id } of released) this.#release(id);
        return;
      }
      default:
        return;
    }
  }

  async checkpoint(target: CheckpointWriter): Promise<void> {
    saveRows(target, { paths: this.#scopes.paths(), tree: this.#tree.saved(), layers: this.#ordered() }, this.#storage.store);
  }

  async restore(source: CheckpointReader): Promise<void> {
    this.#storage.store?.clear();
    const saved = await restoreRows(source, this.#storage);
    const scopes = new Scopes();
    for (const path of saved.paths) scopes.encode(path);
    this.#scopes = scopes;
    this.#tree = BranchTree.restored(saved.tree);
    this.#layers = new Map();
    for (const branch of this.#tree.kept()) this.#layers.set(branch.id, this.#newLayer(branch));
    saved.fill(this.#ordered());
    this.#entering = true;
  }

  reset(): void {
    this.#storage.store?.clear();
    this.#scopes = new Scopes();
    this.#tree = new BranchTree();
    this.#layers = new Map([[0, new Layer(0, [], this.#storage)]]);
  }

  /** Over values, never over layouts: segment sizes, widths, dictionaries and codes leave no trace. */
  digest(): string {
    const afterSegment = (): void => this.#afterSegment();
    return this.#digest((table) => new TableDigest(table, this.#scopes, this.timeline, { afterSegment }));
  }

  /** The same with a worker that hashes columns meanwhile. Nothing may be applied before it resolves. */
  async digestBeside(startWorker: StartWorker): Promise<string> {
    assert(!this.#storage.store, 'a worker reads columns that stay where they are');
    const worker = startWorker(columnDigestJob, null);
    try {
      const shares = new DigestShares();
      const tables = this.#ordered().flatMap((layer) => [...layer.tables()]);
      const begun = tables.map((table) => {
        const names = shares.columnsBeside(table);
        return { table, names, reply: worker.ask(stretchesOf(table, names)) };
      });
      const replied = Promise.all(begun.map(({ reply }) => reply));
      const digests = new Map<Table, TableDigest>();
      const found = new Map<Table, readonly CellHashes[]>();
      try {
        for (const { table, names } of begun) {
          const elsewhere = new Map(names.map((name, i) => [name, () => found.get(table)![i]!]));
          digests.set(table, new TableDigest(table, this.#scopes, this.timeline, { elsewhere }));
        }
      } finally {
        for (const [i, hashes] of (await replied).entries()) found.set(begun[i]!.table, hashes);
      }
      return this.#digest((table) => digests.get(table)!);
    } finally {
      await worker.end();
    }
  }

  #digest(digestOf: (table: Table) => TableDigest): string {
    const hash = new CanonicalHash();
    for (const layer of this.#ordered()) {
      if (layer.id > 0) hash.number(layer.id);
      for (const table of layer.tables()) digestOf(table).end(hash);
      for (const { table, overlay } of layer.overlays()) hashOverlay(hash, table, overlay);
    }
    return hash.hex();
  }

  #layer(id: number): Layer {
    const layer = this.#layers.get(id);
    assert(layer, 'a branch that is read has a layer');
    return layer;
  }

  /** A digest reads everything in one turn: without this, everything would come into memory. */
  #afterSegment(): void {
    const { store, space } = this.#storage;
    store?.trim();
    if (store) space.reclaim();
  }

  /** Readers that are at it read on. */
  #release(id: number): void {
    const { store } = this.#storage;
    if (store) for (const table of this.#layer(id).tables()) table.segments.forEach((segment) => store.forget(segment));
    this.#layers.delete(id);
  }

  #layerOf(entry: CommittedEntry): Layer {
    return this.#layer(this.#tree.of(entry).id);
  }

  #newLayer(branch: Branch, subjects: Iterable<readonly [string, string]> = []): Layer {
    const lower = lineageOf(branch)
      .slice(0, -1)
      .map((stretch) => ({ layer: this.#layer(stretch.branch.id), end: stretch.end }));
    return new Layer(branch.id, lower, this.#storage, subjects);
  }

  /** By fork, main first. */
  #ordered(): Layer[] {
    return [...this.#layers.values()].sort((a, b) => a.id - b.id);
  }
}

class RowsAt implements RowReader {
  readonly #rows: Rows;
  readonly #layer: Layer;
  readonly #basis: number;
  /** Of a branch; main's tables know their own types. */
  readonly #catalog: CatalogReader | null;

  constructor(rows: Rows, layer: Layer, basis: number, catalog: CatalogReader | null) {
    this.#rows = rows;
    this.#layer = layer;
    this.#basis = basis;
    this.#catalog = catalog;
  }

  scan(request: ScanRequest): Iterator<RowBlock, void> {
    return this.#rows.space.read(scanRows(this.#source(request.type), request));
  }

  estimate(request: ScanRequest): ScanEstimate {
    return estimateRows(this.#source(request.type), request);
  }

  pathCodes(): PathCodes {
    return this.#rows.scopes;
  }

  provenanceOf(type: string, systemFrom: bigint, paths?: readonly number[]): RowProvenance | undefined {
    return provenanceOf(this.#source(type), systemFrom, paths);
  }

  #source(type: string): ScanSource {
    const { timeline, scopes } = this.#rows;
    const basis = this.#basis;
    if (this.#catalog === null) {
      const table = this.#layer.table(type);
      return { timeline, scopes, layers: table ? [{ table, inherited: null }] : [], basis, types: null };
    }
    const types = declaredTypes(this.#catalog, type);
    return { timeline, scopes, layers: this.#layer.layersOf(type, types), basis, types };
  }
}
