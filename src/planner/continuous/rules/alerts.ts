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
  const alerts = new Map<string, Alert>();
  for (const match of matches) {
    const id = alertId(rule, match, instant);
    const before = alerts.get(id);
    alerts.set(id, before === undefined ? { id, rule, match, count: 1 } : { ...before, count: before.count + 1 });
  }
  return alerts;
}

function alertId({ id, version, definition }: RuleRecord, { type, key, systemFrom, values }: Match, instant: bigint): string {
  const { dedupe_by: dedupeBy, window_secs: windowSecs } = definition as DetectionDefinition;
  const cells = values.map(plain);
  const match: Json =
    dedupeBy.length > 0
      ? [cells, String((systemFrom ?? instant) / (BigInt(windowSecs) * 1_000_000_000n))]
      : key === null
        ? cells
        : [type, key, systemFrom === null ? null : String(systemFrom)];
  return createHash('sha256')
    .update(canonicalJson(['alert/1', id, version, match]))
    .digest('hex');
}

const plain = (cell: Cell): Json =>
  cell === null || typeof cell === 'string' || typeof cell === 'boolean'
    ? cell
    : typeof cell === 'object'
      ? Array.from(cell)
      : String(cell);

/** The type that alerts of a tenant are rows of: a type of its own that is called so and is for something else stays what it is. */
export function alertTypeIn(catalog: Pick<CatalogReader, 'type'>): string {
  const own = catalog.type(alertType);
  return own === undefined || own.properties['rule_version'] !== undefined ? alertType : otherAlertType;
}

const columns: Readonly<Record<string, readonly [ColumnType, (alert: AlertRow, run: string) => Cell]>> = {
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

/** `counted`: counts of alerts that stand already, by id; all else of these stays as it is, their status too. */
export function putAlerts(type: string, alerts: readonly AlertRow[], counted: ReadonlyMap<string, bigint>, run: string): PutRows {
  const { length } = alerts;
  const columnOf = (name: string, cellType: ColumnType, cellOf: (alert: AlertRow) => Cell): RowBatch['columns'][number] => {
    const builder = new VectorBuilder(cellType, length);
    for (const alert of alerts) builder.append(cellOf(alert));
    return { name, type: cellType, vector: builder.build() };
  };
  const rows: RowBatch = {
    length,
    columns: [
      columnOf('_pk', 'string', ({ id }) => id),
      ...Object.entries(columns).map(([name, [cellType, cellOf]]) => columnOf(name, cellType, (alert) => cellOf(alert, run))),
      columnOf('count', 'integer', ({ id, count }) => BigInt(count) + (counted.get(id) ?? 0n)),
    ],
  };
  const isNew = Uint8Array.from(alerts, ({ id }) => (counted.has(id) ? 0 : 1));
  return {
    kind: 'put-rows',
    type,
    rows,
    atomic: true,
    createType: false,
    provenance: { source: 'rules', method: 'detection', confidence: 1, derivedFrom: null },
    ...(counted.size > 0 && { patch: new Map(Object.keys(columns).map((name) => [name, isNew])) }),
  };
}
