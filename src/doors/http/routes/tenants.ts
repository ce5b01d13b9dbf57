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

const tenantReading = { access: 'token', action: 'inspect', bucket: 'read' } as const;
const tenantChanging = { access: 'token', action: 'administer', bucket: 'write' } as const;
const tenantTags = ['tenants'];

const changeTenantBody = z
  .strictObject({ name: z.string().optional(), tier: z.string().optional().describe('for who runs the store') })
  .refine(
    ({ name: tenantName, tier: tenantTier }) => tenantName !== undefined || tenantTier !== undefined,
    'name what is to change: name, tier',
  );

const tenantMemberParams = z.object({ id: z.string(), pid: z.string().describe('the principal') });
const tenantMemberList = z.object({ tenant_id: z.string(), members: z.array(memberShape) });
const tenantSearchReply = z.object({ tenant_id: z.string(), config: searchConfig });

/** The tenant itself. */
const ownTenantRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/tenants/me',
    ...tenantReading,
    summary: 'My tenant',
    tags: tenantTags,
    replies: { 200: tenantReply.partial({ members: true }).meta({ id: 'OwnTenant' }) },
    whileSuspended: true,
    run: async (tenantInvocation) => {
      const { tenant: ownTenant, looksAfter: looksAfterTenant } = tenantInvocation.tenants().own();
      const { members: tenantMembers, ...tenantWithoutMembers } = tenantShown(ownTenant);
      return looksAfterTenant ? { ...tenantWithoutMembers, members: tenantMembers } : tenantWithoutMembers;
    },
  }),

  route({
    method: 'PATCH',
    path: '/tenants/:id',
    ...tenantChanging,
    summary: 'Rename a tenant, or change its tier',
    tags: tenantTags,
    params: idParams,
    body: changeTenantBody,
    replies: { 200: tenantReply },
    example: { params: { id: 'a tenant' }, body: { name: 'a text' } },
    run: async (tenantInvocation, { params: { id: tenantId }, body: { name: tenantName, tier: tenantTier } }) => {
      const tenantChange = {
        ...(tenantName === undefined ? {} : { name: tenantName }),
        ...(tenantTier === undefined ? {} : { tier: tenantTier }),
      };
      // A change that the tenant's own administrator may make is refused to others as if the tenant did not exist.
      if (tenantTier === undefined) tenantInvocation.tenants().reach(tenantId);
      await submitNamed(tenantInvocation, { kind: 'change-tenant', id: tenantId, ...tenantChange });
      return tenantShown(tenantInvocation.tenants().tenant(tenantId));
    },
  }),

  route({
    method: 'GET',
    path: '/tenants/:id/quota',
    ...tenantReading,
    summary: 'Quota of a tenant',
    tags: tenantTags,
    params: idParams,
    replies: { 200: quotaReply },
    whileSuspended: true,
    example: { params: { id: 'a tenant' } },
    run: async (tenantInvocation, { params: tenantParams }) => {
      const { id: tenantId, quota: tenantQuota } = tenantInvocation.tenants().tenant(tenantParams.id);
      return { tenant_id: tenantId, quota: quotaShown(tenantQuota) };
    },
  }),

  route({
    method: 'PUT',
    path: '/tenants/:id/quota',
    ...tenantChanging,
    summary: 'Set the quota of a tenant, all of it',
    tags: tenantTags,
    params: idParams,
    body: quotaBody,
    replies: { 200: quotaReply },
    example: { params: { id: 'a tenant' }, body: { in_flight: 50 } },
    run: async (tenantInvocation, { params: tenantParams, body: tenantBody }) => {
      const { id: tenantId } = tenantParams;
      await submitNamed(tenantInvocation, { kind: 'change-tenant', id: tenantId, quota: toQuota(tenantBody, null) });
      return { tenant_id: tenantId, quota: quotaShown(tenantInvocation.tenants().tenant(tenantId).quota) };
    },
  }),

  route({
    method: 'GET',
    path: '/tenants/:id/config/search',
    ...tenantReading,
    summary: 'What searches of a tenant start from',
    tags: tenantTags,
    params: idParams,
    replies: { 200: tenantSearchReply },
    whileSuspended: true,
    example: { params: { id: 'a tenant' } },
    run: async (tenantInvocation, { params: tenantParams }) => {
      const { id: tenantId, search: tenantSearch } = tenantInvocation.tenants().tenant(tenantParams.id);
      return { tenant_id: tenantId, config: tenantSearch };
    },
  }),

  route({
    method: 'PUT',
    path: '/tenants/:id/config/search',
    ...tenantChanging,
    summary: 'Set what searches of a tenant start from, all of it',
    tags: tenantTags,
    params: idParams,
    body: z.strictObject({ config: searchConfig }),
    replies: { 200: tenantSearchReply },
    example: { params: { id: 'a tenant' }, body: { config: { stop_words: ['a text'] } } },
    run: async (tenantInvocation, { params: tenantParams, body: tenantBody }) => {
      const { id: tenantId } = tenantParams;
      tenantInvocation.tenants().reach(tenantId);
      checkSearchConfig(tenantBody.config);
      await submitNamed(tenantInvocation, { kind: 'change-tenant', id: tenantId, search: tenantBody.config });
      return { tenant_id: tenantId, config: tenantInvocation.tenants().tenant(tenantId).search };
    },
  }),
];

