/**
 * Puts that are decided one after the other: with bounds over open versions, patches, conditions, rows of which some are refused, and
 * rows that have edges. A row that is refused leaves nothing behind, so those after it are decided as if it had not been sent. Pure.
 */
import { assert } from '../../../errors.ts';
import { rowOp } from '../../../log/entries/entry.ts';
import type { NextPosition } from '../../../log/log-store.ts';
import { FOREVER } from '../../../log/values/timestamp.ts';
import { cellAt } from '../../../log/values/vector-builder.ts';
import type { PutRows, RowOutcome } from '../../command.ts';
import type { DecideContext, RowTest } from '../../decision.ts';
import type { CheckedBatch } from '../checks/batch-contract.ts';
import { BatchKeys } from '../keys/batch-keys.ts';
import type { TenantRows } from '../tables/tenant-rows.ts';
import { conflictOf } from '../checks/key-conditions.ts';
import type { Refusal } from '../edges/edge-ends.ts';
import type { RowEdges, RowVersion } from '../edges/edges.ts';
import { gather } from '../cells/gather-rows.ts';
import type { RejectedRows } from '../cells/rejected-rows.ts';
import type { RowCells } from '../cells/row-cells.ts';
import { notPermitted, testRows } from '../checks/row-check.ts';
import { NO_ROW } from '../segments/segment.ts';
import type { StoredVersions } from '../cells/stored-versions.ts';
import { type OpenVersion, type PlanMark, VersionPlan } from '../checks/version-plan.ts';
import { boundAt, boundVector, bodyOfPlan, type Written } from '../checks/version-columns.ts';

export interface RowByRow {
  readonly put: Pick<PutRows, 'patch' | 'when' | 'keepsPresent' | 'replace' | 'listsRows'>;
  readonly batch: CheckedBatch;
  readonly cells: RowCells;
  readonly edges: RowEdges | null;
  readonly rows: TenantRows;
  readonly context: DecideContext;
  readonly at: NextPosition;
  readonly rejections: RejectedRows;
}

export interface PutByRow {
  readonly written: Written;
  /** Row of the batch that each version is of. */
  readonly origins: Int32Array;
  readonly outcomes: readonly RowOutcome[] | null;
}

/** Rows that are decided without a pause. */
export const rowsPerStep = 512;

/** A key that the batch writes. */
interface GroupKey {
  open: readonly OpenVersion[];
  /** Position of its newest version; -1: it has none. */
  newest: number;
  /** The same before the batch. */
  readonly stored: number;
}

