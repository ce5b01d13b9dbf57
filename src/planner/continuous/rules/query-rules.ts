/**
 * Rules that are asked as questions: at intervals, by a job, or about the past. The rows of an answer are its matches; an alert that stands
 * already is not raised again, so that a question may be asked as often as one likes.
 */
import type { Caller } from '../../../governance/caller.ts';
import type { GovernedSnapshot } from '../../../governance/gate-contract.ts';
import { type Cell } from '../../../log/values/value.ts';
import { cellAt } from '../../../log/values/vector-builder.ts';
import type { DetectionDefinition, RuleRecord } from '../../../projections/rules/rule.ts';
import type { Answer, PlannerContract } from '../../planner-contract.ts';
import { snapshotInvocation } from '../watch/snapshot-invocation.ts';
import { type Alert, alertsOf, alertTypeIn, type Match } from './alerts.ts';
import { quoteName, readCondition } from './rule-condition.ts';

export interface RaisedAlerts {
  readonly type: string;
  readonly all: readonly Alert[];
  /** Counts of alerts that stand already and are counted up, by id. */
  readonly counted: ReadonlyMap<string, bigint>;
  /** Whether rows that matched may have been erased since they were read: nothing is to be raised on them. */
  overtaken(): boolean;
}

/** Matches of a rule, and whether rows that they were found among have been erased since. */
export interface QueryMatches {
  readonly rule: RuleRecord;
  readonly matches: readonly Match[];
  overtaken(): boolean;
}

export interface RuleQuery {
  readonly planner: PlannerContract;
  readonly caller: Caller;
  readonly snapshot: GovernedSnapshot;
  readonly signal?: AbortSignal | undefined;
}

/** Matches of a rule at an instant in nanoseconds, among the rows that held then. */
export async function matchesAt(
  { planner, caller, snapshot, signal }: RuleQuery,
  rule: RuleRecord,
  instant: bigint,
): Promise<QueryMatches> {
  const detection = rule.definition as DetectionDefinition;
  const { sql } = readCondition(detection);
  const request = { sql, queriesOnly: true, time: 'current', basis: instant, signal } as const;
  const ruleAnswer = await planner.query(snapshotInvocation(caller, snapshot), request);
  return { rule, matches: matchesOf(ruleAnswer, detection), overtaken: () => ruleAnswer.overtaken() };
}

/** Rows of a condition's statement, of either kind. */
export function matchesOf(
  { columns, batches }: Pick<Answer, 'columns' | 'batches'>,
  rule: DetectionDefinition,
): readonly Match[] {
  const condition = readCondition(rule);
  const ruleColumnNames = columns.map(({ name }) => name);
  const isByRow = condition.judged === 'by row';
  const keyColumn = ruleColumnNames.indexOf(isByRow ? '#pk' : '_pk');
  const systemFromColumn = ruleColumnNames.indexOf(isByRow ? '#system_from' : 'system_from');
  const valueColumns = isByRow
    ? ruleColumnNames.flatMap((name, i) => (/^#\d+$/.test(name) ? [i] : []))
    : rule.dedupe_by.length > 0
      ? rule.dedupe_by.map((name) => ruleColumnNames.indexOf(name)).filter((at) => at >= 0)
      : ruleColumnNames.map((_, i) => i);
  const ruleMatches: Match[] = [];
  for (const batch of batches) {
    for (let i = 0; i < batch.count; i++) {
      const matchRow = batch.selection === null ? batch.first + i : batch.selection[i]!;
      const cell = (matchColumn: number): Cell => cellAt(batch.columns[matchColumn]!, columns[matchColumn]!.type, matchRow);
      ruleMatches.push({
        type: isByRow ? condition.type : rule.object_type,
        key: keyColumn < 0 ? null : String(cell(keyColumn) as string),
        systemFrom: systemFromColumn < 0 ? null : (cell(systemFromColumn) as bigint),
        values: valueColumns.map(cell),
      });
    }
  }
  return ruleMatches;
}

const alertKeysAtOnce = 500;

/** Alerts of matches that do not stand yet, and those that count one up. */
export async function raise(
  { planner, caller, snapshot, signal }: RuleQuery,
  matchedRules: readonly QueryMatches[],
  instant: bigint,
  /** Whether the same matches may have been judged before. */
  isRaisedOnce: boolean,
): Promise<RaisedAlerts> {
  const type = alertTypeIn(snapshot.catalog);
  const isOvertaken = (): boolean => matchedRules.some((each) => each.overtaken());
  const foundAlerts = matchedRules.flatMap(({ rule, matches }) => [...alertsOf(rule, matches, instant).values()]);
  const isCounted = ({ rule }: Alert): boolean => (rule.definition as DetectionDefinition).dedupe_by.length > 0;
  const alertIds = foundAlerts.filter((alert) => isRaisedOnce || isCounted(alert)).map(({ id }) => id);
  const alertCounts = new Map<string, bigint>();
  if (alertIds.length === 0 || snapshot.catalog.type(type) === undefined)
    return { type, all: foundAlerts, counted: alertCounts, overtaken: isOvertaken };
  for (let firstAlertId = 0; firstAlertId < alertIds.length; firstAlertId += alertKeysAtOnce) {
    const quotedAlertIds = alertIds.slice(firstAlertId, firstAlertId + alertKeysAtOnce).map((key) => `'${key}'`);
    const alertCountSql = `SELECT _pk, "count" FROM ${quoteName(type)} WHERE _pk IN (${quotedAlertIds.join(', ')})`;
    const { batches } = await planner.query(snapshotInvocation(caller, snapshot), {
      sql: alertCountSql,
      time: 'current',
      signal,
    });
    for (const batch of batches) {
      for (let i = 0; i < batch.count; i++) {
        const alertRow = batch.selection === null ? batch.first + i : batch.selection[i]!;
        const [key, count] = batch.columns.map((column, at): Cell => cellAt(column, at === 0 ? 'string' : 'integer', alertRow));
        alertCounts.set(key as string, BigInt((count ?? 0) as bigint));
      }
    }
  }
  const raisedAlerts = foundAlerts.filter((alert) => isCounted(alert) || !alertCounts.has(alert.id));
  const raisedCounts = new Map([...alertCounts].filter(([id]) => raisedAlerts.some((alert) => alert.id === id)));
  return { type, all: raisedAlerts, counted: raisedCounts, overtaken: isOvertaken };
}
