/**
 * Values of one column to small numbers, in order of first appearance: 0 is NULL, the first value is 1. Equal values have one
 * number in all layouts and dictionaries. Open addressing over typed arrays, no object per value.
 */
import { assert } from '../../errors.ts';
import type { Dictionary, Vector } from '../../log/values/columns.ts';
import type { ColumnType } from '../../log/values/value.ts';
import { TextInterner } from '../expressions/text-interner.ts';
import type { Batch } from './operator.ts';
import { doubleLength, hashWords } from './pair-numbers.ts';

/** Numbers of one column. `isExact` is for integers and numbers side by side under the type number; `fillFactor` is as in `fillOf`. */
export function valueNumbers(type: ColumnType, { exact: isExact = false, fill: fillFactor = 1 } = {}): ValueNumbers {
  return type === 'string' || type === 'json' ? new TextNumbers(fillFactor) : new ScalarNumbers(type, isExact, fillFactor);
}

/** The numbers by which a key finds rows. */
export interface KeyNumbers {
  /** The largest number. */
  readonly size: number;
  readonly bytes: number;
  /** Numbers of the rows of a batch into `out`: 0 for NULL, else from 1. */
  assign(vector: Vector, batch: Batch, out: Int32Array): void;
  /** Numbers as `assign` gives them without taking in new values: 0 for NULL and for what never came. */
  find(vector: Vector, batch: Batch, out: Int32Array): void;
}

/** Its size counts distinct values but NULL. */
export interface ValueNumbers extends KeyNumbers {
  /** Takes in new values, and no more; `scratch` has room for the rows. */
  meet(vector: Vector, batch: Batch, scratch: Int32Array): void;
  /** For a column of small numbers without NULL, numbers by value: 0, or beyond the end, where a value has none yet. */
  tableOf(vector: Vector): Int32Array | null;
  vector(numbers: Int32Array): Vector;
}

export class TextNumbers implements ValueNumbers {
  readonly #textInterner: TextInterner;
  /** Results of `find` for foreign codes: a number, -1 for a text that never came, 0 not asked yet. */
  readonly #foundNumbers = new Map<Dictionary, Int32Array>();

  constructor(fill: number) {
    this.#textInterner = new TextInterner(fill);
  }

  get size(): number {
    return this.#textInterner.size;
  }

  get bytes(): number {
    return this.#textInterner.bytes;
  }

  assign(textVector: Vector, { selection, first, count }: Batch, textNumbers: Int32Array): void {
    const textInterner = this.#textInterner;
    if (textVector.kind === 'null') {
      textNumbers.fill(0, 0, count);
      return;
    }
    const nulls = textVector.nulls;
    if (textVector.kind === 'dict') {
      const { values, dictionary } = textVector;
      if (nulls === null) {
        const foreignNumbers = this.complete(textVector, { columns: [], selection, first, count });
        if (selection === null) for (let j = 0; j < count; j++) textNumbers[j] = foreignNumbers[values[first + j]!]!;
        else for (let j = 0; j < count; j++) textNumbers[j] = foreignNumbers[values[selection[j]!]!]!;
        return;
      }
      const table = textInterner.foreign(dictionary);
      for (let j = 0; j < count; j++) {
        const i = selection === null ? first + j : selection[j]!;
        if (nulls[i] === 1) textNumbers[j] = 0;
        else textNumbers[j] = table[values[i]!] || textInterner.numberOfForeign(dictionary, values[i]!);
      }
      return;
    }
    assert(textVector.kind === 'text', 'text rests in text or dict');
    textInterner.numbersOf(textVector, { selection, first, count }, textNumbers);
  }

  meet(vector: Vector, batch: Batch, scratch: Int32Array): void {
    if (vector.kind === 'dict' && vector.nulls === null) this.complete(vector, batch);
    else this.assign(vector, batch, scratch);
  }

