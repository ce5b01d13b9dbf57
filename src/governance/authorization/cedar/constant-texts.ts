/** Texts that a column without a dictionary is compared with, found by their bytes: no row's text is decoded. */
import type { Vector } from '../../../log/values/columns.ts';

export class ConstantTexts {
  readonly #byShape = new Map<number, { readonly bytes: Uint8Array; readonly label: number }[]>();
  readonly #lengths = new Uint8Array(256);
  readonly #other: number;

  constructor(constants: readonly (readonly [string, number])[], other: number) {
    this.#other = other;
    for (const [text, label] of constants) {
      const bytes = Buffer.from(text);
      const shape = shapeOf(bytes, 0, bytes.length);
      this.#byShape.set(shape, [...(this.#byShape.get(shape) ?? []), { bytes, label }]);
      this.#lengths[bytes.length & 255] = 1;
    }
  }

  labelOf({ heap, offsets }: Extract<Vector, { kind: 'text' }>, row: number): number {
    const from = offsets[row]!;
    const length = offsets[row + 1]! - from;
    if (this.#lengths[length & 255] === 0) return this.#other;
    const sameShape = this.#byShape.get(shapeOf(heap, from, length));
    if (sameShape === undefined) return this.#other;
    for (const { bytes, label } of sameShape) {
      let i = 0;
      while (i < length && bytes[i] === heap[from + i]) i++;
      if (i === length && bytes.length === length) return label;
    }
    return this.#other;
  }
}

function shapeOf(heap: Uint8Array, from: number, length: number): number {
  return length === 0 ? 0 : (length & 0x7fff) * 65_536 + heap[from]! * 256 + heap[from + length - 1]!;
}
