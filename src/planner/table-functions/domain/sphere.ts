/** Places on the sphere: distances between them, and an index that finds those within one. Pure. */
import { forEachInSteps, sortInSteps, type Steps, stepsAtOnce } from '../../graph/stepped-sort.ts';

/** Metres: the mean radius of WGS 84. */
const radius = 6_371_008.8;
const radians = Math.PI / 180;

/** Metres by haversine; degrees in. */
export function metresBetween(lat: number, lon: number, otherLat: number, otherLon: number): number {
  const byLat = Math.sin(((otherLat - lat) * radians) / 2);
  const byLon = Math.sin(((otherLon - lon) * radians) / 2);
  const half = byLat * byLat + Math.cos(lat * radians) * Math.cos(otherLat * radians) * byLon * byLon;
  return 2 * radius * Math.asin(Math.sqrt(Math.min(1, half)));
}

/** No more than the metres between two places on these latitudes; a little less, for rounding. */
export function metresApart(lat: number, otherLat: number): number {
  return radius * radians * Math.abs(otherLat - lat) * (1 - 1e-9);
}

export function isCoordinate(lat: number | null, lon: number | null): boolean {
  return lat !== null && lon !== null && Math.abs(lat) <= 90 && Math.abs(lon) <= 180;
}

/** Is given a point's number, its distance in metres, and its place in the index. */
type Take = (point: number, distance: number, sorted: number) => void;

const bandDegrees = 0.01;
const bands = Math.round(180 / bandDegrees) + 1;

/** Points in bands of latitude, each in the order of longitude: what lies near is read without jumps. */
export class SphereIndex {
  /** By place. */
  readonly lats: Float64Array;
  readonly lons: Float64Array;
  /** Numbers of points, by place. */
  readonly points: Int32Array;
  /** The place at which a band begins. */
  readonly #begins: Int32Array;

  private constructor(lats: Float64Array, lons: Float64Array, points: Int32Array, begins: Int32Array) {
    this.lats = lats;
    this.lons = lons;
    this.points = points;
    this.#begins = begins;
  }

  static *build(lats: Float64Array, lons: Float64Array): Steps<SphereIndex> {
    const count = lats.length;
    const begins = new Int32Array(bands + 1);
    yield* forEachInSteps(count, (i) => begins[bandOf(lats[i]!) + 1]!++);
    for (let band = 0; band < bands; band++) begins[band + 1]! += begins[band]!;
    const next = begins.slice();
    const points = new Int32Array(count);
    yield* forEachInSteps(count, (i) => (points[next[bandOf(lats[i]!)]!++] = i));
    for (let band = 0; band < bands; band++) {
      const [begin, end] = [begins[band]!, begins[band + 1]!];
      if (end - begin < 2) continue;
      points.set(yield* sortInSteps(points.subarray(begin, end), (a, b) => lons[a]! - lons[b]! || a - b), begin);
    }
    const [byPlace, eastByPlace] = [new Float64Array(count), new Float64Array(count)];
    yield* forEachInSteps(count, (point) => {
      byPlace[point] = lats[points[point]!]!;
      eastByPlace[point] = lons[points[point]!]!;
    });
    return new SphereIndex(byPlace, eastByPlace, points, begins);
  }

  get bytes(): number {
    return this.lats.byteLength + this.lons.byteLength + this.points.byteLength + this.#begins.byteLength;
  }

  /** Calls `take` with every point within this distance in metres, the rim included. Yields the number of points looked at. */
  *pointsWithin(lat: number, lon: number, metres: number, take: Take): Steps<number> {
    // A little more than the radius: the rim must not be lost to rounding.
    const angle = Math.min(Math.PI, (metres / radius) * (1 + 1e-9) + 1e-12);
    const [south, north] = [lat - angle / radians, lat + angle / radians];
    const isAtPole = south <= -90 || north >= 90;
    const width = isAtPole
      ? 180
      : Math.asin(Math.min(1, Math.sin(Math.min(angle, Math.PI / 2)) / Math.cos(lat * radians))) / radians;
    const ranges = rangesOf(lon, width + 1e-9);
    const { lats, lons, points } = this;
    let looked = 0;
    for (let band = bandOf(Math.max(-90, south)); band <= bandOf(Math.min(90, north)); band++) {
      const end = this.#begins[band + 1]!;
      if (this.#begins[band] === end) continue;
      for (const [west, east] of ranges) {
        for (let i = this.#first(band, west); i < end && lons[i]! <= east; i++) {
          if (++looked % stepsAtOnce === 0) yield;
          if (lats[i]! < south || lats[i]! > north) continue;
          const distance = metresBetween(lat, lon, lats[i]!, lons[i]!);
          if (distance <= metres) take(points[i]!, distance, i);
        }
      }
    }
    return looked;
  }

  /** The first point of a band from a longitude on. */
  #first(band: number, west: number): number {
    let low = this.#begins[band]!;
    let high = this.#begins[band + 1]!;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.lons[middle]! < west) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function bandOf(lat: number): number {
  return Math.floor((lat + 90) / bandDegrees);
}

/** One range of longitudes, or the two on both sides of the antimeridian. */
function rangesOf(lon: number, width: number): readonly (readonly [number, number])[] {
  if (width >= 180) return [[-180, 180]];
  const [west, east] = [lon - width, lon + width];
  if (west < -180)
    return [
      [-180, east],
      [west + 360, 180],
    ];
  if (east > 180)
    return [
      [-180, east - 360],
      [west, 180],
    ];
  // The antimeridian has two names.
  return west === -180 || east === 180
    ? [
        [west, east],
        [-west, -west],
        [-east, -east],
      ]
    : [[west, east]];
}
