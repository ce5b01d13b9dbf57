/**
 * Caches answers of views. A view is a name for a query and nothing more: a statement that names it runs that query under the
 * caller's own grant. A cached answer is a recent one of the same grant, and is used where all of these hold:
 *
 * - by the same branch, grant, types and views as it was asked under, and younger than the view's refresh period;
 * - with no row removed for good since, of what it was made of;
 * - made without any column that is masked for this grant: how a mask shows a cell is no value that a question may go on with;
 * - for a question without AS OF that names this view alone: its answer is then of the cached answer's instant, and says so.
 *
 * In all other cases, and above SERVICE_MV_MAX_ROWS, the query reads the rows themselves. An answer is kept up to date in the
 * background while callers read it, under the grant and the credential of the last reader.
 */
import { setMaxListeners } from 'node:events';
import type { Clock, Ids } from '../../../clock.ts';
import { ServiceError } from '../../../errors.ts';
import type { Caller } from '../../../governance/caller.ts';
import type { GateContract, GovernedSnapshot } from '../../../governance/gate-contract.ts';
import {
  type RowBlock,
  type RowReader,
  type ScanRequest,
  shownColumn,
  type ViewRecord,
} from '../../../projections/access-paths.ts';
import { cellAt } from '../../../log/values/vector-builder.ts';
import type { OutputBatch, OutputColumn, PlannerContract } from '../../planner-contract.ts';
import type { Query } from '../../syntax/statement.ts';
import { nearestView, viewsKey } from '../../languages/view-source.ts';
import { snapshotInvocation } from '../watch/snapshot-invocation.ts';
import { mergeGroups } from './merge-groups.ts';
import { type ParsedView, parseView, tablesOf } from './view-definition.ts';

export interface MaterializedViewsDependencies {
  readonly gate: GateContract;
  readonly planner: PlannerContract;
  readonly clock: Clock;
  readonly ids: Ids;
  /** SERVICE_MV_MAX_ROWS. */
  readonly rowsMax: number;
  /** The caller as its credential is now. Throws REL_UNAUTHENTICATED once that is no longer good. */
  readonly renew: (caller: Caller) => Caller;
  readonly yieldTurn: () => Promise<void>;
}

/** A view whose rows are served as those of a table by its name. */
export interface ServedView {
  readonly name: string;
  readonly columns: readonly OutputColumn[];
  /** A snapshot at the instant of the cached answer, which serves the view's rows as a table. */
  readonly snapshot: GovernedSnapshot;
}

interface CachedView {
  readonly columns: readonly OutputColumn[];
  readonly batches: readonly OutputBatch[];
  readonly rows: number;
  /** ns: the basis of the answer. */
  readonly basis: bigint;
  readonly ontologyVersion: number;
  /** See `viewsKey`. */
  readonly views: string;
  /** Types that it was made of. */
  readonly types: ReadonlySet<string>;
  /** Whether a later closing would change it: then new versions alone don't say how it goes on. */
  readonly readsEnds: boolean;
  readonly readsMasked: boolean;
}

interface ViewEntry {
  readonly view: ViewRecord;
  readonly parsed: ParsedView;
  readonly grantKey: string;
  readonly branchId: number;
  cached: CachedView | null;
  reader: { readonly caller: Caller; readonly purpose: string | null };
  /** Since the answer was last brought up to date. */
  reads: number;
}

const viewEntriesMax = 256;
/** Fewer and larger batches from time to time: each brings its own cost to every question. */
const cachedBatchesMax = 64;
/** The most groups: merging them happens within one turn. */
const mergedGroupsMax = 10_000;
/** The answer is renewed somewhat before its period is over, so that it is there when it is. */
const viewRefreshShare = 0.8;

export class MaterializedViews {
  readonly #dependencies: MaterializedViewsDependencies;
  readonly #viewEntries = new Map<string, ViewEntry>();
  readonly #parsedViews = new Map<string, ParsedView>();
  readonly #viewsClosing = new AbortController();

