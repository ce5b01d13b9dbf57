/** Places on the sphere: distances between them, and an index that finds those within one. Pure. */
import type { Steps } from '../../graph/steps.ts';

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

export function isPlace(lat: number | null, lon: number | null): boolean {
  return lat !== null && lon !== null && Math.abs(lat) <= 90 && Math.abs(lon) <= 180;
}

/** Is given a point's number, its distance in metres, and where it is: beside its neighbours it is read without jumps. */
type Take = (point: number, distance: number, lat: number, lon: number) => void;

/** For one turn. */
const pointsAtOnce = 1 << 14;

const bandDegrees = 0.01;
const bands = Math.round(180 / bandDegrees) + 1;

/** Points in bands of latitude, each in the order of longitude. */
export class PlaceIndex {
  readonly #lats: Float64Array;
  readonly #lons: Float64Array;
  /** Numbers of points, band after band. */
  readonly #order: Int32Array;
  /** Where in `#order` a band begins. */
  readonly #begins: Int32Array;

  private constructor(lats: Float64Array, lons: Float64Array, order: Int32Array, begins: Int32Array) {
    this.#lats = lats;
    this.#lons = lons;
    this.#order = order;
    this.#begins = begins;
  }

  static *of(lats: Float64Array, lons: Float64Array): Steps<PlaceIndex> {
    const begins = new Int32Array(bands + 1);
    for (const lat of lats) begins[bandOf(lat) + 1]!++;
    for (let band = 0; band < bands; band++) begins[band + 1]! += begins[band]!;
    const next = begins.slice();
    const order = new Int32Array(lats.length);
    for (let i = 0; i < lats.length; i++) order[next[bandOf(lats[i]!)]!++] = i;
    yield;
    let sorted = 0;
    for (let band = 0; band < bands; band++) {
      const [begin, end] = [begins[band]!, begins[band + 1]!];
      if (end - begin > 1) order.subarray(begin, end).sort((a, b) => lons[a]! - lons[b]! || a - b);
      sorted += end - begin;
      if (sorted < pointsAtOnce) continue;
      sorted = 0;
      yield;
    }
    // Side by side in that order: a band is read without jumps.
    const byBand = (values: Float64Array): Float64Array => Float64Array.from(order, (i) => values[i]!);
    return new PlaceIndex(byBand(lats), byBand(lons), order, begins);
  }

  get bytes(): number {
    return this.#lats.byteLength + this.#lons.byteLength + this.#order.byteLength + this.#begins.byteLength;
  }

  /** Hands every point within so many metres, the rim included, to `take`. Gives how many were looked at. */
  *within(lat: number, lon: number, metres: number, take: Take): Steps<number> {
    // A little more than the radius: the rim must not be lost to rounding.
    const angle = Math.min(Math.PI, (metres / radius) * (1 + 1e-9) + 1e-12);
    const [south, north] = [lat - angle / radians, lat + angle / radians];
    const isAtPole = south <= -90 || north >= 90;
    const width = isAtPole
      ? 180
      : Math.asin(Math.min(1, Math.sin(Math.min(angle, Math.PI / 2)) / Math.cos(lat * radians))) / radians;
    let looked = 0;
    let pause = pointsAtOnce;
    for (let band = bandOf(Math.max(-90, south)); band <= bandOf(Math.min(90, north)); band++) {
      if (this.#begins[band] === this.#begins[band + 1]) continue;
      if (looked > pause) {
        pause = looked + pointsAtOnce;
        yield;
      }
      for (const [west, east] of rangesOf(lon, width + 1e-9)) {
        for (let i = this.#first(band, west); i < this.#begins[band + 1]! && this.#lons[i]! <= east; i++) {
          looked++;
          const distance = metresBetween(lat, lon, this.#lats[i]!, this.#lons[i]!);
          if (distance <= metres) take(this.#order[i]!, distance, this.#lats[i]!, this.#lons[i]!);
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
      if (this.#lons[middle]! < west) low = middle + 1;
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
