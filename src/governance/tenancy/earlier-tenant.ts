/**
 * A tenant may have the id of an earlier one. Older records under its paths (access records, entries, views, exhibits) belonged
 * to that one, and only the administrator may see them.
 */
import { tenantOf } from '../../log/values/value.ts';
import type { AuditQuery, AuditReader } from '../../projections/access-paths.ts';
import { sha256Hex } from '../../log/bytes/sha256.ts';
import type { Command } from '../../projections/command.ts';
import type { RegisteredTenant, Tenants } from '../../projections/tenants/projection.ts';
import type { Caller } from '../caller.ts';

/** Where the caller's tenant began; null when no other had its id. */
export type Beginning = RegisteredTenant['since'];

export function beginningOf(tenants: Pick<Tenants, 'tenant'>, { credential, path }: Caller): Beginning {
  if (path === null || credential === 'admin') return null;
  return tenants.tenant(tenantOf(path)!)?.since ?? null;
}

/** The same records, less those of an earlier tenant. */
export function auditFrom(beginning: Beginning, auditReader: AuditReader): AuditReader {
  if (beginning === null) return auditReader;
  const { time } = beginning;
  const sinceBeginning = <Query extends Pick<AuditQuery, 'since'>>(query: Query): Query =>
    query.since !== undefined && query.since > time ? query : { ...query, since: time };
  return {
    count: (filter) => auditReader.count(sinceBeginning(filter)),
    entries: (query) => auditReader.entries(sinceBeginning(query)),
    all: (filter) => auditReader.all(sinceBeginning(filter)),
  };
}

/** A request of an earlier tenant under the same idempotency key counts as a new one. */
export function onceFrom(beginning: Beginning, command: Command): Command {
  if (beginning === null || command.kind !== 'put-rows' || command.receipt === undefined) return command;
  const { receipt } = command;
  return { ...command, receipt: { ...receipt, key: sha256Hex(Buffer.from(`${receipt.key} ${beginning.position}`)) } };
}
