/** The shapes of tenants and their usage in replies, for the three families of routes about them. Instants are ISO-8601. */
import { record } from '../schemas/schema-check.ts';
import { z } from 'zod';
import type { TenantUsage, TenantView } from '../../governance/desk-contract.ts';
import type { Json } from '../../log/values/canonical-json.ts';
import { formatInstant } from '../../log/values/timestamp.ts';
import { toInstant } from '../schemas/instants.ts';

/** Names of quotas in bodies, and in the record. */
export const quotaFields = {
  query_units: 'queryUnits',
  in_flight: 'inFlight',
  storage_bytes: 'storageBytes',
  subscriptions: 'subscriptions',
  requests_per_second: 'requestsPerSecond',
} as const;

type QuotaField = keyof typeof quotaFields;
type QuotaRecord = TenantView['quota'];

const amount = z.int().min(0).nullable();

const quotaMembers = {
  query_units: amount.describe('cost units per principal and period'),
  in_flight: amount.describe('queries at once'),
  storage_bytes: amount.describe('bytes'),
  subscriptions: amount.describe('standing queries at once'),
  requests_per_second: amount,
};

/** All quotas: absent ones go back to the settings. */
export const quotaBody = z
  .strictObject(quotaMembers)
  .partial()
  .meta({ id: 'QuotaBody', description: 'null or absent: what the settings say' });
const quotaShape = z.object(quotaMembers).meta({ id: 'Quota', description: 'null: what the settings say' });
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

const usageMembers = {
  invocations: z.int().describe('access records'),
  queries: z.int().describe('questions, exports, deliveries and replays that were answered'),
  cost_units: z.number(),
  rows_written: z.int(),
  rows_stored: z.int().describe('versions, on every branch'),
  stored_bytes: z.int().describe('of these, measured on up to 1,024 of each type'),
};

export const usageReply = z
  .object({ tenant_id: z.string(), since: z.string(), until: z.string(), ...usageMembers })
  .meta({ id: 'TenantUsage' });

export const usageSummary = z
  .object({
    since: z.string(),
    until: z.string(),
    tenants: z.array(z.object({ tenant_id: z.string(), ...usageMembers })),
    total: z.object(usageMembers),
  })
  .meta({ id: 'UsageSummary' });

export function tenantShown(tenant: TenantView): z.infer<typeof tenantReply> {
  const { id, name, tier, state, quota, members, createdAt, changedAt } = tenant;
  return {
    id,
    name,
    tier,
    state,
    quota: quotaShown(quota),
    members: members.length,
    created_at: formatInstant(createdAt),
    changed_at: formatInstant(changedAt),
  };
}

export function quotaShown(quota: QuotaRecord): z.infer<typeof quotaShape> {
  const members = Object.entries(quotaFields).map(([field, name]) => [field, quota[name]]);
  return Object.fromEntries(members) as z.infer<typeof quotaShape>;
}

/** The quotas that a body names; with `rest`, all others as null. */
export function toQuota(given: Partial<Record<QuotaField, number | null | undefined>>, rest?: null): Partial<QuotaRecord> {
  const named = Object.entries(quotaFields).flatMap(([field, name]) => {
    const amount = given[field as QuotaField] ?? (field in given ? null : rest);
    return amount === undefined ? [] : [[name, amount]];
  });
  return Object.fromEntries(named) as Partial<QuotaRecord>;
}

export function usageShown(usage: TenantUsage): z.infer<typeof usageReply> {
  const { tenant, since, until } = usage;
  return { tenant_id: tenant, since: formatInstant(since), until: formatInstant(until), ...figuresOf(usage) };
}

export function summaryShown(
  { since, until }: Pick<TenantUsage, 'since' | 'until'>,
  usages: readonly TenantUsage[],
): z.infer<typeof usageSummary> {
  const tenants = usages.map((usage) => ({ tenant_id: usage.tenant, ...figuresOf(usage) }));
  const none = { invocations: 0, queries: 0, costUnits: 0, rowsWritten: 0, rowsStored: 0, storedBytes: 0 };
  const total = usages.reduce(
    (sum, usage) => ({
      invocations: sum.invocations + usage.invocations,
      queries: sum.queries + usage.queries,
      costUnits: sum.costUnits + usage.costUnits,
      rowsWritten: sum.rowsWritten + usage.rowsWritten,
      rowsStored: sum.rowsStored + usage.rowsStored,
      storedBytes: sum.storedBytes + usage.storedBytes,
    }),
    none,
  );
  return { since: formatInstant(since), until: formatInstant(until), tenants, total: figuresOf(total) };
}

function figuresOf(usage: Omit<TenantUsage, 'tenant' | 'since' | 'until'>) {
  return {
    invocations: usage.invocations,
    queries: usage.queries,
    cost_units: usage.costUnits,
    rows_written: usage.rowsWritten,
    rows_stored: usage.rowsStored,
    stored_bytes: usage.storedBytes,
  };
}

export function toPeriod({ since, until }: z.infer<typeof usageQuery>): { since?: bigint; until?: bigint } {
  return {
    ...(since === undefined ? {} : { since: toInstant(since) }),
    ...(until === undefined ? {} : { until: toInstant(until) }),
  };
}
