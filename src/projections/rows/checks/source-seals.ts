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
const lookUpsMax = 16_384;
/** Versions of a key that are looked at, the newest first. */
const versionsMax = 64;

/** Rows that may have a subject, and rows that are made from others. */
interface SourceTable {
  readonly versions: StoredVersions;
  readonly property: string | null;
  readonly naming: readonly string[];
}

export class SourceSeals implements RowSeals {
  readonly #catalog: CatalogReader;
  readonly #rows: TenantRows;
  /** Keys of rows with a subject, from steps of this command that are not stored yet. */
  readonly #written = new Set<string>();
  readonly #known = new Map<string, boolean>();
  #tables: readonly SourceTable[] | null = null;
  #left = lookUpsMax;

  constructor(catalog: CatalogReader, rows: TenantRows) {
    this.#catalog = catalog;
    this.#rows = rows;
  }

  subjectsOf(
    type: TypeDefinition,
    { ops, keys, closes, closeOffsets, cells }: Written,
    path: string | null,
    stated?: string,
  ): Pick<RowsBody, 'subjects'> {
    const property = subjectProperty(type);
    const statedSubjects = subjectsOf(cells, property, stated);
    if (property === null && stated !== undefined) return statedSubjects;
    const table = this.#rows.versions(type.name);
    const stored = closes.length > 0 ? table?.columnTypes() : undefined;
    const isThere = (name: string): boolean => cells.columns.some((each) => each.name === name) || stored?.has(name) === true;
    const naming = namingColumns(type.name, { has: isThere });
    if (naming.length === 0) return statedSubjects;
    if (statedSubjects.subjects === undefined && this.#written.size === 0 && !this.#isAnybodys) return statedSubjects;
    const { length } = cells;
    const { vector } = keys.columns[0]!;
    const keyOf = (row: number): string => cellAt(vector, 'string', row) as string;
    const isTold = (row: number): boolean =>
      statedSubjects.subjects !== undefined && cellAt(statedSubjects.subjects, 'string', row) !== null;
    const own = cells.columns.filter(({ name }) => naming.includes(name));
    const sealed = new Uint8Array(length);
    const waiting = new Map<string, number[]>();
    const sealedRows: number[] = [];
    const seal = (row: number): void => {
      if (sealed[row] === 1) return;
      sealed[row] = 1;
      sealedRows.push(row);
    };
    for (let row = 0; row < length; row++) {
      if (isTold(row)) {
        seal(row);
        continue;
      }
      const names = new Set(own.flatMap((column) => namesIn(cellAt(column.vector, column.type, row))));
      const closed = closes.subarray(closeOffsets[row], closeOffsets[row + 1]);
      for (const position of closed) for (const name of this.#namesBefore(table, position, naming)) names.add(name);
      if ([...names].some((name) => this.#isSomebodys(name))) {
        seal(row);
        continue;
      }
      if (length === 1) continue;
      // Rows of one body may name each other, close each other, and be what is left of a version that another of them closes.
      if (closed.length > 0 || ops[row] !== rowOp.put) names.add(keyOf(row));
      for (const name of names) waitFor(waiting, name, row);
    }
    for (let row = sealedRows.pop(); row !== undefined; row = sealedRows.pop()) {
      const key = keyOf(row);
      const next = waiting.get(key) ?? [];
      waiting.delete(key);
      for (const each of next) seal(each);
    }
    if (!sealed.includes(1)) return statedSubjects;
    const builder = new VectorBuilder('string', length);
    for (let row = 0; row < length; row++) {
      if (isTold(row)) builder.append(cellAt(statedSubjects.subjects!, 'string', row));
      else builder.append(sealed[row] === 1 ? ownSubject(type.name, path, keyOf(row)) : null);
    }
    return { subjects: builder.build() };
  }

  /** Whether one of these names a row that has a subject, or was made from one. */
  leadsToSomebody(names: readonly string[]): boolean {
    return names.some((name) => this.#isSomebodys(name));
  }

  /** Rows of a step that are not stored yet: rows that name them derive from them. */
  note({ keys, subjects, ops }: RowsBody): void {
    if (subjects === undefined) return;
    this.#known.clear();
    for (let row = 0; row < ops.length; row++)
      if (cellAt(subjects, 'string', row) !== null) this.#written.add(String(cellAt(keys.columns[0]!.vector, 'string', row)));
  }

  /** Some row may be. */
  get #isAnybodys(): boolean {
    return this.#sources.some(({ property, versions }) => property !== null && versions.columnTypes().has(property));
  }

  get #sources(): readonly SourceTable[] {
    return (this.#tables ??= this.#catalog.types().flatMap((type): readonly SourceTable[] => {
      const property = subjectProperty(type);
      const versions = this.#rows.versions(type.name);
      if (versions === undefined) return [];
      const stored = versions.columnTypes();
      const naming = namingColumns(type.name, stored);
      return property === null && naming.length === 0 ? [] : [{ versions, property, naming }];
    }));
  }

