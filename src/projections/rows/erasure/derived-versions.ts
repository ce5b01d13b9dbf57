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

const ROWS_A_STEP = 2_048;
/** A shorter key may be that of rows of other types, too: where it is, a loose column names those, and what `derived_from` names is meant. */
const KEY_LENGTH_MIN = 4;
const loose: ReadonlySet<string> = new Set(['source_id', 'supersedes']);

export interface DerivedRequest {
  readonly tenant: string | null;
  readonly subject: string;
  readonly layers: () => readonly BranchLayer[];
  readonly scopes: OrganisationCodes;
  readonly timeline: Pick<Timeline, 'timeOf'>;
}

interface NamedType {
  readonly name: string;
  readonly type: ColumnType;
}

interface Found {
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
  readonly #asked: DerivedRequest;
  /** Keys, and the position below which a version that names one means this row by it. */
  readonly #ids = new Map<string, number>();
  readonly #removedKeys = new Set<string>();
  /** Keys among them that a loose column does not name. */
  readonly #short = new Set<string>();
  readonly #subjects = new Set<string>();
  readonly #derivedByTable = new Map<string, Found>();
  readonly #rooted = new Map<string, Set<number>>();
  /** Removed rows that nothing has led to so far. */
  #removed: RemovedRow[] = [];

  constructor(asked: DerivedRequest) {
    this.#asked = asked;
  }

