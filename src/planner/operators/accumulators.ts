/**
 * Running results of one aggregate function for all groups. The loops over rows are generated once per layout from fixed
 * words, so that each is a plain loop over typed arrays. Doubles are added in the order of rows, one by one: the same
 * rows give the same bits. Sums of integers are exact: high and low words apart, put together at the end.
 */
import { assert, ServiceError } from '../../errors.ts';
import type { Dictionary, Vector } from '../../log/columns.ts';
import { type ColumnType, compareText, I64_MAX, I64_MIN } from '../../log/value.ts';
import { integerOverflow, numberOverflow } from '../expressions/evaluate.ts';
import { generated } from '../expressions/generated.ts';
import type { AggregateCall } from '../logical-plan.ts';
import { PairNumbers, type ValueNumbers, valueNumbers } from './group-table.ts';
import type { Batch } from './operator.ts';

export interface Accumulator {
  readonly bytes: number;
  /** Takes the rows of a batch; `groups` numbers them by place in it, all below `groupsMax`. */
  update(batch: Batch, groups: Int32Array, groupsMax: number): void;
  /** Results of these groups as a column. */
  result(groups: Int32Array): Vector;
}

export function accumulator(call: AggregateCall, type: ColumnType | null, single: boolean): Accumulator {
  const { function: name, column } = call;
  if (column === null) return new CountAccumulator(null, single);
  assert(type !== null, 'a column has a type');
  switch (name) {
    case 'count':
      return call.distinct ? new DistinctCount(column, type) : new CountAccumulator(column, single);
    case 'sum':
    case 'avg':
      return type === 'integer' ? new IntegerSum(column, name, single) : new NumberSum(column, name, single);
    case 'min':
    case 'max':
      if (type === 'string') return new TextExtreme(column, name);
      return type === 'number' ? new NumberExtreme(column, name, single) : new IntegerExtreme(column, type, name, single);
  }
}

type Loop = (
  values: ArrayLike<number>,
  nulls: Uint8Array | null,
  selection: Int32Array | null,
  first: number,
  count: number,
  groups: Int32Array,
  a: Float64Array,
  b: Float64Array,
  c: Float64Array,
) => void;

const loops = new Map<string, Loop>();

/** `body` reads the row as `i` and updates A, B and C of its group. */
function loopOf(body: string, batch: Batch, nulls: Uint8Array | null, single: boolean): Loop {
  const dense = batch.selection === null;
  const key = `${body}${dense ? 'D' : ''}${nulls ? 'N' : ''}${single ? 'S' : ''}`;
  let loop = loops.get(key);
  if (!loop) {
    const update = single
      ? body.replace(/\b[ABC]\b/g, (name) => `${name.toLowerCase()}0`)
      : body.replace(/\b[ABC]\b/g, (name) => `${name.toLowerCase()}[g]`);
    const source = [
      '"use strict";',
      single ? 'let a0 = a[0], b0 = b[0], c0 = c[0];' : '',
      'for (let j = 0; j < count; j++) {',
      dense ? 'const i = first + j;' : 'const i = selection[j];',
      nulls ? 'if (nulls[i] === 1) continue;' : '',
      single ? '' : 'const g = groups[j];',
      update,
      '}',
      single ? 'a[0] = a0; b[0] = b0; c[0] = c0;' : '',
    ].join('\n');
    loop = generated<Loop>(['values', 'nulls', 'selection', 'first', 'count', 'groups', 'a', 'b', 'c'], source);
    loops.set(key, loop);
  }
  return loop;
}

/** Three doubles per group, grown as groups appear. */
abstract class DoubleState {
  protected a = new Float64Array(16);
  protected b = new Float64Array(16);
  protected c = new Float64Array(16);
  protected readonly single: boolean;

  constructor(single: boolean) {
    this.single = single;
  }

  get bytes(): number {
    return this.a.byteLength * 3;
  }

  protected run(
    body: string,
    values: ArrayLike<number>,
    nulls: Uint8Array | null,
    batch: Batch,
    groups: Int32Array,
    groupsMax: number,
  ): void {
    if (this.a.length < groupsMax) {
      const length = Math.max(this.a.length * 2, groupsMax);
      this.a = larger(this.a, length);
      this.b = larger(this.b, length);
      this.c = larger(this.c, length);
    }
    const loop = loopOf(body, batch, nulls, this.single);
    loop(values, nulls, batch.selection, batch.first, batch.count, groups, this.a, this.b, this.c);
  }

  /** Groups for which `b`, the count of values, is 0 have no result. */
  protected nulls(groups: Int32Array): Uint8Array | null {
    let nulls: Uint8Array | null = null;
    groups.forEach((group, j) => {
      if (this.b[group] === 0) (nulls ??= new Uint8Array(groups.length))[j] = 1;
    });
    return nulls;
  }
}

const none: readonly number[] = [];

class CountAccumulator extends DoubleState implements Accumulator {
  readonly #column: number | null;

