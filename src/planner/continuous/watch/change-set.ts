/**
 * The changes to the rows of a type after an instant: the new versions, the versions that each of them closed, and keys removed
 * for good. Copied out of storage once and shared by all standing queries of one scope, so that their number costs nothing there.
 * Cells are those that a version had when it came: its end in system time, which lies later, is not among them.
 *
 * Where visibility depends on more than a row's path, the version that closes another may be hidden from the caller: then only
 * the end of the closed version shows the change, as in every query.
 */
import { assert, ServiceError } from '../../../errors.ts';
import type { GovernedSnapshot } from '../../../governance/gate-contract.ts';
import type { Vector } from '../../../log/values/columns.ts';
import { FOREVER } from '../../../log/values/timestamp.ts';
import type { Cell, ColumnType } from '../../../log/values/value.ts';
import { cellAt } from '../../../log/values/vector-builder.ts';
import {
  opColumn,
  type PathCodes,
  type Removal,
  type RowBlock,
  type RowReader,
  type ScanEstimate,
  type ScanRequest,
  shownColumn,
  type TimeBounds,
} from '../../../projections/access-paths.ts';
import { RowSink } from '../../operators/column-sink.ts';
import type { Batch } from '../../operators/operator.ts';

/** Per change set: how much one look at storage may take, and one client may be sent at once. */
const changedVersionsMax = 2_048;
const changedBytesMax = 4 * 1024 * 1024;
const changeBlockRows = 256;
/** Per change set, where ends are looked for: closings that the caller does not see count too. */
const endedVersionsMax = 100_000;

/** `rowOp.delete` of `log/entries/entry.ts`, which is vocabulary for its types only. */
const deleteOpCode = 2;

export interface ChangedVersion {
  /** ns, unique. */
  readonly systemFrom: bigint;
  readonly isDelete: boolean;
  /** system_from of the versions that it closed. */
  readonly closed: readonly bigint[];
}

export interface ChangeSet {
  /** Everything after `from`, up to and with `end`. */
  readonly from: bigint;
  readonly end: bigint;
  /** False: there is more after `end` that the snapshot sees. */
  readonly complete: boolean;
  readonly grantKey: string;
  readonly ontologyVersion: number;
  /** Columns that `snapshot` can serve. */
  readonly columns: ReadonlySet<string>;
  /** In order of system_from. */
  readonly versions: readonly ChangedVersion[];
  readonly removals: readonly Removal[];
  /** Cells of all new versions in a column that `snapshot` can serve. */
  readonly newCells: (column: string) => readonly Cell[];
  /** Serves the new versions and those that they closed, without the DELETEs, and nothing else. */
  readonly snapshot: GovernedSnapshot;
}

export interface ChangeRequest {
  readonly type: string;
  readonly from: bigint;
  readonly columns: Iterable<string>;
}

const changeColumns = ['_pk', 'system_from', 'system_to', 'valid_from', 'valid_to', opColumn] as const;

