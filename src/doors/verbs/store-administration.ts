/** Tools about the store itself: its health, figures, jobs, audit trail, and erasure. Source: specification, "Tool protocol (MCP)". */
import { z } from 'zod';
import { ServiceError } from '../../errors.ts';
import { parseExactJson } from '../shared/read-exact-json.ts';
import { rowsOf } from './verb-rows.ts';
import { verb } from './verb.ts';

export const serverHealth = verb({
  name: 'server_health',
  description: 'Whether the store takes work, and which version it is.',
  input: z.object({}),
  output: z.object({ status: z.string(), version: z.string(), profile: z.string() }),
  action: 'inspect',
  units: 0,
  purpose: 'required',
  bucket: 'read',
  tool: { title: 'Health', readOnly: true },
  example: {},
  run: async ({ parts: { system: systemDesk } }) => ({
    status: systemDesk.state(),
    version: systemDesk.version,
    profile: systemDesk.profile,
  }),
});

export const metrics = verb({
  name: 'metrics',
  description: 'Figures of the whole store in the Prometheus text format. For credentials of no tenant.',
  input: z.object({}),
  output: z.object({ metrics: z.string() }),
  action: 'inspect',
  units: 0,
  purpose: 'required',
  bucket: 'read',
  tool: { title: 'Metrics', readOnly: true },
  example: {},
  run: async ({ parts: verbDependencies, invocation: { caller: adminCaller } }) => {
    // As for GET /metrics: the figures cover all tenants.
    if (adminCaller.tenant !== null)
      throw new ServiceError('REL_ACL', 'figures of the whole store need a token without a tenant');
    return { metrics: await verbDependencies.metrics.registry.metrics() };
  },
});

export const getAuditTrail = verb({
  name: 'get_audit_trail',
  description: 'Who did what, for which purpose, at what cost: access records as far as your path covers them.',
  input: z.object({
    entity_type: z.string().min(1).optional().describe('about this type'),
    principal: z.string().min(1).optional(),
    purpose_filter: z.string().min(1).optional().describe('that stated this purpose'),
    action: z.string().min(1).optional(),
    limit: z.int().min(1).max(1_000).default(50),
    after: z.string().optional().describe('next of the page before'),
  }),
  output: z.object({ entries: z.array(z.unknown()), next: z.string().nullable() }),
  action: 'audit',
  units: 1,
  purpose: 'required',
  bucket: 'read',
  tool: { title: 'Audit trail', readOnly: true },
  example: { limit: 5 },
  run: async (
    { invocation },
    {
      entity_type: auditedType,
      principal: auditedPrincipal,
      purpose_filter: auditedPurpose,
      action: auditedAction,
      limit: auditLimit,
      after: auditAfter,
    },
  ) => {
    const auditFilter = {
      ...(auditedType !== undefined && { objectType: auditedType }),
      ...(auditedPrincipal !== undefined && { principal: auditedPrincipal }),
      ...(auditedPurpose !== undefined && { purpose: auditedPurpose }),
      ...(auditedAction !== undefined && { action: auditedAction }),
      ...(auditAfter !== undefined && { after: auditAfter }),
    };
    const { entries: auditEntries, next: nextAuditPage } = await invocation
      .audit()
      .entries({ ...auditFilter, limit: auditLimit });
    return {
      entries: auditEntries.map((auditEntry) => ({
        time: auditEntry.time,
        action: auditEntry.action,
        principal: auditEntry.principal,
        organization: auditEntry.path,
        door: auditEntry.door,
        purpose: auditEntry.purpose,
        object_type: auditEntry.objectType,
        decision: auditEntry.decision,
        code: auditEntry.code,
        template: auditEntry.template,
        row_count: auditEntry.rowCount,
        cost_units: auditEntry.costUnits,
        correlation_id: auditEntry.correlationId,
      })),
      next: nextAuditPage,
    };
  },
});

export const eraseSubject = verb({
  name: 'erase_subject',
  description: 'Erase everything about a person or other subject, for good, and get a signed receipt. Nothing brings it back.',
  input: z.object({
    subject: z.string().min(1).describe('the subject as rows name it'),
    reason: z.string().min(1).describe('why; it stands in the receipt'),
  }),
  output: z.object({
    erasure_id: z.string(),
    versions: z.int(),
    certified: z.boolean(),
    receipt: z.unknown(),
    salt: z.string().nullable(),
  }),
  action: 'erase',
  units: 1,
  purpose: 'required',
  bucket: 'write',
  tool: { title: 'Erase a subject', readOnly: false, destructive: true, idempotent: true },
  contents: ['subject', 'reason'],
  example: { subject: 'nobody', reason: 'asked to' },
  run: async (verbCall, { subject: erasedSubject, reason: erasureReason }) => {
    const signalOption = verbCall.signal ? { signal: verbCall.signal } : {};
    const erasureSql = 'ERASE SUBJECT $1 REASON $2 CERTIFY';
    const toolAnswer = await verbCall.parts.planner.query(verbCall.invocation, {
      sql: erasureSql,
      parameters: [erasedSubject, erasureReason],
      purpose: verbCall.purpose,
      ...signalOption,
    });
    const [erasureRow] = rowsOf(toolAnswer);
    const erasureReceipt: unknown = typeof erasureRow?.['receipt'] === 'string' ? parseExactJson(erasureRow['receipt']) : null;
    verbCall.note({ result: { erasure_id: erasureRow?.['erasure_id'] ?? null } });
    return {
      erasure_id: String(erasureRow?.['erasure_id']),
      versions: Number(erasureRow?.['versions'] ?? 0n),
      certified: erasureRow?.['certified'] === true,
      receipt: erasureReceipt,
      salt: typeof erasureRow?.['salt'] === 'string' ? erasureRow['salt'] : null,
    };
  },
});
