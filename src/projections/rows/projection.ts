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
import { TransactionRows } from './scan/transaction-rows.ts';
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
import { columnDigestJob, DigestShares, columnPartsOf } from './digests/column-digests.ts';
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
  readonly #rowStorage: RowStorage;
  #organisationCodes = new OrganisationCodes();
  #branchTree = new BranchTree();
  /** By fork; main's is 0. */
  #branchLayers: Map<number, BranchLayer>;
  /** Restored tables may lack keys in their indexes. */
  #areKeysEntering = false;
  /** Segments have their indexes begun as they are sealed. */
  #isIndexing = false;
  /** By tenant and type: index fills that writes wait for. */
  readonly #fillingKeyIndexes = new Map<string, Promise<void>>();

  /** The timeline must have applied an entry before this projection does. */
  constructor(timeline: Timeline, storageOptions: RowStorageOptions = {}) {
    this.timeline = timeline;
    this.#rowStorage = rowStorage(timeline, storageOptions);
    const { store } = this.#rowStorage;
    store?.measureBy(() => this.bytes - store.residentBytes);
    this.#branchLayers = new Map([[0, new BranchLayer(0, [], this.#rowStorage)]]);
  }

  get scopes(): OrganisationCodes {
    return this.#organisationCodes;
  }

  /** The memory of its columns, for readers of blocks. */
  get space(): ColumnSpace {
    return this.#rowStorage.space;
  }

  /** Indexes of the texts of its columns. */
  get indexes(): SegmentIndexes {
    return this.#rowStorage.indexes;
  }

  /**
   * Rebuilds indexes of texts, of every tenant and branch: those of columns that were searched, or of every column of texts of
   * one type. Undefined where no tenant has rows of it.
   */
  renewIndexes(type: string | null, options?: RenewOptions): Promise<Renewed> | undefined {
    const renewedTables = [...this.#layersByFork()]
      .flatMap((branchLayer) => branchLayer.tables())
      .filter((table) => type === null || table.type === type);
    if (type !== null && renewedTables.length === 0) return undefined;
    const columnsToRenew = renewedTables.flatMap((table) =>
      table.segments.flatMap((segment) => {
        const textColumnNames = type === null ? this.indexes.searchedColumns(segment) : textColumns(table);
        return textColumnNames.map((column) => ({ segment, column }));
      }),
    );
    return this.indexes.renew(columnsToRenew, options);
  }

  /**
   * Indexes of sealed segments are begun, beside the turn, of columns of texts that were searched or are declared to be indexed, and
   * of the ends of edges: of those that there are, and from here on as segments are sealed.
   */
  beginIndexes(): void {
    this.#isIndexing = true;
    for (const branchLayer of this.#layersByFork())
      for (const table of branchLayer.tables()) this.#beginSegmentIndexes(branchLayer, table, 0);
  }

  #appendRows(rowsEntry: CommittedEntry, body: RowsBody): void {
    const branchLayer = this.#branchLayerOf(rowsEntry);
    const tenant = tenantOf(rowsEntry.context.path);
    const segmentsBefore = branchLayer.table(tenant, body.type)?.segments.length ?? 0;
    branchLayer.append(rowsEntry, body, this.#organisationCodes.encode(rowsEntry.context.path));
    if (!this.#isIndexing) return;
    const appendedTable = branchLayer.table(tenant, body.type)!;
    if (appendedTable.segments.length > Math.max(segmentsBefore, 1))
      this.#beginSegmentIndexes(branchLayer, appendedTable, Math.max(0, segmentsBefore - 1));
  }

  #beginSegmentIndexes(branchLayer: BranchLayer, table: Table, firstSegment: number): void {
    const { tenant, type } = table;
    const { texts: textColumnNames, ends: endColumns } = table.toIndex(
      branchLayer.names.indexedOf(tenant, type),
      branchLayer.names.endsOf(tenant, type),
    );
    if (textColumnNames.length === 0 && endColumns.length === 0) return;
    const sealedSegments = table.segments.slice(firstSegment).filter(({ sealed }) => sealed);
    this.indexes.prepare(sealedSegments, textColumnNames);
    for (const segment of sealedSegments) for (const column of endColumns) this.indexes.ends(segment, column);
  }

  /** A tenant's table on main. */
  table(tenant: string | null, type: string): Table | undefined {
    return this.#branchLayer(0).table(tenant, type);
  }

  /**
   * The rows that a tenant's snapshot of a branch with this basis reads, under the tenant's catalog of the branch. `catalogThen`: the
   * catalog that
   * says whether a type declares an `id`, where an earlier one counts.
   */
  reader(rowsScope: RowsScope, basis: number, catalogThen = rowsScope.catalog): RowReader {
    return new SnapshotRows(this, this.#branchLayer(rowsScope.branch), rowsScope, basis, catalogThen);
  }

  /** Rows of a tenant's branch below a position, with uncommitted rows over them that one reader alone sees. */
  privately({ branch, tenant }: Pick<RowsScope, 'branch' | 'tenant'>, position: number): TransactionRows {
    const branchBelow = this.#branchLayer(branch);
    const timeline = new ForkedTimeline(this.timeline, position);
    const privateOrders = new ClosingOrders(this.#rowStorage.settings.temporalIndexMax);
    const privateStorage: RowStorage = { ...this.#rowStorage, timeline, closingOrders: () => privateOrders, store: null };
    const privateLayer = new BranchLayer(
      position,
      [...branchBelow.lower, { layer: branchBelow, end: position }],
      privateStorage,
      branchBelow.names,
    );
    return new TransactionRows({
      layer: privateLayer,
      tenant,
      timeline,
      scopes: this.#organisationCodes,
      space: this.space,
      indexes: this.indexes,
    });
  }

  /** The rows of a branch, for decide functions. */
  tenantRows(of: RowsScope): TenantRows {
    const layer = this.#branchLayer(of.branch);
    return new TenantRows(layer, of.tenant, this.#organisationCodes, of.catalog, this.timeline, (basis) =>
      this.reader(of, basis),
    );
  }

  /**
   * All versions of a subject at positions from `from` on, of every type, on every branch with readers, at every basis. A slice a
   * step; rows that arrive meanwhile are for the next call, from the `end` that this one returns.
   */
  versionsOf(tenant: string | null, subject: string, from = 0): Generator<undefined, SubjectVersions> {
    return findVersions(tenant, subject, from, this.timeline.end, this.#layersByFork(), this.#organisationCodes);
  }

  /** Finds the versions derived from a subject's versions, as far as the search has come. */
  derivedFrom(tenant: string | null, subject: string): DerivedVersions {
    return new DerivedVersions({
      tenant,
      subject,
      layers: () => this.#layersByFork(),
      scopes: this.#organisationCodes,
      timeline: this.timeline,
    });
  }

  /** Types of a tenant whose rows name their sources. */
  derivable(tenant: string | null): ReadonlySet<string> {
    const derivableTypes = new Set<string>();
    for (const branchLayer of this.#layersByFork())
      for (const table of branchLayer.tablesOf(tenant))
        if (isDerivable(table.type, table.columnTypes())) derivableTypes.add(table.type);
    return derivableTypes;
  }

  /** Every text in cells of these versions, also inside JSON, with the position of its version; a column of a segment a step. */
  cellsOf(
    versions: readonly ErasedVersions[],
    sayErasedCell: (text: string, position: number) => void,
  ): Generator<undefined, void> {
    return cellsOf(versions, this.#layersByFork(), sayErasedCell);
  }

  /** Reports keys and texts of these versions, a column of a segment a step. */
  textsOf(versions: readonly ErasedVersions[], textSink: TextSink): Generator<undefined, void> {
    return textsOf(versions, this.#layersByFork(), textSink);
  }

  /**
   * Prepares an erasure of these versions, which is then applied in one turn, however much the subject has. A slice a step; the
   * turn itself handles rows that arrive meanwhile.
   */
  *expectErasure(versions: readonly ErasedVersions[]): Generator<undefined, void> {
    for (const { type, paths, positions } of versions) {
      const tenant = tenantOfErased({ paths });
      for (const branchLayer of this.#layersByFork()) yield* branchLayer.table(tenant, type)?.expectRemoval(positions) ?? [];
    }
  }

  /** The erasure that was expected is given up: nothing of it stays in memory. */
  expectNoErasure(): void {
    for (const branchLayer of this.#branchLayers.values()) for (const table of branchLayer.everyTable()) table.expectNoRemoval();
  }

  /** For the digests of an erasure that is about to be intended. */
  liveVersionDigests(): LiveVersionDigests {
    return new LiveVersionDigests(() => this.#layersByFork());
  }

  /** Texts stored under these paths, on every branch with readers; none of them is loaded into memory for that. */
  texts(
    paths: ReadonlySet<number>,
    onlyColumn: { readonly type: string; readonly column: string } | null = null,
  ): Generator<StoredTexts, void> {
    const textTenants = new Set(Array.from(paths, (code) => tenantOf(this.#organisationCodes.path(code))));
    return storedTexts(paths, textTenants, this.#layersByFork(), this.timeline, onlyColumn);
  }

  /** Wipes erased bytes in memory, a slice a step. */
  *wipe(): Generator<undefined, void> {
    for (const branchLayer of this.#layersByFork()) for (const table of branchLayer.everyTable()) yield* table.wipe();
  }

  /** Tables whose keys a start left for later. */
  get entering(): number {
    if (!this.#areKeysEntering) return 0;
    return [...this.#branchLayers.values()].flatMap((layer) => [...layer.everyTable()]).filter(({ isEntering }) => isEntering)
      .length;
  }

  /** Indexes that a start left for later are filled, one after the other, a slice a `nextTurn`. */
  async enterKeys(nextTurn: () => Promise<void>, onEntered?: () => void): Promise<void> {
    for (const branchLayer of this.#branchLayers.values()) {
      for (const table of branchLayer.everyTable()) {
        const { isEntering } = table;
        await table.enterKeys(nextTurn);
        if (isEntering) onEntered?.();
      }
    }
    this.#areKeysEntering = false;
  }

  /**
   * Null where any key of a tenant's type is found at once, on every branch. Else its indexes are filled first, a slice a `nextTurn`,
   * once for all who wait for it; they go on in the order in which they came.
   */
  keysWithin(tenant: string | null, type: string, nextTurn: () => Promise<void>): Promise<void> | null {
    if (!this.#areKeysEntering) return null;
    const fillingName = `${tenant ?? ''}\0${type}`;
    const runningFill = this.#fillingKeyIndexes.get(fillingName);
    if (runningFill) return runningFill;
    const enteringTables = [...this.#branchLayers.values()]
      .flatMap((layer) => layer.table(tenant, type) ?? [])
      .filter(({ isEntering }) => isEntering);
    if (enteringTables.length === 0) return null;
    const fillKeys = async (): Promise<void> => {
      for (const table of enteringTables) await table.enterKeys(nextTurn);
    };
    const keysFilled = fillKeys();
    this.#fillingKeyIndexes.set(fillingName, keysFilled);
    // The first waiter to continue removes the entry: later callers continue after it.
    const forgetFilling = (): void => void this.#fillingKeyIndexes.delete(fillingName);
    keysFilled.then(forgetFilling, forgetFilling);
    return keysFilled;
  }

  /** Counts of the work that scans skipped. */
  get pruned(): Readonly<PruningCounts> {
    return this.#rowStorage.pruned;
  }

  /** Bytes of segments, indexes of keys, texts and vectors, dictionaries, overlays, and embeddings of rows. */
  get bytes(): number {
    let rowsBytes = this.#rowStorage.indexes.bytes + this.#rowStorage.bytesBeside();
    for (const branchLayer of this.#branchLayers.values()) rowsBytes += branchLayer.bytes;
    return rowsBytes;
  }

  apply(rowsEntry: CommittedEntry): void {
    const { body } = rowsEntry;
    switch (body.kind) {
      case 'rows':
        this.#appendRows(rowsEntry, body);
        return;
      case 'removal':
        this.#branchLayerOf(rowsEntry).remove(tenantOf(rowsEntry.context.path), body);
        return;
      case 'erasure':
        // Positions belong to one layer each, and a branch reads another's rows in that layer.
        for (const { type, paths, positions } of body.versions) {
          const tenant = tenantOfErased({ paths });
          for (const branchLayer of this.#branchLayers.values()) branchLayer.table(tenant, type)?.remove(positions, 'later');
        }
        return;
      case 'type': {
        const typeBranch = this.#branchTree.branchOf(rowsEntry);
        const { definition } = body;
        const subjectColumn = subjectProperty(definition);
        this.#branchLayer(typeBranch.id).define(
          scopeOfName(rowsEntry, body),
          definition,
          subjectColumn,
          this.#branchTree.isShared(typeBranch),
        );
        return;
      }
      case 'branch': {
        const { forked: forkedBranch, released: releasedBranches } = this.#branchTree.apply(rowsEntry, body);
        if (forkedBranch)
          this.#branchLayers.set(
            forkedBranch.id,
            this.#newBranchLayer(forkedBranch, this.#branchLayer(forkedBranch.source!.id).names),
          );
        for (const { id } of releasedBranches) this.#releaseLayer(id);
        return;
      }
      case 'tenant':
        if (body.change === 'purged') this.#forgetTenantRows(body.tenant.id);
        return;
      default:
        return;
    }
  }

  async checkpoint(rowsCheckpoint: CheckpointWriter): Promise<void> {
    saveRows(
      rowsCheckpoint,
      { paths: this.#organisationCodes.paths(), tree: this.#branchTree.savedState(), layers: this.#layersByFork() },
      this.#rowStorage.store,
    );
  }

  async restore(rowsCheckpoint: CheckpointReader): Promise<void> {
    this.#clearStorage();
    const savedRows = await restoreRows(rowsCheckpoint, this.#rowStorage);
    const savedScopes = new OrganisationCodes();
    for (const path of savedRows.paths) savedScopes.encode(path);
    this.#organisationCodes = savedScopes;
    this.#branchTree = BranchTree.fromSaved(savedRows.tree);
    this.#branchLayers = new Map();
    for (const keptBranch of this.#branchTree.keptBranches())
      this.#branchLayers.set(keptBranch.id, this.#newBranchLayer(keptBranch, savedRows.names(keptBranch.id)));
    savedRows.fill(this.#layersByFork());
    this.#areKeysEntering = true;
  }

  reset(): void {
    this.#clearStorage();
    this.#organisationCodes = new OrganisationCodes();
    this.#branchTree = new BranchTree();
    this.#branchLayers = new Map([[0, new BranchLayer(0, [], this.#rowStorage)]]);
  }

  /** Over values, never over layouts: segment sizes, widths, dictionaries and codes leave no trace. */
  digest(): string {
    const afterSegment = (): void => this.#reclaimAfterSegment();
    return this.#digestTables((table) => new TableDigest(table, this.#organisationCodes, this.timeline, { afterSegment }));
  }

  /** The same with a worker that hashes columns meanwhile. Nothing may be applied before it resolves. */
  async digestBeside(startWorker: StartWorker): Promise<string> {
    assert(!this.#rowStorage.store, 'a worker reads columns that stay where they are');
    const digestWorker = startWorker(columnDigestJob, null);
    try {
      const digestShares = new DigestShares();
      const digestedTables = this.#layersByFork().flatMap((layer) => [...layer.tables()]);
      const begunDigests = digestedTables.map((table) => {
        const besideColumns = digestShares.columnsBeside(table);
        return { table, names: besideColumns, reply: digestWorker.ask(columnPartsOf(table, besideColumns)) };
      });
      const hashesReplied = Promise.all(begunDigests.map(({ reply }) => reply));
      const tableDigests = new Map<Table, TableDigest>();
      const cellHashes = new Map<Table, readonly CellHashes[]>();
      try {
        for (const { table, names: besideColumns } of begunDigests) {
          const hashesElsewhere = new Map(besideColumns.map((name, i) => [name, () => cellHashes.get(table)![i]!]));
          tableDigests.set(table, new TableDigest(table, this.#organisationCodes, this.timeline, { elsewhere: hashesElsewhere }));
        }
      } finally {
        for (const [i, hashes] of (await hashesReplied).entries()) cellHashes.set(begunDigests[i]!.table, hashes);
      }
      return this.#digestTables((table) => tableDigests.get(table)!);
    } finally {
      await digestWorker.end();
    }
  }

  #digestTables(digestOf: (table: Table) => TableDigest): string {
    const rowsHash = new CanonicalHash();
    for (const branchLayer of this.#layersByFork()) {
      if (branchLayer.id > 0) rowsHash.number(branchLayer.id);
      for (const table of branchLayer.tables()) digestOf(table).end(rowsHash);
      for (const { table, overlay } of branchLayer.overlays()) hashOverlay(rowsHash, table, overlay);
    }
    return rowsHash.hex();
  }

  #branchLayer(branchId: number): BranchLayer {
    const branchLayer = this.#branchLayers.get(branchId);
    assert(branchLayer, 'a branch that is read has a layer');
    return branchLayer;
  }

  /** A digest reads everything in one turn: without this, everything would come into memory. */
  #reclaimAfterSegment(): void {
    const { store, space } = this.#rowStorage;
    store?.trim();
    if (store) space.reclaim();
  }

  /** Readers that are at it read on. */
  #releaseLayer(releasedBranch: number): void {
    this.#releaseTables(this.#branchLayer(releasedBranch).everyTable());
    this.#branchLayers.delete(releasedBranch);
  }

  /** The tables of a purged tenant are empty: a later tenant of its id may declare other columns. */
  #forgetTenantRows(tenant: string): void {
    for (const branchLayer of this.#branchLayers.values()) this.#releaseTables(branchLayer.forget(tenant));
  }

  #releaseTables(releasedTables: Iterable<Table>): void {
    const { store } = this.#rowStorage;
    for (const { segments } of releasedTables) {
      for (const segment of segments) {
        forgetIndexes(segment);
        store?.forget(segment);
      }
    }
  }

  #clearStorage(): void {
    this.#rowStorage.store?.clear();
    this.indexes.clear();
  }

  #branchLayerOf(entry: CommittedEntry): BranchLayer {
    return this.#branchLayer(this.#branchTree.branchOf(entry).id);
  }

  #newBranchLayer(branch: Branch, names: ScopedNames): BranchLayer {
    const lowerLayers = lineageOf(branch)
      .slice(0, -1)
      .map((range) => ({ layer: this.#branchLayer(range.branch.id), end: range.end }));
    return new BranchLayer(branch.id, lowerLayers, this.#rowStorage, names);
  }

  /** By fork, main first. */
  #layersByFork(): BranchLayer[] {
    return [...this.#branchLayers.values()].sort((a, b) => a.id - b.id);
  }
}

function textColumns(table: Table): readonly string[] {
  return [...table.columnTypes()].flatMap(([name, { type }]) => (holdsTexts(type) ? name : []));
}
