/** Mistakes that would make a projection drift from the log, or a read show another time than it was asked for. */
import type { Mutant } from '../mutant.ts';

const travel = ['test/projections/rows/scan/time-travel.test.ts'];
const versions = ['test/projections/rows/scan/versions.test.ts'];
const projector = ['test/projections/projector.test.ts'];
const put = ['test/projections/rows/writes/put-rows.test.ts'];
const directory = ['test/projections/directory.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'projections: an entry is applied again after a restore',
    file: 'src/projections/projector.ts',
    find: 'if (projectedEntry.leaf < watchedProjection.watermark) return;',
    replace: 'if (projectedEntry.leaf < watchedProjection.watermark) watchedProjection.watermark = projectedEntry.leaf;',
    killedBy: projector,
  },
  {
    name: 'projections: a closing is skipped',
    file: 'src/projections/rows/tables/table.ts',
    find: 'if (isSuperseded) {',
    replace: 'if (isSuperseded && closedCount > 0) {',
    killedBy: versions,
  },
  {
    name: 'projections: a version is closed one position late',
    file: 'src/projections/rows/tables/table.ts',
    find: 'openSegment.close(openRowInSegment, closingPosition);',
    replace: 'openSegment.close(openRowInSegment, closingPosition + 1);',
    killedBy: travel,
  },
  {
    name: 'projections: a version closed at the bound is already gone',
    file: 'src/projections/rows/scan/version-visibility.ts',
    find: 'Math.min(bound - segment.base, OPEN)',
    replace: 'Math.min(bound - segment.base + 1, OPEN)',
    killedBy: travel,
  },
  {
    name: 'projections: by key, a version closed at the bound is already gone',
    file: 'src/projections/rows/scan/version-visibility.ts',
    find: 'segment.closingOf(row) < (visibility.openOnly',
    replace: 'segment.closingOf(row) <= (visibility.openOnly',
    killedBy: travel,
  },
  {
    name: 'projections: valid_from is exclusive',
    file: 'src/projections/rows/scan/version-visibility.ts',
    find: 'if (selectedBefore < 0) {\n    for (let row = first; row < end; row++) if (validFrom[row]! <= validInstant)',
    replace: 'if (selectedBefore < 0) {\n    for (let row = first; row < end; row++) if (validFrom[row]! < validInstant)',
    killedBy: versions,
  },
  {
    name: 'projections: valid_to is inclusive',
    file: 'src/projections/rows/scan/version-visibility.ts',
    find: 'for (let row = first; row < end; row++) if (validInstant < validTo[row]!)',
    replace: 'for (let row = first; row < end; row++) if (validInstant <= validTo[row]!)',
    killedBy: versions,
  },
  {
    name: 'projections: the bitmap of now answers for a basis before now',
    file: 'src/projections/rows/scan/version-visibility.ts',
    find: 'if (segment.closedMost < bound) {',
    replace: 'if (segment.closedMost < Infinity) {',
    killedBy: travel,
  },
  {
    name: 'projections: the chain of now answers for a basis before now',
    file: 'src/projections/rows/scan/scan.ts',
    find: 'visibility.openOnly && table.positionOf(newestOfKey) < visibility.bound',
    replace: 'visibility.openOnly',
    killedBy: travel,
  },
  {
    name: 'projections: system_to shows what the snapshot does not see',
    file: 'src/projections/rows/scan/block-columns.ts',
    find: 'if (versionClosing >= closingBound) {',
    replace: 'if (versionClosing === Infinity) {',
    killedBy: travel,
  },
  {
    name: 'projections: an update closes what it only touches',
    file: 'src/projections/rows/checks/version-plan.ts',
    find: 'openVersion.from < plannedVersion.to && plannedVersion.from < openVersion.to',
    replace: 'openVersion.from <= plannedVersion.to && plannedVersion.from <= openVersion.to',
    killedBy: versions,
  },
  {
    name: 'projections: what an update leaves uncovered is lost',
    file: 'src/projections/rows/checks/version-plan.ts',
    find: 'if (plannedVersion.to < other.to) leftRemainders.unshift(this.#addRemainder(other, plannedVersion.to, other.to));',
    replace: '',
    killedBy: versions,
  },
  {
    name: 'projections: a delete ends a row before it began',
    file: 'src/projections/rows/checks/version-plan.ts',
    find: 'endedAt < endedVersion.from ? endedVersion.from : endedAt',
    replace: 'endedAt',
    killedBy: versions,
  },
  {
    name: 'projections: two rows of one batch with one key both stay open',
    file: 'src/projections/rows/writes/put-columns.ts',
    find: 'if (keyGroup < knownGroupCount) closes.push(firstPosition.position + latestRowOfGroup[keyGroup]!);',
    replace: 'if (keyGroup < knownGroupCount) closes.push();',
    killedBy: versions,
  },
  {
    name: 'projections: an integer is rounded into a number',
    file: 'src/projections/rows/checks/fit-column.ts',
    find: 'return BigInt(Number(numberCell)) === numberCell ? Number(numberCell) : undefined;',
    replace: 'return Number(numberCell);',
    killedBy: put,
  },
  {
    name: 'projections: a revoked token is still found by its secret',
    file: 'src/projections/tokens/projection.ts',
    find: '    this.#tokenIdsBySecretHash.delete(endedToken.record.secretHash);\n',
    replace: '',
    killedBy: directory,
  },
  {
    name: 'projections: a token lives until just after its expiry',
    file: 'src/projections/tokens/projection.ts',
    find: 'return tokenRecord && instant < tokenRecord.expiresAt ? tokenRecord : undefined;',
    replace: 'return tokenRecord && instant <= tokenRecord.expiresAt ? tokenRecord : undefined;',
    killedBy: directory,
  },
];
