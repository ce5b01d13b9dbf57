/** Putting, ending and removing rows: a command and the versions that stand to the entries that say what happened. Pure. */
import { assert, type ErrorCode, ServiceError } from '../../../errors.ts';
import type { EntryDraft, Provenance, RowsBody, TypeDefinition } from '../../../log/entries/entry.ts';
import { rowOp } from '../../../log/entries/entry.ts';
import { isOwnSubject } from '../../../log/keys/joint-subject.ts';
import { subjectProperty } from '../../catalog/subject-property.ts';
import type { NextPosition } from '../../../log/log-store.ts';
import { cellAt } from '../../../log/values/vector-builder.ts';
import { FOREVER } from '../../../log/values/timestamp.ts';
import { checkIdentifier, limits } from '../../../log/values/value.ts';
import type { CatalogReader, HoldReader } from '../../access-paths.ts';
import { classifiedTypes } from '../../catalog/builtin-types.ts';
import { typeDraft } from '../../catalog/commands.ts';
import type { DeleteRows, Outcome, PutRows, RemoveRows, RowOutcome, RowRejection } from '../../command.ts';
import { type DecideContext, type Decision, decideNothing, outcomeLimits, type RowSeals } from '../../decision.ts';
import { heldBy } from '../../retention/holds.ts';
import { checkBatch } from '../checks/batch-contract.ts';
import type { TenantRows } from '../tables/tenant-rows.ts';
import { conflictOf } from '../checks/key-conditions.ts';
import { type Refusal, refusal } from '../edges/edge-ends.ts';
import { EdgeRemovals } from '../edges/edge-removals.ts';
import { hasEdges, RowEdges } from '../edges/edges.ts';
import { putColumns } from './put-columns.ts';
import { RejectedRows } from '../cells/rejected-rows.ts';
import { newestStated, openVersions, putByRow, rowsPerStep, versionsSince } from './put-row-by-row.ts';
import { RowCells } from '../cells/row-cells.ts';
import { refusedKeys, rejectUnwritable } from '../checks/row-check.ts';
import { finishSteps } from '../../../log/threads/stepping-job.ts';
import { byProvenance, checkProvenance, rowProvenances } from '../cells/row-provenance.ts';
import { removalOf, type SourceSealing } from '../checks/removal-entry.ts';
import { NO_ROW } from '../segments/segment.ts';
import type { StoredVersions } from '../cells/stored-versions.ts';
import { SourceSeals } from '../checks/source-seals.ts';
import { type OpenVersion, VersionPlan } from '../checks/version-plan.ts';
import { bodyOfPlan, textVector } from '../checks/version-columns.ts';

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
/** Soft deletes are Annals' own doing: the caller brought no cells. */
const deletion: Provenance = { source: 'annals', method: 'delete', confidence: 1, derivedFrom: null };

export function decidePut(
  command: PutRows,
  catalog: CatalogReader,
  rows: TenantRows,
  context: DecideContext,
  next: NextPosition,
): Decision {
  return finishSteps(putSteps(command, catalog, rows, context, next));
}

