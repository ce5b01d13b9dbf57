/** Changes of the rows behind a graph between two instants: none, a few edges, or too many to follow. */
import type { GovernedSnapshot } from '../../governance/gate-contract.ts';
import { type ColumnType, I64_MAX } from '../../log/values/value.ts';
import { cellAt } from '../../log/values/vector-builder.ts';
import type { ScanRequest, TimeBounds, ZonePredicate } from '../../projections/access-paths.ts';
import { degreeOf, type Graph } from './graph.ts';
import { changedGraph, type EdgeChange } from './patched-graph.ts';
import { isClosed } from './node-and-edge-types.ts';
import { floatsOf } from './instant-floats.ts';
import type { Steps } from './stepped-sort.ts';

/** Identifies a graph: the types and columns that it is read from, under one snapshot. */
export interface GraphSource {
  readonly snapshot: GovernedSnapshot;
  /** All types that it is read from. */
  readonly types: readonly string[];
  readonly nodes: readonly string[];
  readonly links: readonly LinkColumns[];
  /** Rows of the node types are nodes, whether or not an edge names them. */
  readonly isolated: boolean;
  /** Everything else that the graph depends on, except the instant. */
  readonly about: string;
  readonly time: TimeBounds;
}

export interface LinkColumns {
  readonly type: string;
  /** Source, target, system_from and maybe the weight. */
  readonly columns: readonly { readonly name: string; readonly type: ColumnType }[];
}

/** When rows were read. */
export interface ReadAt {
  readonly time: TimeBounds;
  /** Instant and position of the snapshot that they were read through. */
  readonly instant: bigint;
  readonly position: number;
  /** Nothing that is known at `position` begins or ends to be true from `time` until then. */
  readonly calmUntil: bigint;
}

/** A graph, and when its rows were read. */
export interface ReadGraph extends ReadAt {
  readonly graph: Graph;
}

/** Rows that are read now: nobody has looked how long they stay true. */
export function readAt(time: TimeBounds, { instant, position }: Pick<GovernedSnapshot, 'instant' | 'position'>): ReadAt {
  return { time, instant, position, calmUntil: time.valid === 'all' ? 0n : time.valid };
}

/** A look at what turns goes this far ahead: questions of the same rows come one after the other. */
const calmNs = 60_000_000_000n;

/** The later reading, where the rows of its types say the same at another instant and are still there; null where they don't. */
export function* readAgain(
  read: ReadAt,
  { snapshot, types, time: asked }: Pick<GraphSource, 'snapshot' | 'types' | 'time'>,
): Steps<ReadAt | null> {
  const { time, instant } = read;
  if (time.system === 'all' || time.valid === 'all' || asked.system === 'all' || asked.valid === 'all') return null;
  const now = readAt(asked, snapshot);
  // Most questions come while nobody writes.
  const isKnown = read.position === snapshot.position && time.system === instant && asked.system === snapshot.instant;
  if (isKnown && time.valid <= asked.valid && asked.valid <= read.calmUntil) return { ...now, calmUntil: read.calmUntil };
  const [before, after] = ascending(time.system, asked.system);
  const [since, until] = ascending(time.valid, asked.valid);
  const ahead = until + calmNs > I64_MAX ? I64_MAX : until + calmNs;
  let isCalm = since < until;
  for (const type of types) {
    try {
      if (yield* hasChanged(snapshot, type, { instant, before, after })) return null;
      if (isCalm && !(yield* hasTurned(snapshot, type, { before, since, until: ahead }))) continue;
      isCalm = false;
      if (yield* hasTurned(snapshot, type, { before, since, until })) return null;
    } catch (error) {
      // A closed type has no part in the graph, and had none under this grant.
      if (!isClosed(error)) throw error;
    }
  }
  return isCalm ? { ...now, calmUntil: ahead } : now;
}

