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
  const { kind, id, type, key } = command;
  checkIdentifier(id, 'the id of a retention');
  if (retention.find(id)) throw new ServiceError('REL_CONFLICT', 'a schedule or hold with this id exists');
  const definition = catalog.type(type);
  if (!definition) throw new ServiceError('REL_UNKNOWN_TYPE', `no type ${JSON.stringify(type)}`);
  const until = kind === 'hold-row' ? FOREVER : command.until;
  if (until < 0n || until > I64_MAX) throw new ServiceError('REL_INVALID', 'the end of a schedule is no instant');
  const versions = rows.versions(type);
  const path = rows.scopes.codeOf(context.entry.path);
  const newest = versions && path >= 0 ? versions.newestOf(path, key) : -1;
  const writeContext = { path: context.entry.path, rows, at: next };
  // Rows that the caller may not remove get the same answer as rows that do not exist.
  if (!versions || newest < 0 || isRefused(context, definition, key, writeContext))
    throw new ServiceError('REL_NOT_FOUND', 'no such row');
  const change = kind === 'hold-row' ? 'held' : 'scheduled';
  const body: RetentionBody = { kind: 'retention', change, id, type, position: versions.positionOf(newest), until };
  return decideOne(kind, id, [{ context: context.entry, body }], next);
}

export function decideRelease(command: ReleaseRetention, state: HeldState, context: DecideContext, next: NextPosition): Decision {
  const releasedRule = inForce(command.id, state.retention);
  const { id, type, position, branch } = releasedRule;
  const row = rowOf(releasedRule, state);
  const of = rowsOfKept(releasedRule, state);
  const writeContext = row && { path: row.path, rows: state.rows.tenantRows(of), at: next };
  if (writeContext && isRefused(context, of.catalog.type(type)!, row.key, writeContext)) throw notInForce();
  const body: RetentionBody = { kind: 'retention', change: 'released', id, type, position, until: FOREVER };
  return decideOne('release-retention', id, [{ context: { ...context.entry, branch }, body }], next);
}

export function decideExpire(
  command: ExpireRetention,
  state: HeldState & { readonly removedKeys: RemovalContext['removed'] },
  holds: HoldReader,
  context: DecideContext,
  next: NextPosition,
): Decision {
  const expiredRule = inForce(command.id, state.retention);
  if (!expiredRule.scheduled || expiredRule.until > next.time)
    throw new ServiceError('REL_CONFLICT', 'the retention time of the row is not over');
  const row = rowOf(expiredRule, state);
  if (!row) throw new ServiceError('REL_NOT_FOUND', 'no such row');
  const ids = holds.holdsOn(expiredRule.type, row.positions);
  if (ids.length > 0) throw new ServiceError('REL_CONFLICT', `the row is under legal hold: ${heldBy(ids)}`);
  const of = rowsOfKept(expiredRule, state);
  const { tenant, catalog } = of;
  const definition = catalog.type(expiredRule.type)!;
  const rows = state.rows.tenantRows(of);
  const sealing = sourceSealing({ catalog, rows, path: row.path, removed: state.removedKeys }, context);
  const edges = new EdgeRemovals(definition, { path: row.path, catalog, rows, holds, checks: {}, sealing, at: next });
  const why = edges.take(row.key);
  if (why !== null) throw new ServiceError(why.code, why.detail);
  const entry = { ...context.entry, branch: expiredRule.branch, tenant, path: row.path };
  const bodies = [removalOf(definition, [row.key], row.path, rows, sealing), ...edges.bodies()];
  const drafts = bodies.map((body) => ({ context: entry, body }));
  return decideOne('expire-retention', expiredRule.id, drafts, next);
}

function inForce(id: string, retention: Retention): RetentionRule {
  const ruleInForce = retention.find(id);
  if (!ruleInForce) throw notInForce();
  return ruleInForce;
}

/** The one answer for an id that is not in force and for an id that the caller may not end. */
export function notInForce(): ServiceError {
  return new ServiceError('REL_NOT_FOUND', 'no schedule or hold of this id is in force');
}

/** Whether some version of the row may not be removed. */
function isRefused(context: DecideContext, definition: TypeDefinition, key: string, writeContext: WriteContext): boolean {
  const test = context.rowCheck?.testFor(definition) ?? null;
  return test !== null && refusedKeys(test, definition.name, [key], writeContext, 'all').size > 0;
}
