/** GEOFENCE: what is within a distance of a place. Source: specification, "SQL dialect", the table of operators. */
import { sortItemsInSteps, type Steps } from '../../graph/steps.ts';
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
  readonly versions: BigInt64Array;
  readonly lats: Float64Array;
  readonly lons: Float64Array;
  readonly index: PlaceIndex;
}

function* within(call: DomainCall): Steps<readonly DomainRow[]> {
  const [lat, lon, radius] = [call.number('LAT', 0), call.number('LON', 0), call.number('RADIUS_M', 0)];
  const { types, typeOf, nodes, versions, lats, lons, index } = yield* call.kept('places', placed, () => readPlaces(call));
  const found: { readonly point: number; readonly distance: number }[] = [];
  call.look(yield* index.within(lat, lon, radius, (point, distance) => found.push({ point, distance })));
  call.hold(found.length * 256);
  const inOrder = yield* sortItemsInSteps(
    found,
    (a, b) => a.distance - b.distance || compareNodes(nodes[a.point]!, nodes[b.point]!) || a.point - b.point,
  );
  const evidence = { radius_m: radius };
  return inOrder.map(({ point, distance }) => ({
    nodeId: nodes[point]!,
    type: types[typeOf[point]!]!,
    cells: [lats[point]!, lons[point]!, distance],
    score: radius === 0 ? 1 : 1 - distance / radius,
    evidence,
    systemFrom: versions[point]!,
  }));
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
  const versions: bigint[] = [];
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
        versions.push(batch.systemFrom(row) ?? 0n);
        lats.push(lat!);
        lons.push(lon!);
      }
      call.hold(nodes.length * bytesPerPlace);
    });
  }
  const [sorted, across] = [Float64Array.from(lats), Float64Array.from(lons)];
  const index = yield* PlaceIndex.of(sorted, across);
  const value: Placed = {
    types,
    typeOf: Uint16Array.from(typeOf),
    nodes,
    versions: BigInt64Array.from(versions),
    lats: sorted,
    lons: across,
    index,
  };
  return { value, bytes: nodes.length * bytesPerPlace };
}
