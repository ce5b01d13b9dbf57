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

interface Cached {
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

interface Entry {
  readonly view: ViewRecord;
  readonly parsed: ParsedView;
  readonly grantKey: string;
  readonly branchId: number;
  cached: Cached | null;
  reader: { readonly caller: Caller; readonly purpose: string | null };
  /** Since the answer was last brought up to date. */
  reads: number;
}

const entriesMax = 256;
/** Fewer and larger batches from time to time: each brings its own cost to every question. */
const batchesMax = 64;
/** The most groups: merging them happens within one turn. */
const mergedGroupsMax = 10_000;
/** The answer is renewed somewhat before its period is over, so that it is there when it is. */
const refreshShare = 0.8;

export class MaterializedViews {
  readonly #dependencies: MaterializedViewsDependencies;
  readonly #entries = new Map<string, Entry>();
  readonly #parsed = new Map<string, ParsedView>();
  readonly #closing = new AbortController();

  constructor(dependencies: MaterializedViewsDependencies) {
    this.#dependencies = dependencies;
    // Every entry sleeps on it.
    setMaxListeners(entriesMax * 2, this.#closing.signal);
  }

  /** The cached answer that a question may use. Where there is none yet, one is made for the next. */
  serve(query: Query, snapshot: GovernedSnapshot): ServedView | null {
    const view = this.#only(query, snapshot);
    if (view === null || snapshot.isPrivate) return null;
    const parsed = this.#parse(view);
    if (!parsed.cacheable || view.refreshSecs === 0 || this.#closing.signal.aborted) return null;
    const key = `${view.position}\u0000${snapshot.grantKey}`;
    const reader = { caller: snapshot.caller, purpose: snapshot.purpose };
    const entry = this.#entries.get(key);
    if (entry === undefined) {
      if (this.#entries.size >= entriesMax) return null;
      const { grantKey, branchId } = snapshot;
      const newEntry: Entry = { view, parsed, grantKey, branchId, cached: null, reader, reads: 1 };
      this.#entries.set(key, newEntry);
      void this.#begin(key, newEntry);
      return null;
    }
    entry.reader = reader;
    entry.reads++;
    const { cached } = entry;
    if (cached === null || !isGood(cached, snapshot) || snapshot.instant - cached.basis > periodNs(view)) return null;
    return {
      name: view.name,
      columns: cached.columns,
      snapshot: {
        ...snapshot,
        instant: cached.basis,
        rows: withRows(snapshot.rows, view.name, cached),
        erasing: () => snapshot.erasing(cached.types),
      },
    };
  }

  /** Drops the cached answer of a view that was dropped. */
  drop({ name, owner, branchId }: Pick<ViewRecord, 'name' | 'owner'> & Pick<GovernedSnapshot, 'branchId'>): void {
    for (const [key, entry] of this.#entries) {
      const { view } = entry;
      if (view.name !== name || view.owner !== owner || entry.branchId !== branchId) continue;
      this.#entries.delete(key);
      this.#parsed.delete(view.sql);
      entry.cached = null;
      entry.reads = 0;
    }
  }

  /** Drops all cached answers: they are made anew when read. */
  forget(): void {
    for (const entry of this.#entries.values()) entry.cached = null;
    this.#parsed.clear();
  }

  close(): void {
    this.#closing.abort();
    this.#entries.clear();
  }

  /** The one view that a question is about; null where it names anything else, or an instant. */
  #only(query: Query, snapshot: GovernedSnapshot): ViewRecord | null {
    if (snapshot.pinned === true || snapshot.views.length === 0 || query.asOf !== null) return null;
    const names = tablesOf(query);
    if (names === null || names.size !== 1) return null;
    const [name] = [...names];
    if (snapshot.catalog.type(name!) !== undefined) return null;
    return nearestView(snapshot.views, name!) ?? null;
  }

  #parse({ sql }: ViewRecord): ParsedView {
    let parsed = this.#parsed.get(sql);
    if (parsed === undefined) {
      if (this.#parsed.size >= 1_024) this.#parsed.clear();
      this.#parsed.set(sql, (parsed = parseView(sql)));
    }
    return parsed;
  }

  /**
   * The question that it is first made for goes before it: which of the two is on record first would otherwise tell whether
   * plans were at hand, and so how much others ask.
   */
  async #begin(key: string, entry: Entry): Promise<void> {
    await this.#dependencies.yieldTurn();
    if (!this.#closing.signal.aborted) await this.#keep(key, entry);
  }

  /** Makes the answer, and renews it as long as it was asked for since the time before. */
  async #keep(key: string, entry: Entry): Promise<void> {
    const { signal } = this.#closing;
    do {
      entry.reads = 0;
      try {
        const renewed = await this.#renew(entry);
        // If the view was dropped meanwhile, the answer can't be read any more.
        entry.cached = this.#entries.get(key) === entry ? renewed : null;
      } catch {
        // The next reader meets the same error when reading the rows themselves, or may not read any more.
        entry.cached = null;
      }
      if (entry.cached === null) break;
      await this.#dependencies.clock.sleep(entry.view.refreshSecs * 1000 * refreshShare, signal);
    } while (entry.reads > 0 && !signal.aborted);
    // A view that can't be cached is not tried again before its period is over.
    if (entry.cached === null) await this.#dependencies.clock.sleep(entry.view.refreshSecs * 1000, signal);
    this.#entries.delete(key);
  }

  async #renew(entry: Entry): Promise<Cached | null> {
    const { gate, ids, renew } = this.#dependencies;
    const { caller, purpose } = entry.reader;
    const renewed = { ...renew(caller), branch: caller.branch };
    const request = { action: 'query', purpose, correlationId: ids.next(), continues: true } as const;
    return gate.invoke(renewed, request, async (invocation) => {
      invocation.describe({ objectType: entry.view.name, costUnits: 0 });
      const snapshot = invocation.snapshot();
      if (snapshot.grantKey !== entry.grantKey) return null;
      const cached = (await this.#continue(entry, snapshot)) ?? (await this.#ask(entry, snapshot, null));
      invocation.describe({ rowCount: cached.rows });
      return cached.rows > this.#dependencies.rowsMax || cached.readsMasked ? null : cached;
    });
  }

  /** The cached answer with later changes applied; null where the query has to run again. */
  async #continue({ parsed, view, cached, grantKey }: Entry, snapshot: GovernedSnapshot): Promise<Cached | null> {
    const { maintenance } = parsed;
    if (maintenance.by === 'again' || cached === null || cached.readsEnds || !isGood(cached, snapshot)) return null;
    const added = await this.#ask({ view, parsed, grantKey }, snapshot, cached.basis);
    if (maintenance.by === 'rows') {
      const batches = [...cached.batches, ...added.batches];
      return batches.length > batchesMax ? null : { ...added, batches, rows: cached.rows + added.rows };
    }
    if (cached.rows + added.rows > mergedGroupsMax) return null;
    const batches = mergeGroups(cached, added, maintenance.columns);
    return batches === null ? null : { ...added, batches, rows: batches[0]!.count };
  }

  /** The view's query over the snapshot, or over the versions that came after an instant. */
  async #ask(
    { view }: Pick<Entry, 'view' | 'parsed' | 'grantKey'>,
    snapshot: GovernedSnapshot,
    after: bigint | null,
  ): Promise<Cached> {
    const types = new Set<string>();
    let readsEnds = false;
    let readsMasked = false;
    const { rows } = snapshot;
    const watched: RowReader = {
      scan(request) {
        types.add(request.type);
        // Visibility may depend on a row's cells, or on its being the last version: then the end of a version changes the answer.
        const isOfView = snapshot.catalog.type(request.type) === undefined;
        if (request.columns.includes('system_to') || (!isOfView && snapshot.seenBy(request.type) === 'row')) readsEnds = true;
        for (const masked of snapshot.masksOf(request.type).keys()) {
          if (request.columns.includes(masked) || request.columns.includes(shownColumn(masked))) readsMasked = true;
        }
        return rows.scan(after === null ? request : { ...request, after });
      },
      estimate: (request) => rows.estimate(request),
      pathCodes: () => rows.pathCodes(),
      provenanceOf: (type, systemFrom) => rows.provenanceOf(type, systemFrom),
    };
    const answer = await this.#dependencies.planner.query(snapshotInvocation(snapshot.caller, { ...snapshot, rows: watched }), {
      sql: view.sql,
    });
    if (answer.rowCount > this.#dependencies.rowsMax)
      throw new ServiceError('REL_RESULT_CAP', 'the view has more rows than are cached');
    return {
      columns: answer.columns,
      batches: answer.batches,
      rows: answer.rowCount,
      basis: answer.asOfSystem,
      ontologyVersion: snapshot.catalog.ontologyVersion,
      views: viewsKey(snapshot.views),
      types,
      readsEnds,
      readsMasked,
    };
  }
}

