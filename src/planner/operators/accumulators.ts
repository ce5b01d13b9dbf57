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

/** `types` are those of the input's columns. */
export function accumulator(call: AggregateCall, types: readonly ColumnType[]): Accumulator {
  const { function: name, column } = call;
  if (column === null) return new CountAccumulator(null);
  const type = types[column];
  assert(type !== undefined, 'a column has a type');
  if (call.wire === 'interval') return cellAccumulator(call, column, types);
  switch (name) {
    case 'count':
    case 'sum':
    case 'avg': {
      const isOfVectors = name === 'count' ? call.distinct && type === 'vector' : type === 'vector' || type === 'string';
      if (isOfVectors) return cellAccumulator(call, column, types);
      const each =
        name === 'count'
          ? new CountAccumulator(column)
          : type === 'integer'
            ? new IntegerSum(column, name)
            : new NumberSum(column, name);
      return call.distinct ? new OfDistinct(each, column, type) : each;
    }
    case 'min':
    case 'max':
      if (type === 'string') return new TextExtreme(column, name);
      return type === 'number' ? new NumberExtreme(column, name) : new IntegerExtreme(column, type, name);
    default:
      return cellAccumulator(call, column, types);
  }
}

/** Up to two doubles per group and the count of NULLs. The arrays grow as groups are written, no further. */
abstract class DoubleState {
  readonly byPlace = false;
  protected a = new Float64Array(16);
  protected b = new Float64Array(16);
  protected c = new Float64Array(16);
  readonly #doubles: 0 | 1 | 2;
  readonly #initial: number;

