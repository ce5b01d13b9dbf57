/**
 * The three families of routes about tenants, made from one table. Source: specification, "Other HTTP routes" and "Versioning" 3.
 *
 *   /tenants           who runs the store, and a tenant's own administrator; deleting is soft: the record and the rows stay
 *   /api/v1/tenants    the control plane, for who runs the store; deleting removes every row, on every branch
 *   /platform/tenants  on the admin listener, deleted tenants too; deleting leaves a tombstone: the id stays taken
 *
 * The operator of the store has a token without a tenant and with the role `platform-admin`.
 */
import { z } from 'zod';
import type { Invocation } from '../../../governance/gate-contract.ts';
import { purgeTenant } from '../../../governance/tenancy/purge-steps.ts';
import { checkSearchConfig } from '../../../projections/tenants/search-config.ts';
import type { HttpContext } from '../context.ts';
import { submitNamed } from '../invoke.ts';
import { reply, route, type Route } from '../route.ts';
import {
  createBody,
  idParams,
  summaryShown,
  tenantList,
  tenantReply,
  tenantShown,
  toPeriod,
  toQuota,
  usageQuery,
  usageReply,
  usageShown,
  usageSummary,
} from '../tenant-schemas.ts';

interface TenantFamily {
  readonly path: string;
  readonly access: 'token' | 'admin';
  readonly tags: readonly string[];
  readonly resume: 'reactivate' | 'resume';
  readonly reply: z.ZodType;
  /** A tenant, once something of it was changed. */
  show(invocation: Invocation, id: string): object;
  readonly list: { readonly summary: string; readonly reply: z.ZodType; run(invocation: Invocation): readonly object[] };
  readonly read: { readonly summary: string; check?(invocation: Invocation): void };
  readonly remove: {
    readonly summary: string;
    readonly reply: z.ZodType;
    run(invocation: Invocation, id: string, context: HttpContext): Promise<object>;
  };
  /** A suspended tenant's own administrator still sees the tenant and its usage. */
  readonly whileSuspended?: true;
}

const shownTenant = (tenantInvocation: Invocation, tenantId: string): object =>
  tenantShown(tenantInvocation.tenants().tenant(tenantId));

const registeredTenants = {
  summary: 'Registered tenants',
  reply: tenantList,
  run: (tenantInvocation: Invocation) => tenantInvocation.tenants().liveTenants().map(tenantShown),
};

export const platformTenant = tenantReply
  .extend({
    deleted: z.enum(['soft', 'purge', 'tombstone']).nullable(),
    purged: z.boolean().describe('no row of it is left'),
  })
  .meta({ id: 'PlatformTenant' });

export function shownPlatformTenant(platformInvocation: Invocation, tenantId: string): z.infer<typeof platformTenant> {
  const tenantRecord = platformInvocation.tenants().tenantRecord(tenantId);
  return { ...tenantShown(tenantRecord), deleted: tenantRecord.manner, purged: tenantRecord.purged };
}

