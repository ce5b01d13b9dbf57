/**
 * Texts of a block, searched by index. An index covers rows and cells that the reader may not see, so it stays in here: only
 * searches of the block's visible texts leave.
 */
import type { Vector } from '../../log/values/columns.ts';
import type { ColumnType } from '../../log/values/value.ts';
import type { SegmentRows, RowBlock } from '../../projections/access-paths.ts';
import { chosenCells } from '../../projections/rows/indexes/text/chosen-cells.ts';
import { textIndexOf } from '../../projections/rows/indexes/text/text-builder.ts';
import type { StoredIndexes } from '../../projections/stored-block.ts';
import { stemTerms } from './restemmed-terms.ts';
import { type Field, BlockSearch } from './block-search.ts';
import type { TextQuery } from './text-query.ts';

/** A block as the gate lets it out. */
export interface GovernedBlock extends RowBlock {
  /** Where the scan asked for it, and storage has indexes of the block. */
  readonly texts?: VisibleTexts;
}

/** The gate's additions to the indexes of storage: visible rows and masked cells. */
export interface Showing {
  /** Bits of the rows of the block, where they are at hand: the same array whenever the same rows are shown. */
  readonly bits: Int32Array | null;
  /** A column of which some cells may be masked, as it leaves: NULL where they are; undefined for other columns. */
  maskedCells(column: string): Vector | undefined;
}

export class VisibleTexts {
  readonly #textBlock: RowBlock;
  readonly #placedRows: SegmentRows;
  readonly #storedIndexes: StoredIndexes;
  readonly #textShowing: Showing;

  constructor(block: RowBlock, placed: SegmentRows, stored: StoredIndexes, showing: Showing) {
    this.#textBlock = block;
    this.#placedRows = placed;
    this.#storedIndexes = stored;
    this.#textShowing = showing;
  }

  /** Number at the place of the first row that searches number from. */
  get base(): number {
    return this.#storedIndexes.base;
  }

  /** Some index is being made, and the reader did not want to wait for it. */
  get isComing(): boolean {
    return this.#storedIndexes.isComing === true;
  }

  /** Opens the first `count` rows of the block; null where an index of one of the columns is missing. */
  open(columns: readonly string[], count: number): SearchableTexts | null {
    const { base, rows } = this.#storedIndexes;
    const { selection, first } = this.#placedRows.rows ?? this.#textBlock;
    const isCut = count < this.#textBlock.count;
    const isAll = !isCut && selection === null && first === base && count === rows;
    const textFields = new Map<string, Field>();
    let visibleBits: Int32Array | null | undefined;
    for (const column of columns) {
      const textIndex = this.#storedIndexes.index(column);
      if (textIndex === null || textIndex.rows !== rows) return null;
      const maskedCells = this.#textShowing.maskedCells(column);
      if (maskedCells === undefined && visibleBits === undefined)
        visibleBits = isAll
          ? null
          : isCut
            ? this.#visibleBits(count, null)
            : (this.#textShowing.bits ?? this.#visibleBits(count, null));
      textFields.set(column, {
        index: textIndex,
        shown: maskedCells === undefined ? visibleBits! : this.#visibleBits(count, maskedCells),
      });
    }
    return new SearchableTexts(textFields);
  }

  /** Rows of the block in numbers of its indexes; with a column, those whose cell is there. */
  #visibleBits(rowsMax: number, maskedColumn: Vector | null): Int32Array {
    const { base, rows } = this.#storedIndexes;
    const { selection, first, count } = this.#textBlock;
    const placedSelection = this.#placedRows.rows;
    const bits = new Int32Array((rows + 31) >>> 5);
    for (let k = 0; k < count && k < rowsMax; k++) {
      const row = selection === null ? first + k : selection[k]!;
      if (maskedColumn !== null && (maskedColumn.kind === 'null' || maskedColumn.nulls?.[row] === 1)) continue;
      const indexedRow =
        (placedSelection === null
          ? row
          : placedSelection.selection === null
            ? placedSelection.first + row
            : placedSelection.selection[row]!) - base;
      bits[indexedRow >>> 5]! |= 1 << (indexedRow & 31);
    }
    return bits;
  }
}

/** Columns of texts that can be searched: of nothing but what is shown. */
export class SearchableTexts {
  readonly #fieldsByColumn: ReadonlyMap<string, Field>;

  constructor(fields: ReadonlyMap<string, Field>) {
    this.#fieldsByColumn = fields;
  }

  /** `queries` has one for each of the columns. */
  search(columns: readonly string[], queries: readonly TextQuery[]): BlockSearch {
    return new BlockSearch(
      columns.map((column) => this.#fieldsByColumn.get(column)!),
      queries,
    );
  }

  /** Finds the stems of all terms in another language than that of the indexes, in steps. */
  *stem(language: string): Generator<undefined, void> {
    for (const { index } of this.#fieldsByColumn.values()) yield* stemTerms(index, language);
  }
}

export interface TextColumn {
  readonly name: string;
  readonly type: ColumnType;
  readonly vector: Vector;
}

/** Indexes rows that left the gate without an index, in steps: row k of the searches is the k-th of the rows. */
export function* indexTexts(
  columns: readonly TextColumn[],
  { selection, first, count }: Pick<RowBlock, 'selection' | 'first' | 'count'>,
  language: string,
): Generator<unknown, SearchableTexts> {
  const rowAt = (k: number): number => (selection === null ? first + k : selection[k]!);
  const indexedFields = new Map<string, Field>();
  for (const { name, type, vector } of columns) {
    indexedFields.set(name, { index: yield* textIndexOf(chosenCells(vector, type, count, rowAt), language), shown: null });
  }
  return new SearchableTexts(indexedFields);
}
