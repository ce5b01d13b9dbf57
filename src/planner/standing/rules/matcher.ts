/** Finds the matches of rules among the new versions of a change set. */
import type { Caller } from '../../../governance/caller.ts';
import type { GovernedSnapshot } from '../../../governance/gate-contract.ts';
import type { Cell } from '../../../log/values/value.ts';
import { cellAt } from '../../../log/values/vector-builder.ts';
import { FOREVER } from '../../../log/values/timestamp.ts';
import type { DetectionDefinition, RuleVersion } from '../../../projections/rules/rule.ts';
import type { Answer, PlannerContract } from '../../planner-contract.ts';
import type { ChangeSet } from '../change-set.ts';
import { snapshotInvocation } from '../snapshot-invocation.ts';
import type { Match } from './alerts.ts';
import { learnColumns, readCondition } from './condition.ts';

export interface RuleMatches {
  readonly rule: RuleVersion;
  readonly matches: readonly Match[];
}

/** Matches of several rules of one type, which the caller of a snapshot may see. */
export interface RowMatcher {
  /** Columns of the type that it reads. */
  readonly columns: ReadonlySet<string>;
  /**
   * `turn` lets others have theirs; it is called between any two pieces of some milliseconds. `snapshot` serves the rows of before, too.
   */
  judge(changes: ChangeSet, type: string, turn: () => Promise<void>, snapshot: GovernedSnapshot): Promise<readonly RuleMatches[]>;
}

/** Whether the version of a rule was in force when a row of that system_from came. */
export function isInForce({ record, until }: RuleVersion, systemFrom: bigint): boolean {
  return record.time < systemFrom && systemFrom <= (until ?? FOREVER);
}

/** Rules in SQL: one question each. One that can't be asked any more is passed over, and `onError` hears why. */
export async function sqlMatcher(
  planner: PlannerContract,
  caller: Caller,
  snapshot: GovernedSnapshot,
  rules: readonly RuleVersion[],
  onError: (rule: RuleVersion, error: unknown) => void,
): Promise<RowMatcher> {
  const columns = new Set<string>();
  const asked: { readonly rule: RuleVersion; readonly sql: string }[] = [];
  for (const rule of rules) {
    try {
      const { sql } = readCondition(rule.record.definition as DetectionDefinition);
      for (const column of await learnColumns(planner, caller, snapshot, sql)) columns.add(column);
      asked.push({ rule, sql });
    } catch (error) {
      onError(rule, error);
    }
  }
  const judge: RowMatcher['judge'] = async (changes, type, turn) => {
    const found: RuleMatches[] = [];
    if (changes.versions.length === 0) return found;
    for (const { rule, sql } of asked) {
      await turn();
      try {
        const answer = await planner.query(snapshotInvocation(caller, changes.snapshot), { sql, questionsOnly: true });
        const matches = [...matchesIn(answer, type)].filter(
          ({ systemFrom }) => systemFrom! > changes.from && isInForce(rule, systemFrom!),
        );
        if (matches.length > 0) found.push({ rule, matches });
      } catch (error) {
        onError(rule, error);
      }
    }
    return found;
  };
  return { columns, judge };
}

/** Several of them as one. */
export function joinMatchers(matchers: readonly RowMatcher[]): RowMatcher {
  return {
    columns: new Set(matchers.flatMap(({ columns }) => [...columns])),
    judge: async (...given) => {
      const found: RuleMatches[] = [];
      for (const matcher of matchers) found.push(...(await matcher.judge(...given)));
      return found;
    },
  };
}

/** Rows of a `RowCondition`'s statement. */
function* matchesIn({ columns, batches }: Pick<Answer, 'columns' | 'batches'>, type: string): Iterable<Match> {
  for (const batch of batches) {
    for (let i = 0; i < batch.count; i++) {
      const row = batch.selection === null ? batch.first + i : batch.selection[i]!;
      const [systemFrom, key, ...values] = columns.map((column, at): Cell => cellAt(batch.columns[at]!, column.type, row));
      yield { type, key: String(key as string), systemFrom: systemFrom as bigint, values };
    }
  }
}
