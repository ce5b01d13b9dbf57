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
  readonly #tableColumns = new Map<string, TableColumn>();
  /** The dictionary of a column; null where it never had codes, or was widened since. */
  readonly dictionaryOf = (column: string): ByteDictionary | null => this.#tableColumns.get(column)?.dictionary ?? null;

  get types(): ReadonlyMap<string, { readonly type: ColumnType }> {
    return this.#tableColumns;
  }

  /** Declares a column, or widens one that exists. Its former type is kept for branches that still read it so. */
  declare(name: string, declaredType: ColumnType, segments: readonly Segment[], keepFormer = false): void {
    const tableColumn = this.#tableColumns.get(name);
    if (!tableColumn) {
      const newDictionary = declaredType === 'string' ? new ByteDictionary() : null;
      this.#tableColumns.set(name, {
        type: declaredType,
        dictionary: newDictionary,
        coding: declaredType === 'string',
        coded: 0,
        searched: false,
      });
      return;
    }
    if (tableColumn.type === declaredType) return;
    // Segments that rest as codes are read once more by what the codes mean.
    for (const segment of segments) {
      segment.widen(name, declaredType, keepFormer);
      forgetZoneMaps(segment, name);
    }
    tableColumn.type = declaredType;
    tableColumn.dictionary = null;
    tableColumn.coding = false;
  }

  noteSearched(names: readonly string[]): void {
    for (const name of names) {
      const tableColumn = this.#tableColumns.get(name);
      if (tableColumn) tableColumn.searched = true;
    }
  }

  /** Columns of texts, among these, whose newest segments are spelled out: in those before, codes say which rows have the same. */
  spellings(names: readonly string[]): readonly string[] {
    return names.filter((name) => {
      const tableColumn = this.#tableColumns.get(name);
      return tableColumn?.type === 'string' && !(tableColumn.coding && tableColumn.dictionary!.size <= DICTIONARY_MAX);
    });
  }

  /** Columns of texts that were searched, and those of these names. */
  textsToIndex(names: readonly string[]): readonly string[] {
    const textColumns = [...this.#tableColumns].filter(([, { type }]) => holdsTexts(type));
    return textColumns.flatMap(([name, { searched }]) => (searched || names.includes(name) ? name : []));
  }

  /** Cells from .. to-1 of a vector, as rows `first` and on of the segment that grows. */
  append(
    segment: Segment,
    name: string,
    appendedVector: Vector,
    firstAppended: number,
    appendedEnd: number,
    first: number,
  ): void {
    const tableColumn = this.#tableColumns.get(name)!;
    if (appendedVector.kind === 'null') return;
    const { dictionary } = tableColumn;
    const segmentCells = segment.columnFor(
      name,
      tableColumn.type,
      tableColumn.coding && dictionary!.size <= DICTIONARY_MAX ? dictionary : null,
    );
    segmentCells.pad(first);
    segmentCells.append(appendedVector, firstAppended, appendedEnd);
    if (!tableColumn.coding) return;
    tableColumn.coded += appendedEnd - firstAppended;
    if (dictionary!.size > DICTIONARY_PROBATION && dictionary!.size * 2 > tableColumn.coded) {
      tableColumn.coding = false;
      segmentCells.spellOut();
      forgetZoneMaps(segment, name);
    }
  }

  get bytes(): number {
    let dictionaryBytes = 0;
    for (const { dictionary } of this.#tableColumns.values()) dictionaryBytes += dictionary?.byteLength ?? 0;
    return dictionaryBytes;
  }

  savedState(): SavedColumns {
    return [...this.#tableColumns].map(([name, column]) => ({
      ...column,
      name,
      dictionary: column.dictionary?.savedState() ?? null,
    }));
  }

  restore(columns: SavedColumns): void {
    // All have one shape, however many tables there are: an object made by spreading may get a hidden class of its own.
    for (const { name, type, dictionary, coding, coded, searched } of columns) {
      const restoredDictionary = dictionary && ByteDictionary.fromSaved(dictionary);
      this.#tableColumns.set(name, { type, dictionary: restoredDictionary, coding, coded, searched });
    }
  }
}
