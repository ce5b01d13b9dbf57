/**
 * Types and what becomes of their rows: /types, /types/:name/schema, /ontology/migrate, DELETE soft and hard.
 * Source: specification, "Other HTTP routes".
 */
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import type { Invocation } from '../../../governance/gate-contract.ts';
import { namedViews } from '../../../planner/languages/view-source.ts';
import type { EvolveType, RegisterType } from '../../../projections/command.ts';
import {
  evolution,
  guard,
  meaning,
  properties,
  registrations,
  describeType,
  typeView,
  meaningOf,
  typeBody,
  type TypeBody,
  typeReply,
} from '../../schemas/type-body.ts';
import { reply, route, type Route } from '../route.ts';
import { wantsSync } from '../request-headers.ts';
import { invoke } from '../invoke.ts';
import { flag, nanoseconds } from '../schemas.ts';

const changedType = typeReply.extend({ changed: z.boolean() }).meta({ id: 'ChangedType' });

const deletion = z.object({
  type: z.string(),
  id: z.string(),
  deleted: z.enum(['soft', 'hard']),
  system_from: nanoseconds,
  durability: z.enum(['synced', 'buffered']),
});

const viewReply = z
  .object({ name: z.string(), sql: z.string(), refresh_secs: z.int().describe('0: it is asked anew each time') })
  .meta({ id: 'View' });

const nameParams = z.object({ name: z.string() });
const reading = { access: 'token', action: 'inspect', bucket: 'read' } as const;
const changing = { access: 'token', action: 'schema', bucket: 'write' } as const;

export const schemaRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/types',
    ...reading,
    summary: 'List types and views',
    tags: ['schema'],
    replies: { 200: z.object({ types: z.array(typeReply), views: z.array(viewReply), ontology_version: z.int() }) },
    run: async (invocation) => {
      const snapshot = invocation.snapshot();
      const { catalog, protection } = snapshot;
      const types = catalog.types().map((type) => describeType(type, protection(type.name)));
      const views = namedViews(snapshot).map(({ name, sql, refreshSecs }) => ({ name, sql, refresh_secs: refreshSecs }));
      invocation.describe({ rowCount: types.length });
      return { types, views, ontology_version: catalog.ontologyVersion };
    },
  }),

  route({
    method: 'GET',
    path: '/types/:name',
    ...reading,
    summary: 'Show a type',
    tags: ['schema'],
    params: nameParams,
    replies: { 200: typeReply },
    example: { params: { name: 'a type' } },
    run: async (invocation, { params }) => {
      invocation.describe({ objectType: params.name, rowCount: 1 });
      return typeView(invocation, params.name);
    },
  }),

  route({
    method: 'POST',
    path: '/types',
    ...changing,
    summary: 'Register a type',
    tags: ['schema'],
    body: typeBody,
    replies: { 200: changedType.describe('it stood so already'), 201: changedType },
    example: { body: { name: 'Fresh', properties: { a: 'string' } } },
    run: async (invocation, { body, request }) => {
      invocation.describe({ objectType: body.name });
      const steps = registrations(body);
      const command = steps.length === 1 ? steps[0]! : ({ kind: 'migrate-types', steps } as const);
      const { changed } = await invocation.submit(command, { sync: wantsSync(request) });
      return reply(changed ? 201 : 200, { ...typeView(invocation, body.name), changed });
    },
  }),

  route({
    method: 'POST',
    path: '/types/:name/schema',
    ...changing,
    summary: 'Add columns to a type, or widen them; say what its rows are',
    tags: ['schema'],
    params: nameParams,
    body: z.strictObject({ properties: properties.optional(), ...guard, ...meaning }),
    replies: { 200: changedType },
    example: { params: { name: 'a type' }, body: { properties: { more: 'string' } } },
    run: async (invocation, { params: { name }, body, request }) => {
      invocation.describe({ objectType: name });
      const command = evolution(name, body.properties ?? {}, body);
      const { changed } = await invocation.submit(command, { sync: wantsSync(request) });
      return { ...typeView(invocation, name), changed };
    },
  }),

  route({
    method: 'POST',
    path: '/ontology/migrate',
    ...changing,
    summary: 'Register or evolve several types',
    description: 'In the order given, all of them or none: one that is refused leaves everything as it was.',
    tags: ['schema'],
    body: z.strictObject({ types: z.array(typeBody).min(1).max(1000) }),
    replies: { 200: z.object({ types: z.array(changedType), ontology_version: z.int() }) },
    example: { body: { types: [{ name: 'Fresh2', properties: { a: { type: 'string' } } }] } },
    run: async (invocation, { body, request }) => {
      const bodies = body.types;
      const steps = stepsOf(bodies, invocation);
      const { ids } = await invocation.submit({ kind: 'migrate-types', steps }, { sync: wantsSync(request) });
      const types = bodies.map(({ name }) => ({ ...typeView(invocation, name), changed: ids.includes(name) }));
      return { types, ontology_version: invocation.snapshot().catalog.ontologyVersion };
    },
  }),

  route({
    method: 'DELETE',
    path: '/types/:name/:id',
    access: 'token',
    inTransaction: true,
    action: 'delete',
    bucket: 'write',
    summary: 'Delete a row: softly, keeping its history, or with hard=true every version of it',
    tags: ['schema'],
    params: z.object({ name: z.string(), id: z.string() }),
    query: z.object({ hard: flag, purpose: z.string().optional() }),
    replies: { 200: deletion },
    example: { params: { name: 'a type', id: 'another row' } },
    handle: ({ params, query, request, context }) => {
      const { name, id } = params;
      const { hard, purpose } = query;
      return invoke(context, request, hard ? 'remove' : 'delete', purpose, async (invocation) => {
        invocation.describe({ objectType: name });
        const command = { kind: hard ? 'remove-rows' : 'delete-rows', type: name, keys: [id] } as const;
        const outcome = await invocation.submit(command, { sync: wantsSync(request) });
        const [refused] = outcome.errors;
        if (refused?.code === 'REL_CONFLICT') throw new ServiceError('REL_CONFLICT', refused.detail);
        if (outcome.accepted === 0) throw new ServiceError('REL_NOT_FOUND', 'no such row');
        invocation.describe({ rowCount: outcome.accepted });
        const deleted = hard ? 'hard' : 'soft';
        return { type: name, id, deleted, system_from: outcome.systemFrom, durability: outcome.durability };
      });
    },
  }),
];

/** Registers unknown types, evolves known ones; a name that comes again counts as known. */
function stepsOf(bodies: readonly TypeBody[], invocation: Invocation): (RegisterType | EvolveType)[] {
  const { catalog } = invocation.snapshot();
  const keys = new Map<string, string | null>();
  return bodies.flatMap((body) => {
    const { name, primary_key: primaryKey } = body;
    invocation.describe({ objectType: name });
    const known = keys.has(name) ? keys.get(name)! : catalog.type(name)?.primaryKey;
    if (known === undefined) {
      keys.set(name, primaryKey ?? null);
      return registrations(body);
    }
    if (primaryKey !== undefined && primaryKey !== known) {
      throw new ServiceError('REL_CONFLICT', `the primary key of ${name} can't be changed`);
    }
    const says = [body.protected, body.access_scope, ...Object.values(meaningOf(body))].some((each) => each !== undefined);
    return body.properties === undefined && !says ? [] : [evolution(name, body.properties ?? {}, body)];
  });
}
