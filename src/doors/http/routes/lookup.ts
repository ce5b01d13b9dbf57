/** POST /lookup/register and GET /lookup. Source: specification, "Branching, namespaces, schema". */
import { z } from 'zod';
import type { LookupStatus } from '../../../planner/continuous/views/lookup-tables.ts';
import { limits } from '../../../log/values/value.ts';
import { reply, route, type Route } from '../route.ts';
import { nanoseconds } from '../schemas.ts';

const lookupBody = z
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
    body: lookupBody,
    replies: { 201: lookupReply },
    example: { body: { name: 'other', path: 'codes.csv', key: 'code', fields: ['country'] } },
    run: async (lookupInvocation, { body: lookupRegistration, context: httpContext }) => {
      const {
        name: lookupName,
        path: lookupPath,
        key: lookupKey,
        fields: lookupFields,
        refresh_minutes: lookupRefreshMinutes = null,
      } = lookupRegistration;
      // The decision about the action, before anything is read.
      lookupInvocation.snapshot();
      const lookupTable = await httpContext.lookups.register(
        { name: lookupName, path: lookupPath, key: lookupKey, fields: lookupFields, refreshMinutes: lookupRefreshMinutes },
        lookupInvocation.caller.path,
      );
      return reply(201, describeLookup(lookupTable));
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
    run: async (lookupInvocation, { context: httpContext }) => {
      lookupInvocation.snapshot();
      return { lookups: httpContext.lookups.list(lookupInvocation.caller.path).map(describeLookup) };
    },
  }),
];

function describeLookup({ refreshMinutes, loadedAt, ...lookupMembers }: LookupStatus): object {
  return { ...lookupMembers, refresh_minutes: refreshMinutes, loaded_at: loadedAt };
}
