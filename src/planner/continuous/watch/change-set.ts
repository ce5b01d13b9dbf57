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
const blockRows = 256;
/** Per change set, where ends are looked for: closings that the caller does not see count too. */
const endedVersionsMax = 100_000;

/** `rowOp.delete` of `log/entries/entry.ts`, which is vocabulary for its types only. */
const deleteOp = 2;

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

const ownColumns = ['_pk', 'system_from', 'system_to', 'valid_from', 'valid_to', opColumn] as const;

/** Stops between any two blocks where ends are looked for: that takes a look at all that stood. */
export function* changesAfter(snapshot: GovernedSnapshot, request: ChangeRequest): Generator<undefined, ChangeSet, void> {
  const { type, from } = request;
  const hidesKeys = snapshot.masksOf(type).has('_pk');
  const hidesRows = snapshot.seenBy(type) === 'row';
  const byEnds = hidesKeys || hidesRows;
  const names = [...new Set([...ownColumns, ...request.columns])];
  const types = columnTypes(snapshot, type);
  const all: TimeBounds = { system: 'all', valid: 'all' };

  const came = new Captured(names, types);
  let complete = true;
  const blocks = snapshot.rows.scan({ type, columns: names, time: all, after: from, blockRows });
  for (let step = blocks.next(); step.done !== true; step = blocks.next()) {
    const room = changedVersionsMax - came.length;
    came.append(step.value, Math.min(room, step.value.count));
    complete = step.value.count < room && came.bytes < changedBytesMax;
    if (!complete) break;
  }
  blocks.return?.();

  const systemFrom = came.instants('system_from');
  const end = complete ? snapshot.instant : systemFrom[came.length - 1]!;
  const before = new Captured(names, types);
  const closed = new Map<bigint, bigint[]>(Array.from({ length: came.length }, (_, i) => [systemFrom[i]!, []]));
  if (came.length > 0 || hidesRows) {
    const versionFilter = byEnds ? endingIn({ after: from, until: end }) : { keys: [...new Set(came.texts('_pk'))] };
    const earlier = snapshot.rows.scan({ type, columns: names, time: { system: from, valid: 'all' }, ...versionFilter });
    const isEnd = (instant: bigint): boolean => (hidesRows ? from < instant && instant <= end : closed.has(instant));
    for (let step = earlier.next(); step.done !== true; step = earlier.next()) {
      const ended = byEnds ? endedAmong(step.value, names.indexOf('system_to'), isEnd) : step.value;
      if (ended !== null) before.append(ended, ended.count);
      if (before.length > endedVersionsMax) {
        earlier.return?.();
        throw new ServiceError('REL_SCAN_CAP', `more than ${endedVersionsMax} versions ended: begin again without an id`);
      }
      if (byEnds) yield;
    }
  }
  for (const captured of [before, came]) {
    const starts = captured.instants('system_from');
    const ends = captured.instants('system_to');
    for (let row = 0; row < captured.length; row++) {
      const ended = ends[row]!;
      const closing = closed.get(ended);
      if (closing) closing.push(starts[row]!);
      else if (hidesRows && ended <= end) closed.set(ended, [starts[row]!]);
    }
  }
  const ops = came.codes(opColumn);
  const deletes = new Set(systemFrom.filter((_, row) => ops[row] === deleteOp));
  return {
    from,
    end,
    complete,
    grantKey: snapshot.grantKey,
    ontologyVersion: snapshot.catalog.ontologyVersion,
    columns: new Set(names),
    versions: [...closed]
      .map(([instant, versions]) => ({ systemFrom: instant, isDelete: deletes.has(instant), closed: versions }))
      .sort((a, b) => (a.systemFrom < b.systemFrom ? -1 : 1)),
    removals: removalsOf(snapshot, type, from, end),
    newCells: (column) => came.cells(column),
    snapshot: { ...snapshot, instant: end, rows: new CapturedRows(type, [before, came]) },
  };
}

function endingIn({ after, until }: { readonly after: bigint; readonly until: bigint }): Pick<ScanRequest, 'zones'> {
  return {
    zones: [
      { column: 'system_to', op: '>', value: after },
      { column: 'system_to', op: '<=', value: until },
    ],
  };
}

