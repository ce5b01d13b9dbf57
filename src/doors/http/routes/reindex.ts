/** Indexes of texts made anew on request: before the first who searches, or where one is in doubt. No answer changes by it. */
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import type { JobWork } from '../../../governance/jobs/job-runner.ts';
import type { App, HttpContext } from '../context.ts';
import { invoke } from '../invoke.ts';
import { problems } from '../schemas.ts';

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
export function registerReindex(app: App, context: HttpContext): void {
  app.route({
    method: 'POST',
    url: '/admin/reindex',
    config: { access: 'admin', action: 'administer' },
    schema: {
      summary: 'Make indexes of texts anew',
      tags: ['system'],
      body: body.nullish(),
      response: { 200: reply, ...problems },
    },
    handler: (request) =>
      invoke(context, request, 'administer', undefined, async (invocation) => {
        const type = request.body?.object_type ?? null;
        invocation.describe({ template: 'reindex', ...(type !== null && { objectType: type }) });
        const run = async ({ signal, progress }: JobWork) => {
          const renewed = await context.system.reindex(type, { signal, onProgress: progress });
          if (renewed === undefined)
            throw new ServiceError('REL_UNKNOWN_TYPE', `nobody has rows of the type ${JSON.stringify(type)}`);
          return renewed;
        };
        const job = { kind: 'reindex', unit: 'indexes', onDrain: 'cancel', run, ...(type !== null && { about: type }) } as const;
        return context.jobs.start(job, invocation.caller).ended;
      }),
  });
}
