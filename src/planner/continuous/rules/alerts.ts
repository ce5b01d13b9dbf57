/**
 * Alerts of matches. The id of an alert is a hash of rule, version and match, so that the same match is the same alert however often it is
 * judged; with `dedupe_by` it is one of the values and their window. The row that matched is named and never copied.
 */
import { createHash } from 'node:crypto';
import type { RowBatch } from '../../../log/values/columns.ts';
import { canonicalJson, type Json } from '../../../log/values/canonical-json.ts';
import type { Cell, ColumnType } from '../../../log/values/value.ts';
import { VectorBuilder } from '../../../log/values/vector-builder.ts';
import { type CatalogReader } from '../../../projections/access-paths.ts';
import { alertType, otherAlertType } from '../../../projections/catalog/builtin-types.ts';
import type { PutRows } from '../../../projections/command.ts';
import type { DetectionDefinition, RuleRecord } from '../../../projections/rules/rule.ts';

export interface Match {
  readonly type: string | null;
  /** null: the rows of a join or an aggregate have no key. */
  readonly key: string | null;
  /** system_from of the version that matched, in nanoseconds; null where there is none. */
  readonly systemFrom: bigint | null;
  /** Values of `dedupe_by`, or the cells of the row where it has no key. */
  readonly values: readonly Cell[];
}

/** An alert that is to be written: matches of one id in one look are counted together. */
export interface Alert {
  readonly id: string;
  readonly rule: RuleRecord;
  readonly match: Match;
  readonly count: number;
}

/** The parts of an alert that its row has: a rule raises it, or a step of a workflow. */
export interface AlertRow extends Omit<Alert, 'rule'> {
  readonly rule: Pick<RuleRecord, 'id' | 'version'> & { readonly definition: Pick<DetectionDefinition, 'name'> };
}

/** By id. `instant`: when it is judged, by which the window of a match is chosen that has no time of its own. */
export function alertsOf(rule: RuleRecord, matches: Iterable<Match>, instant: bigint): ReadonlyMap<string, Alert> {
  const alertsById = new Map<string, Alert>();
  for (const match of matches) {
    const alertIdentity = alertId(rule, match, instant);
    const earlierAlert = alertsById.get(alertIdentity);
    alertsById.set(
      alertIdentity,
      earlierAlert === undefined
        ? { id: alertIdentity, rule, match, count: 1 }
        : { ...earlierAlert, count: earlierAlert.count + 1 },
    );
  }
  return alertsById;
}

function alertId({ id, version, definition }: RuleRecord, { type, key, systemFrom, values }: Match, instant: bigint): string {
  const { dedupe_by: dedupeBy, window_secs: windowSecs } = definition as DetectionDefinition;
  const dedupeCells = values.map(plainAlertCell);
  const alertedMatch: Json =
    dedupeBy.length > 0
      ? [dedupeCells, String((systemFrom ?? instant) / (BigInt(windowSecs) * 1_000_000_000n))]
      : key === null
        ? dedupeCells
        : [type, key, systemFrom === null ? null : String(systemFrom)];
  return createHash('sha256')
    .update(canonicalJson(['alert/1', id, version, alertedMatch]))
    .digest('hex');
}

const plainAlertCell = (cell: Cell): Json =>
  cell === null || typeof cell === 'string' || typeof cell === 'boolean'
    ? cell
    : typeof cell === 'object'
      ? Array.from(cell)
      : String(cell);

/** The type that alerts of a tenant are rows of: a type of its own that is called so and is for something else stays what it is. */
export function alertTypeIn(catalog: Pick<CatalogReader, 'type'>): string {
  const ownAlertType = catalog.type(alertType);
  return ownAlertType === undefined || ownAlertType.properties['rule_version'] !== undefined ? alertType : otherAlertType;
}

const alertColumns: Readonly<Record<string, readonly [ColumnType, (alert: AlertRow, run: string) => Cell]>> = {
  rule_id: ['string', ({ rule }) => rule.id],
  rule_version: ['integer', ({ rule }) => BigInt(rule.version)],
  run_id: ['string', (_, run) => run],
  severity: ['string', ({ rule }) => (rule.definition as DetectionDefinition).severity],
  title: ['string', ({ rule }) => rule.definition.name],
  status: ['string', () => 'open'],
  matched_type: ['string', ({ match }) => match.type],
  matched_pk: ['string', ({ match }) => match.key],
  matched_system_from: ['timestamp', ({ match }) => match.systemFrom],
};

/** `countedAlerts`: counts of alerts that stand already, by id; all else of these stays as it is, their status too. */
export function putAlerts(
  type: string,
  alerts: readonly AlertRow[],
  countedAlerts: ReadonlyMap<string, bigint>,
  run: string,
): PutRows {
  const { length: alertCount } = alerts;
  const columnOf = (name: string, cellType: ColumnType, cellOf: (alert: AlertRow) => Cell): RowBatch['columns'][number] => {
    const alertColumnBuilder = new VectorBuilder(cellType, alertCount);
    for (const alert of alerts) alertColumnBuilder.append(cellOf(alert));
    return { name, type: cellType, vector: alertColumnBuilder.build() };
  };
  const alertRows: RowBatch = {
    length: alertCount,
    columns: [
      columnOf('_pk', 'string', ({ id }) => id),
      ...Object.entries(alertColumns).map(([name, [cellType, cellOf]]) =>
        columnOf(name, cellType, (alert) => cellOf(alert, run)),
      ),
      columnOf('count', 'integer', ({ id, count }) => BigInt(count) + (countedAlerts.get(id) ?? 0n)),
    ],
  };
  const isNewAlert = Uint8Array.from(alerts, ({ id }) => (countedAlerts.has(id) ? 0 : 1));
  return {
    kind: 'put-rows',
    type,
    rows: alertRows,
    atomic: true,
    createType: false,
    provenance: { source: 'rules', method: 'detection', confidence: 1, derivedFrom: null },
    ...(countedAlerts.size > 0 && { patch: new Map(Object.keys(alertColumns).map((name) => [name, isNewAlert])) }),
  };
}
