/** Scheduling, holding and releasing rows, and removing one whose time is over: commands to entries. Pure. */
import { ServiceError } from '../../errors.ts';
import type { RetentionBody, TypeDefinition } from '../../log/entries/entry.ts';
import type { NextPosition } from '../../log/log-store.ts';
import { FOREVER } from '../../log/values/timestamp.ts';
import { checkIdentifier, I64_MAX } from '../../log/values/value.ts';
import type { CatalogReader, HoldReader } from '../access-paths.ts';
import type { ExpireRetention, HoldRow, ReleaseRetention, ScheduleRetention } from '../command.ts';
import { type DecideContext, type Decision, decideOne } from '../decision.ts';
import type { TenantRows } from '../rows/tables/tenant-rows.ts';
import { EdgeRemovals } from '../rows/edges/edge-removals.ts';
import { removalOf } from '../rows/checks/removal-entry.ts';
import { type RemovalContext, sourceSealing } from '../rows/checks/source-seals.ts';
import { refusedKeys, type WriteContext } from '../rows/checks/row-check.ts';
import { type HeldState, heldBy, rowOf, rowsOfKept } from './holds.ts';
import type { RetentionRule, Retention } from './projection.ts';

/** Decides a schedule or a hold. */
export function decideKeep(
  command: ScheduleRetention | HoldRow,
  retention: Retention,
  catalog: CatalogReader,
  rows: TenantRows,
  context: DecideContext,
  next: NextPosition,
): Decision {
  const { kind, id: retentionId, type, key } = command;
  checkIdentifier(retentionId, 'the id of a retention');
  if (retention.find(retentionId)) throw new ServiceError('REL_CONFLICT', 'a schedule or hold with this id exists');
  const retainedType = catalog.type(type);
  if (!retainedType) throw new ServiceError('REL_UNKNOWN_TYPE', `no type ${JSON.stringify(type)}`);
  const retainedUntil = kind === 'hold-row' ? FOREVER : command.until;
  if (retainedUntil < 0n || retainedUntil > I64_MAX) throw new ServiceError('REL_INVALID', 'the end of a schedule is no instant');
  const retainedVersions = rows.versions(type);
  const pathCode = rows.scopes.codeOf(context.entry.path);
  const newestRetained = retainedVersions && pathCode >= 0 ? retainedVersions.newestOf(pathCode, key) : -1;
  const writeContext = { path: context.entry.path, rows, at: next };
  // Rows that the caller may not remove get the same answer as rows that do not exist.
  if (!retainedVersions || newestRetained < 0 || isRetentionRefused(context, retainedType, key, writeContext))
    throw new ServiceError('REL_NOT_FOUND', 'no such row');
  const change = kind === 'hold-row' ? 'held' : 'scheduled';
  const retentionBody: RetentionBody = {
    kind: 'retention',
    change,
    id: retentionId,
    type,
    position: retainedVersions.positionOf(newestRetained),
    until: retainedUntil,
  };
  return decideOne(kind, retentionId, [{ context: context.entry, body: retentionBody }], next);
}

export function decideRelease(command: ReleaseRetention, state: HeldState, context: DecideContext, next: NextPosition): Decision {
  const releasedRule = retentionInForce(command.id, state.retention);
  const { id, type, position, branch } = releasedRule;
  const keptRow = rowOf(releasedRule, state);
  const keptScope = rowsOfKept(releasedRule, state);
  const writeContext = keptRow && { path: keptRow.path, rows: state.rows.tenantRows(keptScope), at: next };
  if (writeContext && isRetentionRefused(context, keptScope.catalog.type(type)!, keptRow.key, writeContext)) throw notInForce();
  const releaseBody: RetentionBody = { kind: 'retention', change: 'released', id, type, position, until: FOREVER };
  return decideOne('release-retention', id, [{ context: { ...context.entry, branch }, body: releaseBody }], next);
}

export function decideExpire(
  command: ExpireRetention,
  state: HeldState & { readonly removedKeys: RemovalContext['removed'] },
  holds: HoldReader,
  context: DecideContext,
  next: NextPosition,
): Decision {
  const expiredRule = retentionInForce(command.id, state.retention);
  if (!expiredRule.scheduled || expiredRule.until > next.time)
    throw new ServiceError('REL_CONFLICT', 'the retention time of the row is not over');
  const expiredRow = rowOf(expiredRule, state);
  if (!expiredRow) throw new ServiceError('REL_NOT_FOUND', 'no such row');
  const holdIds = holds.holdsOn(expiredRule.type, expiredRow.positions);
  if (holdIds.length > 0) throw new ServiceError('REL_CONFLICT', `the row is under legal hold: ${heldBy(holdIds)}`);
  const expiredScope = rowsOfKept(expiredRule, state);
  const { tenant, catalog } = expiredScope;
  const expiredType = catalog.type(expiredRule.type)!;
  const rows = state.rows.tenantRows(expiredScope);
  const sourceSeals = sourceSealing({ catalog, rows, path: expiredRow.path, removed: state.removedKeys }, context);
  const edgeRemovals = new EdgeRemovals(expiredType, {
    path: expiredRow.path,
    catalog,
    rows,
    holds,
    checks: {},
    sealing: sourceSeals,
    at: next,
  });
  const edgeRefusal = edgeRemovals.take(expiredRow.key);
  if (edgeRefusal !== null) throw new ServiceError(edgeRefusal.code, edgeRefusal.detail);
  const expiryContext = { ...context.entry, branch: expiredRule.branch, tenant, path: expiredRow.path };
  const removalBodies = [removalOf(expiredType, [expiredRow.key], expiredRow.path, rows, sourceSeals), ...edgeRemovals.bodies()];
  const removalDrafts = removalBodies.map((body) => ({ context: expiryContext, body }));
  return decideOne('expire-retention', expiredRule.id, removalDrafts, next);
}

function retentionInForce(id: string, retention: Retention): RetentionRule {
  const ruleInForce = retention.find(id);
  if (!ruleInForce) throw notInForce();
  return ruleInForce;
}

/** The one answer for an id that is not in force and for an id that the caller may not end. */
export function notInForce(): ServiceError {
  return new ServiceError('REL_NOT_FOUND', 'no schedule or hold of this id is in force');
}

/** Whether some version of the row may not be removed. */
function isRetentionRefused(
  context: DecideContext,
  definition: TypeDefinition,
  key: string,
  writeContext: WriteContext,
): boolean {
  const retainedRowTest = context.rowCheck?.testFor(definition) ?? null;
  return retainedRowTest !== null && refusedKeys(retainedRowTest, definition.name, [key], writeContext, 'all').size > 0;
}
