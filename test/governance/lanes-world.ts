/**
 * Rows of a real store under grants, and what a caller must see of them by the plainest reading: every version on its own,
 * lane by lane, cell by cell.
 */
import type { TenantPaths } from '../../src/projections/access-paths.ts';
import type { Caller } from '../../src/governance/caller.ts';
import type { Action, GovernedSnapshot } from '../../src/governance/gate-contract.ts';
import { Grants, joinedGrant } from '../../src/governance/authorization/grants.ts';
import type { CellMask, Grant, Lane, RowCondition, TypeGrant } from '../../src/governance/authorization/grant.ts';
import { Guards } from '../../src/governance/authorization/guards.ts';
import { PoliciesInForce, type Stated } from '../../src/governance/authorization/policies-in-force.ts';
import { MaskHash } from '../../src/governance/authorization/mask-renderings.ts';
import { RowConditionBits } from '../../src/governance/authorization/row-condition-bits.ts';
import { governSnapshot } from '../../src/governance/reading/governed-snapshot.ts';
import type { Reading } from '../../src/governance/reading/lane-blocks.ts';
import { ScopeCache } from '../../src/governance/reading/path-scopes.ts';
import type { AgreementTerms, TypeDefinition } from '../../src/log/entries/entry.ts';
import { FOREVER } from '../../src/log/values/timestamp.ts';
import { type Cell, type ColumnType, systemColumns, tenantOf } from '../../src/log/values/value.ts';
import { cellAt, VectorBuilder } from '../../src/log/values/vector-builder.ts';
import { type RowBlock, type RowReader, type ScanRequest, shownColumn, shownOf } from '../../src/projections/access-paths.ts';
import { analyst } from '../harness.ts';
import { termsOf } from '../projections/histories.ts';
import { everything, freshProjections, type PlainRow, Store } from '../projections/store.ts';

export const hashKey = new Uint8Array(32).fill(7);

export interface Asking extends Partial<Stated> {
  readonly action?: Action;
  readonly basis?: number;
  readonly branch?: string;
  /** Clock of the invocation; the store's by default. */
  readonly now?: bigint;
  /** Stands for storage. */
  readonly storage?: (rows: RowReader) => RowReader;
}

export const callerOf = (path: string | null, more: Partial<Caller> = {}): Caller => ({
  ...analyst,
  tenant: path?.split('/')[0] ?? null,
  path,
  ...more,
});

const readable: Readonly<Record<string, ColumnType>> = systemColumns;

export class LaneWorld {
  readonly store: Store;
  readonly grants: Grants;
  readonly policies: PoliciesInForce;
  readonly reading: Reading;

  constructor(options: { readonly segmentRows?: number; readonly bitBytes?: number } = {}) {
    let made = 0;
    this.store = new Store(freshProjections(() => `made-${made++}`, { settings: { segmentRows: options.segmentRows ?? 64 } }));
    const { policies, tenants } = this.store.projections;
    this.policies = new PoliciesInForce(policies);
    this.grants = new Grants(this.policies, tenants);
    this.reading = { scopes: new ScopeCache(), bits: new RowConditionBits(options.bitBytes), hash: new MaskHash(hashKey) };
  }

  install(...texts: readonly string[]): void {
    texts.forEach((text, i) => void this.store.run({ kind: 'put-policy', id: `p${i}`, text }));
  }

  /** In force from now on. */
  share(id: string, assigner: string, assignee: string, terms: Partial<AgreementTerms> = {}): void {
    const lasting = { validFrom: 0n, validTo: 2n ** 62n, permission: ['read'], ...terms };
    this.store.run({ kind: 'propose-agreement', id, terms: termsOf(assigner, assignee, lasting) });
    this.move(id, 'accepted', 'assignee');
    this.move(id, 'active', 'assigner');
  }

  move(id: string, to: 'accepted' | 'active' | 'suspended' | 'revoked', side: 'assigner' | 'assignee'): void {
    this.store.run({ kind: 'move-agreement', id, to, side });
  }

  grantFor(caller: Caller, asking: Asking = {}): Grant {
    const { action = 'query', now = this.store.time, purpose = null, breakGlass = null, accessScopeRef = null } = asking;
    return this.grants.grantFor({ caller, stated: { purpose, breakGlass, accessScopeRef }, action, now });
  }

  snapshot(caller: Caller, asking: Asking = {}): GovernedSnapshot {
    const { basis, branch = 'main', purpose = null, breakGlass = null, accessScopeRef = null } = asking;
    const stored = this.store.snapshot(basis, branch, tenantOf(caller.path));
    const paths = { ...stored, rows: asking.storage?.(stored.rows) ?? stored.rows };
    const stated = { breakGlass, accessScopeRef };
    const guardsOf = ({ protection }: TenantPaths): Guards =>
      new Guards({ caller, ...stated }, protection, { permitsOpening: () => false });
    const grant = this.grantFor(caller, asking);
    return governSnapshot(paths, { caller, purpose, ...stated, guardsOf, grant, beginning: null }, this.reading);
  }

