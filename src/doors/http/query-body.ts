/** The common part of routes that answer queries: the body they take, and the one step from a query to its answer. */
import { isUtf8 } from 'node:buffer';
import { z } from 'zod';
import type { Action } from '../../governance/gate-contract.ts';
import { checkText } from '../../log/values/value.ts';
import type { Answer, RowTaker } from '../../planner/planner-contract.ts';
import type { TypoTolerance } from '../../governance/text-search/text-query.ts';
import { inBothCases, oneSpelling } from '../verbs/member-spelling.ts';
import { typoTolerance } from './search-body.ts';
import { reasons } from './request-terms.ts';
import type { HttpContext, GateRequest } from './context.ts';
import { statedPurpose } from './request-headers.ts';
import { invoke, signalOf } from './invoke.ts';

/** Room for the longest statement with every character escaped to six: a longer body is not read. */
export const questionBytesMax = 8 << 20;

const consistencyField = z
  .enum(['strong', 'eventual'])
  .describe('strong by default; eventual: nearest vectors may be approximate, scores of a graph go on from earlier ones');

export const questionBody = z
  .object({
    sql: z.string().describe('one read-only statement'),
    ...reasons,
    consistency: consistencyField.optional(),
    ...inBothCases('typo_tolerance', typoTolerance.optional()),
  })
  .refine(...oneSpelling('typo_tolerance'))
  .meta({ id: 'Query' });

export interface Question {
  readonly sql: string;
  readonly purpose?: string | undefined;
  readonly branch?: string | undefined;
  readonly break_glass?: string | undefined;
  readonly access_scope_ref?: string | undefined;
  readonly consistency?: 'strong' | 'eventual' | undefined;
  readonly typo_tolerance?: TypoTolerance | undefined;
  readonly typoTolerance?: TypoTolerance | undefined;
}

const plainQuestionFields: ReadonlySet<string> = new Set<keyof Question>([
  'sql',
  'purpose',
  'branch',
  'break_glass',
  'access_scope_ref',
]);

/** A body of nothing but texts under the names of `Question`; undefined for any other, which its schema may take or not. */
export function plainQuestion(questionBytes: Buffer): Question | undefined {
  if (!isUtf8(questionBytes)) return undefined;
  let questionValue: unknown;
  try {
    questionValue = JSON.parse(questionBytes.toString());
  } catch {
    return undefined;
  }
  if (typeof questionValue !== 'object' || questionValue === null || !('sql' in questionValue)) return undefined;
  for (const questionField in questionValue) {
    if (!plainQuestionFields.has(questionField)) return undefined;
    if (typeof (questionValue as Record<string, unknown>)[questionField] !== 'string') return undefined;
  }
  return questionValue as Question;
}

export interface AskOptions {
  readonly action: Action;
  /** Refuses control statements: nothing may change by a request that proxies and browsers repeat at will. */
  readonly queriesOnly?: boolean;
  /** Takes rows as they are read. */
  readonly rows?: RowTaker;
}

/**
 * Runs `useAnswer` on the governed answer; an error that it throws is in the access record. The record has been appended when this
 * resolves, so rows may be sent then, and not before.
 */
export async function ask<T>(
  httpContext: HttpContext,
  questionRequest: GateRequest,
  question: Question,
  askOptions: AskOptions,
  useAnswer: (answer: Answer) => T,
): Promise<T> {
  const { sql, purpose, consistency: wantedConsistency } = question;
  const statedTypoTolerance = question.typo_tolerance ?? question.typoTolerance;
  checkText(sql, 'the statement');
  const signal = signalOf(questionRequest.raw.socket);
  return invoke(httpContext, questionRequest, askOptions.action, purpose, async (queryInvocation) => {
    const answer = await httpContext.planner.query(queryInvocation, {
      sql,
      purpose: statedPurpose(questionRequest, purpose),
      signal,
      queriesOnly: askOptions.queriesOnly === true,
      ...(askOptions.rows ? { rows: askOptions.rows } : {}),
      ...(statedTypoTolerance && { typo: statedTypoTolerance }),
      ...(wantedConsistency && { consistency: wantedConsistency }),
    });
    return useAnswer(answer);
  });
}
