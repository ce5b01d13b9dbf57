/**
 * Running results of one aggregate function for all groups. Doubles are added in the order of rows, one by one: the same
 * rows give the same bits, whether the loop over them is generated or a kernel. Sums of integers are exact: high and low
 * words apart, put together at the end.
 */
import { AssertionError, assert, ServiceError } from '../../errors.ts';
import type { Dictionary, Vector } from '../../log/values/columns.ts';
import { type ColumnType, compareText, I64_MAX, I64_MIN } from '../../log/values/value.ts';
import { integerOverflow, numberOverflow } from '../expressions/evaluate.ts';
import type { AggregateCall } from '../logical-plan.ts';
import {
  type Accumulator,
  type Fragment,
  type KernelShare,
  type KernelStep,
  isFixed,
  larger,
  RowByRow,
} from './aggregate-loop.ts';
import { cellAccumulator } from './cell-accumulators.ts';
import type { Batch } from './operator.ts';
import { OfDistinct } from './distinct-values.ts';

/** `columnTypes` are those of the input's columns. */
export function accumulator(aggregateCall: AggregateCall, columnTypes: readonly ColumnType[]): Accumulator {
  const { function: name, column } = aggregateCall;
  if (column === null) return new CountAccumulator(null);
  const columnType = columnTypes[column];
  assert(columnType !== undefined, 'a column has a type');
  if (aggregateCall.wire === 'interval') return cellAccumulator(aggregateCall, column, columnTypes);
  switch (name) {
    case 'count':
    case 'sum':
    case 'avg': {
      const countsVectors =
        name === 'count' ? aggregateCall.distinct && columnType === 'vector' : columnType === 'vector' || columnType === 'string';
      if (countsVectors) return cellAccumulator(aggregateCall, column, columnTypes);
      const columnAccumulator =
        name === 'count'
          ? new CountAccumulator(column)
          : columnType === 'integer'
            ? new IntegerSum(column, name)
            : new NumberSum(column, name);
      return aggregateCall.distinct ? new OfDistinct(columnAccumulator, column, columnType) : columnAccumulator;
    }
    case 'min':
    case 'max':
      if (columnType === 'string') return new TextExtreme(column, name);
      return columnType === 'number' ? new NumberExtreme(column, name) : new IntegerExtreme(column, columnType, name);
    default:
      return cellAccumulator(aggregateCall, column, columnTypes);
  }
}

/** Up to two doubles per group and the count of NULLs. The arrays grow as groups are written, no further. */
abstract class DoubleAccumulator {
  readonly byPlace = false;
  protected a = new Float64Array(16);
  protected b = new Float64Array(16);
  protected c = new Float64Array(16);
  readonly #doubleArrays: 0 | 1 | 2;
  readonly #initialDouble: number;

  /** `doubles` is how many of `a` and `c` are in use; `initial` what `a` starts from: below or above every value for an extreme. */
  constructor(doubles: 0 | 1 | 2, initial = 0) {
    this.#doubleArrays = doubles;
    this.#initialDouble = initial;
    this.a.fill(initial);
  }

  get bytes(): number {
    return this.a.byteLength + this.b.byteLength + this.c.byteLength;
  }

  update(): void {
    throw new AssertionError('these share one loop');
  }

