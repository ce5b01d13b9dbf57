/** GEOFENCE: what is within a distance of a place. Source: specification, "SQL dialect", the table of operators. */
import { forEachInSteps, numbersBelow, sortInSteps, type Steps } from '../../graph/stepped-sort.ts';
import type { Vector } from '../../../log/values/columns.ts';
import { VectorBuilder } from '../../../log/values/vector-builder.ts';
import type { TableFunction } from '../../calls/table-function.ts';
import { type DomainCall, type DomainColumns, domainFunction, type DomainVectors, repeatedText } from './domain-function.ts';
import { isCoordinate, SphereIndex } from './sphere.ts';

const fencedRoles = ['incident', 'sighting', 'unit'] as const;

export const geofence: TableFunction = domainFunction({
  name: 'GEOFENCE',
  summary: 'Sightings, incidents and units within a distance of a place, nearest first; the rim belongs to it.',
  method: 'haversine/1',
  arguments: [
    { name: 'LAT', kind: 'number', required: true, least: -90, most: 90, summary: 'latitude of the middle, in degrees' },
    { name: 'LON', kind: 'number', required: true, least: -180, most: 180, summary: 'longitude of the middle, in degrees' },
    { name: 'RADIUS_M', kind: 'number', required: true, least: 0, summary: 'radius in metres' },
  ],
  roles: fencedRoles.map((role) => ({ role })),
  areAlternatives: true,
  columns: [
    { name: 'lat', type: 'number' },
    { name: 'lon', type: 'number' },
    { name: 'distance_m', type: 'number' },
  ],
  isOrdered: true,
  run: rowsInFence,
});

/** By place of the index: what lies near is read without jumps. */
interface PointColumns {
  readonly types: readonly string[];
  readonly typeOf: Uint16Array;
  readonly nodes: NodeTexts;
  readonly index: SphereIndex;
}

interface NodeTexts {
  readonly offsets: Uint32Array;
  readonly heap: Uint8Array;
  readonly nulls: Uint8Array | null;
}

function* rowsInFence(call: DomainCall): Steps<DomainColumns> {
  const [lat, lon, radius] = [call.number('LAT', 0), call.number('LON', 0), call.number('RADIUS_M', 0)];
  const nearby = yield* call.reuse('places', fencedRoles, () => readPoints(call));
  const { index, nodes } = nearby;
  const points: number[] = [];
  const distances: number[] = [];
  const looked = yield* index.pointsWithin(lat, lon, radius, (_, distance, point) => {
    points.push(point);
    distances.push(distance);
  });
  call.look(looked);
  call.hold(points.length * bytesPerFenceHit);
  const order = yield* sortInSteps(
    numbersBelow(points.length),
    (a, b) =>
      distances[a]! - distances[b]! ||
      compareNodeTexts(nodes, points[a]!, points[b]!) ||
      index.points[points[a]!]! - index.points[points[b]!]!,
  );
  const fence = { ...nearby, points, distances, order, radius };
  return { count: order.length, evidence: { radius_m: radius }, vectors: (first, count) => fenceVectors(fence, first, count) };
}

const bytesPerFenceHit = 32;

interface PointsInFence extends PointColumns {
  /** By hit, as they were found. */
  readonly points: readonly number[];
  readonly distances: readonly number[];
  /** Hits, nearest first. */
  readonly order: Int32Array;
  readonly radius: number;
}

function fenceVectors(
  { types, typeOf, nodes, index, points, distances, order: hitOrder, radius }: PointsInFence,
  firstHit: number,
  count: number,
): DomainVectors {
  const hitPlaces = new Int32Array(count);
  const fenceCells = ['lats', 'lons', 'distances'].map(() => new Float64Array(count)) as [
    Float64Array,
    Float64Array,
    Float64Array,
  ];
  const fenceScores = new Float64Array(count);
  for (let fenceRow = 0; fenceRow < count; fenceRow++) {
    const fenceHit = hitOrder[firstHit + fenceRow]!;
    const [point, hitDistance] = [points[fenceHit]!, distances[fenceHit]!];
    hitPlaces[fenceRow] = point;
    fenceCells[0][fenceRow] = index.lats[point]!;
    fenceCells[1][fenceRow] = index.lons[point]!;
    fenceCells[2][fenceRow] = hitDistance;
    fenceScores[fenceRow] = radius === 0 ? 1 : 1 - hitDistance / radius;
  }
  return {
    nodeId: { kind: 'text', ...nodeTextsAt(nodes, hitPlaces) },
    type: typeVectorAt(types, typeOf, hitPlaces),
    cells: fenceCells.map(numberVector),
    score: numberVector(fenceScores),
  };
}

function numberVector(fenceNumbers: Float64Array): Vector {
  return { kind: 'f64', values: fenceNumbers, nulls: null };
}

