/**
 * /audit/count and /audit/entries: access records with caller, purpose and cost, as far as the caller's path covers them. Under
 * /admin on the admin listener they cover all tenants.
 */
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import type { AuditEntry, AuditPage, AuditQuery } from '../../../projections/access-paths.ts';
import type { ProofReader } from '../../../governance/gate-contract.ts';
import { toInstant } from '../../schemas/instants.ts';
import { base64 } from '../../schemas/proof-document.ts';
import { route, type Route } from '../route.ts';
import { nanoseconds, parametersOf } from '../schemas.ts';

const entriesMax = 1_000;
const entriesDefault = 100;

export const auditFilters = {
  since: z.string().optional().describe('ISO-8601 or nanoseconds; inclusive'),
  until: z.string().optional().describe('ISO-8601 or nanoseconds; exclusive'),
  object_type: z.string().optional(),
  principal: z.string().optional(),
  purpose: z.string().optional().describe('entries that state this purpose'),
  action: z.string().optional(),
  kind: z.string().optional().describe('the same as action'),
};

type AuditFilters = z.infer<z.ZodObject<typeof auditFilters>>;

const countQuery = parametersOf(auditFilters);

export const auditQuery = parametersOf({
  ...auditFilters,
  after: z.string().optional().describe('`next` of the page before'),
  limit: z
    .string()
    .regex(/^\d{1,4}$/)
    .optional()
    .describe(`1 to ${entriesMax}`),
});

const entry = z
  .object({
    leaf_index: z.int(),
    index_in_entry: z.int(),
    time: nanoseconds,
    kind: z.enum(['access', 'agreement']).describe('an invocation, or a move of a sharing agreement, which both sides see'),
    action: z.string(),
    principal: z.string(),
    tenant_id: z.string().nullable(),
    organization: z.string().nullable(),
    door: z.string(),
    purpose: z.string().nullable(),
    object_type: z.string().nullable(),
    decision: z.enum(['allow', 'deny', 'error']),
    code: z.string().nullable(),
    template: z.string().nullable().describe('the statement with ? for literals'),
    query_digest: z.string().nullable().describe('keyed digest of the literals'),
    break_glass: z.string().nullable().describe('the reason stated for opening a protected type'),
    access_scope_ref: z.string().nullable().describe('the access scope stated'),
    statements: z
      .array(
        z.object({
          template: z.string().nullable(),
          query_digest: z.string().nullable(),
          object_type: z.string().nullable(),
          row_count: z.int(),
        }),
      )
      .nullable()
      .describe('questions that the invocation asked, where it asked several or was more than a question'),
    as_of_system: nanoseconds.nullable(),
    row_count: z.int(),
    cost_units: z.number(),
    duration_ms: z.number(),
    correlation_id: z.string(),
    entry_hash: z.string().describe('leaf hash of the log entry that holds the record, base64'),
    prev_hash: z.string().describe('leaf hash of the entry before it'),
  })
  .meta({ id: 'AuditEntry' });

const treeSize = z.int().describe('entries that are durable: what a proof can be asked over');

export const auditPage = z
  .object({ entries: z.array(entry), next: z.string().nullable(), tree_size: treeSize })
  .meta({ id: 'AuditPage' });

/** GET /audit/count, /audit/entries; GET /admin/audit/count, /admin/audit/entries. */
const auditRoutesOf = (access: 'token' | 'admin'): readonly Route[] => {
  const under = access === 'admin' ? '/admin' : '';
  const config = { access, action: 'audit', bucket: 'read' } as const;
  return [
    route({
      method: 'GET',
      path: `${under}/audit/count`,
      ...config,
      summary: 'Count audit entries',
      tags: ['audit'],
      query: countQuery,
      replies: {
        200: z.object({ count: z.int(), tree_size: treeSize, by_kind: z.record(z.string(), z.int()) }),
      },
      run: async (invocation, { query }) => {
        const { count, byAction } = await invocation.audit().count(auditFilter(query));
        return { count, tree_size: invocation.proofs().treeSize, by_kind: byAction };
      },
    }),

    route({
      method: 'GET',
      path: `${under}/audit/entries`,
      ...config,
      summary: 'Read audit entries',
      tags: ['audit'],
      query: auditQuery,
      replies: { 200: auditPage },
      run: async (invocation, { query }) => {
        const page = await invocation.audit().entries(toAuditQuery(query));
        invocation.describe({ rowCount: page.entries.length });
        return auditShown(page, invocation.proofs());
      },
    }),
  ];
};

export const auditRoutes = auditRoutesOf('token');
export const adminAuditRoutes = auditRoutesOf('admin');

export function toAuditQuery(query: z.infer<typeof auditQuery>): AuditQuery {
  const limit = query.limit === undefined ? entriesDefault : Number(query.limit);
  if (limit < 1 || limit > entriesMax) throw new ServiceError('REL_INVALID', `limit must be 1 to ${entriesMax}`);
  return { ...auditFilter(query), limit, ...(query.after === undefined ? {} : { after: query.after }) };
}

export function auditShown(page: AuditPage, proofs: ProofReader): Record<string, unknown> {
  const { entries, next } = page;
  return { entries: entries.map((record) => shownAuditEntry(record, proofs)), next, tree_size: proofs.treeSize };
}

export function shownAuditEntry(record: AuditEntry, proofs: Pick<ProofReader, 'leafHash'>) {
  return {
    leaf_index: record.leaf,
    index_in_entry: record.indexInEntry,
    time: record.time,
    kind: record.action === 'agreement' ? ('agreement' as const) : ('access' as const),
    action: record.action,
    principal: record.principal,
    tenant_id: record.tenant,
    organization: record.path,
    door: record.door,
    purpose: record.purpose,
    object_type: record.objectType,
    decision: record.decision,
    code: record.code,
    template: record.template,
    query_digest: record.literalDigest,
    break_glass: record.stated?.breakGlass ?? null,
    access_scope_ref: record.stated?.accessScopeRef ?? null,
    statements:
      record.statements?.map(({ template, literalDigest, objectType, rowCount }) => ({
        template,
        query_digest: literalDigest,
        object_type: objectType,
        row_count: rowCount,
      })) ?? null,
    as_of_system: record.basis === 0n ? null : record.basis,
    row_count: record.rowCount,
    cost_units: record.costUnits,
    duration_ms: Math.round(record.durationMs * 1000) / 1000,
    correlation_id: record.correlationId,
    entry_hash: base64(proofs.leafHash(record.leaf)),
    prev_hash: base64(record.leaf === 0 ? new Uint8Array(32) : proofs.leafHash(record.leaf - 1)),
  } as const satisfies Partial<Record<keyof z.input<typeof entry>, unknown>>;
}

export type AuditFilter = Omit<AuditQuery, 'after' | 'limit'>;

export function auditFilter(query: AuditFilters): AuditFilter {
  const action = query.action ?? query.kind;
  return {
    ...(query.since === undefined ? {} : { since: toInstant(query.since) }),
    ...(query.until === undefined ? {} : { until: toInstant(query.until) }),
    ...(query.object_type === undefined ? {} : { objectType: query.object_type }),
    ...(query.principal === undefined ? {} : { principal: query.principal }),
    ...(query.purpose === undefined ? {} : { purpose: query.purpose }),
    ...(action === undefined ? {} : { action }),
  };
}
