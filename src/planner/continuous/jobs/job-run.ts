/** The work of a job's run: a question, rules, a function or a chore. Rows stay where they are; a run keeps counts, and weights that it trained. */
import { createHash } from 'node:crypto';
import { ServiceError } from '../../../errors.ts';
import { administers } from '../../../governance/authorization/access-rules.ts';
import type { JobEffect, PerformJob } from '../../../governance/jobs/job-scheduler.ts';
import { canonicalJson, type Json } from '../../../log/values/canonical-json.ts';
import type { PutRows } from '../../../projections/command.ts';
import type { JobRecord, RunRecord } from '../../../projections/jobs/job.ts';
import type { Invocation } from '../../../governance/gate-contract.ts';
import type { DetectionDefinition } from '../../../projections/rules/rule.ts';
import type { PlannerContract, RowTaker } from '../../planner-contract.ts';
import type { Literal } from '../../syntax/statement.ts';
import { alertTypeIn, putAlerts } from '../rules/alerts.ts';
import { quoteName } from '../rules/rule-condition.ts';
import { type QueryMatches, matchesAt, raise } from '../rules/query-rules.ts';
import { modelRows } from './identity-model-rows.ts';

export interface JobWorkDependencies {
  readonly planner: PlannerContract;
  /** Work of the store's own, for those who run it, by name. */
  readonly chores: Readonly<Record<string, (signal: AbortSignal) => Promise<Json>>>;
}

export function performJobs({ planner, chores }: JobWorkDependencies): PerformJob {
  return async ({ definition }, jobWork): Promise<JobEffect> => {
    const { run: jobTask } = definition;
    const { invocation, caller, instant, signal, progress } = jobWork;
    if (jobTask.chore !== undefined) {
      if (!administers(caller)) throw new ServiceError('REL_ACL', 'chores are for administrators of the store');
      const choreToRun = Object.hasOwn(chores, jobTask.chore) ? chores[jobTask.chore] : undefined;
      if (choreToRun === undefined) throw new ServiceError('REL_NOT_FOUND', `there is no chore ${JSON.stringify(jobTask.chore)}`);
      return { rows: null, alerts: 0, result: await choreToRun(signal) };
    }
    if (jobTask.rules !== undefined) {
      const snapshot = invocation.snapshot();
      const ruleQuestion = { planner, caller, snapshot, signal };
      for (;;) {
        const jobMatches: QueryMatches[] = [];
        for (const [ruleOrdinal, id] of jobTask.rules.entries()) {
          progress(ruleOrdinal, jobTask.rules.length);
          const rule = snapshot.rules().find((each) => each.id === id);
          if (rule === undefined || rule.definition.kind !== 'detection')
            throw new ServiceError('REL_NOT_FOUND', `there is no detection rule ${JSON.stringify(id)}`);
          if (isSqlRule(rule.definition)) jobMatches.push(await matchesAt(ruleQuestion, rule, instant));
        }
        const { type, all: jobAlerts, counted, overtaken } = await raise(ruleQuestion, jobMatches, instant, true);
        // Rows that were read may be gone by now.
        if (overtaken()) continue;
        const matchCount = jobMatches.reduce((sum, each) => sum + each.matches.length, 0);
        const rows = jobAlerts.length === 0 ? null : putAlerts(type, jobAlerts, counted, jobWork.run);
        return { rows, alerts: jobAlerts.length, result: { matches: matchCount } };
      }
    }
    const isTraining = jobTask.function?.toUpperCase() === 'TRAIN_IDENTITIES';
    const request = { ...questionOf(jobTask), basis: instant, time: 'current', signal, queriesOnly: true } as const;
    const jobAnswer = await planner.query(invocation, isTraining ? request : { ...request, rows: onlyCountedRows });
    const rows = isTraining ? modelRows(invocation, jobAnswer) : null;
    return { rows, alerts: 0, result: { rows: jobAnswer.rowCount } };
  };
}

/** The alert that a job was paused: its id names the job and the run, so that it stays one alert however often it is sent. */
export function alertPaused(invocation: Invocation, job: JobRecord, run: RunRecord, pauseReason: string): PutRows {
  const pausedAlert = {
    id: createHash('sha256')
      .update(canonicalJson(['paused/1', job.id, run.id]))
      .digest('hex'),
    rule: { id: job.id, version: 1, definition: { name: `a job is paused: ${pauseReason}`, severity: 'medium' as const } },
    match: { type: null, key: null, systemFrom: null, values: [] },
    count: 1,
  };
  return putAlerts(alertTypeIn(invocation.snapshot().catalog), [pausedAlert], new Map(), run.id);
}

/** Nobody reads the rows of a job's answer: they are not copied out of the store. */
const onlyCountedRows: RowTaker = { rows: 0, bytes: 0, take: () => true, restart: () => undefined };

const isSqlRule = ({ language }: DetectionDefinition): boolean => language === 'sql';

/** A question, or the call of a table function with its arguments in their order. */
export function questionOf(task: { readonly sql?: string; readonly function?: string; readonly arguments?: Json }): {
  readonly sql: string;
  readonly parameters?: readonly Literal[];
} {
  if (task.sql !== undefined) return { sql: task.sql };
  if (task.function === undefined) throw new ServiceError('REL_NOT_IMPLEMENTED', 'this version runs no such work yet');
  const jobArguments = task.arguments ?? [];
  if (!Array.isArray(jobArguments)) throw new ServiceError('REL_INVALID', 'arguments of a function are a list');
  const parameters = jobArguments.map((jobArgument: Json): Literal => {
    if (jobArgument === null || typeof jobArgument === 'string' || typeof jobArgument === 'boolean') return jobArgument;
    if (typeof jobArgument === 'number') return Number.isSafeInteger(jobArgument) ? BigInt(jobArgument) : jobArgument;
    throw new ServiceError('REL_INVALID', 'arguments of a function are texts, numbers, booleans and null');
  });
  if (!/^\w+$/.test(task.function)) throw new ServiceError('REL_INVALID', `${quoteName(task.function)} is no name of a function`);
  return { sql: `SELECT * FROM ${task.function}(${parameters.map((_, i) => `$${i + 1}`).join(', ')})`, parameters };
}
