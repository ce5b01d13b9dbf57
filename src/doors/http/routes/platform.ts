/**
 * /platform on the admin listener: every tenant that was ever registered, tiers, the licence and usage. Deleting here leaves
 * a tombstone: the id stays taken, and nothing else of the record is kept. Source: specification, "Other HTTP routes".
 */
import { z } from 'zod';
import { submitNamed } from '../invoke.ts';
import { route, type Route } from '../route.ts';
import { idParams, usageQuery, usageSummary } from '../tenant-schemas.ts';
import { platformFamilyRoutes, platformTenant, shownPlatformTenant, usageOfAll } from './tenant-families.ts';

const platformReading = { access: 'admin', action: 'inspect' } as const;
const platformChanging = { access: 'admin', action: 'administer' } as const;
const platformTags = ['platform'];

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

export const platformRoutes: readonly Route[] = [
  ...platformFamilyRoutes,
  route({
    method: 'PATCH',
    path: '/platform/tenants/:id/tier',
    ...platformChanging,
    summary: 'Change the tier of a tenant',
    tags: platformTags,
    params: idParams,
    body: z.strictObject({ tier: z.string() }),
    replies: { 200: platformTenant },
    example: { params: { id: 'a tenant' }, body: { tier: 'gold' } },
    run: async (platformInvocation, { params: { id: platformTenantId }, body: { tier: platformTier } }) => {
      await submitNamed(platformInvocation, { kind: 'change-tenant', id: platformTenantId, tier: platformTier });
      return shownPlatformTenant(platformInvocation, platformTenantId);
    },
  }),

  route({
    method: 'GET',
    path: '/platform/license',
    ...platformReading,
    summary: 'What the licence allows, and how safe the settings are',
    tags: platformTags,
    replies: { 200: licenceReply },
    run: async (platformInvocation, { context: httpContext }) => {
      const {
        tier: platformTier,
        tenantsMax: licensedTenants,
        storageBytesMax: licensedBytes,
        tenants: tenantCount,
        capabilities: licenceCapabilities,
        expiresAt: licenceExpiry,
      } = platformInvocation.tenants().licence();
      return {
        tier: platformTier,
        max_tenants: licensedTenants,
        storage_max_gb: licensedBytes / 1_000_000_000,
        current_tenants: tenantCount,
        remaining_tenants: licensedTenants === 0 ? -1 : Math.max(0, licensedTenants - tenantCount),
        capabilities: [...licenceCapabilities],
        expires_unix_secs: licenceExpiry === null ? null : Number(licenceExpiry / 1_000_000_000n),
        security_posture: httpContext.system.posture(),
        // A single node has no peers to disagree with.
        cluster_license_consistency: { status: 'single_node', mismatched_peers: [] },
      } satisfies z.infer<typeof licenceReply>;
    },
  }),

  route({
    method: 'GET',
    path: '/platform/usage',
    ...platformReading,
    summary: 'What every tenant used, and what the store holds',
    tags: platformTags,
    query: usageQuery,
    replies: { 200: usageSummary.extend({ store_bytes: z.int().describe('of the whole log') }) },
    run: async (platformInvocation, { query: platformUsageQuery, context: httpContext }) => {
      return {
        ...(await usageOfAll(platformInvocation, platformUsageQuery)),
        store_bytes: httpContext.system.storage().storedBytes,
      };
    },
  }),
];
