/**
 * Keys and columns of one segment, in memory or on the file that it rests on. Invariants:
 *
 * - `keys` and `column` load a column within the turn if it is out of memory, and are the only ways to it;
 * - a column leaves memory only while the file holds its current cells: a hard delete, or a wider type that the file can't be
 *   read as, makes the file wrong until it is written again;
 * - cells of removed rows are wiped on request, and before they could get into a file or a copy: readers of a column pass over
 *   removed rows, and removing the rows of a subject, which lie in all segments, is one turn;
 * - the former type of a widened column is kept for as long as branches may read it so.
 */
import { assert } from '../../../errors.ts';
import type { Vector } from '../../../log/values/columns.ts';
import { becomesText, type ColumnType } from '../../../log/values/value.ts';
import type { ByteDictionary } from '../cells/byte-dictionary.ts';
import type { Extents } from '../cells/column-extents.ts';
import type { SavedVector } from './column-cells.ts';
import { SegmentColumn } from './segment-column.ts';
import type { BytesFor, DictionaryOf, RestingColumns, SavedColumn, SegmentState, Widened } from './segment-state.ts';

/** The first `rows` cells of a column in another type. */
interface ColumnCopy {
  readonly column: SegmentColumn;
  readonly rows: number;
}

/** The segment, as its columns see it. */
interface SegmentRows {
  readonly length: number;
  readonly sealed: boolean;
}

/** Decides which columns stay in memory, and writes those that changed. */
export interface SegmentKeeper {
  /** `null`: the keys. */
  onLoaded(columns: SegmentColumns, name: string | null, column: SegmentColumn): void;
  /** The segment's file no longer says what its columns hold. */
  onChanged(columns: SegmentColumns): void;
  /** A column can't be read: never returns. */
  unreadable(error: unknown): never;
}

/** Columns, and keys (`null`), that are out of memory, as a file is to have them. */
export type AbsentColumns = ReadonlyMap<string | null, SegmentColumn>;

const noAbsentColumns: AbsentColumns = new Map();

interface ColumnsAtRest {
  readonly columns: RestingColumns;
  readonly version: number;
  readonly keeper: SegmentKeeper;
  readonly dictionaryOf: DictionaryOf;
}

export class SegmentColumns {
  readonly #segmentRows: SegmentRows;
  readonly #columnExtents: Extents;
  readonly #columnsBefore: SegmentColumns | null;
  /** Null while they are out of memory. */
  #keyColumn: SegmentColumn | null;
  /** Null where a column is out of memory. */
  readonly #columnsByName = new Map<string, SegmentColumn | null>();
  /** Columns as they were before they were widened: for branches that were forked before that. */
  readonly #formerCopies = new Map<string, ColumnCopy[]>();
  /** Copies in a type that a branch widened its inherited column to. */
  readonly #derivedCopies = new Map<string, ColumnCopy[]>();
  #columnsAtRest: ColumnsAtRest | null = null;
  #columnsVersion = 0;
  /** Rows that were removed and whose cells are to be wiped; `null`: the keys. */
  readonly #unwipedRows = new Map<string | null, number[]>();
  #wipeCount = 0;
  /** Types that columns were widened to since their file was written. */
  readonly #widenedTypes = new Map<string, ColumnType[]>();

  /** `columnsBefore`: of a full segment that this one follows, which tells how much room columns need. */
  constructor(segmentRows: SegmentRows, extents: Extents, columnsBefore: SegmentColumns | null) {
    this.#segmentRows = segmentRows;
    this.#columnExtents = extents;
    this.#columnsBefore = columnsBefore;
    this.#keyColumn = new SegmentColumn('string', null, extents, columnsBefore?.keys);
  }

  get keys(): SegmentColumn {
    const keyColumn = this.#keyColumn ?? this.#loadColumn(null);
    keyColumn.recent = true;
    return keyColumn;
  }

  column(name: string): SegmentColumn | undefined {
    const knownColumn = this.#columnsByName.get(name);
    if (knownColumn === undefined) return undefined;
    const segmentColumn = knownColumn ?? this.#loadColumn(name);
    segmentColumn.recent = true;
    return segmentColumn;
  }

