/** What the families of routes about tenants share: registering, listing, suspending. */
import { z } from 'zod';
import type { FastifyContextConfig } from 'fastify';
import type { Invocation } from '../../../governance/gate-contract.ts';
import type { Command } from '../../../projections/command.ts';
import { checkSearchConfig } from '../../../projections/tenants/search-config.ts';
import type { App, FastifyReply, FastifyRequest, HttpContext } from '../context.ts';
import { invoke, submitNamed } from '../invoke.ts';
import { problems } from '../schemas.ts';
import { createBody, idParams, tenantList, tenantReply, tenantShown, toQuota } from '../tenant-shapes.ts';

interface Family {
  /** Path of them all. */
  readonly below: string;
  readonly tags: string[];
}

export function registerListed(app: App, context: HttpContext, { below, tags }: Family): void {
  app.route({
    method: 'POST',
    url: below,
    config: { access: 'token', action: 'administer', bucket: 'write' },
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
    url: below,
    config: { access: 'token', action: 'inspect', bucket: 'read' },
    schema: { summary: 'Registered tenants', tags, response: { 200: tenantList, ...problems } },
    handler: (request) => listTenants(context, request),
  });
}

type Suspension = Extract<Command, { kind: 'suspend-tenant' | 'reactivate-tenant' }>;

export interface SuspensionFamily<T extends z.ZodType> extends Family {
  readonly config: Readonly<FastifyContextConfig>;
  /** What this family calls it. */
  readonly reactivate: 'reactivate' | 'resume';
  readonly reply: T;
}

/** `change`: submits it, and shows the tenant as it is then. */
export function registerSuspension<T extends z.ZodType>(
  app: App,
  { below, tags, config, reactivate, reply }: SuspensionFamily<T>,
  change: (request: FastifyRequest, command: Suspension) => Promise<z.infer<T>>,
): void {
  for (const [verb, kind, summary] of [
    ['suspend', 'suspend-tenant', 'Suspend a tenant: 402 for whoever acts in it'],
    [reactivate, 'reactivate-tenant', 'Reactivate a suspended tenant'],
  ] as const) {
    app.route({
      method: 'POST',
      url: `${below}/:id/${verb}`,
      config,
      schema: { summary, tags, params: idParams, response: { 200: reply, ...problems } },
      handler: (request) => change(request, { kind, id: request.params.id }),
    });
  }
}

async function createTenant(
  context: HttpContext,
  request: FastifyRequest,
  reply: FastifyReply,
  { id, name = '', tier = 'standard', quota = {}, search = {}, members = [] }: z.infer<typeof createBody>,
): Promise<FastifyReply> {
  const { created, tenant } = await invoke(context, request, 'administer', undefined, async (invocation) => {
    checkSearchConfig(search);
    const { changed } = await submitNamed(invocation, {
      kind: 'create-tenant',
      id,
      name,
      tier,
      quota: toQuota(quota),
      search,
      members,
      // The gate knows what the licence allows.
      tenantsMax: 1,
    });
    return { created: changed, tenant: tenantShown(invocation.tenants().tenant(id)) };
  });
  return reply.code(created ? 201 : 200).send(tenant);
}

function listTenants(context: HttpContext, request: FastifyRequest): Promise<z.infer<typeof tenantList>> {
  return look(context, request, async (invocation) => {
    const tenants = invocation.tenants().standing().map(tenantShown);
    invocation.describe({ rowCount: tenants.length });
    return { tenants };
  });
}

/** Submits what changes one tenant and shows it as it is then. */
export function changeTenant(
  context: HttpContext,
  request: FastifyRequest,
  command: Extract<Command, { kind: 'change-tenant' | 'suspend-tenant' | 'reactivate-tenant' }>,
): Promise<z.infer<typeof tenantReply>> {
  return invoke(context, request, 'administer', undefined, async (invocation) => {
    // What a tenant's own administrator may do at all, is refused elsewhere as if there were no such tenant.
    if (command.kind === 'change-tenant' && command.tier === undefined) invocation.tenants().reach(command.id);
    await submitNamed(invocation, command);
    return tenantShown(invocation.tenants().tenant(command.id));
  });
}

/** Who looks after a suspended tenant still sees that it is, and what it owes. */
export function look<T>(context: HttpContext, request: FastifyRequest, run: (invocation: Invocation) => Promise<T>): Promise<T> {
  return invoke(context, request, 'inspect', undefined, run, { whileSuspended: true });
}