/** Rows of a block that ended at such an instant; null where none did. */
function endedAmong(block: RowBlock, systemTo: number, isEnd: (instant: bigint) => boolean): Batch | null {
  const { columns, selection, first, count } = block;
  const vector = columns[systemTo]!;
  if (vector.kind !== 'i64') return null;
  const keptRows = new Int32Array(count);
  let length = 0;
  for (let i = 0; i < count; i++) {
    const row = selection === null ? first + i : selection[i]!;
    if (isEnd(vector.values[row]!)) keptRows[length++] = row;
  }
  return length === 0 ? null : { columns, selection: keptRows.subarray(0, length), first: 0, count: length };
}

/** A key that was removed from the branch before may stand on this one: then nothing that is believed here has ended. */
function removalsOf(snapshot: GovernedSnapshot, type: string, from: bigint, end: bigint): readonly Removal[] {
  const removals = snapshot.removals.removedAfter(type, from).filter(({ instant }) => instant <= end);
  return removals.map((removal) => {
    if (!removal.inherited) return removal;
    const standing = new Set<string>();
    const time: TimeBounds = { system: removal.instant, valid: 'all' };
    const blocks = snapshot.rows.scan({ type, columns: ['_pk'], time, keys: removal.keys });
    for (let step = blocks.next(); step.done !== true; step = blocks.next()) {
      const { columns, selection, first, count } = step.value;
      for (let i = 0; i < count; i++) {
        standing.add(String(cellAt(columns[0]!, 'string', selection === null ? first + i : selection[i]!)));
      }
    }
    return { ...removal, keys: removal.keys.filter((key) => !standing.has(key)) };
  });
}

function columnTypes(snapshot: GovernedSnapshot, type: string): ReadonlyMap<string, ColumnType> {
  const properties = snapshot.catalog.type(type)?.properties ?? {};
  const types = new Map(Object.entries(properties).map(([name, property]) => [name, property.type]));
  for (const name of snapshot.masksOf(type).keys()) types.set(shownColumn(name), types.get(name) ?? ownTypes[name] ?? 'string');
  return types;
}

const ownTypes: Readonly<Record<string, ColumnType>> = {
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
class Captured {
  readonly #names: readonly string[];
  readonly #types: readonly ColumnType[];
  readonly #sink: RowSink;
  #vectors: readonly Vector[] | null = null;

  constructor(names: readonly string[], types: ReadonlyMap<string, ColumnType>) {
    this.#names = names;
    this.#types = names.map((name) => types.get(name) ?? ownTypes[name] ?? 'string');
    this.#sink = new RowSink(this.#types);
  }

  get length(): number {
    return this.#sink.length;
  }

  get bytes(): number {
    return this.#sink.bytes;
  }

  append(block: Batch, count: number): void {
    this.#vectors = null;
    this.#sink.append({ ...block, count });
  }

  vector(name: string): Vector {
    if (name === 'system_to') return openEnded(this.length);
    return this.#column(name);
  }

  instants(name: string): BigInt64Array {
    const vector = this.#column(name);
    if (vector.kind === 'null') return new BigInt64Array(this.length);
    assert(vector.kind === 'i64' && vector.nulls === null, 'system times are i64 without nulls');
    return vector.values;
  }

  codes(name: string): Int32Array {
    const vector = this.#column(name);
    if (vector.kind === 'null') return new Int32Array(this.length);
    assert(vector.kind === 'i32', 'codes are i32');
    return vector.values;
  }

  texts(name: string): string[] {
    const vector = this.#column(name);
    return Array.from({ length: this.length }, (_, row) => String(cellAt(vector, 'string', row)));
  }

  cells(name: string): readonly Cell[] {
    const vector = this.vector(name);
    const type = this.#types[this.#names.indexOf(name)]!;
    return Array.from({ length: this.length }, (_, row) => cellAt(vector, type, row));
  }

  #column(name: string): Vector {
    this.#vectors ??= this.#sink.vectors();
    const at = this.#names.indexOf(name);
    assert(at >= 0, `the column ${name} was copied`);
    return this.#vectors[at]!;
  }
}