  /** Room for groups below `groupsMax` in as many arrays as the function has, that of NULLs included where there may be some. */
  protected reserve(groupsMax: number, mayBeNull: boolean): void {
    if (this.#doubleArrays > 0 && this.a.length < groupsMax) this.a = larger(this.a, groupsMax, this.#initialDouble);
    if (this.#doubleArrays > 1 && this.c.length < groupsMax) this.c = larger(this.c, groupsMax, 0);
    if (mayBeNull && this.b.length < groupsMax) this.b = larger(this.b, groupsMax, 0);
  }

  /** For a function whose doubles kernels continue directly. */
  share(batch: Batch, groupsMax: number): KernelShare {
    const batchVector = this.vector(batch);
    this.reserve(groupsMax, batchVector !== null && (batchVector.kind === 'null' || batchVector.nulls !== null));
    return { doubles: this.a, absent: this.b, take: null };
  }

  protected abstract vector(batch: Batch): Vector | null;

  protected fragment(body: string, values: ArrayLike<number>, nulls: Uint8Array | null, groupsMax: number): Fragment {
    this.reserve(groupsMax, nulls !== null || body === countNullsCode);
    return { body, values, nulls, a: this.a, b: this.b, c: this.c };
  }

  /** All rows of a batch are NULL. */
  protected nullsFragment(groupsMax: number): Fragment {
    return this.fragment(countNullsCode, noValues, null, groupsMax);
  }

  /** Groups without a value have no result. */
  protected nulls(groupNumbers: Int32Array, groupRowCounts: Float64Array): Uint8Array | null {
    let nullGroups: Uint8Array | null = null;
    for (let j = 0; j < groupNumbers.length; j++) {
      if (this.absent(groupNumbers[j]!) === groupRowCounts[groupNumbers[j]!])
        (nullGroups ??= new Uint8Array(groupNumbers.length))[j] = 1;
    }
    return nullGroups;
  }

  /** NULLs of a group; `b` ends before the groups that came after the last NULL. */
  protected absent(group: number): number {
    return group < this.b.length ? this.b[group]! : 0;
  }
}

/** The statement for a row without a value. */
const countNullsCode = 'B++;';
const noValues: readonly number[] = [];

class CountAccumulator extends DoubleAccumulator implements Accumulator {
  readonly #countedColumn: number | null;

  constructor(column: number | null) {
    super(0);
    this.#countedColumn = column;
  }

  protected vector(batch: Batch): Vector | null {
    return this.#countedColumn === null ? null : batch.columns[this.#countedColumn]!;
  }

  step(batch: Batch): KernelStep {
    const countedVector = this.vector(batch);
    return countedVector && isFixed(countedVector) && countedVector.nulls
      ? { kernel: 'countAbsent', vector: countedVector }
      : { kernel: 'count', vector: countedVector };
  }

  prepare(batch: Batch, groupsMax: number): Fragment {
    const countedVector = this.vector(batch);
    if (countedVector?.kind === 'null') return this.nullsFragment(groupsMax);
    return this.fragment('', noValues, countedVector?.nulls ?? null, groupsMax);
  }

  result(groupNumbers: Int32Array, groupRowCounts: Float64Array): Vector {
    const groupCounts = new Float64Array(groupNumbers.length);
    for (let j = 0; j < groupNumbers.length; j++)
      groupCounts[j] = groupRowCounts[groupNumbers[j]!]! - this.absent(groupNumbers[j]!);
    return { kind: 'f64', values: groupCounts, nulls: null };
  }
}

class NumberSum extends DoubleAccumulator implements Accumulator {
  readonly #summedColumn: number;
  readonly #isAverage: boolean;

  constructor(column: number, name: 'sum' | 'avg') {
    super(1);
    this.#summedColumn = column;
    this.#isAverage = name === 'avg';
  }

  protected vector(batch: Batch): Vector {
    return batch.columns[this.#summedColumn]!;
  }

  step(batch: Batch): KernelStep | null {
    const summedVector = this.vector(batch);
    if (summedVector.kind === 'null') return { kernel: 'count', vector: summedVector };
    return summedVector.kind === 'f64'
      ? { kernel: 'addF64', vector: summedVector }
      : summedVector.kind === 'i32'
        ? { kernel: 'addF64OfI32', vector: summedVector }
        : null;
  }

  prepare(batch: Batch, groupsMax: number): Fragment {
    const summedVector = batch.columns[this.#summedColumn]!;
    if (summedVector.kind === 'null') return this.nullsFragment(groupsMax);
    return this.fragment('A += values[i];', columnDoubles(summedVector, batch), summedVector.nulls, groupsMax);
  }

  result(groupNumbers: Int32Array, groupRowCounts: Float64Array): Vector {
    const groupSums = new Float64Array(groupNumbers.length);
    const { a } = this;
    for (let j = 0; j < groupNumbers.length; j++) {
      const group = groupNumbers[j]!;
      const groupCount = this.#isAverage ? groupRowCounts[group]! - this.absent(group) : 1;
      const sumOrMean = groupCount === 0 ? 0 : a[group]! / groupCount;
      if (!Number.isFinite(sumOrMean)) throw numberOverflow();
      groupSums[j] = sumOrMean;
    }
    return { kind: 'f64', values: groupSums, nulls: this.nulls(groupNumbers, groupRowCounts) };
  }
}

const wordSize = 4_294_967_296;
const exactSumMax = Number.MAX_SAFE_INTEGER;
/** Each row adds less than 2^32 to a low word: up to this many rows it stays exact. */
const rowsBetweenCarries = 1 << 20;

/** The sum is `c` times 2^32 plus `a`, plus what `#carriedSums` took over. */
class IntegerSum extends DoubleAccumulator implements Accumulator {
  readonly #summedColumn: number;
  readonly #isAverage: boolean;
  #rowsSinceCarry = 0;
  #carriedSums: bigint[] | null = null;

  constructor(column: number, name: 'sum' | 'avg') {
    super(2);
    this.#summedColumn = column;
    this.#isAverage = name === 'avg';
  }

  protected vector(batch: Batch): Vector {
    return batch.columns[this.#summedColumn]!;
  }

  step(batch: Batch): KernelStep | null {
    const summedVector = this.vector(batch);
    return summedVector.kind === 'null'
      ? { kernel: 'count', vector: summedVector }
      : summedVector.kind === 'i32'
        ? { kernel: 'addI32', vector: summedVector }
        : null;
  }

  override share(batch: Batch, groupsMax: number): KernelShare {
    const kernelShare = super.share(batch, groupsMax);
    this.#reserveCarry(batch.count);
    const { a } = this;
    return { ...kernelShare, take: (group, lowWord, highWord) => (a[group]! += highWord * wordSize + lowWord) };
  }

  prepare(batch: Batch, groupsMax: number): Fragment {
    const summedVector = batch.columns[this.#summedColumn]!;
    if (summedVector.kind === 'null') return this.nullsFragment(groupsMax);
    this.#reserveCarry(batch.count);
    if (summedVector.kind === 'i32') return this.fragment('A += values[i];', summedVector.values, summedVector.nulls, groupsMax);
    if (summedVector.kind === 'f64') {
      const body = `const x = values[i], h = Math.floor(x / ${wordSize}); C += h; A += x - h * ${wordSize};`;
      return this.fragment(body, summedVector.values, summedVector.nulls, groupsMax);
    }
    assert(summedVector.kind === 'i64', 'an integer column');
    return this.fragment(
      'A += values[2 * i] >>> 0; C += values[2 * i + 1];',
      int32WordsOf(summedVector.values),
      summedVector.nulls,
      groupsMax,
    );
  }

  result(groupNumbers: Int32Array, groupRowCounts: Float64Array): Vector {
    const nullGroups = this.nulls(groupNumbers, groupRowCounts);
    const narrowSums = this.#narrowSums(groupNumbers);
    if (this.#isAverage) {
      const groupMeans = new Float64Array(groupNumbers.length);
      for (let j = 0; j < groupNumbers.length; j++) {
        const groupCount = groupRowCounts[groupNumbers[j]!]! - this.absent(groupNumbers[j]!);
        if (groupCount !== 0)
          groupMeans[j] = (narrowSums ? narrowSums[j]! : Number(this.#exactSum(groupNumbers[j]!))) / groupCount;
      }
      return { kind: 'f64', values: groupMeans, nulls: nullGroups };
    }
    if (narrowSums) return { kind: 'f64', values: narrowSums, nulls: nullGroups };
    const groupSums = new BigInt64Array(groupNumbers.length);
    groupNumbers.forEach((group, j) => {
      const groupSum = this.#exactSum(group);
      if (groupSum > I64_MAX || groupSum < I64_MIN) throw integerOverflow();
      groupSums[j] = groupSum;
    });
    return { kind: 'i64', values: groupSums, nulls: nullGroups };
  }

  /** The sums as doubles; null where one of them is not exact in a double. */
  #narrowSums(groupNumbers: Int32Array): Float64Array | null {
    if (this.#carriedSums !== null) return null;
    const { a, c } = this;
    const narrowSums = new Float64Array(groupNumbers.length);
    for (let j = 0; j < groupNumbers.length; j++) {
      const highSum = c[groupNumbers[j]!]! * wordSize;
      const narrowSum = highSum + a[groupNumbers[j]!]!;
      // Both parts are integers; where they and their sum are within 2^53, nothing was rounded.
      if (!(Math.abs(highSum) <= exactSumMax && Math.abs(narrowSum) <= exactSumMax)) return null;
      // An integer column has no minus zero.
      narrowSums[j] = narrowSum + 0;
    }
    return narrowSums;
  }

  #exactSum(group: number): bigint {
    return (this.#carriedSums?.[group] ?? 0n) + BigInt(this.c[group]!) * BigInt(wordSize) + BigInt(this.a[group]!);
  }

  #reserveCarry(addedRows: number): void {
    this.#rowsSinceCarry += addedRows;
    if (this.#rowsSinceCarry <= rowsBetweenCarries) return;
    this.#carryHighWords();
    this.#rowsSinceCarry = addedRows;
  }

  #carryHighWords(): void {
    for (let group = 0; group < this.a.length; group++) {
      const carriedWords = Math.floor(this.a[group]! / wordSize);
      this.c[group]! += carriedWords;
      this.a[group]! -= carriedWords * wordSize;
      if (Math.abs(this.c[group]!) > 2 ** 50) {
        this.#carriedSums ??= [];
        this.#carriedSums[group] = (this.#carriedSums[group] ?? 0n) + BigInt(this.c[group]!) * BigInt(wordSize);
        this.c[group] = 0;
      }
    }
  }
}

class NumberExtreme extends DoubleAccumulator implements Accumulator {
  readonly #extremeColumn: number;
  readonly #extremeCode: string;
  readonly #extremeSign: 1 | -1;

  constructor(column: number, name: 'min' | 'max') {
    super(1, name === 'min' ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY);
    this.#extremeColumn = column;
    this.#extremeSign = name === 'min' ? 1 : -1;
    this.#extremeCode = `const x = values[i]; if (x ${name === 'min' ? '<' : '>'} A) A = x;`;
  }

  protected vector(batch: Batch): Vector {
    return batch.columns[this.#extremeColumn]!;
  }

  step(batch: Batch): KernelStep | null {
    const extremeVector = this.vector(batch);
    if (extremeVector.kind === 'null') return { kernel: 'count', vector: extremeVector };
    return extremeVector.kind === 'f64' ? { kernel: 'extremeF64', vector: extremeVector, sign: this.#extremeSign } : null;
  }

  prepare(batch: Batch, groupsMax: number): Fragment {
    const extremeVector = batch.columns[this.#extremeColumn]!;
    if (extremeVector.kind === 'null') return this.nullsFragment(groupsMax);
    return this.fragment(this.#extremeCode, columnDoubles(extremeVector, batch), extremeVector.nulls, groupsMax);
  }

  result(groupNumbers: Int32Array, groupRowCounts: Float64Array): Vector {
    const groupExtremes = new Float64Array(groupNumbers.length);
    for (let j = 0; j < groupNumbers.length; j++) groupExtremes[j] = this.a[groupNumbers[j]!]!;
    return { kind: 'f64', values: groupExtremes, nulls: this.nulls(groupNumbers, groupRowCounts) };
  }
}

/** Integers and instants by high word, then low word (unsigned). */
class IntegerExtreme extends DoubleAccumulator implements Accumulator {
  readonly #extremeColumn: number;
  readonly #extremeType: ColumnType;
  readonly #takeExtremeCode: string;
  readonly #extremeSign: 1 | -1;

  constructor(column: number, type: ColumnType, name: 'min' | 'max') {
    super(2, name === 'min' ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY);
    this.#extremeColumn = column;
    this.#extremeType = type;
    this.#extremeSign = name === 'min' ? 1 : -1;
    const extremeOp = name === 'min' ? '<' : '>';
    this.#takeExtremeCode = `if (h ${extremeOp} A || (h === A && l ${extremeOp} C)) { A = h; C = l; }`;
  }

  protected vector(batch: Batch): Vector {
    return batch.columns[this.#extremeColumn]!;
  }

  step(batch: Batch): KernelStep | null {
    const extremeVector = this.vector(batch);
    if (extremeVector.kind === 'null') return { kernel: 'count', vector: extremeVector };
    if (extremeVector.kind !== 'i32' && extremeVector.kind !== 'i64') return null;
    return { kernel: extremeVector.kind === 'i32' ? 'extremeI32' : 'extremeI64', vector: extremeVector, sign: this.#extremeSign };
  }

  override share(batch: Batch, groupsMax: number): KernelShare {
    const kernelShare = super.share(batch, groupsMax);
    const { a, c } = this;
    const extremeSign = this.#extremeSign;
    return {
      ...kernelShare,
      take: (group, lowWord, highWord) => {
        const h = highWord * extremeSign;
        if (h > a[group]! * extremeSign || (highWord === a[group] && lowWord * extremeSign >= c[group]! * extremeSign)) return;
        a[group] = highWord;
        c[group] = lowWord;
      },
    };
  }

  prepare(batch: Batch, groupsMax: number): Fragment {
    const extremeVector = batch.columns[this.#extremeColumn]!;
    if (extremeVector.kind === 'null') return this.nullsFragment(groupsMax);
    if (extremeVector.kind === 'i64') {
      const body = `const h = values[2 * i + 1], l = values[2 * i] >>> 0; ${this.#takeExtremeCode}`;
      return this.fragment(body, int32WordsOf(extremeVector.values), extremeVector.nulls, groupsMax);
    }
    assert(extremeVector.kind === 'i32' || extremeVector.kind === 'f64', `a ${this.#extremeType} column`);
    const body = `const x = values[i], h = Math.floor(x / ${wordSize}), l = x - h * ${wordSize}; ${this.#takeExtremeCode}`;
    return this.fragment(body, extremeVector.values, extremeVector.nulls, groupsMax);
  }

  result(groupNumbers: Int32Array, groupRowCounts: Float64Array): Vector {
    const nullGroups = this.nulls(groupNumbers, groupRowCounts);
    const groupExtremes = new BigInt64Array(groupNumbers.length);
    groupNumbers.forEach((group, j) => {
      if (nullGroups?.[j] === 1) return;
      groupExtremes[j] = BigInt(this.a[group]!) * BigInt(wordSize) + BigInt(this.c[group]!);
    });
    return { kind: 'i64', values: groupExtremes, nulls: nullGroups };
  }
}

/** Codepoint order. A value is taken over rarely, so the best ones are kept as strings. */
class TextExtreme extends RowByRow {
  readonly #extremeColumn: number;
  readonly #extremeSign: number;
  readonly #extremeTexts: (string | undefined)[] = [];
  #extremeCodes = new Int32Array(0);
  #batchDictionary: Dictionary | null = null;
  bytes = 0;

  constructor(column: number, name: 'min' | 'max') {
    super();
    this.#extremeColumn = column;
    this.#extremeSign = name === 'min' ? -1 : 1;
  }

  update(batch: Batch, groupNumbers: Int32Array, groupsMax: number): void {
    const extremeVector = batch.columns[this.#extremeColumn]!;
    if (extremeVector.kind === 'null') return;
    const { selection, first, count } = batch;
    if (extremeVector.kind === 'dict') this.#prepareCodes(extremeVector.dictionary, groupsMax);
    for (let j = 0; j < count; j++) {
      const i = selection === null ? first + j : selection[j]!;
      if (extremeVector.nulls !== null && extremeVector.nulls[i] === 1) continue;
      if (extremeVector.kind === 'dict') this.#compareCode(extremeVector.dictionary, extremeVector.values[i]!, groupNumbers[j]!);
      else {
        assert(extremeVector.kind === 'text', 'a text column');
        this.#compareBytes(extremeVector.heap, extremeVector.offsets[i]!, extremeVector.offsets[i + 1]!, groupNumbers[j]!);
      }
    }
  }

  result(groupNumbers: Int32Array): Vector {
    const codesByText = new Map<string, number>();
    const extremeTexts: string[] = [];
    const nullGroups = new Uint8Array(groupNumbers.length);
    const extremeCodes = Int32Array.from(groupNumbers, (group, i) => {
      const extremeText = this.#extremeTexts[group];
      if (extremeText === undefined) nullGroups[i] = 1;
      const extremeCode = codesByText.get(extremeText ?? '');
      return extremeCode ?? (codesByText.set(extremeText ?? '', extremeTexts.length), extremeTexts.push(extremeText ?? '') - 1);
    });
    const extremeDictionary: Dictionary = {
      size: extremeTexts.length,
      text: (code) => extremeTexts[code]!,
      codeOf: (text) => codesByText.get(text) ?? -1,
    };
    return {
      kind: 'dict',
      values: extremeCodes,
      dictionary: extremeDictionary,
      nulls: nullGroups.includes(1) ? nullGroups : null,
    };
  }

  /** `#extremeCodes` holds, + 1, the code whose text is the best of a group, in the dictionary met last. */
  #prepareCodes(dictionary: Dictionary, groupsMax: number): void {
    if (this.#batchDictionary !== dictionary) {
      this.#batchDictionary = dictionary;
      this.#extremeCodes = new Int32Array(Math.max(64, groupsMax));
    } else if (this.#extremeCodes.length < groupsMax) {
      const largerCodes = new Int32Array(Math.max(this.#extremeCodes.length * 2, groupsMax));
      largerCodes.set(this.#extremeCodes);
      this.#extremeCodes = largerCodes;
    }
  }

  #compareCode(dictionary: Dictionary, code: number, group: number): void {
    if (this.#extremeCodes[group] === code + 1) return;
    const codeText = dictionary.text(code);
    const bestText = this.#extremeTexts[group];
    if (bestText !== undefined && compareText(codeText, bestText) * this.#extremeSign < 0) return;
    this.#takeExtreme(group, codeText);
    this.#extremeCodes[group] = code + 1;
  }

  #compareBytes(heap: Uint8Array, start: number, end: number, group: number): void {
    const bestText = this.#extremeTexts[group];
    if (bestText !== undefined && compareHeapText(heap, start, end, bestText) * this.#extremeSign <= 0) return;
    this.#takeExtreme(group, textDecoder.decode(heap.subarray(start, end)));
    if (this.#extremeCodes.length > group) this.#extremeCodes[group] = 0;
  }

  #takeExtreme(group: number, newExtreme: string): void {
    this.bytes += newExtreme.length * 2 + 64 - (this.#extremeTexts[group]?.length ?? -32) * 2;
    this.#extremeTexts[group] = newExtreme;
  }
}

const textDecoder = new TextDecoder('utf-8', { ignoreBOM: true });

function int32WordsOf(values: BigInt64Array): Int32Array {
  return new Int32Array(values.buffer, values.byteOffset, values.length * 2);
}

/** A number column may rest in any numeric layout; i64 among them is rare enough to be converted. */
function columnDoubles(vector: Vector, batch: Batch): ArrayLike<number> {
  if (vector.kind === 'f64' || vector.kind === 'i32') return vector.values;
  if (vector.kind !== 'i64') throw new ServiceError('REL_INTERNAL', 'a number column in an unknown layout');
  const convertedDoubles = new Float64Array(vector.values.length);
  for (let j = 0; j < batch.count; j++) {
    const i = batch.selection ? batch.selection[j]! : batch.first + j;
    convertedDoubles[i] = Number(vector.values[i]!);
  }
  return convertedDoubles;
}

/** Codepoint order of a text in UTF-8 and one that is none: characters of one byte are compared where they lie. */
function compareHeapText(heap: Uint8Array, start: number, end: number, text: string): number {
  const sharedLength = Math.min(end - start, text.length);
  for (let k = 0; k < sharedLength; k++) {
    const heapByte = heap[start + k]!;
    const textUnit = text.charCodeAt(k);
    if (heapByte > 127 || textUnit > 127) return compareText(textDecoder.decode(heap.subarray(start + k, end)), text.slice(k));
    if (heapByte !== textUnit) return heapByte - textUnit;
  }
  return end - start - text.length;
}
