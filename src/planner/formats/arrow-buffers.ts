/** Buffers of one record batch of Arrow, in their order: none is handed out that does not lie in the body, or is shorter than its column. */
import { assert } from '../../errors.ts';
import {
  type ArrowCells,
  ArrowDictionary,
  BooleanCells,
  type CellForm,
  CodedCells,
  DecimalCells,
  InstantCells,
  IntegerCells,
  type Integers,
  ListCells,
  NoCells,
  NumberCells,
  offsetTexts,
  TextCells,
  type Texts,
  viewTexts,
} from './arrow-cells.ts';
import type { ArrowBatch, ArrowType } from './arrow-messages.ts';
import { malformedError } from './flat-table.ts';

/** Hands out nodes and buffers of one batch in their order, each compared with the body. */
export class BatchBuffers {
  readonly #arrowBatch: ArrowBatch;
  readonly #arrowBody: Uint8Array;
  #fieldNode = 0;
  #bufferOrdinal = 0;
  #viewColumn = 0;

  /** `arrowBody` begins at a multiple of eight in its memory. */
  constructor(arrowBatch: ArrowBatch, arrowBody: Uint8Array) {
    this.#arrowBatch = arrowBatch;
    this.#arrowBody = new Uint8Array(arrowBody.buffer, arrowBody.byteOffset, arrowBody.byteLength);
  }

  /** Cells of the next column. `rows`: how many the batch has. */
  cells(cellForm: CellForm, rows: number, knownDictionary: ArrowDictionary | null): ArrowCells {
    const { dictionary } = cellForm.field;
    if (dictionary === null) return this.values(cellForm, rows);
    const validityBits = this.#validityBits(rows);
    const dictionaryCodes = this.#arrowIntegers(dictionary.index, rows);
    // A column of NULL may come before its dictionary, or without one.
    return new CodedCells(validityBits, dictionaryCodes, knownDictionary ?? new ArrowDictionary(cellForm.type));
  }