/** Serves copied rows as storage would: earlier ones first, so in order of system_from. DELETEs match nothing. */
class CapturedRows implements RowReader {
  readonly #type: string;
  readonly #parts: readonly Captured[];

  constructor(type: string, parts: readonly Captured[]) {
    this.#type = type;
    this.#parts = parts;
  }

  *scan(request: ScanRequest): Generator<RowBlock, void> {
    assert(request.type === this.#type, 'a standing query reads one type');
    for (const part of this.#parts) {
      const selection = rowsOf(part, request);
      if (selection.length === 0) continue;
      const columns = request.columns.map((name) => part.vector(name));
      yield { columns, selection, first: 0, count: selection.length, scanned: selection.length, path: -1 };
    }
  }

  estimate(): ScanEstimate {
    return { access: 'all versions', rows: this.#parts.reduce((rows, part) => rows + part.length, 0), segments: 1 };
  }

  pathCodes(): PathCodes {
    return { size: 0, path: () => null, codeOf: () => -1 };
  }

  provenanceOf(): undefined {
    return undefined;
  }
}

function rowsOf(part: Captured, request: ScanRequest): Int32Array {
  const ops = part.codes(opColumn);
  const { valid } = request.time;
  const bounds = valid === 'all' ? null : { at: valid, from: part.instants('valid_from'), to: part.instants('valid_to') };
  const keys = request.keys === undefined ? null : { wanted: new Set(request.keys), of: part.texts('_pk') };
  const rows: number[] = [];
  for (let row = 0; row < part.length; row++) {
    if (ops[row] === deleteOp) continue;
    if (bounds !== null && !(bounds.from[row]! <= bounds.at && bounds.at < bounds.to[row]!)) continue;
    if (keys !== null && !keys.wanted.has(keys.of[row]!)) continue;
    rows.push(row);
  }
  return Int32Array.from(rows);
}

/**
 * The rows from which a standing query starts: the current ones at its instant, without DELETEs, consistent with its later
 * events.
 */
export function believedRows(storage: RowReader, instant: bigint): RowReader {
  const asOfInstant = (request: ScanRequest): ScanRequest => ({
    ...request,
    columns: [...request.columns, opColumn],
    time: { system: instant, valid: request.time.valid },
    // Ends in system time are not those of then.
    zones: (request.zones ?? []).filter(({ column }) => column !== 'system_to'),
  });
  return {
    *scan(request) {
      const blocks = storage.scan(asOfInstant(request));
      try {
        for (let step = blocks.next(); step.done !== true; step = blocks.next()) {
          const { count, columns } = step.value;
          // An empty block gives others a turn, and its columns have no types.
          if (count === 0) yield { ...step.value, columns: columns.slice(0, -1) };
          const liveRows = count === 0 ? null : withoutDeletes(step.value);
          if (liveRows !== null) yield { ...liveRows, columns: cellsOfThen(liveRows, request.columns) };
        }
      } finally {
        blocks.return?.();
      }
    },
    estimate: (request) => storage.estimate(asOfInstant(request)),
    pathCodes: () => storage.pathCodes(),
    provenanceOf: () => undefined,
  };
}

function withoutDeletes(block: RowBlock): RowBlock | null {
  const { columns, selection, first, count } = block;
  const ops = columns[columns.length - 1]!;
  assert(ops.kind === 'i32', 'the op column is i32');
  const keptRows = new Int32Array(count);
  let length = 0;
  for (let i = 0; i < count; i++) {
    const row = selection === null ? first + i : selection[i]!;
    if (ops.values[row] !== deleteOp) keptRows[length++] = row;
  }
  if (length === 0) return null;
  return length === count ? block : { ...block, selection: keptRows.subarray(0, length), first: 0, count: length };
}

function cellsOfThen(block: RowBlock, names: readonly string[]): readonly Vector[] {
  const { selection, first, count } = block;
  return names.map((name, i) => {
    if (name !== 'system_to') return block.columns[i]!;
    let length = selection === null ? first + count : 0;
    if (selection !== null) for (let k = 0; k < count; k++) length = Math.max(length, selection[k]! + 1);
    return openEnded(length);
  });
}

function openEnded(length: number): Vector {
  return { kind: 'i64', values: new BigInt64Array(length).fill(FOREVER), nulls: null };
}
