/** The common part of routes that answer queries: the body they take, and the one step from a query to its answer. */
import { isUtf8 } from 'node:buffer';
import { z } from 'zod';
import type { Action } from '../../governance/gate-contract.ts';
import { checkText } from '../../log/values/value.ts';
import type { Answer, RowTaker } from '../../planner/planner-contract.ts';
import type { TypoTolerance } from '../../governance/text-search/text-query.ts';
import { inBothCases, oneSpelling } from '../schemas/member-spelling.ts';
import { typoTolerance } from '../schemas/search-body.ts';
import { reasons } from '../schemas/request-terms.ts';
import type { HttpContext, GateRequest } from './context.ts';
import { statedPurpose } from './request-headers.ts';
import { invoke, signalOf } from './invoke.ts';

/** Room for the longest statement with every character escaped to six: a longer body is not read. */
export const questionBytesMax = 8 << 20;

const consistency = z
  .enum(['strong', 'eventual'])
  .describe('strong by default; eventual: nearest vectors may be approximate, scores of a graph go on from earlier ones');

export const questionBody = z
  .object({
    sql: z.string().describe('one read-only statement'),
    ...reasons,
    consistency: consistency.optional(),
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

const plainNames: ReadonlySet<string> = new Set<keyof Question>(['sql', 'purpose', 'branch', 'break_glass', 'access_scope_ref']);

/** A body of nothing but texts under the names of `Question`; undefined for any other, which its schema may take or not. */
export function plainQuestion(bytes: Buffer): Question | undefined {
  if (!isUtf8(bytes)) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString());
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null || !('sql' in value)) return undefined;
  for (const name in value) {
    if (!plainNames.has(name)) return undefined;
    if (typeof (value as Record<string, unknown>)[name] !== 'string') return undefined;
  }
  return value as Question;
}

export interface AskOptions {
  readonly action: Action;
  /** Refuses control statements: nothing may change by a request that proxies and browsers repeat at will. */
  readonly queriesOnly?: boolean;
  /** Takes rows as they are read. */
  readonly rows?: RowTaker;
}

/**
 * Runs `use` on the governed answer; an error that it throws is in the access record. The record has been appended when this
 * resolves, so rows may be sent then, and not before.
 */
export async function ask<T>(
  context: HttpContext,
  request: GateRequest,
  question: Question,
  options: AskOptions,
  use: (answer: Answer) => T,
): Promise<T> {
  const { sql, purpose, consistency: wanted } = question;
  const typo = question.typo_tolerance ?? question.typoTolerance;
  checkText(sql, 'the statement');
  const signal = signalOf(request.raw.socket);
  return invoke(context, request, options.action, purpose, async (invocation) => {
    const answer = await context.planner.query(invocation, {
      sql,
      purpose: statedPurpose(request, purpose),
      signal,
      queriesOnly: options.queriesOnly === true,
      ...(options.rows ? { rows: options.rows } : {}),
      ...(typo && { typo }),
      ...(wanted && { consistency: wanted }),
    });
    return use(answer);
  });
}
