/** The shapes of tenants and their usage in replies, for the three families of routes about them. Instants are ISO-8601. */
import { record } from '../shared/schema-check.ts';
import { z } from 'zod';
import type { TenantUsage, TenantView } from '../../governance/desk-contract.ts';
import type { Json } from '../../log/values/canonical-json.ts';
import { formatInstant } from '../../log/values/timestamp.ts';
import { toInstant } from '../shared/instants.ts';

/** Names of quotas in bodies, and in the record. */
export const quotaFields = {
  query_units: 'queryUnits',
  in_flight: 'inFlight',
  storage_bytes: 'storageBytes',
  subscriptions: 'subscriptions',
  requests_per_second: 'requestsPerSecond',
} as const;

type QuotaFieldName = keyof typeof quotaFields;
type TenantQuota = TenantView['quota'];

const quotaAmount = z.int().min(0).nullable();

const quotaAmountFields = {
  query_units: quotaAmount.describe('cost units per principal and period'),
  in_flight: quotaAmount.describe('queries at once'),
  storage_bytes: quotaAmount.describe('bytes'),
  subscriptions: quotaAmount.describe('standing queries at once'),
  requests_per_second: quotaAmount,
};

/** All quotas: absent ones go back to the settings. */
export const quotaBody = z
  .strictObject(quotaAmountFields)
  .partial()
  .meta({ id: 'QuotaBody', description: 'null or absent: what the settings say' });
const quotaShape = z.object(quotaAmountFields).meta({ id: 'Quota', description: 'null: what the settings say' });
export const quotaReply = z.object({ tenant_id: z.string(), quota: quotaShape });

export const memberShape = z.object({ principal: z.string(), role: z.string() }).meta({ id: 'Member' });

export const tenantReply = z
  .object({
    id: z.string(),
    name: z.string(),
    tier: z.string(),
    state: z.enum(['active', 'suspended', 'deleted']),
    quota: quotaShape,
    members: z.int().describe('how many there are'),
    created_at: z.string(),
    changed_at: z.string(),
  })
  .meta({ id: 'Tenant' });

export const tenantList = z.object({ tenants: z.array(tenantReply) });

/** Errors in it are 422, which a schema can't express: `checkSearchConfig` reports them. */
export const searchConfig = record(z.custom<Json>(() => true)).describe(
  '{language, stop_words, synonyms: [[…]], field_weights: {type: {column: number}}, typo_tolerance}',
);

export const createBody = z
  .strictObject({
    id: z.string().describe('the first segment of its organisation paths'),
    name: z.string().optional(),
    tier: z.string().optional(),
    quota: quotaBody.optional(),
    search: searchConfig.optional().describe('what its searches start from'),
    members: z
      .array(z.strictObject({ principal: z.string(), role: z.string() }))
      .max(1_000)
      .optional(),
  })
  .meta({ id: 'CreateTenant' });

export const idParams = z.object({ id: z.string() });

export const usageQuery = z.object({
  since: z.string().optional().describe('ISO-8601 or nanoseconds; one quota period back by default'),
  until: z.string().optional().describe('ISO-8601 or nanoseconds; now by default'),
});

const usageFields = {
  invocations: z.int().describe('access records'),
  queries: z.int().describe('questions, exports, deliveries and replays that were answered'),
  cost_units: z.number(),
  rows_written: z.int(),
  rows_stored: z.int().describe('versions, on every branch'),
  stored_bytes: z.int().describe('of these, measured on up to 1,024 of each type'),
};

export const usageReply = z
  .object({ tenant_id: z.string(), since: z.string(), until: z.string(), ...usageFields })
  .meta({ id: 'TenantUsage' });

export const usageSummary = z
  .object({
    since: z.string(),
    until: z.string(),
    tenants: z.array(z.object({ tenant_id: z.string(), ...usageFields })),
    total: z.object(usageFields),
  })
  .meta({ id: 'UsageSummary' });

