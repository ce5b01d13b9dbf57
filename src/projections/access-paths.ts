/**
 * The read vocabulary: the offer of a snapshot, and the requests to it. Pure types, so that every room may name them.
 * Rows leave in blocks of columns; nothing here is an object per row.
 */
import type { Vector } from '../log/values/columns.ts';
import type { AccessRecord, TypeDefinition } from '../log/entries/entry.ts';
import type { Cell, ColumnType } from '../log/values/value.ts';
import type { Protection } from './catalog/type-guards.ts';
import type { JudgementContent } from './entity-resolution/judgement-body.ts';
import type { RuleRecord } from './rules/rule.ts';
import type { SearchConfig } from './tenants/search-config.ts';

/** The name of another tenant's type: `"acme"."Parcel"`. */
export function tenantTypeName(tenant: string, type: string): string {
  return `${JSON.stringify(tenant)}.${JSON.stringify(type)}`;
}

const qualifiedTypePattern = /^("(?:[^"\\]|\\.)*")\.("(?:[^"\\]|\\.)*")$/;

/** null for a name that is no such one. */
export function splitTypeName(typeName: string): { readonly tenant: string; readonly type: string } | null {
  const [, tenant, type] = qualifiedTypePattern.exec(typeName) ?? [];
  return tenant === undefined ? null : { tenant: JSON.parse(tenant) as string, type: JSON.parse(type!) as string };
}

/** Which versions a read is about. `all` leaves an axis alone; an instant keeps `from <= at < to` on it. */
export interface TimeBounds {
  readonly system: 'all' | bigint;
  readonly valid: 'all' | bigint;
}

/** A necessary condition on one column, for pruning only: the planner filters exactly afterwards. */
export interface ZonePredicate {
  readonly column: string;
  readonly op: '=' | '<' | '<=' | '>' | '>=';
  readonly value: Exclude<Cell, null | Float32Array>;
}

/** Cells of a column that are one of these identifiers, however they are written: `phone +442079460018`. */
export interface IdentifierPredicate {
  readonly column: string;
  /** The kind that cells of the column are; null: whichever they fit. */
  readonly kind: string | null;
  readonly forms: readonly string[];
}

export interface ScanRequest {
  readonly type: string;
  /** Columns to deliver, system columns included, in the order in which `RowBlock.columns` has them. */
  readonly columns: readonly string[];
  readonly time: TimeBounds;
  /** Only rows whose `_pk` is one of these: answered from the primary-key index. */
  readonly keys?: readonly string[] | undefined;
  /** Only versions with system_from above this instant (keyset paging). */
  readonly after?: bigint | undefined;
  readonly zones?: readonly ZonePredicate[] | undefined;
  /** The reader wants rows alone that one of these is true of; others may come out, too. */
  readonly identifiers?: readonly IdentifierPredicate[] | undefined;
  /** Most rows in a block; a few thousand. Column vectors of a block are in a segment's own row numbers. */
  readonly blockRows?: number | undefined;
  /** Codes (`PathCodes`) of the organisation paths whose rows may come out, ascending; absent means every path. */
  readonly paths?: readonly number[] | undefined;
  /** The reader tells visible versions itself, by `RowBlock.sift`: a block that leaves it to him has at most so many rows. */
  readonly unsiftedRows?: number | undefined;
  /** Columns of texts say which rows have the same cell, as far as that is known by then. */
  readonly distinct?: true | undefined;
  /** The reader may come to want other columns of some blocks: `RowBlock.further` has them, made when it is asked. */
  readonly further?: true | undefined;
  /** The reader goes by places of rows: `RowBlock.placed` says them. */
  readonly placed?: true | undefined;
  /** Only these rows of each place, ascending; of places that are not among them, none. */
  readonly candidates?: Candidates | undefined;
  /** The reader searches the texts of these columns: blocks are what one index of each says all of. */
  readonly indexed?: readonly string[] | undefined;
  /**
   * Makes no index of a full range within the turn: reports that one is coming instead. With `look` none is begun either.
   */
  readonly builtOnly?: 'begun' | 'look' | undefined;
}

/** Where rows of a block lie. */
export interface SegmentRows {
  /** Identifies the segment for as long as it is in use. */
  readonly segmentKey: object;
  /** Their numbers there; null: those that the block has. */
  readonly rows: Pick<RowBlock, 'selection' | 'first'> | null;
}

/** Rows of a place that are asked for, rising. null: they are still being found, a reader asks again after a turn. */
export interface Candidates {
  get(segmentKey: object): Int32Array | null | undefined;
}

/** Selects the visible versions of a block: bits of open versions, or the least closing that a visible version has. */
export interface Sift {
  /** One bit a row of the segment, 1 = open; null: open and closed ones alike, as far as `closings` lets them. */
  readonly live: Int32Array | null;
  readonly closings: Int32Array | Float64Array | null;
  readonly closing: number;
  /** One bit a row of the segment, 0 = not for this reader; null: storage has nothing to say of it, the gate may have. */
  readonly visible?: Int32Array | null;
}

/** Internal column that carries the organisation path code of each row as `i32`; never offered to a caller. */
export const pathColumn = '#path';

/**
 * Internal column that says how each version came about, as `i32` of `rowOp`; never offered to a caller. A DELETE is stored
 * as a version like any other, and only this tells it from a row whose validity its writer ended.
 */
export const opColumn = '#op';

const maskedShownPrefix = '#shown ';

/**
 * Internal column that reads as a masked column is shown: the mask's rendering where a cell is masked, the cell where it is
 * not. Typed like the column. No property can be called so: names that begin with # are reserved.
 */
export function shownColumn(columnName: string): string {
  return maskedShownPrefix + columnName;
}

/** The column that an internal one shows; null for every other name. */
export function shownOf(internalColumn: string): string | null {
  return internalColumn.startsWith(maskedShownPrefix) ? internalColumn.slice(maskedShownPrefix.length) : null;
}

/** Organisation paths by code, dense from 0 and append-only. Code 0 is the null path: rows without a tenant. */
export interface PathCodes {
  readonly size: number;
  path(code: number): string | null;
  /** -1 when no row was ever written there. */
  codeOf(path: string | null): number;
}

/**
 * Rows of one segment, in system_from order (within one scan, blocks come in that order too; a scan by
 * keys included). Row numbers in `selection[0..count)` index every vector. The vectors belong to the store: valid
 * only until the reader next yields to the event loop, never to be written to.
 */
export interface RowBlock {
  readonly columns: readonly Vector[];
  /** Ascending row numbers; null means first .. first+count-1. */
  readonly selection: Int32Array | null;
  readonly first: number;
  readonly count: number;
  /** Versions looked at to make this block, for the scanned-row cap. */
  readonly scanned: number;
  /** Path code that every row of the block has, or -1 when they differ. */
  readonly path: number;
  /** Some of rows first .. first+count-1 are not visible. Only where a scan said `unsiftedRows`, and all have one path. */
  readonly sift?: Sift;
  /** Where the scan asked for it. */
  readonly further?: Further;
  /** Where the scan asked for it, and the rows are of storage. */
  readonly placed?: SegmentRows;
}

/**
 * Further columns of a block: of its rows, and, where it lies in cells that never change, of all rows of those. Good until
 * the next block is asked for.
 */
export interface Further {
  /** Place k is place k of the block. */
  rows(columns: readonly string[]): RowWindow;
  /** Absent where some of them are not the reader's branch's. */
  readonly cells?: SettledCells;
}

export interface RowWindow {
  readonly columns: readonly Vector[];
  /** As in `RowBlock`. */
  readonly selection: Int32Array | null;
  readonly first: number;
  readonly count: number;
}

/** A range of storage whose cells never change: results computed from them hold for as long as `identity` lives. */
export interface SettledCells {
  readonly identity: object;
  /** Rows 0 .. length-1. */
  readonly length: number;
  /** Where the rows of the block lie in it; null: they have the numbers that the block has. */
  readonly rows: Pick<RowBlock, 'selection' | 'first'> | null;
  /** Vectors of columns that never change: when a version ended does. */
  columns(columns: readonly string[]): readonly Vector[];
}

/** Where one stored version came from. */
export interface RowProvenance {
  readonly source: string;
  readonly method: string;
  readonly confidence: number;
  /** Nanoseconds: the version's own system_from. */
  readonly recordedAt: bigint;
  /** The source named by the writer, else the system_from of the superseded version as 16 hex digits; null for genesis. */
  readonly derivedFrom: string | null;
}

/** How a scan would go, for EXPLAIN: figures of what the caller may see only. */
export interface ScanEstimate {
  readonly access: 'primary key' | 'live' | 'as of' | 'all versions' | 'cached view';
  readonly rows: number;
  readonly segments: number;
}

/** Indexes on their way. */
export interface Preparation {
  /** Resolves when nothing more comes of waiting. */
  readonly ready: Promise<void>;
  progress(): { readonly done: number; readonly of: number };
}

export interface NearRequest {
  readonly type: string;
  readonly column: string;
  readonly time: TimeBounds;
  readonly vector: Float32Array;
  /** Nearest rows that are wanted. */
  readonly count: number;
  /** As in `ScanRequest`. */
  readonly paths?: readonly number[];
}

/** Rows that may be the nearest: of each place, or all that are visible where no graph says which. */
export interface Near {
  /** For a scan. */
  readonly candidates: ReadonlyMap<object, Int32Array>;
  /** Graphs that said so, and graphs that would have but are not there yet. */
  readonly byGraph: number;
  readonly missing: number;
}

export interface RowReader<Block extends RowBlock = RowBlock> {
  /** Graphs may say which rows are near: false where the reader's rows have to be looked at one by one. */
  canBeNear?(request: Pick<NearRequest, 'type' | 'column' | 'time'>): boolean;
  /** Rows near a vector, approximately; null where the reader's rows have to be looked at one by one. */
  near?(request: NearRequest): Promise<Near> | null;
  /** Begins to index the texts of these columns as far as that can be done beside the event loop; null where it is done. */
  prepare?(type: string, columns: readonly string[]): Preparation | null;
  /** Blocks one by one, so that the caller can yield and stop between any two. */
  scan(request: ScanRequest): Iterator<Block, void>;
  estimate(request: ScanRequest): ScanEstimate;
  pathCodes(): PathCodes;
  /** Provenance of the visible version with this system_from in one of these paths (absent: any); undefined when there is none. */
  provenanceOf(type: string, systemFrom: bigint, paths?: readonly number[]): RowProvenance | undefined;
}

/** Keys that were removed for good at one instant. */
export interface Removal {
  /** system time, ns. */
  readonly instant: bigint;
  readonly path: string | null;
  readonly keys: readonly string[];
  /** On the branch that this one was forked from: rows that this one wrote under such a key stand. */
  readonly inherited: boolean;
  /** Rows of a subject were removed; their keys are not given. */
  readonly unnamed?: true;
}

export interface RemovalReader {
  /** Removals of rows of the type after this instant, in order. */
  removedAfter(type: string, instant: bigint): readonly Removal[];
}

export interface ErasureReader {
  /** Erasures so far. */
  readonly count: number;
  /** Organisation paths that rows of the type were erased in, each with how many erasures there were by then. */
  pathsOf(type: string): Iterable<readonly [string | null, number]>;
}

/** Vectors of models that differ in either are never compared. */
export interface EmbeddingModel {
  readonly name: string;
  /** Lower-case hex SHA-256 of what else tells it from others. */
  readonly digest: string;
}

/** `dims` numbers of `values` from `at` on. */
export interface EmbeddedVector {
  readonly values: Float32Array;
  readonly at: number;
  readonly dims: number;
}

export interface EmbeddingReader {
  /** The vector of the version with this system_from, which the reader was shown; null: there is none for this reader. */
  vectorAt(systemFrom: bigint): EmbeddedVector | null;
}

/** Recalls by salted ids of what was recalled, as of a snapshot. */
export interface RecallReader {
  /** `counts`: whether recalls made under a path count. Instants in nanoseconds. */
  recallsOf(id: string, counts: (path: string | null) => boolean): { readonly count: number; readonly last: bigint | null };
}

export interface HoldReader {
  /** Ids of the legal holds on the rows that versions at these positions belong to. */
  holdsOn(type: string, positions: Iterable<number>): readonly string[];
}

/** A judgement whether two rows are one thing. */
export interface Judgement extends JudgementContent {
  /** Organisation path of its maker: it is about rows of that path and below. */
  readonly owner: string | null;
  readonly position: number;
  /** Nanoseconds. */
  readonly time: bigint;
}

/** A materialized view as it was made. */
export interface ViewRecord {
  readonly name: string;
  /** The SELECT, as written. */
  readonly sql: string;
  readonly refreshSecs: number;
  /** Organisation path of its maker. */
  readonly owner: string | null;
  /** Position of its entry. */
  readonly position: number;
}

/** Types as one tenant means them: those that it defined itself, over those that it inherits from the store. */
export interface CatalogReader {
  type(name: string): TypeDefinition | undefined;
  /** True when the scope that reads defined the name itself. */
  isOwn(name: string): boolean;
  /** By name, in codepoint order. */
  types(): readonly TypeDefinition[];
  readonly ontologyVersion: number;
}

/** Columns of a type as a reader sees them: system columns first, then properties in order. */
export interface ReadableColumn {
  readonly name: string;
  readonly type: ColumnType;
  readonly system: boolean;
}

export interface AuditQuery {
  readonly since?: bigint;
  readonly until?: bigint;
  readonly objectType?: string;
  readonly principal?: string;
  readonly purpose?: string;
  readonly action?: string;
  /** Entries after this cursor, as `AuditPage.next` gave it. */
  readonly after?: string;
  readonly limit: number;
}

export interface AuditEntry extends AccessRecord {
  readonly leaf: number;
  readonly indexInEntry: number;
}

export interface AuditPage {
  readonly entries: readonly AuditEntry[];
  readonly next: string | null;
}

export interface AuditReader {
  count(query: Omit<AuditQuery, 'after' | 'limit'>): Promise<{ count: number; byAction: Readonly<Record<string, number>> }>;
  entries(query: AuditQuery): Promise<AuditPage>;
  /** Everything that matches of what the log holds at the call, in order; each reading of it is the same. */
  all(query: Omit<AuditQuery, 'after' | 'limit'>): AsyncIterable<AuditEntry>;
}

/** One link of an exhibit as its entry says, without the recipe: that is read from the log, at `leaf`. */
export interface ExhibitLink {
  readonly link: number;
  readonly act: string;
  readonly principal: string;
  /** Organisation path of the link's writer: the recipe ran under it. */
  readonly path: string | null;
  /** Nanoseconds. */
  readonly time: bigint;
  /** For audit surfaces, and for callers who may replay. */
  readonly leaf: number;
  /** Lower-case hex SHA-256, like the seals. */
  readonly resultHash: string;
  readonly previousSeal: string;
  readonly seal: string;
}

export interface ExhibitView {
  readonly id: string;
  /** Organisation path that it belongs to: its creator's. */
  readonly path: string | null;
  /** In order; link n at index n, link 0 being the one that opened it. */
  readonly links: readonly ExhibitLink[];
}

/** Types and rows of one tenant at one branch and basis. */
export interface TenantPaths {
  /** null: of rows without a tenant. */
  readonly tenant: string | null;
  readonly catalog: CatalogReader;
  /** The guards of a type now, at whatever instant it is read: a guard raised later covers rows stored before. */
  readonly protection: (type: string) => Protection;
  /**
   * Rises with every change that may affect it, on any branch: results made under one protection are not reused under the next.
   */
  readonly protectionEpoch: number;
  readonly rows: RowReader;
}

/** Everything a snapshot offers, at one branch, position and instant. */
export interface AccessPaths extends TenantPaths {
  readonly branch: string;
  /** Tells branches apart that had one name, one after the other: position of the fork, 0 for main. */
  readonly branchId: number;
  /** Positions below this one are visible. Audit and admin surfaces only. */
  readonly position: number;
  /** `as_of_system`: the clock instant of the snapshot, what `now()` means in it. */
  readonly instant: bigint;
  /** Another tenant's types and rows, at the same branch and basis: for rows shared by agreements. */
  readonly pathsOf: (tenant: string | null) => TenantPaths;
  readonly removals: RemovalReader;
  readonly recalls: (instant: bigint) => RecallReader;
  /** Vectors that were on record at an instant, of texts of these columns alone. */
  readonly embeddings: (model: EmbeddingModel, instant: bigint, columns: ReadonlySet<string>) => EmbeddingReader;
  /** Erasures up to now, at whatever instant is read: erased rows are in no later answer. */
  readonly erasures: ErasureReader;
  /** The language whose stems index texts. */
  readonly textLanguage: string;
  /** Defaults of the tenant's searches for reads of what was believed at an instant. */
  readonly searchAt: (instant: bigint) => SearchConfig;
  /** Views that can be named: of the caller's own path and of those above it. */
  readonly views: readonly ViewRecord[];
  /** Judgements of paths that the reader sees, as they stood at an instant, in the order in which they were made. */
  readonly judgements: (instant: bigint) => readonly Judgement[];
  /** Rules of the branch that stand, in the order of registration. Looked up when called: most questions have no use for them. */
  readonly rules: () => readonly RuleRecord[];
  /** It holds one caller's uncommitted rows: no result of it is cached for other callers. */
  readonly isPrivate: boolean;
}
