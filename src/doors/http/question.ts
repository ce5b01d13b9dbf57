/** What the routes that answer questions share: the body they take, and the one step from a question to its answer. */
import { isUtf8 } from 'node:buffer';
import { z } from 'zod';
import type { Action } from '../../governance/gate-contract.ts';
import { checkText } from '../../log/value.ts';
import type { Answer, RowTaker } from '../../planner/planner-contract.ts';
import type { TypoTolerance } from '../../planner/search/query.ts';
import type { HttpContext, RequestFacts } from './context.ts';
import { statedPurpose } from './headers.ts';
import { invoke, signalOf } from './invoke.ts';

/** Members in snake case, as the specification has them, or in camel case. Source: specification, "Search", shape A. */
const typoTolerance = z
  .strictObject({
    enabled: z.boolean().optional().describe('true by default'),
    ...inBothCases('min_word_size', z.int().min(0).max(1_000).optional()),
    ...inBothCases('disable_on_words', z.array(z.string()).optional()),
    ...inBothCases('disable_on_attributes', z.array(z.string()).optional()),
  })
  .refine(...oneSpelling('min_word_size', 'disable_on_words', 'disable_on_attributes'));

/** The longest statement takes six of them with every character escaped: what is longer is not read, nor parsed. */
export const questionBytesMax = 8 << 20;

export const questionBody = z
  .object({
    sql: z.string().describe('one read-only statement'),
    purpose: z.string().optional().describe('why; recorded in the audit trail'),
    branch: z.string().optional().describe('branch to read; main by default'),
    break_glass: z.string().optional().describe('why a protected type is to be opened; recorded in the audit trail'),
    access_scope_ref: z.string().optional().describe('the access scope that the reader was cleared for'),
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
  readonly typo_tolerance?: z.infer<typeof typoTolerance> | undefined;
  readonly typoTolerance?: z.infer<typeof typoTolerance> | undefined;
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
  readonly questionsOnly?: boolean;
  /** Takes rows as they are read. */
  readonly rows?: RowTaker;
}

/**
 * What `use` makes of the governed answer; what it throws is in the access record. That record has been appended when
 * this resolves, so rows may leave then, and not before.
 */
export async function ask<T>(
  context: HttpContext,
  request: RequestFacts,
  question: Question,
  options: AskOptions,
  use: (answer: Answer) => T,
): Promise<T> {
  const { sql, purpose } = question;
  const typo = typoOf(question);
  checkText(sql, 'the statement');
  const signal = signalOf(request.raw.socket);
  return invoke(context, request, options.action, purpose, async (invocation) => {
    const answer = await context.planner.query(invocation, {
      sql,
      purpose: statedPurpose(request, purpose),
      signal,
      questionsOnly: options.questionsOnly === true,
      ...(options.rows ? { rows: options.rows } : {}),
      ...(typo && { typo }),
    });
    return use(answer);
  });
}

/** Undefined where the body says nothing of it. */
function typoOf({ typo_tolerance, typoTolerance: other }: Question): TypoTolerance | undefined {
  const said = typo_tolerance ?? other;
  return (
    said && {
      enabled: said.enabled ?? true,
      minWordSize: said.min_word_size ?? said.minWordSize ?? 0,
      disableOnWords: said.disable_on_words ?? said.disableOnWords ?? [],
      disableOnAttributes: said.disable_on_attributes ?? said.disableOnAttributes ?? [],
    }
  );
}

function inBothCases<Name extends string, T extends z.ZodType>(name: Name, type: T): Record<Name | CamelCase<Name>, T> {
  return { [name]: type, [camelCase(name)]: type } as Record<Name | CamelCase<Name>, T>;
}

/** A check and what it says: of a member in two spellings neither would be the one that counts. */
function oneSpelling(...names: readonly string[]): [(value: object) => boolean, string] {
  return [
    (value) => !names.some((name) => Object.hasOwn(value, name) && Object.hasOwn(value, camelCase(name))),
    `${names.join(', ')}: in one spelling each, snake case or camel case`,
  ];
}

function camelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<CamelCase<Tail>>}` : Name;
