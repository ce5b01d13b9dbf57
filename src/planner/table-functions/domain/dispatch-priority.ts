/** DISPATCH_PRIORITY: which open incident comes first. Source: specification, "SQL dialect", the table of operators. */
import { compareText } from '../../../log/values/value.ts';
import { sortItemsInSteps, type Steps, stepsAtOnce } from '../../graph/stepped-sort.ts';
import type { TableFunction } from '../../calls/table-function.ts';
import { type DomainCall, domainFunction, type DomainRow } from './domain-function.ts';
import { isCoordinate, metresApart, metresBetween } from './sphere.ts';

export const dispatchPriority: TableFunction = domainFunction({
  name: 'DISPATCH_PRIORITY',
  summary: 'Open incidents by how severe they are, how long they have waited, and how near the nearest free unit is.',
  method: 'dispatch/1',
  arguments: [
    { name: 'INCIDENT', kind: 'key', summary: 'id of one incident; every open one by default' },
    { name: 'SEVERITY_WEIGHT', kind: 'number', least: 0, most: 1, summary: 'what severity, from 0 to 1, counts; 0.6 by default' },
    { name: 'WAIT_WEIGHT', kind: 'number', least: 0, most: 1, summary: 'what waiting counts; 0.3 by default' },
    { name: 'NEAR_WEIGHT', kind: 'number', least: 0, most: 1, summary: 'what a unit that is near counts; 0.1 by default' },
    { name: 'TARGET_SECS', kind: 'number', least: 1, summary: 'seconds after which waiting counts whole; 3600 by default' },
    { name: 'SPEED_KMH', kind: 'number', least: 1, summary: 'how fast a unit is, as the crow flies; 40 by default' },
  ],
  roles: [{ role: 'incident' }, { role: 'unit', optional: true }],
  columns: [
    { name: 'unit', type: 'string' },
    { name: 'eta_secs', type: 'number' },
    { name: 'wait_secs', type: 'number' },
  ],
  run: prioritiseIncidents,
});

/** Statuses, in lower case, of incidents that wait for nobody any more, and of units that can be sent. */
const closedStatuses = new Set(['closed', 'resolved', 'cancelled', 'canceled', 'done']);
const freeStatuses = new Set(['free', 'available', 'idle']);

/** At this many metres a unit is half as near as on the spot. */
const nearUnitMetres = 5_000;

interface DispatchUnit {
  readonly id: string;
  readonly lat: number;
  readonly lon: number;
}

interface WaitingIncident {
  readonly nodeId: string | null;
  readonly type: string;
  readonly lat: number | null;
  readonly lon: number | null;
  readonly severity: number | null;
  readonly at: bigint | null;
  readonly systemFrom: bigint | null;
}

