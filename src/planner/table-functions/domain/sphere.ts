/** Places on the sphere: distances between them, and an index that finds those within one. Pure. */
import { forEachInSteps, sortInSteps, type Steps, stepsAtOnce } from '../../graph/stepped-sort.ts';

/** Metres: the mean radius of WGS 84. */
const earthRadiusMetres = 6_371_008.8;
const radiansPerDegree = Math.PI / 180;

/** Metres by haversine; degrees in. */
export function metresBetween(lat: number, lon: number, otherLat: number, otherLon: number): number {
  const latHalfSine = Math.sin(((otherLat - lat) * radiansPerDegree) / 2);
  const lonHalfSine = Math.sin(((otherLon - lon) * radiansPerDegree) / 2);
  const haversine =
    latHalfSine * latHalfSine +
    Math.cos(lat * radiansPerDegree) * Math.cos(otherLat * radiansPerDegree) * lonHalfSine * lonHalfSine;
  return 2 * earthRadiusMetres * Math.asin(Math.sqrt(Math.min(1, haversine)));
}

/** No more than the metres between two places on these latitudes; a little less, for rounding. */
export function metresApart(lat: number, otherLat: number): number {
  return earthRadiusMetres * radiansPerDegree * Math.abs(otherLat - lat) * (1 - 1e-9);
}

export function isCoordinate(lat: number | null, lon: number | null): boolean {
  return lat !== null && lon !== null && Math.abs(lat) <= 90 && Math.abs(lon) <= 180;
}

/** Is given a point's number, its distance in metres, and its place in the index. */
type TakePoint = (point: number, distance: number, sorted: number) => void;

const latitudeBandDegrees = 0.01;
const latitudeBandCount = Math.round(180 / latitudeBandDegrees) + 1;

/** Points in bands of latitude, each in the order of longitude: what lies near is read without jumps. */
export class SphereIndex {
  /** By place. */
  readonly lats: Float64Array;
  readonly lons: Float64Array;
  /** Numbers of points, by place. */
  readonly points: Int32Array;
  /** The place at which a band begins. */
  readonly #begins: Int32Array;

  private constructor(lats: Float64Array, lons: Float64Array, points: Int32Array, bandBegins: Int32Array) {
    this.lats = lats;
    this.lons = lons;
    this.points = points;
    this.#begins = bandBegins;
  }

  static *build(lats: Float64Array, lons: Float64Array): Steps<SphereIndex> {
    const count = lats.length;
    const bandBegins = new Int32Array(latitudeBandCount + 1);
    yield* forEachInSteps(count, (i) => bandBegins[latitudeBandOf(lats[i]!) + 1]!++);
    for (let latitudeBand = 0; latitudeBand < latitudeBandCount; latitudeBand++)
      bandBegins[latitudeBand + 1]! += bandBegins[latitudeBand]!;
    const nextInBand = bandBegins.slice();
    const placePoints = new Int32Array(count);
    yield* forEachInSteps(count, (i) => (placePoints[nextInBand[latitudeBandOf(lats[i]!)]!++] = i));
    for (let band = 0; band < latitudeBandCount; band++) {
      const [bandBegin, bandEnd] = [bandBegins[band]!, bandBegins[band + 1]!];
      if (bandEnd - bandBegin < 2) continue;
      placePoints.set(
        yield* sortInSteps(placePoints.subarray(bandBegin, bandEnd), (a, b) => lons[a]! - lons[b]! || a - b),
        bandBegin,
      );
    }
    const [latByPlace, lonByPlace] = [new Float64Array(count), new Float64Array(count)];
    yield* forEachInSteps(count, (point) => {
      latByPlace[point] = lats[placePoints[point]!]!;
      lonByPlace[point] = lons[placePoints[point]!]!;
    });
    return new SphereIndex(latByPlace, lonByPlace, placePoints, bandBegins);
  }

  get bytes(): number {
    return this.lats.byteLength + this.lons.byteLength + this.points.byteLength + this.#begins.byteLength;
  }

  /** Calls `takePoint` with every point within this distance in metres, the rim included. Yields the number of points looked at. */
  *pointsWithin(lat: number, lon: number, radiusMetres: number, takePoint: TakePoint): Steps<number> {
    // A little more than the radius: the rim must not be lost to rounding.
    const centralAngle = Math.min(Math.PI, (radiusMetres / earthRadiusMetres) * (1 + 1e-9) + 1e-12);
    const [southLat, northLat] = [lat - centralAngle / radiansPerDegree, lat + centralAngle / radiansPerDegree];
    const isRadiusAtPole = southLat <= -90 || northLat >= 90;
    const lonWidth = isRadiusAtPole
      ? 180
      : Math.asin(Math.min(1, Math.sin(Math.min(centralAngle, Math.PI / 2)) / Math.cos(lat * radiansPerDegree))) /
        radiansPerDegree;
    const lonRanges = longitudeRangesOf(lon, lonWidth + 1e-9);
    const { lats, lons, points } = this;
    let lookedPoints = 0;
    for (
      let latitudeBand = latitudeBandOf(Math.max(-90, southLat));
      latitudeBand <= latitudeBandOf(Math.min(90, northLat));
      latitudeBand++
    ) {
      const bandEnd = this.#begins[latitudeBand + 1]!;
      if (this.#begins[latitudeBand] === bandEnd) continue;
      for (const [westLon, eastLon] of lonRanges) {
        for (let i = this.#first(latitudeBand, westLon); i < bandEnd && lons[i]! <= eastLon; i++) {
          if (++lookedPoints % stepsAtOnce === 0) yield;
          if (lats[i]! < southLat || lats[i]! > northLat) continue;
          const pointMetres = metresBetween(lat, lon, lats[i]!, lons[i]!);
          if (pointMetres <= radiusMetres) takePoint(points[i]!, pointMetres, i);
        }
      }
    }
    return lookedPoints;
  }

  /** The first point of a band from a longitude on. */
  #first(latitudeBand: number, westLon: number): number {
    let lowPlace = this.#begins[latitudeBand]!;
    let highPlace = this.#begins[latitudeBand + 1]!;
    while (lowPlace < highPlace) {
      const middlePlace = (lowPlace + highPlace) >> 1;
      if (this.lons[middlePlace]! < westLon) lowPlace = middlePlace + 1;
      else highPlace = middlePlace;
    }
    return lowPlace;
  }
}

function latitudeBandOf(lat: number): number {
  return Math.floor((lat + 90) / latitudeBandDegrees);
}

/** One range of longitudes, or the two on both sides of the antimeridian. */
function longitudeRangesOf(lon: number, lonWidth: number): readonly (readonly [number, number])[] {
  if (lonWidth >= 180) return [[-180, 180]];
  const [westLon, eastLon] = [lon - lonWidth, lon + lonWidth];
  if (westLon < -180)
    return [
      [-180, eastLon],
      [westLon + 360, 180],
    ];
  if (eastLon > 180)
    return [
      [-180, eastLon - 360],
      [westLon, 180],
    ];
  // The antimeridian has two names.
  return westLon === -180 || eastLon === 180
    ? [
        [westLon, eastLon],
        [-westLon, -westLon],
        [-eastLon, -eastLon],
      ]
    : [[westLon, eastLon]];
}