function typeVectorAt(types: readonly string[], typeOf: Uint16Array, points: Int32Array): Vector {
  const firstPlaceType = typeOf[points[0]!]!;
  if (points.every((point) => typeOf[point] === firstPlaceType)) return repeatedText(types[firstPlaceType]!, points.length);
  const typeBuilder = new VectorBuilder('string', points.length);
  for (const point of points) typeBuilder.appendString(types[typeOf[point]!]!);
  return typeBuilder.build();
}

function nodeTextsAt({ offsets, heap, nulls }: NodeTexts, points: Int32Array): NodeTexts {
  const { length } = points;
  const copiedOffsets = new Uint32Array(length + 1);
  for (let i = 0; i < length; i++) copiedOffsets[i + 1] = copiedOffsets[i]! + offsets[points[i]! + 1]! - offsets[points[i]!]!;
  const copiedHeap = new Uint8Array(copiedOffsets[length]!);
  for (let i = 0; i < length; i++) {
    const nodeTextBegin = offsets[points[i]!]!;
    const [copiedFrom, copiedEnd] = [copiedOffsets[i]!, copiedOffsets[i + 1]!];
    for (let copiedAt = copiedFrom; copiedAt < copiedEnd; copiedAt++)
      copiedHeap[copiedAt] = heap[nodeTextBegin + copiedAt - copiedFrom]!;
  }
  return { offsets: copiedOffsets, heap: copiedHeap, nulls: nulls && Uint8Array.from(points, (point) => nulls[point]!) };
}

/** By bytes of UTF-8, NULL last. */
function compareNodeTexts({ offsets, heap, nulls }: NodeTexts, oneNode: number, otherNode: number): number {
  if (nulls !== null && nulls[oneNode] !== nulls[otherNode]) return nulls[oneNode]! - nulls[otherNode]!;
  const nodeTextBytes = (point: number): Uint8Array => heap.subarray(offsets[point]!, offsets[point + 1]!);
  return Buffer.compare(nodeTextBytes(oneNode), nodeTextBytes(otherNode));
}

const bytesPerPoint = 96;

function* readPoints(call: DomainCall): Steps<{ readonly value: PointColumns; readonly bytes: number }> {
  const types: string[] = [];
  const typeOf: number[] = [];
  const nodes = new VectorBuilder('string');
  const [lats, lons] = [new VectorBuilder('number'), new VectorBuilder('number')];
  for (const role of fencedRoles) {
    yield* call.rows(role, ['lat', 'lon'], (batch) => {
      if (types.at(-1) !== batch.type) types.push(batch.type);
      for (let row = 0; row < batch.count; row++) {
        const [lat, lon] = [batch.number('lat', row), batch.number('lon', row)];
        if (!isCoordinate(lat, lon)) continue;
        typeOf.push(types.length - 1);
        nodes.append(batch.nodeId(row));
        lats.appendNumber(lat!);
        lons.appendNumber(lon!);
      }
      call.hold(typeOf.length * bytesPerPoint);
    });
  }
  const count = typeOf.length;
  const index = yield* SphereIndex.build(builtDoubles(lats), builtDoubles(lons));
  const texts = yield* textsByPoint(nodes.build(), index.points);
  const typeByPlace = new Uint16Array(count);
  yield* forEachInSteps(count, (point) => (typeByPlace[point] = typeOf[index.points[point]!]!));
  const value: PointColumns = { types, typeOf: typeByPlace, nodes: texts, index };
  return { value, bytes: index.bytes + texts.heap.length + 8 * count };
}

function builtDoubles(builder: VectorBuilder): Float64Array {
  const doubleVector = builder.build();
  return doubleVector.kind === 'f64' ? doubleVector.values : new Float64Array(0);
}

/** A masked key is NULL throughout. */
function* textsByPoint(vector: Vector, points: Int32Array): Steps<NodeTexts> {
  const { length } = points;
  if (vector.kind !== 'text')
    return { offsets: new Uint32Array(length + 1), heap: new Uint8Array(0), nulls: new Uint8Array(length).fill(1) };
  const { offsets: from, heap: source, nulls } = vector;
  const offsets = new Uint32Array(length + 1);
  const heap = new Uint8Array(source.length);
  const nullByPlace = nulls && new Uint8Array(length);
  yield* forEachInSteps(length, (point) => {
    const [begin, end, to] = [from[points[point]!]!, from[points[point]! + 1]!, offsets[point]!];
    for (let at = begin; at < end; at++) heap[to + at - begin] = source[at]!;
    offsets[point + 1] = to + end - begin;
    if (nullByPlace) nullByPlace[point] = nulls![points[point]!]!;
  });
  return { offsets, heap, nulls: nullByPlace };
}
