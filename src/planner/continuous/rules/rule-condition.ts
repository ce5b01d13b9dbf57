/**
 * The condition of a rule: a SELECT, each row of which is a match, or a bare condition on the rows of a type. A condition that each row
 * decides by itself is judged on every commit; joins, aggregates, windows and `now()` are asked at intervals.
 */
import { ServiceError } from '../../../errors.ts';
import type { Caller } from '../../../governance/caller.ts';
import type { GovernedSnapshot } from '../../../governance/gate-contract.ts';
import type { RowReader, ScanRequest } from '../../../projections/access-paths.ts';
import { alertType, otherAlertType } from '../../../projections/catalog/builtin-types.ts';
import type { DetectionDefinition } from '../../../projections/rules/rule.ts';
import { sourcesOf } from '../../exhibits/derivable.ts';
import { type LexedStatement, lexStatement } from '../../languages/sql-lexer.ts';
import type { PlannerContract } from '../../planner-contract.ts';
import { snapshotInvocation } from '../watch/snapshot-invocation.ts';
import { readWatchStatement } from '../watch/watch-statement.ts';

export type RuleCondition = RowCondition | QueryCondition;

/** `sql` gives `#system_from`, `#pk` and `#0`, `#1`, … (the columns of `dedupe_by`) of the rows that match. */
export interface RowCondition {
  readonly judged: 'by row';
  readonly type: string;
  readonly sql: string;
}

/** `sql` gives the rows that match, as the rule's author wrote them. */
export interface QueryCondition {
  readonly judged: 'at intervals';
  readonly sql: string;
}

type ConditionedRule = Pick<DetectionDefinition, 'condition' | 'object_type' | 'dedupe_by'>;

/** Throws REL_INVALID for a bare condition without `object_type`, and REL_PARSE for what is no SQL, with locations in its own text. */
export function readCondition(rule: ConditionedRule): RuleCondition {
  const { sql, isBare } = conditionStatement(rule);
  return relocateErrors(isBare, () => {
    let conditionType: string;
    try {
      ({ type: conditionType } = readWatchStatement(sql));
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code !== 'REL_INVALID' || isBare) throw error;
      return { judged: 'at intervals', sql };
    }
    const dedupeColumns = rule.dedupe_by.map((name, i) => `, ${quoteName(name)} AS "#${i}"`).join('');
    const conditionSelect = `SELECT system_from AS "#system_from", _pk AS "#pk"${dedupeColumns} ${fromClauseText(lexStatement(sql))}`;
    return { judged: 'by row', type: conditionType, sql: conditionSelect };
  });
}

/** The condition of a rule on record, read once; null: what it says has become unreadable. */
export function standingCondition(rule: DetectionDefinition): RuleCondition | null {
  let ruleCondition = standingConditions.get(rule);
  if (ruleCondition === undefined) standingConditions.set(rule, (ruleCondition = readableCondition(rule)));
  return ruleCondition;
}

const standingConditions = new WeakMap<DetectionDefinition, RuleCondition | null>();

function readableCondition(rule: DetectionDefinition): RuleCondition | null {
  try {
    return readCondition(rule);
  } catch (error) {
    if (error instanceof ServiceError) return null;
    throw error;
  }
}

/**
 * Parses and binds a condition under the grant of a snapshot, over no rows. Throws the errors of the statement; REL_INVALID for one that
 * reads alerts: they would raise others without end.
 */