interface Span {
  /** The instant of the snapshot before. */
  readonly instant: bigint;
  /** Instants of belief. */
  readonly before: bigint;
  readonly after: bigint;
  /** Instants of truth. */
  readonly since: bigint;
  readonly until: bigint;
}

/** Whether rows came, ended or were removed. */
function* hasChanged(snapshot: GovernedSnapshot, type: string, span: Omit<Span, 'since' | 'until'>): Steps<boolean> {
  const { before, after } = span;
  if (isRemoved(snapshot, type, span)) return true;
  if (before === after) return false;
  const all: TimeBounds = { system: 'all', valid: 'all' };
  const then: TimeBounds = { system: before, valid: 'all' };
  const came = { type, columns: ['system_from'], time: all, after: before, zones: between('system_from', before, after) };
  if (yield* has(snapshot, came, before, after)) return true;
  const ended = { type, columns: ['system_to'], time: then, zones: between('system_to', before, after) };
  return yield* has(snapshot, ended, before, after);
}

function isRemoved(snapshot: GovernedSnapshot, type: string, { instant }: Pick<Span, 'instant'>): boolean {
  return snapshot.removals.removedAfter(type, instant).length > 0;
}

/** Whether anything that was believed before began or ended to be true. */
function* hasTurned(
  snapshot: GovernedSnapshot,
  type: string,
  { before, since, until }: Pick<Span, 'before' | 'since' | 'until'>,
): Steps<boolean> {
  if (since === until) return false;
  for (const column of ['valid_from', 'valid_to']) {
    const time: TimeBounds = { system: before, valid: 'all' };
    const turned = { type, columns: [column], time, zones: between(column, since, until) };
    if (yield* has(snapshot, turned, since, until)) return true;
  }
  return false;
}

/** The graph as it is at a later instant, where only a few edges came or went since; null: it has to be read again. */
export function* followChanges({ graph, time, instant }: ReadGraph, of: GraphSource): Steps<Graph | null> {
  const { snapshot, nodes, links, time: asked, isolated } = of;
  if (time.system === 'all' || time.valid === 'all' || asked.system === 'all' || asked.valid === 'all') return null;
  if (time.system > asked.system) return null;
  const [since, until] = ascending(time.valid, asked.valid);
  const span: Span = { instant, before: time.system, after: asked.system, since, until };
  const added: EdgeChange[] = [];
  const removed: EdgeChange[] = [];
  for (const type of nodes) {
    const isOther = yield* unlessClosed(function* () {
      return (yield* hasChanged(snapshot, type, span)) || (yield* hasTurned(snapshot, type, span));
    });
    if (isOther) return null;
  }
  for (const [number, link] of links.entries()) {
    const { type } = link;
    const isOther = yield* unlessClosed(function* () {
      if (isRemoved(snapshot, type, span) || (yield* hasTurned(snapshot, type, span))) return true;
      const came = { type, time: asked, after: span.before, zones: between('system_from', span.before, span.after) };
      const went = { type, time, zones: between('system_to', span.before, span.after) };
      const edges = { graph, link, number, isolated };
      return !(
        (yield* changesOf(snapshot, came, edges, span, added)) && (yield* changesOf(snapshot, went, edges, span, removed))
      );
    });
    if (isOther) return null;
  }
  const nextGraph = yield* changedGraph(graph, added, removed);
  // A node without edges, and without a row that makes it one, is no node any more.
  const isLeft = ({ source, target }: EdgeChange): boolean =>
    [source, target].every((node) => degreeOf(nextGraph!, node, 'both') > 0);
  return nextGraph === null || isolated || removed.every(isLeft) ? nextGraph : null;
}

/** A type that the caller may not read has no part in the graph, before or after. */
function* unlessClosed(work: () => Steps<boolean>): Steps<boolean> {
  try {
    return yield* work();
  } catch (error) {
    if (!isClosed(error)) throw error;
    return false;
  }
}

interface Edges {
  readonly graph: Graph;
  readonly link: LinkColumns;
  readonly number: number;
  readonly isolated: boolean;
}

