/** Builds the provenance entry of a stored version. Source: specification, "Provenance entry". */
import { rowOp } from '../../../log/entries/entry.ts';
import type { RowProvenance } from '../../access-paths.ts';
import { LineageTable } from '../tables/lineage-table.ts';
import type { ScanSource } from './scan-source.ts';
import { NO_ROW } from '../segments/segment.ts';
import type { StoredVersions } from '../cells/stored-versions.ts';

export function provenanceOf(scanSource: ScanSource, systemFrom: bigint, paths?: readonly number[]): RowProvenance | undefined {
  const { layers, timeline, basis } = scanSource;
  const versionPosition = timeline.positionAt(systemFrom);
  if (versionPosition < 0 || versionPosition >= basis) return undefined;
  // The one table that holds the position; each branch has its own changes of the row.
  const tableLayer = layers.findLast(({ table }) => table.rowAt(versionPosition) !== NO_ROW);
  if (!tableLayer) return undefined;
  const { table, inherited } = tableLayer;
  const lineageVersions =
    layers.length === 1 && !inherited ? table : new LineageTable(layers, scanSource.types ?? (() => undefined), []);
  const provenanceRow = table.rowAt(versionPosition);
  const provenanceSegment = table.segmentOf(provenanceRow);
  const rowInSegment = provenanceRow & 0xffff;
  const provenanceVersion = lineageVersions instanceof LineageTable ? lineageVersions.versionAt(versionPosition) : provenanceRow;
  if (
    provenanceVersion === NO_ROW ||
    provenanceSegment.isRemoved(rowInSegment) ||
    (paths && !paths.includes(provenanceSegment.paths.codeAt(rowInSegment)))
  )
    return undefined;
  const {
    source: statedSource,
    method,
    confidence,
    derivedFrom,
  } = table.provenances()[provenanceSegment.provenances.codeAt(rowInSegment)]!;
  const supersededVersion = derivedFrom === null ? supersededVersionOf(lineageVersions, provenanceVersion) : NO_ROW;
  return {
    source: statedSource,
    method,
    confidence,
    recordedAt: systemFrom,
    derivedFrom:
      supersededVersion === NO_ROW
        ? derivedFrom
        : timeline.timeOf(lineageVersions.positionOf(supersededVersion)).toString(16).padStart(16, '0'),
  };
}

/** The version that this one took the place of; for a remainder, the one that it is left over from. */
function supersededVersionOf(versions: StoredVersions, version: number): number {
  const isRemainder = versions.opOf(version) === rowOp.remainder;
  const validFrom = versions.validFromOf(version);
  const validTo = versions.validToOf(version);
  let supersededAt = versions.positionOf(version);
  for (const olderVersion of versions.allVersions(version).slice(1)) {
    if (isRemainder) {
      // The put that overlapped stands between a remainder and what it is left over from, and did the closing.
      if (versions.opOf(olderVersion) !== rowOp.remainder && supersededAt === versions.positionOf(version)) {
        supersededAt = versions.positionOf(olderVersion);
        continue;
      }
      if (
        versions.closingOf(olderVersion) === supersededAt &&
        versions.validFromOf(olderVersion) <= validFrom &&
        validTo <= versions.validToOf(olderVersion)
      )
        return olderVersion;
    } else if (versions.closingOf(olderVersion) === supersededAt) return olderVersion;
  }
  return NO_ROW;
}
