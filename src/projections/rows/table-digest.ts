/** Canonical dump of a table into a hash: versions in position order, cells by column name, whatever the layout. */
import { rowOp } from '../../log/entry.ts';
import { cellAt } from '../../log/vector-builder.ts';
import { type Cell, compareText } from '../../log/value.ts';
import type { CanonicalHash } from '../canonical-hash.ts';
import type { Scopes } from './scopes.ts';
import type { Table } from './table.ts';

const NEVER_CLOSED = -1;

export function hashTable(hash: CanonicalHash, table: Table, scopes: Scopes): void {
  const names = [...table.columnTypes().keys()].sort(compareText);
  hash.text(table.type);
  for (const segment of table.segments) {
    const keys = segment.keys;
    const columns = names.flatMap((name) => {
      const column = segment.column(name);
      return column ? [{ name, type: column.type, vector: column.vector(segment.length) }] : [];
    });
    for (let row = 0; row < segment.length; row++) {
      if (segment.isRemoved(row)) continue;
      hash.number(segment.positionOf(row));
      hash.value(scopes.path(segment.paths.at(row)));
      hash.bytes(keys.heap.subarray(keys.offsets[row]!, keys.offsets[row + 1]!));
      hash.i64(table.validFromOf(segment.firstRow + row));
      hash.i64(table.validToOf(segment.firstRow + row));
      const closing = segment.closingOf(row);
      hash.number(closing === Infinity ? NEVER_CLOSED : closing);
      hash.byte(segment.ops.at(row) as (typeof rowOp)[keyof typeof rowOp]);
      const provenance = table.provenances()[segment.provenances.at(row)]!;
      hash.value([provenance.source, provenance.method, provenance.confidence, provenance.derivedFrom]);
      for (const { name, type, vector } of columns) {
        const cell = cellAt(vector, type, row);
        if (cell === null) continue;
        hash.text(name);
        hashCell(hash, cell);
      }
    }
  }
}

function hashCell(hash: CanonicalHash, cell: Exclude<Cell, null>): void {
  if (!(cell instanceof Float32Array)) return hash.value(cell);
  hash.number(cell.length);
  for (const value of cell) hash.number(value);
}
