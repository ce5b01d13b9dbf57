/**
 * Seals rows without a subject cell that were made from rows with a subject: each under a key of its own, which an erasure of any
 * of those subjects destroys. Invariant: a version that ends, patches or replaces one sealed so is sealed so too, whatever its
 * own cells say. Pure.
 */
import { rowOp, type RowsBody, type TypeDefinition } from '../../../log/entries/entry.ts';
import { ownSubject } from '../../../log/keys/joint-subject.ts';
import { tenantOf } from '../../../log/values/value.ts';
import { cellAt, VectorBuilder } from '../../../log/values/vector-builder.ts';
import type { CatalogReader } from '../../access-paths.ts';
import type { DecideContext, RowSeals } from '../../decision.ts';
import { namesIn, namingColumns } from '../../catalog/naming-columns.ts';
import { subjectProperty } from '../../catalog/subject-property.ts';
import type { StoredVersions } from '../cells/stored-versions.ts';
import { subjectsOf } from './row-subjects.ts';
import { NO_ROW } from '../segments/segment.ts';
import type { TenantRows } from '../tables/tenant-rows.ts';
import type { SourceSealing } from './removal-entry.ts';
import type { Written } from './version-columns.ts';

/** Keys looked up for one command: a row that names more is sealed without looking. */
const sourceLookUpsMax = 16_384;
/** Versions of a key that are looked at, the newest first. */
const sourceVersionsMax = 64;

/** Rows that may have a subject, and rows that are made from others. */
interface SourceTable {
  readonly versions: StoredVersions;
  readonly property: string | null;
  readonly naming: readonly string[];
}

export class SourceSeals implements RowSeals {
  readonly #catalog: CatalogReader;
  readonly #tenantRows: TenantRows;
  /** Keys of rows with a subject, from steps of this command that are not stored yet. */
  readonly #subjectKeysWritten = new Set<string>();
  readonly #knownSomebodys = new Map<string, boolean>();
  #cachedSourceTables: readonly SourceTable[] | null = null;
  #lookUpsLeft = sourceLookUpsMax;

  constructor(catalog: CatalogReader, tenantRows: TenantRows) {
    this.#catalog = catalog;
    this.#tenantRows = tenantRows;
  }

