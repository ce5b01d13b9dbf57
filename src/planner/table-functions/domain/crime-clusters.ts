/** CRIME_PATTERN_CLUSTER: incidents that belong together. Source: specification, "SQL dialect", the table of operators. */
import { compareText } from '../../../log/values/value.ts';
import { mapInSteps, sortItemsInSteps, type Steps } from '../../graph/stepped-sort.ts';
import type { TableFunction } from '../../calls/table-function.ts';
import { type DomainCall, domainFunction, type DomainRow } from './domain-function.ts';
import { plainWords } from './names/name-features.ts';
import { jaccard } from './names/name-score.ts';
import { isCoordinate, SphereIndex } from './sphere.ts';

export const crimePatternCluster: TableFunction = domainFunction({
  name: 'CRIME_PATTERN_CLUSTER',
  summary: 'Incidents that are near to others in place, time and way of acting (ST-DBSCAN); what stands alone is left out.',
  method: 'st-dbscan/1',
  arguments: [
    { name: 'KIND', kind: 'text', summary: 'kind of the incidents; every kind by default' },
    { name: 'EPS_M', kind: 'number', least: 0, summary: 'metres within which two are near; 500 by default' },
    { name: 'EPS_DAYS', kind: 'number', least: 0, summary: 'days within which two are near; 14 by default' },
    {
      name: 'MIN_POINTS',
      kind: 'integer',
      least: 1,
      summary: 'incidents, itself among them, that a core has near it; 3 by default',
    },
    {
      name: 'MO_SIMILARITY',
      kind: 'number',
      least: 0,
      most: 1,
      summary: 'share of words that the `mo` of two have in common; 0.2 by default',
    },
  ],
  roles: [{ role: 'incident' }],
  columns: [
    { name: 'cluster', type: 'string' },
    { name: 'core', type: 'boolean' },
    { name: 'size', type: 'integer' },
  ],
  run: clusters,
});

export interface Incident {
  readonly id: string;
  readonly type: string;
  readonly lat: number;
  readonly lon: number;
  readonly at: bigint;
  readonly words: ReadonlySet<string>;
  readonly systemFrom: bigint | null;
}

export interface ClusterOptions {
  readonly metres: number;
  readonly days: number;
  readonly pointsMin: number;
  readonly similarity: number;
}

function* clusters(call: DomainCall): Steps<readonly DomainRow[]> {
  const kind = call.text('KIND')?.toLowerCase();
  const options: ClusterOptions = {
    metres: call.number('EPS_M', 500),
    days: call.number('EPS_DAYS', 14),
    pointsMin: call.number('MIN_POINTS', 3),
    similarity: call.number('MO_SIMILARITY', 0.2),
  };
  const read: Incident[] = [];
  yield* call.rows('incident', ['kind', 'lat', 'lon', 'at', 'mo'], (batch) => {
    for (let row = 0; row < batch.count; row++) {
      const [id, lat, lon, at] = [
        batch.nodeId(row),
        batch.number('lat', row),
        batch.number('lon', row),
        batch.instant('at', row),
      ];
      if (id === null || at === null || !isCoordinate(lat, lon)) continue;
      if (kind !== undefined && batch.text('kind', row)?.toLowerCase() !== kind) continue;
      const words = plainWords(batch.text('mo', row) ?? '');
      read.push({ id, type: batch.type, lat: lat!, lon: lon!, at, words, systemFrom: batch.systemFrom(row) });
    }
    call.hold(read.length * 512);
  });
  // Which cluster a rim belongs to depends on the order: that of ids.
  const incidents = yield* sortItemsInSteps(read, (a, b) => compareText(a.id, b.id) || compareText(a.type, b.type));
  const { clusterOf, isCore, near } = yield* clusterIncidents(incidents, options, (count) => call.look(count));
  const sizes = new Map<number, number>();
  for (const cluster of clusterOf) if (cluster >= 0) sizes.set(cluster, (sizes.get(cluster) ?? 0) + 1);
  const members = Array.from(incidents.keys()).filter((i) => clusterOf[i]! >= 0);
  return yield* mapInSteps(members, (i): DomainRow => {
    const { id, type, systemFrom } = incidents[i]!;
    const cluster = clusterOf[i]!;
    const size = sizes.get(cluster)!;
    const evidence = { near: near[i]!, eps_m: options.metres, eps_days: options.days, min_points: options.pointsMin };
    const score = Math.min(1, near[i]! / (2 * options.pointsMin));
    return { nodeId: id, type, cells: [incidents[cluster]!.id, isCore[i] === 1, BigInt(size)], score, evidence, systemFrom };
  });
}

export interface Clustered {
  /** Number of the smallest member of its cluster; -1: none. */
  readonly clusterOf: Int32Array;
  readonly isCore: Uint8Array;
  /** How many are near it, itself among them. */
  readonly near: Int32Array;
}

export function* clusterIncidents(
  incidents: readonly Incident[],
  options: ClusterOptions,
  look: (count: number) => void,
): Steps<Clustered> {
  const count = incidents.length;
  const index = yield* SphereIndex.build(
    Float64Array.from(incidents, ({ lat }) => lat),
    Float64Array.from(incidents, ({ lon }) => lon),
  );
  const nearNs = BigInt(Math.round(options.days * 86_400_000)) * 1_000_000n;
  function* nearOf(i: number): Steps<readonly number[]> {
    const one = incidents[i]!;
    const clusterOf: number[] = [];
    const looked = yield* index.pointsWithin(one.lat, one.lon, options.metres, (j) => {
      const other = incidents[j]!;
      const apart = one.at < other.at ? other.at - one.at : one.at - other.at;
      if (i === j || (apart <= nearNs && isOneWay(one, other, options.similarity))) clusterOf.push(j);
    });
    look(looked * 5 + 1);
    return clusterOf;
  }
  const near = new Int32Array(count);
  for (let i = 0; i < count; i++) {
    near[i] = (yield* nearOf(i)).length;
    yield;
  }
  const isCore = Uint8Array.from(near, (points) => (points >= options.pointsMin ? 1 : 0));
  const clusterOf = new Int32Array(count).fill(-1);
  for (let first = 0; first < count; first++) {
    if (isCore[first] === 0 || clusterOf[first]! >= 0) continue;
    const members = [first];
    clusterOf[first] = first;
    for (let next = 0; next < members.length; next++) {
      const member = members[next]!;
      if (isCore[member] === 0) continue;
      for (const other of yield* nearOf(member)) {
        if (clusterOf[other]! >= 0) continue;
        clusterOf[other] = first;
        members.push(other);
      }
      yield;
    }
    // The smallest member names the cluster; a rim may have a smaller number than every core.
    const smallest = members.reduce((least, member) => Math.min(least, member), first);
    for (const member of members) clusterOf[member] = smallest;
  }
  return { clusterOf, isCore, near };
}

/** Where one of the two says nothing of how it was done, place and time decide. */
function isOneWay(one: Incident, other: Incident, similarity: number): boolean {
  if (one.words.size === 0 || other.words.size === 0) return true;
  return jaccard(one.words, other.words) >= similarity;
}