function* prioritiseIncidents(dispatchCall: DomainCall): Steps<readonly DomainRow[]> {
  const incidentId = dispatchCall.text('INCIDENT');
  const priorityWeights = {
    severity: dispatchCall.number('SEVERITY_WEIGHT', 0.6),
    wait: dispatchCall.number('WAIT_WEIGHT', 0.3),
    nearness: dispatchCall.number('NEAR_WEIGHT', 0.1),
  };
  const [targetSecs, unitKmh] = [dispatchCall.number('TARGET_SECS', 3_600), dispatchCall.number('SPEED_KMH', 40)];
  const { valid } = dispatchCall.execution.time;
  const dispatchNow = valid === 'all' ? dispatchCall.execution.kernels.instant : valid;
  const freeUnitsFound = yield* freeDispatchUnits(dispatchCall);
  const waitingIncidents: WaitingIncident[] = [];
  yield* dispatchCall.rows(
    'incident',
    ['lat', 'lon', 'at', 'severity', 'status'],
    (incidentBatch) => {
      for (let incidentRow = 0; incidentRow < incidentBatch.count; incidentRow++) {
        if (closedStatuses.has(incidentBatch.text('status', incidentRow)?.toLowerCase() ?? '')) continue;
        waitingIncidents.push({
          nodeId: incidentBatch.nodeId(incidentRow),
          type: incidentBatch.type,
          lat: incidentBatch.number('lat', incidentRow),
          lon: incidentBatch.number('lon', incidentRow),
          severity: incidentBatch.number('severity', incidentRow),
          at: incidentBatch.instant('at', incidentRow),
          systemFrom: incidentBatch.systemFrom(incidentRow),
        });
      }
      dispatchCall.hold(waitingIncidents.length * 768);
    },
    incidentId === undefined ? undefined : { column: '_pk', texts: [incidentId] },
  );
  const priorityRows: DomainRow[] = [];
  let lookedUnits = 0;
  for (const { nodeId, type, lat, lon, severity, at: reportedAt, systemFrom } of waitingIncidents) {
    if ((lookedUnits += freeUnitsFound.length + 16) >= stepsAtOnce) {
      lookedUnits = 0;
      yield;
    }
    dispatchCall.look(freeUnitsFound.length * 5);
    const waitSecs = reportedAt === null ? null : Math.max(0, Number(dispatchNow - reportedAt) / 1e9);
    const nearUnit = isCoordinate(lat, lon) ? nearestUnit(freeUnitsFound, lat!, lon!) : null;
    const priorityTerms = {
      severity: severity === null ? 0 : Math.min(1, Math.max(0, severity)),
      wait: waitSecs === null ? 0 : Math.min(1, waitSecs / targetSecs),
      nearness: nearUnit === null ? 0 : nearUnitMetres / (nearUnitMetres + nearUnit.distance),
    };
    priorityRows.push({
      nodeId,
      type,
      cells: [nearUnit?.id ?? null, nearUnit === null ? null : nearUnit.distance / (unitKmh / 3.6), waitSecs],
      score:
        priorityWeights.severity * priorityTerms.severity +
        priorityWeights.wait * priorityTerms.wait +
        priorityWeights.nearness * priorityTerms.nearness,
      evidence: {
        terms: priorityTerms,
        weights: priorityWeights,
        target_secs: targetSecs,
        ...(nearUnit !== null && { distance_m: nearUnit.distance }),
      },
      systemFrom,
    });
  }
  return priorityRows;
}

function* freeDispatchUnits(dispatchCall: DomainCall): Steps<readonly DispatchUnit[]> {
  const dispatchUnits: DispatchUnit[] = [];
  yield* dispatchCall.rows('unit', ['lat', 'lon', 'status'], (unitBatch) => {
    for (let unitRow = 0; unitRow < unitBatch.count; unitRow++) {
      const [unitId, lat, lon] = [unitBatch.nodeId(unitRow), unitBatch.number('lat', unitRow), unitBatch.number('lon', unitRow)];
      if (unitId === null || !isCoordinate(lat, lon) || !freeStatuses.has(unitBatch.text('status', unitRow)?.toLowerCase() ?? ''))
        continue;
      dispatchUnits.push({ id: unitId, lat: lat!, lon: lon! });
    }
  });
  return yield* sortItemsInSteps(dispatchUnits, (a, b) => compareText(a.id, b.id));
}

function nearestUnit(
  dispatchUnits: readonly DispatchUnit[],
  lat: number,
  lon: number,
): { readonly id: string; readonly distance: number } | null {
  let bestUnit: { readonly id: string; readonly distance: number } | null = null;
  for (const candidateUnit of dispatchUnits) {
    // No place is nearer than its circle of latitude.
    if (bestUnit !== null && metresApart(candidateUnit.lat, lat) > bestUnit.distance) continue;
    const unitMetres = metresBetween(lat, lon, candidateUnit.lat, candidateUnit.lon);
    if (bestUnit === null || unitMetres < bestUnit.distance) bestUnit = { id: candidateUnit.id, distance: unitMetres };
  }
  return bestUnit;
}
