/**
 * Tenant administration: /tenants and what lies below it, agreements left to `sharing.ts`. Who runs the store (a token
 * without a tenant and with the role `platform-admin`) does all of it; a tenant's own administrator (a token of the tenant
 * with the role `tenant-admin`) sees the tenant, its quota and usage, and keeps its name, members, search configuration and
 * agreements. Deleting here is soft: the record stays. Source: specification, "Other HTTP routes".
 */
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import type { ChangeTenant } from '../../../projections/command.ts';
import { checkSearchConfig } from '../../../projections/tenants/search-config.ts';
import type { App, FastifyRequest, HttpContext } from '../context.ts';
import { invoke, submitNamed } from '../invoke.ts';
import { problems } from '../schemas.ts';
import {
  idParams,
  memberShape,
  quotaBody,
  quotaReply,
  quotaShown,
  searchConfig,
  tenantReply,
  tenantShown,
  toPeriod,
  toQuota,
  usageQuery,
  usageReply,
  usageShown,
} from '../tenant-shapes.ts';
import { changeTenant, look, registerListed, registerSuspension } from './registered-tenants.ts';

const reading = { access: 'token', action: 'inspect', bucket: 'read' } as const;
const changing = { access: 'token', action: 'administer', bucket: 'write' } as const;
const tags = ['tenants'];

const patchBody = z
  .strictObject({ name: z.string().optional(), tier: z.string().optional().describe('for who runs the store') })
  .refine(({ name, tier }) => name !== undefined || tier !== undefined, 'name what is to change: name, tier');

const deletedReply = z.object({ id: z.string(), deleted: z.literal('soft') });
const memberParams = z.object({ id: z.string(), pid: z.string().describe('the principal') });
const memberList = z.object({ tenant_id: z.string(), members: z.array(memberShape) });
const searchReply = z.object({ tenant_id: z.string(), config: searchConfig });

export function registerTenants(app: App, context: HttpContext): void {
  registerRegistry(app, context);
  registerOwn(app, context);
  registerMembers(app, context);
}

/** Creating, listing, suspending, ending. */
function registerRegistry(app: App, context: HttpContext): void {
  registerListed(app, context, { below: '/tenants', tags });
  registerSuspension(
    app,
    { below: '/tenants', tags, config: changing, reactivate: 'reactivate', reply: tenantReply },
    (request, change) => changeTenant(context, request, change),
  );

  app.route({
    method: 'DELETE',
    url: '/tenants/:id',
    config: changing,
    schema: {
      summary: 'Delete a tenant softly: its record and its rows stay, its tokens and agreements end',
      tags,
      params: idParams,
      response: { 200: deletedReply, ...problems },
    },
    handler: (request) =>
      invoke(context, request, 'administer', undefined, async (invocation) => {
        const { id } = request.params;
        await submitNamed(invocation, { kind: 'delete-tenant', id, manner: 'soft' });
        return { id, deleted: 'soft' };
      }),
  });
}

/** The tenant itself. */
function registerOwn(app: App, context: HttpContext): void {
  app.route({
    method: 'GET',
    url: '/tenants/me',
    config: reading,
    schema: {
      summary: 'My tenant',
      tags,
      response: { 200: tenantReply.partial({ members: true }).meta({ id: 'OwnTenant' }), ...problems },
    },
    handler: (request) =>
      look(context, request, async (invocation) => {
        const { tenant, looksAfter } = invocation.tenants().own();
        const { members, ...shown } = tenantShown(tenant);
        return looksAfter ? { ...shown, members } : shown;
      }),
  });

  app.route({
    method: 'GET',
    url: '/tenants/:id',
    config: reading,
    schema: { summary: 'A tenant', tags, params: idParams, response: { 200: tenantReply, ...problems } },
    handler: (request) =>
      look(context, request, async (invocation) => tenantShown(invocation.tenants().tenant(request.params.id))),
  });

  app.route({
    method: 'PATCH',
    url: '/tenants/:id',
    config: changing,
    schema: {
      summary: 'Rename a tenant, or change its tier',
      tags,
      params: idParams,
      body: patchBody,
      response: { 200: tenantReply, ...problems },
    },
    handler: (request) => {
      const { name, tier } = request.body;
      const change = { ...(name === undefined ? {} : { name }), ...(tier === undefined ? {} : { tier }) };
      return changeTenant(context, request, { kind: 'change-tenant', id: request.params.id, ...change });
    },
  });

  app.route({
    method: 'GET',
    url: '/tenants/:id/quota',
    config: reading,
    schema: { summary: 'Quota of a tenant', tags, params: idParams, response: { 200: quotaReply, ...problems } },
    handler: (request) =>
      look(context, request, async (invocation) => {
        const { id, quota } = invocation.tenants().tenant(request.params.id);
        return { tenant_id: id, quota: quotaShown(quota) };
      }),
  });

  app.route({
    method: 'PUT',
    url: '/tenants/:id/quota',
    config: changing,
    schema: {
      summary: 'Set the quota of a tenant, all of it',
      tags,
      params: idParams,
      body: quotaBody,
      response: { 200: quotaReply, ...problems },
    },
    handler: (request) =>
      invoke(context, request, 'administer', undefined, async (invocation) => {
        const { id } = request.params;
        await submitNamed(invocation, { kind: 'change-tenant', id, quota: toQuota(request.body, null) });
        return { tenant_id: id, quota: quotaShown(invocation.tenants().tenant(id).quota) };
      }),
  });

  app.route({
    method: 'GET',
    url: '/tenants/:id/usage',
    config: reading,
    schema: {
      summary: 'What a tenant used, and what it holds',
      tags,
      params: idParams,
      querystring: usageQuery,
      response: { 200: usageReply, ...problems },
    },
    handler: (request) =>
      look(context, request, async (invocation) =>
        usageShown(await invocation.tenants().usage(request.params.id, toPeriod(request.query))),
      ),
  });

  app.route({
    method: 'GET',
    url: '/tenants/:id/config/search',
    config: reading,
    schema: {
      summary: 'What searches of a tenant start from',
      tags,
      params: idParams,
      response: { 200: searchReply, ...problems },
    },
    handler: (request) =>
      look(context, request, async (invocation) => {
        const { id, search } = invocation.tenants().tenant(request.params.id);
        return { tenant_id: id, config: search };
      }),
  });

  app.route({
    method: 'PUT',
    url: '/tenants/:id/config/search',
    config: changing,
    schema: {
      summary: 'Set what searches of a tenant start from, all of it',
      tags,
      params: idParams,
      body: z.strictObject({ config: searchConfig }),
      response: { 200: searchReply, ...problems },
    },
    handler: (request) =>
      invoke(context, request, 'administer', undefined, async (invocation) => {
        const { id } = request.params;
        invocation.tenants().reach(id);
        checkSearchConfig(request.body.config);
        await submitNamed(invocation, { kind: 'change-tenant', id, search: request.body.config });
        return { tenant_id: id, config: invocation.tenants().tenant(id).search };
      }),
  });
}

