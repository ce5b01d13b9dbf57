/**
 * A growing copy of one column, which outlives the batches that its cells came in. The layout widens as cells need it (i32, f64,
 * i64; one dictionary, then text), so a sink has one layout even if the segments had several.
 */
import { assert } from '../../errors.ts';
import type { Dictionary, Vector } from '../../log/values/columns.ts';
import type { ColumnType } from '../../log/values/value.ts';
import { generateFunction } from '../expressions/generate-function.ts';
import type { Batch } from './operator.ts';

type SinkValues = Int32Array | Float64Array | BigInt64Array | Uint8Array | Float32Array;

const sinkEncoder = new TextEncoder();
const emptyHeap = new Uint8Array(0);

/**
 * Copies of the columns of the batches given to it: all of them, or the wanted ones. A sink that is made `like` the one
 * before it has that one's room from the start, and does not grow into it again.
 */
export class RowSink {
  readonly #columnSinks: readonly (ColumnSink | null)[];
  length = 0;

  constructor(
    types: readonly ColumnType[],
    wantedColumns: ReadonlySet<number> | null = null,
    earlierSink: RowSink | null = null,
  ) {
    this.#columnSinks = types.map((type, i) =>
      wantedColumns === null || wantedColumns.has(i)
        ? new ColumnSink(type, earlierSink === null ? null : earlierSink.#columnSinks[i]!)
        : null,
    );
  }