  /** As a caller of the path means it; a definition that others share where there is none of one's own. */
  definition(type: string, branch = 'main', path: string | null = 'acme'): TypeDefinition {
    return this.#sources(callerOf(path), type, { branch })[0]!.definition;
  }

  /** Rows as they leave, how many storage is said to have looked at, and of how many blocks the reader told rows himself. */
  read(caller: Caller, request: Partial<ScanRequest> & { columns: readonly string[] }, asking: Asking = {}) {
    const asked: ScanRequest = { type: 'Person', time: everything, ...request };
    const snapshot = this.snapshot(caller, asking);
    const definition = snapshot.catalog.type(asked.type)!;
    const rows: PlainRow[] = [];
    let scanned = 0;
    let sifted = 0;
    const blocks = snapshot.rows.scan(asked);
    for (let step = blocks.next(); step.done !== true; step = blocks.next()) {
      rows.push(...rowsOf(step.value, asked.columns, definition));
      scanned += step.value.scanned;
      if (step.value.sift?.visible) sifted++;
    }
    return { rows, scanned, sifted };
  }

  /** What `read` has to give, zones left out. */
  expected(caller: Caller, request: Partial<ScanRequest> & { columns: readonly string[] }, asking: Asking = {}): PlainRow[] {
    const { type = 'Person', columns, time = everything, keys, after } = request;
    const { basis, branch } = asking;
    const sources = this.#sources(caller, type, asking);
    const meant = sources[0]!.definition;
    const found = sources.flatMap(({ tenant, definition, grant }) => {
      const names = [...Object.keys(definition.properties), ...Object.keys(readable)];
      const asked: ScanRequest = { type, columns: names, time, ...(after === undefined ? {} : { after }) };
      const alike = (name: string): boolean => sameType(shownOf(name) ?? name, meant, definition);
      const scan = this.store.snapshot(basis, branch, tenant).rows.scan(asked);
      const stored: PlainRow[] = [];
      for (let step = scan.next(); step.done !== true; step = scan.next()) stored.push(...rowsOf(step.value, names, definition));
      return stored.flatMap((row) => {
        const lane = grant.lanes.find((each) => passes(each, row, caller, definition, time));
        if (lane === undefined) return [];
        const isKey = keys === undefined || (maskOf(lane, '_pk', row, definition) === null && keys.includes(String(row['_pk'])));
        if (!isKey) return [];
        const shown = shownRow(row, columns, lane, definition);
        return [
          {
            at: row['system_from'] as bigint,
            shown: Object.fromEntries(columns.map((name) => [name, alike(name) ? shown[name]! : null])),
          },
        ];
      });
    });
    return found.sort((a, b) => (a.at < b.at ? -1 : 1)).map(({ shown }) => shown);
  }

  /** Null where the caller can name no such type. */
  granted(caller: Caller, asking: Asking = {}, type = 'Person'): TypeGrant | null {
    const sources = this.#sources(caller, type, asking);
    return sources.length === 0 ? null : joinedGrant(sources.map(({ grant }) => grant));
  }

  /** Whose rows the name stands for: the caller's own tenant's first. */
  #sources(
    caller: Caller,
    type: string,
    asking: Asking,
  ): { readonly tenant: string | null; readonly definition: TypeDefinition; readonly grant: TypeGrant }[] {
    const grant = this.grantFor(caller, asking);
    const of = (tenant: string | null): TypeDefinition | undefined =>
      this.store.snapshot(undefined, asking.branch, tenant).catalog.type(type);
    const tenant = tenantOf(caller.path);
    const own = of(tenant);
    const shared = grant.sharing.flatMap((each) => {
      const definition = each.types.has(type) ? of(each.tenant) : undefined;
      const granted = definition && each.grantFor(definition);
      return granted?.allowed ? [{ tenant: each.tenant, definition: definition!, grant: granted }] : [];
    });
    return [...(own === undefined ? [] : [{ tenant, definition: own, grant: grant.grantFor(own) }]), ...shared];
  }
}

/** Of a column that one of them lacks false. */
function sameType(column: string, a: TypeDefinition, b: TypeDefinition): boolean {
  const of = ({ properties }: TypeDefinition): ColumnType | undefined =>
    Object.hasOwn(properties, column) ? properties[column]!.type : readable[column];
  return of(a) === of(b);
}

export function rowsOf(block: RowBlock, columns: readonly string[], definition: TypeDefinition): PlainRow[] {
  const found: PlainRow[] = [];
  const { live = null, closings = null, closing = 0, visible } = block.sift ?? {};
  for (let k = 0; k < block.count; k++) {
    const row = block.selection === null ? block.first + k : block.selection[k]!;
    if (live !== null && ((live[row >>> 5]! >>> (row & 31)) & 1) === 0) continue;
    if (closings !== null && closings[row]! < closing) continue;
    if (visible && ((visible[row >>> 5]! >>> (row & 31)) & 1) === 0) continue;
    found.push(
      Object.fromEntries(
        columns.map((name, i) => [name, cellAt(block.columns[i]!, typeOf(shownOf(name) ?? name, definition), row)]),
      ),
    );
  }
  return found;
}

