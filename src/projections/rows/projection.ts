/**
 * Row versions by tenant, type, key and organisation path, each with its bounds on both axes and its provenance. Nothing is
 * overwritten: an update closes a version and appends another, so any earlier basis still reads what it saw. Each branch
 * has a layer of its own over those that it descends from.
 */
import { assert } from '../../errors.ts';
import { type Branch, BranchTree, lineageOf } from '../../log/entries/branches.ts';
import { type CommittedEntry, type ErasedVersions, type RowsBody, scopeOfName, tenantOfErased } from '../../log/entries/entry.ts';
import { holdsTexts, tenantOf } from '../../log/values/value.ts';
import type { CatalogReader, RowReader } from '../access-paths.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';
import { ForkedTimeline } from '../../log/values/forked-timeline.ts';
import type { Timeline } from '../../log/values/timeline.ts';
import type { StartWorker } from '../../log/threads/workers.ts';
import { TenantRows } from './tables/tenant-rows.ts';
import { ClosingOrders } from './tables/closing-order.ts';
import { TransactionRows } from './tables/transaction-rows.ts';
import type { ColumnSpace } from './cells/column-extents.ts';
import { forgetIndexes, type Renewed, type RenewOptions, type SegmentIndexes } from './indexes/segment-indexes.ts';
import { BranchLayer, type ScopedNames } from './tables/branch-layer.ts';
import { subjectProperty } from '../catalog/subject-property.ts';
import { SnapshotRows } from './scan/snapshot-rows.ts';
import { OrganisationCodes } from './cells/path-codes.ts';
import { LiveVersionDigests } from './erasure/version-digests.ts';
import { type StoredTexts, storedTexts } from './erasure/stored-texts.ts';
import { cellsOf, textsOf, type TextSink } from './erasure/subject-texts.ts';
import { DerivedVersions, isDerivable } from './erasure/derived-versions.ts';
import { findVersions, type SubjectVersions } from './erasure/subject-versions.ts';
import type { Table } from './tables/table.ts';
import { CanonicalHash } from '../canonical-hash.ts';
import { columnDigestJob, DigestShares, stretchesOf } from './digests/column-digests.ts';
import { type CellHashes, hashOverlay, TableDigest } from './digests/table-digest.ts';
import { type RowStorage, type RowStorageOptions, rowStorage } from './tables/row-storage.ts';
import { restoreRows, saveRows } from './tables/table-checkpoint.ts';
import type { PruningCounts } from './tables/zone-maps.ts';

/** Branch and tenant of the rows, and the tenant's catalog on that branch. */
export interface RowsScope {
  readonly branch: number;
  readonly tenant: string | null;
  readonly catalog: CatalogReader;
}

export function rowsOf(
  catalog: { catalogOn(branch: number, tenant: string | null): CatalogReader },
  branch: number,
  tenant: string | null,
): RowsScope {
  return { branch, tenant, catalog: catalog.catalogOn(branch, tenant) };
}

export class Rows implements Projection {
  readonly name = 'rows';
  readonly formatVersion = 6;
  readonly restsOn = ['temporal'];
  readonly timeline: Timeline;
  readonly #storage: RowStorage;
  #scopes = new OrganisationCodes();
  #tree = new BranchTree();
  /** By fork; main's is 0. */
  #layers: Map<number, BranchLayer>;
  /** Restored tables may lack keys in their indexes. */
  #entering = false;
  /** Segments have their indexes begun as they are sealed. */
  #indexing = false;
  /** By tenant and type: index fills that writes wait for. */
  readonly #filling = new Map<string, Promise<void>>();

  /** The timeline must have applied an entry before this projection does. */
  constructor(timeline: Timeline, options: RowStorageOptions = {}) {
    this.timeline = timeline;
    this.#storage = rowStorage(timeline, options);
    const { store } = this.#storage;
    store?.measureBy(() => this.bytes - store.residentBytes);
    this.#layers = new Map([[0, new BranchLayer(0, [], this.#storage)]]);
  }

  get scopes(): OrganisationCodes {
    return this.#scopes;
  }

  /** The memory of its columns, for readers of blocks. */
  get space(): ColumnSpace {
    return this.#storage.space;
  }

  /** Indexes of the texts of its columns. */
  get indexes(): SegmentIndexes {
    return this.#storage.indexes;
  }

