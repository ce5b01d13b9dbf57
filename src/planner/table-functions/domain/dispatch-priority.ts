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
  run: prioritise,
});

/** Statuses, in lower case, of incidents that wait for nobody any more, and of units that can be sent. */
const over = new Set(['closed', 'resolved', 'cancelled', 'canceled', 'done']);
const free = new Set(['free', 'available', 'idle']);

/** At this many metres a unit is half as near as on the spot. */
const nearMetres = 5_000;

interface Unit {
  readonly id: string;
  readonly lat: number;
  readonly lon: number;
}

interface Waiting {
  readonly nodeId: string | null;
  readonly type: string;
  readonly lat: number | null;
  readonly lon: number | null;
  readonly severity: number | null;
  readonly at: bigint | null;
  readonly systemFrom: bigint | null;
}

function* prioritise(call: DomainCall): Steps<readonly DomainRow[]> {
  const incident = call.text('INCIDENT');
  const weights = {
    severity: call.number('SEVERITY_WEIGHT', 0.6),
    wait: call.number('WAIT_WEIGHT', 0.3),
    nearness: call.number('NEAR_WEIGHT', 0.1),
  };
  const [target, speed] = [call.number('TARGET_SECS', 3_600), call.number('SPEED_KMH', 40)];
  const { valid } = call.execution.time;
  const now = valid === 'all' ? call.execution.kernels.instant : valid;
  const units = yield* freeUnits(call);
  const waiting: Waiting[] = [];
  yield* call.rows(
    'incident',
    ['lat', 'lon', 'at', 'severity', 'status'],
    (batch) => {
      for (let row = 0; row < batch.count; row++) {
        if (over.has(batch.text('status', row)?.toLowerCase() ?? '')) continue;
        waiting.push({
          nodeId: batch.nodeId(row),
          type: batch.type,
          lat: batch.number('lat', row),
          lon: batch.number('lon', row),
          severity: batch.number('severity', row),
          at: batch.instant('at', row),
          systemFrom: batch.systemFrom(row),
        });
      }
      call.hold(waiting.length * 768);
    },
    incident === undefined ? undefined : { column: '_pk', texts: [incident] },
  );
  const rows: DomainRow[] = [];
  let looked = 0;
  for (const { nodeId, type, lat, lon, severity, at, systemFrom } of waiting) {
    if ((looked += units.length + 16) >= stepsAtOnce) {
      looked = 0;
      yield;
    }
    call.look(units.length * 5);
    const wait = at === null ? null : Math.max(0, Number(now - at) / 1e9);
    const near = isCoordinate(lat, lon) ? nearest(units, lat!, lon!) : null;
    const terms = {
      severity: severity === null ? 0 : Math.min(1, Math.max(0, severity)),
      wait: wait === null ? 0 : Math.min(1, wait / target),
      nearness: near === null ? 0 : nearMetres / (nearMetres + near.distance),
    };
    rows.push({
      nodeId,
      type,
      cells: [near?.id ?? null, near === null ? null : near.distance / (speed / 3.6), wait],
      score: weights.severity * terms.severity + weights.wait * terms.wait + weights.nearness * terms.nearness,
      evidence: { terms, weights, target_secs: target, ...(near !== null && { distance_m: near.distance }) },
      systemFrom,
    });
  }
  return rows;
}

function* freeUnits(call: DomainCall): Steps<readonly Unit[]> {
  const units: Unit[] = [];
  yield* call.rows('unit', ['lat', 'lon', 'status'], (batch) => {
    for (let row = 0; row < batch.count; row++) {
      const [id, lat, lon] = [batch.nodeId(row), batch.number('lat', row), batch.number('lon', row)];
      if (id === null || !isCoordinate(lat, lon) || !free.has(batch.text('status', row)?.toLowerCase() ?? '')) continue;
      units.push({ id, lat: lat!, lon: lon! });
    }
  });
  return yield* sortItemsInSteps(units, (a, b) => compareText(a.id, b.id));
}

function nearest(units: readonly Unit[], lat: number, lon: number): { readonly id: string; readonly distance: number } | null {
  let best: { readonly id: string; readonly distance: number } | null = null;
  for (const unit of units) {
    // No place is nearer than its circle of latitude.
    if (best !== null && metresApart(unit.lat, lat) > best.distance) continue;
    const distance = metresBetween(lat, lon, unit.lat, unit.lon);
    if (best === null || distance < best.distance) best = { id: unit.id, distance };
  }
  return best;
}