/** Stops between any two blocks where ends are looked for: that takes a look at all that stood. */
export function* changesAfter(snapshot: GovernedSnapshot, request: ChangeRequest): Generator<undefined, ChangeSet, void> {
  const { type, from } = request;
  const areKeysHidden = snapshot.masksOf(type).has('_pk');
  const areRowsHidden = snapshot.seenBy(type) === 'row';
  const isFoundByEnds = areKeysHidden || areRowsHidden;
  const changeColumnNames = [...new Set([...changeColumns, ...request.columns])];
  const changedTypes = changedColumnTypes(snapshot, type);
  const allVersions: TimeBounds = { system: 'all', valid: 'all' };

  const newVersions = new CapturedVersions(changeColumnNames, changedTypes);
  let isComplete = true;
  const newBlocks = snapshot.rows.scan({
    type,
    columns: changeColumnNames,
    time: allVersions,
    after: from,
    blockRows: changeBlockRows,
  });
  for (let blockStep = newBlocks.next(); blockStep.done !== true; blockStep = newBlocks.next()) {
    const versionsLeft = changedVersionsMax - newVersions.length;
    newVersions.append(blockStep.value, Math.min(versionsLeft, blockStep.value.count));
    isComplete = blockStep.value.count < versionsLeft && newVersions.bytes < changedBytesMax;
    if (!isComplete) break;
  }
  newBlocks.return?.();

  const systemFrom = newVersions.instants('system_from');
  const changesEnd = isComplete ? snapshot.instant : systemFrom[newVersions.length - 1]!;
  const endedVersions = new CapturedVersions(changeColumnNames, changedTypes);
  const closedByInstant = new Map<bigint, bigint[]>(Array.from({ length: newVersions.length }, (_, i) => [systemFrom[i]!, []]));
  if (newVersions.length > 0 || areRowsHidden) {
    const versionFilter = isFoundByEnds
      ? endingZones({ after: from, until: changesEnd })
      : { keys: [...new Set(newVersions.texts('_pk'))] };
    const earlierBlocks = snapshot.rows.scan({
      type,
      columns: changeColumnNames,
      time: { system: from, valid: 'all' },
      ...versionFilter,
    });
    const isEndInRange = (instant: bigint): boolean =>
      areRowsHidden ? from < instant && instant <= changesEnd : closedByInstant.has(instant);
    for (let step = earlierBlocks.next(); step.done !== true; step = earlierBlocks.next()) {
      const endedRows = isFoundByEnds
        ? endedRowsOf(step.value, changeColumnNames.indexOf('system_to'), isEndInRange)
        : step.value;
      if (endedRows !== null) endedVersions.append(endedRows, endedRows.count);
      if (endedVersions.length > endedVersionsMax) {
        earlierBlocks.return?.();
        throw new ServiceError('REL_SCAN_CAP', `more than ${endedVersionsMax} versions ended: begin again without an id`);
      }
      if (isFoundByEnds) yield;
    }
  }
  for (const captured of [endedVersions, newVersions]) {
    const systemFroms = captured.instants('system_from');
    const systemTos = captured.instants('system_to');
    for (let row = 0; row < captured.length; row++) {
      const endedRows = systemTos[row]!;
      const closingVersions = closedByInstant.get(endedRows);
      if (closingVersions) closingVersions.push(systemFroms[row]!);
      else if (areRowsHidden && endedRows <= changesEnd) closedByInstant.set(endedRows, [systemFroms[row]!]);
    }
  }
  const opCodes = newVersions.codes(opColumn);
  const deletedInstants = new Set(systemFrom.filter((_, row) => opCodes[row] === deleteOpCode));
  return {
    from,
    end: changesEnd,
    complete: isComplete,
    grantKey: snapshot.grantKey,
    ontologyVersion: snapshot.catalog.ontologyVersion,
    columns: new Set(changeColumnNames),
    versions: [...closedByInstant]
      .map(([instant, versions]) => ({ systemFrom: instant, isDelete: deletedInstants.has(instant), closed: versions }))
      .sort((a, b) => (a.systemFrom < b.systemFrom ? -1 : 1)),
    removals: visibleRemovals(snapshot, type, from, changesEnd),
    newCells: (column) => newVersions.cells(column),
    snapshot: { ...snapshot, instant: changesEnd, rows: new CapturedRows(type, [endedVersions, newVersions]) },
  };
}

function endingZones({
  after: endedAfter,
  until: endedUntil,
}: {
  readonly after: bigint;
  readonly until: bigint;
}): Pick<ScanRequest, 'zones'> {
  return {
    zones: [
      { column: 'system_to', op: '>', value: endedAfter },
      { column: 'system_to', op: '<=', value: endedUntil },
    ],
  };
}

/** Rows of a block that ended at such an instant; null where none did. */
function endedRowsOf(earlierBlock: RowBlock, systemTo: number, isEnd: (instant: bigint) => boolean): Batch | null {
  const { columns, selection, first, count } = earlierBlock;
  const systemToVector = columns[systemTo]!;
  if (systemToVector.kind !== 'i64') return null;
  const keptRows = new Int32Array(count);
  let endedCount = 0;
  for (let i = 0; i < count; i++) {
    const row = selection === null ? first + i : selection[i]!;
    if (isEnd(systemToVector.values[row]!)) keptRows[endedCount++] = row;
  }
  return endedCount === 0 ? null : { columns, selection: keptRows.subarray(0, endedCount), first: 0, count: endedCount };
}