/** Adds edges that came, or went, within the span. False where there are too many, or one can't be identified by itself. */
function* changesOf(
  { rows }: GovernedSnapshot,
  request: Omit<ScanRequest, 'columns'>,
  { graph, link, number, isolated }: Edges,
  { before, after }: Span,
  changes: EdgeChange[],
): Steps<boolean> {
  const instantColumn = request.zones![0]!.column;
  const columns = [...link.columns.map(({ name }) => name), instantColumn];
  const blocks = rows.scan({ ...request, columns });
  try {
    for (let step = blocks.next(); step.done !== true; step = blocks.next()) {
      const { columns: vectors, selection, first, count } = step.value;
      const instants = vectors[link.columns.length]!;
      if (count > 0 && (instants.kind !== 'i64' || instants.nulls !== null)) return false;
      const cellOf = (column: number, row: number) => cellAt(vectors[column]!, link.columns[column]!.type, row);
      const closedRows = instants.kind === 'i64' ? rowsBetween(instants.values, { selection, first, count }, before, after) : [];
      for (const row of closedRows) {
        const [from, to, systemFrom, weight = 1] = link.columns.map((_, column) => cellOf(column, row));
        if (from === null || to === null || from === '' || to === '' || weight === null) continue;
        const [source, target] = [graph.texts.numberOf(String(from)), graph.texts.numberOf(String(to))];
        if (source < 0 || target < 0) {
          // The end may be a node that no edge has named yet.
          if (isolated) continue;
          return false;
        }
        if (changes.length === changesMax || typeof systemFrom !== 'bigint') return false;
        changes.push({ source, target, link: number, systemFrom, weight: Number(weight) });
      }
      yield;
    }
    return true;
  } finally {
    blocks.return?.();
  }
}

/** More of them are read anew with all others. */
const changesMax = 10_000;

function ascending(a: bigint, b: bigint): readonly [bigint, bigint] {
  return a < b ? [a, b] : [b, a];
}

/** Instants that floats have the order of. */
const floatsBegin = 0n;
const floatsEnd = 0x7ff0_0000_0000_0000n;

/** Rows whose instant is above `after` and not above `until`; at most `most` rows. */
function rowsBetween(
  instants: BigInt64Array,
  { selection, first, count }: { readonly selection: Int32Array | null; readonly first: number; readonly count: number },
  after: bigint,
  until: bigint,
  most = Number.POSITIVE_INFINITY,
): readonly number[] {
  const rows: number[] = [];
  const areFloats = after >= floatsBegin && until < floatsEnd;
  const values = areFloats ? floatsOf(instants) : instants;
  const [low, high] = areFloats ? (floatsOf(BigInt64Array.of(after, until)) as unknown as [number, number]) : [after, until];
  for (let k = 0; k < count && rows.length < most; k++) {
    const row = selection === null ? first + k : selection[k]!;
    const instant = values[row]!;
    if (low < instant && instant <= high) rows.push(row);
  }
  return rows;
}

/** Above `after`, up to and with `until`. */
function between(column: string, after: bigint, until: bigint): readonly ZonePredicate[] {
  return [
    { column, op: '>', value: after },
    { column, op: '<=', value: until },
  ];
}

/** Whether an instant of the first column lies, or may lie if hidden, in between. Yields after each block. */
function* has({ rows }: GovernedSnapshot, request: ScanRequest, after: bigint, until: bigint): Steps<boolean> {
  const blocks = rows.scan(request);
  try {
    for (let step = blocks.next(); step.done !== true; step = blocks.next()) {
      const { columns, selection, first, count } = step.value;
      if (count === 0) continue;
      const vector = columns[0]!;
      if (vector.kind !== 'i64' || vector.nulls !== null) return true;
      if (rowsBetween(vector.values, { selection, first, count }, after, until, 1).length > 0) return true;
      yield;
    }
    return false;
  } finally {
    blocks.return?.();
  }
}