/** Whether the snapshot's own answer, as of the basis, would be this one still. */
function isGood(cached: Cached, snapshot: GovernedSnapshot): boolean {
  if (cached.ontologyVersion !== snapshot.catalog.ontologyVersion || cached.views !== viewsKey(snapshot.views)) return false;
  for (const type of cached.types) {
    if (snapshot.catalog.type(type) !== undefined && snapshot.removals.removedAfter(type, cached.basis).length > 0) return false;
  }
  return true;
}

const periodNs = ({ refreshSecs }: ViewRecord): bigint => BigInt(refreshSecs) * 1_000_000_000n;

/** The rows of the snapshot, and those of the view under its name. */
function withRows(rows: RowReader, name: string, cached: Cached): RowReader {
  return {
    scan: (request) => (request.type === name ? cachedBlocks(cached, request) : rows.scan(request)),
    estimate: (request) =>
      request.type === name
        ? { access: 'cached view', rows: cached.rows, segments: cached.batches.length }
        : rows.estimate(request),
    pathCodes: () => rows.pathCodes(),
    provenanceOf: (type, systemFrom) => rows.provenanceOf(type, systemFrom),
  };
}

function* cachedBlocks({ columns, batches }: Cached, request: ScanRequest): Generator<RowBlock, void> {
  const columnIndexes = request.columns.map((name) => columns.findIndex((column) => column.name === name));
  const keyPlace = columns.findIndex(({ name }) => name === '_pk');
  const wanted = request.keys === undefined ? null : new Set(request.keys);
  for (const batch of batches) {
    const { first, count } = batch;
    let { selection } = batch;
    if (wanted !== null) {
      const rows = Array.from({ length: count }, (_, i) => (selection === null ? first + i : selection[i]!));
      selection = Int32Array.from(rows.filter((row) => wanted.has(String(cellAt(batch.columns[keyPlace]!, 'string', row)))));
    }
    const chosen = wanted === null ? count : selection!.length;
    if (chosen === 0) continue;
    yield {
      columns: columnIndexes.map((columnIndex) => batch.columns[columnIndex]!),
      selection,
      first,
      count: chosen,
      scanned: count,
      path: -1,
    };
  }
}
