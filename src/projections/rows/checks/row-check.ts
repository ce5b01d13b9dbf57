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
 * Rejects rows that must not be put. `known` is the type as it stood before the batch: stored rows read under it. Rows of a patch
 * are checked once they are whole (`testRows`).
 */
export function rejectUnwritable(
  check: RowCheck,
  batch: CheckedBatch,
  known: TypeDefinition | undefined,
  writeContext: WriteContext,
  rejections: RejectedRows,
  isPatch: boolean,
): void {
  const { length } = batch;
  const test = check.testFor(batch.definition);
  if (test === 'none') check.refuse(batch.definition);
  if (test !== null && !isPatch) {
    const passes = testRows(test, batch, writeContext);
    for (let row = 0; row < length; row++) if (passes[row] === 0) refuse(rejections, row);
  }
  const ofStored = known === undefined ? null : check.testFor(known);
  if (known === undefined || ofStored === null) return;
  const keys = Array.from({ length }, (_, row) => cellAt(batch.keys, 'string', row) as string | null);
  const distinct = [...new Set(keys.filter((key) => key !== null))];
  const held = refusedKeys(ofStored, known.name, distinct, writeContext, 'open');
  if (held.size === 0) return;
  keys.forEach((key, row) => {
    if (key !== null && held.has(key)) refuse(rejections, row);
  });
}

/** 1 for each row that passes, as it would be stored. */
export function testRows(test: RowTest, batch: StoredRows, writeContext: WriteContext): Uint8Array {
  const passes = new Uint8Array(batch.length);
  const columns = test.columns.map((name) => storedColumn(name, batch, writeContext));
  test.test(columns, null, 0, batch.length, passes);
  return passes;
}

/** The keys among these with a version that does not pass: an open one, or any at all. */
export function refusedKeys(
  test: RowTest | 'none',
  type: string,
  keys: readonly string[],
  { path, rows, at }: WriteContext,
  versions: 'open' | 'all',
): ReadonlySet<string> {
  const code = rows.scopes.codeOf(path);
  const refused = new Set<string>();
  if (code < 0 || keys.length === 0) return refused;
  const reader: RowReader = rows.reader(at.position);
  const time: TimeBounds = { system: versions === 'open' ? at.time : 'all', valid: 'all' };
  const asked = test === 'none' ? [] : test.columns;
  const scan = reader.scan({ type, columns: [...asked, '_pk'], time, keys, paths: [code] });
  for (let step = scan.next(); step.done !== true; step = scan.next()) {
    const { columns, selection, first, count } = step.value;
    const passes = new Uint8Array(count);
    if (test !== 'none') test.test(columns.slice(0, asked.length), selection, first, count, passes);
    for (let k = 0; k < count; k++) {
      if (passes[k] === 1) continue;
      refused.add(String(cellAt(columns[asked.length]!, 'string', selection === null ? first + k : selection[k]!)));
    }
  }
  return refused;
}

function refuse(rejections: RejectedRows, row: number): void {
  rejections.add(row, 'REL_ACL', notPermitted);
}

export const notPermitted = 'no policy permits writing this row';

/** As a reader will find it, once the row is stored. */
export function storedColumn(name: string, batch: StoredRows, { path, at }: Pick<WriteContext, 'path' | 'at'>): Vector {
  const { length, keys, validFrom, validTo } = batch;
  const own = batch.cells.find((column) => column.name === name);
  const instants = (bounds: Vector, unbounded: (row: number) => bigint): Vector => {
    const builder = new VectorBuilder('timestamp', Math.max(1, length));
    for (let row = 0; row < length; row++) builder.append(cellAt(bounds, 'timestamp', row) ?? unbounded(row));
    return builder.build();
  };
  const fromNow = (row: number): bigint => at.time + BigInt(row);
  switch (name as keyof typeof systemColumns) {
    case '_pk':
      return keys;
    case 'id':
      return Object.hasOwn(batch.definition.properties, 'id') ? (own?.vector ?? { kind: 'null' }) : idsOf(own, batch);
    case 'namespace_path':
      return repeatText(path, length);
    case 'tenant_id':
      return repeatText(path === null ? null : path.split('/', 1)[0]!, length);
    case 'valid_from':
      return instants(validFrom, fromNow);
    case 'valid_to':
      return instants(validTo, () => FOREVER);
    case 'system_from':
      return instants({ kind: 'null' }, fromNow);
    case 'system_to':
      return instants({ kind: 'null' }, () => FOREVER);
    default:
      return own?.vector ?? { kind: 'null' };
  }
}

/** Without a declared id: the one that was sent, else the key. */
function idsOf(own: NamedColumn | undefined, { keys, length }: StoredRows): Vector {
  if (own === undefined) return keys;
  if (own.vector.kind !== 'null' && !own.vector.nulls) return own.vector;
  const builder = new VectorBuilder('string', Math.max(1, length));
  for (let row = 0; row < length; row++) {
    builder.append(cellAt(own.vector, 'string', row) ?? cellAt(keys, 'string', row));
  }
  return builder.build();
}

function repeatText(text: string | null, length: number): Vector {
  if (text === null) return { kind: 'null' };
  const builder = new VectorBuilder('string', Math.max(1, length));
  for (let row = 0; row < length; row++) builder.appendString(text);
  return builder.build();
}
