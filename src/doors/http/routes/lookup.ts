/** POST /lookup/register and GET /lookup. Source: specification, "Branching, namespaces, schema". */
import { z } from 'zod';
import type { LookupStatus } from '../../../planner/standing/lookup-tables.ts';
import { limits } from '../../../log/values/value.ts';
import type { App, HttpContext } from '../context.ts';
import { invoke } from '../invoke.ts';
import { nanoseconds, problems } from '../schemas.ts';

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

export function registerLookupRoutes(app: App, context: HttpContext): void {
  app.route({
    method: 'POST',
    url: '/lookup/register',
    config: { access: 'token', action: 'schema', bucket: 'write' },
    schema: {
      summary: 'Register a CSV file as a lookup table until the next restart',
      tags: ['schema'],
      body: registerBody,
      response: { 201: lookupReply, ...problems },
    },
    handler: async (request, reply) => {
      const { name, path, key, fields, refresh_minutes: refreshMinutes = null } = request.body;
      const table = await invoke(context, request, 'schema', undefined, (invocation) => {
        // The decision about the action, before anything is read.
        invocation.snapshot();
        return context.lookups.register({ name, path, key, fields, refreshMinutes }, invocation.caller.path);
      });
      return reply.code(201).send(replyOf(table));
    },
  });
  app.route({
    method: 'GET',
    url: '/lookup',
    config: { access: 'token', action: 'inspect', bucket: 'read' },
    schema: {
      summary: 'Lookup tables of the organisation path and of those above it',
      tags: ['schema'],
      response: { 200: z.object({ lookups: z.array(lookupReply) }), ...problems },
    },
    handler: (request) =>
      invoke(context, request, 'inspect', undefined, async (invocation) => {
        invocation.snapshot();
        return { lookups: context.lookups.list(invocation.caller.path).map(replyOf) };
      }),
  });
}

function replyOf({ refreshMinutes, loadedAt, ...rest }: LookupStatus): object {
  return { ...rest, refresh_minutes: refreshMinutes, loaded_at: loadedAt };
}
