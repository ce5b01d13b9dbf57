/** POST /admin/reindex: builds text indexes again, before the first search or where one is in doubt. Answers do not change. */
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import type { JobWork } from '../../../governance/jobs/job-runner.ts';
import { route, type Route } from '../route.ts';

const reindexReply = z.object({ indexes: z.int().describe('of a column of a segment each'), bytes: z.int() });

const reindexBody = z.strictObject({
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
    body: reindexBody.nullish(),
    replies: { 200: reindexReply },
    run: async (reindexInvocation, { body: reindexFields, context: httpContext }) => {
      const reindexedType = reindexFields?.object_type ?? null;
      reindexInvocation.describe({ template: 'reindex', ...(reindexedType !== null && { objectType: reindexedType }) });
      const reindexTexts = async ({ signal: reindexSignal, progress: reindexProgress }: JobWork) => {
        const renewedIndexes = await httpContext.system.reindex(reindexedType, {
          signal: reindexSignal,
          onProgress: reindexProgress,
        });
        if (renewedIndexes === undefined)
          throw new ServiceError('REL_UNKNOWN_TYPE', `there are no rows of the type ${JSON.stringify(reindexedType)}`);
        return renewedIndexes;
      };
      const reindexResult = ({ indexes: indexCount }: { readonly indexes: number }) => ({ indexes: indexCount });
      const reindexJob = {
        kind: 'reindex',
        unit: 'indexes',
        onDrain: 'cancel',
        run: reindexTexts,
        resultOf: reindexResult,
        ...(reindexedType !== null && { about: reindexedType }),
      } as const;
      return httpContext.jobs.start(reindexJob, reindexInvocation.caller).ended;
    },
  }),
];