  constructor(column: number | null, single: boolean) {
    super(single);
    this.#column = column;
  }

  update(batch: Batch, groups: Int32Array, groupsMax: number): void {
    const vector = this.#column === null ? null : batch.columns[this.#column]!;
    if (vector?.kind === 'null') return this.run('', none, null, batch, groups, groupsMax);
    const nulls = vector?.nulls ?? null;
    if (this.single && nulls === null) this.b[0]! += batch.count;
    else this.run('B++;', none, nulls, batch, groups, groupsMax);
  }

  result(groups: Int32Array): Vector {
    return { kind: 'f64', values: Float64Array.from(groups, (group) => this.b[group]!), nulls: null };
  }
}

class NumberSum extends DoubleState implements Accumulator {
  readonly #column: number;
  readonly #average: boolean;

  constructor(column: number, name: 'sum' | 'avg', single: boolean) {
    super(single);
    this.#column = column;
    this.#average = name === 'avg';
  }

  update(batch: Batch, groups: Int32Array, groupsMax: number): void {
    const vector = batch.columns[this.#column]!;
    if (vector.kind === 'null') return this.run('', none, null, batch, groups, groupsMax);
    this.run('A += values[i]; B++;', doublesOf(vector, batch), vector.nulls, batch, groups, groupsMax);
  }

  result(groups: Int32Array): Vector {
    const values = Float64Array.from(groups, (group) =>
      this.#average && this.b[group] ? this.a[group]! / this.b[group]! : this.a[group]!,
    );
    if (!values.every(Number.isFinite)) throw numberOverflow();
    return { kind: 'f64', values, nulls: this.nulls(groups) };
  }
}

const word = 4_294_967_296;
/** Each row adds less than 2^32 to a low word: after so many rows it is still exact. */
const rowsBetweenCarries = 1 << 20;

/** The sum is `c` times 2^32 plus `a`, plus what `#rest` took over. */
class IntegerSum extends DoubleState implements Accumulator {
  readonly #column: number;
  readonly #average: boolean;
  #rowsSinceCarry = 0;
  #rest: bigint[] | null = null;

  constructor(column: number, name: 'sum' | 'avg', single: boolean) {
    super(single);
    this.#column = column;
    this.#average = name === 'avg';
  }