/** A key that was removed from the branch before may stand on this one: then nothing that is believed here has ended. */
function visibleRemovals(snapshot: GovernedSnapshot, type: string, from: bigint, removalsEnd: bigint): readonly Removal[] {
  const removedAfterFrom = snapshot.removals.removedAfter(type, from).filter(({ instant }) => instant <= removalsEnd);
  return removedAfterFrom.map((rowRemoval) => {
    if (!rowRemoval.inherited) return rowRemoval;
    const standingKeys = new Set<string>();
    const removalTime: TimeBounds = { system: rowRemoval.instant, valid: 'all' };
    const keyBlocks = snapshot.rows.scan({ type, columns: ['_pk'], time: removalTime, keys: rowRemoval.keys });
    for (let keyStep = keyBlocks.next(); keyStep.done !== true; keyStep = keyBlocks.next()) {
      const { columns, selection, first, count } = keyStep.value;
      for (let i = 0; i < count; i++) {
        standingKeys.add(String(cellAt(columns[0]!, 'string', selection === null ? first + i : selection[i]!)));
      }
    }
    return { ...rowRemoval, keys: rowRemoval.keys.filter((key) => !standingKeys.has(key)) };
  });
}

function changedColumnTypes(snapshot: GovernedSnapshot, type: string): ReadonlyMap<string, ColumnType> {
  const typeProperties = snapshot.catalog.type(type)?.properties ?? {};
  const changedTypes = new Map(Object.entries(typeProperties).map(([name, property]) => [name, property.type]));
  for (const name of snapshot.masksOf(type).keys())
    changedTypes.set(shownColumn(name), changedTypes.get(name) ?? ownColumnTypes[name] ?? 'string');
  return changedTypes;
}

const ownColumnTypes: Readonly<Record<string, ColumnType>> = {
  _pk: 'string',
  id: 'string',
  tenant_id: 'string',
  namespace_path: 'string',
  system_from: 'timestamp',
  system_to: 'timestamp',
  valid_from: 'timestamp',
  valid_to: 'timestamp',
  [opColumn]: 'integer',
};

/** Rows copied out of storage, column by column. */
class CapturedVersions {
  readonly #capturedNames: readonly string[];
  readonly #capturedTypes: readonly ColumnType[];
  readonly #capturedSink: RowSink;
  #capturedVectors: readonly Vector[] | null = null;

  constructor(capturedNames: readonly string[], capturedTypes: ReadonlyMap<string, ColumnType>) {
    this.#capturedNames = capturedNames;
    this.#capturedTypes = capturedNames.map((name) => capturedTypes.get(name) ?? ownColumnTypes[name] ?? 'string');
    this.#capturedSink = new RowSink(this.#capturedTypes);
  }

  get length(): number {
    return this.#capturedSink.length;
  }

  get bytes(): number {
    return this.#capturedSink.bytes;
  }

  append(capturedBlock: Batch, count: number): void {
    this.#capturedVectors = null;
    this.#capturedSink.append({ ...capturedBlock, count });
  }

  vector(name: string): Vector {
    if (name === 'system_to') return foreverColumn(this.length);
    return this.#capturedColumn(name);
  }

  instants(name: string): BigInt64Array {
    const instantVector = this.#capturedColumn(name);
    if (instantVector.kind === 'null') return new BigInt64Array(this.length);
    assert(instantVector.kind === 'i64' && instantVector.nulls === null, 'system times are i64 without nulls');
    return instantVector.values;
  }

  codes(name: string): Int32Array {
    const codeVector = this.#capturedColumn(name);
    if (codeVector.kind === 'null') return new Int32Array(this.length);
    assert(codeVector.kind === 'i32', 'codes are i32');
    return codeVector.values;
  }

  texts(name: string): string[] {
    const textVector = this.#capturedColumn(name);
    return Array.from({ length: this.length }, (_, row) => String(cellAt(textVector, 'string', row)));
  }

  cells(name: string): readonly Cell[] {
    const cellVector = this.vector(name);
    const capturedType = this.#capturedTypes[this.#capturedNames.indexOf(name)]!;
    return Array.from({ length: this.length }, (_, row) => cellAt(cellVector, capturedType, row));
  }

  #capturedColumn(name: string): Vector {
    this.#capturedVectors ??= this.#capturedSink.vectors();
    const capturedOrdinal = this.#capturedNames.indexOf(name);
    assert(capturedOrdinal >= 0, `the column ${name} was copied`);
    return this.#capturedVectors[capturedOrdinal]!;
  }
}

/** Serves copied rows as storage would: earlier ones first, so in order of system_from. DELETEs match nothing. */
class CapturedRows implements RowReader {
  readonly #capturedType: string;
  readonly #capturedVersions: readonly CapturedVersions[];

  constructor(type: string, capturedVersions: readonly CapturedVersions[]) {
    this.#capturedType = type;
    this.#capturedVersions = capturedVersions;
  }