export async function checkCondition(
  planner: PlannerContract,
  snapshot: GovernedSnapshot,
  rule: ConditionedRule,
): Promise<RuleCondition> {
  const { sql, isBare } = conditionStatement(rule);
  const checkedCondition = readCondition(rule);
  const conditionSources = sourcesOf(sql, snapshot.views);
  for (const type of [alertType, otherAlertType])
    if (conditionSources.has(type))
      throw new ServiceError('REL_INVALID', `a rule that reads ${type} would be fed by its own alerts`);
  const rowlessInvocation = snapshotInvocation(snapshot.caller, { ...snapshot, rows: rowlessReader(snapshot.rows, []) });
  try {
    await planner.query(rowlessInvocation, { sql, queriesOnly: true, time: 'current' });
  } catch (error) {
    throw isBare ? errorLineAbove(error) : error;
  }
  try {
    await planner.query(rowlessInvocation, { sql: checkedCondition.sql, queriesOnly: true, time: 'current' });
  } catch (error) {
    // The author's own text was found in order.
    if (!(error instanceof ServiceError)) throw error;
    throw new ServiceError(error.code, `dedupe_by: ${error.message.replace(/^\d+:\d+: /, '')}`, error.facts);
  }
  return checkedCondition;
}

/** Columns that a statement reads under the grant of a snapshot. Throws the errors of the statement. */
export async function learnColumns(
  planner: PlannerContract,
  caller: Caller,
  snapshot: GovernedSnapshot,
  sql: string,
): Promise<ReadonlySet<string>> {
  return new Set((await learnScans(planner, caller, snapshot, sql)).flatMap(({ columns }) => columns));
}

/** Requests that a statement makes to storage under the grant of a snapshot, where there are no rows. Throws the errors of the statement. */
export async function learnScans(
  planner: PlannerContract,
  caller: Caller,
  snapshot: GovernedSnapshot,
  sql: string,
): Promise<readonly ScanRequest[]> {
  const learnedScans: ScanRequest[] = [];
  const rowlessInvocation = snapshotInvocation(caller, { ...snapshot, rows: rowlessReader(snapshot.rows, learnedScans) });
  await planner.query(rowlessInvocation, { sql, queriesOnly: true });
  return learnedScans;
}

function conditionStatement({ condition, object_type: type }: ConditionedRule): {
  readonly sql: string;
  readonly isBare: boolean;
} {
  const firstKeyword = lexStatement(condition).tokens[0]?.key;
  if (firstKeyword === 'SELECT' || firstKeyword === 'WITH') return { sql: condition, isBare: false };
  if (type === null)
    throw new ServiceError('REL_INVALID', 'condition_sql is a SELECT, or a condition on the rows of object_type');
  return { sql: `SELECT * FROM ${quoteName(type)} WHERE (\n${condition}\n)`, isBare: true };
}

/** Bare conditions begin on the second line of their statement. */
function relocateErrors<T>(isBare: boolean, readConditionText: () => T): T {
  try {
    return readConditionText();
  } catch (error) {
    throw isBare ? errorLineAbove(error) : error;
  }
}

function errorLineAbove(error: unknown): unknown {
  const [, errorLine, errorAfterLine] = error instanceof ServiceError ? (/^(\d+)(:.*)$/su.exec(error.message) ?? []) : [];
  if (errorLine === undefined || errorLine === '1') return error;
  const { code, facts } = error as ServiceError;
  return new ServiceError(code, `${Number(errorLine) - 1}${errorAfterLine}`, facts);
}

/** From FROM on: the rows are chosen by it, and shown by nobody. */
function fromClauseText({ text, tokens }: LexedStatement): string {
  let parenthesisDepth = 0;
  for (const { key, start } of tokens) {
    if (key === '(') parenthesisDepth++;
    else if (key === ')') parenthesisDepth--;
    else if (key === 'FROM' && parenthesisDepth === 0) return text.slice(start);
  }
  throw new ServiceError('REL_PARSE', '1:1: FROM is missing');
}

export const quoteName = (name: string): string => `"${name.replaceAll('"', '""')}"`;

function rowlessReader(rows: RowReader, learnedScans: ScanRequest[]): RowReader {
  return {
    // oxlint-disable-next-line require-yield
    *scan(request) {
      learnedScans.push(request);
    },
    estimate: (request) => rows.estimate(request),
    pathCodes: () => rows.pathCodes(),
    provenanceOf: () => undefined,
  };
}
