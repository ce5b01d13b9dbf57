/**
 * Passes the keys of one side of a join to a scan of the other side, which drops rows without such a key: they would find no
 * partner. The filter is exact or wider, and depends on the keys alone, never on how rows lie in blocks.
 */
import type { Vector } from '../../log/values/columns.ts';
import { type Batch, emptyBatch, type Operator } from './operator.ts';
import { rowsPerStep } from './row-index.ts';

/** The largest range of keys for which a bit each is held; more where there are enough keys: 32 MiB at most. */
const filterBitsMin = 1 << 22;
const filterBitsPerKey = 64;
const filterBitsMax = 1 << 28;
/** Every whole number below it is a double. */
const integerKeyMax = 2 ** 52;
/** Where more of the values in between are keys, the filter would drop few rows. */
const filterShareMax = 0.9;
/** The most keys that are worth a look-up each, and the rows that are read to find out whether they are. */
const lookedUpKeysMax = 1_024;
const rowsReadMax = 8_192;

type NumberVector = Extract<Vector, { kind: 'i32' | 'f64' | 'i64' }>;

export class KeyFilter {
  #leastKey = 0;
  #mostKey = 0;
  /** A bit per value, less the least one; null: all values in between count as keys. */
  #keyBits: Int32Array | null = null;
  /** False until the keys are known, and where they are none that a filter tells. */
  isSet = false;
  #takenKeys: { readonly key: Vector; readonly count: number } | null = null;

  get bytes(): number {
    return this.#keyBits?.byteLength ?? 0;
  }

  /** Takes the keys of rows 0 .. count-1, in steps; for keys that are no whole numbers it only serves lookups. */
  *take(keyVector: Vector, count: number): Generator<undefined, void, void> {
    this.#takenKeys = { key: keyVector, count };
    if (keyVector.kind !== 'i32' && keyVector.kind !== 'f64' && keyVector.kind !== 'i64') return;
    let leastKey = Number.POSITIVE_INFINITY;
    let mostKey = Number.NEGATIVE_INFINITY;
    for (let firstOfStep = 0; firstOfStep < count; firstOfStep += rowsPerStep) {
      for (const keyValue of keyValuesOf(keyVector, firstOfStep, Math.min(count, firstOfStep + rowsPerStep))) {
        if (keyValue < leastKey) leastKey = keyValue;
        if (keyValue > mostKey) mostKey = keyValue;
        if (keyValue !== Math.floor(keyValue)) return;
      }
      yield;
    }
    if (leastKey < -integerKeyMax || mostKey > integerKeyMax) return;
    this.#leastKey = leastKey;
    this.#mostKey = mostKey;
    const keyRange = mostKey - leastKey + 1;
    if (keyRange > 0 && keyRange <= Math.min(filterBitsMax, Math.max(filterBitsMin, count * filterBitsPerKey))) {
      this.#keyBits = yield* keyBitsOf(keyVector, count, leastKey, keyRange);
    }
    this.isSet = true;
  }

  /** The keys as texts, for a scan whose key they are to look each up; null where they are not known yet, or more than a few. */
  lookUps(): readonly string[] | null {
    const takenKeys = this.#takenKeys;
    this.#takenKeys = null;
    return takenKeys !== null && takenKeys.count <= rowsReadMax ? fewKeyTexts(takenKeys.key, takenKeys.count) : null;
  }