/** Who belongs to it. A record for people: what a caller may do is said by its token and by policies. */
function registerMembers(app: App, context: HttpContext): void {
  app.route({
    method: 'GET',
    url: '/tenants/:id/members',
    config: reading,
    schema: { summary: 'Members of a tenant', tags, params: idParams, response: { 200: memberList, ...problems } },
    handler: (request) =>
      look(context, request, async (invocation) => {
        const { id, members } = invocation.tenants().tenant(request.params.id);
        invocation.describe({ rowCount: members.length });
        return { tenant_id: id, members: [...members] };
      }),
  });

  app.route({
    method: 'POST',
    url: '/tenants/:id/members',
    config: changing,
    schema: {
      summary: 'Add a member',
      tags,
      params: idParams,
      body: z.strictObject({ principal: z.string(), role: z.string() }),
      response: { 200: memberShape.describe('was one before'), 201: memberShape, ...problems },
    },
    handler: async (request, reply) => {
      const { principal, role } = request.body;
      const added = await changeMember(context, request, request.params.id, { change: 'add', principal, role });
      return reply.code(added ? 201 : 200).send({ principal, role });
    },
  });

  app.route({
    method: 'GET',
    url: '/tenants/:id/members/:pid',
    config: reading,
    schema: { summary: 'A member', tags, params: memberParams, response: { 200: memberShape, ...problems } },
    handler: (request) =>
      look(context, request, async (invocation) => {
        const { id, pid } = request.params;
        const member = invocation
          .tenants()
          .tenant(id)
          .members.find(({ principal }) => principal === pid);
        if (member === undefined) throw new ServiceError('REL_NOT_FOUND', 'no such member');
        return member;
      }),
  });

  app.route({
    method: 'PATCH',
    url: '/tenants/:id/members/:pid',
    config: changing,
    schema: {
      summary: 'Give a member another role',
      tags,
      params: memberParams,
      body: z.strictObject({ role: z.string() }),
      response: { 200: memberShape, ...problems },
    },
    handler: async (request) => {
      const { id, pid: principal } = request.params;
      const { role } = request.body;
      await changeMember(context, request, id, { change: 'change', principal, role });
      return { principal, role };
    },
  });

  app.route({
    method: 'DELETE',
    url: '/tenants/:id/members/:pid',
    config: changing,
    schema: {
      summary: 'Remove a member',
      tags,
      params: memberParams,
      response: { 200: z.object({ principal: z.string(), removed: z.literal(true) }), ...problems },
    },
    handler: async (request) => {
      const { id, pid: principal } = request.params;
      await changeMember(context, request, id, { change: 'remove', principal, role: '' });
      return { principal, removed: true };
    },
  });
}

function changeMember(
  context: HttpContext,
  request: FastifyRequest,
  id: string,
  member: NonNullable<ChangeTenant['members']>[number],
): Promise<boolean> {
  return invoke(context, request, 'administer', undefined, async (invocation) => {
    invocation.tenants().reach(id);
    return (await submitNamed(invocation, { kind: 'change-tenant', id, members: [member] })).changed;
  });
}