/** Members of a tenant. A record for people: permissions come from tokens and policies. */
const tenantMemberRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/tenants/:id/members',
    ...tenantReading,
    summary: 'Members of a tenant',
    tags: tenantTags,
    params: idParams,
    replies: { 200: tenantMemberList },
    whileSuspended: true,
    example: { params: { id: 'a tenant' } },
    run: async (tenantInvocation, { params: tenantParams }) => {
      const { id: tenantId, members: tenantMembers } = tenantInvocation.tenants().tenant(tenantParams.id);
      tenantInvocation.describe({ rowCount: tenantMembers.length });
      return { tenant_id: tenantId, members: [...tenantMembers] };
    },
  }),

  route({
    method: 'POST',
    path: '/tenants/:id/members',
    ...tenantChanging,
    summary: 'Add a member',
    tags: tenantTags,
    params: idParams,
    body: z.strictObject({ principal: z.string(), role: z.string() }),
    replies: { 200: memberShape.describe('was one before'), 201: memberShape },
    example: { params: { id: 'a tenant' }, body: { principal: 'mo', role: 'a text' } },
    run: async (tenantInvocation, { params: tenantParams, body: { principal: memberId, role: memberRole } }) => {
      const isMemberAdded = await changeTenantMember(tenantInvocation, tenantParams.id, {
        change: 'add',
        principal: memberId,
        role: memberRole,
      });
      return reply(isMemberAdded ? 201 : 200, { principal: memberId, role: memberRole });
    },
  }),

  route({
    method: 'GET',
    path: '/tenants/:id/members/:pid',
    ...tenantReading,
    summary: 'A member',
    tags: tenantTags,
    params: tenantMemberParams,
    replies: { 200: memberShape },
    whileSuspended: true,
    example: { params: { id: 'a tenant', pid: 'a member' } },
    run: async (tenantInvocation, { params: tenantParams }) => {
      const { id: tenantId, pid: memberPrincipal } = tenantParams;
      const tenantMember = tenantInvocation
        .tenants()
        .tenant(tenantId)
        .members.find(({ principal: memberId }) => memberId === memberPrincipal);
      if (tenantMember === undefined) throw new ServiceError('REL_NOT_FOUND', 'no such member');
      return tenantMember;
    },
  }),

  route({
    method: 'PATCH',
    path: '/tenants/:id/members/:pid',
    ...tenantChanging,
    summary: 'Give a member another role',
    tags: tenantTags,
    params: tenantMemberParams,
    body: z.strictObject({ role: z.string() }),
    replies: { 200: memberShape },
    example: { params: { id: 'a tenant', pid: 'a member' }, body: { role: 'a text' } },
    run: async (tenantInvocation, { params: { id: tenantId, pid: memberId }, body: { role: memberRole } }) => {
      await changeTenantMember(tenantInvocation, tenantId, { change: 'change', principal: memberId, role: memberRole });
      return { principal: memberId, role: memberRole };
    },
  }),

  route({
    method: 'DELETE',
    path: '/tenants/:id/members/:pid',
    ...tenantChanging,
    summary: 'Remove a member',
    tags: tenantTags,
    params: tenantMemberParams,
    replies: { 200: z.object({ principal: z.string(), removed: z.literal(true) }) },
    example: { params: { id: 'a tenant', pid: 'a member' } },
    run: async (tenantInvocation, { params: { id: tenantId, pid: memberId } }) => {
      await changeTenantMember(tenantInvocation, tenantId, { change: 'remove', principal: memberId, role: '' });
      return { principal: memberId, removed: true };
    },
  }),
];

async function changeTenantMember(
  tenantInvocation: Invocation,
  tenantId: string,
  memberChange: NonNullable<ChangeTenant['members']>[number],
): Promise<boolean> {
  tenantInvocation.tenants().reach(tenantId);
  return (await submitNamed(tenantInvocation, { kind: 'change-tenant', id: tenantId, members: [memberChange] })).changed;
}

export const tenantRoutes: readonly Route[] = [...tenantFamilyRoutes, ...ownTenantRoutes, ...tenantMemberRoutes];