const tenantFamilies: readonly TenantFamily[] = [
  {
    path: '/tenants',
    access: 'token',
    tags: ['tenants'],
    resume: 'reactivate',
    reply: tenantReply,
    show: shownTenant,
    list: registeredTenants,
    read: { summary: 'A tenant' },
    remove: {
      summary: 'Delete a tenant softly: its record and its rows stay, its tokens and agreements end',
      reply: z.object({ id: z.string(), deleted: z.literal('soft') }),
      run: async (tenantInvocation, tenantId) => {
        await submitNamed(tenantInvocation, { kind: 'delete-tenant', id: tenantId, manner: 'soft' });
        return { id: tenantId, deleted: 'soft' };
      },
    },
    whileSuspended: true,
  },
  {
    path: '/api/v1/tenants',
    access: 'token',
    tags: ['control plane'],
    resume: 'resume',
    reply: tenantReply,
    show: shownTenant,
    list: registeredTenants,
    read: { summary: 'A tenant', check: (tenantInvocation) => tenantInvocation.tenants().checkRunsStore() },
    remove: {
      summary: 'Delete a tenant and remove its rows for good',
      reply: z.object({
        id: z.string(),
        deleted: z.literal('purge'),
        keys_removed: z.int().describe('by this request: one that was cut off goes on where it was'),
      }),
      run: async (tenantInvocation, tenantId, httpContext) => {
        await submitNamed(tenantInvocation, { kind: 'delete-tenant', id: tenantId, manner: 'purge' });
        const purgedRowCount = await purgeTenant(tenantInvocation, tenantId, httpContext.yieldTurn);
        tenantInvocation.describe({ rowCount: purgedRowCount });
        return { id: tenantId, deleted: 'purge', keys_removed: purgedRowCount };
      },
    },
  },
  {
    path: '/platform/tenants',
    access: 'admin',
    tags: ['platform'],
    resume: 'reactivate',
    reply: platformTenant,
    show: shownPlatformTenant,
    list: {
      summary: 'Every tenant that was ever registered',
      reply: z.object({ tenants: z.array(platformTenant) }),
      run: (tenantInvocation) =>
        tenantInvocation
          .tenants()
          .all()
          .map(({ id: tenantId }) => shownPlatformTenant(tenantInvocation, tenantId)),
    },
    read: { summary: 'A tenant, deleted or not' },
    remove: {
      summary: 'Delete a tenant and leave a tombstone',
      reply: platformTenant,
      run: async (tenantInvocation, tenantId) => {
        await submitNamed(tenantInvocation, { kind: 'delete-tenant', id: tenantId, manner: 'tombstone' });
        return shownPlatformTenant(tenantInvocation, tenantId);
      },
    },
  },
];

function tenantRoutesOf(tenantFamily: TenantFamily): readonly Route[] {
  const {
    path: tenantsPath,
    access: tenantAccess,
    tags: familyTags,
    resume: resumeVerb,
    reply: tenantFamilyReply,
    list: tenantListing,
    read: tenantRead,
    remove: tenantRemoval,
    whileSuspended,
  } = tenantFamily;
  const isRateLimited = tenantAccess === 'token';
  const tenantReading = { access: tenantAccess, action: 'inspect', ...(isRateLimited && { bucket: 'read' as const }) } as const;
  const tenantChanging = {
    access: tenantAccess,
    action: 'administer',
    ...(isRateLimited && { bucket: 'write' as const }),
  } as const;
  const suspendedToo = whileSuspended ? { whileSuspended } : {};
  const suspensionRoutes = (
    [
      ['suspend', 'suspend-tenant', 'Suspend a tenant: 402 for whoever acts in it'],
      [resumeVerb, 'reactivate-tenant', 'Reactivate a suspended tenant'],
    ] as const
  ).map(([suspensionVerb, suspensionCommand, suspensionSummary]) =>
    route({
      method: 'POST',
      path: `${tenantsPath}/:id/${suspensionVerb}`,
      ...tenantChanging,
      summary: suspensionSummary,
      tags: familyTags,
      params: idParams,
      replies: { 200: tenantFamilyReply },
      example: { params: { id: 'another tenant' } },
      run: async (tenantInvocation, { params: { id: tenantId } }) => {
        await submitNamed(tenantInvocation, { kind: suspensionCommand, id: tenantId });
        return tenantFamily.show(tenantInvocation, tenantId);
      },
    }),
  );
  return [
    route({
      method: 'GET',
      path: tenantsPath,
      ...tenantReading,
      summary: tenantListing.summary,
      tags: familyTags,
      replies: { 200: tenantListing.reply },
      whileSuspended: true,
      run: async (tenantInvocation) => {
        const tenantViews = tenantListing.run(tenantInvocation);
        tenantInvocation.describe({ rowCount: tenantViews.length });
        return { tenants: tenantViews };
      },
    }),
    route({
      method: 'GET',
      path: `${tenantsPath}/:id`,
      ...tenantReading,
      summary: tenantRead.summary,
      tags: familyTags,
      params: idParams,
      replies: { 200: tenantFamilyReply },
      ...suspendedToo,
      example: { params: { id: 'a tenant' } },
      run: async (tenantInvocation, { params: tenantParams }) => {
        tenantRead.check?.(tenantInvocation);
        return tenantFamily.show(tenantInvocation, tenantParams.id);
      },
    }),
    ...suspensionRoutes,
    route({
      method: 'DELETE',
      path: `${tenantsPath}/:id`,
      ...tenantChanging,
      summary: tenantRemoval.summary,
      tags: familyTags,
      params: idParams,
      replies: { 200: tenantRemoval.reply },
      example: { params: { id: 'a tenant' } },
      run: (tenantInvocation, { params: tenantParams, context: httpContext }) =>
        tenantRemoval.run(tenantInvocation, tenantParams.id, httpContext),
    }),
    ...(tenantAccess === 'token' ? [tenantCreationRoute(tenantsPath, familyTags), tenantUsageRoute(tenantFamily)] : []),
  ];
}

