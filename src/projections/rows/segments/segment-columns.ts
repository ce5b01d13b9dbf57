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
interface Copy {
  readonly column: SegmentColumn;
  readonly rows: number;
}

/** The segment, as its columns see it. */
interface Rows {
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

const none: AbsentColumns = new Map();

interface Rest {
  readonly columns: RestingColumns;
  readonly version: number;
  readonly keeper: SegmentKeeper;
  readonly dictionaryOf: DictionaryOf;
}

export class SegmentColumns {
  readonly #segment: Rows;
  readonly #extents: Extents;
  readonly #before: SegmentColumns | null;
  /** Null while they are out of memory. */
  #keys: SegmentColumn | null;
  /** Null where a column is out of memory. */
  readonly #columns = new Map<string, SegmentColumn | null>();
  /** Columns as they were before they were widened: for branches that were forked before that. */
  readonly #formers = new Map<string, Copy[]>();
  /** Copies in a type that a branch widened its inherited column to. */
  readonly #derived = new Map<string, Copy[]>();
  #rest: Rest | null = null;
  #version = 0;
  /** Rows that were removed and whose cells are to be wiped; `null`: the keys. */
  readonly #unwiped = new Map<string | null, number[]>();
  #wipes = 0;
  /** Types that columns were widened to since their file was written. */
  readonly #widened = new Map<string, ColumnType[]>();

  /** `before`: of a full segment that this one follows, which tells how much room columns need. */
  constructor(segment: Rows, extents: Extents, before: SegmentColumns | null) {
    this.#segment = segment;
    this.#extents = extents;
    this.#before = before;
    this.#keys = new SegmentColumn('string', null, extents, before?.keys);
  }

  get keys(): SegmentColumn {
    const keys = this.#keys ?? this.#load(null);
    keys.recent = true;
    return keys;
  }

  column(name: string): SegmentColumn | undefined {
    const known = this.#columns.get(name);
    if (known === undefined) return undefined;
    const column = known ?? this.#load(name);
    column.recent = true;
    return column;
  }