  get bytes(): number {
    let sinkBytes = 0;
    for (const columnSink of this.#columnSinks) sinkBytes += columnSink?.bytes ?? 0;
    return sinkBytes;
  }

  append(batch: Batch): void {
    for (let i = 0; i < this.#columnSinks.length; i++)
      this.#columnSinks[i]?.append(batch.columns[i]!, batch.selection, batch.first, batch.count);
    this.length += batch.count;
  }

  vectors(): Vector[] {
    return this.#columnSinks.map((columnSink) => columnSink?.vector() ?? { kind: 'null' });
  }
}

export class ColumnSink {
  readonly #columnType: ColumnType;
  #sinkLength = 0;
  #sinkNulls: Uint8Array | null = null;
  #sinkValues: SinkValues | null = null;
  #sinkDictionary: Dictionary | null = null;
  #sinkOffsets: Uint32Array | null = null;
  #sinkHeap = emptyHeap;
  #usedHeapBytes = 0;
  #vectorDims = 1;
  readonly #rowsExpected: number;
  readonly #heapExpected: number;

  constructor(type: ColumnType, earlierSink: ColumnSink | null = null, rowsExpected = 0, heapExpected = 0) {
    this.#columnType = type;
    this.#rowsExpected = earlierSink === null ? rowsExpected : earlierSink.#sinkLength;
    // Texts of as many rows are rarely as long: a little more, or every other heap would double for its last few.
    this.#heapExpected = earlierSink === null ? heapExpected : earlierSink.#usedHeapBytes + (earlierSink.#usedHeapBytes >> 4);
  }

  /** Creates a sink with room for this many rows and bytes of text, where these are known. */
  static withRoom(type: ColumnType, rows: number, heapBytes: number): ColumnSink {
    return new ColumnSink(type, null, rows, heapBytes);
  }

  get bytes(): number {
    return (
      (this.#sinkNulls?.length ?? 0) +
      (this.#sinkValues?.byteLength ?? 0) +
      (this.#sinkOffsets?.byteLength ?? 0) +
      this.#sinkHeap.length
    );
  }

  append(appendedVector: Vector, selection: Int32Array | null, first: number, count: number): void {
    const appendedFrom = this.#sinkLength;
    this.#sinkLength = appendedFrom + count;
    if (appendedVector.kind === 'null') {
      this.#growSinkNulls();
      this.#sinkNulls!.fill(1, appendedFrom, this.#sinkLength);
      if (this.#sinkOffsets) this.#growSinkOffsets().fill(this.#usedHeapBytes, appendedFrom + 1, this.#sinkLength + 1);
      return;
    }
    if (appendedVector.nulls) {
      this.#growSinkNulls();
      gatherValues(appendedVector.nulls, selection, first, count, this.#sinkNulls!, appendedFrom);
    } else if (this.#sinkNulls) this.#growSinkNulls();
    switch (appendedVector.kind) {
      case 'text':
        return this.#appendText(appendedVector, selection, first, count, appendedFrom);
      case 'dict':
        return this.#appendCodes(appendedVector, selection, first, count, appendedFrom);
      case 'vec':
        return this.#appendFloats(appendedVector, selection, first, count, appendedFrom);
      case 'bool': {
        const appendedFlags =
          this.#sinkValues instanceof Uint8Array
            ? growValues(this.#sinkValues, this.#sinkLength)
            : new Uint8Array(this.#sinkRoom());
        this.#sinkValues = appendedFlags;
        return gatherValues(appendedVector.values, selection, first, count, appendedFlags, appendedFrom);
      }
      case 'i32':
      case 'f64':
      case 'i64':
        return this.#appendNumbers(appendedVector, selection, first, count, appendedFrom);
    }
  }

  /** The copy so far. Arrays may be longer than the rows in them, and go on being written to by later appends. */
  vector(): Vector {
    const sinkNulls = this.#sinkNulls;
    if (sinkNulls && sinkNulls.length < this.#sinkLength) this.#growSinkNulls();
    if (this.#sinkOffsets) {
      this.#growSinkOffsets();
      return { kind: 'text', offsets: this.#sinkOffsets, heap: this.#sinkHeap, nulls: this.#sinkNulls };
    }
    if (this.#sinkValues === null) return { kind: 'null' };
    // NULLs at the end have taken no room yet, but random access reads the cells below them too.
    const sinkValues = growValues(
      this.#sinkValues,
      this.#sinkLength * (this.#sinkValues instanceof Float32Array ? this.#vectorDims : 1),
    );
    this.#sinkValues = sinkValues;
    if (sinkValues instanceof BigInt64Array) return { kind: 'i64', values: sinkValues, nulls: this.#sinkNulls };
    if (sinkValues instanceof Float64Array) return { kind: 'f64', values: sinkValues, nulls: this.#sinkNulls };
    if (sinkValues instanceof Uint8Array) return { kind: 'bool', values: sinkValues, nulls: this.#sinkNulls };
    if (sinkValues instanceof Float32Array)
      return { kind: 'vec', values: sinkValues, dims: this.#vectorDims, nulls: this.#sinkNulls };
    if (this.#sinkDictionary)
      return { kind: 'dict', values: sinkValues, dictionary: this.#sinkDictionary, nulls: this.#sinkNulls };
    return { kind: 'i32', values: sinkValues, nulls: this.#sinkNulls };
  }

  #appendNumbers(
    numberVector: Extract<Vector, { kind: 'i32' | 'f64' | 'i64' }>,
    selection: Int32Array | null,
    first: number,
    count: number,
    appendedFrom: number,
  ): void {
    // A number column is doubles throughout; integers take the widest layout met so far.
    const oldValues = this.#sinkValues;
    const wantsBigInts = this.#columnType !== 'number' && (numberVector.kind === 'i64' || oldValues instanceof BigInt64Array);
    if (wantsBigInts) {
      const grownNumbers =
        oldValues instanceof BigInt64Array
          ? growValues(oldValues, this.#sinkLength)
          : bigIntsOf(oldValues, this.#sinkRoom(), appendedFrom);
      this.#sinkValues = grownNumbers;
      if (numberVector.kind === 'i64')
        return gatherValues(numberVector.values, selection, first, count, grownNumbers, appendedFrom);
      for (let j = 0; j < count; j++)
        grownNumbers[appendedFrom + j] = BigInt(numberVector.values[selection ? selection[j]! : first + j]!);
      return;
    }
    if (this.#columnType !== 'number' && numberVector.kind === 'i32' && !(oldValues instanceof Float64Array)) {
      const grownNumbers =
        oldValues instanceof Int32Array ? growValues(oldValues, this.#sinkLength) : new Int32Array(this.#sinkRoom());
      this.#sinkValues = grownNumbers;
      return gatherValues(numberVector.values, selection, first, count, grownNumbers, appendedFrom);
    }
    const values =
      oldValues instanceof Float64Array
        ? growValues(oldValues, this.#sinkLength)
        : doublesOf(oldValues, this.#sinkRoom(), appendedFrom);
    this.#sinkValues = values;
    if (numberVector.kind !== 'i64') return gatherValues(numberVector.values, selection, first, count, values, appendedFrom);
    for (let j = 0; j < count; j++)
      values[appendedFrom + j] = Number(numberVector.values[selection ? selection[j]! : first + j]!);
  }

  #appendCodes(
    codeVector: Extract<Vector, { kind: 'dict' }>,
    selection: Int32Array | null,
    first: number,
    count: number,
    appendedFrom: number,
  ): void {
    const isSameDictionary =
      this.#sinkOffsets === null && (this.#sinkDictionary === null || this.#sinkDictionary === codeVector.dictionary);
    if (isSameDictionary) {
      this.#sinkDictionary = codeVector.dictionary;
      const grownCodes =
        this.#sinkValues instanceof Int32Array
          ? growValues(this.#sinkValues, this.#sinkLength)
          : new Int32Array(this.#sinkRoom());
      this.#sinkValues = grownCodes;
      return gatherValues(codeVector.values, selection, first, count, grownCodes, appendedFrom);
    }
    this.#changeToText(appendedFrom);
    const grownOffsets = this.#growSinkOffsets();
    for (let j = 0; j < count; j++) {
      if (this.#sinkNulls?.[appendedFrom + j] !== 1)
        this.#writeText(codeVector.dictionary.text(codeVector.values[selection ? selection[j]! : first + j]!));
      grownOffsets[appendedFrom + j + 1] = this.#usedHeapBytes;
    }
  }

  #appendText(
    textVector: Extract<Vector, { kind: 'text' }>,
    selection: Int32Array | null,
    first: number,
    count: number,
    appendedFrom: number,
  ): void {
    this.#changeToText(appendedFrom);
    const sinkOffsets = this.#growSinkOffsets();
    const { offsets, heap } = textVector;
    if (selection === null && textVector.nulls === null && count > 16) {
      const textStart = offsets[first]!;
      const textSize = offsets[first + count]! - textStart;
      this.#reserveHeap(textSize);
      const heapShift = this.#usedHeapBytes - textStart;
      this.#sinkHeap.set(heap.subarray(textStart, textStart + textSize), this.#usedHeapBytes);
      for (let j = 1; j <= count; j++) sinkOffsets[appendedFrom + j] = offsets[first + j]! + heapShift;
      this.#usedHeapBytes += textSize;
      return;
    }
    const sinkNulls = this.#sinkNulls;
    let appendedBytes = 0;
    for (let j = 0; j < count; j++) {
      const i = selection ? selection[j]! : first + j;
      if (sinkNulls === null || sinkNulls[appendedFrom + j] !== 1) appendedBytes += offsets[i + 1]! - offsets[i]!;
    }
    this.#reserveHeap(appendedBytes);
    const sinkHeap = this.#sinkHeap;
    let usedHeap = this.#usedHeapBytes;
    for (let j = 0; j < count; j++) {
      const i = selection ? selection[j]! : first + j;
      const textStart = offsets[i]!;
      const textSize = sinkNulls !== null && sinkNulls[appendedFrom + j] === 1 ? 0 : offsets[i + 1]! - textStart;
      if (textSize <= 32) for (let k = 0; k < textSize; k++) sinkHeap[usedHeap + k] = heap[textStart + k]!;
      else sinkHeap.set(heap.subarray(textStart, textStart + textSize), usedHeap);
      sinkOffsets[appendedFrom + j + 1] = usedHeap += textSize;
    }
    this.#usedHeapBytes = usedHeap;
  }

  #appendFloats(
    floatVector: Extract<Vector, { kind: 'vec' }>,
    selection: Int32Array | null,
    first: number,
    count: number,
    appendedFrom: number,
  ): void {
    const dims = floatVector.dims;
    assert(!(this.#sinkValues instanceof Float32Array) || this.#vectorDims === dims, 'vectors of one column have one length');
    this.#vectorDims = dims;
    const grownFloats =
      this.#sinkValues instanceof Float32Array
        ? growValues(this.#sinkValues, this.#sinkLength * dims)
        : new Float32Array(this.#sinkRoom() * dims);
    this.#sinkValues = grownFloats;
    for (let j = 0; j < count; j++) {
      const i = selection ? selection[j]! : first + j;
      grownFloats.set(floatVector.values.subarray(i * dims, (i + 1) * dims), (appendedFrom + j) * dims);
    }
  }

  /** Leaves codes behind: another dictionary or plain text came. `convertedRows` rows are here so far. */
  #changeToText(convertedRows: number): void {
    if (this.#sinkOffsets) return;
    const sinkCodes = this.#sinkValues;
    const codeDictionary = this.#sinkDictionary;
    this.#sinkOffsets = new Uint32Array(this.#sinkRoom() + 1);
    this.#sinkValues = null;
    this.#sinkDictionary = null;
    for (let i = 0; i < convertedRows; i++) {
      if (codeDictionary && sinkCodes && this.#sinkNulls?.[i] !== 1) this.#writeText(codeDictionary.text(Number(sinkCodes[i]!)));
      this.#sinkOffsets[i + 1] = this.#usedHeapBytes;
    }
  }

  #writeText(sinkText: string): void {
    this.#reserveHeap(sinkText.length * 3);
    this.#usedHeapBytes += sinkEncoder.encodeInto(sinkText, this.#sinkHeap.subarray(this.#usedHeapBytes)).written;
  }

  #reserveHeap(addedBytes: number): void {
    if (this.#usedHeapBytes + addedBytes <= this.#sinkHeap.length) return;
    const expectedHeap = this.#sinkHeap.length === 0 ? this.#heapExpected : this.#sinkHeap.length * 2;
    const largerHeap = new Uint8Array(Math.max(64, expectedHeap, this.#usedHeapBytes + addedBytes));
    largerHeap.set(this.#sinkHeap.subarray(0, this.#usedHeapBytes));
    this.#sinkHeap = largerHeap;
  }

  #sinkRoom(): number {
    return Math.max(16, this.#sinkLength, this.#rowsExpected);
  }

  #growSinkNulls(): void {
    this.#sinkNulls = this.#sinkNulls ? growValues(this.#sinkNulls, this.#sinkLength) : new Uint8Array(this.#sinkRoom());
  }

  #growSinkOffsets(): Uint32Array {
    const sinkOffsets = this.#sinkOffsets!;
    if (sinkOffsets.length > this.#sinkLength) return sinkOffsets;
    const largerOffsets = new Uint32Array(Math.max(sinkOffsets.length * 2, this.#sinkRoom() + 1));
    largerOffsets.set(sinkOffsets);
    return (this.#sinkOffsets = largerOffsets);
  }
}

/** The array itself when it is long enough, else a copy of at least twice its length. */
function growValues<T extends SinkValues>(smallerValues: T, length: number): T {
  if (smallerValues.length >= length) return smallerValues;
  const largerValues = new (smallerValues.constructor as new (length: number) => T)(Math.max(smallerValues.length * 2, length));
  largerValues.set(smallerValues as never);
  return largerValues;
}

/** The numbers so far as bigints. NULLs of a column that a segment has never seen take no room: an array may end early. */
function bigIntsOf(oldValues: SinkValues | null, length: number, used: number): BigInt64Array {
  const bigInts = new BigInt64Array(length);
  const filledLength = Math.min(used, oldValues?.length ?? 0);
  for (let i = 0; i < filledLength; i++) bigInts[i] = BigInt(oldValues![i]!);
  return bigInts;
}

function doublesOf(oldValues: SinkValues | null, length: number, used: number): Float64Array {
  const doubles = new Float64Array(length);
  const filledLength = Math.min(used, oldValues?.length ?? 0);
  for (let i = 0; i < filledLength; i++) doubles[i] = Number(oldValues![i]!);
  return doubles;
}

function gatherValues<T extends Int32Array | Float64Array | BigInt64Array | Uint8Array>(
  sourceValues: T | Int32Array,
  selection: Int32Array | null,
  first: number,
  count: number,
  targetValues: T,
  targetStart: number,
): void {
  // A view costs more than a few cells: point reads come here one row at a time.
  if (selection === null && count > 16) targetValues.set(sourceValues.subarray(first, first + count) as never, targetStart);
  else if (selection === null) for (let j = 0; j < count; j++) targetValues[targetStart + j] = sourceValues[first + j]!;
  else if (count <= 16) for (let j = 0; j < count; j++) targetValues[targetStart + j] = sourceValues[selection[j]!]!;
  else if (targetValues instanceof BigInt64Array)
    pickValues('l', int32WordsOf(sourceValues as BigInt64Array), selection, count, int32WordsOf(targetValues), targetStart);
  else {
    const layoutLetters =
      (sourceValues instanceof Int32Array ? 'i' : '') +
      (targetValues instanceof Float64Array ? 'f' : targetValues instanceof Int32Array ? 'i' : 'b');
    pickValues(layoutLetters, sourceValues as Int32Array, selection, count, targetValues as Int32Array, targetStart);
  }
}

type PickValues = (source: Int32Array, selection: Int32Array, count: number, target: Int32Array, start: number) => void;

const pickLoops = new Map<string, PickValues>();

/** One loop per pair of array kinds, which the letters name: one for all of them would be slow for each. */
function pickValues(
  layoutLetters: string,
  sourceWords: Int32Array,
  selection: Int32Array,
  count: number,
  targetWords: Int32Array,
  targetStart: number,
): void {
  let pickLoop = pickLoops.get(layoutLetters);
  if (!pickLoop) {
    const pickBody =
      layoutLetters === 'l'
        ? 'const r = 2 * selection[j], p = 2 * (start + j); target[p] = source[r]; target[p + 1] = source[r + 1];'
        : 'target[start + j] = source[selection[j]];';
    const pickSource = `"use strict"; /* ${layoutLetters} */ for (let j = 0; j < count; j++) { ${pickBody} }`;
    pickLoops.set(
      layoutLetters,
      (pickLoop = generateFunction<PickValues>(['source', 'selection', 'count', 'target', 'start'], pickSource)),
    );
  }
  pickLoop(sourceWords, selection, count, targetWords, targetStart);
}

function int32WordsOf(values: BigInt64Array): Int32Array {
  return new Int32Array(values.buffer, values.byteOffset, values.length * 2);
}