/** See `decideInSteps`. */
export function* putSteps(
  command: PutRows,
  catalog: CatalogReader,
  rows: TenantRows,
  context: DecideContext,
  next: NextPosition,
): Generator<undefined, Decision> {
  const { type, patch } = command;
  refuseClassified(type);
  if (patch !== undefined && command.replace)
    throw new ServiceError('REL_INVALID', 'a write patches rows or replaces them, not both');
  if (command.keepsPresent && command.when !== 'absent')
    throw new ServiceError('REL_INVALID', "keeping present rows needs when: 'absent'");
  const known = catalog.type(type);
  if (!known && !command.createType) throw unknownType(type);
  if (!known) checkIdentifier(type, 'a type name');
  const rejections = new RejectedRows();
  checkProvenance(command.provenance);
  const provenances = rowProvenances(command.rows, command.provenance, rejections);
  const isPatch = patch !== undefined;
  const batch = checkBatch(command.rows, known, {
    name: type,
    catalog,
    stored: rows,
    rejections,
    newKey: context.newKey,
    isPatch,
  });
  const at = batch.definitionChanged ? { position: next.position + 1, time: next.time + 1n } : next;
  const table = rows.versions(type);
  if (context.rowCheck) {
    rejectUnwritable(context.rowCheck, batch, known, { path: context.entry.path, rows, at }, rejections, isPatch);
  }
  const cells = new RowCells(batch.definition, batch, table, patch);
  const edges = hasEdges(batch.definition) ? new RowEdges(batch.definition, cells, { catalog, rows, context, at }) : null;
  const { when } = command;
  const asSent = !isPatch && !command.replace && (when === undefined || when === 'absent') && !command.listsRows;
  const put =
    asSent && edges === null && rejections.count === 0
      ? putColumns(batch, table, rows.scopes.codeOf(context.entry.path), at)
      : null;
  // Where nothing ends, no key was there: that is what a write of absent keys asks.
  const whole = when === 'absent' && put !== null && put.closes.length > 0 ? null : put;
  const { written, origins, outcomes } =
    whole === null
      ? yield* putByRow({ put: command, batch, cells, edges, rows, context, at, rejections })
      : { written: whole, origins: null, outcomes: null };

  if (command.atomic && rejections.count > 0) {
    const { index, code, detail, column } = rejections.first()!;
    const refused = { type, index, ...(column !== undefined && { column }) };
    throw new ServiceError(code as ErrorCode, `row ${index}: ${detail}`, { refused });
  }
  const errors = rejections.list(outcomeLimits.errorsListed);
  const listed = outcomes === null ? {} : { rows: outcomes };
  if (written.ops.length === 0) {
    const nothing = decideNothing('put-rows', rejections.count, errors);
    return { ...nothing, outcome: { ...nothing.outcome, ...listed } };
  }
  const body: RowsBody = {
    kind: 'rows',
    type,
    ops: written.ops,
    keys: written.keys,
    closeOffsets: written.closeOffsets,
    closes: written.closes,
    cells: written.cells,
    provenance: command.provenance,
    ...sealing(context, catalog, rows).subjectsOf(batch.definition, written, context.entry.path, command.subject),
  };
  const drafts: EntryDraft[] = [];
  if (batch.definitionChanged) drafts.push(typeDraft(batch.definition, context));
  const bodies = provenances === null ? [body] : byProvenance(body, origins, provenances);
  for (const each of bodies) drafts.push({ context: context.entry, body: each });
  if (edges !== null) drafts.push(...edges.drafts(at.position + body.ops.length, sealedTimes(body, batch.subject, at)));
  const outcome = outcomeOf('put-rows', body, { origins, at, rejected: rejections.count, errors, idsMax: command.idsMax });
  return { drafts, outcome: outcomes === null ? outcome : { ...outcome, rows: outcomes } };
}

/** Every open version of a key gets an end; the key's earlier beliefs stay readable as of then. */
export function decideDelete(
  command: DeleteRows,
  catalog: CatalogReader,
  rows: TenantRows,
  context: DecideContext,
  next: NextPosition,
): Decision {
  return finishSteps(deleteSteps(command, catalog, rows, context, next));
}

