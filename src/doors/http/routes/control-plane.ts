/**
 * The control plane, /api/v1/tenants: for who runs the store, with a token without a tenant and with the role
 * `platform-admin`. Deleting here removes every row of the tenant, on every branch. Source: specification, "Other HTTP
 * routes" and "Versioning" 3.
 */
import { z } from 'zod';
import { purgeTenant } from '../../../governance/tenancy/purge-steps.ts';
import type { App, HttpContext } from '../context.ts';
import { invoke, submitNamed } from '../invoke.ts';
import { problems } from '../schemas.ts';
import {
  idParams,
  summaryShown,
  tenantReply,
  tenantShown,
  toPeriod,
  usageQuery,
  usageReply,
  usageShown,
  usageSummary,
} from '../tenant-shapes.ts';
import { changeTenant, registerListed, registerSuspension } from './registered-tenants.ts';

const reading = { access: 'token', action: 'inspect', bucket: 'read' } as const;
const changing = { access: 'token', action: 'administer', bucket: 'write' } as const;
const below = '/api/v1/tenants';
const tags = ['control plane'];

const purgedReply = z.object({
  id: z.string(),
  deleted: z.literal('purge'),
  keys_removed: z.int().describe('by this request: one that was cut off goes on where it was'),
});

export function registerControlPlane(app: App, context: HttpContext): void {
  registerListed(app, context, { below, tags });
  registerSuspension(app, { below, tags, config: changing, reactivate: 'resume', reply: tenantReply }, (request, change) =>
    changeTenant(context, request, change),
  );

  app.route({
    method: 'GET',
    url: '/api/v1/tenants/:id',
    config: reading,
    schema: { summary: 'A tenant', tags, params: idParams, response: { 200: tenantReply, ...problems } },
    handler: (request) =>
      invoke(context, request, 'inspect', undefined, async (invocation) => {
        const desk = invocation.tenants();
        desk.checkRunsStore();
        return tenantShown(desk.tenant(request.params.id));
      }),
  });

  app.route({
    method: 'DELETE',
    url: '/api/v1/tenants/:id',
    config: changing,
    schema: {
      summary: 'Delete a tenant and remove its rows for good',
      tags,
      params: idParams,
      response: { 200: purgedReply, ...problems },
    },
    handler: (request) =>
      invoke(context, request, 'administer', undefined, async (invocation) => {
        const { id } = request.params;
        await submitNamed(invocation, { kind: 'delete-tenant', id, manner: 'purge' });
        const removed = await purgeTenant(invocation, id, context.yieldTurn);
        invocation.describe({ rowCount: removed });
        return { id, deleted: 'purge', keys_removed: removed };
      }),
  });

  app.route({
    method: 'GET',
    url: '/api/v1/tenants/:id/usage',
    config: reading,
    schema: {
      summary: 'What a tenant used, and what it holds',
      tags,
      params: idParams,
      querystring: usageQuery,
      response: { 200: usageReply, ...problems },
    },
    handler: (request) =>
      invoke(context, request, 'inspect', undefined, async (invocation) => {
        const desk = invocation.tenants();
        desk.checkRunsStore();
        return usageShown(await desk.usage(request.params.id, toPeriod(request.query)));
      }),
  });

  app.route({
    method: 'GET',
    url: '/api/v1/tenants/usage/summary',
    config: reading,
    schema: {
      summary: 'What every tenant used',
      tags,
      querystring: usageQuery,
      response: { 200: usageSummary, ...problems },
    },
    handler: (request) =>
      invoke(context, request, 'inspect', undefined, async (invocation) => {
        const desk = invocation.tenants();
        const period = desk.periodOf(toPeriod(request.query));
        const usages = await desk.usages(period);
        invocation.describe({ rowCount: usages.length });
        return summaryShown(period, usages);
      }),
  });
}
