/** The texts of the row that is judged: each field is read once, however many rules test it. A stamp tells one row from the next. */
import { type ColumnTexts, type FieldReader, fieldReader, type Texts } from './row-texts.ts';

export class RowTextCache {
  readonly #fields: readonly string[];
  #readers: readonly (FieldReader | null)[] = [];
  #columns: readonly ColumnTexts[] = [];
  /** By field: its texts, and the stamp of the row that they are of. */
  readonly #texts: Texts[];
  readonly #textStamps: Float64Array;
  /** All texts of the row, for keywords. */
  #leaves: Texts = [];
  #leavesStamp = 0;

  constructor(fields: readonly string[]) {
    this.#fields = fields;
    this.#texts = fields.map(() => []);
    this.#textStamps = new Float64Array(fields.length);
  }

  /** Goes on to the columns of another batch. */
  open(columns: ReadonlyMap<string, ColumnTexts>): void {
    this.#columns = [...columns.values()];
    this.#readers = this.#fields.map((name) => fieldReader(columns, name));
  }

  /** Null where the batch has no column for the field. */
  readerOf(field: number): FieldReader | null {
    return this.#readers[field] ?? null;
  }

  textsOf(field: number, row: number, stamp: number): Texts {
    if (this.#textStamps[field] !== stamp) {
      this.#textStamps[field] = stamp;
      this.#texts[field] = this.#readers[field]?.(row) ?? [];
    }
    return this.#texts[field]!;
  }

  allTexts(row: number, stamp: number): Texts {
    if (this.#leavesStamp !== stamp) {
      this.#leavesStamp = stamp;
      this.#leaves = this.#columns.flatMap((column) => column.leaves(row));
    }
    return this.#leaves;
  }
}
