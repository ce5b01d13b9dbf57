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
  createBody,
  idParams,
  summaryShown,
  tenantList,
  tenantReply,
  tenantShown,
  toPeriod,
  usageQuery,
  usageReply,
  usageShown,
  usageSummary,
} from '../tenant-shapes.ts';
import { changeTenant, createTenant, listTenants } from './tenants.ts';

const reading = { access: 'token', action: 'inspect', bucket: 'read' } as const;
const changing = { access: 'token', action: 'administer', bucket: 'write' } as const;
const tags = ['control plane'];

const purgedReply = z.object({
  id: z.string(),
  deleted: z.literal('purge'),
  keys_removed: z.int().describe('by this request: one that was cut off goes on where it was'),
});

export function registerControlPlane(app: App, context: HttpContext): void {
  app.route({
    method: 'POST',
    url: '/api/v1/tenants',
    config: changing,
    schema: {
      summary: 'Register a tenant; one that is registered stays as it is',
      tags,
      body: createBody,
      response: { 200: tenantReply.describe('it was registered before'), 201: tenantReply, ...problems },
    },
    handler: (request, reply) => createTenant(context, request, reply, request.body),
  });

  app.route({
    method: 'GET',
    url: '/api/v1/tenants',
    config: reading,
    schema: { summary: 'Registered tenants', tags, response: { 200: tenantList, ...problems } },
    handler: (request) => listTenants(context, request),
  });

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

  for (const [verb, kind] of [
    ['suspend', 'suspend-tenant'],
    ['resume', 'reactivate-tenant'],
  ] as const) {
    app.route({
      method: 'POST',
      url: `/api/v1/tenants/:id/${verb}`,
      config: changing,
      schema: {
        summary: verb === 'suspend' ? 'Suspend a tenant: 402 for whoever acts in it' : 'Reactivate a suspended tenant',
        tags,
        params: idParams,
        response: { 200: tenantReply, ...problems },
      },
      handler: (request) => changeTenant(context, request, { kind, id: request.params.id }),
    });
  }

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
