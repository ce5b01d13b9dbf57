/** Putting, ending and removing rows: a command and the versions that stand to the entries that say what happened. Pure. */
import { assert, ServiceError } from '../../errors.ts';
import type { NamedColumn, RowBatch, Vector } from '../../log/columns.ts';
import type { EntryDraft, Provenance, RowsBody, TypeDefinition } from '../../log/entry.ts';
import { rowOp } from '../../log/entry.ts';
import type { NextPlace } from '../../log/log-store.ts';
import { FOREVER } from '../../log/timestamp.ts';
import { type Cell, checkIdentifier, type ColumnType, limits } from '../../log/value.ts';
import { cellAt, VectorBuilder } from '../../log/vector-builder.ts';
import type { CatalogReader, HoldReader } from '../access-paths.ts';
import { classifiedTypes } from '../catalog/builtin-types.ts';
import { typeDraft } from '../catalog/commands.ts';
import { subjectProperty } from '../catalog/subject.ts';
import type { DeleteRows, Outcome, PutRows, RemoveRows, RowRejection } from '../command.ts';
import { type DecideContext, type Decision, decideNothing, outcomeLimits } from '../decision.ts';
import { heldBy } from '../retention/holds.ts';
import { BatchKeys } from './batch-keys.ts';
import { hashBytes } from './byte-hash.ts';
import { type CheckedBatch, checkBatch } from './batch-contract.ts';
import { gather } from './gather.ts';
import type { BranchRows } from './branch-rows.ts';
import { Rejections } from './rejections.ts';
import { refusedKeys, rejectUnwritable } from './row-check.ts';
import { byProvenance, checkProvenance, rowProvenances } from './row-provenance.ts';
import { removalOf } from './removal.ts';
import { NO_ROW } from './segment.ts';
import type { StoredVersions } from './stored-versions.ts';
import { subjectsOf } from './subjects.ts';
import { type OpenVersion, VersionPlan } from './version-plan.ts';

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
/** Soft deletes are Annals' own doing: the caller brought no cells. */
const deletion: Provenance = { source: 'annals', method: 'delete', confidence: 1, derivedFrom: null };

export function decidePut(
  command: PutRows,
  catalog: CatalogReader,
  rows: BranchRows,
  context: DecideContext,
  next: NextPlace,
): Decision {
  refuseClassified(command.type);
  const known = catalog.type(command.type);
  if (!known && !command.createType) throw unknownType(command.type);
  if (!known) checkIdentifier(command.type, 'a type name');
  const rejections = new Rejections();
  checkProvenance(command.provenance);
  const provenances = rowProvenances(command.rows, command.provenance, rejections);
  const batch = checkBatch(command.rows, known, command.type, catalog, rows, rejections, context.newKey);
  const rowsAt = batch.definitionChanged ? { position: next.position + 1, time: next.time + 1n } : next;
  const table = rows.versions(command.type);
  const path = rows.scopes.codeOf(context.entry.path);
  if (context.rowCheck) {
    rejectUnwritable(context.rowCheck, batch, known, { path: context.entry.path, rows, at: rowsAt }, rejections);
  }
  const whole = rejections.count === 0 ? putAll(batch, table, path, rowsAt) : null;
  const { written, origins } =
    whole === null ? putSome(batch, table, path, rowsAt, rejections) : { written: whole, origins: null };

  if (command.atomic && rejections.count > 0) {
    const { index, code, detail } = rejections.first()!;
    throw new ServiceError(code as ConstructorParameters<typeof ServiceError>[0], `row ${index}: ${detail}`);
  }
  if (written.ops.length === 0) return decideNothing('put-rows', rejections.count, rejections.list(outcomeLimits.errorsListed));
  const { subject } = batch;
  const body: RowsBody = {
    kind: 'rows',
    type: command.type,
    ...written,
    provenance: command.provenance,
    ...subjectsOf(written.cells, subject),
  };
  const drafts: EntryDraft[] = [];
  if (batch.definitionChanged) drafts.push(typeDraft(batch.definition, context));
  const bodies = provenances === null ? [body] : byProvenance(body, origins, provenances);
  for (const each of bodies) drafts.push({ context: context.entry, body: each });
  const errors = rejections.list(outcomeLimits.errorsListed);
  return { drafts, outcome: outcomeOf('put-rows', body, rowsAt, rejections.count, errors, command.idsMax) };
}