  /**
   * Cells of a column, or the keys (`null`), for one look within the turn: what is out of memory is read into `bytes` and stays
   * out of it. Rows that were removed may have their cells still.
   */
  glance(name: string | null, bytes: BytesFor): Vector | undefined {
    const columnsAtRest = this.#columnsAtRest;
    if (!this.isAbsent(name) || !columnsAtRest || (name !== null && this.#widenedTypes.has(name))) {
      return (name === null ? this.keys : this.column(name))?.vector(this.#segmentRows.length);
    }
    let savedVector: SavedVector;
    try {
      savedVector = columnsAtRest.columns.glance(name, bytes);
    } catch (error) {
      return columnsAtRest.keeper.unreadable(error);
    }
    if (savedVector.kind !== 'dict') return savedVector;
    const glancedDictionary = columnsAtRest.dictionaryOf(name!);
    assert(glancedDictionary, 'codes have a dictionary');
    return { ...savedVector, dictionary: glancedDictionary };
  }

  /** How texts begin that are or were in a column, or in the keys (`null`); null where that is not known. */
  beginnings(name: string | null): Uint8Array | null {
    const areBeginningsKnown = this.#columnsAtRest !== null && (name === null || !this.#widenedTypes.has(name));
    return areBeginningsKnown ? this.#columnsAtRest!.columns.beginnings(name) : null;
  }

  /** Cells are codes of the dictionary that the table has for the column. */
  isCoded(name: string): boolean {
    const codedColumn = this.#columnsByName.get(name);
    return codedColumn
      ? codedColumn.vector(this.#segmentRows.length).kind === 'dict'
      : codedColumn === null && this.#columnsAtRest!.columns.isCoded(name);
  }

  names(): readonly string[] {
    return [...this.#columnsByName.keys()];
  }

  columnFor(name: string, type: ColumnType, dictionary: ByteDictionary | null): SegmentColumn {
    let growingColumn = this.#columnsByName.get(name);
    assert(growingColumn !== null, 'the segment that grows is in memory');
    if (growingColumn === undefined) {
      growingColumn = new SegmentColumn(type, dictionary, this.#columnExtents, this.#columnsBefore?.column(name));
      this.#columnsByName.set(name, growingColumn);
    }
    return growingColumn;
  }

  /** The longest text heap among what is in memory. */
  get heapBytes(): number {
    let mostHeapBytes = this.#keyColumn?.heapBytes ?? 0;
    for (const segmentColumn of this.#columnsByName.values())
      if (segmentColumn) mostHeapBytes = Math.max(mostHeapBytes, segmentColumn.heapBytes);
    return mostHeapBytes;
  }

  /**
   * Puts the cells of a column under a wider type. Their former type is kept for branches that read them so, and for good: a
   * reader of a branch that is deleted meanwhile reads on, and a column widens three times at most.
   */
  widen(name: string, widerType: ColumnType, keepFormer: boolean): void {
    const knownColumn = this.#columnsByName.get(name);
    if (knownColumn === undefined || knownColumn?.type === widerType) return;
    // A column read from the file is widened at every read, as long as that takes no memory beside the file.
    const restingFile = this.isAtRest && !keepFormer ? this.#columnsAtRest!.columns : null;
    const isWidenedOnRead = restingFile !== null && restingFile.typeOf(name) !== null && !restingFile.isCoded(name);
    if (isWidenedOnRead) pushToList(this.#widenedTypes, name, widerType);
    if (knownColumn === null && isWidenedOnRead) return;
    const widenedColumn = this.column(name)!;
    this.#wipeColumn(name, widenedColumn);
    const { length, sealed } = this.#segmentRows;
    if (keepFormer) pushToList(this.#formerCopies, name, { column: widenedColumn.copy(length), rows: length });
    this.#derivedCopies.delete(name);
    widenedColumn.widen(widerType);
    if (sealed) widenedColumn.seal(length);
    if (isWidenedOnRead) return;
    // It is in memory until a file has it in this type: there is nothing left to make up for.
    this.#widenedTypes.delete(name);
    this.#markColumnsChanged();
  }

  /**
   * The first `rows` cells of a column as `wantedType`: the column itself, what it was before it was widened, or a widened
   * copy, which is made once. Undefined when none of its first `rows` cells had such a type.
   */
  columnAs(name: string, wantedType: ColumnType, rows: number): SegmentColumn | undefined {
    const segmentColumn = this.column(name);
    if (!segmentColumn || segmentColumn.type === wantedType) return segmentColumn;
    this.#wipeColumn(name, segmentColumn);
    const formerCopies = this.#formerCopies.get(name) ?? [];
    const knownCopy = [...formerCopies, ...(this.#derivedCopies.get(name) ?? [])].find(
      (derivedCopy) => derivedCopy.column.type === wantedType && derivedCopy.rows >= rows,
    );
    if (knownCopy) return knownCopy.column;
    // The oldest that holds all of the rows is what the branch was forked with.
    const formerCopy = formerCopies.find((derivedCopy) => derivedCopy.rows >= rows);
    const originCopy = formerCopy ?? { column: segmentColumn, rows: this.#segmentRows.length };
    const { type: originType } = originCopy.column;
    const canWiden =
      wantedType === 'json' ||
      (wantedType === 'number' && originType === 'integer') ||
      (wantedType === 'string' && becomesText(originType));
    if (!canWiden) return undefined;
    const copy = { column: originCopy.column.copy(originCopy.rows), rows: originCopy.rows };
    copy.column.widen(wantedType);
    pushToList(this.#derivedCopies, name, copy);
    return copy.column;
  }

  /**
   * The cells of these rows must not be read from here on. Columns out of memory stay there for now: the next file is made from
   * their state by then, and until then the file that they are read from keeps all cells.
   */
  clear(rows: readonly number[]): void {
    for (const name of [null, ...this.#columnsByName.keys()]) {
      const unwipedRows = this.#unwipedRows.get(name);
      if (unwipedRows) for (const row of rows) unwipedRows.push(row);
      else this.#unwipedRows.set(name, [...rows]);
    }
    for (const { column: columnCopy } of this.#columnCopies()) columnCopy.clear(rows);
    this.#markColumnsChanged();
  }

  /** Wipes what was cleared in all that is in memory. */
  wipe(): void {
    for (const [name, residentColumn] of this.residents()) this.#wipeColumn(name, residentColumn);
  }

  /** Rises when cells are wiped: earlier summaries may be wrong for the new content. */
  get wipes(): number {
    return this.#wipeCount;
  }

  seal(length: number): void {
    for (const [, residentColumn] of this.residents()) residentColumn.seal(length);
  }

  get bytes(): number {
    let columnBytes = this.#keyColumn?.bytes ?? 0;
    for (const segmentColumn of this.#columnsByName.values()) columnBytes += segmentColumn?.bytes ?? 0;
    if (this.#formerCopies.size + this.#derivedCopies.size > 0)
      for (const { column } of this.#columnCopies()) columnBytes += column.bytes;
    return columnBytes;
  }

  /**
   * A column that is out of memory, read into `bytes` for the next file; it stays out of memory. Null where that is impossible: a
   * dictionary counts codes as they are wiped.
   */
  absentColumn(name: string | null, bytes: BytesFor): SegmentColumn | null {
    const columnsAtRest = this.#columnsAtRest;
    assert(columnsAtRest && this.isAbsent(name), 'what is out of memory rests on a file');
    if (name !== null && (this.#widenedTypes.has(name) || columnsAtRest.columns.isCoded(name))) return null;
    const restingType = name === null ? 'string' : columnsAtRest.columns.typeOf(name)!;
    const restingColumn = SegmentColumn.fromSaved(restingType, this.glance(name, bytes)!, this.#segmentRows.length, null, null);
    const unwipedRows = this.#unwipedRows.get(name);
    if (unwipedRows) restingColumn.clear(unwipedRows);
    return restingColumn;
  }

  /** By reference, or as copies of their own. `absentColumns`: columns that need not be in memory for that. */
  savedState(
    isShared: boolean,
    absentColumns: AbsentColumns = noAbsentColumns,
  ): Pick<SegmentState, 'keys' | 'columns' | 'formers'> {
    const { length } = this.#segmentRows;
    const vectorToSave = (column: SegmentColumn): SavedVector => (isShared ? column.vector(length) : column.savedVector(length));
    this.wipe();
    return {
      keys: vectorToSave(absentColumns.get(null) ?? this.keys),
      columns: this.names().map((name) => {
        const savedColumn = absentColumns.get(name) ?? this.column(name)!;
        return { name, type: savedColumn.type, vector: vectorToSave(savedColumn) };
      }),
      formers: [...this.#formerCopies].flatMap(([name, columns]) =>
        columns.map(({ column: savedColumn, rows }) => ({
          name,
          type: savedColumn.type,
          vector: savedColumn.savedVector(rows),
          rows,
        })),
      ),
    };
  }

  /** Columns as they were saved, in memory. */
  fill({ keys, columns }: Pick<SegmentState, 'keys' | 'columns'>, dictionaryOf: DictionaryOf): void {
    const { length } = this.#segmentRows;
    this.#keyColumn = SegmentColumn.fromSaved('string', keys, length, null, this.#columnExtents);
    for (const { name, type, vector } of columns)
      this.#columnsByName.set(name, this.#restoreColumn(name, type, vector, dictionaryOf));
  }

  keepFormers(formers: SegmentState['formers']): void {
    for (const { name, type, vector, rows } of formers) {
      pushToList(this.#formerCopies, name, { column: SegmentColumn.fromSaved(type, vector, rows, null, null), rows });
    }
  }

  /** All of them are out of memory from the beginning. */
  rest(restingColumns: RestingColumns, widened: Widened): void {
    for (const name of restingColumns.names) this.#columnsByName.set(name, null);
    for (const [name, widenedTypes] of widened) this.#widenedTypes.set(name, [...widenedTypes]);
    this.#keyColumn = null;
  }

  get widened(): Widened {
    return [...this.#widenedTypes].map(([name, types]) => [name, [...types]]);
  }

  /** Type of a column in the file, and those that it was widened to since: one after the other, they say how its cells read. */
  typesOf(name: string): readonly ColumnType[] {
    const type = this.#columnsAtRest?.columns.typeOf(name);
    return type ? [type, ...(this.#widenedTypes.get(name) ?? [])] : [];
  }

  /** Rises when what a file says of the columns becomes wrong. */
  get version(): number {
    return this.#columnsVersion;
  }

  /** From here on columns may leave memory: `restingColumns` says what they held at `version`. */
  restOn(restingColumns: RestingColumns, version: number, dictionaryOf: DictionaryOf, keeper: SegmentKeeper): void {
    // Later widenings than the file's are still applied on read.
    for (const [name, widenedTypes] of this.#widenedTypes)
      widenedTypes.splice(0, widenedTypes.indexOf(restingColumns.typeOf(name)!) + 1);
    this.#columnsAtRest = { columns: restingColumns, version, dictionaryOf, keeper };
    // Both the file and memory have it wiped: cells are wiped before they are written.
    if (version === this.#columnsVersion) this.#unwipedRows.clear();
  }

  /** True when the file of the segment says what its columns hold. */
  get isAtRest(): boolean {
    return this.#columnsAtRest?.version === this.#columnsVersion;
  }

  /** The segment has no keeper any more: columns that are loaded from here on belong to their reader. */
  leave(): void {
    const columnsAtRest = this.#columnsAtRest;
    if (!columnsAtRest) return;
    const unreadable = (error: unknown): never => columnsAtRest.keeper.unreadable(error);
    this.#columnsAtRest = { ...columnsAtRest, keeper: { onLoaded: () => undefined, onChanged: () => undefined, unreadable } };
  }

  /** Keys and columns that are in memory, by name; `null`: the keys. */
  residents(): readonly (readonly [name: string | null, column: SegmentColumn])[] {
    const residentColumns: [string | null, SegmentColumn][] = [];
    if (this.#keyColumn) residentColumns.push([null, this.#keyColumn]);
    for (const [name, residentColumn] of this.#columnsByName) if (residentColumn) residentColumns.push([name, residentColumn]);
    return residentColumns;
  }

  /** True for keys (`null`) or a column that would have to be read. */
  isAbsent(name: string | null): boolean {
    return (name === null ? this.#keyColumn : this.#columnsByName.get(name)) === null;
  }

  /** Takes a column out of memory. In a turn of its own: readers of other turns hold no views. */
  evict(evictedColumn: string | null): void {
    assert(this.isAtRest, 'a column leaves memory when a file has it');
    if (evictedColumn === null) {
      this.#keyColumn?.release();
      this.#keyColumn = null;
      return;
    }
    this.#columnsByName.get(evictedColumn)?.release();
    this.#columnsByName.set(evictedColumn, null);
    this.#derivedCopies.delete(evictedColumn);
  }

  /** Brings back a column that was read beside the turn, unless it is there by now or the file is another one. */
  adopt(name: string | null, restingColumns: RestingColumns, loadedColumn: Pick<SavedColumn, 'type' | 'vector'>): void {
    if (this.isAbsent(name) && this.#columnsAtRest?.columns === restingColumns)
      this.#takeLoadedColumn(name, loadedColumn, this.#columnsAtRest);
  }

  #loadColumn(name: string | null): SegmentColumn {
    const columnsAtRest = this.#columnsAtRest;
    assert(columnsAtRest, 'what is out of memory rests on a file');
    let loadedColumn: Pick<SavedColumn, 'type' | 'vector'>;
    try {
      loadedColumn =
        name === null ? { type: 'string', vector: columnsAtRest.columns.keys() } : columnsAtRest.columns.column(name);
    } catch (error) {
      return columnsAtRest.keeper.unreadable(error);
    }
    return this.#takeLoadedColumn(name, loadedColumn, columnsAtRest);
  }

  #takeLoadedColumn(
    name: string | null,
    { type, vector }: Pick<SavedColumn, 'type' | 'vector'>,
    columnsAtRest: ColumnsAtRest,
  ): SegmentColumn {
    const { length } = this.#segmentRows;
    let residentColumn: SegmentColumn;
    if (name === null) {
      residentColumn = this.#keyColumn = SegmentColumn.fromSaved('string', vector, length, null, this.#columnExtents);
      this.#wipeColumn(name, residentColumn);
    } else {
      residentColumn = this.#restoreColumn(name, type, vector, columnsAtRest.dictionaryOf);
      this.#wipeColumn(name, residentColumn);
      for (const widerType of this.#widenedTypes.get(name) ?? []) residentColumn.widen(widerType);
      this.#columnsByName.set(name, residentColumn);
    }
    residentColumn.seal(length);
    columnsAtRest.keeper.onLoaded(this, name, residentColumn);
    return residentColumn;
  }

  #restoreColumn(name: string, type: ColumnType, vector: SavedVector, dictionaryOf: DictionaryOf): SegmentColumn {
    const columnDictionary = vector.kind === 'dict' ? dictionaryOf(name) : null;
    return SegmentColumn.fromSaved(type, vector, this.#segmentRows.length, columnDictionary, this.#columnExtents);
  }

  #wipeColumn(name: string | null, residentColumn: SegmentColumn): void {
    const unwipedRows = this.#unwipedRows.get(name);
    if (!unwipedRows) return;
    this.#unwipedRows.delete(name);
    residentColumn.clear(unwipedRows);
    this.#wipeCount++;
  }

  #columnCopies(): readonly ColumnCopy[] {
    return [...this.#formerCopies.values(), ...this.#derivedCopies.values()].flat();
  }

  #markColumnsChanged(): void {
    this.#columnsVersion++;
    this.#columnsAtRest?.keeper.onChanged(this);
  }
}

function pushToList<K, T>(listsByKey: Map<K, T[]>, key: K, item: T): void {
  const listOfKey = listsByKey.get(key);
  if (listOfKey) listOfKey.push(item);
  else listsByKey.set(key, [item]);
}
