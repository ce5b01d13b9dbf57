/**
 * Usage of tenants over a period, from their access records, and their stored bytes, from their own rows. No figure depends on
 * another tenant: stored bytes are measured on the tenant's rows, never as a share of the store's.
 */
import { type AccessRecord, mainBranch, type TypeDefinition } from '../../log/entries/entry.ts';
import type { Basis } from '../../log/log-store.ts';
import { type Cell, type ColumnType, systemColumns, tenantOf } from '../../log/values/value.ts';
import { cellAt } from '../../log/values/vector-builder.ts';
import type { AccessPaths, AuditReader, RowReader } from '../../projections/access-paths.ts';
import { answers } from '../authorization/action-names.ts';
import { covers } from '../caller.ts';
import type { TenantUsage } from '../desk-contract.ts';

export interface Period {
  /** Nanoseconds, from and just before. */
  readonly since: bigint;
  readonly until: bigint;
}

export interface UsageDependencies {
  /** Records of every tenant. */
  readonly audit: Pick<AuditReader, 'all'>;
  readonly branches: (tenant: string) => Iterable<MeasuredBranch>;
}

/** Ungoverned. */
export interface MeasuredBranch {
  readonly paths: AccessPaths;
  /** The instant that its own rows begin after; null for main. */
  readonly fork: bigint | null;
}

/** Every branch that a tenant can name as it stands, main first, with the rows of the tenant. */
export function* branchesToMeasure(
  state: {
    snapshot(basis: Basis, branch: string, tenant: string | null): AccessPaths;
    readonly branches: { listFor(tenant: string): readonly { readonly name: string; readonly instant: bigint }[] };
  },
  basis: Basis,
  tenant: string,
): Generator<MeasuredBranch, void> {
  yield { paths: state.snapshot(basis, mainBranch, tenant), fork: null };
  for (const { name, instant } of state.branches.listFor(tenant)) {
    yield { paths: state.snapshot(basis, name, tenant), fork: instant };
  }
}

/** A tenant, and the instant since which its id has been its own. */
export interface UsageSubject {
  readonly tenant: string;
  readonly since: bigint | null;
}

export async function usageOf(
  parts: UsageDependencies,
  subjects: readonly UsageSubject[],
  period: Period,
): Promise<TenantUsage[]> {
  const counted = await countRecords(parts.audit, subjects, period);
  return subjects.map(({ tenant }) => ({
    tenant,
    ...period,
    ...counted.get(tenant)!,
    ...measureHeld(parts.branches(tenant), tenant),
  }));
}

type Counts = Pick<TenantUsage, 'invocations' | 'queries' | 'costUnits' | 'rowsWritten'>;

const asking: ReadonlySet<string> = answers;
const writing: ReadonlySet<string> = new Set(['ingest', 'delete', 'remove']);

async function countRecords(
  audit: UsageDependencies['audit'],
  subjects: readonly UsageSubject[],
  period: Period,
): Promise<ReadonlyMap<string, Counts>> {
  const begun = new Map(subjects.map(({ tenant, since }) => [tenant, since]));
  const counts = new Map(subjects.map(({ tenant }) => [tenant, { invocations: 0, queries: 0, costUnits: 0, rowsWritten: 0 }]));
  for await (const record of audit.all(period)) {
    const tenant = tenantOf(record.path);
    const own = tenant === null ? undefined : counts.get(tenant);
    // A move of an agreement has an invocation's record of its own beside it.
    const invoked = record.action !== 'agreement';
    if (own !== undefined && invoked && record.time >= (begun.get(tenant!) ?? period.since)) add(own, record);
  }
  return counts;
}

function add(counts: { -readonly [K in keyof Counts]: number }, record: AccessRecord): void {
  counts.invocations++;
  if (record.decision === 'allow' && asking.has(record.action)) counts.queries++;
  counts.costUnits += record.costUnits;
  if (writing.has(record.action)) counts.rowsWritten += record.rowCount;
}

type Held = Pick<TenantUsage, 'rowsStored' | 'storedBytes'>;

/** Versions of a type that are measured; more of them count as these do. */
const sampleMax = 1_024;
const everything = { system: 'all', valid: 'all' } as const;

export function measureHeld(branches: Iterable<MeasuredBranch>, tenant: string): Held {
  const sum = { rowsStored: 0, storedBytes: 0 };
  for (const { paths, fork } of branches) {
    const codes = codesOf(paths.rows, tenant);
    if (codes.length === 0) continue;
    for (const type of paths.catalog.types()) {
      const versions = countOf(paths.rows, type.name, codes, fork);
      if (versions === 0) continue;
      const { measured, bytes } = sampleOf(paths.rows, type, codes, fork);
      sum.rowsStored += versions;
      if (measured > 0) sum.storedBytes += Math.round((bytes / measured) * versions);
    }
  }
  return sum;
}

function codesOf(rows: RowReader, tenant: string): number[] {
  const codes = rows.pathCodes();
  const own: number[] = [];
  for (let code = 0; code < codes.size; code++) {
    const path = codes.path(code);
    if (path !== null && covers(tenant, path)) own.push(code);
  }
  return own;
}

/** On main it is known; a branch has what was written on it, after its fork. */
function countOf(rows: RowReader, type: string, paths: readonly number[], fork: bigint | null): number {
  if (fork === null) return rows.estimate({ type, columns: [], time: everything, paths }).rows;
  let count = 0;
  const scan = rows.scan({ type, columns: [], time: everything, paths, after: fork });
  for (let step = scan.next(); step.done !== true; step = scan.next()) count += step.value.count;
  return count;
}

/** The four bounds of a version. */
const boundsBytes = 32;

function sampleOf(
  rows: RowReader,
  type: TypeDefinition,
  paths: readonly number[],
  fork: bigint | null,
): { readonly measured: number; readonly bytes: number } {
  const columns: readonly (readonly [string, ColumnType])[] = [
    ['_pk', systemColumns._pk],
    ...Object.entries(type.properties).map(([name, property]): [string, ColumnType] => [name, property.type]),
  ];
  const names = columns.map(([name]) => name);
  const scan = rows.scan({
    type: type.name,
    columns: names,
    time: everything,
    paths,
    blockRows: sampleMax,
    ...(fork === null ? {} : { after: fork }),
  });
  let [measured, bytes] = [0, 0];
  for (let step = scan.next(); step.done !== true && measured < sampleMax; step = scan.next()) {
    const block = step.value;
    for (let k = 0; k < block.count && measured < sampleMax; k++) {
      const row = block.selection ? block.selection[k]! : block.first + k;
      bytes += boundsBytes;
      columns.forEach(([, columnType], i) => (bytes += bytesOf(cellAt(block.columns[i]!, columnType, row))));
      measured++;
    }
  }
  scan.return?.();
  return { measured, bytes };
}

function bytesOf(cell: Cell): number {
  if (cell === null) return 0;
  if (typeof cell === 'string') return Buffer.byteLength(cell);
  if (typeof cell === 'boolean') return 1;
  return cell instanceof Float32Array ? cell.byteLength : 8;
}
