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

const everything: TimeBounds = { system: 'all', valid: 'all' };
const columns = ['_pk', pathColumn, 'system_from'];

/** The outcome says where to go on (`purge`); when nothing is left, the entry that says so was made and there is no more. */
export function decidePurge(
  command: PurgeTenant,
  state: PurgedState,
  holds: HoldReader,
  context: DecideContext,
  next: NextPosition,
): Decision {
  const { id, keysMax } = command;
  assert(keysMax >= 1, 'a step of a purge removes something');
  const tenant = state.tenants.tenant(id);
  if (!tenant) throw new ServiceError('REL_NOT_FOUND', 'no such tenant');
  if (tenant.purged) return decideOne('purge-tenant', id, [], next);
  if (tenant.manner !== 'purge')
    throw new ServiceError('REL_CONFLICT', 'only a tenant that was deleted with its rows can be purged');
  const purgedKeys = nextKeys(id, keysMax, command.cursor, state, next.position);
  if (purgedKeys === null) {
    const body = { kind: 'tenant', change: 'purged', manner: null, tenant: { ...tenant.record, changedAt: next.time } } as const;
    const own = state.branches.list().filter((branch) => branch.tenant === id);
    const ended = { ...context, entry: { ...context.entry, tenant: id, path: id } };
    const drafts = [...own.map((branch) => deletionOf(branch, ended)), recordDraft(body, context.entry)];
    return decideOne('purge-tenant', id, drafts, next);
  }
  const drafts = [...purgedKeys.keys].map(([path, keys]) => removal(path, [...keys], purgedKeys, holds, context));
  const removed = [...purgedKeys.keys.values()].reduce((sum, keys) => sum + keys.size, 0);
  const { outcome } = decideOne('purge-tenant', id, drafts, next);
  return { drafts, outcome: { ...outcome, accepted: removed, purge: purgedKeys.cursor } };
}

interface Found {
  readonly cursor: PurgeCursor;
  /** To whom the name of the branch means that branch. */
  readonly naming: string | null;
  readonly type: TypeDefinition;
  readonly rows: TenantRows;
  /** By path. */
  readonly keys: ReadonlyMap<string, ReadonlySet<string>>;
}

/** Keys of one type on one branch, from the cursor on; null when nothing is left from there to the end. */
function nextKeys(id: string, keysMax: number, cursor: PurgeCursor | null, state: PurgedState, position: number): Found | null {
  const { branches, catalog, rows } = state;
  const codes = codesOf(id, rows);
  const forks = [{ name: mainBranch, tenant: null, fork: 0 }, ...branches.list()];
  for (const { name: branch, tenant, fork } of forks.sort((a, b) => a.fork - b.fork)) {
    if (cursor !== null && fork < cursor.fork) continue;
    const of = rowsOf(catalog, fork, id);
    const reader = rows.reader(of, position);
    for (const definition of of.catalog.types()) {
      const { name: type } = definition;
      if (cursor?.fork === fork && compareText(type, cursor.type) < 0) continue;
      const after = cursor?.fork === fork && type === cursor.type ? cursor.after : null;
      if (reader.estimate({ type, columns: [], time: everything, paths: codes }).rows === 0) continue;
      const { keys, last } = keysOf(reader, type, codes, keysMax, after);
      if (keys.size === 0) continue;
      // A branch of others may have rows of this tenant from a branch that was deleted.
      const naming = branches.idOf(branch, id) === fork ? id : tenant;
      return { cursor: { branch, fork, type, after: last }, naming, type: definition, rows: rows.tenantRows(of), keys };
    }
  }
  return null;
}

function codesOf(id: string, { scopes }: Rows): number[] {
  return scopes.paths().flatMap((path, code) => (path !== null && covers(id, path) ? [code] : []));
}

function keysOf(
  reader: RowReader,
  type: string,
  paths: readonly number[],
  keysMax: number,
  after: bigint | null,
): { keys: Map<string, Set<string>>; last: bigint } {
  const keys = new Map<string, Set<string>>();
  const codes = reader.pathCodes();
  let [count, last] = [0, after ?? 0n];
  const request = { type, columns, time: everything, paths, blockRows: keysMax, ...(after === null ? {} : { after }) };
  const scan = reader.scan(request);
  for (let step = scan.next(); step.done !== true; step = scan.next()) {
    const block = step.value;
    const [pk, path, from] = block.columns;
    for (let k = 0; k < block.count && count < keysMax; k++) {
      const row = block.selection ? block.selection[k]! : block.first + k;
      const owner = codes.path(Number(cellAt(path!, 'integer', row)))!;
      const own = keys.get(owner) ?? new Set();
      keys.set(owner, own);
      const before = own.size;
      count += own.add(String(cellAt(pk!, 'string', row))).size - before;
      last = cellAt(from!, 'timestamp', row) as bigint;
    }
    if (count >= keysMax) break;
  }
  scan.return?.();
  return { keys, last };
}

function removal(
  path: string,
  keys: readonly string[],
  { cursor, naming, type, rows }: Found,
  holds: HoldReader,
  context: DecideContext,
): EntryDraft {
  const body = removalOf(type, keys, path, rows, null);
  const held = holds.holdsOn(type.name, body.positions);
  if (held.length > 0) throw new ServiceError('REL_CONFLICT', `rows of the tenant are under legal hold: ${heldBy(held)}`);
  return { context: { ...context.entry, branch: cursor.branch, tenant: naming, path }, body };
}