function tenantCreationRoute(tenantsPath: string, familyTags: readonly string[]): Route {
  return route({
    method: 'POST',
    path: tenantsPath,
    access: 'token',
    action: 'administer',
    bucket: 'write',
    summary: 'Register a tenant; one that is registered stays as it is',
    tags: familyTags,
    body: createBody,
    replies: { 200: tenantReply.describe('it was registered before'), 201: tenantReply },
    example: { body: { id: 'initech', name: 'a text' } },
    run: async (tenantInvocation, { body: tenantBody }) => {
      const {
        id: tenantId,
        name: tenantName = '',
        tier: tenantTier = 'standard',
        quota: tenantQuota = {},
        search: tenantSearch = {},
        members: tenantMembers = [],
      } = tenantBody;
      checkSearchConfig(tenantSearch);
      const { changed: isNewTenant } = await submitNamed(tenantInvocation, {
        kind: 'create-tenant',
        id: tenantId,
        name: tenantName,
        tier: tenantTier,
        quota: toQuota(tenantQuota),
        search: tenantSearch,
        members: tenantMembers,
        // The gate replaces this by the licence's limit.
        tenantsMax: 1,
      });
      return reply(isNewTenant ? 201 : 200, shownTenant(tenantInvocation, tenantId));
    },
  });
}

function tenantUsageRoute({ path: tenantsPath, tags: familyTags, read: tenantRead, whileSuspended }: TenantFamily): Route {
  return route({
    method: 'GET',
    path: `${tenantsPath}/:id/usage`,
    access: 'token',
    action: 'inspect',
    bucket: 'read',
    summary: 'What a tenant used, and what it holds',
    tags: familyTags,
    params: idParams,
    query: usageQuery,
    replies: { 200: usageReply },
    ...(whileSuspended && { whileSuspended }),
    example: { params: { id: 'a tenant' } },
    run: async (tenantInvocation, { params: tenantParams, query: usageParameters }) => {
      tenantRead.check?.(tenantInvocation);
      return usageShown(await tenantInvocation.tenants().usage(tenantParams.id, toPeriod(usageParameters)));
    },
  });
}

const tenantUsagesRoute = route({
  method: 'GET',
  path: '/api/v1/tenants/usage/summary',
  access: 'token',
  action: 'inspect',
  bucket: 'read',
  summary: 'What every tenant used',
  tags: ['control plane'],
  query: usageQuery,
  replies: { 200: usageSummary },
  run: (tenantInvocation, { query }) => usageOfAll(tenantInvocation, query),
});

export async function usageOfAll(
  usageInvocation: Invocation,
  usageParameters: z.output<typeof usageQuery>,
): Promise<z.infer<typeof usageSummary>> {
  const tenantDesk = usageInvocation.tenants();
  const usagePeriod = tenantDesk.periodOf(toPeriod(usageParameters));
  const tenantUsages = await tenantDesk.usages(usagePeriod);
  usageInvocation.describe({ rowCount: tenantUsages.length });
  return summaryShown(usagePeriod, tenantUsages);
}

const tenantRoutesFor = (familyAccess: TenantFamily['access']): readonly Route[] =>
  tenantFamilies.filter((tenantFamily) => tenantFamily.access === familyAccess).flatMap(tenantRoutesOf);

export const tenantFamilyRoutes: readonly Route[] = [...tenantRoutesFor('token'), tenantUsagesRoute];
export const platformFamilyRoutes = tenantRoutesFor('admin');