/** So many rows a step. */
export function* putByRow(request: RowByRow): Generator<undefined, PutByRow> {
  const { put, batch, cells, rows, context, at, rejections } = request;
  const { length, keys, validFrom, validTo } = batch;
  const storedVersions = rows.versions(batch.definition.name);
  const pathCode = rows.scopes.codeOf(context.entry.path);
  const versionPlan = new VersionPlan(at.position, at.time);
  const keyGroups = new BatchKeys(keys, length, pathCode);
  const keysByGroup: GroupKey[] = [];
  const originRows: number[] = [];
  const rowOutcomes: RowOutcome[] = [];
  const wholeRows = new WholeRowCheck(request);
  const rowKeyOf = (row: number): string => cellAt(keys, 'string', row) as string;
  for (let row = 0; row < length; row++) {
    if (row > 0 && row % rowsPerStep === 0) yield;
    if (rejections.has(row)) continue;
    const givenFrom = boundAt(validFrom, row);
    const givenTo = boundAt(validTo, row);
    const rowTime = versionPlan.nextTime;
    const [start, end] = [givenFrom ?? rowTime, givenTo ?? FOREVER];
    if (start >= end) {
      rejections.add(row, 'REL_INVALID', 'valid_to must be after valid_from');
      continue;
    }
    const nextGroup = keyGroups.groups;
    const keyGroup = keyGroups.groupOf(row);
    if (keyGroup === nextGroup) keysByGroup.push(storedGroupKey(storedVersions, pathCode, keys, row));
    const groupKey = keysByGroup[keyGroup]!;
    const affectedVersions = groupKey.open.filter(
      (version) => version.from < version.to && version.from < end && start < version.to,
    );
    const newestPosition = typeof put.when === 'object' && put.when.exceptOwn ? groupKey.stored : groupKey.newest;
    const keyConflict =
      put.when === undefined ? null : conflictOf(put.when, affectedVersions.length > 0, newestPosition, rows, at);
    if (keyConflict !== null && put.keepsPresent) {
      if (put.listsRows) rowOutcomes.push({ index: row, key: rowKeyOf(row), became: 'kept', systemFrom: 0n });
      continue;
    }
    if (keyConflict !== null) {
      rejections.add(row, 'REL_CONFLICT', keyConflict);
      continue;
    }
    const planMark = versionPlan.mark;
    const mergedBefore = cells.mergedRows;
    const openAfterWrite = writeRow(row, givenFrom, givenTo, affectedVersions, groupKey.open);
    const rowRefusal =
      wholeRows.refusalOf(versionPlan, planMark, row) ??
      edgeRefusal(request, rowKeyOf(row), groupKey.open, versionPlan, planMark);
    if (rowRefusal !== null) {
      versionPlan.goBack(planMark);
      cells.forgetMerged(mergedBefore);
      rejections.add(row, rowRefusal.code, rowRefusal.detail, rowRefusal.column);
      continue;
    }
    groupKey.open = openAfterWrite;
    groupKey.newest = at.position + versionPlan.newestStated;
    while (originRows.length < versionPlan.length) originRows.push(row);
    if (put.listsRows) {
      const rowBecame = affectedVersions.length > 0 ? 'updated' : 'created';
      rowOutcomes.push({ index: row, key: rowKeyOf(row), became: rowBecame, systemFrom: at.time + BigInt(planMark.versions) });
    }
  }
  yield;
  const writtenRows = Int32Array.from(originRows);
  const areRowsAsSent = writtenRows.length === length && writtenRows.every((row, i) => row === i);
  const plannedColumns = yield* cells.columnSteps(versionPlan.cells);
  const written = bodyOfPlan(versionPlan, areRowsAsSent ? keys : gather(keys, writtenRows), plannedColumns);
  yield;
  return { written, origins: writtenRows, outcomes: put.listsRows ? withRefusedOutcomes(rowOutcomes, request) : null };

  function writeRow(
    row: number,
    from: bigint | null,
    to: bigint | null,
    affectedVersions: readonly OpenVersion[],
    open: readonly OpenVersion[],
  ): OpenVersion[] {
    if (put.patch !== undefined && affectedVersions.length > 0) {
      const versionsOver = affectedVersions.toSorted((a, b) => (a.from < b.from ? -1 : 1));
      const mergedRows = versionsOver.map((version) => cells.merge(row, version.cells));
      return versionPlan.patch(mergedRows, versionsOver, from, to, open);
    }
    const ownRow = put.patch === undefined ? row : cells.merge(row, null);
    if (put.replace) return versionPlan.replace(ownRow, from, to, open);
    return from === null && to === null ? versionPlan.put(ownRow, open) : versionPlan.putWithin(ownRow, from, to, open);
  }
}

/** The refusal of a row's edges, given the versions that it closes and writes. */
function edgeRefusal(
  { edges, at }: RowByRow,
  key: string,
  open: readonly OpenVersion[],
  plan: VersionPlan,
  mark: PlanMark,
): Refusal | null {
  if (edges === null) return null;
  const closes = new Set(plan.closes.slice(mark.closes));
  const closed = open.filter(({ position }) => closes.has(position));
  return edges.follow(key, closed, versionsSince(plan, mark.versions, at));
}

/** The versions that a plan writes from number `firstVersion` on. */
export function versionsSince(versionPlan: VersionPlan, firstVersion: number, at: NextPosition): RowVersion[] {
  const plannedVersions: RowVersion[] = [];
  for (let i = firstVersion; i < versionPlan.length; i++) {
    const systemFrom = at.time + BigInt(i);
    plannedVersions.push({
      from: versionPlan.from[i] ?? systemFrom,
      to: versionPlan.to[i] ?? FOREVER,
      op: versionPlan.ops[i]!,
      cells: versionPlan.cells[i]!,
      systemFrom,
    });
  }
  return plannedVersions;
}

