/**
 * Finds rows that may not be written, one by one, before any is. The row check of governance is applied to each row as it would
 * be stored, and to the versions that it supersedes, ends or removes. All refusals have one wording: they must not reveal a row
 * under a key that the caller may not see.
 */
import type { NamedColumn, Vector } from '../../../log/values/columns.ts';
import type { TypeDefinition } from '../../../log/entries/entry.ts';
import type { NextPosition } from '../../../log/log-store.ts';
import { FOREVER } from '../../../log/values/timestamp.ts';
import { systemColumns } from '../../../log/values/value.ts';
import { cellAt, VectorBuilder } from '../../../log/values/vector-builder.ts';
import type { RowReader, TimeBounds } from '../../access-paths.ts';
import type { RowCheck, RowTest } from '../../decision.ts';
import type { CheckedBatch } from './batch-contract.ts';
import type { TenantRows } from '../tables/tenant-rows.ts';
import type { RejectedRows } from '../cells/rejected-rows.ts';

/** Where rows are about to be written. */
export interface WriteContext {
  /** Organisation path. */
  readonly path: string | null;
  readonly rows: TenantRows;
  readonly at: NextPosition;
}

/** Rows as they would be stored. */
export type StoredRows = Pick<CheckedBatch, 'definition' | 'length' | 'cells' | 'keys' | 'validFrom' | 'validTo'>;

/**
 * Rejects rows that must not be put. `knownType` is the type as it stood before the batch: stored rows read under it. Rows of a patch
 * are checked once they are whole (`testRows`).
 */
export function rejectUnwritable(
  rowCheck: RowCheck,
  batch: CheckedBatch,
  knownType: TypeDefinition | undefined,
  writeContext: WriteContext,
  rejections: RejectedRows,
  isPatch: boolean,
): void {
  const { length } = batch;
  const batchRowTest = rowCheck.testFor(batch.definition);
  if (batchRowTest === 'none') rowCheck.refuse(batch.definition);
  if (batchRowTest !== null && !isPatch) {
    const passingRows = testRows(batchRowTest, batch, writeContext);
    for (let row = 0; row < length; row++) if (passingRows[row] === 0) refuseRow(rejections, row);
  }
  const storedRowTest = knownType === undefined ? null : rowCheck.testFor(knownType);
  if (knownType === undefined || storedRowTest === null) return;
  const batchKeys = Array.from({ length }, (_, row) => cellAt(batch.keys, 'string', row) as string | null);
  const distinctKeys = [...new Set(batchKeys.filter((key) => key !== null))];
  const unwritableKeys = refusedKeys(storedRowTest, knownType.name, distinctKeys, writeContext, 'open');
  if (unwritableKeys.size === 0) return;
  batchKeys.forEach((key, row) => {
    if (key !== null && unwritableKeys.has(key)) refuseRow(rejections, row);
  });
}

/** 1 for each row that passes, as it would be stored. */
export function testRows(rowTest: RowTest, batch: StoredRows, writeContext: WriteContext): Uint8Array {
  const passingRows = new Uint8Array(batch.length);
  const testedColumns = rowTest.columns.map((name) => storedColumn(name, batch, writeContext));
  rowTest.test(testedColumns, null, 0, batch.length, passingRows);
  return passingRows;
}

/** The keys among these with a version that does not pass: an open one, or any at all. */
export function refusedKeys(
  rowTest: RowTest | 'none',
  type: string,
  keys: readonly string[],
  { path, rows, at }: WriteContext,
  versions: 'open' | 'all',
): ReadonlySet<string> {
  const pathCode = rows.scopes.codeOf(path);
  const refusedRowKeys = new Set<string>();
  if (pathCode < 0 || keys.length === 0) return refusedRowKeys;
  const rowReader: RowReader = rows.reader(at.position);
  const time: TimeBounds = { system: versions === 'open' ? at.time : 'all', valid: 'all' };
  const testedColumns = rowTest === 'none' ? [] : rowTest.columns;
  const checkedScan = rowReader.scan({ type, columns: [...testedColumns, '_pk'], time, keys, paths: [pathCode] });
  for (let scannedBlock = checkedScan.next(); scannedBlock.done !== true; scannedBlock = checkedScan.next()) {
    const { columns, selection, first, count } = scannedBlock.value;
    const passingRows = new Uint8Array(count);
    if (rowTest !== 'none') rowTest.test(columns.slice(0, testedColumns.length), selection, first, count, passingRows);
    for (let k = 0; k < count; k++) {
      if (passingRows[k] === 1) continue;
      refusedRowKeys.add(
        String(cellAt(columns[testedColumns.length]!, 'string', selection === null ? first + k : selection[k]!)),
      );
    }
  }
  return refusedRowKeys;
}

function refuseRow(rejections: RejectedRows, row: number): void {
  rejections.add(row, 'REL_ACL', notPermitted);
}

export const notPermitted = 'no policy permits writing this row';

/** As a reader will find it, once the row is stored. */
export function storedColumn(name: string, batch: StoredRows, { path, at }: Pick<WriteContext, 'path' | 'at'>): Vector {
  const { length, keys, validFrom, validTo } = batch;
  const batchColumn = batch.cells.find((column) => column.name === name);
  const instantVector = (bounds: Vector, unbounded: (row: number) => bigint): Vector => {
    const instantBuilder = new VectorBuilder('timestamp', Math.max(1, length));
    for (let row = 0; row < length; row++) instantBuilder.append(cellAt(bounds, 'timestamp', row) ?? unbounded(row));
    return instantBuilder.build();
  };
  const instantOfRow = (row: number): bigint => at.time + BigInt(row);
  switch (name as keyof typeof systemColumns) {
    case '_pk':
      return keys;
    case 'id':
      return Object.hasOwn(batch.definition.properties, 'id')
        ? (batchColumn?.vector ?? { kind: 'null' })
        : storedIdsOf(batchColumn, batch);
    case 'namespace_path':
      return repeatText(path, length);
    case 'tenant_id':
      return repeatText(path === null ? null : path.split('/', 1)[0]!, length);
    case 'valid_from':
      return instantVector(validFrom, instantOfRow);
    case 'valid_to':
      return instantVector(validTo, () => FOREVER);
    case 'system_from':
      return instantVector({ kind: 'null' }, instantOfRow);
    case 'system_to':
      return instantVector({ kind: 'null' }, () => FOREVER);
    default:
      return batchColumn?.vector ?? { kind: 'null' };
  }
}

/** Without a declared id: the one that was sent, else the key. */
function storedIdsOf(idColumn: NamedColumn | undefined, { keys, length }: StoredRows): Vector {
  if (idColumn === undefined) return keys;
  if (idColumn.vector.kind !== 'null' && !idColumn.vector.nulls) return idColumn.vector;
  const idBuilder = new VectorBuilder('string', Math.max(1, length));
  for (let row = 0; row < length; row++) {
    idBuilder.append(cellAt(idColumn.vector, 'string', row) ?? cellAt(keys, 'string', row));
  }
  return idBuilder.build();
}

function repeatText(repeatedText: string | null, length: number): Vector {
  if (repeatedText === null) return { kind: 'null' };
  const repeatedBuilder = new VectorBuilder('string', Math.max(1, length));
  for (let row = 0; row < length; row++) repeatedBuilder.appendString(repeatedText);
  return repeatedBuilder.build();
}
