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
  usageParts: UsageDependencies,
  usageSubjects: readonly UsageSubject[],
  period: Period,
): Promise<TenantUsage[]> {
  const usageCounts = await countRecords(usageParts.audit, usageSubjects, period);
  return usageSubjects.map(({ tenant }) => ({
    tenant,
    ...period,
    ...usageCounts.get(tenant)!,
    ...measureHeld(usageParts.branches(tenant), tenant),
  }));
}

type UsageCounts = Pick<TenantUsage, 'invocations' | 'queries' | 'costUnits' | 'rowsWritten'>;

const queryActions: ReadonlySet<string> = answers;
const writeActions: ReadonlySet<string> = new Set(['ingest', 'delete', 'remove']);

async function countRecords(
  audit: UsageDependencies['audit'],
  subjects: readonly UsageSubject[],
  period: Period,
): Promise<ReadonlyMap<string, UsageCounts>> {
  const subjectsSince = new Map(subjects.map(({ tenant, since }) => [tenant, since]));
  const usageCounts = new Map(
    subjects.map(({ tenant }) => [tenant, { invocations: 0, queries: 0, costUnits: 0, rowsWritten: 0 }]),
  );
  for await (const accessRecord of audit.all(period)) {
    const tenant = tenantOf(accessRecord.path);
    const tenantCounts = tenant === null ? undefined : usageCounts.get(tenant);
    // A move of an agreement has an invocation's record of its own beside it.
    const isInvocation = accessRecord.action !== 'agreement';
    if (tenantCounts !== undefined && isInvocation && accessRecord.time >= (subjectsSince.get(tenant!) ?? period.since))
      addToUsage(tenantCounts, accessRecord);
  }
  return usageCounts;
}

function addToUsage(tenantCounts: { -readonly [K in keyof UsageCounts]: number }, accessRecord: AccessRecord): void {
  tenantCounts.invocations++;
  if (accessRecord.decision === 'allow' && queryActions.has(accessRecord.action)) tenantCounts.queries++;
  tenantCounts.costUnits += accessRecord.costUnits;
  if (writeActions.has(accessRecord.action)) tenantCounts.rowsWritten += accessRecord.rowCount;
}

type HeldByTenant = Pick<TenantUsage, 'rowsStored' | 'storedBytes'>;

/** Versions of a type that are measured; more of them count as these do. */
const sampledRowsMax = 1_024;
const allTimes = { system: 'all', valid: 'all' } as const;

export function measureHeld(branches: Iterable<MeasuredBranch>, tenant: string): HeldByTenant {
  const heldByTenant = { rowsStored: 0, storedBytes: 0 };
  for (const { paths, fork } of branches) {
    const tenantPathCodes = tenantPathCodesOf(paths.rows, tenant);
    if (tenantPathCodes.length === 0) continue;
    for (const type of paths.catalog.types()) {
      const versionCount = versionCountOf(paths.rows, type.name, tenantPathCodes, fork);
      if (versionCount === 0) continue;
      const { measured: sampledRows, bytes: sampledBytes } = sampleOfRows(paths.rows, type, tenantPathCodes, fork);
      heldByTenant.rowsStored += versionCount;
      if (sampledRows > 0) heldByTenant.storedBytes += Math.round((sampledBytes / sampledRows) * versionCount);
    }
  }
  return heldByTenant;
}

function tenantPathCodesOf(rows: RowReader, tenant: string): number[] {
  const allPathCodes = rows.pathCodes();
  const tenantPathCodes: number[] = [];
  for (let code = 0; code < allPathCodes.size; code++) {
    const path = allPathCodes.path(code);
    if (path !== null && covers(tenant, path)) tenantPathCodes.push(code);
  }
  return tenantPathCodes;
}

/** On main it is known; a branch has what was written on it, after its fork. */
function versionCountOf(rows: RowReader, type: string, paths: readonly number[], fork: bigint | null): number {
  if (fork === null) return rows.estimate({ type, columns: [], time: allTimes, paths }).rows;
  let versionCount = 0;
  const forkScan = rows.scan({ type, columns: [], time: allTimes, paths, after: fork });
  for (let forkStep = forkScan.next(); forkStep.done !== true; forkStep = forkScan.next()) versionCount += forkStep.value.count;
  return versionCount;
}

/** The four bounds of a version. */
const versionBoundsBytes = 32;

function sampleOfRows(
  rows: RowReader,
  type: TypeDefinition,
  paths: readonly number[],
  fork: bigint | null,
): { readonly measured: number; readonly bytes: number } {
  const columns: readonly (readonly [string, ColumnType])[] = [
    ['_pk', systemColumns._pk],
    ...Object.entries(type.properties).map(([name, property]): [string, ColumnType] => [name, property.type]),
  ];
  const sampledColumns = columns.map(([name]) => name);
  const sampleScan = rows.scan({
    type: type.name,
    columns: sampledColumns,
    time: allTimes,
    paths,
    blockRows: sampledRowsMax,
    ...(fork === null ? {} : { after: fork }),
  });
  let [sampledRows, sampledBytes] = [0, 0];
  for (
    let sampleStep = sampleScan.next();
    sampleStep.done !== true && sampledRows < sampledRowsMax;
    sampleStep = sampleScan.next()
  ) {
    const sampledBlock = sampleStep.value;
    for (let k = 0; k < sampledBlock.count && sampledRows < sampledRowsMax; k++) {
      const row = sampledBlock.selection ? sampledBlock.selection[k]! : sampledBlock.first + k;
      sampledBytes += versionBoundsBytes;
      columns.forEach(
        ([, columnType], i) => (sampledBytes += usageBytesOfCell(cellAt(sampledBlock.columns[i]!, columnType, row))),
      );
      sampledRows++;
    }
  }
  sampleScan.return?.();
  return { measured: sampledRows, bytes: sampledBytes };
}

function usageBytesOfCell(cell: Cell): number {
  if (cell === null) return 0;
  if (typeof cell === 'string') return Buffer.byteLength(cell);
  if (typeof cell === 'boolean') return 1;
  return cell instanceof Float32Array ? cell.byteLength : 8;
}