  /** Without those that they were made from. */
  get versions(): readonly ErasedVersions[] {
    const { scopes } = this.#asked;
    return [...this.#derivedByTable]
      .filter(([, { positions }]) => positions.size > 0)
      .sort(([a], [b]) => compareText(a, b))
      .map(([type, { positions, paths }]) => ({
        type,
        paths: [...paths].map((code) => scopes.path(code)).sort((a, b) => compareText(a ?? '', b ?? '')),
        positions: [...positions].sort((a, b) => a - b),
      }));
  }

  /** Subjects besides the erased one whose keys may cover them: of several together, and of one of them alone. */
  get subjects(): readonly string[] {
    return [...this.#subjects].sort();
  }

  /** Keys of rows that were removed for good, and led on. */
  get removedKeys(): ReadonlySet<string> {
    return this.#removedKeys;
  }

  /**
   * Finds versions made from `roots` and from rows that were `removed`, at positions from `from` on, beside those already known.
   * A step is so many rows of a segment.
   */
  *find(roots: readonly ErasedVersions[], removed: Iterable<RemovedRow>, from = 0): Generator<undefined, void> {
    const { tenant, layers } = this.#asked;
    for (const row of removed) this.#removed.push(row);
    for (const { type, positions } of roots) this.#rooted.set(type, new Set([...(this.#rooted.get(type) ?? []), ...positions]));
    for (const { type, positions } of roots) {
      for (const layer of layers()) {
        const table = layer.table(tenant, type);
        if (table) yield* this.#addKeys(table, positions);
      }
    }
    for (let before = -1; before !== this.#size; ) {
      before = this.#size;
      yield* this.#followRemoved();
      for (const layer of layers()) {
        for (const table of layer.tablesOf(tenant)) yield* this.#findIn(table, layer.names.subjectOf(tenant, table.type), from);
      }
    }
  }

  *#followRemoved(): Generator<undefined, void> {
    const { subject: erased } = this.#asked;
    for (let waiting = Infinity; this.#removed.length < waiting; ) {
      waiting = this.#removed.length;
      const left: RemovedRow[] = [];
      for (const [i, row] of this.#removed.entries()) {
        if (i % ROWS_A_STEP === ROWS_A_STEP - 1) yield;
        const { type, path, key, subject, names } = row;
        const isTheirs = subject !== null && (subject === erased || this.#isJoint(subject));
        if (!isTheirs && !names.some((name) => this.#ids.has(name))) {
          left.push(row);
          continue;
        }
        this.#removedKeys.add(key);
        const isShort = names.length === 0 && key.length < KEY_LENGTH_MIN && !this.#ids.has(key);
        if (isShort && (yield* this.#isOfOthers(key, type))) this.#short.add(key);
        // Another row may have come under its key.
        this.#addId(key, (yield* this.#stands(row)) ? row.position : Infinity);
        if (subject !== erased) this.#subjects.add(subject ?? ownSubject(type, path, key));
      }
      this.#removed = left;
    }
  }

  *#findIn(table: Table, own: string | null, from: number): Generator<undefined, void> {
    const types = table.columnTypes();
    const columns = namingColumns(table.type, types).map((name) => ({ name, type: types.get(name)!.type }));
    if (columns.length === 0) return;
    const { type } = table;
    const known: Found = this.#derivedByTable.get(type) ?? { positions: new Set(), paths: new Set(), rows: new Set() };
    this.#derivedByTable.set(type, known);
    const subject = own !== null && types.get(own)?.type === 'string' ? own : null;
    for (const segment of table.segments) {
      for (let row = segment.rowAtOrAfter(from); row < segment.length; row += ROWS_A_STEP) {
        const end = Math.min(segment.length, row + ROWS_A_STEP);
        this.#look(segment, { row, end }, { type, columns, own: subject }, known);
        yield;
      }
    }
  }

  #look(
    segment: Segment,
    { row: first, end }: { readonly row: number; readonly end: number },
    { type, columns, own }: { readonly type: string; readonly columns: readonly NamedType[]; readonly own: string | null },
    known: Found,
  ): void {
    const rooted = this.#rooted.get(type);
    const keys = segment.cells.glance(null, sameBytes());
    if (!keys) return;
    const naming = columns.flatMap((column) => {
      const vector = segment.cells.glance(column.name, sameBytes());
      return vector ? [{ ...column, vector }] : [];
    });
    const subjects = own === null ? undefined : segment.cells.glance(own, sameBytes());
    for (let row = first; row < end; row++) {
      if (segment.isRemoved(row)) continue;
      const position = segment.positionOf(row);
      if (known.positions.has(position) || rooted?.has(position) === true) continue;
      const path = segment.paths.codeAt(row);
      const whose = subjects ? cellAt(subjects, 'string', row) : null;
      const joint = typeof whose === 'string' && this.#isJoint(whose) ? whose : null;
      const isNamed =
        joint !== null || naming.some((each) => this.#names(each, namesIn(cellAt(each.vector, each.type, row)), position));
      if (!isNamed && known.rows.size === 0) continue;
      const key = String(cellAt(keys, 'string', row));
      const name = `${path} ${key}`;
      if (!isNamed && !known.rows.has(name)) continue;
      known.positions.add(position);
      known.paths.add(path);
      known.rows.add(name);
      this.#addId(key);
      // Edges of a row name the version that they are of.
      this.#addId(versionName(this.#asked.timeline.timeOf(position)));
      if (joint !== null) this.#subjects.add(joint);
      this.#subjects.add(ownSubject(type, this.#asked.scopes.path(path), key));
    }
  }

  *#addKeys(table: Table, positions: readonly number[]): Generator<undefined, void> {
    const isMade = isDerivable(table.type, table.columnTypes());
    const bytes = sameBytes();
    for (const [i, position] of positions.entries()) {
      if (i % ROWS_A_STEP === ROWS_A_STEP - 1) yield;
      const row = table.versionAt(position);
      if (row === NO_ROW) continue;
      const key = cellAt(table.segmentOf(row).cells.glance(null, bytes)!, 'string', row & 0xffff);
      if (typeof key !== 'string' || key === '') continue;
      if (!isMade && key.length < KEY_LENGTH_MIN && !this.#ids.has(key) && (yield* this.#isOfOthers(key, table.type)))
        this.#short.add(key);
      this.#addId(key);
    }
  }

  /** Whether it is the key of a row of another type, too, that goes on to be there. */
  *#isOfOthers(key: string, type: string): Generator<undefined, boolean> {
    const { tenant, layers } = this.#asked;
    for (const layer of layers()) {
      for (const table of layer.tablesOf(tenant)) {
        if (table.type === type) continue;
        while (table.enterSome()) yield;
        for (const path of table.paths()) {
          const newest = table.newestOf(path, key);
          if (newest !== NO_ROW && this.#rooted.get(table.type)?.has(table.positionOf(newest)) !== true) return true;
        }
      }
      yield;
    }
    return false;
  }

  get #size(): number {
    let size = 0;
    for (const { positions } of this.#derivedByTable.values()) size += positions.size;
    return size;
  }

  #addId(key: string, below = Infinity): void {
    this.#ids.set(key, Math.max(below, this.#ids.get(key) ?? 0));
  }

  /** Whether a row of this type, path and key is there. */
  *#stands({ type, path, key }: RemovedRow): Generator<undefined, boolean> {
    const { tenant, layers, scopes } = this.#asked;
    const code = scopes.codeOf(path);
    for (const layer of layers()) {
      const table = layer.table(tenant, type);
      while (table?.enterSome() === true) yield;
      if (code >= 0 && table !== undefined && table.newestOf(code, key) !== NO_ROW) return true;
    }
    return false;
  }

  #names({ name: column }: NamedType, names: readonly string[], position: number): boolean {
    const isLoose = loose.has(column);
    return names.some((name) => position < (this.#ids.get(name) ?? 0) && !(isLoose && this.#short.has(name)));
  }

  #isJoint(subject: string): boolean {
    const { subject: erased } = this.#asked;
    return subject !== erased && subjectsIn(subject).includes(erased);
  }
}