  find(textVector: Vector, { selection, first, count }: Batch, textNumbers: Int32Array): void {
    const textInterner = this.#textInterner;
    if (textVector.kind === 'null') {
      textNumbers.fill(0, 0, count);
      return;
    }
    const nulls = textVector.nulls;
    if (textVector.kind === 'dict') {
      const { values, dictionary } = textVector;
      const foundNumbers = this.#numberTable(dictionary);
      for (let j = 0; j < count; j++) {
        const i = selection === null ? first + j : selection[j]!;
        if (nulls !== null && nulls[i] === 1) textNumbers[j] = 0;
        else {
          const foundNumber = foundNumbers[values[i]!]! || this.#lookUpText(dictionary, foundNumbers, values[i]!);
          textNumbers[j] = foundNumber < 0 ? 0 : foundNumber;
        }
      }
      return;
    }
    assert(textVector.kind === 'text', 'text rests in text or dict');
    const { offsets, heap } = textVector;
    for (let j = 0; j < count; j++) {
      const i = selection === null ? first + j : selection[j]!;
      textNumbers[j] = nulls !== null && nulls[i] === 1 ? 0 : textInterner.codeOfBytes(heap, offsets[i]!, offsets[i + 1]!) + 1;
    }
  }

  tableOf(vector: Vector): Int32Array | null {
    return vector.kind === 'dict' && vector.nulls === null ? this.#textInterner.foreign(vector.dictionary) : null;
  }

  /** The table from codes to numbers, with an entry for every code of the batch. */
  complete({ values, dictionary }: Extract<Vector, { kind: 'dict' }>, { selection, first, count }: Batch): Int32Array {
    const foreignNumbers = this.#textInterner.foreign(dictionary);
    let missingSign = 0;
    if (selection === null) for (let i = first; i < first + count; i++) missingSign |= foreignNumbers[values[i]!]! - 1;
    else for (let j = 0; j < count; j++) missingSign |= foreignNumbers[values[selection[j]!]!]! - 1;
    // Entries are above 0: only an absent one minus 1 is negative.
    if (missingSign >= 0) return foreignNumbers;
    for (let j = 0; j < count; j++) {
      const textCode = values[selection === null ? first + j : selection[j]!]!;
      if (foreignNumbers[textCode] === 0) this.#textInterner.ofForeign(dictionary, textCode);
    }
    return foreignNumbers;
  }

  #numberTable(dictionary: Dictionary): Int32Array {
    let table = this.#foundNumbers.get(dictionary);
    if (!table || table.length < dictionary.size) this.#foundNumbers.set(dictionary, (table = new Int32Array(dictionary.size)));
    return table;
  }

  #lookUpText(dictionary: Dictionary, foundNumbers: Int32Array, textCode: number): number {
    return (foundNumbers[textCode] = this.#textInterner.codeOf(dictionary.text(textCode)) + 1 || -1);
  }

  vector(numbers: Int32Array): Vector {
    return {
      kind: 'dict',
      values: numbers.map((textNumber) => textNumber - 1),
      dictionary: this.#textInterner,
      nulls: nullNumbers(numbers),
    };
  }
}

/** The most slots of the table of small integers, and the most for each value met. */
const smallIntegerMax = 1 << 24;
const smallSlotsPerValue = 16;
const smallIntegersMin = 65_536;
/** A table of values that is shorter moves at once, … */
const gradualMoveSlots = 1 << 16;
/** … a longer one takes a few slots for every few new values. */
const movedSlotsPerStep = 256;
const valuesBetweenMoves = 8;

/** One number per value in all layouts: integers, instants and booleans by their 64 bits, doubles by theirs. */
class ScalarNumbers implements ValueNumbers {
  readonly #isOfDoubles: boolean;
  readonly #type: ColumnType;
  readonly #isExact: boolean;
  readonly #fillFactor: number;
  /** Numbers of the integers from 0 to its length, which most keys are. All others are found by their hash. */
  #smallIntegers = new Int32Array(1_024);
  /** Numbers of doubles by hundredths, as amounts mostly are: 0 where the hash table has to be asked. */
  #hundredths = new Int32Array(1_024);
  #valueSlots = new Int32Array(256);
  /** The table that values move from, and how far they have: a large one grows a few values at a time, as pairs do. */
  #smallerSlots: Int32Array | null = null;
  #movedSlots = 0;
  #hashedValues = 0;
  #highWords: Int32Array<ArrayBuffer>;
  #lowWords: Int32Array<ArrayBuffer>;
  size = 0;

