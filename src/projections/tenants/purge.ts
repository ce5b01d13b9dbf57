/**
 * Removing for good the rows of a deleted tenant: rows of its paths, of every type on every branch, some keys a command. Removed
 * rows aren't found again, so an interrupted purge starts anew with no cursor and comes to the same end. No caller can write
 * under the paths of a deleted tenant, so one pass finds everything. Pure.
 *
 * Branches go in the order of their forks, main first: a removal reaches the branches forked from its own. Those of the tenant
 * end with it, so that a later tenant of its id starts without them.
 */
import { assert, ServiceError } from '../../errors.ts';
import { type EntryDraft, mainBranch, type TypeDefinition } from '../../log/entries/entry.ts';
import type { NextPosition } from '../../log/log-store.ts';
import { compareText } from '../../log/values/value.ts';
import { cellAt } from '../../log/values/vector-builder.ts';
import { type HoldReader, pathColumn, type RowReader, type TimeBounds } from '../access-paths.ts';
import { deletionOf } from '../branches/commands.ts';
import type { Branches } from '../branches/projection.ts';
import type { Catalog } from '../catalog/projection.ts';
import type { PurgeCursor, PurgeTenant } from '../command.ts';
import { type DecideContext, type Decision, decideOne } from '../decision.ts';
import { heldBy } from '../retention/holds.ts';
import type { TenantRows } from '../rows/tables/tenant-rows.ts';
import { removalOf } from '../rows/checks/removal-entry.ts';
import { type Rows, rowsOf } from '../rows/projection.ts';
import type { Tenants } from './projection.ts';
import { covers, recordDraft } from './tenant-drafts.ts';

export interface PurgedState {
  readonly tenants: Tenants;
  readonly branches: Branches;
  readonly catalog: Catalog;
  readonly rows: Rows;
}

const allTimes: TimeBounds = { system: 'all', valid: 'all' };
const purgedColumns = ['_pk', pathColumn, 'system_from'];

/** The outcome says where to go on (`purge`); when nothing is left, the entry that says so was made and there is no more. */
export function decidePurge(
  command: PurgeTenant,
  state: PurgedState,
  holds: HoldReader,
  context: DecideContext,
  next: NextPosition,
): Decision {
  const { id: tenantId, keysMax } = command;
  assert(keysMax >= 1, 'a step of a purge removes something');
  const purgedTenant = state.tenants.tenant(tenantId);
  if (!purgedTenant) throw new ServiceError('REL_NOT_FOUND', 'no such tenant');
  if (purgedTenant.purged) return decideOne('purge-tenant', tenantId, [], next);
  if (purgedTenant.manner !== 'purge')
    throw new ServiceError('REL_CONFLICT', 'only a tenant that was deleted with its rows can be purged');
  const purgedKeys = nextKeysToPurge(tenantId, keysMax, command.cursor, state, next.position);
  if (purgedKeys === null) {
    const purgedBody = {
      kind: 'tenant',
      change: 'purged',
      manner: null,
      tenant: { ...purgedTenant.record, changedAt: next.time },
    } as const;
    const tenantBranches = state.branches.list().filter((purgedBranch) => purgedBranch.tenant === tenantId);
    const purgeContext = { ...context, entry: { ...context.entry, tenant: tenantId, path: tenantId } };
    const purgeDrafts = [
      ...tenantBranches.map((purgedBranch) => deletionOf(purgedBranch, purgeContext)),
      recordDraft(purgedBody, context.entry),
    ];
    return decideOne('purge-tenant', tenantId, purgeDrafts, next);
  }
  const drafts = [...purgedKeys.keys].map(([path, pathKeys]) =>
    purgeRemovalDraft(path, [...pathKeys], purgedKeys, holds, context),
  );
  const purgedKeyCount = [...purgedKeys.keys.values()].reduce((sum, pathKeys) => sum + pathKeys.size, 0);
  const { outcome } = decideOne('purge-tenant', tenantId, drafts, next);
  return { drafts, outcome: { ...outcome, accepted: purgedKeyCount, purge: purgedKeys.cursor } };
}

interface PurgeStep {
  readonly cursor: PurgeCursor;
  /** To whom the name of the branch means that branch. */
  readonly naming: string | null;
  readonly type: TypeDefinition;
  readonly rows: TenantRows;
  /** By path. */
  readonly keys: ReadonlyMap<string, ReadonlySet<string>>;
}

