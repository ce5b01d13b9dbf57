/**
 * Stored versions that were made from others, on any branch: found by the columns in which rows name their sources, and by a
 * joint subject. Step by step, so versions made from derived versions are found, too.
 */
import type { ErasedVersions } from '../../../log/entries/entry.ts';
import { ownSubject, subjectsIn } from '../../../log/keys/joint-subject.ts';
import { type ColumnType, compareText } from '../../../log/values/value.ts';
import { cellAt } from '../../../log/values/vector-builder.ts';
import { versionName } from '../edges/link-rows.ts';
import type { Timeline } from '../../../log/values/timeline.ts';
import { namesIn, namingColumns } from '../../catalog/naming-columns.ts';
import type { BranchLayer } from '../tables/branch-layer.ts';
import type { OrganisationCodes } from '../cells/path-codes.ts';
import { NO_ROW, type Segment } from '../segments/segment.ts';
import { sameBytes } from '../segments/segment-state.ts';
import type { RemovedSource } from '../checks/removal-entry.ts';
import type { Table } from '../tables/table.ts';

/** Whether rows of a type may be made from others. */
export const isDerivable = (type: string, columns: { has(name: string): boolean }): boolean =>
  columns.has('tool_call_id') || namingColumns(type, columns).length > 0;

const DERIVED_ROWS_A_STEP = 2_048;
/** A shorter key may be that of rows of other types, too: where it is, a loose column names those, and what `derived_from` names is meant. */
const KEY_LENGTH_MIN = 4;
const looseNamingColumns: ReadonlySet<string> = new Set(['source_id', 'supersedes']);

export interface DerivedRequest {
  readonly tenant: string | null;
  readonly subject: string;
  readonly layers: () => readonly BranchLayer[];
  readonly scopes: OrganisationCodes;
  readonly timeline: Pick<Timeline, 'timeOf'>;
}

interface NamingColumn {
  readonly name: string;
  readonly type: ColumnType;
}

interface DerivedPositions {
  readonly positions: Set<number>;
  /** Codes. */
  readonly paths: Set<number>;
  /** Organisation path and key: every version of such a row is meant. */
  readonly rows: Set<string>;
}

/** A row that was removed for good, as its removal tells of it. */
export interface RemovedRow extends RemovedSource {
  readonly type: string;
  readonly path: string | null;
  /** Where its removal stands. */
  readonly position: number;
}

export class DerivedVersions {
  readonly #request: DerivedRequest;
  /** Keys, and the position below which a version that names one means this row by it. */
  readonly #derivedIds = new Map<string, number>();
  readonly #removedKeys = new Set<string>();
  /** Keys among them that a loose column does not name. */
  readonly #shortKeys = new Set<string>();
  readonly #derivedSubjects = new Set<string>();
  readonly #derivedByTable = new Map<string, DerivedPositions>();
  readonly #rootPositionsByType = new Map<string, Set<number>>();
  /** Removed rows that nothing has led to so far. */
  #unrelatedRemovedRows: RemovedRow[] = [];

  constructor(request: DerivedRequest) {
    this.#request = request;
  }

