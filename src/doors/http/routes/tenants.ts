/**
 * Tenant administration: /tenants and what lies below it, agreements left to `sharing.ts`. The operator of the store (a token
 * without a tenant and with the role `platform-admin`) may do all of it; a tenant's own administrator (a token of the tenant with
 * the role `tenant-admin`) sees the tenant, its quota and usage, and keeps its name, members, search configuration and
 * agreements. Deleting here is soft: the record stays. Source: specification, "Other HTTP routes".
 */
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import type { Invocation } from '../../../governance/gate-contract.ts';
import type { ChangeTenant } from '../../../projections/command.ts';
import { checkSearchConfig } from '../../../projections/tenants/search-config.ts';
import { submitNamed } from '../invoke.ts';
import { reply, route, type Route } from '../route.ts';
import {
  idParams,
  memberShape,
  quotaBody,
  quotaReply,
  quotaShown,
  searchConfig,
  tenantReply,
  tenantShown,
  toQuota,
} from '../tenant-schemas.ts';
import { tenantFamilyRoutes } from './tenant-families.ts';

const reading = { access: 'token', action: 'inspect', bucket: 'read' } as const;
const changing = { access: 'token', action: 'administer', bucket: 'write' } as const;
const tags = ['tenants'];

const patchBody = z
  .strictObject({ name: z.string().optional(), tier: z.string().optional().describe('for who runs the store') })
  .refine(({ name, tier }) => name !== undefined || tier !== undefined, 'name what is to change: name, tier');

const memberParams = z.object({ id: z.string(), pid: z.string().describe('the principal') });
const memberList = z.object({ tenant_id: z.string(), members: z.array(memberShape) });
const searchReply = z.object({ tenant_id: z.string(), config: searchConfig });

/** The tenant itself. */
const own: readonly Route[] = [
  route({
    method: 'GET',
    path: '/tenants/me',
    ...reading,
    summary: 'My tenant',
    tags,
    replies: { 200: tenantReply.partial({ members: true }).meta({ id: 'OwnTenant' }) },
    whileSuspended: true,
    run: async (invocation) => {
      const { tenant, looksAfter } = invocation.tenants().own();
      const { members, ...shown } = tenantShown(tenant);
      return looksAfter ? { ...shown, members } : shown;
    },
  }),

  route({
    method: 'PATCH',
    path: '/tenants/:id',
    ...changing,
    summary: 'Rename a tenant, or change its tier',
    tags,
    params: idParams,
    body: patchBody,
    replies: { 200: tenantReply },
    example: { params: { id: 'a tenant' }, body: { name: 'a text' } },
    run: async (invocation, { params: { id }, body: { name, tier } }) => {
      const change = { ...(name === undefined ? {} : { name }), ...(tier === undefined ? {} : { tier }) };
      // A change that the tenant's own administrator may make is refused to others as if the tenant did not exist.
      if (tier === undefined) invocation.tenants().reach(id);
      await submitNamed(invocation, { kind: 'change-tenant', id, ...change });
      return tenantShown(invocation.tenants().tenant(id));
    },
  }),

  route({
    method: 'GET',
    path: '/tenants/:id/quota',
    ...reading,
    summary: 'Quota of a tenant',
    tags,
    params: idParams,
    replies: { 200: quotaReply },
    whileSuspended: true,
    example: { params: { id: 'a tenant' } },
    run: async (invocation, { params }) => {
      const { id, quota } = invocation.tenants().tenant(params.id);
      return { tenant_id: id, quota: quotaShown(quota) };
    },
  }),

  route({
    method: 'PUT',
    path: '/tenants/:id/quota',
    ...changing,
    summary: 'Set the quota of a tenant, all of it',
    tags,
    params: idParams,
    body: quotaBody,
    replies: { 200: quotaReply },
    example: { params: { id: 'a tenant' }, body: { in_flight: 50 } },
    run: async (invocation, { params, body }) => {
      const { id } = params;
      await submitNamed(invocation, { kind: 'change-tenant', id, quota: toQuota(body, null) });
      return { tenant_id: id, quota: quotaShown(invocation.tenants().tenant(id).quota) };
    },
  }),

  route({
    method: 'GET',
    path: '/tenants/:id/config/search',
    ...reading,
    summary: 'What searches of a tenant start from',
    tags,
    params: idParams,
    replies: { 200: searchReply },
    whileSuspended: true,
    example: { params: { id: 'a tenant' } },
    run: async (invocation, { params }) => {
      const { id, search } = invocation.tenants().tenant(params.id);
      return { tenant_id: id, config: search };
    },
  }),

  route({
    method: 'PUT',
    path: '/tenants/:id/config/search',
    ...changing,
    summary: 'Set what searches of a tenant start from, all of it',
    tags,
    params: idParams,
    body: z.strictObject({ config: searchConfig }),
    replies: { 200: searchReply },
    example: { params: { id: 'a tenant' }, body: { config: { stop_words: ['a text'] } } },
    run: async (invocation, { params, body }) => {
      const { id } = params;
      invocation.tenants().reach(id);
      checkSearchConfig(body.config);
      await submitNamed(invocation, { kind: 'change-tenant', id, search: body.config });
      return { tenant_id: id, config: invocation.tenants().tenant(id).search };
    },
  }),
];