/** Keys of one type on one branch, from the cursor on; null when nothing is left from there to the end. */
function nextKeysToPurge(
  tenantId: string,
  keysMax: number,
  purgeCursor: PurgeCursor | null,
  state: PurgedState,
  position: number,
): PurgeStep | null {
  const { branches, catalog, rows } = state;
  const purgedPathCodes = purgedPathCodesOf(tenantId, rows);
  const purgedForks = [{ name: mainBranch, tenant: null, fork: 0 }, ...branches.list()];
  for (const { name: branch, tenant, fork } of purgedForks.sort((a, b) => a.fork - b.fork)) {
    if (purgeCursor !== null && fork < purgeCursor.fork) continue;
    const forkScope = rowsOf(catalog, fork, tenantId);
    const forkReader = rows.reader(forkScope, position);
    for (const purgedType of forkScope.catalog.types()) {
      const { name: type } = purgedType;
      if (purgeCursor?.fork === fork && compareText(type, purgeCursor.type) < 0) continue;
      const purgedAfter = purgeCursor?.fork === fork && type === purgeCursor.type ? purgeCursor.after : null;
      if (forkReader.estimate({ type, columns: [], time: allTimes, paths: purgedPathCodes }).rows === 0) continue;
      const { keys: typeKeys, last: lastPurged } = purgedKeysOf(forkReader, type, purgedPathCodes, keysMax, purgedAfter);
      if (typeKeys.size === 0) continue;
      // A branch of others may have rows of this tenant from a branch that was deleted.
      const namingTenant = branches.idOf(branch, tenantId) === fork ? tenantId : tenant;
      return {
        cursor: { branch, fork, type, after: lastPurged },
        naming: namingTenant,
        type: purgedType,
        rows: rows.tenantRows(forkScope),
        keys: typeKeys,
      };
    }
  }
  return null;
}

function purgedPathCodesOf(tenantId: string, { scopes }: Rows): number[] {
  return scopes.paths().flatMap((path, pathCode) => (path !== null && covers(tenantId, path) ? [pathCode] : []));
}

function purgedKeysOf(
  forkReader: RowReader,
  type: string,
  paths: readonly number[],
  keysMax: number,
  purgedAfter: bigint | null,
): { keys: Map<string, Set<string>>; last: bigint } {
  const keysByPath = new Map<string, Set<string>>();
  const pathCodes = forkReader.pathCodes();
  let [purgedKeyCount, lastPurged] = [0, purgedAfter ?? 0n];
  const purgeRequest = {
    type,
    columns: purgedColumns,
    time: allTimes,
    paths,
    blockRows: keysMax,
    ...(purgedAfter === null ? {} : { after: purgedAfter }),
  };
  const purgeScan = forkReader.scan(purgeRequest);
  for (let purgeBlockStep = purgeScan.next(); purgeBlockStep.done !== true; purgeBlockStep = purgeScan.next()) {
    const purgeBlock = purgeBlockStep.value;
    const [keyVector, pathVector, systemFromVector] = purgeBlock.columns;
    for (let k = 0; k < purgeBlock.count && purgedKeyCount < keysMax; k++) {
      const purgedRow = purgeBlock.selection ? purgeBlock.selection[k]! : purgeBlock.first + k;
      const ownerPath = pathCodes.path(Number(cellAt(pathVector!, 'integer', purgedRow)))!;
      const ownerKeys = keysByPath.get(ownerPath) ?? new Set();
      keysByPath.set(ownerPath, ownerKeys);
      const keyCountBefore = ownerKeys.size;
      purgedKeyCount += ownerKeys.add(String(cellAt(keyVector!, 'string', purgedRow))).size - keyCountBefore;
      lastPurged = cellAt(systemFromVector!, 'timestamp', purgedRow) as bigint;
    }
    if (purgedKeyCount >= keysMax) break;
  }
  purgeScan.return?.();
  return { keys: keysByPath, last: lastPurged };
}

function purgeRemovalDraft(
  path: string,
  pathKeys: readonly string[],
  { cursor: purgeCursor, naming, type, rows }: PurgeStep,
  holds: HoldReader,
  context: DecideContext,
): EntryDraft {
  const removalBody = removalOf(type, pathKeys, path, rows, null);
  const holdIds = holds.holdsOn(type.name, removalBody.positions);
  if (holdIds.length > 0) throw new ServiceError('REL_CONFLICT', `rows of the tenant are under legal hold: ${heldBy(holdIds)}`);
  return { context: { ...context.entry, branch: purgeCursor.branch, tenant: naming, path }, body: removalBody };
}
