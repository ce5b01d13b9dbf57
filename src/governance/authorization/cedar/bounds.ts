/** Where values of an integer column change their class. */
import type { Rows } from './features.ts';
import { millisecondsOf, wordsOf } from './cells.ts';

/** Where many cuts are, a value's are found by its place between the first and the last. */
const boundBuckets = 1024;

/** Cuts of a column of timestamps are milliseconds. */
export class Bounds {
  readonly #wideCuts: readonly bigint[];
  readonly #nearCuts: Float64Array;
  readonly #exactCuts: Float64Array;
  readonly #intervalLabels: Int32Array;
  /** How many cuts lie in the buckets before one: where the search for a value begins. */
  readonly #bucketStarts: Int32Array | null;
  readonly #firstCut: number;
  readonly #bucketScale: number;

  constructor(cuts: readonly bigint[], labels: readonly number[]) {
    const distinctBounds: bigint[] = [];
    const keptLabels = [labels[0]!];
    cuts.forEach((cut, i) => {
      if (labels[i + 1] === keptLabels.at(-1)) return;
      distinctBounds.push(cut);
      keptLabels.push(labels[i + 1]!);
    });
    this.#wideCuts = distinctBounds;
    this.#intervalLabels = Int32Array.from(keptLabels);
    this.#nearCuts = Float64Array.from(distinctBounds, Number);
    // No double beyond 2^53 stands in a column, so a cut there is beyond all of them.
    this.#exactCuts = Float64Array.from(distinctBounds, (cut) =>
      cut > 2n ** 53n ? Infinity : cut < -(2n ** 53n) ? -Infinity : Number(cut),
    );
    this.#firstCut = this.#exactCuts[0] ?? 0;
    const cutsWidth = (this.#exactCuts.at(-1) ?? 0) - this.#firstCut;
    this.#bucketScale = (boundBuckets - 1) / cutsWidth;
    if (distinctBounds.length > 4 && Number.isFinite(cutsWidth)) {
      this.#bucketStarts = new Int32Array(boundBuckets);
      for (const cut of this.#exactCuts) {
        const bucket = Math.floor((cut - this.#firstCut) * this.#bucketScale);
        for (let after = bucket + 1; after < boundBuckets; after++) this.#bucketStarts[after]!++;
      }
    } else this.#bucketStarts = null;
  }

  #labelOf(comparedNumber: number): number {
    const exactCuts = this.#exactCuts;
    const bucketStarts = this.#bucketStarts;
    if (bucketStarts !== null) {
      const bucket = Math.floor((comparedNumber - this.#firstCut) * this.#bucketScale);
      // Multiplying and rounding keep order: cuts of lower buckets are below the value.
      let cutsBelow = bucket < 0 ? 0 : bucket < boundBuckets ? bucketStarts[bucket]! : exactCuts.length;
      while (cutsBelow < exactCuts.length && exactCuts[cutsBelow]! <= comparedNumber) cutsBelow++;
      return this.#intervalLabels[cutsBelow]!;
    }
    return this.#intervalLabels[countCutsUpTo(exactCuts, comparedNumber)]!;
  }

  /** For integers that doubles hold exactly. */
  classify(
    numberCells: Int32Array | Float64Array,
    nulls: Uint8Array | null,
    nullLabel: number,
    rows: Rows,
    shift: number,
    classesOut: Int32Array,
  ): void {
    const { selection, first, count } = rows;
    for (let k = 0; k < count; k++) {
      const row = selection === null ? first + k : selection[k]!;
      classesOut[k]! |= (nulls !== null && nulls[row] === 1 ? nullLabel : this.#labelOf(numberCells[row]!)) << shift;
    }
  }

  classifyInstants(
    instantCells: BigInt64Array,
    nulls: Uint8Array | null,
    nullLabel: number,
    rows: Rows,
    shift: number,
    classesOut: Int32Array,
  ): void {
    const instantWords = wordsOf(instantCells);
    const { selection, first, count } = rows;
    for (let k = 0; k < count; k++) {
      const row = selection === null ? first + k : selection[k]!;
      const isNull = nulls !== null && nulls[row] === 1;
      classesOut[k]! |=
        (isNull ? nullLabel : this.#labelOf(millisecondsOf(instantWords[2 * row]!, instantWords[2 * row + 1]!))) << shift;
    }
  }

  classifyWide(
    wideCells: BigInt64Array,
    nulls: Uint8Array | null,
    nullLabel: number,
    rows: Rows,
    shift: number,
    classesOut: Int32Array,
  ): void {
    const wideWords = wordsOf(wideCells);
    const { selection, first, count } = rows;
    for (let k = 0; k < count; k++) {
      const row = selection === null ? first + k : selection[k]!;
      const isNull = nulls !== null && nulls[row] === 1;
      classesOut[k]! |=
        (isNull ? nullLabel : this.#labelOfWide(wideWords[2 * row]!, wideWords[2 * row + 1]!, wideCells, row)) << shift;
    }
  }

  /** For an i64 cell. Its nearest double separates it from every cut but one with the same nearest double. */
  #labelOfWide(low: number, high: number, wideCells: BigInt64Array, row: number): number {
    const nearValue = high * 4_294_967_296 + (low >>> 0);
    const cutsBelow = countCutsUpTo(this.#nearCuts, nearValue);
    if (cutsBelow === 0 || this.#nearCuts[cutsBelow - 1] !== nearValue) return this.#intervalLabels[cutsBelow]!;
    const wideValue = wideCells[row]!;
    let exactCutsBelow = cutsBelow;
    while (exactCutsBelow > 0 && this.#wideCuts[exactCutsBelow - 1]! > wideValue) exactCutsBelow--;
    return this.#intervalLabels[exactCutsBelow]!;
  }
}

/** How many of these ascending numbers are at most `value`. */
function countCutsUpTo(ascendingCuts: Float64Array, value: number): number {
  if (ascendingCuts.length <= 4) {
    let cutsBelow = 0;
    while (cutsBelow < ascendingCuts.length && ascendingCuts[cutsBelow]! <= value) cutsBelow++;
    return cutsBelow;
  }
  let lowerCut = 0;
  let upperCut = ascendingCuts.length;
  while (lowerCut < upperCut) {
    const middle = (lowerCut + upperCut) >> 1;
    if (ascendingCuts[middle]! <= value) lowerCut = middle + 1;
    else upperCut = middle;
  }
  return lowerCut;
}