  subjectsOf(
    type: TypeDefinition,
    { ops, keys, closes, closeOffsets, cells }: Written,
    path: string | null,
    stated?: string,
  ): Pick<RowsBody, 'subjects'> {
    const subjectColumn = subjectProperty(type);
    const statedSubjects = subjectsOf(cells, subjectColumn, stated);
    if (subjectColumn === null && stated !== undefined) return statedSubjects;
    const sourceTable = this.#tenantRows.versions(type.name);
    const storedColumns = closes.length > 0 ? sourceTable?.columnTypes() : undefined;
    const isColumnThere = (name: string): boolean =>
      cells.columns.some((each) => each.name === name) || storedColumns?.has(name) === true;
    const namingColumnList = namingColumns(type.name, { has: isColumnThere });
    if (namingColumnList.length === 0) return statedSubjects;
    if (statedSubjects.subjects === undefined && this.#subjectKeysWritten.size === 0 && !this.#areAnySubjects)
      return statedSubjects;
    const { length } = cells;
    const { vector } = keys.columns[0]!;
    const rowKeyOf = (row: number): string => cellAt(vector, 'string', row) as string;
    const hasStatedSubject = (row: number): boolean =>
      statedSubjects.subjects !== undefined && cellAt(statedSubjects.subjects, 'string', row) !== null;
    const sentNamingColumns = cells.columns.filter(({ name: sourceName }) => namingColumnList.includes(sourceName));
    const sealed = new Uint8Array(length);
    const rowsByNamedKey = new Map<string, number[]>();
    const sealedRows: number[] = [];
    const sealRow = (row: number): void => {
      if (sealed[row] === 1) return;
      sealed[row] = 1;
      sealedRows.push(row);
    };
    for (let row = 0; row < length; row++) {
      if (hasStatedSubject(row)) {
        sealRow(row);
        continue;
      }
      const sourceNames = new Set(sentNamingColumns.flatMap((column) => namesIn(cellAt(column.vector, column.type, row))));
      const closedPositions = closes.subarray(closeOffsets[row], closeOffsets[row + 1]);
      for (const position of closedPositions)
        for (const sourceName of this.#namesBefore(sourceTable, position, namingColumnList)) sourceNames.add(sourceName);
      if ([...sourceNames].some((name) => this.#isSomebodysSource(name))) {
        sealRow(row);
        continue;
      }
      if (length === 1) continue;
      // Rows of one body may name each other, close each other, and be what is left of a version that another of them closes.
      if (closedPositions.length > 0 || ops[row] !== rowOp.put) sourceNames.add(rowKeyOf(row));
      for (const name of sourceNames) waitForNamedKey(rowsByNamedKey, name, row);
    }
    for (let row = sealedRows.pop(); row !== undefined; row = sealedRows.pop()) {
      const sealedKey = rowKeyOf(row);
      const namingRows = rowsByNamedKey.get(sealedKey) ?? [];
      rowsByNamedKey.delete(sealedKey);
      for (const namingRow of namingRows) sealRow(namingRow);
    }
    if (!sealed.includes(1)) return statedSubjects;
    const subjectBuilder = new VectorBuilder('string', length);
    for (let row = 0; row < length; row++) {
      if (hasStatedSubject(row)) subjectBuilder.append(cellAt(statedSubjects.subjects!, 'string', row));
      else subjectBuilder.append(sealed[row] === 1 ? ownSubject(type.name, path, rowKeyOf(row)) : null);
    }
    return { subjects: subjectBuilder.build() };
  }

  /** Whether one of these names a row that has a subject, or was made from one. */
  leadsToSomebody(names: readonly string[]): boolean {
    return names.some((name) => this.#isSomebodysSource(name));
  }

  /** Rows of a step that are not stored yet: rows that name them derive from them. */
  note({ keys, subjects, ops }: RowsBody): void {
    if (subjects === undefined) return;
    this.#knownSomebodys.clear();
    for (let row = 0; row < ops.length; row++)
      if (cellAt(subjects, 'string', row) !== null)
        this.#subjectKeysWritten.add(String(cellAt(keys.columns[0]!.vector, 'string', row)));
  }

  /** Some row may be. */
  get #areAnySubjects(): boolean {
    return this.#sourceTables.some(
      ({ property: subjectColumn, versions }) => subjectColumn !== null && versions.columnTypes().has(subjectColumn),
    );
  }

  get #sourceTables(): readonly SourceTable[] {
    return (this.#cachedSourceTables ??= this.#catalog.types().flatMap((type): readonly SourceTable[] => {
      const subjectColumn = subjectProperty(type);
      const sourceVersions = this.#tenantRows.versions(type.name);
      if (sourceVersions === undefined) return [];
      const storedColumns = sourceVersions.columnTypes();
      const namingColumnList = namingColumns(type.name, storedColumns);
      return subjectColumn === null && namingColumnList.length === 0
        ? []
        : [{ versions: sourceVersions, property: subjectColumn, naming: namingColumnList }];
    }));
  }

  /** Rows that a stored version of a key, and those before it, were made from. */
  *#namesBefore(table: StoredVersions | undefined, position: number, naming: readonly string[]): Iterable<string> {
    const version = table?.versionAt(position) ?? NO_ROW;
    if (version === NO_ROW) return;
    for (const closedVersion of table!.allVersions(version).slice(0, sourceVersionsMax))
      for (const column of naming) yield* namesIn(table!.cellOf(closedVersion, column));
  }

  /** Whether a row of this key has a subject, or was made from one that has. */
  #isSomebodysSource(sourceId: string): boolean {
    const knownSomebodys = this.#knownSomebodys.get(sourceId);
    if (knownSomebodys !== undefined) return knownSomebodys;
    const seenIds = new Set([sourceId]);
    const isSomebodys = this.#leadsToSomebody(seenIds);
    if (isSomebodys) this.#knownSomebodys.set(sourceId, true);
    else for (const seenId of seenIds) this.#knownSomebodys.set(seenId, false);
    return isSomebodys;
  }

  /** Goes on from the ids that are seen, and adds what they name. */
  #leadsToSomebody(seenIds: Set<string>): boolean {
    for (const sourceId of seenIds) {
      const knownSomebodys = this.#knownSomebodys.get(sourceId);
      if (knownSomebodys === true || this.#subjectKeysWritten.has(sourceId)) return true;
      if (knownSomebodys === false) continue;
      for (const { versions, property, naming } of this.#sourceTables) {
        for (const path of versions.paths()) {
          if (--this.#lookUpsLeft < 0) return true;
          const newestSource = versions.newestOf(path, sourceId);
          if (newestSource === NO_ROW) continue;
          for (const sourceVersion of versions.allVersions(newestSource).slice(0, sourceVersionsMax)) {
            if (property !== null && versions.cellOf(sourceVersion, property) !== null) return true;
            for (const column of naming) for (const name of namesIn(versions.cellOf(sourceVersion, column))) seenIds.add(name);
          }
        }
      }
    }
    return false;
  }
}

/** The sealing of the records that a removal for good leaves; null without erasures. */
export function sourceSealing(
  { catalog, rows, path, removed }: RemovalContext,
  { textSeals }: Pick<DecideContext, 'textSeals'>,
): SourceSealing | null {
  if (textSeals === undefined) return null;
  const sourceSeals = new SourceSeals(catalog, rows);
  // A name may be that of a row that was removed before: which ones those were is sealed.
  const hasSources = removed.hasSources(tenantOf(path));
  return { seals: textSeals, leadsToSomebody: (names) => hasSources || sourceSeals.leadsToSomebody(names) };
}

export interface RemovalContext {
  readonly catalog: CatalogReader;
  readonly rows: TenantRows;
  readonly path: string | null;
  readonly removed: { hasSources(tenant: string | null): boolean };
}

/** Types whose keys are looked for where rows of these types are written. */
export function sourceTypes(types: readonly string[], catalog: CatalogReader): readonly string[] {
  const namingColumnCount = ({ name, properties }: TypeDefinition): number =>
    namingColumns(name, { has: (column) => Object.hasOwn(properties, column) }).length;
  const hasSources = types.some((name) => {
    const type = catalog.type(name);
    return type !== undefined && namingColumnCount(type) > 0;
  });
  if (!hasSources) return [];
  return catalog.types().flatMap((type) => (subjectProperty(type) !== null || namingColumnCount(type) > 0 ? type.name : []));
}

function waitForNamedKey(rowsByNamedKey: Map<string, number[]>, name: string, row: number): void {
  const waitingRows = rowsByNamedKey.get(name);
  if (waitingRows === undefined) rowsByNamedKey.set(name, [row]);
  else waitingRows.push(row);
}
