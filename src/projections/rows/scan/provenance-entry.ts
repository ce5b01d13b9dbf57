/** Builds the provenance entry of a stored version. Source: specification, "Provenance entry". */
import { rowOp } from '../../../log/entries/entry.ts';
import type { RowProvenance } from '../../access-paths.ts';
import { LineageTable } from '../tables/lineage-table.ts';
import type { ScanSource } from './scan-source.ts';
import { NO_ROW } from '../segments/segment.ts';
import type { StoredVersions } from '../cells/stored-versions.ts';

export function provenanceOf(source: ScanSource, systemFrom: bigint, paths?: readonly number[]): RowProvenance | undefined {
  const { layers, timeline, basis } = source;
  const position = timeline.positionAt(systemFrom);
  if (position < 0 || position >= basis) return undefined;
  // The one table that holds the position; each branch has its own changes of the row.
  const layer = layers.findLast(({ table }) => table.rowAt(position) !== NO_ROW);
  if (!layer) return undefined;
  const { table, inherited } = layer;
  const versions = layers.length === 1 && !inherited ? table : new LineageTable(layers, source.types ?? (() => undefined), []);
  const row = table.rowAt(position);
  const segment = table.segmentOf(row);
  const at = row & 0xffff;
  const version = versions instanceof LineageTable ? versions.versionAt(position) : row;
  if (version === NO_ROW || segment.isRemoved(at) || (paths && !paths.includes(segment.paths.codeAt(at)))) return undefined;
  const { source: origin, method, confidence, derivedFrom } = table.provenances()[segment.provenances.codeAt(at)]!;
  const parent = derivedFrom === null ? supersededBy(versions, version) : NO_ROW;
  return {
    source: origin,
    method,
    confidence,
    recordedAt: systemFrom,
    derivedFrom: parent === NO_ROW ? derivedFrom : timeline.timeOf(versions.positionOf(parent)).toString(16).padStart(16, '0'),
  };
}

/** The version that this one took the place of; for a remainder, the one that it is left over from. */
function supersededBy(versions: StoredVersions, version: number): number {
  const isRemainder = versions.opOf(version) === rowOp.remainder;
  const from = versions.validFromOf(version);
  const to = versions.validToOf(version);
  let position = versions.positionOf(version);
  for (const older of versions.allVersions(version).slice(1)) {
    if (isRemainder) {
      // The put that overlapped stands between a remainder and what it is left over from, and did the closing.
      if (versions.opOf(older) !== rowOp.remainder && position === versions.positionOf(version)) {
        position = versions.positionOf(older);
        continue;
      }
      if (versions.closingOf(older) === position && versions.validFromOf(older) <= from && to <= versions.validToOf(older))
        return older;
    } else if (versions.closingOf(older) === position) return older;
  }
  return NO_ROW;
}
