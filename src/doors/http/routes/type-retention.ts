/** /types/:name/retention: how long rows of a type are kept. */
import { z } from 'zod';
import { endRetention, findRetention, retentionInput, retentionView, setRetention } from '../type-retention.ts';
import { route, type Route } from '../route.ts';

const retentionParams = z.object({ name: z.string() });
const retentionTags = ['schema'];
const retentionChanging = { access: 'token', action: 'schema', bucket: 'write' } as const;

export const typeRetentionRoutes: readonly Route[] = [
  route({
    method: 'PUT',
    path: '/types/:name/retention',
    ...retentionChanging,
    summary: 'Say how long rows of a type are kept: a job ends or removes those whose time is over',
    description:
      'It replaces what was said before. The first run is waited for, ten seconds at most. Rows under legal hold stay, and are listed.',
    tags: retentionTags,
    params: retentionParams,
    body: z.strictObject({ ...retentionInput, purpose: z.string().optional().describe('stated by every run') }),
    purposeIn: 'body',
    replies: { 200: retentionView },
    example: { params: { name: 'a type' }, body: { days: 36_500, by: 'valid_to', action: 'purge' } },
    run: async (
      retentionInvocation,
      {
        params: { name: retainedType },
        body: { days: retentionDays, by: retentionColumn, action: retentionAction },
        context: { schedule: retentionJobs },
      },
    ) =>
      setRetention(retentionInvocation, retentionJobs, retainedType, {
        days: retentionDays,
        by: retentionColumn,
        action: retentionAction,
      }),
  }),
  route({
    method: 'GET',
    path: '/types/:name/retention',
    access: 'token',
    action: 'inspect',
    bucket: 'read',
    summary: 'How long rows of a type are kept, and which are under legal hold',
    tags: retentionTags,
    params: retentionParams,
    replies: { 200: retentionView },
    example: { params: { name: 'a kept type' } },
    run: async (retentionInvocation, { params: { name: retainedType }, context: { schedule: retentionJobs } }) =>
      findRetention(retentionInvocation, retentionJobs, retainedType),
  }),
  route({
    method: 'DELETE',
    path: '/types/:name/retention',
    ...retentionChanging,
    summary: 'Keep the rows of a type: no job ends them any more',
    tags: retentionTags,
    params: retentionParams,
    replies: { 200: z.object({ type: z.string(), ended: z.literal(true) }) },
    example: { params: { name: 'a kept type' } },
    run: async (retentionInvocation, { params: { name: retainedType }, context: { schedule: retentionJobs } }) => {
      await endRetention(retentionInvocation, retentionJobs, retainedType);
      return { type: retainedType, ended: true };
    },
  }),
];