/** Every open version of a key gets an end; the key's earlier beliefs stay readable as of then. */
export function decideDelete(
  command: DeleteRows,
  catalog: CatalogReader,
  rows: BranchRows,
  context: DecideContext,
  next: NextPlace,
): Decision {
  refuseClassified(command.type);
  const known = catalog.type(command.type);
  if (!known) throw unknownType(command.type);
  const mayEnd = checkedKeys(command, known, 'open', rows, context, next);
  const table = rows.versions(command.type);
  const path = rows.scopes.codeOf(context.entry.path);
  const plan = new VersionPlan(next.position, next.time);
  const keys: string[] = [];
  const rejections = new Rejections();
  const seen = new Set<string>();
  command.keys.forEach((key, index) => {
    if (seen.has(key)) return;
    seen.add(key);
    const newest = table ? newestOf(table, path, key) : NO_ROW;
    const standing =
      newest === NO_ROW ? [] : openVersions(table!, newest).filter(({ cells }) => table!.opOf(cells) !== rowOp.delete);
    if (!mayEnd(key, standing.length > 0, index, rejections)) return;
    for (const version of standing) {
      plan.end(version);
      keys.push(key);
    }
  });
  if (plan.length === 0) return decideNothing('delete-rows', rejections.count, rejections.list(outcomeLimits.errorsListed));
  const keyBuilder = new VectorBuilder('string', keys.length);
  for (const key of keys) keyBuilder.appendString(key);
  const written = planned(plan, keyBuilder.build(), plan.length, cellsOf(plan, null, table));
  const subjects = subjectsOf(written.cells, subjectProperty(known));
  const body: RowsBody = { kind: 'rows', type: command.type, ...written, provenance: deletion, ...subjects };
  const outcome = outcomeOf('delete-rows', body, next, rejections.count, rejections.list(outcomeLimits.errorsListed));
  const deleted = [...new Set(keys)];
  return {
    drafts: [{ context: context.entry, body }],
    outcome: { ...outcome, accepted: deleted.length, ...listed(deleted) },
  };
}

/** Hard delete of every version, ended ones included. */
export function decideRemove(
  command: RemoveRows,
  catalog: CatalogReader,
  rows: BranchRows,
  holds: HoldReader,
  context: DecideContext,
  next: NextPlace,
): Decision {
  refuseClassified(command.type);
  const known = catalog.type(command.type);
  if (!known) throw unknownType(command.type);
  const mayRemove = checkedKeys(command, known, 'all', rows, context, next);
  const table = rows.versions(command.type);
  const path = rows.scopes.codeOf(context.entry.path);
  const rejections = new Rejections();
  const removed = new Set<string>();
  command.keys.forEach((key, index) => {
    if (removed.has(key)) return;
    const newest = table ? newestOf(table, path, key) : NO_ROW;
    if (!mayRemove(key, newest !== NO_ROW, index, rejections)) return;
    const positions = table!.allVersions(newest).map((version) => table!.positionOf(version));
    const held = holds.on(command.type, positions);
    if (held.length > 0) rejections.add(index, 'REL_CONFLICT', `the row is under legal hold: ${heldBy(held)}`);
    else removed.add(key);
  });
  if (removed.size === 0) return decideNothing('remove-rows', rejections.count, rejections.list(outcomeLimits.errorsListed));
  const keys = [...removed];
  const body = removalOf(known, keys, context.entry.path, rows);
  return {
    drafts: [{ context: context.entry, body }],
    outcome: {
      kind: 'remove-rows',
      accepted: keys.length,
      rejected: rejections.count,
      errors: rejections.list(outcomeLimits.errorsListed),
      ...listed(keys),
      systemFrom: next.time,
      systemFromLast: next.time,
      changed: true,
    },
  };
}

/**
 * Whether a key may be ended or removed; adds the rejection where not. Under a condition a key that stands and may not, and
 * one that does not stand, are refused alike.
 */
function checkedKeys(
  { type, keys }: DeleteRows | RemoveRows,
  known: TypeDefinition,
  versions: 'open' | 'all',
  rows: BranchRows,
  { entry, rowCheck }: DecideContext,
  at: NextPlace,
): (key: string, stands: boolean, index: number, rejections: Rejections) => boolean {
  const test = rowCheck?.of(known) ?? null;
  if (test === 'none') rowCheck!.refuse(known);
  const place = { path: entry.path, rows, at };
  const refused = test === null ? new Set<string>() : refusedKeys(test, type, [...new Set(keys)], place, versions);
  return (key, stands, index, rejections) => {
    if (stands && !refused.has(key)) return true;
    if (test === null) rejections.add(index, 'REL_NOT_FOUND', 'no such row');
    else rejections.add(index, 'REL_ACL', 'no such row, or none that a policy permits to end');
    return false;
  };
}

type Written = Omit<RowsBody, 'kind' | 'type' | 'provenance'>;

/**
 * Every row is taken as it came: columns pass through, only closings are worked out. Null when some row is not that
 * simple: bounds that hold nothing, or bounds of a key that has open versions already.
 */