  update(batch: Batch, groups: Int32Array, groupsMax: number): void {
    const vector = batch.columns[this.#column]!;
    if (vector.kind === 'null') return this.run('', none, null, batch, groups, groupsMax);
    this.#rowsSinceCarry += batch.count;
    if (this.#rowsSinceCarry > rowsBetweenCarries) {
      this.#carry();
      this.#rowsSinceCarry = batch.count;
    }
    if (vector.kind === 'i32') this.run('A += values[i]; B++;', vector.values, vector.nulls, batch, groups, groupsMax);
    else if (vector.kind === 'f64') {
      const body = `const x = values[i], h = Math.floor(x / ${word}); C += h; A += x - h * ${word}; B++;`;
      this.run(body, vector.values, vector.nulls, batch, groups, groupsMax);
    } else {
      assert(vector.kind === 'i64', 'an integer column');
      this.run(
        'A += values[2 * i] >>> 0; C += values[2 * i + 1]; B++;',
        wordsOf(vector.values),
        vector.nulls,
        batch,
        groups,
        groupsMax,
      );
    }
  }

  result(groups: Int32Array): Vector {
    const nulls = this.nulls(groups);
    if (this.#average) {
      const values = Float64Array.from(groups, (group) => (this.b[group] ? Number(this.#sum(group)) / this.b[group]! : 0));
      return { kind: 'f64', values, nulls };
    }
    const sums = new BigInt64Array(groups.length);
    groups.forEach((group, j) => {
      const sum = this.#sum(group);
      if (sum > I64_MAX || sum < I64_MIN) throw integerOverflow();
      sums[j] = sum;
    });
    return { kind: 'i64', values: sums, nulls };
  }

  #sum(group: number): bigint {
    return (this.#rest?.[group] ?? 0n) + BigInt(this.c[group]!) * BigInt(word) + BigInt(this.a[group]!);
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

  constructor(column: number, name: 'min' | 'max', single: boolean) {
    super(single);
    this.#column = column;
    this.#body = `const x = values[i]; if (B === 0 || x ${name === 'min' ? '<' : '>'} A) A = x; B++;`;
  }

  update(batch: Batch, groups: Int32Array, groupsMax: number): void {
    const vector = batch.columns[this.#column]!;
    if (vector.kind === 'null') return this.run('', none, null, batch, groups, groupsMax);
    this.run(this.#body, doublesOf(vector, batch), vector.nulls, batch, groups, groupsMax);
  }

  result(groups: Int32Array): Vector {
    return { kind: 'f64', values: Float64Array.from(groups, (group) => this.a[group]!), nulls: this.nulls(groups) };
  }
}

/** Integers and instants by high word, then low word (unsigned). */
class IntegerExtreme extends DoubleState implements Accumulator {
  readonly #column: number;
  readonly #type: ColumnType;
  readonly #take: string;

  constructor(column: number, type: ColumnType, name: 'min' | 'max', single: boolean) {
    super(single);
    this.#column = column;
    this.#type = type;
    const before = name === 'min' ? '<' : '>';
    this.#take = `if (B === 0 || h ${before} A || (h === A && l ${before} C)) { A = h; C = l; } B++;`;
  }

  update(batch: Batch, groups: Int32Array, groupsMax: number): void {
    const vector = batch.columns[this.#column]!;
    if (vector.kind === 'null') return this.run('', none, null, batch, groups, groupsMax);
    if (vector.kind === 'i64') {
      const body = `const h = values[2 * i + 1], l = values[2 * i] >>> 0; ${this.#take}`;
      return this.run(body, wordsOf(vector.values), vector.nulls, batch, groups, groupsMax);
    }
    assert(vector.kind === 'i32' || vector.kind === 'f64', `a ${this.#type} column`);
    const body = `const x = values[i], h = Math.floor(x / ${word}), l = x - h * ${word}; ${this.#take}`;
    this.run(body, vector.values, vector.nulls, batch, groups, groupsMax);
  }

  result(groups: Int32Array): Vector {
    const values = new BigInt64Array(groups.length);
    groups.forEach((group, j) => {
      values[j] = BigInt(this.a[group]!) * BigInt(word) + BigInt(this.c[group]!);
    });
    return { kind: 'i64', values, nulls: this.nulls(groups) };
  }
}

/** Codepoint order. A value is taken over rarely, so the best ones are kept as strings. */
class TextExtreme implements Accumulator {
  readonly #column: number;
  readonly #sign: number;
  readonly #best: (string | undefined)[] = [];
  readonly #bestBytes: (Uint8Array | undefined)[] = [];
  #codes = new Int32Array(0);
  #dictionary: Dictionary | null = null;
  bytes = 0;

  constructor(column: number, name: 'min' | 'max') {
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
    const texts = Array.from(groups, (group) => this.#best[group]);
    const dictionary: Dictionary = {
      size: texts.length,
      text: (code) => texts[code] ?? '',
      codeOf: (text) => texts.indexOf(text),
    };
    const nulls = Uint8Array.from(texts, (text) => (text === undefined ? 1 : 0));
    return { kind: 'dict', values: Int32Array.from(texts.keys()), dictionary, nulls: nulls.includes(1) ? nulls : null };
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
    const best = this.#bestBytes[group];
    if (best && compareRange(heap, start, end, best) * this.#sign <= 0) return;
    this.#take(group, decoder.decode(heap.subarray(start, end)));
    if (this.#codes.length > group) this.#codes[group] = 0;
  }

  #take(group: number, text: string): void {
    this.bytes += text.length * 2 + 64 - (this.#best[group]?.length ?? -32) * 2;
    this.#best[group] = text;
    this.#bestBytes[group] = encoder.encode(text);
  }
}

class DistinctCount implements Accumulator {
  readonly #column: number;
  readonly #values: ValueNumbers;
  readonly #pairs = new PairNumbers();
  #counts = new Float64Array(16);
  #numbers = new Int32Array(0);

  constructor(column: number, type: ColumnType) {
    this.#column = column;
    this.#values = valueNumbers(type);
  }

  get bytes(): number {
    return this.#values.bytes + this.#pairs.bytes + this.#counts.byteLength;
  }

  update(batch: Batch, groups: Int32Array, groupsMax: number): void {
    if (this.#counts.length < groupsMax) this.#counts = larger(this.#counts, Math.max(this.#counts.length * 2, groupsMax));
    if (this.#numbers.length < batch.count) this.#numbers = new Int32Array(batch.count);
    const numbers = this.#numbers;
    this.#values.assign(batch.columns[this.#column]!, batch, numbers);
    for (let j = 0; j < batch.count; j++) {
      if (numbers[j] === 0) continue;
      const known = this.#pairs.size;
      if (this.#pairs.numberOf(groups[j]!, numbers[j]!) === known) this.#counts[groups[j]!]!++;
    }
  }

  result(groups: Int32Array): Vector {
    return { kind: 'f64', values: Float64Array.from(groups, (group) => this.#counts[group] ?? 0), nulls: null };
  }
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

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

function larger(values: Float64Array<ArrayBuffer>, length: number): Float64Array<ArrayBuffer> {
  const grown = new Float64Array(length);
  grown.set(values);
  return grown;
}

function compareRange(heap: Uint8Array, start: number, end: number, bytes: Uint8Array): number {
  const shared = Math.min(end - start, bytes.length);
  for (let k = 0; k < shared; k++) {
    const difference = heap[start + k]! - bytes[k]!;
    if (difference !== 0) return difference;
  }
  return end - start - bytes.length;
}
