/**
 * Access policies, /admin/policies: Cedar texts by id. Without any, whoever is known works inside their own tenant; with the
 * first, everything that none permits is denied; without the last, it is as before. A set that was read is changed only
 * as it was read with `If-Match`.
 */
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import type { PolicyDesk, PolicyView } from '../../../governance/desks.ts';
import type { Invocation } from '../../../governance/gate-contract.ts';
import { formatInstant } from '../../../log/values/timestamp.ts';
import type { App, FastifyRequest, HttpContext } from '../context.ts';
import { headerText } from '../headers.ts';
import { invoke, submitNamed } from '../invoke.ts';
import { problems } from '../schemas.ts';
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

export function registerPolicies(app: App, context: HttpContext): void {
  app.route({
    method: 'GET',
    url: '/admin/policies',
    config: reading,
    schema: {
      summary: 'Installed policies',
      tags,
      response: { 200: z.object({ policies: z.array(policyShape), ...setShape }), ...problems },
    },
    handler: async (request, reply) => {
      const set = await invoke(context, request, 'inspect', undefined, async (invocation) => {
        const desk = invocation.policies();
        const policies = desk.policies().map(shown);
        invocation.describe({ rowCount: policies.length });
        return { policies, ...setOf(desk) };
      });
      return reply.header('etag', etagOf(set.digest)).send(set);
    },
  });

  app.route({
    method: 'GET',
    url: '/admin/policies/:id',
    config: reading,
    schema: { summary: 'A policy', tags, params: idParams, response: { 200: policyShape, ...problems } },
    handler: async (request, reply) => {
      const { digest, policy } = await invoke(context, request, 'inspect', undefined, async (invocation) => {
        const desk = invocation.policies();
        return { digest: desk.digest, policy: shown(desk.policy(request.params.id)) };
      });
      return reply.header('etag', etagOf(digest)).send(policy);
    },
  });

  app.route({
    method: 'PUT',
    url: '/admin/policies/:id',
    config: changing,
    schema: {
      summary: 'Install a policy, or replace it',
      tags,
      params: idParams,
      body: z.strictObject({ policy: z.string().describe('Cedar: one policy or several') }),
      response: { 200: changed, 201: changed.describe('there was none of this id'), ...problems },
    },
    handler: async (request, reply) => {
      const { created, ...reported } = await invoke(context, request, 'administer', undefined, async (invocation) => {
        const { id } = request.params;
        const { policy: text } = request.body;
        const desk = invocation.policies();
        checkMatch(request, desk);
        const given = desk.checkText(id, text);
        const existed = desk.policies().some((policy) => policy.id === id);
        await submitNamed(invocation, { kind: 'put-policy', id, text });
        return { created: !existed, ...asItIs(invocation, id), warnings: [...given] };
      });
      return reply
        .code(created ? 201 : 200)
        .header('etag', etagOf(reported.digest))
        .send(reported);
    },
  });

  app.route({
    method: 'DELETE',
    url: '/admin/policies/:id',
    config: changing,
    schema: {
      summary: 'Delete a policy',
      tags,
      params: idParams,
      response: { 200: z.object({ id: z.string(), deleted: z.literal(true), ...setShape }), ...problems },
    },
    handler: async (request, reply) => {
      const gone = await invoke(context, request, 'administer', undefined, async (invocation) => {
        const { id } = request.params;
        const desk = invocation.policies();
        checkMatch(request, desk);
        await submitNamed(invocation, { kind: 'delete-policy', id });
        return { id, deleted: true, ...setOf(invocation.policies()) };
      });
      return reply.header('etag', etagOf(gone.digest)).send(gone);
    },
  });
}

function asItIs(invocation: Invocation, id: string): Omit<z.infer<typeof changed>, 'warnings'> {
  const desk = invocation.policies();
  return { ...shown(desk.policy(id)), ...setOf(desk) };
}

function setOf({ digest, epoch }: PolicyDesk): { digest: string; epoch: number } {
  return { digest, epoch };
}

function shown({ id, text, time }: PolicyView): z.infer<typeof policyShape> {
  return { id, policy: text, installed_at: formatInstant(time) };
}

/** An entity tag is never empty. */
const etagOf = (digest: string): string => `"${digest || 'none'}"`;

function checkMatch(request: FastifyRequest, desk: PolicyDesk): void {
  const header = headerText(request, 'if-match');
  if (header === null) return;
  const digests = header.split(',').map((tag) => /^ *"([0-9a-f]{64}|none)" *$/.exec(tag)?.[1]);
  if (digests.includes(undefined)) throw new ServiceError('REL_INVALID', 'If-Match holds entity tags as ETag has shown them');
  desk.checkUnchanged(digests.map((digest) => (digest === 'none' ? '' : digest!)));
}