  /**
   * Rebuilds indexes of texts, of every tenant and branch: those of columns that were searched, or of every column of texts of
   * one type. Undefined where no tenant has rows of it.
   */
  renewIndexes(type: string | null, options?: RenewOptions): Promise<Renewed> | undefined {
    const tables = [...this.#byFork()].flatMap((layer) => layer.tables()).filter((table) => type === null || table.type === type);
    if (type !== null && tables.length === 0) return undefined;
    const wanted = tables.flatMap((table) =>
      table.segments.flatMap((segment) => {
        const columns = type === null ? this.indexes.searchedColumns(segment) : textColumns(table);
        return columns.map((column) => ({ segment, column }));
      }),
    );
    return this.indexes.renew(wanted, options);
  }

  /**
   * Indexes of sealed segments are begun, beside the turn, of columns of texts that were searched or are declared to be indexed, and
   * of the ends of edges: of those that there are, and from here on as segments are sealed.
   */
  beginIndexes(): void {
    this.#indexing = true;
    for (const layer of this.#byFork()) for (const table of layer.tables()) this.#beginIndexes(layer, table, 0);
  }

  #append(entry: CommittedEntry, body: RowsBody): void {
    const layer = this.#layerOf(entry);
    const tenant = tenantOf(entry.context.path);
    const before = layer.table(tenant, body.type)?.segments.length ?? 0;
    layer.append(entry, body, this.#scopes.encode(entry.context.path));
    if (!this.#indexing) return;
    const table = layer.table(tenant, body.type)!;
    if (table.segments.length > Math.max(before, 1)) this.#beginIndexes(layer, table, Math.max(0, before - 1));
  }

  #beginIndexes(layer: BranchLayer, table: Table, from: number): void {
    const { tenant, type } = table;
    const { texts, ends } = table.toIndex(layer.names.indexedOf(tenant, type), layer.names.endsOf(tenant, type));
    if (texts.length === 0 && ends.length === 0) return;
    const segments = table.segments.slice(from).filter(({ sealed }) => sealed);
    this.indexes.prepare(segments, texts);
    for (const segment of segments) for (const column of ends) this.indexes.ends(segment, column);
  }

  /** A tenant's table on main. */
  table(tenant: string | null, type: string): Table | undefined {
    return this.#layer(0).table(tenant, type);
  }

  /**
   * The rows that a tenant's snapshot of a branch with this basis reads, under the tenant's catalog of the branch. `then`: the
   * catalog that
   * says whether a type declares an `id`, where an earlier one counts.
   */
  reader(of: RowsScope, basis: number, then = of.catalog): RowReader {
    return new SnapshotRows(this, this.#layer(of.branch), of, basis, then);
  }

  /** Rows of a tenant's branch below a position, with uncommitted rows over them that one reader alone sees. */
  privately({ branch, tenant }: Pick<RowsScope, 'branch' | 'tenant'>, position: number): TransactionRows {
    const below = this.#layer(branch);
    const timeline = new ForkedTimeline(this.timeline, position);
    const orders = new ClosingOrders(this.#storage.settings.temporalIndexMax);
    const storage: RowStorage = { ...this.#storage, timeline, closingOrders: () => orders, store: null };
    const layer = new BranchLayer(position, [...below.lower, { layer: below, end: position }], storage, below.names);
    return new TransactionRows({ layer, tenant, timeline, scopes: this.#scopes, space: this.space, indexes: this.indexes });
  }

  /** The rows of a branch, for decide functions. */
  tenantRows(of: RowsScope): TenantRows {
    const layer = this.#layer(of.branch);
    return new TenantRows(layer, of.tenant, this.#scopes, of.catalog, this.timeline, (basis) => this.reader(of, basis));
  }

  /**
   * All versions of a subject at positions from `from` on, of every type, on every branch with readers, at every basis. A slice a
   * step; rows that arrive meanwhile are for the next call, from the `end` that this one returns.
   */
  versionsOf(tenant: string | null, subject: string, from = 0): Generator<undefined, SubjectVersions> {
    return findVersions(tenant, subject, from, this.timeline.end, this.#byFork(), this.#scopes);
  }

  /** Finds the versions derived from a subject's versions, as far as the search has come. */
  derivedFrom(tenant: string | null, subject: string): DerivedVersions {
    return new DerivedVersions({ tenant, subject, layers: () => this.#byFork(), scopes: this.#scopes, timeline: this.timeline });
  }

  /** Types of a tenant whose rows name their sources. */
  derivable(tenant: string | null): ReadonlySet<string> {
    const types = new Set<string>();
    for (const layer of this.#byFork())
      for (const table of layer.tablesOf(tenant)) if (isDerivable(table.type, table.columnTypes())) types.add(table.type);
    return types;
  }

  /** Every text in cells of these versions, also inside JSON, with the position of its version; a column of a segment a step. */
  cellsOf(versions: readonly ErasedVersions[], say: (text: string, position: number) => void): Generator<undefined, void> {
    return cellsOf(versions, this.#byFork(), say);
  }

  /** Reports keys and texts of these versions, a column of a segment a step. */
  textsOf(versions: readonly ErasedVersions[], textSink: TextSink): Generator<undefined, void> {
    return textsOf(versions, this.#byFork(), textSink);
  }

  /**
   * Prepares an erasure of these versions, which is then applied in one turn, however much the subject has. A slice a step; the
   * turn itself handles rows that arrive meanwhile.
   */
  *expectErasure(versions: readonly ErasedVersions[]): Generator<undefined, void> {
    for (const { type, paths, positions } of versions) {
      const tenant = tenantOfErased({ paths });
      for (const layer of this.#byFork()) yield* layer.table(tenant, type)?.expectRemoval(positions) ?? [];
    }
  }

  /** The erasure that was expected is given up: nothing of it stays in memory. */
  expectNoErasure(): void {
    for (const layer of this.#layers.values()) for (const table of layer.everyTable()) table.expectNoRemoval();
  }

  /** For the digests of an erasure that is about to be intended. */
  liveVersionDigests(): LiveVersionDigests {
    return new LiveVersionDigests(() => this.#byFork());
  }

  /** Texts stored under these paths, on every branch with readers; none of them is loaded into memory for that. */
  texts(
    paths: ReadonlySet<number>,
    only: { readonly type: string; readonly column: string } | null = null,
  ): Generator<StoredTexts, void> {
    const tenants = new Set(Array.from(paths, (code) => tenantOf(this.#scopes.path(code))));
    return storedTexts(paths, tenants, this.#byFork(), this.timeline, only);
  }

  /** Wipes erased bytes in memory, a slice a step. */
  *wipe(): Generator<undefined, void> {
    for (const layer of this.#byFork()) for (const table of layer.everyTable()) yield* table.wipe();
  }

  /** Tables whose keys a start left for later. */
  get entering(): number {
    if (!this.#entering) return 0;
    return [...this.#layers.values()].flatMap((layer) => [...layer.everyTable()]).filter(({ isEntering }) => isEntering).length;
  }

  /** Indexes that a start left for later are filled, one after the other, a slice a `turn`. */
  async enterKeys(turn: () => Promise<void>, onEntered?: () => void): Promise<void> {
    for (const layer of this.#layers.values()) {
      for (const table of layer.everyTable()) {
        const { isEntering } = table;
        await table.enterKeys(turn);
        if (isEntering) onEntered?.();
      }
    }
    this.#entering = false;
  }

  /**
   * Null where any key of a tenant's type is found at once, on every branch. Else its indexes are filled first, a slice a `turn`,
   * once for all who wait for it; they go on in the order in which they came.
   */
  keysWithin(tenant: string | null, type: string, turn: () => Promise<void>): Promise<void> | null {
    if (!this.#entering) return null;
    const name = `${tenant ?? ''}\0${type}`;
    const running = this.#filling.get(name);
    if (running) return running;
    const tables = [...this.#layers.values()]
      .flatMap((layer) => layer.table(tenant, type) ?? [])
      .filter(({ isEntering }) => isEntering);
    if (tables.length === 0) return null;
    const fill = async (): Promise<void> => {
      for (const table of tables) await table.enterKeys(turn);
    };
    const filled = fill();
    this.#filling.set(name, filled);
    // The first waiter to continue removes the entry: later callers continue after it.
    const forget = (): void => void this.#filling.delete(name);
    filled.then(forget, forget);
    return filled;
  }

  /** Counts of the work that scans skipped. */
  get pruned(): Readonly<PruningCounts> {
    return this.#storage.pruned;
  }

  /** Bytes of segments, indexes of keys, texts and vectors, dictionaries, overlays, and embeddings of rows. */
  get bytes(): number {
    let total = this.#storage.indexes.bytes + this.#storage.bytesBeside();
    for (const layer of this.#layers.values()) total += layer.bytes;
    return total;
  }

  apply(entry: CommittedEntry): void {
    const { body } = entry;
    switch (body.kind) {
      case 'rows':
        this.#append(entry, body);
        return;
      case 'removal':
        this.#layerOf(entry).remove(tenantOf(entry.context.path), body);
        return;
      case 'erasure':
        // Positions belong to one layer each, and a branch reads another's rows in that layer.
        for (const { type, paths, positions } of body.versions) {
          const tenant = tenantOfErased({ paths });
          for (const layer of this.#layers.values()) layer.table(tenant, type)?.remove(positions, 'later');
        }
        return;
      case 'type': {
        const branch = this.#tree.branchOf(entry);
        const { definition } = body;
        const subject = subjectProperty(definition);
        this.#layer(branch.id).define(scopeOfName(entry, body), definition, subject, this.#tree.isShared(branch));
        return;
      }
      case 'branch': {
        const { forked, released } = this.#tree.apply(entry, body);
        if (forked) this.#layers.set(forked.id, this.#newLayer(forked, this.#layer(forked.source!.id).names));
        for (const { id } of released) this.#release(id);
        return;
      }
      case 'tenant':
        if (body.change === 'purged') this.#forget(body.tenant.id);
        return;
      default:
        return;
    }
  }

  async checkpoint(target: CheckpointWriter): Promise<void> {
    saveRows(target, { paths: this.#scopes.paths(), tree: this.#tree.savedState(), layers: this.#byFork() }, this.#storage.store);
  }

  async restore(source: CheckpointReader): Promise<void> {
    this.#clear();
    const saved = await restoreRows(source, this.#storage);
    const scopes = new OrganisationCodes();
    for (const path of saved.paths) scopes.encode(path);
    this.#scopes = scopes;
    this.#tree = BranchTree.fromSaved(saved.tree);
    this.#layers = new Map();
    for (const branch of this.#tree.keptBranches()) this.#layers.set(branch.id, this.#newLayer(branch, saved.names(branch.id)));
    saved.fill(this.#byFork());
    this.#entering = true;
  }

  reset(): void {
    this.#clear();
    this.#scopes = new OrganisationCodes();
    this.#tree = new BranchTree();
    this.#layers = new Map([[0, new BranchLayer(0, [], this.#storage)]]);
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
      const tables = this.#byFork().flatMap((layer) => [...layer.tables()]);
      const begun = tables.map((table) => {
        const names = shares.columnsBeside(table);
        return { table, names, reply: worker.ask(stretchesOf(table, names)) };
      });
      const replied = Promise.all(begun.map(({ reply }) => reply));
      const digests = new Map<Table, TableDigest>();
      const cellHashes = new Map<Table, readonly CellHashes[]>();
      try {
        for (const { table, names } of begun) {
          const elsewhere = new Map(names.map((name, i) => [name, () => cellHashes.get(table)![i]!]));
          digests.set(table, new TableDigest(table, this.#scopes, this.timeline, { elsewhere }));
        }
      } finally {
        for (const [i, hashes] of (await replied).entries()) cellHashes.set(begun[i]!.table, hashes);
      }
      return this.#digest((table) => digests.get(table)!);
    } finally {
      await worker.end();
    }
  }

  #digest(digestOf: (table: Table) => TableDigest): string {
    const hash = new CanonicalHash();
    for (const layer of this.#byFork()) {
      if (layer.id > 0) hash.number(layer.id);
      for (const table of layer.tables()) digestOf(table).end(hash);
      for (const { table, overlay } of layer.overlays()) hashOverlay(hash, table, overlay);
    }
    return hash.hex();
  }

  #layer(id: number): BranchLayer {
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
    this.#letGo(this.#layer(id).everyTable());
    this.#layers.delete(id);
  }

  /** The tables of a purged tenant are empty: a later tenant of its id may declare other columns. */
  #forget(tenant: string): void {
    for (const layer of this.#layers.values()) this.#letGo(layer.forget(tenant));
  }

  #letGo(tables: Iterable<Table>): void {
    const { store } = this.#storage;
    for (const { segments } of tables) {
      for (const segment of segments) {
        forgetIndexes(segment);
        store?.forget(segment);
      }
    }
  }

  #clear(): void {
    this.#storage.store?.clear();
    this.indexes.clear();
  }

  #layerOf(entry: CommittedEntry): BranchLayer {
    return this.#layer(this.#tree.branchOf(entry).id);
  }

  #newLayer(branch: Branch, names: ScopedNames): BranchLayer {
    const lower = lineageOf(branch)
      .slice(0, -1)
      .map((range) => ({ layer: this.#layer(range.branch.id), end: range.end }));
    return new BranchLayer(branch.id, lower, this.#storage, names);
  }

  /** By fork, main first. */
  #byFork(): BranchLayer[] {
    return [...this.#layers.values()].sort((a, b) => a.id - b.id);
  }
}

function textColumns(table: Table): readonly string[] {
  return [...table.columnTypes()].flatMap(([name, { type }]) => (holdsTexts(type) ? name : []));
}
