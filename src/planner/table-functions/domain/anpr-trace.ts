/** ANPR_TRACE: where a car was seen, leg by leg. Source: specification, "SQL dialect", the table of operators. */
import { parseZonedInstant } from '../../../log/values/timestamp.ts';
import { compareText } from '../../../log/values/value.ts';
import { mapInSteps, sortItemsInSteps, type Steps } from '../../graph/stepped-sort.ts';
import type { TableFunction } from '../../calls/table-function.ts';
import { type DomainCall, domainFunction, type DomainRow } from './domain-function.ts';
import { isCoordinate, metresBetween } from './sphere.ts';

export const anprTrace: TableFunction = domainFunction({
  name: 'ANPR_TRACE',
  summary: 'Sightings of a number plate in the order of time, each with the way from the one before.',
  method: 'plates/1',
  arguments: [
    { name: 'PLATE', kind: 'text', required: true, summary: 'the plate; spaces, dashes and case say nothing' },
    { name: 'FROM', kind: 'text', summary: 'the earliest instant, such as 2024-03-01T00:00:00Z' },
    { name: 'TO', kind: 'text', summary: 'the first instant that is too late' },
    { name: 'FUZZY', kind: 'boolean', summary: 'O and 0, I and 1, B and 8, S and 5, Z and 2 are the same; false by default' },
  ],
  roles: [{ role: 'sighting' }],
  columns: [
    { name: 'leg', type: 'integer' },
    { name: 'plate', type: 'string' },
    { name: 'at', type: 'timestamp' },
    { name: 'lat', type: 'number' },
    { name: 'lon', type: 'number' },
    { name: 'distance_m', type: 'number' },
    { name: 'seconds', type: 'number' },
    { name: 'kmh', type: 'number' },
    { name: 'implausible', type: 'boolean' },
  ],
  isOrdered: true,
  run: tracePlate,
});

/** A car that is faster was not one car: somebody cloned its plate. */
const plausibleKmhMax = 250;

interface PlateSighting {
  readonly nodeId: string | null;
  readonly type: string;
  readonly plate: string;
  readonly at: bigint;
  readonly lat: number;
  readonly lon: number;
  readonly systemFrom: bigint | null;
}

function* tracePlate(plateCall: DomainCall): Steps<readonly DomainRow[]> {
  const isFuzzy = plateCall.boolean('FUZZY') ?? false;
  const soughtPlate = normalizedPlate(plateCall.text('PLATE')!, isFuzzy);
  const [sightingsFrom, sightingsTo] = [sightingInstant(plateCall, 'FROM'), sightingInstant(plateCall, 'TO')];
  const plateSightings: PlateSighting[] = [];
  yield* plateCall.rows('sighting', ['subject', 'lat', 'lon', 'at'], (sightingBatch) => {
    for (let sightingRowId = 0; sightingRowId < sightingBatch.count; sightingRowId++) {
      const sightedPlate = sightingBatch.text('subject', sightingRowId);
      if (sightedPlate === null || normalizedPlate(sightedPlate, isFuzzy) !== soughtPlate) continue;
      const [sightedAt, lat, lon] = [
        sightingBatch.instant('at', sightingRowId) ?? sightingBatch.instant('valid_from', sightingRowId),
        sightingBatch.number('lat', sightingRowId),
        sightingBatch.number('lon', sightingRowId),
      ];
      if (sightedAt === null || !isCoordinate(lat, lon)) continue;
      if ((sightingsFrom !== null && sightedAt < sightingsFrom) || (sightingsTo !== null && sightedAt >= sightingsTo)) continue;
      const { type } = sightingBatch;
      plateSightings.push({
        nodeId: sightingBatch.nodeId(sightingRowId),
        type,
        plate: sightedPlate,
        at: sightedAt,
        lat: lat!,
        lon: lon!,
        systemFrom: sightingBatch.systemFrom(sightingRowId),
      });
    }
    plateCall.hold(plateSightings.length * 256);
  });
  const orderedSightings = yield* sortItemsInSteps(plateSightings, (a, b) =>
    a.at < b.at ? -1 : a.at > b.at ? 1 : compareText(a.nodeId ?? '', b.nodeId ?? ''),
  );
  return yield* mapInSteps(orderedSightings, (plateSighting, i) => sightingRow(plateSighting, orderedSightings[i - 1], i));
}

function sightingRow(
  { nodeId, type, plate, at, lat, lon, systemFrom }: PlateSighting,
  sightingBefore: PlateSighting | undefined,
  legOrdinal: number,
): DomainRow {
  if (sightingBefore === undefined) {
    const sightingCells = [0n, plate, at, lat, lon, null, null, null, null];
    return { nodeId, type, cells: sightingCells, score: 1, evidence: { from: null }, systemFrom };
  }
  const legMetres = metresBetween(sightingBefore.lat, sightingBefore.lon, lat, lon);
  const legSeconds = Number(at - sightingBefore.at) / 1e9;
  const legKmh = legSeconds > 0 ? (legMetres / legSeconds) * 3.6 : null;
  // In two places at once: no speed is enough.
  const isLegImplausible = legKmh === null ? legMetres > sameSpotMetres : legKmh > plausibleKmhMax;
  return {
    nodeId,
    type,
    cells: [BigInt(legOrdinal), plate, at, lat, lon, legMetres, legSeconds, legKmh, isLegImplausible],
    score: isLegImplausible ? 0 : 1,
    evidence: { from: sightingBefore.nodeId, kmh_max: plausibleKmhMax },
    systemFrom,
  };
}

/** Two cameras at one place. */
const sameSpotMetres = 100;

const plateLookalikes: ReadonlyMap<string, string> = new Map([
  ['O', '0'],
  ['I', '1'],
  ['B', '8'],
  ['S', '5'],
  ['Z', '2'],
]);

function normalizedPlate(plateText: string, isFuzzy: boolean): string {
  const plainPlate = plateText
    .normalize('NFKC')
    .toUpperCase()
    .replaceAll(/[^\p{L}\p{N}]/gu, '');
  return isFuzzy ? plainPlate.replaceAll(/[OIBSZ]/g, (plateLetter) => plateLookalikes.get(plateLetter)!) : plainPlate;
}

function sightingInstant(plateCall: DomainCall, name: string): bigint | null {
  const instantText = plateCall.text(name);
  if (instantText === undefined) return null;
  try {
    return parseZonedInstant(instantText);
  } catch {
    throw plateCall.refuse(name, 'is an instant, such as 2024-03-01T00:00:00Z');
  }
}
