/**
 * Access policies, /admin/policies: Cedar texts by id. Without any, a known caller works inside its own tenant; with
 * the first, everything that no policy permits is denied; without the last, it is as before. A set that was read is changed only
 * as it was read with `If-Match`.
 */
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import type { PolicyDesk, PolicyView } from '../../../governance/desk-contract.ts';
import { formatInstant } from '../../../log/values/timestamp.ts';
import type { FastifyRequest } from '../context.ts';
import { headerText } from '../headers.ts';
import { submitNamed } from '../invoke.ts';
import { reply, route, type Route } from '../route.ts';
import { idParams } from '../tenant-shapes.ts';

const reading = { access: 'admin', action: 'inspect' } as const;
const changing = { access: 'admin', action: 'administer' } as const;
const tags = ['policies'];

const policyShape = z
  .object({ id: z.string(), policy: z.string().describe('Cedar'), installed_at: z.string() })
  .meta({ id: 'Policy' });

const setShape = {
  digest: z.string().describe('SHA-256 of the RFC 8785 JSON of {id: policy}; empty while no policy is installed'),
  epoch: z.int().describe('rises with every change'),
};

const warnings = z.array(z.string()).describe('what was installed though it can hardly be meant');
const changed = policyShape.extend({ ...setShape, warnings }).meta({ id: 'ChangedPolicy' });

export const policyRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/admin/policies',
    ...reading,
    summary: 'Installed policies',
    tags,
    replies: { 200: z.object({ policies: z.array(policyShape), ...setShape }) },
    run: async (invocation) => {
      const desk = invocation.policies();
      const policies = desk.policies().map(describePolicy);
      invocation.describe({ rowCount: policies.length });
      return reply(200, { policies, ...setOf(desk) }, etagOf(desk));
    },
  }),

  route({
    method: 'GET',
    path: '/admin/policies/:id',
    ...reading,
    summary: 'A policy',
    tags,
    params: idParams,
    replies: { 200: policyShape },
    example: { params: { id: 'a policy' } },
    run: async (invocation, { params }) => {
      const desk = invocation.policies();
      return reply(200, describePolicy(desk.policy(params.id)), etagOf(desk));
    },
  }),

  route({
    method: 'PUT',
    path: '/admin/policies/:id',
    ...changing,
    summary: 'Install a policy, or replace it',
    tags,
    params: idParams,
    body: z.strictObject({ policy: z.string().describe('Cedar: one policy or several') }),
    replies: { 200: changed, 201: changed.describe('there was none of this id') },
    example: { params: { id: 'p1' }, body: { policy: 'permit(principal, action, resource);' } },
    run: async (invocation, { params: { id }, body: { policy: text }, request }) => {
      const before = invocation.policies();
      checkMatch(request, before);
      const given = before.checkText(id, text);
      const existed = before.policies().some((policy) => policy.id === id);
      await submitNamed(invocation, { kind: 'put-policy', id, text });
      const desk = invocation.policies();
      const reported: z.infer<typeof changed> = { ...describePolicy(desk.policy(id)), ...setOf(desk), warnings: [...given] };
      return reply(existed ? 200 : 201, reported, etagOf(desk));
    },
  }),

  route({
    method: 'DELETE',
    path: '/admin/policies/:id',
    ...changing,
    summary: 'Delete a policy',
    tags,
    params: idParams,
    replies: { 200: z.object({ id: z.string(), deleted: z.literal(true), ...setShape }) },
    example: { params: { id: 'a policy' } },
    run: async (invocation, { params: { id }, request }) => {
      checkMatch(request, invocation.policies());
      await submitNamed(invocation, { kind: 'delete-policy', id });
      const desk = invocation.policies();
      return reply(200, { id, deleted: true, ...setOf(desk) }, etagOf(desk));
    },
  }),
];

function setOf({ digest, epoch }: PolicyDesk): { digest: string; epoch: number } {
  return { digest, epoch };
}

function describePolicy({ id, text, time }: PolicyView): z.infer<typeof policyShape> {
  return { id, policy: text, installed_at: formatInstant(time) };
}

/** An entity tag is never empty. */
const etagOf = ({ digest }: PolicyDesk): { etag: string } => ({ etag: `"${digest || 'none'}"` });

function checkMatch(request: FastifyRequest, desk: PolicyDesk): void {
  const header = headerText(request, 'if-match');
  if (header === null) return;
  const digests = header.split(',').map((tag) => /^ *"([0-9a-f]{64}|none)" *$/.exec(tag)?.[1]);
  if (digests.includes(undefined)) throw new ServiceError('REL_INVALID', 'If-Match holds entity tags as ETag has shown them');
  desk.checkUnchanged(digests.map((digest) => (digest === 'none' ? '' : digest!)));
}
