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

interface Family {
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

const shownTenant = (invocation: Invocation, id: string): object => tenantShown(invocation.tenants().tenant(id));

const registered = {
  summary: 'Registered tenants',
  reply: tenantList,
  run: (invocation: Invocation) => invocation.tenants().liveTenants().map(tenantShown),
};

export const platformTenant = tenantReply
  .extend({
    deleted: z.enum(['soft', 'purge', 'tombstone']).nullable(),
    purged: z.boolean().describe('no row of it is left'),
  })
  .meta({ id: 'PlatformTenant' });

export function shownPlatformTenant(invocation: Invocation, id: string): z.infer<typeof platformTenant> {
  const tenant = invocation.tenants().tenantRecord(id);
  return { ...tenantShown(tenant), deleted: tenant.manner, purged: tenant.purged };
}

const families: readonly Family[] = [
  {
    path: '/tenants',
    access: 'token',
    tags: ['tenants'],
    resume: 'reactivate',
    reply: tenantReply,
    show: shownTenant,
    list: registered,
    read: { summary: 'A tenant' },
    remove: {
      summary: 'Delete a tenant softly: its record and its rows stay, its tokens and agreements end',
      reply: z.object({ id: z.string(), deleted: z.literal('soft') }),
      run: async (invocation, id) => {
        await submitNamed(invocation, { kind: 'delete-tenant', id, manner: 'soft' });
        return { id, deleted: 'soft' };
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
    list: registered,
    read: { summary: 'A tenant', check: (invocation) => invocation.tenants().checkRunsStore() },
    remove: {
      summary: 'Delete a tenant and remove its rows for good',
      reply: z.object({
        id: z.string(),
        deleted: z.literal('purge'),
        keys_removed: z.int().describe('by this request: one that was cut off goes on where it was'),
      }),
      run: async (invocation, id, context) => {
        await submitNamed(invocation, { kind: 'delete-tenant', id, manner: 'purge' });
        const removed = await purgeTenant(invocation, id, context.yieldTurn);
        invocation.describe({ rowCount: removed });
        return { id, deleted: 'purge', keys_removed: removed };
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
      run: (invocation) =>
        invocation
          .tenants()
          .all()
          .map(({ id }) => shownPlatformTenant(invocation, id)),
    },
    read: { summary: 'A tenant, deleted or not' },
    remove: {
      summary: 'Delete a tenant and leave a tombstone',
      reply: platformTenant,
      run: async (invocation, id) => {
        await submitNamed(invocation, { kind: 'delete-tenant', id, manner: 'tombstone' });
        return shownPlatformTenant(invocation, id);
      },
    },
  },
];

function routesOf(family: Family): readonly Route[] {
  const { path, access, tags, resume, reply, list, read, remove, whileSuspended } = family;
  const limited = access === 'token';
  const reading = { access, action: 'inspect', ...(limited && { bucket: 'read' as const }) } as const;
  const changing = { access, action: 'administer', ...(limited && { bucket: 'write' as const }) } as const;
  const seen = whileSuspended ? { whileSuspended } : {};
  const suspension = (
    [
      ['suspend', 'suspend-tenant', 'Suspend a tenant: 402 for whoever acts in it'],
      [resume, 'reactivate-tenant', 'Reactivate a suspended tenant'],
    ] as const
  ).map(([verb, kind, summary]) =>
    route({
      method: 'POST',
      path: `${path}/:id/${verb}`,
      ...changing,
      summary,
      tags,
      params: idParams,
      replies: { 200: reply },
      example: { params: { id: 'another tenant' } },
      run: async (invocation, { params: { id } }) => {
        await submitNamed(invocation, { kind, id });
        return family.show(invocation, id);
      },
    }),
  );
  return [
    route({
      method: 'GET',
      path,
      ...reading,
      summary: list.summary,
      tags,
      replies: { 200: list.reply },
      whileSuspended: true,
      run: async (invocation) => {
        const tenants = list.run(invocation);
        invocation.describe({ rowCount: tenants.length });
        return { tenants };
      },
    }),
    route({
      method: 'GET',
      path: `${path}/:id`,
      ...reading,
      summary: read.summary,
      tags,
      params: idParams,
      replies: { 200: reply },
      ...seen,
      example: { params: { id: 'a tenant' } },
      run: async (invocation, { params }) => {
        read.check?.(invocation);
        return family.show(invocation, params.id);
      },
    }),
    ...suspension,
    route({
      method: 'DELETE',
      path: `${path}/:id`,
      ...changing,
      summary: remove.summary,
      tags,
      params: idParams,
      replies: { 200: remove.reply },
      example: { params: { id: 'a tenant' } },
      run: (invocation, { params, context }) => remove.run(invocation, params.id, context),
    }),
    ...(access === 'token' ? [creation(path, tags), usage(family)] : []),
  ];
}

function creation(path: string, tags: readonly string[]): Route {
  return route({
    method: 'POST',
    path,
    access: 'token',
    action: 'administer',
    bucket: 'write',
    summary: 'Register a tenant; one that is registered stays as it is',
    tags,
    body: createBody,
    replies: { 200: tenantReply.describe('it was registered before'), 201: tenantReply },
    example: { body: { id: 'initech', name: 'a text' } },
    run: async (invocation, { body }) => {
      const { id, name = '', tier = 'standard', quota = {}, search = {}, members = [] } = body;
      checkSearchConfig(search);
      const { changed } = await submitNamed(invocation, {
        kind: 'create-tenant',
        id,
        name,
        tier,
        quota: toQuota(quota),
        search,
        members,
        // The gate replaces this by the licence's limit.
        tenantsMax: 1,
      });
      return reply(changed ? 201 : 200, shownTenant(invocation, id));
    },
  });
}

function usage({ path, tags, read, whileSuspended }: Family): Route {
  return route({
    method: 'GET',
    path: `${path}/:id/usage`,
    access: 'token',
    action: 'inspect',
    bucket: 'read',
    summary: 'What a tenant used, and what it holds',
    tags,
    params: idParams,
    query: usageQuery,
    replies: { 200: usageReply },
    ...(whileSuspended && { whileSuspended }),
    example: { params: { id: 'a tenant' } },
    run: async (invocation, { params, query }) => {
      read.check?.(invocation);
      return usageShown(await invocation.tenants().usage(params.id, toPeriod(query)));
    },
  });
}

const usages = route({
  method: 'GET',
  path: '/api/v1/tenants/usage/summary',
  access: 'token',
  action: 'inspect',
  bucket: 'read',
  summary: 'What every tenant used',
  tags: ['control plane'],
  query: usageQuery,
  replies: { 200: usageSummary },
  run: (invocation, { query }) => usageOfAll(invocation, query),
});

export async function usageOfAll(
  invocation: Invocation,
  query: z.output<typeof usageQuery>,
): Promise<z.infer<typeof usageSummary>> {
  const desk = invocation.tenants();
  const period = desk.periodOf(toPeriod(query));
  const all = await desk.usages(period);
  invocation.describe({ rowCount: all.length });
  return summaryShown(period, all);
}

const routesFor = (access: Family['access']): readonly Route[] =>
  families.filter((family) => family.access === access).flatMap(routesOf);

export const tenantFamilyRoutes: readonly Route[] = [...routesFor('token'), usages];
export const platformFamilyRoutes = routesFor('admin');
