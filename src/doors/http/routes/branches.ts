/**
 * Branches: forking everything, forking types only, listing and deleting. Source: specification, "Branching, namespaces,
 * schema". A namespace is a branch by another name.
 */
import { z } from 'zod';
import type { Invocation } from '../../../governance/gate-contract.ts';
import type { FastifyRequest } from '../context.ts';
import { wantsSync } from '../request-headers.ts';
import { type Answered, reply, type Route, route } from '../route.ts';
import { nanoseconds } from '../schemas.ts';

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

export const branchRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/v1/namespaces/:name/branch',
    ...forking,
    summary: 'Fork a branch: all types and rows of its source as of now',
    tags: ['branches'],
    params: nameParams,
    body: z.object({ branch_from: z.string().describe('the source') }),
    replies: { 201: forked },
    example: { params: { name: 'b1' }, body: { branch_from: 'main' } },
    run: (invocation, { params, body, request }) => fork(invocation, request, params.name, body.branch_from, 'everything'),
  }),

  route({
    method: 'POST',
    path: '/schema/branches/:name',
    ...forking,
    summary: 'Fork a branch of types only: none of its source’s rows',
    tags: ['branches'],
    params: nameParams,
    body: z.object({ from: z.string().describe('the source') }),
    replies: { 201: forked },
    example: { params: { name: 'b2' }, body: { from: 'main' } },
    run: (invocation, { params, body, request }) => fork(invocation, request, params.name, body.from, 'ontology'),
  }),

  route({
    method: 'GET',
    path: '/schema/branches',
    access: 'token',
    action: 'inspect',
    bucket: 'read',
    summary: 'List branches: the store’s, and those of the caller’s tenant',
    tags: ['branches'],
    replies: { 200: z.object({ branches: z.array(branch) }) },
    run: async (invocation, { context }) => {
      const branches = listBranches(invocation, new Set(context.settings.SERVICE_PINNED_NAMESPACES));
      invocation.describe({ rowCount: branches.length });
      return { branches };
    },
  }),

  route({
    method: 'DELETE',
    path: '/schema/branches/:name',
    ...forking,
    summary: 'Delete a branch and free what only it holds',
    tags: ['branches'],
    params: nameParams,
    replies: { 200: z.object({ deleted: z.boolean(), branch: z.string() }) },
    example: { params: { name: 'a branch' } },
    run: async (invocation, { params, request }) => {
      const { name } = params;
      await invocation.submit({ kind: 'delete-branch', name }, { sync: wantsSync(request) });
      return { deleted: true, branch: name };
    },
  }),
];

async function fork(
  invocation: Invocation,
  request: FastifyRequest,
  name: string,
  source: string,
  shares: 'everything' | 'ontology',
): Promise<Answered> {
  await invocation.submit({ kind: 'fork-branch', name, source, shares }, { sync: wantsSync(request) });
  return reply(201, { created: true, branch: name, source } satisfies z.infer<typeof forked>);
}

function listBranches(invocation: Invocation, pinned: ReadonlySet<string>) {
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