  /** Rows that a stored version of a key, and those before it, were made from. */
  *#namesBefore(table: StoredVersions | undefined, position: number, naming: readonly string[]): Iterable<string> {
    const version = table?.versionAt(position) ?? NO_ROW;
    if (version === NO_ROW) return;
    for (const each of table!.allVersions(version).slice(0, versionsMax))
      for (const column of naming) yield* namesIn(table!.cellOf(each, column));
  }

  /** Whether a row of this key has a subject, or was made from one that has. */
  #isSomebodys(id: string): boolean {
    const known = this.#known.get(id);
    if (known !== undefined) return known;
    const seen = new Set([id]);
    const isSomebodys = this.#leadsToSomebody(seen);
    if (isSomebodys) this.#known.set(id, true);
    else for (const each of seen) this.#known.set(each, false);
    return isSomebodys;
  }

  /** Goes on from the ids that are seen, and adds what they name. */
  #leadsToSomebody(seen: Set<string>): boolean {
    for (const id of seen) {
      const known = this.#known.get(id);
      if (known === true || this.#written.has(id)) return true;
      if (known === false) continue;
      for (const { versions, property, naming } of this.#sources) {
        for (const path of versions.paths()) {
          if (--this.#left < 0) return true;
          const newest = versions.newestOf(path, id);
          if (newest === NO_ROW) continue;
          for (const version of versions.allVersions(newest).slice(0, versionsMax)) {
            if (property !== null && versions.cellOf(version, property) !== null) return true;
            for (const column of naming) for (const name of namesIn(versions.cellOf(version, column))) seen.add(name);
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
  const sources = new SourceSeals(catalog, rows);
  // A name may be that of a row that was removed before: which ones those were is sealed.
  const hasSources = removed.hasSources(tenantOf(path));
  return { seals: textSeals, leadsToSomebody: (names) => hasSources || sources.leadsToSomebody(names) };
}

export interface RemovalContext {
  readonly catalog: CatalogReader;
  readonly rows: TenantRows;
  readonly path: string | null;
  readonly removed: { hasSources(tenant: string | null): boolean };
}

/** Types whose keys are looked for where rows of these types are written. */
export function sourceTypes(types: readonly string[], catalog: CatalogReader): readonly string[] {
  const namingOf = ({ name, properties }: TypeDefinition): number =>
    namingColumns(name, { has: (column) => Object.hasOwn(properties, column) }).length;
  const isMade = types.some((name) => {
    const type = catalog.type(name);
    return type !== undefined && namingOf(type) > 0;
  });
  if (!isMade) return [];
  return catalog.types().flatMap((type) => (subjectProperty(type) !== null || namingOf(type) > 0 ? type.name : []));
}

function waitFor(waiting: Map<string, number[]>, name: string, row: number): void {
  const rows = waiting.get(name);
  if (rows === undefined) waiting.set(name, [row]);
  else rows.push(row);
}
