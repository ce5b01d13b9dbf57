/** POST /lookup/register and GET /lookup. Source: specification, "Branching, namespaces, schema". */
import { z } from 'zod';
import type { LookupStatus } from '../../../planner/continuous/views/lookup-tables.ts';
import { limits } from '../../../log/values/value.ts';
import { reply, route, type Route } from '../route.ts';
import { nanoseconds } from '../schemas.ts';

const registerBody = z
  .object({
    name: z.string(),
    path: z.string().describe('CSV file below SERVICE_LOOKUP_ROOT'),
    key: z.string().describe('column to look up by'),
    fields: z.array(z.string()).max(limits.columnsPerType).describe('columns that LOOKUP name(key) -> field may give'),
    refresh_minutes: z.int().nullable().optional(),
  })
  .meta({ id: 'LookupRegistration' });

const lookupReply = z
  .object({
    name: z.string(),
    path: z.string(),
    key: z.string(),
    fields: z.array(z.string()),
    refresh_minutes: z.int().nullable(),
    rows: z.int(),
    loaded_at: nanoseconds,
    failure: z.string().nullable().describe('why the last refresh left the table as it was'),
  })
  .meta({ id: 'LookupTable' });

export const lookupRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/lookup/register',
    access: 'token',
    action: 'schema',
    bucket: 'write',
    summary: 'Register a CSV file as a lookup table until the next restart',
    tags: ['schema'],
    body: registerBody,
    replies: { 201: lookupReply },
    example: { body: { name: 'other', path: 'codes.csv', key: 'code', fields: ['country'] } },
    run: async (invocation, { body, context }) => {
      const { name, path, key, fields, refresh_minutes: refreshMinutes = null } = body;
      // The decision about the action, before anything is read.
      invocation.snapshot();
      const table = await context.lookups.register({ name, path, key, fields, refreshMinutes }, invocation.caller.path);
      return reply(201, replyOf(table));
    },
  }),
  route({
    method: 'GET',
    path: '/lookup',
    access: 'token',
    action: 'inspect',
    bucket: 'read',
    summary: 'Lookup tables of the organisation path and of those above it',
    tags: ['schema'],
    replies: { 200: z.object({ lookups: z.array(lookupReply) }) },
    run: async (invocation, { context }) => {
      invocation.snapshot();
      return { lookups: context.lookups.list(invocation.caller.path).map(replyOf) };
    },
  }),
];

function replyOf({ refreshMinutes, loadedAt, ...rest }: LookupStatus): object {
  return { ...rest, refresh_minutes: refreshMinutes, loaded_at: loadedAt };
}
