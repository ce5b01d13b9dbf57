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

const branchNameParams = z.object({ name: z.string().describe('1 to 128 characters') });

const forkedBranch = z
  .object({ created: z.boolean(), branch: z.string(), source: z.string() })
  .meta({ id: 'ForkedBranch', description: 'the branch stands, and reads what its source held until now' });

const branchShape = z
  .object({
    name: z.string(),
    tenant: z.string().nullable().describe('whose name it is; null for main and what every tenant sees'),
    source: z.string().nullable().describe('null for main, which always exists'),
    forked_at: nanoseconds.nullable(),
    shares: z.enum(['everything', 'ontology']),
    pinned: z.boolean().describe('has a part of the plan cache to itself'),
  })
  .meta({ id: 'Branch' });

const branchForking = { access: 'token', action: 'fork', bucket: 'write' } as const;

export const branchRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/v1/namespaces/:name/branch',
    ...branchForking,
    summary: 'Fork a branch: all types and rows of its source as of now',
    tags: ['branches'],
    params: branchNameParams,
    body: z.object({ branch_from: z.string().describe('the source') }),
    replies: { 201: forkedBranch },
    example: { params: { name: 'b1' }, body: { branch_from: 'main' } },
    run: (branchInvocation, { params: branchParams, body: branchBody, request: branchRequest }) =>
      forkBranch(branchInvocation, branchRequest, branchParams.name, branchBody.branch_from, 'everything'),
  }),

  route({
    method: 'POST',
    path: '/schema/branches/:name',
    ...branchForking,
    summary: 'Fork a branch of types only: none of its source’s rows',
    tags: ['branches'],
    params: branchNameParams,
    body: z.object({ from: z.string().describe('the source') }),
    replies: { 201: forkedBranch },
    example: { params: { name: 'b2' }, body: { from: 'main' } },
    run: (branchInvocation, { params: branchParams, body: branchBody, request: branchRequest }) =>
      forkBranch(branchInvocation, branchRequest, branchParams.name, branchBody.from, 'ontology'),
  }),

  route({
    method: 'GET',
    path: '/schema/branches',
    access: 'token',
    action: 'inspect',
    bucket: 'read',
    summary: 'List branches: the store’s, and those of the caller’s tenant',
    tags: ['branches'],
    replies: { 200: z.object({ branches: z.array(branchShape) }) },
    run: async (branchInvocation, { context: httpContext }) => {
      const branchViews = describeBranches(branchInvocation, new Set(httpContext.settings.SERVICE_PINNED_NAMESPACES));
      branchInvocation.describe({ rowCount: branchViews.length });
      return { branches: branchViews };
    },
  }),

  route({
    method: 'DELETE',
    path: '/schema/branches/:name',
    ...branchForking,
    summary: 'Delete a branch and free what only it holds',
    tags: ['branches'],
    params: branchNameParams,
    replies: { 200: z.object({ deleted: z.boolean(), branch: z.string() }) },
    example: { params: { name: 'a branch' } },
    run: async (branchInvocation, { params: branchParams, request: branchRequest }) => {
      const { name: branchName } = branchParams;
      await branchInvocation.submit({ kind: 'delete-branch', name: branchName }, { sync: wantsSync(branchRequest) });
      return { deleted: true, branch: branchName };
    },
  }),
];

async function forkBranch(
  forkInvocation: Invocation,
  forkRequest: FastifyRequest,
  branchName: string,
  sourceBranch: string,
  branchShares: 'everything' | 'ontology',
): Promise<Answered> {
  await forkInvocation.submit(
    { kind: 'fork-branch', name: branchName, source: sourceBranch, shares: branchShares },
    { sync: wantsSync(forkRequest) },
  );
  return reply(201, { created: true, branch: branchName, source: sourceBranch } satisfies z.infer<typeof forkedBranch>);
}

function describeBranches(branchInvocation: Invocation, pinnedBranches: ReadonlySet<string>) {
  const mainBranch = { name: 'main', tenant: null, source: null, instant: null, shares: 'everything' as const };
  return [mainBranch, ...branchInvocation.branches()].map(
    ({ name: branchName, tenant: branchTenant, source: sourceBranch, instant: forkedAt, shares: branchShares }) => ({
      name: branchName,
      tenant: branchTenant,
      source: sourceBranch,
      forked_at: forkedAt,
      shares: branchShares,
      pinned: pinnedBranches.has(branchName),
    }),
  );
}
