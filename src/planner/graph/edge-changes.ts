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
export function readAt(
  time: TimeBounds,
  { instant: snapshotInstant, position }: Pick<GovernedSnapshot, 'instant' | 'position'>,
): ReadAt {
  return { time, instant: snapshotInstant, position, calmUntil: time.valid === 'all' ? 0n : time.valid };
}

/** A look at what turns goes this far ahead: questions of the same rows come one after the other. */
const edgeCalmNs = 60_000_000_000n;

/** The later reading, where the rows of its types say the same at another instant and are still there; null where they don't. */
export function* readAgain(
  earlierRead: ReadAt,
  { snapshot, types, time: askedTime }: Pick<GraphSource, 'snapshot' | 'types' | 'time'>,
): Steps<ReadAt | null> {
  const { time, instant } = earlierRead;
  if (time.system === 'all' || time.valid === 'all' || askedTime.system === 'all' || askedTime.valid === 'all') return null;
  const readNow = readAt(askedTime, snapshot);
  // Most questions come while nobody writes.
  const isSameReading =
    earlierRead.position === snapshot.position && time.system === instant && askedTime.system === snapshot.instant;
  if (isSameReading && time.valid <= askedTime.valid && askedTime.valid <= earlierRead.calmUntil)
    return { ...readNow, calmUntil: earlierRead.calmUntil };
  const [systemBefore, systemAfter] = ascendingInstants(time.system, askedTime.system);
  const [validSince, validUntil] = ascendingInstants(time.valid, askedTime.valid);
  const calmAhead = validUntil + edgeCalmNs > I64_MAX ? I64_MAX : validUntil + edgeCalmNs;
  let isCalmAhead = validSince < validUntil;
  for (const edgeType of types) {
    try {
      if (yield* haveEdgesChanged(snapshot, edgeType, { instant, before: systemBefore, after: systemAfter })) return null;
      if (
        isCalmAhead &&
        !(yield* haveEdgesTurnedValid(snapshot, edgeType, { before: systemBefore, since: validSince, until: calmAhead }))
      )
        continue;
      isCalmAhead = false;
      if (yield* haveEdgesTurnedValid(snapshot, edgeType, { before: systemBefore, since: validSince, until: validUntil }))
        return null;
    } catch (error) {
      // A closed type has no part in the graph, and had none under this grant.
      if (!isClosed(error)) throw error;
    }
  }
  return isCalmAhead ? { ...readNow, calmUntil: calmAhead } : readNow;
}