export function openVersions(table: StoredVersions, newest: number): OpenVersion[] {
  return table.openVersions(newest).map((openRow) => ({
    position: table.positionOf(openRow),
    from: table.validFromOf(openRow),
    to: table.validToOf(openRow),
    cells: openRow,
  }));
}

/** The newest version of a key that a write stated. Remainders follow it: an update leaves them over, and they say nothing new. */
export function newestStated(table: StoredVersions, newest: number): number {
  let statedVersion = newest;
  while (table.opOf(statedVersion) === rowOp.remainder) {
    const versionBefore = table.versionAt(table.positionOf(statedVersion) - 1);
    if (versionBefore < 0) break;
    statedVersion = versionBefore;
  }
  return statedVersion;
}

function storedGroupKey(table: StoredVersions | undefined, path: number, keys: CheckedBatch['keys'], row: number): GroupKey {
  const newestVersion = table && path >= 0 ? table.newest(path, keys.heap, keys.offsets[row]!, keys.offsets[row + 1]!) : NO_ROW;
  if (newestVersion === NO_ROW) return { open: [], newest: -1, stored: -1 };
  const storedPosition = table!.positionOf(newestStated(table!, newestVersion));
  return { open: openVersions(table!, newestVersion), newest: storedPosition, stored: storedPosition };
}

/** Rows of a patch, once they are whole: whether they have what their type requires, and may be written as they would be stored. */
class WholeRowCheck {
  readonly #request: RowByRow;
  readonly #requiredProperties: readonly string[];
  readonly #wholeRowTest: RowTest | null;

  constructor(request: RowByRow) {
    const { batch, context } = request;
    this.#request = request;
    const { primaryKey } = batch.definition;
    this.#requiredProperties = [
      ...batch.required,
      ...(primaryKey === null || batch.required.includes(primaryKey) ? [] : [primaryKey]),
    ];
    const wholeRowTest = context.rowCheck?.testFor(batch.definition) ?? null;
    assert(wholeRowTest !== 'none', 'a type of which nothing may be written was refused before');
    this.#wholeRowTest = wholeRowTest;
  }

  refusalOf(versionPlan: VersionPlan, planMark: PlanMark, row: number): Refusal | null {
    const { put, batch, cells, context, rows, at } = this.#request;
    if (put.patch === undefined) return null;
    for (let i = planMark.versions; i < versionPlan.length; i++) {
      if (versionPlan.ops[i] !== rowOp.put) continue;
      const missingProperty = this.#requiredProperties.find((name) => cells.cell(versionPlan.cells[i]!, name) === null);
      if (missingProperty !== undefined)
        return {
          code: 'REL_REQUIRED',
          detail: `property ${JSON.stringify(missingProperty)} is required`,
          column: missingProperty,
        };
      if (this.#wholeRowTest === null) continue;
      const wholeVersion = {
        definition: batch.definition,
        length: 1,
        cells: cells.columns([versionPlan.cells[i]!]),
        keys: rowKeyAt(batch.keys, row),
        validFrom: boundVector([versionPlan.from[i]!]),
        validTo: boundVector([versionPlan.to[i]!]),
      };
      const writeContext = { path: context.entry.path, rows, at: { ...at, time: at.time + BigInt(i) } };
      if (testRows(this.#wholeRowTest, wholeVersion, writeContext)[0] === 0) return { code: 'REL_ACL', detail: notPermitted };
    }
    return null;
  }
}

function rowKeyAt(keys: CheckedBatch['keys'], row: number): CheckedBatch['keys'] {
  const rowKey = gather(keys, Int32Array.of(row));
  assert(rowKey.kind === 'text', 'a row that was not refused has a key');
  return rowKey;
}

function withRefusedOutcomes(outcomes: readonly RowOutcome[], { batch, rejections }: RowByRow): RowOutcome[] {
  const refusedOutcomes: RowOutcome[] = [];
  for (let rowIndex = 0; rowIndex < batch.length; rowIndex++) {
    if (!rejections.has(rowIndex)) continue;
    refusedOutcomes.push({
      index: rowIndex,
      key: cellAt(batch.keys, 'string', rowIndex) as string | null,
      became: 'refused',
      systemFrom: 0n,
    });
  }
  return [...outcomes, ...refusedOutcomes].sort((a, b) => a.index - b.index);
}