  constructor(dependencies: MaterializedViewsDependencies) {
    this.#dependencies = dependencies;
    // Every entry sleeps on it.
    setMaxListeners(viewEntriesMax * 2, this.#viewsClosing.signal);
  }

  /** The cached answer that a question may use. Where there is none yet, one is made for the next. */
  serve(viewQuery: Query, snapshot: GovernedSnapshot): ServedView | null {
    const servedView = this.#onlyViewOf(viewQuery, snapshot);
    if (servedView === null || snapshot.isPrivate) return null;
    const parsedView = this.#parsedView(servedView);
    if (!parsedView.cacheable || servedView.refreshSecs === 0 || this.#viewsClosing.signal.aborted) return null;
    const viewEntryKey = `${servedView.position}\u0000${snapshot.grantKey}`;
    const viewReader = { caller: snapshot.caller, purpose: snapshot.purpose };
    const viewEntry = this.#viewEntries.get(viewEntryKey);
    if (viewEntry === undefined) {
      if (this.#viewEntries.size >= viewEntriesMax) return null;
      const { grantKey, branchId } = snapshot;
      const newEntry: ViewEntry = {
        view: servedView,
        parsed: parsedView,
        grantKey,
        branchId,
        cached: null,
        reader: viewReader,
        reads: 1,
      };
      this.#viewEntries.set(viewEntryKey, newEntry);
      void this.#beginCaching(viewEntryKey, newEntry);
      return null;
    }
    viewEntry.reader = viewReader;
    viewEntry.reads++;
    const { cached: cachedView } = viewEntry;
    if (
      cachedView === null ||
      !isCacheCurrent(cachedView, snapshot) ||
      snapshot.instant - cachedView.basis > refreshPeriodNs(servedView)
    )
      return null;
    return {
      name: servedView.name,
      columns: cachedView.columns,
      snapshot: {
        ...snapshot,
        instant: cachedView.basis,
        rows: withCachedRows(snapshot.rows, servedView.name, cachedView),
        erasing: () => snapshot.erasing(cachedView.types),
      },
    };
  }

  /** Drops the cached answer of a view that was dropped. */
  drop({ name, owner, branchId }: Pick<ViewRecord, 'name' | 'owner'> & Pick<GovernedSnapshot, 'branchId'>): void {
    for (const [key, viewEntry] of this.#viewEntries) {
      const { view: droppedView } = viewEntry;
      if (droppedView.name !== name || droppedView.owner !== owner || viewEntry.branchId !== branchId) continue;
      this.#viewEntries.delete(key);
      this.#parsedViews.delete(droppedView.sql);
      viewEntry.cached = null;
      viewEntry.reads = 0;
    }
  }

  /** Drops all cached answers: they are made anew when read. */
  forget(): void {
    for (const viewEntry of this.#viewEntries.values()) viewEntry.cached = null;
    this.#parsedViews.clear();
  }

  close(): void {
    this.#viewsClosing.abort();
    this.#viewEntries.clear();
  }

  /** The one view that a question is about; null where it names anything else, or an instant. */
  #onlyViewOf(query: Query, snapshot: GovernedSnapshot): ViewRecord | null {
    if (snapshot.pinned === true || snapshot.views.length === 0 || query.asOf !== null) return null;
    const queriedNames = tablesOf(query);
    if (queriedNames === null || queriedNames.size !== 1) return null;
    const [viewName] = [...queriedNames];
    if (snapshot.catalog.type(viewName!) !== undefined) return null;
    return nearestView(snapshot.views, viewName!) ?? null;
  }

  #parsedView({ sql }: ViewRecord): ParsedView {
    let parsedView = this.#parsedViews.get(sql);
    if (parsedView === undefined) {
      if (this.#parsedViews.size >= 1_024) this.#parsedViews.clear();
      this.#parsedViews.set(sql, (parsedView = parseView(sql)));
    }
    return parsedView;
  }

  /**
   * The question that it is first made for goes before it: which of the two is on record first would otherwise tell whether
   * plans were at hand, and so how much others ask.
   */
  async #beginCaching(viewEntryKey: string, viewEntry: ViewEntry): Promise<void> {
    await this.#dependencies.yieldTurn();
    if (!this.#viewsClosing.signal.aborted) await this.#keepCached(viewEntryKey, viewEntry);
  }

  /** Makes the answer, and renews it as long as it was asked for since the time before. */
  async #keepCached(viewEntryKey: string, viewEntry: ViewEntry): Promise<void> {
    const { signal } = this.#viewsClosing;
    do {
      viewEntry.reads = 0;
      try {
        const renewedView = await this.#renewCached(viewEntry);
        // If the view was dropped meanwhile, the answer can't be read any more.
        viewEntry.cached = this.#viewEntries.get(viewEntryKey) === viewEntry ? renewedView : null;
      } catch {
        // The next reader meets the same error when reading the rows themselves, or may not read any more.
        viewEntry.cached = null;
      }
      if (viewEntry.cached === null) break;
      await this.#dependencies.clock.sleep(viewEntry.view.refreshSecs * 1000 * viewRefreshShare, signal);
    } while (viewEntry.reads > 0 && !signal.aborted);
    // A view that can't be cached is not tried again before its period is over.
    if (viewEntry.cached === null) await this.#dependencies.clock.sleep(viewEntry.view.refreshSecs * 1000, signal);
    this.#viewEntries.delete(viewEntryKey);
  }

  async #renewCached(viewEntry: ViewEntry): Promise<CachedView | null> {
    const { gate, ids, renew } = this.#dependencies;
    const { caller, purpose } = viewEntry.reader;
    const renewedCaller = { ...renew(caller), branch: caller.branch };
    const viewRequest = { action: 'query', purpose, correlationId: ids.next(), continues: true } as const;
    return gate.invoke(renewedCaller, viewRequest, async (invocation) => {
      invocation.describe({ objectType: viewEntry.view.name, costUnits: 0 });
      const snapshot = invocation.snapshot();
      if (snapshot.grantKey !== viewEntry.grantKey) return null;
      const renewedView = (await this.#continueCached(viewEntry, snapshot)) ?? (await this.#queryView(viewEntry, snapshot, null));
      invocation.describe({ rowCount: renewedView.rows });
      return renewedView.rows > this.#dependencies.rowsMax || renewedView.readsMasked ? null : renewedView;
    });
  }

  /** The cached answer with later changes applied; null where the query has to run again. */
  async #continueCached(
    { parsed: parsedView, view, cached: cachedView, grantKey }: ViewEntry,
    snapshot: GovernedSnapshot,
  ): Promise<CachedView | null> {
    const { maintenance: viewMaintenance } = parsedView;
    if (viewMaintenance.by === 'again' || cachedView === null || cachedView.readsEnds || !isCacheCurrent(cachedView, snapshot))
      return null;
    const addedRows = await this.#queryView({ view, parsed: parsedView, grantKey }, snapshot, cachedView.basis);
    if (viewMaintenance.by === 'rows') {
      const continuedBatches = [...cachedView.batches, ...addedRows.batches];
      return continuedBatches.length > cachedBatchesMax
        ? null
        : { ...addedRows, batches: continuedBatches, rows: cachedView.rows + addedRows.rows };
    }
    if (cachedView.rows + addedRows.rows > mergedGroupsMax) return null;
    const batches = mergeGroups(cachedView, addedRows, viewMaintenance.columns);
    return batches === null ? null : { ...addedRows, batches, rows: batches[0]!.count };
  }

  /** The view's query over the snapshot, or over the versions that came after an instant. */
  async #queryView(
    { view }: Pick<ViewEntry, 'view' | 'parsed' | 'grantKey'>,
    snapshot: GovernedSnapshot,
    cachedBasis: bigint | null,
  ): Promise<CachedView> {
    const readTypes = new Set<string>();
    let readsSystemTo = false;
    let readsMaskedCells = false;
    const { rows } = snapshot;
    const watchedRows: RowReader = {
      scan(request) {
        readTypes.add(request.type);
        // Visibility may depend on a row's cells, or on its being the last version: then the end of a version changes the answer.
        const isOfView = snapshot.catalog.type(request.type) === undefined;
        if (request.columns.includes('system_to') || (!isOfView && snapshot.seenBy(request.type) === 'row')) readsSystemTo = true;
        for (const masked of snapshot.masksOf(request.type).keys()) {
          if (request.columns.includes(masked) || request.columns.includes(shownColumn(masked))) readsMaskedCells = true;
        }
        return rows.scan(cachedBasis === null ? request : { ...request, after: cachedBasis });
      },
      estimate: (request) => rows.estimate(request),
      pathCodes: () => rows.pathCodes(),
      provenanceOf: (type, systemFrom) => rows.provenanceOf(type, systemFrom),
    };
    const viewAnswer = await this.#dependencies.planner.query(
      snapshotInvocation(snapshot.caller, { ...snapshot, rows: watchedRows }),
      {
        sql: view.sql,
      },
    );
    if (viewAnswer.rowCount > this.#dependencies.rowsMax)
      throw new ServiceError('REL_RESULT_CAP', 'the view has more rows than are cached');
    return {
      columns: viewAnswer.columns,
      batches: viewAnswer.batches,
      rows: viewAnswer.rowCount,
      basis: viewAnswer.asOfSystem,
      ontologyVersion: snapshot.catalog.ontologyVersion,
      views: viewsKey(snapshot.views),
      types: readTypes,
      readsEnds: readsSystemTo,
      readsMasked: readsMaskedCells,
    };
  }
}

