/** POST /admin/reindex: builds text indexes again, before the first search or where one is in doubt. Answers do not change. */
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import type { JobWork } from '../../../governance/jobs/job-runner.ts';
import { route, type Route } from '../route.ts';

const reply = z.object({ indexes: z.int().describe('of a column of a segment each'), bytes: z.int() });

const body = z.strictObject({
  object_type: z
    .string()
    .min(1)
    .max(128)
    .optional()
    .describe('every column of texts of it; without one, columns that were searched since the start'),
});

/** POST /admin/reindex. */
export const reindexRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/admin/reindex',
    access: 'admin',
    action: 'administer',
    summary: 'Make indexes of texts anew',
    tags: ['system'],
    body: body.nullish(),
    replies: { 200: reply },
    run: async (invocation, { body, context }) => {
      const type = body?.object_type ?? null;
      invocation.describe({ template: 'reindex', ...(type !== null && { objectType: type }) });
      const run = async ({ signal, progress }: JobWork) => {
        const renewed = await context.system.reindex(type, { signal, onProgress: progress });
        if (renewed === undefined)
          throw new ServiceError('REL_UNKNOWN_TYPE', `there are no rows of the type ${JSON.stringify(type)}`);
        return renewed;
      };
      const resultOf = ({ indexes }: { readonly indexes: number }) => ({ indexes });
      const job = {
        kind: 'reindex',
        unit: 'indexes',
        onDrain: 'cancel',
        run,
        resultOf,
        ...(type !== null && { about: type }),
      } as const;
      return context.jobs.start(job, invocation.caller).ended;
    },
  }),
];