export function tenantShown(tenant: TenantView): z.infer<typeof tenantReply> {
  const {
    id: tenantId,
    name: tenantName,
    tier: tenantTier,
    state: tenantState,
    quota: tenantQuota,
    members: tenantMembers,
    createdAt,
    changedAt,
  } = tenant;
  return {
    id: tenantId,
    name: tenantName,
    tier: tenantTier,
    state: tenantState,
    quota: quotaShown(tenantQuota),
    members: tenantMembers.length,
    created_at: formatInstant(createdAt),
    changed_at: formatInstant(changedAt),
  };
}

export function quotaShown(tenantQuota: TenantQuota): z.infer<typeof quotaShape> {
  const quotaEntries = Object.entries(quotaFields).map(([quotaField, quotaName]) => [quotaField, tenantQuota[quotaName]]);
  return Object.fromEntries(quotaEntries) as z.infer<typeof quotaShape>;
}

/** The quotas that a body names; with `absentAmount`, all others as null. */
export function toQuota(
  quotaBodyFields: Partial<Record<QuotaFieldName, number | null | undefined>>,
  absentAmount?: null,
): Partial<TenantQuota> {
  const quotaEntries = Object.entries(quotaFields).flatMap(([quotaField, quotaName]) => {
    const quotaFieldAmount =
      quotaBodyFields[quotaField as QuotaFieldName] ?? (quotaField in quotaBodyFields ? null : absentAmount);
    return quotaFieldAmount === undefined ? [] : [[quotaName, quotaFieldAmount]];
  });
  return Object.fromEntries(quotaEntries) as Partial<TenantQuota>;
}

export function usageShown(tenantUsage: TenantUsage): z.infer<typeof usageReply> {
  const { tenant: tenantId, since, until } = tenantUsage;
  return { tenant_id: tenantId, since: formatInstant(since), until: formatInstant(until), ...usageFigures(tenantUsage) };
}

export function summaryShown(
  { since, until }: Pick<TenantUsage, 'since' | 'until'>,
  tenantUsages: readonly TenantUsage[],
): z.infer<typeof usageSummary> {
  const tenantRows = tenantUsages.map((tenantUsage) => ({ tenant_id: tenantUsage.tenant, ...usageFigures(tenantUsage) }));
  const noUsage = { invocations: 0, queries: 0, costUnits: 0, rowsWritten: 0, rowsStored: 0, storedBytes: 0 };
  const totalUsage = tenantUsages.reduce(
    (usageSum, tenantUsage) => ({
      invocations: usageSum.invocations + tenantUsage.invocations,
      queries: usageSum.queries + tenantUsage.queries,
      costUnits: usageSum.costUnits + tenantUsage.costUnits,
      rowsWritten: usageSum.rowsWritten + tenantUsage.rowsWritten,
      rowsStored: usageSum.rowsStored + tenantUsage.rowsStored,
      storedBytes: usageSum.storedBytes + tenantUsage.storedBytes,
    }),
    noUsage,
  );
  return { since: formatInstant(since), until: formatInstant(until), tenants: tenantRows, total: usageFigures(totalUsage) };
}

function usageFigures(tenantUsage: Omit<TenantUsage, 'tenant' | 'since' | 'until'>) {
  return {
    invocations: tenantUsage.invocations,
    queries: tenantUsage.queries,
    cost_units: tenantUsage.costUnits,
    rows_written: tenantUsage.rowsWritten,
    rows_stored: tenantUsage.rowsStored,
    stored_bytes: tenantUsage.storedBytes,
  };
}

export function toPeriod({ since: usageSince, until: usageUntil }: z.infer<typeof usageQuery>): {
  since?: bigint;
  until?: bigint;
} {
  return {
    ...(usageSince === undefined ? {} : { since: toInstant(usageSince) }),
    ...(usageUntil === undefined ? {} : { until: toInstant(usageUntil) }),
  };
}