interface ChangeSpan {
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
function* haveEdgesChanged(
  snapshot: GovernedSnapshot,
  type: string,
  changeSpan: Omit<ChangeSpan, 'since' | 'until'>,
): Steps<boolean> {
  const { before, after } = changeSpan;
  if (areEdgesRemoved(snapshot, type, changeSpan)) return true;
  if (before === after) return false;
  const allVersions: TimeBounds = { system: 'all', valid: 'all' };
  const systemThen: TimeBounds = { system: before, valid: 'all' };
  const newEdges = {
    type,
    columns: ['system_from'],
    time: allVersions,
    after: before,
    zones: instantZones('system_from', before, after),
  };
  if (yield* hasRowsBetween(snapshot, newEdges, before, after)) return true;
  const endedEdges = { type, columns: ['system_to'], time: systemThen, zones: instantZones('system_to', before, after) };
  return yield* hasRowsBetween(snapshot, endedEdges, before, after);
}

function areEdgesRemoved(snapshot: GovernedSnapshot, type: string, { instant }: Pick<ChangeSpan, 'instant'>): boolean {
  return snapshot.removals.removedAfter(type, instant).length > 0;
}

/** Whether anything that was believed before began or ended to be true. */
function* haveEdgesTurnedValid(
  snapshot: GovernedSnapshot,
  type: string,
  { before, since: validSince, until: validUntil }: Pick<ChangeSpan, 'before' | 'since' | 'until'>,
): Steps<boolean> {
  if (validSince === validUntil) return false;
  for (const validColumn of ['valid_from', 'valid_to']) {
    const turnTime: TimeBounds = { system: before, valid: 'all' };
    const turnedEdges = {
      type,
      columns: [validColumn],
      time: turnTime,
      zones: instantZones(validColumn, validSince, validUntil),
    };
    if (yield* hasRowsBetween(snapshot, turnedEdges, validSince, validUntil)) return true;
  }
  return false;
}

/** The graph as it is at a later instant, where only a few edges came or went since; null: it has to be read again. */
export function* followChanges({ graph, time, instant }: ReadGraph, graphSource: GraphSource): Steps<Graph | null> {
  const { snapshot, nodes, links, time: askedTime, isolated } = graphSource;
  if (time.system === 'all' || time.valid === 'all' || askedTime.system === 'all' || askedTime.valid === 'all') return null;
  if (time.system > askedTime.system) return null;
  const [validSince, validUntil] = ascendingInstants(time.valid, askedTime.valid);
  const changeSpan: ChangeSpan = { instant, before: time.system, after: askedTime.system, since: validSince, until: validUntil };
  const addedEdges: EdgeChange[] = [];
  const removedEdges: EdgeChange[] = [];
  for (const type of nodes) {
    const hasTypeChanged = yield* unlessTypeClosed(function* () {
      return (yield* haveEdgesChanged(snapshot, type, changeSpan)) || (yield* haveEdgesTurnedValid(snapshot, type, changeSpan));
    });
    if (hasTypeChanged) return null;
  }
  for (const [linkOrdinal, link] of links.entries()) {
    const { type } = link;
    const hasTypeChanged = yield* unlessTypeClosed(function* () {
      if (areEdgesRemoved(snapshot, type, changeSpan) || (yield* haveEdgesTurnedValid(snapshot, type, changeSpan))) return true;
      const newEdges = {
        type,
        time: askedTime,
        after: changeSpan.before,
        zones: instantZones('system_from', changeSpan.before, changeSpan.after),
      };
      const goneEdges = { type, time, zones: instantZones('system_to', changeSpan.before, changeSpan.after) };
      const changedEdges = { graph, link, number: linkOrdinal, isolated };
      return !(
        (yield* readEdgeChanges(snapshot, newEdges, changedEdges, changeSpan, addedEdges)) &&
        (yield* readEdgeChanges(snapshot, goneEdges, changedEdges, changeSpan, removedEdges))
      );
    });
    if (hasTypeChanged) return null;
  }
  const nextGraph = yield* changedGraph(graph, addedEdges, removedEdges);
  // A node without edges, and without a row that makes it one, is no node any more.
  const hasNodesLeft = ({ source, target }: EdgeChange): boolean =>
    [source, target].every((node) => degreeOf(nextGraph!, node, 'both') > 0);
  return nextGraph === null || isolated || removedEdges.every(hasNodesLeft) ? nextGraph : null;
}

/** A type that the caller may not read has no part in the graph, before or after. */
function* unlessTypeClosed(readType: () => Steps<boolean>): Steps<boolean> {
  try {
    return yield* readType();
  } catch (error) {
    if (!isClosed(error)) throw error;
    return false;
  }
}

interface ChangedEdges {
  readonly graph: Graph;
  readonly link: LinkColumns;
  readonly number: number;
  readonly isolated: boolean;
}

/** Adds edges that came, or went, within the span. False where there are too many, or one can't be identified by itself. */
function* readEdgeChanges(
  { rows }: GovernedSnapshot,
  edgeScan: Omit<ScanRequest, 'columns'>,
  { graph, link, number, isolated }: ChangedEdges,
  { before, after }: ChangeSpan,
  edgeChanges: EdgeChange[],
): Steps<boolean> {
  const instantColumn = edgeScan.zones![0]!.column;
  const edgeScanColumns = [...link.columns.map(({ name }) => name), instantColumn];
  const edgeBlocks = rows.scan({ ...edgeScan, columns: edgeScanColumns });
  try {
    for (let blockStep = edgeBlocks.next(); blockStep.done !== true; blockStep = edgeBlocks.next()) {
      const { columns: edgeVectors, selection, first, count } = blockStep.value;
      const edgeInstants = edgeVectors[link.columns.length]!;
      if (count > 0 && (edgeInstants.kind !== 'i64' || edgeInstants.nulls !== null)) return false;
      const edgeCell = (column: number, row: number) => cellAt(edgeVectors[column]!, link.columns[column]!.type, row);
      const closedRows =
        edgeInstants.kind === 'i64' ? rowsBetweenInstants(edgeInstants.values, { selection, first, count }, before, after) : [];
      for (const edgeRow of closedRows) {
        const [edgeFrom, edgeTo, systemFrom, edgeWeight = 1] = link.columns.map((_, column) => edgeCell(column, edgeRow));
        if (edgeFrom === null || edgeTo === null || edgeFrom === '' || edgeTo === '' || edgeWeight === null) continue;
        const [sourceNode, targetNode] = [graph.texts.numberOf(String(edgeFrom)), graph.texts.numberOf(String(edgeTo))];
        if (sourceNode < 0 || targetNode < 0) {
          // The end may be a node that no edge has named yet.
          if (isolated) continue;
          return false;
        }
        if (edgeChanges.length === edgeChangesMax || typeof systemFrom !== 'bigint') return false;
        edgeChanges.push({ source: sourceNode, target: targetNode, link: number, systemFrom, weight: Number(edgeWeight) });
      }
      yield;
    }
    return true;
  } finally {
    edgeBlocks.return?.();
  }
}

/** More of them are read anew with all others. */
const edgeChangesMax = 10_000;

function ascendingInstants(oneInstant: bigint, otherInstant: bigint): readonly [bigint, bigint] {
  return oneInstant < otherInstant ? [oneInstant, otherInstant] : [otherInstant, oneInstant];
}

/** Instants that floats have the order of. */
const floatInstantsBegin = 0n;
const floatInstantsEnd = 0x7ff0_0000_0000_0000n;

/** Rows whose instant is above `after` and not above `until`; at most `rowsMax` rows. */
function rowsBetweenInstants(
  instants: BigInt64Array,
  { selection, first, count }: { readonly selection: Int32Array | null; readonly first: number; readonly count: number },
  after: bigint,
  until: bigint,
  rowsMax = Number.POSITIVE_INFINITY,
): readonly number[] {
  const rowsFound: number[] = [];
  const areFloatInstants = after >= floatInstantsBegin && until < floatInstantsEnd;
  const comparableInstants = areFloatInstants ? floatsOf(instants) : instants;
  const [lowInstant, highInstant] = areFloatInstants
    ? (floatsOf(BigInt64Array.of(after, until)) as unknown as [number, number])
    : [after, until];
  for (let k = 0; k < count && rowsFound.length < rowsMax; k++) {
    const row = selection === null ? first + k : selection[k]!;
    const instant = comparableInstants[row]!;
    if (lowInstant < instant && instant <= highInstant) rowsFound.push(row);
  }
  return rowsFound;
}

/** Above `after`, up to and with `until`. */
function instantZones(column: string, after: bigint, until: bigint): readonly ZonePredicate[] {
  return [
    { column, op: '>', value: after },
    { column, op: '<=', value: until },
  ];
}

/** Whether an instant of the first column lies, or may lie if hidden, in between. Yields after each block. */
function* hasRowsBetween({ rows }: GovernedSnapshot, edgeScan: ScanRequest, after: bigint, until: bigint): Steps<boolean> {
  const edgeBlocks = rows.scan(edgeScan);
  try {
    for (let blockStep = edgeBlocks.next(); blockStep.done !== true; blockStep = edgeBlocks.next()) {
      const { columns, selection, first, count } = blockStep.value;
      if (count === 0) continue;
      const instantVector = columns[0]!;
      if (instantVector.kind !== 'i64' || instantVector.nulls !== null) return true;
      if (rowsBetweenInstants(instantVector.values, { selection, first, count }, after, until, 1).length > 0) return true;
      yield;
    }
    return false;
  } finally {
    edgeBlocks.return?.();
  }
}
