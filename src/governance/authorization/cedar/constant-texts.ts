/** Texts that a column without a dictionary is compared with, found by their bytes: no row's text is decoded. */
import type { Vector } from '../../../log/values/columns.ts';

export class ConstantTexts {
  readonly #constantsByShape = new Map<number, { readonly bytes: Uint8Array; readonly label: number }[]>();
  readonly #constantLengths = new Uint8Array(256);
  readonly #otherLabel: number;

  constructor(constants: readonly (readonly [string, number])[], other: number) {
    this.#otherLabel = other;
    for (const [text, label] of constants) {
      const bytes = Buffer.from(text);
      const shape = textShapeOf(bytes, 0, bytes.length);
      this.#constantsByShape.set(shape, [...(this.#constantsByShape.get(shape) ?? []), { bytes, label }]);
      this.#constantLengths[bytes.length & 255] = 1;
    }
  }

  labelOf({ heap, offsets }: Extract<Vector, { kind: 'text' }>, row: number): number {
    const textStart = offsets[row]!;
    const textLength = offsets[row + 1]! - textStart;
    if (this.#constantLengths[textLength & 255] === 0) return this.#otherLabel;
    const sameShape = this.#constantsByShape.get(textShapeOf(heap, textStart, textLength));
    if (sameShape === undefined) return this.#otherLabel;
    for (const { bytes, label } of sameShape) {
      let i = 0;
      while (i < textLength && bytes[i] === heap[textStart + i]) i++;
      if (i === textLength && bytes.length === textLength) return label;
    }
    return this.#otherLabel;
  }
}

function textShapeOf(heap: Uint8Array, from: number, length: number): number {
  return length === 0 ? 0 : (length & 0x7fff) * 65_536 + heap[from]! * 256 + heap[from + length - 1]!;
}
