/**
 * Numbers of the nodes that one column of edges names, a block at a time. Where storage says which rows have the same text, each
 * text of a segment is looked up once: but only texts of visible rows, because no others may be known here.
 */
import type { DistinctCells, Vector } from '../../log/values/columns.ts';
import type { TextInterner } from '../expressions/text-interner.ts';
import type { Batch } from '../operators/operator.ts';

type EndTexts = Extract<Vector, { kind: 'text' }>;

/** Look a block up row by row when it has fewer rows than this fraction (one in n) of the distinct texts. */
const rowsPerDistinctEnd = 8;

/** The empty text: it names nothing. */
const noEndNumber = -1;

export class EndNumbers {
  readonly #nodeNames: TextInterner;
  #distinctCells: DistinctCells | null = null;
  /** By cell: the number of its text; 0: not looked up so far. */
  #knownEnds = new Int32Array(0);
  #wantedEnds = new Uint8Array(0);
  #lookedUpRows = new Int32Array(0);
  #nodeOfRow = new Int32Array(0);

  constructor(nodeNames: TextInterner) {
    this.#nodeNames = nodeNames;
  }

  /** Codes + 1 into `endNumbers`; 0 where a row names nothing. */
  numberTexts(endTexts: EndTexts, batch: Batch, endNumbers: Int32Array): void {
    const distinctCells = endTexts.distinct?.cells() ?? null;
    if (distinctCells === null || batch.count * rowsPerDistinctEnd < distinctCells.firsts.length)
      return this.#numberOneByOne(endTexts, batch, endNumbers);
    if (this.#distinctCells !== distinctCells) this.#beginDistinct(distinctCells);
    if (this.#wantEnds(endTexts.nulls, distinctCells, batch)) this.#lookUpEnds(endTexts, distinctCells);
    this.#writeEndNumbers(endTexts.nulls, distinctCells, batch, endNumbers);
  }

  #numberOneByOne(endTexts: EndTexts, batch: Batch, endNumbers: Int32Array): void {
    this.#nodeNames.numbersOf(endTexts, batch, endNumbers);
    const { selection, first, count } = batch;
    for (let k = 0; k < count; k++) {
      const endRow = selection === null ? first + k : selection[k]!;
      if (endTexts.offsets[endRow] === endTexts.offsets[endRow + 1]) endNumbers[k] = 0;
    }
  }

  #beginDistinct(distinctCells: DistinctCells): void {
    const { length: distinctCount } = distinctCells.firsts;
    this.#distinctCells = distinctCells;
    if (this.#knownEnds.length < distinctCount) {
      this.#knownEnds = new Int32Array(distinctCount);
      this.#wantedEnds = new Uint8Array(distinctCount);
      this.#lookedUpRows = new Int32Array(distinctCount);
      this.#nodeOfRow = new Int32Array(distinctCount);
    }
    this.#knownEnds.fill(0, 0, distinctCount);
  }

  #wantEnds(nulls: Uint8Array | null, { codes }: DistinctCells, { selection, first, count }: Batch): boolean {
    const knownEnds = this.#knownEnds;
    const wantedEnds = this.#wantedEnds;
    let anyWanted = 0;
    for (let k = 0; k < count; k++) {
      const endRow = selection === null ? first + k : selection[k]!;
      if (nulls !== null && nulls[endRow] === 1) continue;
      const endCode = codes[endRow]!;
      const isNew = knownEnds[endCode] === 0 ? 1 : 0;
      wantedEnds[endCode] = isNew;
      anyWanted |= isNew;
    }
    return anyWanted === 1;
  }

  #lookUpEnds(endTexts: EndTexts, { firsts }: DistinctCells): void {
    const wantedEnds = this.#wantedEnds;
    const lookedUpRows = this.#lookedUpRows;
    let lookedUpCount = 0;
    for (let endCode = 0; endCode < firsts.length; endCode++)
      if (wantedEnds[endCode] === 1) lookedUpRows[lookedUpCount++] = firsts[endCode]!;
    const nodeOfRow = this.#nodeOfRow;
    this.#nodeNames.numbersOf(endTexts, { selection: lookedUpRows, first: 0, count: lookedUpCount }, nodeOfRow);
    const { offsets } = endTexts;
    for (let code = 0, foundOrdinal = 0; code < firsts.length; code++) {
      if (wantedEnds[code] === 0) continue;
      const endRow = firsts[code]!;
      this.#knownEnds[code] = offsets[endRow] === offsets[endRow + 1] ? noEndNumber : nodeOfRow[foundOrdinal]!;
      wantedEnds[code] = 0;
      foundOrdinal++;
    }
  }

  #writeEndNumbers(
    nulls: Uint8Array | null,
    { codes }: DistinctCells,
    { selection, first, count }: Batch,
    endNumbers: Int32Array,
  ): void {
    const knownEnds = this.#knownEnds;
    for (let k = 0; k < count; k++) {
      const endRow = selection === null ? first + k : selection[k]!;
      const endNumber = nulls !== null && nulls[endRow] === 1 ? 0 : knownEnds[codes[endRow]!]!;
      endNumbers[k] = endNumber > 0 ? endNumber : 0;
    }
  }
}
