/** Canonical dump of a table into a hash: versions in position order, cells by column name, whatever the layout. */
import { assert, unreachable } from '../../errors.ts';
import type { Vector } from '../../log/columns.ts';
import { FOREVER } from '../../log/timestamp.ts';
import type { Timeline } from '../../log/timeline.ts';
import { type ColumnType, compareText } from '../../log/value.ts';
import type { CanonicalHash } from '../canonical-hash.ts';
import { ByteDictionary } from './byte-dictionary.ts';
import type { Overlay } from './overlay.ts';
import type { Scopes } from './scopes.ts';
import type { Segment } from './segment.ts';
import type { Table } from './table.ts';

const NEVER_CLOSED = -1;
const SAFE = 9_007_199_254_740_991n;
const encoder = new TextEncoder();

/** `afterSegment` is called where no view of a column is held. */
export function hashTable(
  hash: CanonicalHash,
  table: Table,
  scopes: Scopes,
  timeline: Timeline,
  afterSegment: () => void = () => undefined,
): void {
  const names = [...table.columnTypes().keys()].sort(compareText).map((name) => ({ name, bytes: encoder.encode(name) }));
  // Each is one text, made once: rows share them.
  const paths = scopes.paths().map((path) => encoder.encode(JSON.stringify(path)));
  const provenances = table
    .provenances()
    .map(({ source, method, confidence, derivedFrom }) =>
      encoder.encode(JSON.stringify([source, method, confidence, derivedFrom])),
    );
  hash.text(table.type);
  for (const segment of table.segments) {
    hashSegment(hash, segment, names, paths, provenances, timeline);
    afterSegment();
  }
}

/** What a branch changed about an inherited table, by position. Rows that were removed since leave nothing. */
export function hashOverlay(hash: CanonicalHash, table: Table, overlay: Overlay): void {
  hash.text(table.type);
  for (const [row, closing] of overlay.entries()) {
    if (table.segmentOf(row).isRemoved(row & 0xffff)) continue;
    hash.number(table.positionOf(row));
    hash.number(closing);
  }
}

function hashSegment(
  hash: CanonicalHash,
  segment: Segment,
  names: readonly { name: string; bytes: Uint8Array }[],
  paths: readonly Uint8Array[],
  provenances: readonly Uint8Array[],
  timeline: Timeline,
): void {
  const { keys, length } = segment;
  const columns = names.flatMap(({ name, bytes }) => {
    const column = segment.column(name);
    return column ? [{ bytes, type: column.type, vector: column.vector(length) }] : [];
  });
  let from = segment.validFrom;
  if (!from) timeline.writeTimes((from = new BigInt64Array(length)), segment, null, 0, length, false);
  for (let row = 0; row < length; row++) {
    if (segment.isRemoved(row)) continue;
    hash.number(segment.positionOf(row));
    hash.bytes(paths[segment.paths.at(row)]!);
    hash.range(keys.heap, keys.offsets[row]!, keys.offsets[row + 1]!);
    hash.i64(from[row]!);
    hash.i64(segment.validTo ? segment.validTo[row]! : FOREVER);
    const closing = segment.closingOf(row);
    hash.number(closing === Infinity ? NEVER_CLOSED : closing);
    hash.byte(segment.ops.at(row));
    hash.bytes(provenances[segment.provenances.at(row)]!);
    for (const { bytes, type, vector } of columns) hashCell(hash, bytes, vector, type, row);
  }
}

/** A column that a row has no value in leaves nothing: it may not even exist in another layout. */
function hashCell(hash: CanonicalHash, name: Uint8Array, vector: Vector, type: ColumnType, row: number): void {
  if (vector.kind === 'null' || vector.nulls?.[row] === 1) return;
  hash.bytes(name);
  switch (vector.kind) {
    case 'text':
      hash.range(vector.heap, vector.offsets[row]!, vector.offsets[row + 1]!);
      return;
    case 'dict':
      assert(vector.dictionary instanceof ByteDictionary, 'stored codes have a dictionary of bytes');
      hash.bytes(vector.dictionary.bytesOf(vector.values[row]!));
      return;
    case 'bool':
      hash.byte(vector.values[row]!);
      return;
    case 'vec':
      hash.number(vector.dims);
      for (let i = row * vector.dims; i < (row + 1) * vector.dims; i++) hash.number(vector.values[i]!);
      return;
    case 'i32':
    case 'f64':
      hash.number(vector.values[row]!);
      return;
    case 'i64': {
      // An integer may rest in any of three widths: what a double holds is written as one.
      const value = vector.values[row]!;
      if (type === 'timestamp' || value > SAFE || value < -SAFE) hash.i64(value);
      else hash.number(Number(value));
      return;
    }
    default:
      unreachable(vector);
  }
}