function putAll(batch: CheckedBatch, table: StoredVersions | undefined, path: number, at: NextPlace): Written | null {
  const { length, keys, validFrom, validTo } = batch;
  if (length === 1) return putOne(batch, table, path, at);
  const groups = new BatchKeys(keys, length, path);
  /** Version of each key within the batch so far: its row. */
  const latest = new Int32Array(length);
  const closes: number[] = [];
  const closeOffsets = new Uint32Array(length + 1);
  const bounded = validFrom.kind !== 'null' || validTo.kind !== 'null';
  for (let block = 0; block < length; block += 1024) {
    const end = Math.min(length, block + 1024);
    if (table) table.touch(groups.hashes.subarray(block, end), end - block);
    for (let row = block; row < end; row++) {
      const known = groups.groups;
      const group = groups.groupOf(row);
      if (group < known) closes.push(at.position + latest[group]!);
      else if (table && path >= 0) {
        table.openPositions(path, keys.heap, keys.offsets[row]!, keys.offsets[row + 1]!, groups.hashes[row]!, closes);
      }
      if (bounded) {
        const from = boundAt(validFrom, row);
        const to = boundAt(validTo, row);
        if (from !== null || to !== null) {
          if (closes.length > closeOffsets[row]! || (from ?? at.time + BigInt(row)) >= (to ?? FOREVER)) return null;
        }
      }
      latest[group] = row;
      closeOffsets[row + 1] = closes.length;
    }
  }
  return {
    ops: new Uint8Array(length),
    keys: keyColumns(length, keys, validFrom, validTo),
    closeOffsets,
    closes: Float64Array.from(closes),
    cells: { length, columns: withCells(batch.cells) },
  };
}

/** Of bodies of one row that ends nothing: never written to. */
const oneOp = new Uint8Array(1);
const oneWithoutCloses = new Uint32Array(2);
const noCloses = new Float64Array(0);

/** The same of one row, without what tells rows of a batch apart. */
function putOne(batch: CheckedBatch, table: StoredVersions | undefined, path: number, at: NextPlace): Written | null {
  const { keys, validFrom, validTo } = batch;
  const closes: number[] = [];
  if (table && path >= 0) {
    const [start, end] = [keys.offsets[0]!, keys.offsets[1]!];
    table.openPositions(path, keys.heap, start, end, hashBytes(keys.heap, start, end, path), closes);
  }
  const from = boundAt(validFrom, 0);
  const to = boundAt(validTo, 0);
  if (from !== null || to !== null) {
    if (closes.length > 0 || (from ?? at.time) >= (to ?? FOREVER)) return null;
  }
  return {
    ops: oneOp,
    keys: keyColumns(1, keys, validFrom, validTo),
    closeOffsets: closes.length === 0 ? oneWithoutCloses : Uint32Array.of(0, closes.length),
    closes: closes.length === 0 ? noCloses : Float64Array.from(closes),
    cells: { length: 1, columns: withCells(batch.cells) },
  };
}

function withCells(columns: readonly NamedColumn[]): readonly NamedColumn[] {
  for (const { vector } of columns) if (vector.kind === 'null') return columns.filter((column) => column.vector.kind !== 'null');
  return columns;
}

function boundAt(bounds: Vector, row: number): bigint | null {
  return bounds.kind !== 'i64' || bounds.nulls?.[row] === 1 ? null : bounds.values[row]!;
}

function putSome(
  batch: CheckedBatch,
  table: StoredVersions | undefined,
  path: number,
  at: NextPlace,
  rejections: Rejections,
): { written: Written; origins: Int32Array } {
  const plan = new VersionPlan(at.position, at.time);
  const { length, keys, validFrom, validTo } = batch;
  const groups = new BatchKeys(keys, length, path);
  const open: OpenVersion[][] = [];
  const keyRows: number[] = [];
  for (let row = 0; row < length; row++) {
    if (rejections.has(row)) continue;
    const from = boundAt(validFrom, row);
    const to = boundAt(validTo, row);
    if ((from ?? plan.nextTime) >= (to ?? FOREVER)) {
      rejections.add(row, 'REL_INVALID', 'valid_to must be after valid_from');
      continue;
    }
    const known = groups.groups;
    const group = groups.groupOf(row);
    if (group === known) {
      const newest = table && path >= 0 ? table.newest(path, keys.heap, keys.offsets[row]!, keys.offsets[row + 1]!) : NO_ROW;
      open.push(newest === NO_ROW ? [] : openVersions(table!, newest));
    }
    open[group] = from === null && to === null ? plan.put(row, open[group]!) : plan.putWithin(row, from, to, open[group]!);
    while (keyRows.length < plan.length) keyRows.push(row);
  }
  const rows = Int32Array.from(keyRows);
  const whole = rows.length === length && plan.remainders === 0;
  const written = planned(plan, whole ? keys : gather(keys, rows), plan.length, cellsOf(plan, batch, table));
  return { written, origins: rows };
}