  /** `doubles` is how many of `a` and `c` are in use; `initial` what `a` starts from: below or above every value for an extreme. */
  constructor(doubles: 0 | 1 | 2, initial = 0) {
    this.#doubles = doubles;
    this.#initial = initial;
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
    if (this.#doubles > 0 && this.a.length < groupsMax) this.a = larger(this.a, groupsMax, this.#initial);
    if (this.#doubles > 1 && this.c.length < groupsMax) this.c = larger(this.c, groupsMax, 0);
    if (mayBeNull && this.b.length < groupsMax) this.b = larger(this.b, groupsMax, 0);
  }

  /** For a function whose doubles kernels continue directly. */
  share(batch: Batch, groupsMax: number): KernelShare {
    const vector = this.vector(batch);
    this.reserve(groupsMax, vector !== null && (vector.kind === 'null' || vector.nulls !== null));
    return { doubles: this.a, absent: this.b, take: null };
  }

  protected abstract vector(batch: Batch): Vector | null;

  protected fragment(body: string, values: ArrayLike<number>, nulls: Uint8Array | null, groupsMax: number): Fragment {
    this.reserve(groupsMax, nulls !== null || body === countsNulls);
    return { body, values, nulls, a: this.a, b: this.b, c: this.c };
  }

  /** All rows of a batch are NULL. */
  protected nullsFragment(groupsMax: number): Fragment {
    return this.fragment(countsNulls, none, null, groupsMax);
  }

  /** Groups without a value have no result. */
  protected nulls(groups: Int32Array, rows: Float64Array): Uint8Array | null {
    let nulls: Uint8Array | null = null;
    for (let j = 0; j < groups.length; j++) {
      if (this.absent(groups[j]!) === rows[groups[j]!]) (nulls ??= new Uint8Array(groups.length))[j] = 1;
    }
    return nulls;
  }

  /** NULLs of a group; `b` ends before the groups that came after the last NULL. */
  protected absent(group: number): number {
    return group < this.b.length ? this.b[group]! : 0;
  }
}

/** The statement for a row without a value. */
const countsNulls = 'B++;';
const none: readonly number[] = [];

class CountAccumulator extends DoubleState implements Accumulator {
  readonly #column: number | null;

  constructor(column: number | null) {
    super(0);
    this.#column = column;
  }

  protected vector(batch: Batch): Vector | null {
    return this.#column === null ? null : batch.columns[this.#column]!;
  }

  step(batch: Batch): KernelStep {
    const vector = this.vector(batch);
    return vector && isFixed(vector) && vector.nulls ? { kernel: 'countAbsent', vector } : { kernel: 'count', vector };
  }

  prepare(batch: Batch, groupsMax: number): Fragment {
    const vector = this.vector(batch);
    if (vector?.kind === 'null') return this.nullsFragment(groupsMax);
    return this.fragment('', none, vector?.nulls ?? null, groupsMax);
  }

  result(groups: Int32Array, rows: Float64Array): Vector {
    const values = new Float64Array(groups.length);
    for (let j = 0; j < groups.length; j++) values[j] = rows[groups[j]!]! - this.absent(groups[j]!);
    return { kind: 'f64', values, nulls: null };
  }
}

class NumberSum extends DoubleState implements Accumulator {
  readonly #column: number;
  readonly #average: boolean;

  constructor(column: number, name: 'sum' | 'avg') {
    super(1);
    this.#column = column;
    this.#average = name === 'avg';
  }

  protected vector(batch: Batch): Vector {
    return batch.columns[this.#column]!;
  }

  step(batch: Batch): KernelStep | null {
    const vector = this.vector(batch);
    if (vector.kind === 'null') return { kernel: 'count', vector };
    return vector.kind === 'f64'
      ? { kernel: 'addF64', vector }
      : vector.kind === 'i32'
        ? { kernel: 'addF64OfI32', vector }
        : null;
  }

  prepare(batch: Batch, groupsMax: number): Fragment {
    const vector = batch.columns[this.#column]!;
    if (vector.kind === 'null') return this.nullsFragment(groupsMax);
    return this.fragment('A += values[i];', doublesOf(vector, batch), vector.nulls, groupsMax);
  }

  result(groups: Int32Array, rows: Float64Array): Vector {
    const values = new Float64Array(groups.length);
    const { a } = this;
    for (let j = 0; j < groups.length; j++) {
      const group = groups[j]!;
      const count = this.#average ? rows[group]! - this.absent(group) : 1;
      const value = count === 0 ? 0 : a[group]! / count;
      if (!Number.isFinite(value)) throw numberOverflow();
      values[j] = value;
    }
    return { kind: 'f64', values, nulls: this.nulls(groups, rows) };
  }
}

const word = 4_294_967_296;
const exactMax = Number.MAX_SAFE_INTEGER;
/** Each row adds less than 2^32 to a low word: up to this many rows it stays exact. */
const rowsBetweenCarries = 1 << 20;

/** The sum is `c` times 2^32 plus `a`, plus what `#rest` took over. */
class IntegerSum extends DoubleState implements Accumulator {
  readonly #column: number;
  readonly #average: boolean;
  #rowsSinceCarry = 0;
  #rest: bigint[] | null = null;

  constructor(column: number, name: 'sum' | 'avg') {
    super(2);
    this.#column = column;
    this.#average = name === 'avg';
  }

  protected vector(batch: Batch): Vector {
    return batch.columns[this.#column]!;
  }

  step(batch: Batch): KernelStep | null {
    const vector = this.vector(batch);
    return vector.kind === 'null' ? { kernel: 'count', vector } : vector.kind === 'i32' ? { kernel: 'addI32', vector } : null;
  }

  override share(batch: Batch, groupsMax: number): KernelShare {
    const share = super.share(batch, groupsMax);
    this.#reserveCarry(batch.count);
    const { a } = this;
    return { ...share, take: (group, low, high) => (a[group]! += high * word + low) };
  }

  prepare(batch: Batch, groupsMax: number): Fragment {
    const vector = batch.columns[this.#column]!;
    if (vector.kind === 'null') return this.nullsFragment(groupsMax);
    this.#reserveCarry(batch.count);
    if (vector.kind === 'i32') return this.fragment('A += values[i];', vector.values, vector.nulls, groupsMax);
    if (vector.kind === 'f64') {
      const body = `const x = values[i], h = Math.floor(x / ${word}); C += h; A += x - h * ${word};`;
      return this.fragment(body, vector.values, vector.nulls, groupsMax);
    }
    assert(vector.kind === 'i64', 'an integer column');
    return this.fragment('A += values[2 * i] >>> 0; C += values[2 * i + 1];', wordsOf(vector.values), vector.nulls, groupsMax);
  }

  result(groups: Int32Array, rows: Float64Array): Vector {
    const nulls = this.nulls(groups, rows);
    const narrow = this.#narrowSums(groups);
    if (this.#average) {
      const values = new Float64Array(groups.length);
      for (let j = 0; j < groups.length; j++) {
        const count = rows[groups[j]!]! - this.absent(groups[j]!);
        if (count !== 0) values[j] = (narrow ? narrow[j]! : Number(this.#sum(groups[j]!))) / count;
      }
      return { kind: 'f64', values, nulls };
    }
    if (narrow) return { kind: 'f64', values: narrow, nulls };
    const sums = new BigInt64Array(groups.length);
    groups.forEach((group, j) => {
      const sum = this.#sum(group);
      if (sum > I64_MAX || sum < I64_MIN) throw integerOverflow();
      sums[j] = sum;
    });
    return { kind: 'i64', values: sums, nulls };
  }

  /** The sums as doubles; null where one of them is not exact in a double. */
  #narrowSums(groups: Int32Array): Float64Array | null {
    if (this.#rest !== null) return null;
    const { a, c } = this;
    const sums = new Float64Array(groups.length);
    for (let j = 0; j < groups.length; j++) {
      const high = c[groups[j]!]! * word;
      const sum = high + a[groups[j]!]!;
      // Both parts are integers; where they and their sum are within 2^53, nothing was rounded.
      if (!(Math.abs(high) <= exactMax && Math.abs(sum) <= exactMax)) return null;
      // An integer column has no minus zero.
      sums[j] = sum + 0;
    }
    return sums;
  }

  #sum(group: number): bigint {
    return (this.#rest?.[group] ?? 0n) + BigInt(this.c[group]!) * BigInt(word) + BigInt(this.a[group]!);
  }

  #reserveCarry(rows: number): void {
    this.#rowsSinceCarry += rows;
    if (this.#rowsSinceCarry <= rowsBetweenCarries) return;
    this.#carry();
    this.#rowsSinceCarry = rows;
  }

  #carry(): void {
    for (let group = 0; group < this.a.length; group++) {
      const carry = Math.floor(this.a[group]! / word);
      this.c[group]! += carry;
      this.a[group]! -= carry * word;
      if (Math.abs(this.c[group]!) > 2 ** 50) {
        this.#rest ??= [];
        this.#rest[group] = (this.#rest[group] ?? 0n) + BigInt(this.c[group]!) * BigInt(word);
        this.c[group] = 0;
      }
    }
  }
}

class NumberExtreme extends DoubleState implements Accumulator {
  readonly #column: number;
  readonly #body: string;
  readonly #sign: 1 | -1;

  constructor(column: number, name: 'min' | 'max') {
    super(1, name === 'min' ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY);
    this.#column = column;
    this.#sign = name === 'min' ? 1 : -1;
    this.#body = `const x = values[i]; if (x ${name === 'min' ? '<' : '>'} A) A = x;`;
  }

  protected vector(batch: Batch): Vector {
    return batch.columns[this.#column]!;
  }

  step(batch: Batch): KernelStep | null {
    const vector = this.vector(batch);
    if (vector.kind === 'null') return { kernel: 'count', vector };
    return vector.kind === 'f64' ? { kernel: 'extremeF64', vector, sign: this.#sign } : null;
  }

  prepare(batch: Batch, groupsMax: number): Fragment {
    const vector = batch.columns[this.#column]!;
    if (vector.kind === 'null') return this.nullsFragment(groupsMax);
    return this.fragment(this.#body, doublesOf(vector, batch), vector.nulls, groupsMax);
  }

  result(groups: Int32Array, rows: Float64Array): Vector {
    const values = new Float64Array(groups.length);
    for (let j = 0; j < groups.length; j++) values[j] = this.a[groups[j]!]!;
    return { kind: 'f64', values, nulls: this.nulls(groups, rows) };
  }
}

/** Integers and instants by high word, then low word (unsigned). */
class IntegerExtreme extends DoubleState implements Accumulator {
  readonly #column: number;
  readonly #type: ColumnType;
  readonly #take: string;
  readonly #sign: 1 | -1;

  constructor(column: number, type: ColumnType, name: 'min' | 'max') {
    super(2, name === 'min' ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY);
    this.#column = column;
    this.#type = type;
    this.#sign = name === 'min' ? 1 : -1;
    const before = name === 'min' ? '<' : '>';
    this.#take = `if (h ${before} A || (h === A && l ${before} C)) { A = h; C = l; }`;
  }

  protected vector(batch: Batch): Vector {
    return batch.columns[this.#column]!;
  }

  step(batch: Batch): KernelStep | null {
    const vector = this.vector(batch);
    if (vector.kind === 'null') return { kernel: 'count', vector };
    if (vector.kind !== 'i32' && vector.kind !== 'i64') return null;
    return { kernel: vector.kind === 'i32' ? 'extremeI32' : 'extremeI64', vector, sign: this.#sign };
  }

  override share(batch: Batch, groupsMax: number): KernelShare {
    const share = super.share(batch, groupsMax);
    const { a, c } = this;
    const sign = this.#sign;
    return {
      ...share,
      take: (group, low, high) => {
        const h = high * sign;
        if (h > a[group]! * sign || (high === a[group] && low * sign >= c[group]! * sign)) return;
        a[group] = high;
        c[group] = low;
      },
    };
  }

  prepare(batch: Batch, groupsMax: number): Fragment {
    const vector = batch.columns[this.#column]!;
    if (vector.kind === 'null') return this.nullsFragment(groupsMax);
    if (vector.kind === 'i64') {
      const body = `const h = values[2 * i + 1], l = values[2 * i] >>> 0; ${this.#take}`;
      return this.fragment(body, wordsOf(vector.values), vector.nulls, groupsMax);
    }
    assert(vector.kind === 'i32' || vector.kind === 'f64', `a ${this.#type} column`);
    const body = `const x = values[i], h = Math.floor(x / ${word}), l = x - h * ${word}; ${this.#take}`;
    return this.fragment(body, vector.values, vector.nulls, groupsMax);
  }

  result(groups: Int32Array, rows: Float64Array): Vector {
    const nulls = this.nulls(groups, rows);
    const values = new BigInt64Array(groups.length);
    groups.forEach((group, j) => {
      if (nulls?.[j] === 1) return;
      values[j] = BigInt(this.a[group]!) * BigInt(word) + BigInt(this.c[group]!);
    });
    return { kind: 'i64', values, nulls };
  }
}

/** Codepoint order. A value is taken over rarely, so the best ones are kept as strings. */
class TextExtreme extends RowByRow {
  readonly #column: number;
  readonly #sign: number;
  readonly #best: (string | undefined)[] = [];
  #codes = new Int32Array(0);
  #dictionary: Dictionary | null = null;
  bytes = 0;

  constructor(column: number, name: 'min' | 'max') {
    super();
    this.#column = column;
    this.#sign = name === 'min' ? -1 : 1;
  }

  update(batch: Batch, groups: Int32Array, groupsMax: number): void {
    const vector = batch.columns[this.#column]!;
    if (vector.kind === 'null') return;
    const { selection, first, count } = batch;
    if (vector.kind === 'dict') this.#prepare(vector.dictionary, groupsMax);
    for (let j = 0; j < count; j++) {
      const i = selection === null ? first + j : selection[j]!;
      if (vector.nulls !== null && vector.nulls[i] === 1) continue;
      if (vector.kind === 'dict') this.#meetCode(vector.dictionary, vector.values[i]!, groups[j]!);
      else {
        assert(vector.kind === 'text', 'a text column');
        this.#meetBytes(vector.heap, vector.offsets[i]!, vector.offsets[i + 1]!, groups[j]!);
      }
    }
  }

  result(groups: Int32Array): Vector {
    const codes = new Map<string, number>();
    const texts: string[] = [];
    const nulls = new Uint8Array(groups.length);
    const values = Int32Array.from(groups, (group, i) => {
      const text = this.#best[group];
      if (text === undefined) nulls[i] = 1;
      const code = codes.get(text ?? '');
      return code ?? (codes.set(text ?? '', texts.length), texts.push(text ?? '') - 1);
    });
    const dictionary: Dictionary = {
      size: texts.length,
      text: (code) => texts[code]!,
      codeOf: (text) => codes.get(text) ?? -1,
    };
    return { kind: 'dict', values, dictionary, nulls: nulls.includes(1) ? nulls : null };
  }

  /** `#codes` holds, + 1, the code whose text is the best of a group, in the dictionary met last. */
  #prepare(dictionary: Dictionary, groupsMax: number): void {
    if (this.#dictionary !== dictionary) {
      this.#dictionary = dictionary;
      this.#codes = new Int32Array(Math.max(64, groupsMax));
    } else if (this.#codes.length < groupsMax) {
      const codes = new Int32Array(Math.max(this.#codes.length * 2, groupsMax));
      codes.set(this.#codes);
      this.#codes = codes;
    }
  }

  #meetCode(dictionary: Dictionary, code: number, group: number): void {
    if (this.#codes[group] === code + 1) return;
    const text = dictionary.text(code);
    const best = this.#best[group];
    if (best !== undefined && compareText(text, best) * this.#sign < 0) return;
    this.#take(group, text);
    this.#codes[group] = code + 1;
  }

  #meetBytes(heap: Uint8Array, start: number, end: number, group: number): void {
    const best = this.#best[group];
    if (best !== undefined && compareUtf8(heap, start, end, best) * this.#sign <= 0) return;
    this.#take(group, decoder.decode(heap.subarray(start, end)));
    if (this.#codes.length > group) this.#codes[group] = 0;
  }

  #take(group: number, text: string): void {
    this.bytes += text.length * 2 + 64 - (this.#best[group]?.length ?? -32) * 2;
    this.#best[group] = text;
  }
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

function wordsOf(values: BigInt64Array): Int32Array {
  return new Int32Array(values.buffer, values.byteOffset, values.length * 2);
}

/** A number column may rest in any numeric layout; i64 among them is rare enough to be converted. */
function doublesOf(vector: Vector, batch: Batch): ArrayLike<number> {
  if (vector.kind === 'f64' || vector.kind === 'i32') return vector.values;
  if (vector.kind !== 'i64') throw new ServiceError('REL_INTERNAL', 'a number column in an unknown layout');
  const values = new Float64Array(vector.values.length);
  for (let j = 0; j < batch.count; j++) {
    const i = batch.selection ? batch.selection[j]! : batch.first + j;
    values[i] = Number(vector.values[i]!);
  }
  return values;
}

/** Codepoint order of a text in UTF-8 and one that is none: characters of one byte are compared where they lie. */
function compareUtf8(heap: Uint8Array, start: number, end: number, text: string): number {
  const shared = Math.min(end - start, text.length);
  for (let k = 0; k < shared; k++) {
    const byte = heap[start + k]!;
    const unit = text.charCodeAt(k);
    if (byte > 127 || unit > 127) return compareText(decoder.decode(heap.subarray(start + k, end)), text.slice(k));
    if (byte !== unit) return byte - unit;
  }
  return end - start - text.length;
}