/** Members of a tenant. A record for people: permissions come from tokens and policies. */
const members: readonly Route[] = [
  route({
    method: 'GET',
    path: '/tenants/:id/members',
    ...reading,
    summary: 'Members of a tenant',
    tags,
    params: idParams,
    replies: { 200: memberList },
    whileSuspended: true,
    example: { params: { id: 'a tenant' } },
    run: async (invocation, { params }) => {
      const { id, members } = invocation.tenants().tenant(params.id);
      invocation.describe({ rowCount: members.length });
      return { tenant_id: id, members: [...members] };
    },
  }),

  route({
    method: 'POST',
    path: '/tenants/:id/members',
    ...changing,
    summary: 'Add a member',
    tags,
    params: idParams,
    body: z.strictObject({ principal: z.string(), role: z.string() }),
    replies: { 200: memberShape.describe('was one before'), 201: memberShape },
    example: { params: { id: 'a tenant' }, body: { principal: 'mo', role: 'a text' } },
    run: async (invocation, { params, body: { principal, role } }) => {
      const added = await changeMember(invocation, params.id, { change: 'add', principal, role });
      return reply(added ? 201 : 200, { principal, role });
    },
  }),

  route({
    method: 'GET',
    path: '/tenants/:id/members/:pid',
    ...reading,
    summary: 'A member',
    tags,
    params: memberParams,
    replies: { 200: memberShape },
    whileSuspended: true,
    example: { params: { id: 'a tenant', pid: 'a member' } },
    run: async (invocation, { params }) => {
      const { id, pid } = params;
      const member = invocation
        .tenants()
        .tenant(id)
        .members.find(({ principal }) => principal === pid);
      if (member === undefined) throw new ServiceError('REL_NOT_FOUND', 'no such member');
      return member;
    },
  }),

  route({
    method: 'PATCH',
    path: '/tenants/:id/members/:pid',
    ...changing,
    summary: 'Give a member another role',
    tags,
    params: memberParams,
    body: z.strictObject({ role: z.string() }),
    replies: { 200: memberShape },
    example: { params: { id: 'a tenant', pid: 'a member' }, body: { role: 'a text' } },
    run: async (invocation, { params: { id, pid: principal }, body: { role } }) => {
      await changeMember(invocation, id, { change: 'change', principal, role });
      return { principal, role };
    },
  }),

  route({
    method: 'DELETE',
    path: '/tenants/:id/members/:pid',
    ...changing,
    summary: 'Remove a member',
    tags,
    params: memberParams,
    replies: { 200: z.object({ principal: z.string(), removed: z.literal(true) }) },
    example: { params: { id: 'a tenant', pid: 'a member' } },
    run: async (invocation, { params: { id, pid: principal } }) => {
      await changeMember(invocation, id, { change: 'remove', principal, role: '' });
      return { principal, removed: true };
    },
  }),
];

async function changeMember(
  invocation: Invocation,
  id: string,
  member: NonNullable<ChangeTenant['members']>[number],
): Promise<boolean> {
  invocation.tenants().reach(id);
  return (await submitNamed(invocation, { kind: 'change-tenant', id, members: [member] })).changed;
}

export const tenantRoutes: readonly Route[] = [...tenantFamilyRoutes, ...own, ...members];
