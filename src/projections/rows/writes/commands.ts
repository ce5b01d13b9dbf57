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

const keyDecoder = new TextDecoder('utf-8', { ignoreBOM: true });
/** Soft deletes are Annals' own doing: the caller brought no cells. */
const deletionProvenance: Provenance = { source: 'annals', method: 'delete', confidence: 1, derivedFrom: null };

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
  const knownType = catalog.type(type);
  if (!knownType && !command.createType) throw unknownType(type);
  if (!knownType) checkIdentifier(type, 'a type name');
  const rejections = new RejectedRows();
  checkProvenance(command.provenance);
  const provenances = rowProvenances(command.rows, command.provenance, rejections);
  const isPatch = patch !== undefined;
  const checkedBatch = checkBatch(command.rows, knownType, {
    name: type,
    catalog,
    stored: rows,
    rejections,
    newKey: context.newKey,
    isPatch,
  });
  const rowsPosition = checkedBatch.definitionChanged ? { position: next.position + 1, time: next.time + 1n } : next;
  const storedVersions = rows.versions(type);
  if (context.rowCheck) {
    rejectUnwritable(
      context.rowCheck,
      checkedBatch,
      knownType,
      { path: context.entry.path, rows, at: rowsPosition },
      rejections,
      isPatch,
    );
  }
  const rowCells = new RowCells(checkedBatch.definition, checkedBatch, storedVersions, patch);
  const rowEdges = hasEdges(checkedBatch.definition)
    ? new RowEdges(checkedBatch.definition, rowCells, { catalog, rows, context, at: rowsPosition })
    : null;
  const { when } = command;
  const canPutAsSent = !isPatch && !command.replace && (when === undefined || when === 'absent') && !command.listsRows;
  const columnsPut =
    canPutAsSent && rowEdges === null && rejections.count === 0
      ? putColumns(checkedBatch, storedVersions, rows.scopes.codeOf(context.entry.path), rowsPosition)
      : null;
  // Where nothing ends, no key was there: that is what a write of absent keys asks.
  const wholePut = when === 'absent' && columnsPut !== null && columnsPut.closes.length > 0 ? null : columnsPut;
  const {
    written: writtenRows,
    origins: originRows,
    outcomes: rowOutcomes,
  } = wholePut === null
    ? yield* putByRow({
        put: command,
        batch: checkedBatch,
        cells: rowCells,
        edges: rowEdges,
        rows,
        context,
        at: rowsPosition,
        rejections,
      })
    : { written: wholePut, origins: null, outcomes: null };

  if (command.atomic && rejections.count > 0) {
    const { index, code, detail, column } = rejections.first()!;
    const refusedRow = { type, index, ...(column !== undefined && { column }) };
    throw new ServiceError(code as ErrorCode, `row ${index}: ${detail}`, { refused: refusedRow });
  }
  const rowErrors = rejections.list(outcomeLimits.errorsListed);
  const listedOutcomes = rowOutcomes === null ? {} : { rows: rowOutcomes };
  if (writtenRows.ops.length === 0) {
    const emptyDecision = decideNothing('put-rows', rejections.count, rowErrors);
    return { ...emptyDecision, outcome: { ...emptyDecision.outcome, ...listedOutcomes } };
  }
  const rowsBody: RowsBody = {
    kind: 'rows',
    type,
    ops: writtenRows.ops,
    keys: writtenRows.keys,
    closeOffsets: writtenRows.closeOffsets,
    closes: writtenRows.closes,
    cells: writtenRows.cells,
    provenance: command.provenance,
    ...rowSealsOf(context, catalog, rows).subjectsOf(checkedBatch.definition, writtenRows, context.entry.path, command.subject),
  };
  const rowDrafts: EntryDraft[] = [];
  if (checkedBatch.definitionChanged) rowDrafts.push(typeDraft(checkedBatch.definition, context));
  const provenanceBodies = provenances === null ? [rowsBody] : byProvenance(rowsBody, originRows, provenances);
  for (const provenanceBody of provenanceBodies) rowDrafts.push({ context: context.entry, body: provenanceBody });
  if (rowEdges !== null)
    rowDrafts.push(
      ...rowEdges.drafts(
        rowsPosition.position + rowsBody.ops.length,
        sealedRowTimesOf(rowsBody, checkedBatch.subject, rowsPosition),
      ),
    );
  const putOutcome = rowsOutcomeOf('put-rows', rowsBody, {
    origins: originRows,
    at: rowsPosition,
    rejected: rejections.count,
    errors: rowErrors,
    idsMax: command.idsMax,
  });
  return { drafts: rowDrafts, outcome: rowOutcomes === null ? putOutcome : { ...putOutcome, rows: rowOutcomes } };
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
  const knownType = catalog.type(command.type);
  if (!knownType) throw unknownType(command.type);
  const mayEndKey = keyRefusalOf(command, knownType, 'open', rows, context, next);
  const storedVersions = rows.versions(command.type);
  const pathCode = rows.scopes.codeOf(context.entry.path);
  const deletionPlan = new VersionPlan(next.position, next.time);
  const rowCells = new RowCells(knownType, null, storedVersions);
  const rowEdges = hasEdges(knownType) ? new RowEdges(knownType, rowCells, { catalog, rows, context, at: next }) : null;
  const deletedKeys: string[] = [];
  const rejections = new RejectedRows();
  const rowOutcomes: RowOutcome[] = [];
  const seenKeys = new Set<string>();
  const { within: endedRange, when } = command;
  const isVersionEnded = endedBy(command, storedVersions);
  for (const [index, deletedKey] of command.keys.entries()) {
    if (index > 0 && index % rowsPerStep === 0) yield;
    if (seenKeys.has(deletedKey)) continue;
    seenKeys.add(deletedKey);
    const newestVersion = storedVersions ? newestVersionOf(storedVersions, pathCode, deletedKey) : NO_ROW;
    const endedVersions = newestVersion === NO_ROW ? [] : openVersions(storedVersions!, newestVersion).filter(isVersionEnded);
    const refuseKey = (code: ErrorCode, detail: string): void => {
      rejections.add(index, code, detail);
      rowOutcomes.push({ index, key: deletedKey, became: 'refused', systemFrom: 0n });
    };
    const keyRefusal = mayEndKey(deletedKey, endedVersions.length > 0);
    if (keyRefusal !== null && (keyRefusal.code === 'REL_ACL' || when === undefined)) {
      refuseKey(keyRefusal.code, keyRefusal.detail);
      continue;
    }
    const deletionTime = deletionPlan.nextTime;
    const keyConflict =
      when === undefined
        ? null
        : conflictOf(when, endedVersions.length > 0, statedPosition(storedVersions, newestVersion), rows, next);
    if (keyConflict !== null) {
      refuseKey('REL_CONFLICT', keyConflict);
      continue;
    }
    const planMark = deletionPlan.mark;
    for (const version of endedVersions) {
      if (endedRange === undefined) deletionPlan.end(version);
      else deletionPlan.endWithin(version, endedRange.from, endedRange.to ?? FOREVER);
    }
    const edgeRefusal = rowEdges?.follow(deletedKey, endedVersions, versionsSince(deletionPlan, planMark.versions, next)) ?? null;
    if (edgeRefusal !== null) {
      deletionPlan.goBack(planMark);
      refuseKey(edgeRefusal.code, edgeRefusal.detail);
      continue;
    }
    while (deletedKeys.length < deletionPlan.length) deletedKeys.push(deletedKey);
    rowOutcomes.push({ index, key: deletedKey, became: 'deleted', systemFrom: deletionTime });
  }
  const keyErrors = rejections.list(outcomeLimits.errorsListed);
  const listed = command.listsRows ? { rows: rowOutcomes } : {};
  if (deletionPlan.length === 0) {
    const emptyDecision = decideNothing('delete-rows', rejections.count, keyErrors);
    return { ...emptyDecision, outcome: { ...emptyDecision.outcome, ...listed } };
  }
  const deletionRows = bodyOfPlan(deletionPlan, textVector(deletedKeys), yield* rowCells.columnSteps(deletionPlan.cells));
  const sealedSubjects = rowSealsOf(context, catalog, rows).subjectsOf(knownType, deletionRows, context.entry.path);
  const deletionBody: RowsBody = {
    kind: 'rows',
    type: command.type,
    ...deletionRows,
    provenance: deletionProvenance,
    ...sealedSubjects,
  };
  const deleteOutcome = rowsOutcomeOf('delete-rows', deletionBody, {
    origins: null,
    at: next,
    rejected: rejections.count,
    errors: keyErrors,
  });
  const distinctDeleted = [...new Set(deletedKeys)];
  const deletionDrafts: EntryDraft[] = [{ context: context.entry, body: deletionBody }];
  if (rowEdges !== null)
    deletionDrafts.push(
      ...rowEdges.drafts(
        next.position + deletionBody.ops.length,
        sealedRowTimesOf(deletionBody, subjectProperty(knownType), next),
      ),
    );
  return {
    drafts: deletionDrafts,
    outcome: { ...deleteOutcome, accepted: distinctDeleted.length, ...listChangedKeys(distinctDeleted), ...listed },
  };
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
  { holds, sealing: sourceSealing }: { readonly holds: HoldReader; readonly sealing: SourceSealing | null },
  context: DecideContext,
  next: NextPosition,
): Decision {
  refuseClassified(command.type);
  const knownType = catalog.type(command.type);
  if (!knownType) throw unknownType(command.type);
  const mayRemoveKey = keyRefusalOf(command, knownType, 'all', rows, context, next);
  const storedVersions = rows.versions(command.type);
  const pathCode = rows.scopes.codeOf(context.entry.path);
  const rejections = new RejectedRows();
  const removedKeys = new Set<string>();
  const edgeRemovals = new EdgeRemovals(knownType, {
    path: context.entry.path,
    catalog,
    rows,
    holds,
    checks: context,
    sealing: sourceSealing,
    at: next,
  });
  command.keys.forEach((key, index) => {
    if (removedKeys.has(key)) return;
    const newestVersion = storedVersions ? newestVersionOf(storedVersions, pathCode, key) : NO_ROW;
    const keyRefusal = mayRemoveKey(key, newestVersion !== NO_ROW);
    if (keyRefusal !== null) return rejections.add(index, keyRefusal.code, keyRefusal.detail);
    const removedPositions = storedVersions!.allVersions(newestVersion).map((version) => storedVersions!.positionOf(version));
    const holdIds = holds.holdsOn(command.type, removedPositions);
    if (holdIds.length > 0) return rejections.add(index, 'REL_CONFLICT', `the row is under legal hold: ${heldBy(holdIds)}`);
    const edgeRefusal = edgeRemovals.take(key);
    if (edgeRefusal !== null) return rejections.add(index, edgeRefusal.code, edgeRefusal.detail);
    removedKeys.add(key);
  });
  if (removedKeys.size === 0) return decideNothing('remove-rows', rejections.count, rejections.list(outcomeLimits.errorsListed));
  const removedKeyList = [...removedKeys];
  const removalBodies = [removalOf(knownType, removedKeyList, context.entry.path, rows, sourceSealing), ...edgeRemovals.bodies()];
  return {
    drafts: removalBodies.map((removalBody) => ({ context: context.entry, body: removalBody })),
    outcome: {
      kind: 'remove-rows',
      accepted: removedKeyList.length,
      rejected: rejections.count,
      errors: rejections.list(outcomeLimits.errorsListed),
      ...listChangedKeys(removedKeyList),
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
function keyRefusalOf(
  { type, keys }: DeleteRows | RemoveRows,
  knownType: TypeDefinition,
  versions: 'open' | 'all',
  rows: TenantRows,
  { entry, rowCheck }: DecideContext,
  at: NextPosition,
): (key: string, isRowThere: boolean) => Refusal | null {
  const writtenRowTest = rowCheck?.testFor(knownType) ?? null;
  if (writtenRowTest === 'none') rowCheck!.refuse(knownType);
  const writeContext = { path: entry.path, rows, at };
  const refusedKeySet =
    writtenRowTest === null ? new Set<string>() : refusedKeys(writtenRowTest, type, [...new Set(keys)], writeContext, versions);
  return (key, isRowThere) => {
    if (isRowThere && !refusedKeySet.has(key)) return null;
    if (writtenRowTest === null) return refusal('REL_NOT_FOUND', 'no such row');
    return refusal('REL_ACL', 'no such row, or none that a policy permits to end');
  };
}

/** Position of the newest version that a write stated; -1 where the key has none. */
function statedPosition(table: StoredVersions | undefined, newest: number): number {
  return newest === NO_ROW ? -1 : table!.positionOf(newestStated(table!, newest));
}

function newestVersionOf(table: StoredVersions, path: number, key: string): number {
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

function rowsOutcomeOf(
  kind: Outcome['kind'],
  rowsBody: RowsBody,
  { origins: originRows, at, rejected, errors, idsMax = outcomeLimits.idsListed }: WrittenRows,
): Decision['outcome'] {
  const idsListed = Math.min(idsMax, outcomeLimits.idsListed);
  const keyTexts = rowsBody.keys.columns[0]!.vector;
  assert(keyTexts.kind === 'text', 'keys are text');
  const listedIds: string[] = [];
  let acceptedCount = 0;
  for (let row = 0; row < rowsBody.ops.length; row++) {
    if (rowsBody.ops[row] === rowOp.remainder || (originRows !== null && row > 0 && originRows[row] === originRows[row - 1]))
      continue;
    acceptedCount++;
    if (listedIds.length < idsListed)
      listedIds.push(keyDecoder.decode(keyTexts.heap.subarray(keyTexts.offsets[row]!, keyTexts.offsets[row + 1]!)));
  }
  return {
    kind,
    accepted: acceptedCount,
    rejected,
    errors,
    ids: listedIds,
    idsTruncated: acceptedCount > listedIds.length,
    systemFrom: at.time,
    systemFromLast: at.time + BigInt(rowsBody.ops.length - 1),
    changed: true,
  };
}

function listChangedKeys(changedKeys: readonly string[]): { ids: readonly string[]; idsTruncated: boolean } {
  return { ids: changedKeys.slice(0, outcomeLimits.idsListed), idsTruncated: changedKeys.length > outcomeLimits.idsListed };
}

function rowSealsOf(context: DecideContext, catalog: CatalogReader, rows: TenantRows): RowSeals {
  return context.seals ?? new SourceSeals(catalog, rows);
}

/** When the rows begin to be believed that are sealed without a cell that says for whom: their edges have none either. */
function sealedRowTimesOf(
  { subjects, ops }: RowsBody,
  subjectColumn: string | null,
  { time }: NextPosition,
): ReadonlySet<bigint> {
  const sealedRowTimes = new Set<bigint>();
  if (subjects === undefined) return sealedRowTimes;
  for (let row = 0; row < ops.length; row++) {
    const rowSubject = cellAt(subjects, 'string', row) as string | null;
    if (rowSubject !== null && (subjectColumn === null || isOwnSubject(rowSubject))) sealedRowTimes.add(time + BigInt(row));
  }
  return sealedRowTimes;
}

function refuseClassified(type: string): void {
  if (classifiedTypes.has(type)) throw new ServiceError('REL_HUMINT', 'classified type');
}

function unknownType(type: string): ServiceError {
  return new ServiceError('REL_UNKNOWN_TYPE', `no type ${JSON.stringify(type.slice(0, limits.identifierLength))}`);
}