  /** `isExact`: an integer that no double equals has no number among doubles; it is then 0, as NULL is. */
  constructor(type: ColumnType, isExact: boolean, fillFactor: number) {
    this.#type = type;
    this.#fillFactor = fillFactor;
    this.#highWords = new Int32Array(Math.ceil(128 * fillFactor));
    this.#lowWords = new Int32Array(Math.ceil(128 * fillFactor));
    this.#isOfDoubles = type === 'number';
    this.#isExact = isExact;
  }

  get bytes(): number {
    return (
      this.#smallIntegers.byteLength +
      this.#hundredths.byteLength +
      this.#valueSlots.byteLength +
      (this.#smallerSlots?.byteLength ?? 0) +
      this.#highWords.byteLength +
      this.#lowWords.byteLength
    );
  }

  assign(vector: Vector, batch: Batch, scalarNumbers: Int32Array): void {
    this.#numberScalars(vector, batch, scalarNumbers, true);
  }

  meet(vector: Vector, batch: Batch, scratch: Int32Array): void {
    this.#numberScalars(vector, batch, scratch, true);
  }

  find(vector: Vector, batch: Batch, scalarNumbers: Int32Array): void {
    this.#numberScalars(vector, batch, scalarNumbers, false);
  }

  tableOf(vector: Vector): Int32Array | null {
    return vector.kind === 'i32' && vector.nulls === null ? this.#smallIntegers : null;
  }

  #numberScalars(scalarVector: Vector, batch: Batch, scalarNumbers: Int32Array, addsValues: boolean): void {
    switch (scalarVector.kind) {
      case 'null':
        scalarNumbers.fill(0, 0, batch.count);
        return;
      case 'i32':
        return this.#numberInt32s(scalarVector.values, scalarVector.nulls, batch, scalarNumbers, addsValues);
      case 'f64':
        return this.#numberDoubles(scalarVector.values, scalarVector.nulls, batch, scalarNumbers, addsValues);
      case 'i64':
        return this.#numberBigInts(scalarVector.values, scalarVector.nulls, batch, scalarNumbers, addsValues);
      case 'bool':
        return this.#numberBooleans(scalarVector.values, scalarVector.nulls, batch, scalarNumbers, addsValues);
      default:
        assert(false, 'a scalar key');
    }
  }

  // One function per kind of array: a shared one would be slow for each.