/** Whether the snapshot's own answer, as of the basis, would be this one still. */
function isCacheCurrent(cachedView: CachedView, snapshot: GovernedSnapshot): boolean {
  if (cachedView.ontologyVersion !== snapshot.catalog.ontologyVersion || cachedView.views !== viewsKey(snapshot.views))
    return false;
  for (const viewedType of cachedView.types) {
    if (
      snapshot.catalog.type(viewedType) !== undefined &&
      snapshot.removals.removedAfter(viewedType, cachedView.basis).length > 0
    )
      return false;
  }
  return true;
}

const refreshPeriodNs = ({ refreshSecs }: ViewRecord): bigint => BigInt(refreshSecs) * 1_000_000_000n;

/** The rows of the snapshot, and those of the view under its name. */
function withCachedRows(storedRows: RowReader, viewName: string, cachedView: CachedView): RowReader {
  return {
    scan: (request) => (request.type === viewName ? cachedViewBlocks(cachedView, request) : storedRows.scan(request)),
    estimate: (request) =>
      request.type === viewName
        ? { access: 'cached view', rows: cachedView.rows, segments: cachedView.batches.length }
        : storedRows.estimate(request),
    pathCodes: () => storedRows.pathCodes(),
    provenanceOf: (type, systemFrom) => storedRows.provenanceOf(type, systemFrom),
  };
}

function* cachedViewBlocks({ columns, batches }: CachedView, request: ScanRequest): Generator<RowBlock, void> {
  const columnIndexes = request.columns.map((name) => columns.findIndex((column) => column.name === name));
  const keyColumn = columns.findIndex(({ name }) => name === '_pk');
  const wantedKeys = request.keys === undefined ? null : new Set(request.keys);
  for (const cachedBatch of batches) {
    const { first, count } = cachedBatch;
    let { selection } = cachedBatch;
    if (wantedKeys !== null) {
      const cachedRows = Array.from({ length: count }, (_, i) => (selection === null ? first + i : selection[i]!));
      selection = Int32Array.from(
        cachedRows.filter((row) => wantedKeys.has(String(cellAt(cachedBatch.columns[keyColumn]!, 'string', row)))),
      );
    }
    const chosenCount = wantedKeys === null ? count : selection!.length;
    if (chosenCount === 0) continue;
    yield {
      columns: columnIndexes.map((columnIndex) => cachedBatch.columns[columnIndex]!),
      selection,
      first,
      count: chosenCount,
      scanned: count,
      path: -1,
    };
  }
}