  /** The cells of a column in plain buffers, such as the values of a dictionary. */
  values(cellForm: CellForm, rows: number): ArrowCells {
    const { type: arrowType } = cellForm.field;
    if (arrowType.kind === 'null') {
      this.#nextFieldNode();
      return new NoCells(null);
    }
    const validityBits = this.#validityBits(rows);
    switch (arrowType.kind) {
      case 'bool':
        return new BooleanCells(validityBits, this.#alignedBuffer(Math.ceil(rows / 8), 1));
      case 'int':
        return new IntegerCells(validityBits, this.#arrowIntegers(arrowType, rows), cellForm.type);
      case 'float':
        return new NumberCells(validityBits, this.#arrowNumbers(arrowType.bits, rows));
      case 'instant':
        return new InstantCells(
          validityBits,
          arrowType.bits === 32 ? this.#int32Buffer(rows) : this.#int64Buffer(rows),
          arrowType.unitNs,
        );
      case 'decimal': {
        const decimalWords = Math.max(1, arrowType.bits / 64);
        return new DecimalCells(
          validityBits,
          arrowType.bits === 32 ? this.#int32Buffer(rows) : this.#int64Buffer(rows * decimalWords),
          decimalWords,
          arrowType.scale,
        );
      }
      case 'text':
        return new TextCells(validityBits, this.#arrowTexts(arrowType.offsets, rows), cellForm.type);
      case 'list':
        return this.#listCells(validityBits, arrowType, cellForm, rows);
    }
  }

  #listCells(
    listValidity: Uint8Array | null,
    listType: Extract<ArrowType, { kind: 'list' }>,
    form: CellForm,
    rows: number,
  ): ArrowCells {
    const listOffsets = listType.offsets === 0 ? listType.size : this.#arrowOffsets(listType.offsets, rows);
    assert(listType.item.kind === 'float', 'lists are of numbers');
    const listItemCount = this.#peekFieldNode();
    const itemValidity = this.#validityBits(listItemCount);
    const listItems = new NumberCells(itemValidity, this.#arrowNumbers(listType.item.bits, listItemCount));
    if (listType.offsets === 0 && listItemCount < rows * listType.size)
      throw malformedError('a column of lists is shorter than its batch');
    return new ListCells(listValidity, listOffsets, listItems, listItemCount, form);
  }

  #arrowTexts(textOffsets: 32 | 64 | 'views', rows: number): Texts {
    if (textOffsets !== 'views') return offsetTexts(this.#arrowOffsets(textOffsets, rows), this.#nextArrowBuffer());
    const textViews = this.#int32Buffer(rows * 4);
    const viewBufferCount = this.#arrowBatch.viewBuffers[this.#viewColumn++];
    if (viewBufferCount === undefined || viewBufferCount < 0n || viewBufferCount > this.#arrowBatch.buffers.length)
      throw malformedError('buffers of a column of views are missing');
    return viewTexts(
      textViews,
      Array.from({ length: Number(viewBufferCount) }, () => this.#nextArrowBuffer()),
    );
  }

  /** Offsets, one more than cells; an empty column may have no buffer for them. */
  #arrowOffsets(bits: 32 | 64, rows: number): Int32Array | BigInt64Array {
    if (rows === 0) {
      this.#nextArrowBuffer();
      return new Int32Array(1);
    }
    return bits === 32 ? this.#int32Buffer(rows + 1) : this.#int64Buffer(rows + 1);
  }

  #arrowIntegers(integerType: ArrowType, rows: number): Integers {
    assert(integerType.kind === 'int', 'integers have a width');
    const integerBytes = this.#alignedBuffer(rows * (integerType.bits / 8), integerType.bits / 8);
    const integerBuffer = [integerBytes.buffer, integerBytes.byteOffset, rows] as const;
    switch (integerType.bits) {
      case 8:
        return integerType.isSigned ? new Int8Array(...integerBuffer) : new Uint8Array(...integerBuffer);
      case 16:
        return integerType.isSigned ? new Int16Array(...integerBuffer) : new Uint16Array(...integerBuffer);
      case 32:
        return integerType.isSigned ? new Int32Array(...integerBuffer) : new Uint32Array(...integerBuffer);
      default:
        return integerType.isSigned ? new BigInt64Array(...integerBuffer) : new BigUint64Array(...integerBuffer);
    }
  }

  #arrowNumbers(bits: number, rows: number): Float64Array | Float32Array | Uint16Array {
    const floatBytes = this.#alignedBuffer(rows * (bits / 8), bits / 8);
    const floatBuffer = [floatBytes.buffer, floatBytes.byteOffset, rows] as const;
    return bits === 64
      ? new Float64Array(...floatBuffer)
      : bits === 32
        ? new Float32Array(...floatBuffer)
        : new Uint16Array(...floatBuffer);
  }

  #int32Buffer(count: number): Int32Array {
    const int32Bytes = this.#alignedBuffer(count * 4, 4);
    return new Int32Array(int32Bytes.buffer, int32Bytes.byteOffset, count);
  }

  #int64Buffer(count: number): BigInt64Array {
    const int64Bytes = this.#alignedBuffer(count * 8, 8);
    return new BigInt64Array(int64Bytes.buffer, int64Bytes.byteOffset, count);
  }

  /** The next column's node, and its bits of validity; null: no cell is NULL. */
  #validityBits(rows: number): Uint8Array | null {
    const { length: nodeLength, nullCount } = this.#nextFieldNode();
    if (nodeLength !== BigInt(rows)) throw malformedError('a column is longer or shorter than its batch');
    const validityBits = this.#nextArrowBuffer();
    if (nullCount === 0n || validityBits.length === 0) return null;
    if (validityBits.length < Math.ceil(rows / 8)) throw malformedError('a column’s validity is shorter than its batch');
    return validityBits;
  }

  #peekFieldNode(): number {
    const nodeLength = this.#arrowBatch.nodes[this.#fieldNode * 2];
    if (nodeLength === undefined || nodeLength < 0n || nodeLength > BigInt(this.#arrowBody.length))
      throw malformedError('a list has no items');
    return Number(nodeLength);
  }

  #nextFieldNode(): { readonly length: bigint; readonly nullCount: bigint } {
    const nodeOffset = 2 * this.#fieldNode++;
    const { nodes } = this.#arrowBatch;
    if (nodeOffset + 1 >= nodes.length) throw malformedError('it has fewer columns than its schema');
    return { length: nodes[nodeOffset]!, nullCount: nodes[nodeOffset + 1]! };
  }

  /** The next buffer, of `bufferBytes` bytes at least, at a multiple of `alignment` in memory. */
  #alignedBuffer(bufferBytes: number, alignment: number): Uint8Array {
    const arrowBuffer = this.#nextArrowBuffer();
    if (arrowBuffer.length < bufferBytes) throw malformedError('a buffer is shorter than its column');
    return arrowBuffer.byteOffset % alignment === 0 ? arrowBuffer : arrowBuffer.slice();
  }

  #nextArrowBuffer(): Uint8Array {
    const bufferSlot = 2 * this.#bufferOrdinal++;
    const { buffers } = this.#arrowBatch;
    if (bufferSlot + 1 >= buffers.length) throw malformedError('it has fewer buffers than its schema');
    const [offset, length] = [buffers[bufferSlot]!, buffers[bufferSlot + 1]!];
    if (offset < 0n || length < 0n || offset + length > BigInt(this.#arrowBody.length))
      throw malformedError('a buffer lies outside of its body');
    return this.#arrowBody.subarray(Number(offset), Number(offset + length));
  }
}