function typeOf(name: string, { properties }: TypeDefinition): ColumnType {
  return Object.hasOwn(properties, name) ? properties[name]!.type : (readable[name] ?? 'string');
}

function passes(lane: Lane, row: PlainRow, caller: Caller, definition: TypeDefinition, time: ScanRequest['time']): boolean {
  const path = row['namespace_path'] as string | null;
  if (!(lane.agreement === null ? coversOwn(caller.path, path) : lane.covers(path))) return false;
  const end = row['system_to'] as bigint;
  if (lane.history === 'current_only' && end !== FOREVER) return false;
  if (typeof lane.history === 'object') {
    if (time.system !== 'all' && time.system < lane.history.from) return false;
    if (end <= lane.history.from) return false;
  }
  return lane.rows === null || (lane.rows !== 'none' && holds(lane.rows, row, definition));
}

function coversOwn(own: string | null, path: string | null): boolean {
  return own === null || path === null ? own === path : path === own || path.startsWith(`${own}/`);
}

/** The compiled condition, of one row alone. */
export function holds(condition: RowCondition, row: PlainRow, definition: TypeDefinition): boolean {
  const columns = condition.columns.map((name) => {
    const builder = new VectorBuilder(typeOf(name, definition), 1);
    builder.append(row[name] ?? null);
    return builder.build();
  });
  const out = new Uint8Array(1);
  condition.test(columns, null, 0, 1, out);
  return out[0] === 1;
}

function maskOf(lane: Lane, column: string, row: PlainRow, definition: TypeDefinition): CellMask | null {
  const keys = ['_pk', 'id', definition.primaryKey];
  if (lane.columns !== null) {
    const isShared = keys.includes(column)
      ? keys.some((key) => key !== null && lane.columns!.has(key))
      : lane.columns.has(column);
    const isCell = Object.hasOwn(definition.properties, column) || keys.includes(column);
    if (isCell && !isShared) return { kind: 'null', when: null, because: '' };
  }
  const mask = lane.masks.get(column) ?? null;
  return mask === null || mask.when === null || holds(mask.when, row, definition) ? mask : null;
}

function shownRow(row: PlainRow, columns: readonly string[], lane: Lane, definition: TypeDefinition): PlainRow {
  return Object.fromEntries(
    columns.map((name): [string, Cell] => {
      const column = shownOf(name) ?? name;
      const cell = row[column] ?? null;
      const mask = maskOf(lane, column, row, definition);
      if (mask === null) return [name, cell];
      const path = row['namespace_path'] as string | null;
      return [name, shownOf(name) === null ? null : rendering(mask, cell, typeOf(column, definition), path)];
    }),
  );
}

/** What a mask shows, written down once more. */
export function rendering({ kind, size }: CellMask, cell: Cell, type: ColumnType, path: string | null): Cell {
  if (type === 'string' && kind === 'redact') return '***';
  if (cell === null) return null;
  if (type === 'string') {
    const text = String(cell);
    if (kind === 'hash') return new MaskHash(hashKey).hashOf(text, path);
    if (kind === 'year') return isDate(text) ? text.slice(0, 4) : null;
    if (kind !== 'last4') return null;
    const points = Array.from(text);
    return points.map((point, i) => (points.length > 4 && i >= points.length - 4 ? point : '*')).join('');
  }
  if (type === 'integer' && kind === 'bucket' && size !== undefined) {
    const n = BigInt(size);
    let least = (cell as bigint) / n;
    if (least * n > (cell as bigint)) least--;
    return least * n < -(2n ** 63n) ? null : least * n;
  }
  if (type !== 'timestamp' || kind !== 'year') return null;
  const ms = (cell as bigint) / 1_000_000n - ((cell as bigint) % 1_000_000n < 0n ? 1n : 0n);
  const start = BigInt(Date.parse(`${new Date(Number(ms)).toISOString().slice(0, 4)}-01-01T00:00:00Z`)) * 1_000_000n;
  return start < -(2n ** 63n) ? null : start;
}

/** A year and a month, and maybe a day and what follows it. */
function isDate(text: string): boolean {
  const [date, rest] = [text.slice(0, 10), text.slice(10)];
  const [year, month, day = '01', ...more] = date.split('-');
  const numbers = [year, month, day].map((part) => (/^\d+$/.test(part ?? '') ? Number(part) : -1));
  const lengths = [year, month, day].map((part) => part?.length).join();
  const isInYear = numbers[1]! >= 1 && numbers[1]! <= 12 && numbers[2]! >= 1 && numbers[2]! <= 31;
  return lengths === '4,2,2' && numbers[0]! >= 0 && isInYear && more.length === 0 && (rest === '' || /^[T ]/.test(rest));
}

/** Each column, and as it is shown. */
export const bothWays = (...columns: readonly string[]): string[] => columns.flatMap((name) => [name, shownColumn(name)]);
