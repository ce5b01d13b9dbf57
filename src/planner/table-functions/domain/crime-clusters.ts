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
  run: crimeClusters,
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

function* crimeClusters(clusterCall: DomainCall): Steps<readonly DomainRow[]> {
  const incidentKind = clusterCall.text('KIND')?.toLowerCase();
  const clusterOptions: ClusterOptions = {
    metres: clusterCall.number('EPS_M', 500),
    days: clusterCall.number('EPS_DAYS', 14),
    pointsMin: clusterCall.number('MIN_POINTS', 3),
    similarity: clusterCall.number('MO_SIMILARITY', 0.2),
  };
  const incidentsRead: Incident[] = [];
  yield* clusterCall.rows('incident', ['kind', 'lat', 'lon', 'at', 'mo'], (incidentBatch) => {
    for (let incidentRow = 0; incidentRow < incidentBatch.count; incidentRow++) {
      const [incidentId, lat, lon, incidentAt] = [
        incidentBatch.nodeId(incidentRow),
        incidentBatch.number('lat', incidentRow),
        incidentBatch.number('lon', incidentRow),
        incidentBatch.instant('at', incidentRow),
      ];
      if (incidentId === null || incidentAt === null || !isCoordinate(lat, lon)) continue;
      if (incidentKind !== undefined && incidentBatch.text('kind', incidentRow)?.toLowerCase() !== incidentKind) continue;
      const moWords = plainWords(incidentBatch.text('mo', incidentRow) ?? '');
      incidentsRead.push({
        id: incidentId,
        type: incidentBatch.type,
        lat: lat!,
        lon: lon!,
        at: incidentAt,
        words: moWords,
        systemFrom: incidentBatch.systemFrom(incidentRow),
      });
    }
    clusterCall.hold(incidentsRead.length * 512);
  });
  // Which cluster a rim belongs to depends on the order: that of ids.
  const orderedIncidents = yield* sortItemsInSteps(
    incidentsRead,
    (a, b) => compareText(a.id, b.id) || compareText(a.type, b.type),
  );
  const {
    clusterOf,
    isCore,
    near: nearCounts,
  } = yield* clusterIncidents(orderedIncidents, clusterOptions, (count) => clusterCall.look(count));
  const clusterSizes = new Map<number, number>();
  for (const clusterId of clusterOf) if (clusterId >= 0) clusterSizes.set(clusterId, (clusterSizes.get(clusterId) ?? 0) + 1);
  const clusterMembers = Array.from(orderedIncidents.keys()).filter((i) => clusterOf[i]! >= 0);
  return yield* mapInSteps(clusterMembers, (i): DomainRow => {
    const { id: incidentId, type, systemFrom } = orderedIncidents[i]!;
    const cluster = clusterOf[i]!;
    const clusterSize = clusterSizes.get(cluster)!;
    const clusterEvidence = {
      near: nearCounts[i]!,
      eps_m: clusterOptions.metres,
      eps_days: clusterOptions.days,
      min_points: clusterOptions.pointsMin,
    };
    const clusterScore = Math.min(1, nearCounts[i]! / (2 * clusterOptions.pointsMin));
    return {
      nodeId: incidentId,
      type,
      cells: [orderedIncidents[cluster]!.id, isCore[i] === 1, BigInt(clusterSize)],
      score: clusterScore,
      evidence: clusterEvidence,
      systemFrom,
    };
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
  clusterOptions: ClusterOptions,
  countLooks: (incidentCount: number) => void,
): Steps<Clustered> {
  const incidentCount = incidents.length;
  const incidentIndex = yield* SphereIndex.build(
    Float64Array.from(incidents, ({ lat }) => lat),
    Float64Array.from(incidents, ({ lon }) => lon),
  );
  const clusterNearNs = BigInt(Math.round(clusterOptions.days * 86_400_000)) * 1_000_000n;
  function* nearOf(i: number): Steps<readonly number[]> {
    const centreIncident = incidents[i]!;
    const clusterOf: number[] = [];
    const lookedPlaces = yield* incidentIndex.pointsWithin(centreIncident.lat, centreIncident.lon, clusterOptions.metres, (j) => {
      const candidateIncident = incidents[j]!;
      const apartNs =
        centreIncident.at < candidateIncident.at
          ? candidateIncident.at - centreIncident.at
          : centreIncident.at - candidateIncident.at;
      if (
        i === j ||
        (apartNs <= clusterNearNs && hasOneWayOfActing(centreIncident, candidateIncident, clusterOptions.similarity))
      )
        clusterOf.push(j);
    });
    countLooks(lookedPlaces * 5 + 1);
    return clusterOf;
  }
  const nearCounts = new Int32Array(incidentCount);
  for (let i = 0; i < incidentCount; i++) {
    nearCounts[i] = (yield* nearOf(i)).length;
    yield;
  }
  const isCore = Uint8Array.from(nearCounts, (nearPoints) => (nearPoints >= clusterOptions.pointsMin ? 1 : 0));
  const clusterOf = new Int32Array(incidentCount).fill(-1);
  for (let seedIncident = 0; seedIncident < incidentCount; seedIncident++) {
    if (isCore[seedIncident] === 0 || clusterOf[seedIncident]! >= 0) continue;
    const clusterMembers = [seedIncident];
    clusterOf[seedIncident] = seedIncident;
    for (let memberOrdinal = 0; memberOrdinal < clusterMembers.length; memberOrdinal++) {
      const clusterMember = clusterMembers[memberOrdinal]!;
      if (isCore[clusterMember] === 0) continue;
      for (const nearIncident of yield* nearOf(clusterMember)) {
        if (clusterOf[nearIncident]! >= 0) continue;
        clusterOf[nearIncident] = seedIncident;
        clusterMembers.push(nearIncident);
      }
      yield;
    }
    // The smallest member names the cluster; a rim may have a smaller number than every core.
    const leastIncident = clusterMembers.reduce((least, clusterMember) => Math.min(least, clusterMember), seedIncident);
    for (const member of clusterMembers) clusterOf[member] = leastIncident;
  }
  return { clusterOf, isCore, near: nearCounts };
}

/** Where one of the two says nothing of how it was done, place and time decide. */
function hasOneWayOfActing(oneIncident: Incident, otherIncident: Incident, moSimilarity: number): boolean {
  if (oneIncident.words.size === 0 || otherIncident.words.size === 0) return true;
  return jaccard(oneIncident.words, otherIncident.words) >= moSimilarity;
}