  #numberInt32s(
    scalarIntegers: Int32Array,
    nulls: Uint8Array | null,
    { selection, first, count }: Batch,
    scalarNumbers: Int32Array,
    addsValues: boolean,
  ): void {
    let smallIntegers = this.#smallIntegers;
    for (let j = 0; j < count; j++) {
      const i = selection === null ? first + j : selection[j]!;
      if (nulls !== null && nulls[i] === 1) {
        scalarNumbers[j] = 0;
        continue;
      }
      const scalarInteger = scalarIntegers[i]!;
      const knownNumber = scalarInteger >= 0 && scalarInteger < smallIntegers.length ? smallIntegers[scalarInteger]! : 0;
      if (knownNumber !== 0) scalarNumbers[j] = knownNumber;
      else {
        scalarNumbers[j] = this.#integerNumber(scalarInteger, addsValues);
        smallIntegers = this.#smallIntegers;
      }
    }
  }

  #numberDoubles(
    scalarDoubles: Float64Array,
    nulls: Uint8Array | null,
    { selection, first, count }: Batch,
    scalarNumbers: Int32Array,
    addsValues: boolean,
  ): void {
    let smallIntegers = this.#smallIntegers;
    let hundredths = this.#hundredths;
    let { size } = this;
    for (let j = 0; j < count; j++) {
      const i = selection === null ? first + j : selection[j]!;
      if (nulls !== null && nulls[i] === 1) {
        scalarNumbers[j] = 0;
        continue;
      }
      const scalarDouble = scalarDoubles[i]!;
      const knownNumber =
        scalarDouble >= 0 && scalarDouble < smallIntegers.length && scalarDouble === (scalarDouble | 0)
          ? smallIntegers[scalarDouble | 0]!
          : 0;
      if (knownNumber !== 0) {
        scalarNumbers[j] = knownNumber;
        continue;
      }
      const nearHundredth = scalarDouble * 100 + 0.5;
      // No other double has the same quotient, so the entry belongs to this value.
      const hundredthNumber =
        nearHundredth >= 0 && nearHundredth < hundredths.length && (nearHundredth | 0) / 100 === scalarDouble
          ? hundredths[nearHundredth | 0]!
          : 0;
      if (hundredthNumber !== 0) {
        scalarNumbers[j] = hundredthNumber;
        continue;
      }
      scalarNumbers[j] = Number.isInteger(scalarDouble)
        ? this.#integerNumber(scalarDouble, addsValues)
        : this.#doubleNumber(scalarDouble, addsValues);
      if (this.size === size) continue;
      size = this.size;
      this.#rememberHundredths(scalarDouble);
      smallIntegers = this.#smallIntegers;
      hundredths = this.#hundredths;
    }
  }

  #numberBigInts(
    scalarBigInts: BigInt64Array,
    nulls: Uint8Array | null,
    { selection, first, count }: Batch,
    scalarNumbers: Int32Array,
    addsValues: boolean,
  ): void {
    const bigIntWords = new Int32Array(scalarBigInts.buffer, scalarBigInts.byteOffset, scalarBigInts.length * 2);
    for (let j = 0; j < count; j++) {
      const i = selection === null ? first + j : selection[j]!;
      if (nulls !== null && nulls[i] === 1) scalarNumbers[j] = 0;
      else if (bigIntWords[2 * i + 1] === 0 && bigIntWords[2 * i]! >= 0)
        scalarNumbers[j] = this.#integerNumber(bigIntWords[2 * i]!, addsValues);
      else if (this.#isOfDoubles) scalarNumbers[j] = this.#bigIntNumber(scalarBigInts[i]!, addsValues);
      else scalarNumbers[j] = this.#wordsNumber(bigIntWords[2 * i + 1]!, bigIntWords[2 * i]!, addsValues);
    }
  }

  #numberBooleans(
    scalarBytes: Uint8Array,
    nulls: Uint8Array | null,
    { selection, first, count }: Batch,
    scalarNumbers: Int32Array,
    addsValues: boolean,
  ): void {
    for (let j = 0; j < count; j++) {
      const i = selection === null ? first + j : selection[j]!;
      scalarNumbers[j] = nulls !== null && nulls[i] === 1 ? 0 : this.#integerNumber(scalarBytes[i]!, addsValues);
    }
  }

  vector(numbers: Int32Array): Vector {
    const nullValues = nullNumbers(numbers);
    const numberCount = numbers.length;
    if (this.#type === 'boolean')
      return {
        kind: 'bool',
        values: Uint8Array.from(numbers, (valueNumber) => (valueNumber === 0 ? 0 : this.#lowWords[valueNumber - 1]!)),
        nulls: nullValues,
      };
    const int32Values = this.#type === 'integer' ? this.#int32Values(numbers) : null;
    if (int32Values) return { kind: 'i32', values: int32Values, nulls: nullValues };
    const valueWords = new Int32Array(numberCount * 2);
    for (let j = 0; j < numberCount; j++) {
      if (numbers[j] === 0) continue;
      valueWords[2 * j] = this.#lowWords[numbers[j]! - 1]!;
      valueWords[2 * j + 1] = this.#highWords[numbers[j]! - 1]!;
    }
    if (this.#isOfDoubles) return { kind: 'f64', values: new Float64Array(valueWords.buffer), nulls: nullValues };
    return { kind: 'i64', values: new BigInt64Array(valueWords.buffer), nulls: nullValues };
  }

  /** The values in 32 bits; null where one needs more. */
  #int32Values(numbers: Int32Array): Int32Array | null {
    const narrowValues = new Int32Array(numbers.length);
    for (let j = 0; j < numbers.length; j++) {
      if (numbers[j] === 0) continue;
      const lowWord = this.#lowWords[numbers[j]! - 1]!;
      if (this.#highWords[numbers[j]! - 1] !== lowWord >> 31) return null;
      narrowValues[j] = lowWord;
    }
    return narrowValues;
  }

  /** An integer within 2^53. */
  #integerNumber(scalarInteger: number, addsValues: boolean): number {
    if (
      scalarInteger >= 0 &&
      scalarInteger < smallIntegerMax &&
      (scalarInteger < this.#smallIntegers.length || this.#growsToReach(scalarInteger))
    ) {
      const knownNumber = this.#smallIntegers[scalarInteger]!;
      if (knownNumber !== 0 || !addsValues) return knownNumber;
      if (this.#isOfDoubles) {
        scratchDouble[0] = scalarInteger + 0;
        return (this.#smallIntegers[scalarInteger] = this.#appendValue(scratchWords[1]!, scratchWords[0]!));
      }
      return (this.#smallIntegers[scalarInteger] = this.#appendValue(0, scalarInteger));
    }
    return this.#isOfDoubles
      ? this.#doubleNumber(scalarInteger, addsValues)
      : this.#wordsNumber(Math.floor(scalarInteger / wordSize), scalarInteger | 0, addsValues);
  }

  /** Called for a value that was just met. */
  #rememberHundredths(scalarDouble: number): void {
    const hundredths = Math.floor(scalarDouble * 100 + 0.5);
    if (!(hundredths >= 0 && hundredths < smallIntegerMax && hundredths / 100 === scalarDouble)) return;
    if (hundredths < this.#hundredths.length) {
      this.#hundredths[hundredths] = this.size;
      return;
    }
    if (hundredths >= Math.max(smallIntegersMin, this.size * smallSlotsPerValue)) return;
    let hundredthsLength = this.#hundredths.length;
    while (hundredthsLength <= hundredths) hundredthsLength *= 2;
    this.#hundredths = new Int32Array(hundredthsLength);
    for (let valueIndex = 0; valueIndex < this.size; valueIndex++) {
      const numberedDouble = this.#numberedValue(valueIndex);
      const numberedPlace = Math.floor(numberedDouble * 100 + 0.5);
      if (numberedPlace >= 0 && numberedPlace < hundredthsLength && numberedPlace / 100 === numberedDouble)
        this.#hundredths[numberedPlace] = valueIndex + 1;
    }
  }

  /** Makes the table of small integers longer where that is worth it. */
  #growsToReach(reachedInteger: number): boolean {
    if (reachedInteger >= Math.max(smallIntegersMin, this.size * smallSlotsPerValue)) return false;
    let smallLength = this.#smallIntegers.length;
    while (smallLength <= reachedInteger) smallLength *= 2;
    const largerSmall = new Int32Array(smallLength);
    largerSmall.set(this.#smallIntegers);
    // Moves values from the hash table to the direct table, which now has room for them.
    for (let valueIndex = 0; valueIndex < this.size; valueIndex++) {
      const numberedInteger = this.#numberedValue(valueIndex);
      if (numberedInteger >= this.#smallIntegers.length && numberedInteger < smallLength && Number.isInteger(numberedInteger))
        largerSmall[numberedInteger] = valueIndex + 1;
    }
    this.#smallIntegers = largerSmall;
    return true;
  }

  #numberedValue(valueIndex: number): number {
    if (!this.#isOfDoubles) return this.#highWords[valueIndex]! * wordSize + (this.#lowWords[valueIndex]! >>> 0);
    scratchWords[0] = this.#lowWords[valueIndex]!;
    scratchWords[1] = this.#highWords[valueIndex]!;
    return scratchDouble[0]!;
  }

  #bigIntNumber(scalarBigInt: bigint, addsValues: boolean): number {
    const nearestDouble = Number(scalarBigInt);
    return this.#isExact && BigInt(nearestDouble) !== scalarBigInt ? 0 : this.#doubleNumber(nearestDouble, addsValues);
  }

  #doubleNumber(scalarDouble: number, addsValues: boolean): number {
    // Adding 0 makes -0, which equals 0, the same 64 bits.
    scratchDouble[0] = scalarDouble + 0;
    return this.#wordsNumber(scratchWords[1]!, scratchWords[0]!, addsValues);
  }

  #wordsNumber(highWord: number, lowWord: number, addsValues: boolean): number {
    highWord |= 0;
    lowWord |= 0;
    const valueSlots = this.#valueSlots;
    const slotMask = valueSlots.length - 1;
    let probedSlot = hashWords(highWord, lowWord) & slotMask;
    for (;;) {
      const probedNumber = valueSlots[probedSlot]!;
      if (probedNumber === 0) break;
      if (this.#lowWords[probedNumber - 1] === lowWord && this.#highWords[probedNumber - 1] === highWord) return probedNumber;
      probedSlot = (probedSlot + 1) & slotMask;
    }
    if (this.#smallerSlots !== null) {
      const probedNumber = this.#findInSmaller(this.#smallerSlots, highWord, lowWord);
      if (probedNumber !== 0) return probedNumber;
    }
    if (!addsValues) return 0;
    valueSlots[probedSlot] = this.#appendValue(highWord, lowWord);
    this.#hashedValues++;
    if (this.#smallerSlots !== null) {
      if (this.#hashedValues % valuesBetweenMoves === 0) this.#moveSlots(this.#smallerSlots, movedSlotsPerStep);
    } else if (this.#hashedValues * 2 > valueSlots.length * this.#fillFactor) this.#growSlots();
    return this.size;
  }

  #findInSmaller(smallerSlots: Int32Array, highWord: number, lowWord: number): number {
    const slotMask = smallerSlots.length - 1;
    for (let probedSlot = hashWords(highWord, lowWord) & slotMask; ; probedSlot = (probedSlot + 1) & slotMask) {
      const probedNumber = smallerSlots[probedSlot]!;
      if (probedNumber === 0 || (this.#lowWords[probedNumber - 1] === lowWord && this.#highWords[probedNumber - 1] === highWord))
        return probedNumber;
    }
  }

  #appendValue(highWord: number, lowWord: number): number {
    const valueIndex = this.size++;
    if (valueIndex === this.#lowWords.length) {
      this.#lowWords = doubleLength(this.#lowWords);
      this.#highWords = doubleLength(this.#highWords);
    }
    this.#lowWords[valueIndex] = lowWord;
    this.#highWords[valueIndex] = highWord;
    return valueIndex + 1;
  }

  #growSlots(): void {
    const smallerSlots = this.#valueSlots;
    this.#valueSlots = new Int32Array(smallerSlots.length * 2);
    this.#smallerSlots = smallerSlots;
    this.#movedSlots = 0;
    if (smallerSlots.length < gradualMoveSlots) this.#moveSlots(smallerSlots, smallerSlots.length);
  }

  #moveSlots(smallerSlots: Int32Array, count: number): void {
    const valueSlots = this.#valueSlots;
    const slotMask = valueSlots.length - 1;
    const moveEnd = Math.min(smallerSlots.length, this.#movedSlots + count);
    for (let movedSlot = this.#movedSlots; movedSlot < moveEnd; movedSlot++) {
      const movedNumber = smallerSlots[movedSlot]!;
      if (movedNumber === 0) continue;
      let targetSlot = hashWords(this.#highWords[movedNumber - 1]!, this.#lowWords[movedNumber - 1]!) & slotMask;
      while (valueSlots[targetSlot] !== 0) targetSlot = (targetSlot + 1) & slotMask;
      valueSlots[targetSlot] = movedNumber;
    }
    this.#movedSlots = moveEnd;
    if (moveEnd === smallerSlots.length) this.#smallerSlots = null;
  }
}

const wordSize = 4_294_967_296;
const scratchDouble = new Float64Array(1);
const scratchWords = new Int32Array(scratchDouble.buffer);

function nullNumbers(numbers: Int32Array): Uint8Array | null {
  if (!numbers.includes(0)) return null;
  return Uint8Array.from(numbers, (valueNumber) => (valueNumber === 0 ? 1 : 0));
}
