/** Where a stored version came from. Source: specification, "Provenance entry". */
import { rowOp } from '../../log/entry.ts';
import type { RowProvenance } from '../access-paths.ts';
import type { ScanSource } from './scan.ts';
import { NO_ROW } from './segment.ts';
import type { Table } from './table.ts';

export function provenanceOf(source: ScanSource, systemFrom: bigint, paths?: readonly number[]): RowProvenance | undefined {
  const { table, timeline, basis } = source;
  const position = timeline.positionAt(systemFrom);
  if (!table || position < 0 || position >= basis) return undefined;
  const row = table.rowAt(position);
  if (row === NO_ROW) return undefined;
  const segment = table.segmentOf(row);
  const at = row & 0xffff;
  if (segment.isRemoved(at) || (paths && !paths.includes(segment.paths.at(at)))) return undefined;
  const { source: origin, method, confidence, derivedFrom } = table.provenances()[segment.provenances.at(at)]!;
  const parent = derivedFrom === null ? supersededBy(table, row) : NO_ROW;
  return {
    source: origin,
    method,
    confidence,
    recordedAt: systemFrom,
    derivedFrom: parent === NO_ROW ? derivedFrom : timeline.timeOf(table.positionOf(parent)).toString(16).padStart(16, '0'),
  };
}

/** The version that this one took the place of; for a remainder, the one that it is left over from. */
function supersededBy(table: Table, row: number): number {
  const isRemainder = table.segmentOf(row).ops.at(row & 0xffff) === rowOp.remainder;
  const from = table.validFromOf(row);
  const to = table.validToOf(row);
  let position = table.positionOf(row);
  for (const older of table.allVersions(row).slice(1)) {
    const segment = table.segmentOf(older);
    if (isRemainder) {
      // The put that overlapped stands between a remainder and what it is left over from, and did the closing.
      if (segment.ops.at(older & 0xffff) !== rowOp.remainder && position === table.positionOf(row)) {
        position = table.positionOf(older);
        continue;
      }
      if (segment.closingOf(older & 0xffff) === position && table.validFromOf(older) <= from && to <= table.validToOf(older))
        return older;
    } else if (segment.closingOf(older & 0xffff) === position) return older;
  }
  return NO_ROW;
}