/** See `decideInSteps`. */
export function* deleteSteps(
  command: DeleteRows,
  catalog: CatalogReader,
  rows: TenantRows,
  context: DecideContext,
  next: NextPosition,
): Generator<undefined, Decision> {
  refuseClassified(command.type);
  const known = catalog.type(command.type);
  if (!known) throw unknownType(command.type);
  const mayEnd = checkedKeys(command, known, 'open', rows, context, next);
  const table = rows.versions(command.type);
  const path = rows.scopes.codeOf(context.entry.path);
  const plan = new VersionPlan(next.position, next.time);
  const cells = new RowCells(known, null, table);
  const edges = hasEdges(known) ? new RowEdges(known, cells, { catalog, rows, context, at: next }) : null;
  const keys: string[] = [];
  const rejections = new RejectedRows();
  const outcomes: RowOutcome[] = [];
  const seen = new Set<string>();
  const { within, when } = command;
  const isEnded = endedBy(command, table);
  for (const [index, key] of command.keys.entries()) {
    if (index > 0 && index % rowsPerStep === 0) yield;
    if (seen.has(key)) continue;
    seen.add(key);
    const newest = table ? newestOf(table, path, key) : NO_ROW;
    const endedVersions = newest === NO_ROW ? [] : openVersions(table!, newest).filter(isEnded);
    const refuse = (code: ErrorCode, detail: string): void => {
      rejections.add(index, code, detail);
      outcomes.push({ index, key, became: 'refused', systemFrom: 0n });
    };
    const why = mayEnd(key, endedVersions.length > 0);
    if (why !== null && (why.code === 'REL_ACL' || when === undefined)) {
      refuse(why.code, why.detail);
      continue;
    }
    const now = plan.nextTime;
    const conflict =
      when === undefined ? null : conflictOf(when, endedVersions.length > 0, statedPosition(table, newest), rows, next);
    if (conflict !== null) {
      refuse('REL_CONFLICT', conflict);
      continue;
    }
    const mark = plan.mark;
    for (const version of endedVersions) {
      if (within === undefined) plan.end(version);
      else plan.endWithin(version, within.from, within.to ?? FOREVER);
    }
    const unfollowed = edges?.follow(key, endedVersions, versionsSince(plan, mark.versions, next)) ?? null;
    if (unfollowed !== null) {
      plan.goBack(mark);
      refuse(unfollowed.code, unfollowed.detail);
      continue;
    }
    while (keys.length < plan.length) keys.push(key);
    outcomes.push({ index, key, became: 'deleted', systemFrom: now });
  }
  const errors = rejections.list(outcomeLimits.errorsListed);
  const listed = command.listsRows ? { rows: outcomes } : {};
  if (plan.length === 0) {
    const nothing = decideNothing('delete-rows', rejections.count, errors);
    return { ...nothing, outcome: { ...nothing.outcome, ...listed } };
  }
  const written = bodyOfPlan(plan, textVector(keys), yield* cells.columnSteps(plan.cells));
  const subjects = sealing(context, catalog, rows).subjectsOf(known, written, context.entry.path);
  const body: RowsBody = { kind: 'rows', type: command.type, ...written, provenance: deletion, ...subjects };
  const outcome = outcomeOf('delete-rows', body, { origins: null, at: next, rejected: rejections.count, errors });
  const deleted = [...new Set(keys)];
  const drafts: EntryDraft[] = [{ context: context.entry, body }];
  if (edges !== null)
    drafts.push(...edges.drafts(next.position + body.ops.length, sealedTimes(body, subjectProperty(known), next)));
  return { drafts, outcome: { ...outcome, accepted: deleted.length, ...listKeys(deleted), ...listed } };
}

/** Which open versions of a key the command ends. */
function endedBy({ within }: DeleteRows, table: StoredVersions | undefined): (version: OpenVersion) => boolean {
  if (within === undefined) return (version) => table!.opOf(version.cells) !== rowOp.delete;
  const { from } = within;
  const to = within.to ?? FOREVER;
  if (from >= to) throw new ServiceError('REL_INVALID', 'the time range in which rows end must end after it begins');
  return (version) => version.from < version.to && version.from < to && from < version.to;
}

/** Hard delete of every version, ended ones included. */
export function decideRemove(
  command: RemoveRows,
  catalog: CatalogReader,
  rows: TenantRows,
  { holds, sealing }: { readonly holds: HoldReader; readonly sealing: SourceSealing | null },
  context: DecideContext,
  next: NextPosition,
): Decision {
  refuseClassified(command.type);
  const known = catalog.type(command.type);
  if (!known) throw unknownType(command.type);
  const mayRemove = checkedKeys(command, known, 'all', rows, context, next);
  const table = rows.versions(command.type);
  const path = rows.scopes.codeOf(context.entry.path);
  const rejections = new RejectedRows();
  const removed = new Set<string>();
  const edges = new EdgeRemovals(known, { path: context.entry.path, catalog, rows, holds, checks: context, sealing, at: next });
  command.keys.forEach((key, index) => {
    if (removed.has(key)) return;
    const newest = table ? newestOf(table, path, key) : NO_ROW;
    const why = mayRemove(key, newest !== NO_ROW);
    if (why !== null) return rejections.add(index, why.code, why.detail);
    const positions = table!.allVersions(newest).map((version) => table!.positionOf(version));
    const held = holds.holdsOn(command.type, positions);
    if (held.length > 0) return rejections.add(index, 'REL_CONFLICT', `the row is under legal hold: ${heldBy(held)}`);
    const unfollowed = edges.take(key);
    if (unfollowed !== null) return rejections.add(index, unfollowed.code, unfollowed.detail);
    removed.add(key);
  });
  if (removed.size === 0) return decideNothing('remove-rows', rejections.count, rejections.list(outcomeLimits.errorsListed));
  const keys = [...removed];
  const bodies = [removalOf(known, keys, context.entry.path, rows, sealing), ...edges.bodies()];
  return {
    drafts: bodies.map((body) => ({ context: context.entry, body })),
    outcome: {
      kind: 'remove-rows',
      accepted: keys.length,
      rejected: rejections.count,
      errors: rejections.list(outcomeLimits.errorsListed),
      ...listKeys(keys),
      systemFrom: next.time,
      systemFromLast: next.time,
      changed: true,
    },
  };
}