  /** Without those that they were made from. */
  get versions(): readonly ErasedVersions[] {
    const { scopes } = this.#request;
    return [...this.#derivedByTable]
      .filter(([, { positions }]) => positions.size > 0)
      .sort(([a], [b]) => compareText(a, b))
      .map(([type, { positions, paths }]) => ({
        type,
        paths: [...paths].map((pathCode) => scopes.path(pathCode)).sort((a, b) => compareText(a ?? '', b ?? '')),
        positions: [...positions].sort((a, b) => a - b),
      }));
  }

  /** Subjects besides the erased one whose keys may cover them: of several together, and of one of them alone. */
  get subjects(): readonly string[] {
    return [...this.#derivedSubjects].sort();
  }

  /** Keys of rows that were removed for good, and led on. */
  get removedKeys(): ReadonlySet<string> {
    return this.#removedKeys;
  }

  /**
   * Finds versions made from `rootVersions` and from rows that were `removed`, at positions from `from` on, beside those already known.
   * A step is so many rows of a segment.
   */
  *find(rootVersions: readonly ErasedVersions[], removed: Iterable<RemovedRow>, from = 0): Generator<undefined, void> {
    const { tenant, layers } = this.#request;
    for (const removedRow of removed) this.#unrelatedRemovedRows.push(removedRow);
    for (const { type, positions } of rootVersions)
      this.#rootPositionsByType.set(type, new Set([...(this.#rootPositionsByType.get(type) ?? []), ...positions]));
    for (const { type, positions } of rootVersions) {
      for (const branchLayer of layers()) {
        const table = branchLayer.table(tenant, type);
        if (table) yield* this.#addRootKeys(table, positions);
      }
    }
    for (let sizeBefore = -1; sizeBefore !== this.#derivedCount; ) {
      sizeBefore = this.#derivedCount;
      yield* this.#followRemoved();
      for (const branchLayer of layers()) {
        for (const table of branchLayer.tablesOf(tenant))
          yield* this.#findDerivedIn(table, branchLayer.names.subjectOf(tenant, table.type), from);
      }
    }
  }

  *#followRemoved(): Generator<undefined, void> {
    const { subject: erased } = this.#request;
    for (let waitingRows = Infinity; this.#unrelatedRemovedRows.length < waitingRows; ) {
      waitingRows = this.#unrelatedRemovedRows.length;
      const unrelatedRows: RemovedRow[] = [];
      for (const [i, removedRow] of this.#unrelatedRemovedRows.entries()) {
        if (i % DERIVED_ROWS_A_STEP === DERIVED_ROWS_A_STEP - 1) yield;
        const { type, path, key, subject, names } = removedRow;
        const isOfErasedSubject = subject !== null && (subject === erased || this.#isJointSubject(subject));
        if (!isOfErasedSubject && !names.some((name) => this.#derivedIds.has(name))) {
          unrelatedRows.push(removedRow);
          continue;
        }
        this.#removedKeys.add(key);
        const isShortKey = names.length === 0 && key.length < KEY_LENGTH_MIN && !this.#derivedIds.has(key);
        if (isShortKey && (yield* this.#isKeyOfOthers(key, type))) this.#shortKeys.add(key);
        // Another row may have come under its key.
        this.#addDerivedId(key, (yield* this.#isRowThereAgain(removedRow)) ? removedRow.position : Infinity);
        if (subject !== erased) this.#derivedSubjects.add(subject ?? ownSubject(type, path, key));
      }
      this.#unrelatedRemovedRows = unrelatedRows;
    }
  }

  *#findDerivedIn(table: Table, ownSubjectColumn: string | null, from: number): Generator<undefined, void> {
    const columnTypes = table.columnTypes();
    const namingTypes = namingColumns(table.type, columnTypes).map((name) => ({ name, type: columnTypes.get(name)!.type }));
    if (namingTypes.length === 0) return;
    const { type } = table;
    const derivedOfType: DerivedPositions = this.#derivedByTable.get(type) ?? {
      positions: new Set(),
      paths: new Set(),
      rows: new Set(),
    };
    this.#derivedByTable.set(type, derivedOfType);
    const subjectColumn =
      ownSubjectColumn !== null && columnTypes.get(ownSubjectColumn)?.type === 'string' ? ownSubjectColumn : null;
    for (const segment of table.segments) {
      for (let row = segment.rowAtOrAfter(from); row < segment.length; row += DERIVED_ROWS_A_STEP) {
        const stepEnd = Math.min(segment.length, row + DERIVED_ROWS_A_STEP);
        this.#lookForDerived(segment, { row, end: stepEnd }, { type, columns: namingTypes, own: subjectColumn }, derivedOfType);
        yield;
      }
    }
  }

  #lookForDerived(
    segment: Segment,
    { row: first, end }: { readonly row: number; readonly end: number },
    { type, columns, own }: { readonly type: string; readonly columns: readonly NamingColumn[]; readonly own: string | null },
    derivedOfType: DerivedPositions,
  ): void {
    const rootedPositions = this.#rootPositionsByType.get(type);
    const segmentKeys = segment.cells.glance(null, sameBytes());
    if (!segmentKeys) return;
    const namingVectors = columns.flatMap((namingColumn) => {
      const namingVector = segment.cells.glance(namingColumn.name, sameBytes());
      return namingVector ? [{ ...namingColumn, vector: namingVector }] : [];
    });
    const subjectCells = own === null ? undefined : segment.cells.glance(own, sameBytes());
    for (let row = first; row < end; row++) {
      if (segment.isRemoved(row)) continue;
      const position = segment.positionOf(row);
      if (derivedOfType.positions.has(position) || rootedPositions?.has(position) === true) continue;
      const pathCode = segment.paths.codeAt(row);
      const rowSubject = subjectCells ? cellAt(subjectCells, 'string', row) : null;
      const jointSubject = typeof rowSubject === 'string' && this.#isJointSubject(rowSubject) ? rowSubject : null;
      const isRowDerived =
        jointSubject !== null ||
        namingVectors.some((namingCell) =>
          this.#namesDerivedId(namingCell, namesIn(cellAt(namingCell.vector, namingCell.type, row)), position),
        );
      if (!isRowDerived && derivedOfType.rows.size === 0) continue;
      const derivedKey = String(cellAt(segmentKeys, 'string', row));
      const derivedRowName = `${pathCode} ${derivedKey}`;
      if (!isRowDerived && !derivedOfType.rows.has(derivedRowName)) continue;
      derivedOfType.positions.add(position);
      derivedOfType.paths.add(pathCode);
      derivedOfType.rows.add(derivedRowName);
      this.#addDerivedId(derivedKey);
      // Edges of a row name the version that they are of.
      this.#addDerivedId(versionName(this.#request.timeline.timeOf(position)));
      if (jointSubject !== null) this.#derivedSubjects.add(jointSubject);
      this.#derivedSubjects.add(ownSubject(type, this.#request.scopes.path(pathCode), derivedKey));
    }
  }

  *#addRootKeys(table: Table, positions: readonly number[]): Generator<undefined, void> {
    const isDerivableType = isDerivable(table.type, table.columnTypes());
    const keyBuffers = sameBytes();
    for (const [i, position] of positions.entries()) {
      if (i % DERIVED_ROWS_A_STEP === DERIVED_ROWS_A_STEP - 1) yield;
      const rootRow = table.versionAt(position);
      if (rootRow === NO_ROW) continue;
      const rootKey = cellAt(table.segmentOf(rootRow).cells.glance(null, keyBuffers)!, 'string', rootRow & 0xffff);
      if (typeof rootKey !== 'string' || rootKey === '') continue;
      if (
        !isDerivableType &&
        rootKey.length < KEY_LENGTH_MIN &&
        !this.#derivedIds.has(rootKey) &&
        (yield* this.#isKeyOfOthers(rootKey, table.type))
      )
        this.#shortKeys.add(rootKey);
      this.#addDerivedId(rootKey);
    }
  }

  /** Whether it is the key of a row of another type, too, that goes on to be there. */
  *#isKeyOfOthers(shortKey: string, type: string): Generator<undefined, boolean> {
    const { tenant, layers } = this.#request;
    for (const layer of layers()) {
      for (const otherTable of layer.tablesOf(tenant)) {
        if (otherTable.type === type) continue;
        while (otherTable.enterSome()) yield;
        for (const path of otherTable.paths()) {
          const newestOfKey = otherTable.newestOf(path, shortKey);
          if (
            newestOfKey !== NO_ROW &&
            this.#rootPositionsByType.get(otherTable.type)?.has(otherTable.positionOf(newestOfKey)) !== true
          )
            return true;
        }
      }
      yield;
    }
    return false;
  }

  get #derivedCount(): number {
    let derivedCount = 0;
    for (const { positions } of this.#derivedByTable.values()) derivedCount += positions.size;
    return derivedCount;
  }

  #addDerivedId(derivedKey: string, belowPosition = Infinity): void {
    this.#derivedIds.set(derivedKey, Math.max(belowPosition, this.#derivedIds.get(derivedKey) ?? 0));
  }

  /** Whether a row of this type, path and key is there. */
  *#isRowThereAgain({ type, path, key }: RemovedRow): Generator<undefined, boolean> {
    const { tenant, layers, scopes } = this.#request;
    const pathCode = scopes.codeOf(path);
    for (const layer of layers()) {
      const standingTable = layer.table(tenant, type);
      while (standingTable?.enterSome() === true) yield;
      if (pathCode >= 0 && standingTable !== undefined && standingTable.newestOf(pathCode, key) !== NO_ROW) return true;
    }
    return false;
  }

  #namesDerivedId({ name: column }: NamingColumn, sourceNames: readonly string[], position: number): boolean {
    const isLooseColumn = looseNamingColumns.has(column);
    return sourceNames.some(
      (sourceName) => position < (this.#derivedIds.get(sourceName) ?? 0) && !(isLooseColumn && this.#shortKeys.has(sourceName)),
    );
  }

  #isJointSubject(subject: string): boolean {
    const { subject: erased } = this.#request;
    return subject !== erased && subjectsIn(subject).includes(erased);
  }
}
