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
  run: trace,
});

/** A car that is faster was not one car: somebody cloned its plate. */
const kmhMax = 250;

interface Seen {
  readonly nodeId: string | null;
  readonly type: string;
  readonly plate: string;
  readonly at: bigint;
  readonly lat: number;
  readonly lon: number;
  readonly systemFrom: bigint | null;
}

function* trace(call: DomainCall): Steps<readonly DomainRow[]> {
  const isFuzzy = call.boolean('FUZZY') ?? false;
  const plate = plateOf(call.text('PLATE')!, isFuzzy);
  const [from, to] = [instantOf(call, 'FROM'), instantOf(call, 'TO')];
  const seen: Seen[] = [];
  yield* call.rows('sighting', ['subject', 'lat', 'lon', 'at'], (batch) => {
    for (let row = 0; row < batch.count; row++) {
      const subject = batch.text('subject', row);
      if (subject === null || plateOf(subject, isFuzzy) !== plate) continue;
      const [at, lat, lon] = [
        batch.instant('at', row) ?? batch.instant('valid_from', row),
        batch.number('lat', row),
        batch.number('lon', row),
      ];
      if (at === null || !isCoordinate(lat, lon)) continue;
      if ((from !== null && at < from) || (to !== null && at >= to)) continue;
      const { type } = batch;
      seen.push({ nodeId: batch.nodeId(row), type, plate: subject, at, lat: lat!, lon: lon!, systemFrom: batch.systemFrom(row) });
    }
    call.hold(seen.length * 256);
  });
  const inOrder = yield* sortItemsInSteps(seen, (a, b) =>
    a.at < b.at ? -1 : a.at > b.at ? 1 : compareText(a.nodeId ?? '', b.nodeId ?? ''),
  );
  return yield* mapInSteps(inOrder, (each, i) => rowOf(each, inOrder[i - 1], i));
}

function rowOf({ nodeId, type, plate, at, lat, lon, systemFrom }: Seen, before: Seen | undefined, leg: number): DomainRow {
  if (before === undefined) {
    const cells = [0n, plate, at, lat, lon, null, null, null, null];
    return { nodeId, type, cells, score: 1, evidence: { from: null }, systemFrom };
  }
  const distance = metresBetween(before.lat, before.lon, lat, lon);
  const seconds = Number(at - before.at) / 1e9;
  const kmh = seconds > 0 ? (distance / seconds) * 3.6 : null;
  // In two places at once: no speed is enough.
  const isImplausible = kmh === null ? distance > sameSpotMetres : kmh > kmhMax;
  return {
    nodeId,
    type,
    cells: [BigInt(leg), plate, at, lat, lon, distance, seconds, kmh, isImplausible],
    score: isImplausible ? 0 : 1,
    evidence: { from: before.nodeId, kmh_max: kmhMax },
    systemFrom,
  };
}

/** Two cameras at one place. */
const sameSpotMetres = 100;

const lookalikes: ReadonlyMap<string, string> = new Map([
  ['O', '0'],
  ['I', '1'],
  ['B', '8'],
  ['S', '5'],
  ['Z', '2'],
]);

function plateOf(text: string, isFuzzy: boolean): string {
  const plain = text
    .normalize('NFKC')
    .toUpperCase()
    .replaceAll(/[^\p{L}\p{N}]/gu, '');
  return isFuzzy ? plain.replaceAll(/[OIBSZ]/g, (letter) => lookalikes.get(letter)!) : plain;
}

function instantOf(call: DomainCall, name: string): bigint | null {
  const text = call.text(name);
  if (text === undefined) return null;
  try {
    return parseZonedInstant(text);
  } catch {
    throw call.refuse(name, 'is an instant, such as 2024-03-01T00:00:00Z');
  }
}
