/**
 * /platform on the admin listener: every tenant that was ever registered, tiers, the licence and usage. Deleting here leaves
 * a tombstone: the id stays taken, and nothing else of the record is kept. Source: specification, "Other HTTP routes".
 */
import { z } from 'zod';
import type { Command } from '../../../projections/command.ts';
import type { App, FastifyRequest, HttpContext } from '../context.ts';
import { invoke, submitNamed } from '../invoke.ts';
import { problems } from '../schemas.ts';
import { idParams, summaryShown, tenantReply, tenantShown, toPeriod, usageQuery, usageSummary } from '../tenant-shapes.ts';
import type { Invocation } from '../../../governance/gate-contract.ts';
import { registerSuspension } from './registered-tenants.ts';

const reading = { access: 'admin', action: 'inspect' } as const;
const changing = { access: 'admin', action: 'administer' } as const;
const tags = ['platform'];

const platformTenant = tenantReply
  .extend({
    deleted: z.enum(['soft', 'purge', 'tombstone']).nullable(),
    purged: z.boolean().describe('no row of it is left'),
  })
  .meta({ id: 'PlatformTenant' });

const licenceReply = z
  .object({
    tier: z.string(),
    max_tenants: z.int().describe('0: unlimited'),
    storage_max_gb: z.number().describe('0: unlimited'),
    current_tenants: z.int(),
    remaining_tenants: z.int().describe('-1: unlimited'),
    capabilities: z.array(z.string()),
    expires_unix_secs: z.int().nullable().describe('null: never'),
    security_posture: z.object({
      kms_dev_mode: z.boolean(),
      cluster_fencing: z.boolean(),
      grpc_tls: z.boolean(),
      security_mode: z.enum(['strict', 'open']),
    }),
    cluster_license_consistency: z.object({ status: z.string(), mismatched_peers: z.array(z.string()) }),
  })
  .meta({ id: 'License' });

export function registerPlatform(app: App, context: HttpContext): void {
  app.route({
    method: 'GET',
    url: '/platform/tenants',
    config: reading,
    schema: {
      summary: 'Every tenant that was ever registered',
      tags,
      response: { 200: z.object({ tenants: z.array(platformTenant) }), ...problems },
    },
    handler: (request) =>
      invoke(context, request, 'inspect', undefined, async (invocation) => {
        const tenants = invocation.tenants().all();
        invocation.describe({ rowCount: tenants.length });
        return { tenants: tenants.map(({ id }) => shown(invocation, id)) };
      }),
  });

  app.route({
    method: 'GET',
    url: '/platform/tenants/:id',
    config: reading,
    schema: { summary: 'A tenant, deleted or not', tags, params: idParams, response: { 200: platformTenant, ...problems } },
    handler: (request) =>
      invoke(context, request, 'inspect', undefined, async (invocation) => shown(invocation, request.params.id)),
  });

  app.route({
    method: 'PATCH',
    url: '/platform/tenants/:id/tier',
    config: changing,
    schema: {
      summary: 'Change the tier of a tenant',
      tags,
      params: idParams,
      body: z.strictObject({ tier: z.string() }),
      response: { 200: platformTenant, ...problems },
    },
    handler: (request) => change(context, request, { kind: 'change-tenant', id: request.params.id, tier: request.body.tier }),
  });

  registerSuspension(
    app,
    { below: '/platform/tenants', tags, config: changing, reactivate: 'reactivate', reply: platformTenant },
    (request, command) => change(context, request, command),
  );

  app.route({
    method: 'DELETE',
    url: '/platform/tenants/:id',
    config: changing,
    schema: {
      summary: 'Delete a tenant and leave a tombstone',
      tags,
      params: idParams,
      response: { 200: platformTenant, ...problems },
    },
    handler: (request) => change(context, request, { kind: 'delete-tenant', id: request.params.id, manner: 'tombstone' }),
  });

  app.route({
    method: 'GET',
    url: '/platform/license',
    config: reading,
    schema: {
      summary: 'What the licence allows, and how safe the settings are',
      tags,
      response: { 200: licenceReply, ...problems },
    },
    handler: (request) =>
      invoke(context, request, 'inspect', undefined, async (invocation) => {
        const { tier, tenantsMax, storageBytesMax, tenants, capabilities, expiresAt } = invocation.tenants().licence();
        return {
          tier,
          max_tenants: tenantsMax,
          storage_max_gb: storageBytesMax / 1_000_000_000,
          current_tenants: tenants,
          remaining_tenants: tenantsMax === 0 ? -1 : Math.max(0, tenantsMax - tenants),
          capabilities: [...capabilities],
          expires_unix_secs: expiresAt === null ? null : Number(expiresAt / 1_000_000_000n),
          security_posture: context.system.posture(),
          // One node has nobody to disagree with.
          cluster_license_consistency: { status: 'single_node', mismatched_peers: [] },
        } satisfies z.infer<typeof licenceReply>;
      }),
  });

  app.route({
    method: 'GET',
    url: '/platform/usage',
    config: reading,
    schema: {
      summary: 'What every tenant used, and what the store holds',
      tags,
      querystring: usageQuery,
      response: { 200: usageSummary.extend({ store_bytes: z.int().describe('of the whole log') }), ...problems },
    },
    handler: (request) =>
      invoke(context, request, 'inspect', undefined, async (invocation) => {
        const desk = invocation.tenants();
        const period = desk.periodOf(toPeriod(request.query));
        const usages = await desk.usages(period);
        invocation.describe({ rowCount: usages.length });
        return { ...summaryShown(period, usages), store_bytes: context.system.storage().storedBytes };
      }),
  });
}

function change(
  context: HttpContext,
  request: FastifyRequest,
  command: Extract<Command, { readonly id: string }>,
): Promise<z.infer<typeof platformTenant>> {
  return invoke(context, request, 'administer', undefined, async (invocation) => {
    await submitNamed(invocation, command);
    return shown(invocation, command.id);
  });
}

function shown(invocation: Invocation, id: string): z.infer<typeof platformTenant> {
  const tenant = invocation.tenants().recorded(id);
  return { ...tenantShown(tenant), deleted: tenant.manner, purged: tenant.purged };
}
