/** The room's front: every projection of the store, fed in order, read through snapshots, asked to decide commands. */
import { ServiceError } from '../errors.ts';
import { type CommittedEntry, type EntryContext } from '../log/entries/entry.ts';
import type { SubjectKeys } from '../log/keys/subject-keys.ts';
import type { Basis, NextPosition } from '../log/log-store.ts';
import type { AccessPaths } from './access-paths.ts';
import { Branches } from './branches/projection.ts';
import { CatalogHistory } from './catalog/type-history.ts';
import { Catalog } from './catalog/projection.ts';
import type { Command, DeleteRows, PutRows } from './command.ts';
import { decide, decideInSteps } from './decide.ts';
import { type Decision, decideContext, type WriteChecks } from './decision.ts';
import { unknownBranch } from './branches/commands.ts';
import { Embeddings } from './embeddings/projection.ts';
import { Judgements } from './entity-resolution/judgements.ts';
import { Jobs } from './jobs/projection.ts';
import { TransactionBranch } from './transaction-branch.ts';
import type { Projection } from './projection.ts';
import { Projector } from './projector.ts';
import { Redactions } from './redactions/projection.ts';
import { RemovedKeys } from './removed-keys/projection.ts';
import { type HeldRow, heldRows } from './retention/holds.ts';
import { type RetentionRule, Retention } from './retention/projection.ts';
import { type ColumnType, tenantOf } from '../log/values/value.ts';
import { Rows, rowsOf } from './rows/projection.ts';
import { Rules } from './rules/projection.ts';
import { textOpener } from './sealed-definitions.ts';
import type { RowStorageOptions } from './rows/tables/row-storage.ts';
import { EarlierTypeRows } from './rows/scan/earlier-type-rows.ts';
import { takeSnapshot } from './snapshot.ts';
import { StoreWideProjections } from './store-wide.ts';
import { Views } from './views/projection.ts';

export interface ProjectionsOptions {
  /** UUIDv7 text for a row that brings no key. */
  newKey(): string;
  readonly tokensMax: number;
  /** Keys that definitions rest under. Absent: the log has none, or nothing is applied. */
  readonly textKeys?: Pick<SubjectKeys, 'opening'> | undefined;
  /** The memory of rows, and the indexes and caches beside it. */
  readonly rows?: RowStorageOptions;
  /** Rows were deleted for good, or left the log: older saved state must go. */
  readonly onRemoval?: () => void;
  /** Further projections, after the ones of this room: they see each entry last. */
  readonly more?: readonly Projection[];
}

export class Projections extends StoreWideProjections {
  readonly branches = new Branches();
  readonly catalog = new Catalog();
  readonly catalogHistory = new CatalogHistory();
  readonly embeddings = new Embeddings(this.timeline);
  readonly judgements = new Judgements();
  readonly retention = new Retention();
  readonly rows: Rows;
  readonly redactions = new Redactions(this.embeddings);
  readonly removedKeys = new RemovedKeys();
  readonly rules: Rules;
  readonly jobs: Jobs;
  readonly views: Views;
  readonly projector: Projector;
  readonly #projectionsOptions: ProjectionsOptions;
  /** By organisation path, how often rows of it or below were removed for good in this process. */
  readonly #removalsByPath = new Map<string | null, number>();

  constructor(projectionsOptions: ProjectionsOptions) {
    super();
    this.#projectionsOptions = projectionsOptions;
    const openStoredText = textOpener(projectionsOptions.textKeys);
    this.rules = new Rules(openStoredText);
    this.jobs = new Jobs(openStoredText);
    this.views = new Views(openStoredText);
    this.rows = new Rows(this.timeline, { ...projectionsOptions.rows, bytesBeside: () => this.embeddings.bytes });
    // Rows turn positions into times, so the timeline stands before them.
    this.projector = new Projector([
      this.temporal,
      this.branches,
      this.catalog,
      this.catalogHistory,
      this.directory,
      this.exhibits,
      this.policies,
      this.receipts,
      this.rows,
      this.removedKeys,
      this.redactions,
      this.retention,
      this.erasures,
      this.tenants,
      this.views,
      this.judgements,
      this.rules,
      this.jobs,
      this.recalls,
      this.openEntries,
      // Redactions ask it of what is removed, so it stands behind them.
      this.embeddings,
      ...(projectionsOptions.more ?? []),
    ]);
  }

  apply(entry: CommittedEntry): void {
    this.projector.apply(entry);
    const { body } = entry;
    // After a redaction the list of log files is another one than a checkpoint of before knows, and it is of no use.
    const isDatedRemoval =
      body.kind === 'removal' || body.kind === 'redaction' || (body.kind === 'erasure' && body.change === 'intended');
    if (isDatedRemoval) this.#projectionsOptions.onRemoval?.();
    for (const removedPath of removedPathsOf(entry))
      this.#removalsByPath.set(removedPath, (this.#removalsByPath.get(removedPath) ?? 0) + 1);
  }