  /** Writes the rows of a batch that have such a key; returns how many. `keptRows` may be the batch's selection. */
  select({ columns, selection, first, count }: Batch, column: number, keptRows: Int32Array): number {
    const keyVector = columns[column]!;
    // A side without keys has no partners, and NULL equals nothing.
    if (keyVector.kind === 'null' || this.#leastKey > this.#mostKey) return 0;
    if (keyVector.kind === 'i32' && keyVector.nulls === null && this.#fitsInt32()) {
      return selectInt32Keys(
        keyVector.values,
        this.#keyBits ?? everyKeyBit,
        this.#leastKey,
        this.#mostKey,
        selection,
        first,
        count,
        keptRows,
      );
    }
    let passingCount = 0;
    for (let j = 0; j < count; j++) {
      const batchRow = selection === null ? first + j : selection[j]!;
      keptRows[passingCount] = batchRow;
      if (this.#hasKey(keyVector as NumberVector, batchRow)) passingCount++;
    }
    return passingCount;
  }

  /** Whether it has anything to say of a column as it is laid out. */
  judges({ kind }: Vector): boolean {
    return this.isSet && (kind === 'i32' || kind === 'f64' || kind === 'i64' || kind === 'null');
  }

  #fitsInt32(): boolean {
    return this.#leastKey >= -(2 ** 31) && this.#mostKey < 2 ** 31 && this.#mostKey - this.#leastKey < 2 ** 31;
  }

  #hasKey({ values, nulls }: NumberVector, row: number): boolean {
    if (nulls !== null && nulls[row] === 1) return false;
    const keyValue = values[row]!;
    if (keyValue < this.#leastKey || keyValue > this.#mostKey) return false;
    if (this.#keyBits === null) return true;
    const keyBit = Number(keyValue) - this.#leastKey;
    return keyBit === Math.floor(keyBit) && (this.#keyBits[keyBit >>> 5]! & (1 << (keyBit & 31))) !== 0;
  }
}

/** Each key once, as `_pk` writes it; null where they are more than are looked up, or no keys of that kind. */
function fewKeyTexts(keyVector: Vector, count: number): string[] | null {
  if (keyVector.kind === 'null') return [];
  if (keyVector.kind !== 'dict' && keyVector.kind !== 'text' && keyVector.kind !== 'i32' && keyVector.kind !== 'i64') return null;
  const keyTexts = new Set<string>();
  const seenCodes = new Set<number>();
  for (let row = 0; row < count; row++) {
    if (keyVector.nulls?.[row] === 1) continue;
    if (keyVector.kind === 'dict') {
      const keyCode = keyVector.values[row]!;
      if (seenCodes.has(keyCode)) continue;
      seenCodes.add(keyCode);
      keyTexts.add(keyVector.dictionary.text(keyCode));
    } else if (keyVector.kind === 'text') {
      keyTexts.add(Buffer.from(keyVector.heap.subarray(keyVector.offsets[row], keyVector.offsets[row + 1])).toString('utf8'));
    } else keyTexts.add(String(keyVector.values[row]!));
    if (keyTexts.size > lookedUpKeysMax) return null;
  }
  return [...keyTexts];
}

/** Set where all values in between count as keys. */
const everyKeyBit = new Int32Array([-1]);

/** The layout that most keys have. */
function selectInt32Keys(
  keyInts: Int32Array,
  keyBits: Int32Array,
  leastKey: number,
  mostKey: number,
  selection: Int32Array | null,
  first: number,
  count: number,
  keptRows: Int32Array,
): number {
  const keyRange = (mostKey - leastKey) | 0;
  const wordMask = keyBits === everyKeyBit ? 0 : -1;
  let passingCount = 0;
  // Each row is written, and the next one over it where it has no such key: nothing to guess for the processor.
  if (selection === null) {
    for (let keyRow = first; keyRow < first + count; keyRow++) {
      const keyBit = (keyInts[keyRow]! - leastKey) | 0;
      keptRows[passingCount] = keyRow;
      passingCount += keyBit >= 0 && keyBit <= keyRange ? (keyBits[(keyBit >>> 5) & wordMask]! >>> (keyBit & 31)) & 1 : 0;
    }
    return passingCount;
  }
  for (let j = 0; j < count; j++) {
    const keyRow = selection[j]!;
    const keyBit = (keyInts[keyRow]! - leastKey) | 0;
    keptRows[passingCount] = keyRow;
    passingCount += keyBit >= 0 && keyBit <= keyRange ? (keyBits[(keyBit >>> 5) & wordMask]! >>> (keyBit & 31)) & 1 : 0;
  }
  return passingCount;
}

/** A bit for each value from the least key on; null where so dense a set of keys would drop few rows. */
function* keyBitsOf(
  keyVector: NumberVector,
  count: number,
  leastKey: number,
  keyRange: number,
): Generator<undefined, Int32Array | null, void> {
  const keyBits = new Int32Array(Math.ceil(keyRange / 32));
  let setBitCount = 0;
  for (let firstOfStep = 0; firstOfStep < count; firstOfStep += rowsPerStep) {
    for (const keyValue of keyValuesOf(keyVector, firstOfStep, Math.min(count, firstOfStep + rowsPerStep))) {
      const keyBit = keyValue - leastKey;
      const bit = 1 << (keyBit & 31);
      if ((keyBits[keyBit >>> 5]! & bit) === 0) setBitCount++;
      keyBits[keyBit >>> 5]! |= bit;
    }
    yield;
  }
  return setBitCount <= keyRange * filterShareMax ? keyBits : null;
}

/** The values that there are, as doubles. */
function keyValuesOf({ kind, values, nulls }: NumberVector, firstRow: number, endRow: number): Int32Array | Float64Array {
  if (nulls === null && kind !== 'i64') return values.subarray(firstRow, endRow);
  const keyDoubles = new Float64Array(endRow - firstRow);
  let presentCount = 0;
  for (let row = firstRow; row < endRow; row++) {
    if (nulls === null || nulls[row] !== 1) keyDoubles[presentCount++] = Number(values[row]);
  }
  return keyDoubles.subarray(0, presentCount);
}

/** A column of a node whose values have to be among keys. */
export interface Narrowing {
  readonly column: number;
  readonly filter: KeyFilter;
}

/** A narrowing made by a join, with the number of the key. */
export interface JoinNarrowing extends Narrowing {
  readonly key: number;
}

/** Leaves the rows that have all keys that are known by then. */
export class NarrowedOperator implements Operator {
  readonly #narrowedInput: Operator;
  readonly #keyNarrowings: readonly Narrowing[];
  #passing = new Int32Array(0);

  constructor(input: Operator, narrowings: readonly Narrowing[]) {
    this.#narrowedInput = input;
    this.#keyNarrowings = narrowings;
  }

  next(): Batch | null {
    const batch = this.#narrowedInput.next();
    if (batch === null || batch.count === 0) return batch;
    let narrowedBatch = batch;
    for (const { column, filter } of this.#keyNarrowings) {
      if (!filter.judges(batch.columns[column]!)) continue;
      if (this.#passing.length < batch.count) this.#passing = new Int32Array(batch.count);
      const narrowedCount = filter.select(narrowedBatch, column, this.#passing);
      if (narrowedCount === 0) return emptyBatch;
      // If all rows pass, the batch stays as it is: consecutive rows are copied at once.
      if (narrowedCount < narrowedBatch.count)
        narrowedBatch = { columns: batch.columns, selection: this.#passing, first: 0, count: narrowedCount };
    }
    return narrowedBatch;
  }

  close(): void {
    this.#narrowedInput.close();
  }
}
