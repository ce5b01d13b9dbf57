/**
 * Numbers of the nodes that one column of edges names, a block at a time. Where storage says which rows have the same text, each
 * text of a segment is looked up once: but only texts of visible rows, because no others may be known here.
 */
import type { DistinctCells, Vector } from '../../log/values/columns.ts';
import type { TextInterner } from '../expressions/text-interner.ts';
import type { Batch } from '../operators/operator.ts';

type Texts = Extract<Vector, { kind: 'text' }>;

/** Look a block up row by row when it has fewer rows than this fraction (one in n) of the distinct texts. */
const rowsOfTexts = 8;

/** The empty text: it names nothing. */
const nobody = -1;

export class EndNumbers {
  readonly #names: TextInterner;
  #cells: DistinctCells | null = null;
  /** By cell: the number of its text; 0: not looked up so far. */
  #known = new Int32Array(0);
  #wanted = new Uint8Array(0);
  #rows = new Int32Array(0);
  #nodeOfRow = new Int32Array(0);

  constructor(names: TextInterner) {
    this.#names = names;
  }

  /** Codes + 1 into `out`; 0 where a row names nothing. */
  numberTexts(texts: Texts, batch: Batch, out: Int32Array): void {
    const cells = texts.distinct?.cells() ?? null;
    if (cells === null || batch.count * rowsOfTexts < cells.firsts.length) return this.#oneByOne(texts, batch, out);
    if (this.#cells !== cells) this.#begin(cells);
    if (this.#want(texts.nulls, cells, batch)) this.#lookUp(texts, cells);
    this.#tell(texts.nulls, cells, batch, out);
  }

  #oneByOne(texts: Texts, batch: Batch, out: Int32Array): void {
    this.#names.numbersOf(texts, batch, out);
    const { selection, first, count } = batch;
    for (let k = 0; k < count; k++) {
      const row = selection === null ? first + k : selection[k]!;
      if (texts.offsets[row] === texts.offsets[row + 1]) out[k] = 0;
    }
  }

  #begin(cells: DistinctCells): void {
    const { length } = cells.firsts;
    this.#cells = cells;
    if (this.#known.length < length) {
      this.#known = new Int32Array(length);
      this.#wanted = new Uint8Array(length);
      this.#rows = new Int32Array(length);
      this.#nodeOfRow = new Int32Array(length);
    }
    this.#known.fill(0, 0, length);
  }

  #want(nulls: Uint8Array | null, { codes }: DistinctCells, { selection, first, count }: Batch): boolean {
    const known = this.#known;
    const wanted = this.#wanted;
    let any = 0;
    for (let k = 0; k < count; k++) {
      const row = selection === null ? first + k : selection[k]!;
      if (nulls !== null && nulls[row] === 1) continue;
      const code = codes[row]!;
      const isNew = known[code] === 0 ? 1 : 0;
      wanted[code] = isNew;
      any |= isNew;
    }
    return any === 1;
  }

  #lookUp(texts: Texts, { firsts }: DistinctCells): void {
    const wanted = this.#wanted;
    const rows = this.#rows;
    let count = 0;
    for (let code = 0; code < firsts.length; code++) if (wanted[code] === 1) rows[count++] = firsts[code]!;
    const nodeOfRow = this.#nodeOfRow;
    this.#names.numbersOf(texts, { selection: rows, first: 0, count }, nodeOfRow);
    const { offsets } = texts;
    for (let code = 0, at = 0; code < firsts.length; code++) {
      if (wanted[code] === 0) continue;
      const row = firsts[code]!;
      this.#known[code] = offsets[row] === offsets[row + 1] ? nobody : nodeOfRow[at]!;
      wanted[code] = 0;
      at++;
    }
  }

  #tell(nulls: Uint8Array | null, { codes }: DistinctCells, { selection, first, count }: Batch, out: Int32Array): void {
    const known = this.#known;
    for (let k = 0; k < count; k++) {
      const row = selection === null ? first + k : selection[k]!;
      const number = nulls !== null && nulls[row] === 1 ? 0 : known[codes[row]!]!;
      out[k] = number > 0 ? number : 0;
    }
  }
}