/**
 * Why a key may not be ended or removed; null: it may. Under a condition a key that stands and may not, and one that does not stand,
 * are refused alike.
 */
function checkedKeys(
  { type, keys }: DeleteRows | RemoveRows,
  known: TypeDefinition,
  versions: 'open' | 'all',
  rows: TenantRows,
  { entry, rowCheck }: DecideContext,
  at: NextPosition,
): (key: string, stands: boolean) => Refusal | null {
  const test = rowCheck?.testFor(known) ?? null;
  if (test === 'none') rowCheck!.refuse(known);
  const writeContext = { path: entry.path, rows, at };
  const refused = test === null ? new Set<string>() : refusedKeys(test, type, [...new Set(keys)], writeContext, versions);
  return (key, stands) => {
    if (stands && !refused.has(key)) return null;
    if (test === null) return refusal('REL_NOT_FOUND', 'no such row');
    return refusal('REL_ACL', 'no such row, or none that a policy permits to end');
  };
}

/** Position of the newest version that a write stated; -1 where the key has none. */
function statedPosition(table: StoredVersions | undefined, newest: number): number {
  return newest === NO_ROW ? -1 : table!.positionOf(newestStated(table!, newest));
}

function newestOf(table: StoredVersions, path: number, key: string): number {
  return path < 0 ? NO_ROW : table.newestOf(path, key);
}

interface WrittenRows {
  /** Row that each version is of; several versions of one row count once. Null: each is of its own. */
  readonly origins: Int32Array | null;
  readonly at: NextPosition;
  readonly rejected: number;
  readonly errors: readonly RowRejection[];
  readonly idsMax?: number | undefined;
}

function outcomeOf(
  kind: Outcome['kind'],
  body: RowsBody,
  { origins, at, rejected, errors, idsMax = outcomeLimits.idsListed }: WrittenRows,
): Decision['outcome'] {
  const idsListed = Math.min(idsMax, outcomeLimits.idsListed);
  const keys = body.keys.columns[0]!.vector;
  assert(keys.kind === 'text', 'keys are text');
  const ids: string[] = [];
  let accepted = 0;
  for (let row = 0; row < body.ops.length; row++) {
    if (body.ops[row] === rowOp.remainder || (origins !== null && row > 0 && origins[row] === origins[row - 1])) continue;
    accepted++;
    if (ids.length < idsListed) ids.push(decoder.decode(keys.heap.subarray(keys.offsets[row]!, keys.offsets[row + 1]!)));
  }
  return {
    kind,
    accepted,
    rejected,
    errors,
    ids,
    idsTruncated: accepted > ids.length,
    systemFrom: at.time,
    systemFromLast: at.time + BigInt(body.ops.length - 1),
    changed: true,
  };
}

function listKeys(keys: readonly string[]): { ids: readonly string[]; idsTruncated: boolean } {
  return { ids: keys.slice(0, outcomeLimits.idsListed), idsTruncated: keys.length > outcomeLimits.idsListed };
}

function sealing(context: DecideContext, catalog: CatalogReader, rows: TenantRows): RowSeals {
  return context.seals ?? new SourceSeals(catalog, rows);
}

/** When the rows begin to be believed that are sealed without a cell that says for whom: their edges have none either. */
function sealedTimes({ subjects, ops }: RowsBody, property: string | null, { time }: NextPosition): ReadonlySet<bigint> {
  const times = new Set<bigint>();
  if (subjects === undefined) return times;
  for (let row = 0; row < ops.length; row++) {
    const subject = cellAt(subjects, 'string', row) as string | null;
    if (subject !== null && (property === null || isOwnSubject(subject))) times.add(time + BigInt(row));
  }
  return times;
}

function refuseClassified(type: string): void {
  if (classifiedTypes.has(type)) throw new ServiceError('REL_HUMINT', 'classified type');
}

function unknownType(type: string): ServiceError {
  return new ServiceError('REL_UNKNOWN_TYPE', `no type ${JSON.stringify(type.slice(0, limits.identifierLength))}`);
}
