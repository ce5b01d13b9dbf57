/** Schemas that several routes share. They check requests and describe them in /openapi.json. */
import { z } from 'zod';

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

/** What every route may answer instead. */
export const problems = { '4xx': problem, '5xx': problem } as const;

/** `true`, `1` or an empty value (`?hard`) are yes. */
export const flag = z
  .enum(['true', 'false', '1', '0', ''])
  .optional()
  .transform((text) => text === 'true' || text === '1' || text === '');

/** An i64 in a reply. */
export const nanoseconds = z.int().describe('nanoseconds since 1970 UTC, exact');