  /** Rises when rows of a path or below it are removed for good, on any branch; removals elsewhere do not show. */
  removals(path: string | null): number {
    return (
      (this.#removalsByPath.get(path) ?? 0) +
      (path === null ? 0 : (this.#removalsByPath.get(purgedTenantPath(tenantOf(path)!)) ?? 0))
    );
  }

  /** A private fork that never reaches the log. Throws REL_NOT_FOUND for a name that means no branch to the tenant. */
  privately(basis: Basis, branch: string, tenant: string | null): TransactionBranch {
    return new TransactionBranch(this, this.#projectionsOptions, branch, tenant, basis);
  }

  /** Throws REL_NOT_FOUND for a name that means no branch to the tenant. */
  snapshot(basis: Basis, branch: string, tenant: string | null): AccessPaths {
    return takeSnapshot(this, basis, branch, tenant);
  }

  /** The rows that a snapshot at this instant read, under the column types of then. */
  snapshotOf(instant: bigint, branch: string, tenant: string | null): AccessPaths {
    const position = this.timeline.positionAfter(instant);
    const accessPaths = this.snapshot({ position, instant }, branch, tenant);
    const catalogThen = this.catalogHistory.catalogAt(accessPaths.branchId, position, tenant);
    if (catalogThen === undefined) throw new ServiceError('REL_NOT_FOUND', `no branch ${JSON.stringify(branch)} at that instant`);
    const storedType = (type: string, column: string): ColumnType | undefined =>
      accessPaths.branchId === 0
        ? this.rows.table(tenant, type)?.columnTypes().get(column)?.type
        : // On a branch columns read as it declares them now, whatever they rest as.
          this.catalog.catalogOn(accessPaths.branchId, tenant).type(type)?.properties[column]?.type;
    const earlierRows = this.rows.reader(rowsOf(this.catalog, accessPaths.branchId, tenant), position, catalogThen);
    return { ...accessPaths, catalog: catalogThen, rows: new EarlierTypeRows(earlierRows, catalogThen, storedType) };
  }

  /** Schedules and holds on the row of a key, as it stands on the branch and in the path; undefined where there is no such row. */
  retentionRulesOf(branch: string, type: string, path: string | null, key: string): readonly RetentionRule[] | undefined {
    const fork = this.branches.idOf(branch, tenantOf(path));
    if (fork === undefined) return undefined;
    const rows = this.rows.tenantRows(rowsOf(this.catalog, fork, tenantOf(path)));
    const versions = rows.versions(type);
    const code = rows.scopes.codeOf(path);
    const newest = versions && code >= 0 ? versions.newestOf(code, key) : -1;
    if (!versions || newest < 0) return undefined;
    const positions = versions.allVersions(newest).map((version) => versions.positionOf(version));
    return positions
      .flatMap((position) => this.retention.rulesAt(position))
      .filter((rule) => rule.type === type && rule.fork === fork);
  }

  /** Holds on rows of the type on the branch that lie at the path or below it, and that the check lets the caller see. */
  heldRows(
    type: string,
    { branch, path }: { readonly branch: string; readonly path: string | null },
    refused: Parameters<typeof heldRows>[3],
  ): readonly HeldRow[] {
    const branchFork = this.branches.idOf(branch, tenantOf(path));
    if (branchFork === undefined) return [];
    const isUnder = (of: string | null): boolean => of === path || (path !== null && of !== null && of.startsWith(`${path}/`));
    return heldRows(type, branchFork, this, refused).filter((heldRow) => isUnder(heldRow.path));
  }

  /** See `Rows.keysWithin`: without it, the first to write to a large store that was only just opened would stop all others. */
  keysWithin(tenant: string | null, type: string, turn: () => Promise<void>): Promise<void> | null {
    return this.rows.keysWithin(tenant, type, turn);
  }

  /** Tells of keys of a branch whether something was written under them at or after a position. */
  writtenSince(
    branch: string,
    tenant: string | null,
    position: number,
  ): (type: string, path: string | null, key: string) => boolean {
    const branchFork = this.branches.idOf(branch, tenant);
    if (branchFork === undefined) throw unknownBranch(branch);
    return this.rows.tenantRows(rowsOf(this.catalog, branchFork, tenant)).writtenSince(position);
  }

  /**
   * Pure: nothing changes until the drafts are appended at `next` and applied. Throws what refuses the command. `reservedKeys` are used for rows
   * that bring none, before any that are made.
   */
  decide(
    command: Command,
    context: EntryContext,
    next: NextPosition,
    checks: WriteChecks = {},
    reservedKeys: readonly string[] = [],
  ): Decision {
    const { newKey, tokensMax } = this.#projectionsOptions;
    let usedKeyCount = 0;
    const nextRowKey = (): string => reservedKeys[usedKeyCount++] ?? newKey();
    return decide(command, this, decideContext(context, { newKey: nextRowKey, tokensMax }, checks), next);
  }

  /** See `decideInSteps`. */
  decideInSteps(
    command: PutRows | DeleteRows,
    context: EntryContext,
    next: NextPosition,
    checks: WriteChecks,
  ): Generator<undefined, Decision> {
    return decideInSteps(command, this, decideContext(context, this.#projectionsOptions, checks), next);
  }

  digests(): Readonly<Record<string, string>> {
    return this.projector.digests();
  }
}

/** Each with those above it. */
function removedPathsOf({ body, context }: CommittedEntry): ReadonlySet<string | null> {
  const removedPaths = new Set<string | null>();
  const addPathAndParents = (path: string | null): void => {
    removedPaths.add(path);
    const parent = path?.lastIndexOf('/') ?? -1;
    if (parent >= 0) addPathAndParents(path!.slice(0, parent));
  };
  if (body.kind === 'removal') addPathAndParents(context.path);
  if (body.kind === 'erasure')
    for (const { paths: erasedPaths } of body.versions) for (const path of erasedPaths) addPathAndParents(path);
  if (body.kind === 'tenant' && body.change === 'purged') removedPaths.add(purgedTenantPath(body.tenant.id));
  return removedPaths;
}

/** No path: a control character can't occur in one. */
function purgedTenantPath(tenant: string): string {
  return `\0${tenant}`;
}
