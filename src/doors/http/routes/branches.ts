/**
 * Branches: forking everything, forking types only, listing and deleting. Source: specification, "Branching, namespaces,
 * schema". A namespace is a branch by another name.
 */
import { z } from 'zod';
import type { Invocation } from '../../../governance/gate-contract.ts';
import type { App, FastifyRequest, HttpContext } from '../context.ts';
import { wantsSync } from '../headers.ts';
import { invoke } from '../invoke.ts';
import { nanoseconds, problems } from '../schemas.ts';

const nameParams = z.object({ name: z.string().describe('1 to 128 characters') });

const forked = z
  .object({ created: z.boolean(), branch: z.string(), source: z.string() })
  .meta({ id: 'ForkedBranch', description: 'the branch stands, and reads what its source held until now' });

const branch = z
  .object({
    name: z.string(),
    tenant: z.string().nullable().describe('whose name it is; null for main and what every tenant sees'),
    source: z.string().nullable().describe('null for main, which always exists'),
    forked_at: nanoseconds.nullable(),
    shares: z.enum(['everything', 'ontology']),
    pinned: z.boolean().describe('has a part of the plan cache to itself'),
  })
  .meta({ id: 'Branch' });

const forking = { access: 'token', action: 'fork', bucket: 'write' } as const;

export function registerBranches(app: App, context: HttpContext): void {
  app.route({
    method: 'POST',
    url: '/v1/namespaces/:name/branch',
    config: forking,
    schema: {
      summary: 'Fork a branch: all types and rows of its source as of now',
      tags: ['branches'],
      params: nameParams,
      body: z.object({ branch_from: z.string().describe('the source') }),
      response: { 201: forked, ...problems },
    },
    handler: async (request, reply) => {
      const made = await fork(context, request, request.params.name, request.body.branch_from, 'everything');
      return reply.code(201).send(made);
    },
  });

  app.route({
    method: 'POST',
    url: '/schema/branches/:name',
    config: forking,
    schema: {
      summary: 'Fork a branch of types only: none of its source’s rows',
      tags: ['branches'],
      params: nameParams,
      body: z.object({ from: z.string().describe('the source') }),
      response: { 201: forked, ...problems },
    },
    handler: async (request, reply) => {
      const made = await fork(context, request, request.params.name, request.body.from, 'ontology');
      return reply.code(201).send(made);
    },
  });

  app.route({
    method: 'GET',
    url: '/schema/branches',
    config: { access: 'token', action: 'inspect', bucket: 'read' },
    schema: {
      summary: 'List branches: the store’s, and those of the caller’s tenant',
      tags: ['branches'],
      response: { 200: z.object({ branches: z.array(branch) }), ...problems },
    },
    handler: (request) =>
      invoke(context, request, 'inspect', undefined, async (invocation) => {
        const branches = listed(invocation, new Set(context.settings.SERVICE_PINNED_NAMESPACES));
        invocation.describe({ rowCount: branches.length });
        return { branches };
      }),
  });

  app.route({
    method: 'DELETE',
    url: '/schema/branches/:name',
    config: forking,
    schema: {
      summary: 'Delete a branch and free what only it holds',
      tags: ['branches'],
      params: nameParams,
      response: { 200: z.object({ deleted: z.boolean(), branch: z.string() }), ...problems },
    },
    handler: (request) =>
      invoke(context, request, 'fork', undefined, async (invocation) => {
        const { name } = request.params;
        await invocation.submit({ kind: 'delete-branch', name }, { sync: wantsSync(request) });
        return { deleted: true, branch: name };
      }),
  });
}

function fork(
  context: HttpContext,
  request: FastifyRequest,
  name: string,
  source: string,
  shares: 'everything' | 'ontology',
): Promise<z.infer<typeof forked>> {
  return invoke(context, request, 'fork', undefined, async (invocation) => {
    await invocation.submit({ kind: 'fork-branch', name, source, shares }, { sync: wantsSync(request) });
    return { created: true, branch: name, source };
  });
}

function listed(invocation: Invocation, pinned: ReadonlySet<string>) {
  const main = { name: 'main', tenant: null, source: null, instant: null, shares: 'everything' as const };
  return [main, ...invocation.branches()].map(({ name, tenant, source, instant, shares }) => ({
    name,
    tenant,
    source,
    forked_at: instant,
    shares,
    pinned: pinned.has(name),
  }));
}
