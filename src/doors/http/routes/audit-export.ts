/**
 * POST /api/v1/audit/export: all access records that match, streamed as NDJSON or CSV in the order of the log. The caller's
 * organisation bounds it as it does /audit/entries; /admin/audit/export covers all organisations. Invariants: the export holds
 * the records that the log held at the request; the export's own access record has their number, and is written before the first
 * of them leaves; the export ends when its credential does.
 */
import { z } from 'zod';
import type { ProofReader } from '../../../governance/gate-contract.ts';
import type { AuditEntry } from '../../../projections/access-paths.ts';
import { openBody } from '../streamed-reply.ts';
import type { FastifyReply, FastifyRequest, HttpContext } from '../context.ts';
import { exactJson } from '../../shared/write-exact-json.ts';
import { callerOf, invoke } from '../invoke.ts';
import { route, type Route } from '../route.ts';
import { auditFilter, auditFilters, shownAuditEntry } from './audit.ts';

const formats = ['ndjson', 'csv'] as const;
type Format = (typeof formats)[number];

const exportBody = z
  .strictObject({ ...auditFilters, format: z.enum(formats).optional().describe('ndjson by default') })
  .meta({ id: 'AuditExport' });

type ExportBody = z.output<typeof exportBody>;

const mediaTypes: Readonly<Record<Format, string>> = {
  ndjson: 'application/x-ndjson; charset=utf-8',
  csv: 'text/csv; charset=utf-8; header=present',
};

const entriesPerPiece = 256;

const exportRoute = (access: 'token' | 'admin'): Route =>
  route({
    method: 'POST',
    path: access === 'admin' ? '/admin/audit/export' : '/api/v1/audit/export',
    access,
    action: 'audit',
    bucket: 'read',
    summary: 'Audit entries as a file: NDJSON, with the members of /audit/entries, or CSV',
    tags: ['audit'],
    body: exportBody.nullish(),
    replies: { 200: z.string().describe('one entry a line, in the order of the log') },
    example: { body: { format: 'csv' } },
    handle: ({ body, request, reply, context }) => send(context, request, reply, body ?? {}),
  });

export const auditExportRoutes = [exportRoute('token')];
export const adminAuditExportRoutes = [exportRoute('admin')];

async function send(
  context: HttpContext,
  request: FastifyRequest,
  reply: FastifyReply,
  { format = 'ndjson', ...given }: ExportBody,
): Promise<FastifyReply> {
  const filter = auditFilter(given);
  const { entries, count, proofs } = await invoke(context, request, 'audit', undefined, async (invocation) => {
    const asked = Object.entries(given).filter(([, value]) => value !== undefined);
    invocation.describe({
      template: ['AUDIT EXPORT', format, ...asked.map(([name]) => `${name}=?`)].join(' '),
      literals: asked.map(([, value]) => value!),
    });
    const audit = invocation.audit();
    // Both look at the log as it is in this turn, which has no record of this export yet.
    const all = audit.all(filter);
    const counted = await audit.count(filter);
    invocation.describe({ rowCount: counted.count });
    return { entries: all, count: counted.count, proofs: invocation.proofs() };
  });
  const headers = {
    'content-type': mediaTypes[format],
    'content-disposition': `attachment; filename="audit.${format}"`,
    'cache-control': 'no-store',
    'x-service-row-count': String(count),
  };
  // The trail holds digests, and no cell of a row.
  const body = openBody(context, request, reply, headers, { overtaken: () => false });
  if (body === null) return reply;
  const renew = (): void => {
    // Reading takes as long as the client does: a token that was revoked meanwhile reads no further.
    context.authenticator.renew(callerOf(request));
  };
  for await (const piece of piecesOf(entries, format, proofs)) if (!(await body.send(one(piece, renew)))) return reply;
  await body.sendAll([][Symbol.iterator]());
  return reply;
}

/** A reading that fails ends in a piece that can't be made, so that the connection ends where the entries do. */
async function* piecesOf(
  entries: AsyncIterable<AuditEntry>,
  format: Format,
  proofs: Pick<ProofReader, 'leafHash'>,
): AsyncGenerator<() => string, void> {
  let text = format === 'csv' ? headerLine : '';
  let lines = 0;
  const take = (): (() => string) => {
    const whole = text;
    text = '';
    lines = 0;
    return () => whole;
  };
  try {
    for await (const entry of entries) {
      const shownEntry = shownAuditEntry(entry, proofs);
      text += format === 'csv' ? csvLine(shownEntry) : `${exactJson(shownEntry)}\n`;
      if (++lines === entriesPerPiece) yield take();
    }
    yield take();
  } catch (error) {
    yield () => {
      throw error;
    };
  }
}

function* one(piece: () => string, check: () => void): Generator<Uint8Array, void> {
  check();
  yield Buffer.from(piece());
}

type Shown = ReturnType<typeof shownAuditEntry>;

/** All members, in their order: a new member must become a column, or this does not compile. */
const columns = Object.keys({
  leaf_index: true,
  index_in_entry: true,
  time: true,
  kind: true,
  action: true,
  principal: true,
  tenant_id: true,
  organization: true,
  door: true,
  purpose: true,
  object_type: true,
  decision: true,
  code: true,
  template: true,
  query_digest: true,
  break_glass: true,
  access_scope_ref: true,
  statements: true,
  as_of_system: true,
  row_count: true,
  cost_units: true,
  duration_ms: true,
  correlation_id: true,
  entry_hash: true,
  prev_hash: true,
} satisfies Record<keyof Shown, true>) as (keyof Shown)[];

const headerLine = `${columns.map((name) => quote(name)).join(',')}\r\n`;

/** A line of CSV like those of /export: texts stand in quotes, nothing else does, an empty field is NULL. */
function csvLine(shownEntry: Shown): string {
  return `${columns.map((name) => field(shownEntry[name])).join(',')}\r\n`;
}

function field(value: Shown[keyof Shown]): string {
  if (value === null) return '';
  if (typeof value === 'string') return quote(value);
  return typeof value === 'object' ? quote(exactJson(value)) : String(value);
}

function quote(text: string): string {
  return `"${text.replaceAll('"', '""')}"`;
}
