/** Schemas that several routes share. They check requests and describe them in /openapi.json. */
import { z } from 'zod';
import { didYouMean } from '../../errors.ts';

export const problem = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    instance: z.string(),
    correlation_id: z.string(),
    retryable: z.boolean().optional(),
  })
  .meta({ id: 'Problem', description: 'application/problem+json' });

/** The error replies of every route. */
export const problems = { '4xx': problem, '5xx': problem } as const;

/** `true`, `1` or an empty value (`?hard`) are yes. */
export const flag = z
  .enum(['true', 'false', '1', '0', ''])
  .optional()
  .transform((text) => text === 'true' || text === '1' || text === '');

/** An i64 in a reply. */
export const nanoseconds = z.int().describe('nanoseconds since 1970 UTC, exact');

/** Parameters of a URL that any request may have. */
const anyRequestParameters = {
  branch: z.string().optional().describe('branch to read; main by default'),
  break_glass: z.string().optional().describe('why a protected type is to be opened; recorded in the audit trail'),
  access_scope_ref: z.string().optional().describe('the access scope that the reader was cleared for'),
};

/** Parameters of a URL, and no others: ignoring an unknown filter would return too many rows. */
export function parametersOf<Shape extends z.ZodRawShape>(parameterShape: Shape) {
  const knownParameters = { ...parameterShape, ...anyRequestParameters };
  return z.strictObject(knownParameters, {
    error: (issue) => {
      if (issue.code !== 'unrecognized_keys') return undefined;
      const [name = ''] = issue['keys'] as readonly string[];
      return `unknown parameter ${JSON.stringify(name)}${didYouMean(name, Object.keys(knownParameters))}`;
    },
  });
}
