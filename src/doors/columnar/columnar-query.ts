/**
 * A question in the form that both columnar doors build: its settings, its time, the session of the catalogue, and the form of
 * its answer.
 */
import type { Clock } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import type { Invocation } from '../../governance/gate-contract.ts';
import { smallAnswer } from '../../planner/execution/small-answer.ts';
import type { Answer, PlannerContract } from '../../planner/planner-contract.ts';
import type { ClientSession } from '../../planner/system-catalogue/client-session.ts';
import type { TimeLimit } from '../shared/time-limit.ts';
import { timeOfTerms } from '../shared/session-terms.ts';
import { refusedAs } from './errors.ts';
import type { ColumnarSettings } from './settings.ts';
import type { ColumnarStatement } from './statement.ts';
import type { KnownTypes } from './column-types.ts';

export type Question = Extract<ColumnarStatement, { kind: 'question' }>;

export interface ColumnarQuestion {
  readonly question: Question;
  readonly settings: ColumnarSettings;
  /** The branch, as the client names it. */
  readonly database: string;
  readonly client: KnownTypes;
  readonly signal: AbortSignal;
}

/** `default` is main. */
export const branchOf = (branchDatabase: string): string => (branchDatabase === 'default' ? 'main' : branchDatabase);

/** Runs within an invocation of the gate. Throws the planner's errors, and REL_TOO_LARGE beyond `max_result_rows`. */
export async function answerColumnarQuery(
  planner: PlannerContract,
  invocation: Invocation,
  columnarQuery: ColumnarQuestion,
): Promise<Answer> {
  const { question, settings, database, signal } = columnarQuery;
  const terms = settings.terms(null);
  const answer = await planner.query(invocation, {
    sql: question.sql,
    parameters: question.parameters,
    dialect: 'wide',
    time: timeOfTerms(terms),
    purpose: terms.purpose,
    session: columnarSessionOf(invocation.caller.principal, columnarQuery),
    queriesOnly: true,
    signal,
  });
  if (question.describes !== null && answer.rowCount === 0)
    throw new ServiceError('REL_UNKNOWN_TYPE', `Table ${database}.${question.describes} doesn't exist`);
  const most = settings.count('max_result_rows');
  if (most > 0 && answer.rowCount > most)
    throw refusedAs(
      'rows',
      new ServiceError('REL_TOO_LARGE', `Limit for result exceeded, max rows: ${most}, current rows: ${answer.rowCount}`),
    );
  return answer.plan === null ? answer : planAsRows(answer, answer.plan);
}

/** The time that `max_execution_time` gives a question. */
export function timeLimitOf(settings: ColumnarSettings, clock: Clock, gone: AbortSignal): TimeLimit {
  const seconds = settings.seconds('max_execution_time');
  const milliseconds = seconds === 0 ? null : seconds * 1_000;
  return { clock, gone, milliseconds, errorText: `Timeout exceeded: maximum: ${seconds} seconds` };
}

/** The session that relations of the catalogue describe. */
function columnarSessionOf(
  columnarUser: string,
  { settings: sessionSettings, database, client: clientTypes }: ColumnarQuestion,
): ClientSession {
  return {
    user: columnarUser,
    database,
    process: 0,
    variables: {
      all: () => sessionSettings.all(),
      instants: clientTypes.dateTime64 ? 'timestamptz' : 'int8',
      set: (settingName) => {
        throw new ServiceError('REL_NOT_FOUND', `there is no setting ${JSON.stringify(settingName.slice(0, 100))}`);
      },
    },
  };
}

/** The lines of a plan. */
function planAsRows(explainAnswer: Answer, explainPlan: string): Answer {
  const planLines = explainPlan.split('\n').filter((planLine) => planLine !== '');
  const planRows = smallAnswer(
    [{ name: 'explain', type: 'string' }],
    planLines.map((planLine) => [planLine]),
    {
      asOfSystem: explainAnswer.asOfSystem,
      costUnits: explainAnswer.costUnits,
      processingTimeMs: explainAnswer.processingTimeMs,
    },
  );
  return { ...planRows, overtaken: () => explainAnswer.overtaken() };
}