  /**
   * Cells of a column, or the keys (`null`), for one look within the turn: what is out of memory is read into `bytes` and stays
   * out of it. Rows that were removed may have their cells still.
   */
  glance(name: string | null, bytes: BytesFor): Vector | undefined {
    const rest = this.#rest;
    if (!this.isAbsent(name) || !rest || (name !== null && this.#widened.has(name))) {
      return (name === null ? this.keys : this.column(name))?.vector(this.#segment.length);
    }
    let saved: SavedVector;
    try {
      saved = rest.columns.glance(name, bytes);
    } catch (error) {
      return rest.keeper.unreadable(error);
    }
    if (saved.kind !== 'dict') return saved;
    const dictionary = rest.dictionaryOf(name!);
    assert(dictionary, 'codes have a dictionary');
    return { ...saved, dictionary };
  }

  /** How texts begin that are or were in a column, or in the keys (`null`); null where that is not known. */
  beginnings(name: string | null): Uint8Array | null {
    const isKnown = this.#rest !== null && (name === null || !this.#widened.has(name));
    return isKnown ? this.#rest!.columns.beginnings(name) : null;
  }

  /** Cells are codes of the dictionary that the table has for the column. */
  isCoded(name: string): boolean {
    const column = this.#columns.get(name);
    return column ? column.vector(this.#segment.length).kind === 'dict' : column === null && this.#rest!.columns.isCoded(name);
  }

  names(): readonly string[] {
    return [...this.#columns.keys()];
  }

  columnFor(name: string, type: ColumnType, dictionary: ByteDictionary | null): SegmentColumn {
    let column = this.#columns.get(name);
    assert(column !== null, 'the segment that grows is in memory');
    if (column === undefined) {
      column = new SegmentColumn(type, dictionary, this.#extents, this.#before?.column(name));
      this.#columns.set(name, column);
    }
    return column;
  }

  /** The longest text heap among what is in memory. */
  get heapBytes(): number {
    let most = this.#keys?.heapBytes ?? 0;
    for (const column of this.#columns.values()) if (column) most = Math.max(most, column.heapBytes);
    return most;
  }

  /**
   * Puts the cells of a column under a wider type. Their former type is kept for branches that read them so, and for good: a
   * reader of a branch that is deleted meanwhile reads on, and a column widens three times at most.
   */
  widen(name: string, type: ColumnType, keepFormer: boolean): void {
    const known = this.#columns.get(name);
    if (known === undefined || known?.type === type) return;
    // A column read from the file is widened at every read, as long as that takes no memory beside the file.
    const file = this.isAtRest && !keepFormer ? this.#rest!.columns : null;
    const asRead = file !== null && file.typeOf(name) !== null && !file.isCoded(name);
    if (asRead) pushTo(this.#widened, name, type);
    if (known === null && asRead) return;
    const column = this.column(name)!;
    this.#wipe(name, column);
    const { length, sealed } = this.#segment;
    if (keepFormer) pushTo(this.#formers, name, { column: column.copy(length), rows: length });
    this.#derived.delete(name);
    column.widen(type);
    if (sealed) column.seal(length);
    if (asRead) return;
    // It is in memory until a file has it in this type: there is nothing left to make up for.
    this.#widened.delete(name);
    this.#markChanged();
  }

  /**
   * The first `rows` cells of a column as `type`: the column itself, what it was before it was widened, or a widened
   * copy, which is made once. Undefined when none of its first `rows` cells had such a type.
   */
  columnAs(name: string, type: ColumnType, rows: number): SegmentColumn | undefined {
    const column = this.column(name);
    if (!column || column.type === type) return column;
    this.#wipe(name, column);
    const formers = this.#formers.get(name) ?? [];
    const known = [...formers, ...(this.#derived.get(name) ?? [])].find((copy) => copy.column.type === type && copy.rows >= rows);
    if (known) return known.column;
    // The oldest that holds all of the rows is what the branch was forked with.
    const former = formers.find((copy) => copy.rows >= rows);
    const origin = former ?? { column, rows: this.#segment.length };
    const { type: was } = origin.column;
    const widens = type === 'json' || (type === 'number' && was === 'integer') || (type === 'string' && becomesText(was));
    if (!widens) return undefined;
    const copy = { column: origin.column.copy(origin.rows), rows: origin.rows };
    copy.column.widen(type);
    pushTo(this.#derived, name, copy);
    return copy.column;
  }

  /**
   * The cells of these rows must not be read from here on. Columns out of memory stay there for now: the next file is made from
   * their state by then, and until then the file that they are read from keeps all cells.
   */
  clear(rows: readonly number[]): void {
    for (const name of [null, ...this.#columns.keys()]) {
      const unwiped = this.#unwiped.get(name);
      if (unwiped) for (const row of rows) unwiped.push(row);
      else this.#unwiped.set(name, [...rows]);
    }
    for (const { column } of this.#copies()) column.clear(rows);
    this.#markChanged();
  }

  /** Wipes what was cleared in all that is in memory. */
  wipe(): void {
    for (const [name, column] of this.residents()) this.#wipe(name, column);
  }

  /** Rises when cells are wiped: earlier summaries may be wrong for the new content. */
  get wipes(): number {
    return this.#wipes;
  }

  seal(length: number): void {
    for (const [, column] of this.residents()) column.seal(length);
  }

  get bytes(): number {
    let total = this.#keys?.bytes ?? 0;
    for (const column of this.#columns.values()) total += column?.bytes ?? 0;
    if (this.#formers.size + this.#derived.size > 0) for (const { column } of this.#copies()) total += column.bytes;
    return total;
  }

  /**
   * A column that is out of memory, read into `bytes` for the next file; it stays out of memory. Null where that is impossible: a
   * dictionary counts codes as they are wiped.
   */
  absentColumn(name: string | null, bytes: BytesFor): SegmentColumn | null {
    const rest = this.#rest;
    assert(rest && this.isAbsent(name), 'what is out of memory rests on a file');
    if (name !== null && (this.#widened.has(name) || rest.columns.isCoded(name))) return null;
    const type = name === null ? 'string' : rest.columns.typeOf(name)!;
    const column = SegmentColumn.fromSaved(type, this.glance(name, bytes)!, this.#segment.length, null, null);
    const rows = this.#unwiped.get(name);
    if (rows) column.clear(rows);
    return column;
  }

  /** By reference, or as copies of their own. `beside`: columns that need not be in memory for that. */
  savedState(shared: boolean, beside: AbsentColumns = none): Pick<SegmentState, 'keys' | 'columns' | 'formers'> {
    const { length } = this.#segment;
    const vectorOf = (column: SegmentColumn): SavedVector => (shared ? column.vector(length) : column.savedVector(length));
    this.wipe();
    return {
      keys: vectorOf(beside.get(null) ?? this.keys),
      columns: this.names().map((name) => {
        const column = beside.get(name) ?? this.column(name)!;
        return { name, type: column.type, vector: vectorOf(column) };
      }),
      formers: [...this.#formers].flatMap(([name, columns]) =>
        columns.map(({ column, rows }) => ({ name, type: column.type, vector: column.savedVector(rows), rows })),
      ),
    };
  }

  /** Columns as they were saved, in memory. */
  fill({ keys, columns }: Pick<SegmentState, 'keys' | 'columns'>, dictionaryOf: DictionaryOf): void {
    const { length } = this.#segment;
    this.#keys = SegmentColumn.fromSaved('string', keys, length, null, this.#extents);
    for (const { name, type, vector } of columns) this.#columns.set(name, this.#restoreColumn(name, type, vector, dictionaryOf));
  }

  keepFormers(formers: SegmentState['formers']): void {
    for (const { name, type, vector, rows } of formers) {
      pushTo(this.#formers, name, { column: SegmentColumn.fromSaved(type, vector, rows, null, null), rows });
    }
  }

  /** All of them are out of memory from the beginning. */
  rest(columns: RestingColumns, widened: Widened): void {
    for (const name of columns.names) this.#columns.set(name, null);
    for (const [name, types] of widened) this.#widened.set(name, [...types]);
    this.#keys = null;
  }

  get widened(): Widened {
    return [...this.#widened].map(([name, types]) => [name, [...types]]);
  }

  /** Type of a column in the file, and those that it was widened to since: one after the other, they say how its cells read. */
  typesOf(name: string): readonly ColumnType[] {
    const type = this.#rest?.columns.typeOf(name);
    return type ? [type, ...(this.#widened.get(name) ?? [])] : [];
  }

  /** Rises when what a file says of the columns becomes wrong. */
  get version(): number {
    return this.#version;
  }

  /** From here on columns may leave memory: `columns` says what they held at `version`. */
  restOn(columns: RestingColumns, version: number, dictionaryOf: DictionaryOf, keeper: SegmentKeeper): void {
    // Later widenings than the file's are still applied on read.
    for (const [name, types] of this.#widened) types.splice(0, types.indexOf(columns.typeOf(name)!) + 1);
    this.#rest = { columns, version, dictionaryOf, keeper };
    // Both the file and memory have it wiped: cells are wiped before they are written.
    if (version === this.#version) this.#unwiped.clear();
  }

  /** True when the file of the segment says what its columns hold. */
  get isAtRest(): boolean {
    return this.#rest?.version === this.#version;
  }

  /** The segment has no keeper any more: columns that are loaded from here on belong to their reader. */
  leave(): void {
    const rest = this.#rest;
    if (!rest) return;
    const unreadable = (error: unknown): never => rest.keeper.unreadable(error);
    this.#rest = { ...rest, keeper: { onLoaded: () => undefined, onChanged: () => undefined, unreadable } };
  }

  /** Keys and columns that are in memory, by name; `null`: the keys. */
  residents(): readonly (readonly [name: string | null, column: SegmentColumn])[] {
    const residents: [string | null, SegmentColumn][] = [];
    if (this.#keys) residents.push([null, this.#keys]);
    for (const [name, column] of this.#columns) if (column) residents.push([name, column]);
    return residents;
  }

  /** True for keys (`null`) or a column that would have to be read. */
  isAbsent(name: string | null): boolean {
    return (name === null ? this.#keys : this.#columns.get(name)) === null;
  }

  /** Takes a column out of memory. In a turn of its own: readers of other turns hold no views. */
  evict(name: string | null): void {
    assert(this.isAtRest, 'a column leaves memory when a file has it');
    if (name === null) {
      this.#keys?.release();
      this.#keys = null;
      return;
    }
    this.#columns.get(name)?.release();
    this.#columns.set(name, null);
    this.#derived.delete(name);
  }

  /** Brings back a column that was read beside the turn, unless it is there by now or the file is another one. */
  adopt(name: string | null, columns: RestingColumns, saved: Pick<SavedColumn, 'type' | 'vector'>): void {
    if (this.isAbsent(name) && this.#rest?.columns === columns) this.#take(name, saved, this.#rest);
  }

  #load(name: string | null): SegmentColumn {
    const rest = this.#rest;
    assert(rest, 'what is out of memory rests on a file');
    let saved: Pick<SavedColumn, 'type' | 'vector'>;
    try {
      saved = name === null ? { type: 'string', vector: rest.columns.keys() } : rest.columns.column(name);
    } catch (error) {
      return rest.keeper.unreadable(error);
    }
    return this.#take(name, saved, rest);
  }

  #take(name: string | null, { type, vector }: Pick<SavedColumn, 'type' | 'vector'>, rest: Rest): SegmentColumn {
    const { length } = this.#segment;
    let column: SegmentColumn;
    if (name === null) {
      column = this.#keys = SegmentColumn.fromSaved('string', vector, length, null, this.#extents);
      this.#wipe(name, column);
    } else {
      column = this.#restoreColumn(name, type, vector, rest.dictionaryOf);
      this.#wipe(name, column);
      for (const wider of this.#widened.get(name) ?? []) column.widen(wider);
      this.#columns.set(name, column);
    }
    column.seal(length);
    rest.keeper.onLoaded(this, name, column);
    return column;
  }

  #restoreColumn(name: string, type: ColumnType, vector: SavedVector, dictionaryOf: DictionaryOf): SegmentColumn {
    const dictionary = vector.kind === 'dict' ? dictionaryOf(name) : null;
    return SegmentColumn.fromSaved(type, vector, this.#segment.length, dictionary, this.#extents);
  }

  #wipe(name: string | null, column: SegmentColumn): void {
    const rows = this.#unwiped.get(name);
    if (!rows) return;
    this.#unwiped.delete(name);
    column.clear(rows);
    this.#wipes++;
  }

  #copies(): readonly Copy[] {
    return [...this.#formers.values(), ...this.#derived.values()].flat();
  }

  #markChanged(): void {
    this.#version++;
    this.#rest?.keeper.onChanged(this);
  }
}

function pushTo<K, T>(lists: Map<K, T[]>, key: K, item: T): void {
  const list = lists.get(key);
  if (list) list.push(item);
  else lists.set(key, [item]);
}
