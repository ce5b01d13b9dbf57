/** Finds the matches of rules among the new versions of a change set. */
import { inTurns } from '../../expressions/resumable-steps.ts';
import type { Caller } from '../../../governance/caller.ts';
import type { GovernedSnapshot } from '../../../governance/gate-contract.ts';
import type { Cell } from '../../../log/values/value.ts';
import { cellAt } from '../../../log/values/vector-builder.ts';
import { FOREVER } from '../../../log/values/timestamp.ts';
import type { ScanRequest } from '../../../projections/access-paths.ts';
import type { DetectionDefinition, RuleVersion } from '../../../projections/rules/rule.ts';
import type { Answer, PlannerContract } from '../../planner-contract.ts';
import type { ChangeSet } from '../watch/change-set.ts';
import { snapshotInvocation } from '../watch/snapshot-invocation.ts';
import type { Match } from './alerts.ts';
import { learnScans, readCondition } from './rule-condition.ts';
import { RuleBounds } from './rule-bounds.ts';

export interface RuleMatches {
  readonly rule: RuleVersion;
  readonly matches: readonly Match[];
}

/** Matches of several rules of one type, which the caller of a snapshot may see. */
export interface RowMatcher {
  /** Columns of the type that it reads. */
  readonly columns: ReadonlySet<string>;
  /** `snapshot` serves the rows of before, too. */
  judge(changes: ChangeSet, type: string, snapshot: GovernedSnapshot): Promise<readonly RuleMatches[]>;
}

export interface SqlMatcherOptions {
  readonly planner: PlannerContract;
  readonly onError: (rule: RuleVersion, error: unknown) => void;
  /** Lets others have theirs; it is called between any two pieces of some milliseconds. */
  readonly turn: () => Promise<void>;
}

interface SqlRule {
  readonly rule: RuleVersion;
  readonly sql: string;
}

/** Whether the version of a rule was in force when a row of that system_from came. */
export function isInForce({ record, until }: RuleVersion, systemFrom: bigint): boolean {
  return record.time < systemFrom && systemFrom <= (until ?? FOREVER);
}

/** Rules in SQL: one question of each that some new row can match. One that can't be asked any more is passed over, and `onError` hears why. */
export async function sqlMatcher(
  { planner, onError, turn }: SqlMatcherOptions,
  caller: Caller,
  snapshot: GovernedSnapshot,
  rules: readonly RuleVersion[],
): Promise<RowMatcher> {
  const scannedColumns = new Set<string>();
  const scannedRules: { readonly rule: SqlRule; readonly scans: readonly ScanRequest[] }[] = [];
  for (const rule of rules) {
    await turn();
    try {
      const { sql } = readCondition(rule.record.definition as DetectionDefinition);
      const scans = await learnScans(planner, caller, snapshot, sql);
      for (const ruleScan of scans) {
        for (const column of ruleScan.columns) scannedColumns.add(column);
        for (const { column } of ruleScan.zones ?? []) scannedColumns.add(column);
      }
      scannedRules.push({ rule: { rule, sql }, scans });
    } catch (error) {
      onError(rule, error);
    }
  }
  const ruleBounds = new RuleBounds(scannedRules);
  const judgeChanges: RowMatcher['judge'] = async (changes, type) => {
    const ruleMatches: RuleMatches[] = [];
    if (changes.versions.length === 0) return ruleMatches;
    for (const { rule, sql } of await inTurns(ruleBounds.findPossible(changes), turn)) {
      await turn();
      try {
        const ruleAnswer = await planner.query(snapshotInvocation(caller, changes.snapshot), { sql, queriesOnly: true });
        const newMatches = [...matchedRows(ruleAnswer, type)].filter(
          ({ systemFrom }) => systemFrom! > changes.from && isInForce(rule, systemFrom!),
        );
        if (newMatches.length > 0) ruleMatches.push({ rule, matches: newMatches });
      } catch (error) {
        onError(rule, error);
      }
    }
    return ruleMatches;
  };
  return { columns: scannedColumns, judge: judgeChanges };
}

/** Several of them as one. */
export function joinMatchers(matchers: readonly RowMatcher[]): RowMatcher {
  return {
    columns: new Set(matchers.flatMap(({ columns }) => [...columns])),
    judge: async (...judgeArguments) => {
      const matches: RuleMatches[] = [];
      for (const rowMatcher of matchers) matches.push(...(await rowMatcher.judge(...judgeArguments)));
      return matches;
    },
  };
}

/** Rows of a `RowCondition`'s statement. */
function* matchedRows({ columns, batches }: Pick<Answer, 'columns' | 'batches'>, type: string): Iterable<Match> {
  for (const batch of batches) {
    for (let i = 0; i < batch.count; i++) {
      const matchRow = batch.selection === null ? batch.first + i : batch.selection[i]!;
      const [systemFrom, matchKey, ...dedupeValues] = columns.map(
        (column, ruleColumn): Cell => cellAt(batch.columns[ruleColumn]!, column.type, matchRow),
      );
      yield { type, key: String(matchKey as string), systemFrom: systemFrom as bigint, values: dedupeValues };
    }
  }
}
