/** Columns of a table over all of its segments: their types, and the dictionaries of those that are coded. */
import type { Vector } from '../../../log/values/columns.ts';
import { type ColumnType, holdsTexts } from '../../../log/values/value.ts';
import { ByteDictionary, type SavedDictionary } from '../cells/byte-dictionary.ts';
import type { Segment } from '../segments/segment.ts';
import { forgetZoneMaps } from './zone-maps.ts';

/** Distinct strings beyond which new segments spell a column out. */
const DICTIONARY_MAX = 65_536;
/** From this size on a dictionary must also save something: fewer than half of the cells may be distinct. */
const DICTIONARY_PROBATION = 4096;

interface TableColumn {
  type: ColumnType;
  /** Null for other types. Segments that were coded keep it when newer ones are not. */
  dictionary: ByteDictionary | null;
  /** False once the strings proved to be mostly distinct. */
  coding: boolean;
  /** Cells coded so far. */
  coded: number;
  /** A query has searched it: its indexes are made as segments are sealed, and begun again after a start. */
  searched: boolean;
}

export type SavedColumns = readonly {
  readonly name: string;
  readonly type: ColumnType;
  readonly dictionary: SavedDictionary | null;
  readonly coding: boolean;
  readonly coded: number;
  readonly searched: boolean;
}[];

export class TableColumns {
  readonly #columns = new Map<string, TableColumn>();
  /** The dictionary of a column; null where it never had codes, or was widened since. */
  readonly dictionaryOf = (column: string): ByteDictionary | null => this.#columns.get(column)?.dictionary ?? null;

  get types(): ReadonlyMap<string, { readonly type: ColumnType }> {
    return this.#columns;
  }

  /** Declares a column, or widens one that exists. Its former type is kept for branches that still read it so. */
  declare(name: string, type: ColumnType, segments: readonly Segment[], keepFormer = false): void {
    const column = this.#columns.get(name);
    if (!column) {
      const dictionary = type === 'string' ? new ByteDictionary() : null;
      this.#columns.set(name, { type, dictionary, coding: type === 'string', coded: 0, searched: false });
      return;
    }
    if (column.type === type) return;
    // Segments that rest as codes are read once more by what the codes mean.
    for (const segment of segments) {
      segment.widen(name, type, keepFormer);
      forgetZoneMaps(segment, name);
    }
    column.type = type;
    column.dictionary = null;
    column.coding = false;
  }

  noteSearched(names: readonly string[]): void {
    for (const name of names) {
      const column = this.#columns.get(name);
      if (column) column.searched = true;
    }
  }

  /** Columns of texts, among these, whose newest segments are spelled out: in those before, codes say which rows have the same. */
  spellings(names: readonly string[]): readonly string[] {
    return names.filter((name) => {
      const column = this.#columns.get(name);
      return column?.type === 'string' && !(column.coding && column.dictionary!.size <= DICTIONARY_MAX);
    });
  }

  /** Columns of texts that were searched, and those of these names. */
  textsToIndex(names: readonly string[]): readonly string[] {
    const texts = [...this.#columns].filter(([, { type }]) => holdsTexts(type));
    return texts.flatMap(([name, { searched }]) => (searched || names.includes(name) ? name : []));
  }

  /** Cells from .. to-1 of a vector, as rows `first` and on of the segment that grows. */
  append(segment: Segment, name: string, vector: Vector, from: number, to: number, first: number): void {
    const column = this.#columns.get(name)!;
    if (vector.kind === 'null') return;
    const { dictionary } = column;
    const cells = segment.columnFor(name, column.type, column.coding && dictionary!.size <= DICTIONARY_MAX ? dictionary : null);
    cells.pad(first);
    cells.append(vector, from, to);
    if (!column.coding) return;
    column.coded += to - from;
    if (dictionary!.size > DICTIONARY_PROBATION && dictionary!.size * 2 > column.coded) {
      column.coding = false;
      cells.spellOut();
      forgetZoneMaps(segment, name);
    }
  }

  get bytes(): number {
    let total = 0;
    for (const { dictionary } of this.#columns.values()) total += dictionary?.byteLength ?? 0;
    return total;
  }

  savedState(): SavedColumns {
    return [...this.#columns].map(([name, column]) => ({ ...column, name, dictionary: column.dictionary?.savedState() ?? null }));
  }

  restore(columns: SavedColumns): void {
    // All have one shape, however many tables there are: an object made by spreading may get a hidden class of its own.
    for (const { name, type, dictionary, coding, coded, searched } of columns) {
      const own = dictionary && ByteDictionary.fromSaved(dictionary);
      this.#columns.set(name, { type, dictionary: own, coding, coded, searched });
    }
  }
}
