/** GEOFENCE: what is within a distance of a place. Source: specification, "SQL dialect", the table of operators. */
import { sortInSteps, type Steps } from '../../graph/steps.ts';
import { compareText } from '../../../log/values/value.ts';
import type { TableFunction } from '../../calls/table-function.ts';
import { type DomainCall, domainFunction, type DomainRow } from './domain-function.ts';
import { isPlace, PlaceIndex } from './places.ts';

const placed = ['incident', 'sighting', 'unit'] as const;

export const geofence: TableFunction = domainFunction({
  name: 'GEOFENCE',
  summary: 'Sightings, incidents and units within a distance of a place, nearest first; the rim belongs to it.',
  method: 'haversine/1',
  arguments: [
    { name: 'LAT', kind: 'number', required: true, least: -90, most: 90, summary: 'latitude of the middle, in degrees' },
    { name: 'LON', kind: 'number', required: true, least: -180, most: 180, summary: 'longitude of the middle, in degrees' },
    { name: 'RADIUS_M', kind: 'number', required: true, least: 0, summary: 'radius in metres' },
  ],
  roles: placed.map((role) => ({ role })),
  areAlternatives: true,
  columns: [
    { name: 'lat', type: 'number' },
    { name: 'lon', type: 'number' },
    { name: 'distance_m', type: 'number' },
  ],
  isOrdered: true,
  run: within,
});

interface Placed {
  readonly types: readonly string[];
  readonly typeOf: Uint16Array;
  readonly nodes: readonly (string | null)[];
  readonly index: PlaceIndex;
}

function* within(call: DomainCall): Steps<readonly DomainRow[]> {
  const [lat, lon, radius] = [call.number('LAT', 0), call.number('LON', 0), call.number('RADIUS_M', 0)];
  const { types, typeOf, nodes, index } = yield* call.kept('places', placed, () => readPlaces(call));
  const points: number[] = [];
  const distances: number[] = [];
  const cells: (readonly number[])[] = [];
  const looked = yield* index.within(lat, lon, radius, (point, distance, north, east) => {
    points.push(point);
    distances.push(distance);
    cells.push([north, east, distance]);
  });
  call.look(looked);
  call.hold(points.length * 256);
  const inOrder = yield* sortInSteps(
    Int32Array.from(points.keys()),
    (a, b) => distances[a]! - distances[b]! || compareNodes(nodes[points[a]!]!, nodes[points[b]!]!) || points[a]! - points[b]!,
  );
  const evidence = { radius_m: radius };
  const rows: DomainRow[] = [];
  for (const found of inOrder) {
    const [point, distance] = [points[found]!, distances[found]!];
    rows.push({
      nodeId: nodes[point]!,
      type: types[typeOf[point]!]!,
      cells: cells[found]!,
      score: radius === 0 ? 1 : 1 - distance / radius,
      evidence,
    });
  }
  return rows;
}

function compareNodes(left: string | null, right: string | null): number {
  if (left === null || right === null) return left === right ? 0 : left === null ? 1 : -1;
  return compareText(left, right);
}

const bytesPerPlace = 96;

function* readPlaces(call: DomainCall): Steps<{ readonly value: Placed; readonly bytes: number }> {
  const types: string[] = [];
  const typeOf: number[] = [];
  const nodes: (string | null)[] = [];
  const lats: number[] = [];
  const lons: number[] = [];
  for (const role of placed) {
    yield* call.rows(role, ['lat', 'lon'], (batch) => {
      if (types.at(-1) !== batch.type) types.push(batch.type);
      for (let row = 0; row < batch.count; row++) {
        const [lat, lon] = [batch.number('lat', row), batch.number('lon', row)];
        if (!isPlace(lat, lon)) continue;
        typeOf.push(types.length - 1);
        nodes.push(batch.nodeId(row));
        lats.push(lat!);
        lons.push(lon!);
      }
      call.hold(nodes.length * bytesPerPlace);
    });
  }
  const index = yield* PlaceIndex.of(Float64Array.from(lats), Float64Array.from(lons));
  const value: Placed = { types, typeOf: Uint16Array.from(typeOf), nodes, index };
  return { value, bytes: nodes.length * bytesPerPlace };
}
