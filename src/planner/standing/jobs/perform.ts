/** The work of a job's run: a question, rules, a function or a chore. Rows stay where they are; a run keeps counts. */
import { ServiceError } from '../../../errors.ts';
import { administers } from '../../../governance/authorization/policy.ts';
import type { JobEffect, PerformJob } from '../../../governance/jobs/scheduler.ts';
import type { Json } from '../../../log/values/canonical-json.ts';
import type { DetectionDefinition } from '../../../projections/rules/rule.ts';
import type { PlannerContract } from '../../planner-contract.ts';
import type { Literal } from '../../statement.ts';
import { putAlerts } from '../rules/alerts.ts';
import { quoted } from '../rules/condition.ts';
import { matchesAt, raise } from '../rules/query-rules.ts';

export interface JobWorkDependencies {
  readonly planner: PlannerContract;
  /** Work of the store's own, for those who run it, by name. */
  readonly chores: Readonly<Record<string, (signal: AbortSignal) => Promise<Json>>>;
}

export function performJobs({ planner, chores }: JobWorkDependencies): PerformJob {
  return async ({ definition }, work): Promise<JobEffect> => {
    const { run: task } = definition;
    const { invocation, caller, instant, signal, progress } = work;
    if (task.chore !== undefined) {
      if (!administers(caller)) throw new ServiceError('REL_ACL', 'chores are for administrators of the store');
      const chore = Object.hasOwn(chores, task.chore) ? chores[task.chore] : undefined;
      if (chore === undefined) throw new ServiceError('REL_NOT_FOUND', `there is no chore ${JSON.stringify(task.chore)}`);
      return { alerts: null, result: await chore(signal) };
    }
    if (task.rules !== undefined) {
      const snapshot = invocation.snapshot();
      const question = { planner, caller, snapshot, signal };
      const found = [];
      for (const [nth, id] of task.rules.entries()) {
        progress(nth, task.rules.length);
        const rule = snapshot.rules().find((each) => each.id === id);
        if (rule === undefined || rule.definition.kind !== 'detection')
          throw new ServiceError('REL_NOT_FOUND', `there is no detection rule ${JSON.stringify(id)}`);
        if (isSql(rule.definition)) found.push({ rule, matches: await matchesAt(question, rule, instant) });
      }
      const raised = await raise(question, found, instant, true);
      const matches = found.reduce((sum, each) => sum + each.matches.length, 0);
      const alerts = raised.all.length === 0 ? null : putAlerts(raised.type, raised.all, raised.counted, work.run);
      return { alerts, result: { matches } };
    }
    const asked = questionOf(task);
    const answer = await planner.query(invocation, { ...asked, basis: instant, time: 'current', signal, questionsOnly: true });
    return { alerts: null, result: { rows: answer.rowCount } };
  };
}

const isSql = ({ language }: DetectionDefinition): boolean => language === 'sql';

/** A question, or the call of a table function with its arguments in their order. */
export function questionOf(task: { readonly sql?: string; readonly function?: string; readonly arguments?: Json }): {
  readonly sql: string;
  readonly parameters?: readonly Literal[];
} {
  if (task.sql !== undefined) return { sql: task.sql };
  if (task.function === undefined) throw new ServiceError('REL_NOT_IMPLEMENTED', 'this version runs no such work yet');
  const given = task.arguments ?? [];
  if (!Array.isArray(given)) throw new ServiceError('REL_INVALID', 'arguments of a function are a list');
  const parameters = given.map((value: Json): Literal => {
    if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
    if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value;
    throw new ServiceError('REL_INVALID', 'arguments of a function are texts, numbers, booleans and null');
  });
  if (!/^\w+$/.test(task.function)) throw new ServiceError('REL_INVALID', `${quoted(task.function)} is no name of a function`);
  return { sql: `SELECT * FROM ${task.function}(${parameters.map((_, i) => `$${i + 1}`).join(', ')})`, parameters };
}