  *scan(capturedScan: ScanRequest): Generator<RowBlock, void> {
    assert(capturedScan.type === this.#capturedType, 'a standing query reads one type');
    for (const capturedVersions of this.#capturedVersions) {
      const believedSelection = believedRowsOf(capturedVersions, capturedScan);
      if (believedSelection.length === 0) continue;
      const capturedColumns = capturedScan.columns.map((name) => capturedVersions.vector(name));
      yield {
        columns: capturedColumns,
        selection: believedSelection,
        first: 0,
        count: believedSelection.length,
        scanned: believedSelection.length,
        path: -1,
      };
    }
  }

  estimate(): ScanEstimate {
    return {
      access: 'all versions',
      rows: this.#capturedVersions.reduce((rows, capturedVersions) => rows + capturedVersions.length, 0),
      segments: 1,
    };
  }

  pathCodes(): PathCodes {
    return { size: 0, path: () => null, codeOf: () => -1 };
  }

  provenanceOf(): undefined {
    return undefined;
  }
}

function believedRowsOf(capturedVersions: CapturedVersions, capturedScan: ScanRequest): Int32Array {
  const opCodes = capturedVersions.codes(opColumn);
  const { valid } = capturedScan.time;
  const validBounds =
    valid === 'all'
      ? null
      : { at: valid, from: capturedVersions.instants('valid_from'), to: capturedVersions.instants('valid_to') };
  const keyFilter =
    capturedScan.keys === undefined ? null : { wanted: new Set(capturedScan.keys), of: capturedVersions.texts('_pk') };
  const believedRowIds: number[] = [];
  for (let row = 0; row < capturedVersions.length; row++) {
    if (opCodes[row] === deleteOpCode) continue;
    if (validBounds !== null && !(validBounds.from[row]! <= validBounds.at && validBounds.at < validBounds.to[row]!)) continue;
    if (keyFilter !== null && !keyFilter.wanted.has(keyFilter.of[row]!)) continue;
    believedRowIds.push(row);
  }
  return Int32Array.from(believedRowIds);
}

/**
 * The rows from which a standing query starts: the current ones at its instant, without DELETEs, consistent with its later
 * events.
 */
export function believedRows(storedRows: RowReader, instant: bigint): RowReader {
  const asOfBelief = (request: ScanRequest): ScanRequest => ({
    ...request,
    columns: [...request.columns, opColumn],
    time: { system: instant, valid: request.time.valid },
    // Ends in system time are not those of then.
    zones: (request.zones ?? []).filter(({ column }) => column !== 'system_to'),
  });
  return {
    *scan(request) {
      const blocks = storedRows.scan(asOfBelief(request));
      try {
        for (let step = blocks.next(); step.done !== true; step = blocks.next()) {
          const { count, columns } = step.value;
          // An empty block gives others a turn, and its columns have no types.
          if (count === 0) yield { ...step.value, columns: columns.slice(0, -1) };
          const liveRows = count === 0 ? null : blockWithoutDeletes(step.value);
          if (liveRows !== null) yield { ...liveRows, columns: openEndedCells(liveRows, request.columns) };
        }
      } finally {
        blocks.return?.();
      }
    },
    estimate: (request) => storedRows.estimate(asOfBelief(request)),
    pathCodes: () => storedRows.pathCodes(),
    provenanceOf: () => undefined,
  };
}

function blockWithoutDeletes(versionBlock: RowBlock): RowBlock | null {
  const { columns, selection, first, count } = versionBlock;
  const opVector = columns[columns.length - 1]!;
  assert(opVector.kind === 'i32', 'the op column is i32');
  const keptRows = new Int32Array(count);
  let undeletedCount = 0;
  for (let i = 0; i < count; i++) {
    const row = selection === null ? first + i : selection[i]!;
    if (opVector.values[row] !== deleteOpCode) keptRows[undeletedCount++] = row;
  }
  if (undeletedCount === 0) return null;
  return undeletedCount === count
    ? versionBlock
    : { ...versionBlock, selection: keptRows.subarray(0, undeletedCount), first: 0, count: undeletedCount };
}

function openEndedCells(block: RowBlock, names: readonly string[]): readonly Vector[] {
  const { selection, first, count } = block;
  return names.map((name, i) => {
    if (name !== 'system_to') return block.columns[i]!;
    let openEndedLength = selection === null ? first + count : 0;
    if (selection !== null) for (let k = 0; k < count; k++) openEndedLength = Math.max(openEndedLength, selection[k]! + 1);
    return foreverColumn(openEndedLength);
  });
}

function foreverColumn(length: number): Vector {
  return { kind: 'i64', values: new BigInt64Array(length).fill(FOREVER), nulls: null };
}
