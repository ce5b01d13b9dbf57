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

const auditFormats = ['ndjson', 'csv'] as const;
type AuditFormat = (typeof auditFormats)[number];

const auditExportBody = z
  .strictObject({ ...auditFilters, format: z.enum(auditFormats).optional().describe('ndjson by default') })
  .meta({ id: 'AuditExport' });

type AuditExportBody = z.output<typeof auditExportBody>;

const auditMediaTypes: Readonly<Record<AuditFormat, string>> = {
  ndjson: 'application/x-ndjson; charset=utf-8',
  csv: 'text/csv; charset=utf-8; header=present',
};

const auditEntriesPerPiece = 256;

const auditExportRoute = (auditAccess: 'token' | 'admin'): Route =>
  route({
    method: 'POST',
    path: auditAccess === 'admin' ? '/admin/audit/export' : '/api/v1/audit/export',
    access: auditAccess,
    action: 'audit',
    bucket: 'read',
    summary: 'Audit entries as a file: NDJSON, with the members of /audit/entries, or CSV',
    tags: ['audit'],
    body: auditExportBody.nullish(),
    replies: { 200: z.string().describe('one entry a line, in the order of the log') },
    example: { body: { format: 'csv' } },
    handle: ({ body: exportFields, request: exportRequest, reply: exportHttpReply, context: httpContext }) =>
      sendAuditExport(httpContext, exportRequest, exportHttpReply, exportFields ?? {}),
  });

export const auditExportRoutes = [auditExportRoute('token')];
export const adminAuditExportRoutes = [auditExportRoute('admin')];

async function sendAuditExport(
  httpContext: HttpContext,
  exportRequest: FastifyRequest,
  exportHttpReply: FastifyReply,
  { format: auditFormat = 'ndjson', ...exportFilters }: AuditExportBody,
): Promise<FastifyReply> {
  const auditSelection = auditFilter(exportFilters);
  const {
    entries: auditEntries,
    count: auditCount,
    proofs: auditProofs,
  } = await invoke(httpContext, exportRequest, 'audit', undefined, async (exportInvocation) => {
    const statedFilters = Object.entries(exportFilters).filter(([, filterValue]) => filterValue !== undefined);
    exportInvocation.describe({
      template: ['AUDIT EXPORT', auditFormat, ...statedFilters.map(([filterName]) => `${filterName}=?`)].join(' '),
      literals: statedFilters.map(([, filterValue]) => filterValue!),
    });
    const auditReader = exportInvocation.audit();
    // Both look at the log as it is in this turn, which has no record of this export yet.
    const selectedEntries = auditReader.all(auditSelection);
    const auditTotals = await auditReader.count(auditSelection);
    exportInvocation.describe({ rowCount: auditTotals.count });
    return { entries: selectedEntries, count: auditTotals.count, proofs: exportInvocation.proofs() };
  });
  const exportHeaders = {
    'content-type': auditMediaTypes[auditFormat],
    'content-disposition': `attachment; filename="audit.${auditFormat}"`,
    'cache-control': 'no-store',
    'x-service-row-count': String(auditCount),
  };
  // The trail holds digests, and no cell of a row.
  const exportReply = openBody(httpContext, exportRequest, exportHttpReply, exportHeaders, { overtaken: () => false });
  if (exportReply === null) return exportHttpReply;
  const renewCaller = (): void => {
    // Reading takes as long as the client does: a token that was revoked meanwhile reads no further.
    httpContext.authenticator.renew(callerOf(exportRequest));
  };
  for await (const auditPieceText of auditPieces(auditEntries, auditFormat, auditProofs))
    if (!(await exportReply.send(auditPiece(auditPieceText, renewCaller)))) return exportHttpReply;
  await exportReply.sendAll([][Symbol.iterator]());
  return exportHttpReply;
}

/** A reading that fails ends in a piece that can't be made, so that the connection ends where the entries do. */
async function* auditPieces(
  auditEntries: AsyncIterable<AuditEntry>,
  auditFormat: AuditFormat,
  leafProofs: Pick<ProofReader, 'leafHash'>,
): AsyncGenerator<() => string, void> {
  let auditText = auditFormat === 'csv' ? auditCsvHeader : '';
  let auditLineCount = 0;
  const takePiece = (): (() => string) => {
    const pieceText = auditText;
    auditText = '';
    auditLineCount = 0;
    return () => pieceText;
  };
  try {
    for await (const auditEntry of auditEntries) {
      const shownEntry = shownAuditEntry(auditEntry, leafProofs);
      auditText += auditFormat === 'csv' ? auditCsvLine(shownEntry) : `${exactJson(shownEntry)}\n`;
      if (++auditLineCount === auditEntriesPerPiece) yield takePiece();
    }
    yield takePiece();
  } catch (auditError) {
    yield () => {
      throw auditError;
    };
  }
}

function* auditPiece(pieceText: () => string, checkCaller: () => void): Generator<Uint8Array, void> {
  checkCaller();
  yield Buffer.from(pieceText());
}

type ShownAuditRow = ReturnType<typeof shownAuditEntry>;

/** All members, in their order: a new member must become a column, or this does not compile. */
const auditColumns = Object.keys({
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
} satisfies Record<keyof ShownAuditRow, true>) as (keyof ShownAuditRow)[];

const auditCsvHeader = `${auditColumns.map((auditColumn) => quoteAuditText(auditColumn)).join(',')}\r\n`;

/** A line of CSV like those of /export: texts stand in quotes, nothing else does, an empty field is NULL. */
function auditCsvLine(shownEntry: ShownAuditRow): string {
  return `${auditColumns.map((auditColumn) => auditCsvField(shownEntry[auditColumn])).join(',')}\r\n`;
}

function auditCsvField(auditCell: ShownAuditRow[keyof ShownAuditRow]): string {
  if (auditCell === null) return '';
  if (typeof auditCell === 'string') return quoteAuditText(auditCell);
  return typeof auditCell === 'object' ? quoteAuditText(exactJson(auditCell)) : String(auditCell);
}

function quoteAuditText(auditCellText: string): string {
  return `"${auditCellText.replaceAll('"', '""')}"`;
}
