/**
 * /audit/count and /audit/entries: access records with caller, purpose and cost, as far as the caller's path covers them. Under
 * /admin on the admin listener they cover all tenants.
 */
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import type { AuditEntry, AuditPage, AuditQuery } from '../../../projections/access-paths.ts';
import type { ProofReader } from '../../../governance/gate-contract.ts';
import { toInstant } from '../../shared/instants.ts';
import { base64 } from '../proof-document.ts';
import { route, type Route } from '../route.ts';
import { nanoseconds, parametersOf } from '../schemas.ts';

const auditEntriesMax = 1_000;
const auditEntriesDefault = 100;

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

const auditCountQuery = parametersOf(auditFilters);

export const auditQuery = parametersOf({
  ...auditFilters,
  after: z.string().optional().describe('`next` of the page before'),
  limit: z
    .string()
    .regex(/^\d{1,4}$/)
    .optional()
    .describe(`1 to ${auditEntriesMax}`),
});

const auditEntryShape = z
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

const auditTreeSize = z.int().describe('entries that are durable: what a proof can be asked over');

export const auditPage = z
  .object({ entries: z.array(auditEntryShape), next: z.string().nullable(), tree_size: auditTreeSize })
  .meta({ id: 'AuditPage' });

/** GET /audit/count, /audit/entries; GET /admin/audit/count, /admin/audit/entries. */
const auditRoutesFor = (auditAccess: 'token' | 'admin'): readonly Route[] => {
  const auditPrefix = auditAccess === 'admin' ? '/admin' : '';
  const auditConfig = { access: auditAccess, action: 'audit', bucket: 'read' } as const;
  return [
    route({
      method: 'GET',
      path: `${auditPrefix}/audit/count`,
      ...auditConfig,
      summary: 'Count audit entries',
      tags: ['audit'],
      query: auditCountQuery,
      replies: {
        200: z.object({ count: z.int(), tree_size: auditTreeSize, by_kind: z.record(z.string(), z.int()) }),
      },
      run: async (auditInvocation, { query: auditParameters }) => {
        const { count: auditCount, byAction: countByAction } = await auditInvocation.audit().count(auditFilter(auditParameters));
        return { count: auditCount, tree_size: auditInvocation.proofs().treeSize, by_kind: countByAction };
      },
    }),

    route({
      method: 'GET',
      path: `${auditPrefix}/audit/entries`,
      ...auditConfig,
      summary: 'Read audit entries',
      tags: ['audit'],
      query: auditQuery,
      replies: { 200: auditPage },
      run: async (auditInvocation, { query: auditParameters }) => {
        const auditEntryPage = await auditInvocation.audit().entries(toAuditQuery(auditParameters));
        auditInvocation.describe({ rowCount: auditEntryPage.entries.length });
        return auditShown(auditEntryPage, auditInvocation.proofs());
      },
    }),
  ];
};

export const auditRoutes = auditRoutesFor('token');
export const adminAuditRoutes = auditRoutesFor('admin');

export function toAuditQuery(auditParameters: z.infer<typeof auditQuery>): AuditQuery {
  const entryLimit = auditParameters.limit === undefined ? auditEntriesDefault : Number(auditParameters.limit);
  if (entryLimit < 1 || entryLimit > auditEntriesMax)
    throw new ServiceError('REL_INVALID', `limit must be 1 to ${auditEntriesMax}`);
  return {
    ...auditFilter(auditParameters),
    limit: entryLimit,
    ...(auditParameters.after === undefined ? {} : { after: auditParameters.after }),
  };
}

export function auditShown(auditEntryPage: AuditPage, proofs: ProofReader): Record<string, unknown> {
  const { entries: pageEntries, next: nextCursor } = auditEntryPage;
  return {
    entries: pageEntries.map((auditRecord) => shownAuditEntry(auditRecord, proofs)),
    next: nextCursor,
    tree_size: proofs.treeSize,
  };
}

export function shownAuditEntry(auditRecord: AuditEntry, leafProofs: Pick<ProofReader, 'leafHash'>) {
  return {
    leaf_index: auditRecord.leaf,
    index_in_entry: auditRecord.indexInEntry,
    time: auditRecord.time,
    kind: auditRecord.action === 'agreement' ? ('agreement' as const) : ('access' as const),
    action: auditRecord.action,
    principal: auditRecord.principal,
    tenant_id: auditRecord.tenant,
    organization: auditRecord.path,
    door: auditRecord.door,
    purpose: auditRecord.purpose,
    object_type: auditRecord.objectType,
    decision: auditRecord.decision,
    code: auditRecord.code,
    template: auditRecord.template,
    query_digest: auditRecord.literalDigest,
    break_glass: auditRecord.stated?.breakGlass ?? null,
    access_scope_ref: auditRecord.stated?.accessScopeRef ?? null,
    statements:
      auditRecord.statements?.map(
        ({
          template: statementTemplate,
          literalDigest: statementDigest,
          objectType: statementType,
          rowCount: statementRows,
        }) => ({
          template: statementTemplate,
          query_digest: statementDigest,
          object_type: statementType,
          row_count: statementRows,
        }),
      ) ?? null,
    as_of_system: auditRecord.basis === 0n ? null : auditRecord.basis,
    row_count: auditRecord.rowCount,
    cost_units: auditRecord.costUnits,
    duration_ms: Math.round(auditRecord.durationMs * 1000) / 1000,
    correlation_id: auditRecord.correlationId,
    entry_hash: base64(leafProofs.leafHash(auditRecord.leaf)),
    prev_hash: base64(auditRecord.leaf === 0 ? new Uint8Array(32) : leafProofs.leafHash(auditRecord.leaf - 1)),
  } as const satisfies Partial<Record<keyof z.input<typeof auditEntryShape>, unknown>>;
}

export type AuditFilter = Omit<AuditQuery, 'after' | 'limit'>;

export function auditFilter(auditParameters: AuditFilters): AuditFilter {
  const auditAction = auditParameters.action ?? auditParameters.kind;
  return {
    ...(auditParameters.since === undefined ? {} : { since: toInstant(auditParameters.since) }),
    ...(auditParameters.until === undefined ? {} : { until: toInstant(auditParameters.until) }),
    ...(auditParameters.object_type === undefined ? {} : { objectType: auditParameters.object_type }),
    ...(auditParameters.principal === undefined ? {} : { principal: auditParameters.principal }),
    ...(auditParameters.purpose === undefined ? {} : { purpose: auditParameters.purpose }),
    ...(auditAction === undefined ? {} : { action: auditAction }),
  };
}
