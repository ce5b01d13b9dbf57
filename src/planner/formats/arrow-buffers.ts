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
  readonly #batch: ArrowBatch;
  readonly #body: Uint8Array;
  #node = 0;
  #buffer = 0;
  #views = 0;

  /** `body` begins at a multiple of eight in its memory. */
  constructor(batch: ArrowBatch, body: Uint8Array) {
    this.#batch = batch;
    this.#body = new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
  }

  /** Cells of the next column. `rows`: how many the batch has. */
  cells(form: CellForm, rows: number, known: ArrowDictionary | null): ArrowCells {
    const { dictionary } = form.field;
    if (dictionary === null) return this.values(form, rows);
    const validity = this.#validity(rows);
    const codes = this.#integers(dictionary.index, rows);
    // A column of NULL may come before its dictionary, or without one.
    return new CodedCells(validity, codes, known ?? new ArrowDictionary(form.type));
  }

  /** The cells of a column in plain buffers, such as the values of a dictionary. */
  values(form: CellForm, rows: number): ArrowCells {
    const { type } = form.field;
    if (type.kind === 'null') {
      this.#nextNode();
      return new NoCells(null);
    }
    const validity = this.#validity(rows);
    switch (type.kind) {
      case 'bool':
        return new BooleanCells(validity, this.#bytes(Math.ceil(rows / 8), 1));
      case 'int':
        return new IntegerCells(validity, this.#integers(type, rows), form.type);
      case 'float':
        return new NumberCells(validity, this.#numbers(type.bits, rows));
      case 'instant':
        return new InstantCells(validity, type.bits === 32 ? this.#int32(rows) : this.#int64(rows), type.unitNs);
      case 'decimal': {
        const each = Math.max(1, type.bits / 64);
        return new DecimalCells(validity, type.bits === 32 ? this.#int32(rows) : this.#int64(rows * each), each, type.scale);
      }
      case 'text':
        return new TextCells(validity, this.#texts(type.offsets, rows), form.type);
      case 'list':
        return this.#lists(validity, type, form, rows);
    }
  }

  #lists(validity: Uint8Array | null, type: Extract<ArrowType, { kind: 'list' }>, form: CellForm, rows: number): ArrowCells {
    const offsets = type.offsets === 0 ? type.size : this.#offsets(type.offsets, rows);
    assert(type.item.kind === 'float', 'lists are of numbers');
    const itemCount = this.#peekNode();
    const itemValidity = this.#validity(itemCount);
    const items = new NumberCells(itemValidity, this.#numbers(type.item.bits, itemCount));
    if (type.offsets === 0 && itemCount < rows * type.size) throw malformedError('a column of lists is shorter than its batch');
    return new ListCells(validity, offsets, items, itemCount, form);
  }

  #texts(offsets: 32 | 64 | 'views', rows: number): Texts {
    if (offsets !== 'views') return offsetTexts(this.#offsets(offsets, rows), this.#nextBuffer());
    const views = this.#int32(rows * 4);
    const count = this.#batch.viewBuffers[this.#views++];
    if (count === undefined || count < 0n || count > this.#batch.buffers.length)
      throw malformedError('buffers of a column of views are missing');
    return viewTexts(
      views,
      Array.from({ length: Number(count) }, () => this.#nextBuffer()),
    );
  }

  /** Offsets, one more than cells; an empty column may have no buffer for them. */
  #offsets(bits: 32 | 64, rows: number): Int32Array | BigInt64Array {
    if (rows === 0) {
      this.#nextBuffer();
      return new Int32Array(1);
    }
    return bits === 32 ? this.#int32(rows + 1) : this.#int64(rows + 1);
  }

  #integers(type: ArrowType, rows: number): Integers {
    assert(type.kind === 'int', 'integers have a width');
    const bytes = this.#bytes(rows * (type.bits / 8), type.bits / 8);
    const at = [bytes.buffer, bytes.byteOffset, rows] as const;
    switch (type.bits) {
      case 8:
        return type.isSigned ? new Int8Array(...at) : new Uint8Array(...at);
      case 16:
        return type.isSigned ? new Int16Array(...at) : new Uint16Array(...at);
      case 32:
        return type.isSigned ? new Int32Array(...at) : new Uint32Array(...at);
      default:
        return type.isSigned ? new BigInt64Array(...at) : new BigUint64Array(...at);
    }
  }

  #numbers(bits: number, rows: number): Float64Array | Float32Array | Uint16Array {
    const bytes = this.#bytes(rows * (bits / 8), bits / 8);
    const at = [bytes.buffer, bytes.byteOffset, rows] as const;
    return bits === 64 ? new Float64Array(...at) : bits === 32 ? new Float32Array(...at) : new Uint16Array(...at);
  }

  #int32(count: number): Int32Array {
    const bytes = this.#bytes(count * 4, 4);
    return new Int32Array(bytes.buffer, bytes.byteOffset, count);
  }

  #int64(count: number): BigInt64Array {
    const bytes = this.#bytes(count * 8, 8);
    return new BigInt64Array(bytes.buffer, bytes.byteOffset, count);
  }

  /** The next column's node, and its bits of validity; null: no cell is NULL. */
  #validity(rows: number): Uint8Array | null {
    const { length, nullCount } = this.#nextNode();
    if (length !== BigInt(rows)) throw malformedError('a column is longer or shorter than its batch');
    const bits = this.#nextBuffer();
    if (nullCount === 0n || bits.length === 0) return null;
    if (bits.length < Math.ceil(rows / 8)) throw malformedError('a column’s validity is shorter than its batch');
    return bits;
  }

  #peekNode(): number {
    const length = this.#batch.nodes[this.#node * 2];
    if (length === undefined || length < 0n || length > BigInt(this.#body.length)) throw malformedError('a list has no items');
    return Number(length);
  }

  #nextNode(): { readonly length: bigint; readonly nullCount: bigint } {
    const at = 2 * this.#node++;
    const { nodes } = this.#batch;
    if (at + 1 >= nodes.length) throw malformedError('it has fewer columns than its schema');
    return { length: nodes[at]!, nullCount: nodes[at + 1]! };
  }

  /** The next buffer, of `size` bytes at least, at a multiple of `each` in memory. */
  #bytes(size: number, each: number): Uint8Array {
    const bytes = this.#nextBuffer();
    if (bytes.length < size) throw malformedError('a buffer is shorter than its column');
    return bytes.byteOffset % each === 0 ? bytes : bytes.slice();
  }

  #nextBuffer(): Uint8Array {
    const at = 2 * this.#buffer++;
    const { buffers } = this.#batch;
    if (at + 1 >= buffers.length) throw malformedError('it has fewer buffers than its schema');
    const [offset, length] = [buffers[at]!, buffers[at + 1]!];
    if (offset < 0n || length < 0n || offset + length > BigInt(this.#body.length))
      throw malformedError('a buffer lies outside of its body');
    return this.#body.subarray(Number(offset), Number(offset + length));
  }
}