function planned(plan: VersionPlan, keys: Vector, length: number, columns: readonly NamedColumn[]): Written {
  const closeOffsets = new Uint32Array(length + 1);
  closeOffsets.set(plan.closeEnds, 1);
  return {
    ops: Uint8Array.from(plan.ops),
    keys: keyColumns(length, keys, boundVector(plan.from), boundVector(plan.to)),
    closeOffsets,
    closes: Float64Array.from(plan.closes),
    cells: { length, columns },
  };
}

/** Cells of planned versions: gathered from the batch, or cell by cell where some come from stored versions. */
function cellsOf(plan: VersionPlan, batch: CheckedBatch | null, table: StoredVersions | undefined): NamedColumn[] {
  const fromTable = plan.cells.some((cells) => cells >= 0);
  if (!fromTable) {
    assert(batch, 'cells come from a batch or a table');
    const rows = Int32Array.from(plan.cells, (cells) => -1 - cells);
    const whole = rows.length === batch.length && plan.remainders === 0;
    return batch.cells
      .map((column) => ({ ...column, vector: whole ? column.vector : gather(column.vector, rows) }))
      .filter((column) => column.vector.kind !== 'null');
  }
  const types = new Map<string, ColumnType>();
  for (const [name, { type }] of table!.columnTypes()) types.set(name, type);
  // The batch's type wins: its definition is the newer one.
  for (const { name, type } of batch?.cells ?? []) types.set(name, type);
  return [...types]
    .map(([name, type]) => {
      const own = batch?.cells.find((column) => column.name === name);
      const builder = new VectorBuilder(type, plan.length);
      for (const cells of plan.cells) {
        if (cells < 0) builder.append(own ? cellAt(own.vector, type, -1 - cells) : null);
        else builder.append(storedCell(table!, cells, name, type));
      }
      return { name, type, vector: builder.build() };
    })
    .filter((column) => column.vector.kind !== 'null');
}

/** A stored cell under the column's type of now, which an earlier entry of the same append may just have widened. */
function storedCell(table: StoredVersions, row: number, name: string, type: ColumnType): Cell {
  const cell = table.cellOf(row, name);
  return type === 'number' && typeof cell === 'bigint' ? Number(cell) : cell;
}

function boundVector(bounds: readonly (bigint | null)[]): Vector {
  const builder = new VectorBuilder('timestamp', Math.max(1, bounds.length));
  for (const bound of bounds) builder.append(bound);
  return builder.build();
}

function keyColumns(length: number, keys: Vector, from: Vector, to: Vector): RowBatch {
  return {
    length,
    columns: [
      { name: '_pk', type: 'string', vector: keys },
      { name: 'valid_from', type: 'timestamp', vector: from },
      { name: 'valid_to', type: 'timestamp', vector: to },
    ],
  };
}

function openVersions(table: StoredVersions, newest: number): OpenVersion[] {
  return table.openVersions(newest).map((row) => ({
    position: table.positionOf(row),
    from: table.validFromOf(row),
    to: table.validToOf(row),
    cells: row,
  }));
}

function newestOf(table: StoredVersions, path: number, key: string): number {
  return path < 0 ? NO_ROW : table.newestOf(path, key);
}

function outcomeOf(
  kind: Outcome['kind'],
  body: RowsBody,
  at: NextPlace,
  rejected: number,
  errors: readonly RowRejection[],
  idsMax: number = outcomeLimits.idsListed,
): Decision['outcome'] {
  const idsListed = Math.min(idsMax, outcomeLimits.idsListed);
  const keys = body.keys.columns[0]!.vector;
  assert(keys.kind === 'text', 'keys are text');
  const ids: string[] = [];
  let accepted = 0;
  for (let row = 0; row < body.ops.length; row++) {
    if (body.ops[row] === rowOp.remainder) continue;
    accepted++;
    if (ids.length < idsListed) ids.push(decoder.decode(keys.heap.subarray(keys.offsets[row]!, keys.offsets[row + 1]!)));
  }
  return {
    kind,
    accepted,
    rejected,
    errors,
    ids,
    idsTruncated: accepted > ids.length,
    systemFrom: at.time,
    systemFromLast: at.time + BigInt(body.ops.length - 1),
    changed: true,
  };
}

function listed(keys: readonly string[]): { ids: readonly string[]; idsTruncated: boolean } {
  return { ids: keys.slice(0, outcomeLimits.idsListed), idsTruncated: keys.length > outcomeLimits.idsListed };
}

function refuseClassified(type: string): void {
  if (classifiedTypes.has(type)) throw new ServiceError('REL_HUMINT', 'classified type');
}

function unknownType(type: string): ServiceError {
  return new ServiceError('REL_UNKNOWN_TYPE', `no type ${JSON.stringify(type.slice(0, limits.identifierLength))}`);
}
