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
interface Key {
  open: readonly OpenVersion[];
  /** Position of its newest version; -1: it has none. */
  newest: number;
  /** The same before the batch. */
  readonly stored: number;
}

/** So many rows a step. */
export function* putByRow(asked: RowByRow): Generator<undefined, PutByRow> {
  const { put, batch, cells, rows, context, at, rejections } = asked;
  const { length, keys, validFrom, validTo } = batch;
  const table = rows.versions(batch.definition.name);
  const path = rows.scopes.codeOf(context.entry.path);
  const plan = new VersionPlan(at.position, at.time);
  const groups = new BatchKeys(keys, length, path);
  const known: Key[] = [];
  const origins: number[] = [];
  const outcomes: RowOutcome[] = [];
  const whole = new WholeRows(asked);
  const keyOf = (row: number): string => cellAt(keys, 'string', row) as string;
  for (let row = 0; row < length; row++) {
    if (row > 0 && row % rowsPerStep === 0) yield;
    if (rejections.has(row)) continue;
    const from = boundAt(validFrom, row);
    const to = boundAt(validTo, row);
    const now = plan.nextTime;
    const [start, end] = [from ?? now, to ?? FOREVER];
    if (start >= end) {
      rejections.add(row, 'REL_INVALID', 'valid_to must be after valid_from');
      continue;
    }
    const first = groups.groups;
    const group = groups.groupOf(row);
    if (group === first) known.push(storedKey(table, path, keys, row));
    const key = known[group]!;
    const affectedVersions = key.open.filter((version) => version.from < version.to && version.from < end && start < version.to);
    const newest = typeof put.when === 'object' && put.when.exceptOwn ? key.stored : key.newest;
    const conflict = put.when === undefined ? null : conflictOf(put.when, affectedVersions.length > 0, newest, rows, at);
    if (conflict !== null && put.keepsPresent) {
      if (put.listsRows) outcomes.push({ index: row, key: keyOf(row), became: 'kept', systemFrom: 0n });
      continue;
    }
    if (conflict !== null) {
      rejections.add(row, 'REL_CONFLICT', conflict);
      continue;
    }
    const mark = plan.mark;
    const merged = cells.mergedRows;
    const open = write(row, from, to, affectedVersions, key.open);
    const why = whole.refusalOf(plan, mark, row) ?? edgeRefusal(asked, keyOf(row), key.open, plan, mark);
    if (why !== null) {
      plan.goBack(mark);
      cells.forgetMerged(merged);
      rejections.add(row, why.code, why.detail, why.column);
      continue;
    }
    key.open = open;
    key.newest = at.position + plan.newestStated;
    while (origins.length < plan.length) origins.push(row);
    if (put.listsRows) {
      const became = affectedVersions.length > 0 ? 'updated' : 'created';
      outcomes.push({ index: row, key: keyOf(row), became, systemFrom: at.time + BigInt(mark.versions) });
    }
  }
  yield;
  const writtenRows = Int32Array.from(origins);
  const asSent = writtenRows.length === length && writtenRows.every((row, i) => row === i);
  const columns = yield* cells.columnSteps(plan.cells);
  const written = bodyOfPlan(plan, asSent ? keys : gather(keys, writtenRows), columns);
  yield;
  return { written, origins: writtenRows, outcomes: put.listsRows ? withRefused(outcomes, asked) : null };

  function write(
    row: number,
    from: bigint | null,
    to: bigint | null,
    affectedVersions: readonly OpenVersion[],
    open: readonly OpenVersion[],
  ): OpenVersion[] {
    if (put.patch !== undefined && affectedVersions.length > 0) {
      const over = affectedVersions.toSorted((a, b) => (a.from < b.from ? -1 : 1));
      const merged = over.map((version) => cells.merge(row, version.cells));
      return plan.patch(merged, over, from, to, open);
    }
    const own = put.patch === undefined ? row : cells.merge(row, null);
    if (put.replace) return plan.replace(own, from, to, open);
    return from === null && to === null ? plan.put(own, open) : plan.putWithin(own, from, to, open);
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

/** The versions that a plan writes from number `first` on. */
export function versionsSince(plan: VersionPlan, first: number, at: NextPosition): RowVersion[] {
  const versions: RowVersion[] = [];
  for (let i = first; i < plan.length; i++) {
    const systemFrom = at.time + BigInt(i);
    versions.push({
      from: plan.from[i] ?? systemFrom,
      to: plan.to[i] ?? FOREVER,
      op: plan.ops[i]!,
      cells: plan.cells[i]!,
      systemFrom,
    });
  }
  return versions;
}

export function openVersions(table: StoredVersions, newest: number): OpenVersion[] {
  return table.openVersions(newest).map((row) => ({
    position: table.positionOf(row),
    from: table.validFromOf(row),
    to: table.validToOf(row),
    cells: row,
  }));
}

/** The newest version of a key that a write stated. Remainders follow it: an update leaves them over, and they say nothing new. */
export function newestStated(table: StoredVersions, newest: number): number {
  let version = newest;
  while (table.opOf(version) === rowOp.remainder) {
    const before = table.versionAt(table.positionOf(version) - 1);
    if (before < 0) break;
    version = before;
  }
  return version;
}

function storedKey(table: StoredVersions | undefined, path: number, keys: CheckedBatch['keys'], row: number): Key {
  const newest = table && path >= 0 ? table.newest(path, keys.heap, keys.offsets[row]!, keys.offsets[row + 1]!) : NO_ROW;
  if (newest === NO_ROW) return { open: [], newest: -1, stored: -1 };
  const stored = table!.positionOf(newestStated(table!, newest));
  return { open: openVersions(table!, newest), newest: stored, stored };
}

/** Rows of a patch, once they are whole: whether they have what their type requires, and may be written as they would be stored. */
class WholeRows {
  readonly #asked: RowByRow;
  readonly #required: readonly string[];
  readonly #test: RowTest | null;

  constructor(asked: RowByRow) {
    const { batch, context } = asked;
    this.#asked = asked;
    const { primaryKey } = batch.definition;
    this.#required = [...batch.required, ...(primaryKey === null || batch.required.includes(primaryKey) ? [] : [primaryKey])];
    const test = context.rowCheck?.testFor(batch.definition) ?? null;
    assert(test !== 'none', 'a type of which nothing may be written was refused before');
    this.#test = test;
  }

  refusalOf(plan: VersionPlan, mark: PlanMark, row: number): Refusal | null {
    const { put, batch, cells, context, rows, at } = this.#asked;
    if (put.patch === undefined) return null;
    for (let i = mark.versions; i < plan.length; i++) {
      if (plan.ops[i] !== rowOp.put) continue;
      const missing = this.#required.find((name) => cells.cell(plan.cells[i]!, name) === null);
      if (missing !== undefined)
        return { code: 'REL_REQUIRED', detail: `property ${JSON.stringify(missing)} is required`, column: missing };
      if (this.#test === null) continue;
      const version = {
        definition: batch.definition,
        length: 1,
        cells: cells.columns([plan.cells[i]!]),
        keys: keyAt(batch.keys, row),
        validFrom: boundVector([plan.from[i]!]),
        validTo: boundVector([plan.to[i]!]),
      };
      const writeContext = { path: context.entry.path, rows, at: { ...at, time: at.time + BigInt(i) } };
      if (testRows(this.#test, version, writeContext)[0] === 0) return { code: 'REL_ACL', detail: notPermitted };
    }
    return null;
  }
}

function keyAt(keys: CheckedBatch['keys'], row: number): CheckedBatch['keys'] {
  const key = gather(keys, Int32Array.of(row));
  assert(key.kind === 'text', 'a row that was not refused has a key');
  return key;
}

function withRefused(outcomes: readonly RowOutcome[], { batch, rejections }: RowByRow): RowOutcome[] {
  const refused: RowOutcome[] = [];
  for (let index = 0; index < batch.length; index++) {
    if (!rejections.has(index)) continue;
    refused.push({ index, key: cellAt(batch.keys, 'string', index) as string | null, became: 'refused', systemFrom: 0n });
  }
  return [...outcomes, ...refused].sort((a, b) => a.index - b.index);
}
